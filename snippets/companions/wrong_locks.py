"""Wrong on purpose: a lock is given back before every thread has stored.

Programs add the rows of dy to a few shared sums, which gives db, the gradient of layer
norm's bias. Some rows are lost, other ones in every run.
"""

import torch
import triton
import triton.language as tl


# --8<-- [start:kernel]
@triton.jit
def sum_kernel(dy_ptr, partial_ptr, lock_ptr, cols, locks, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_COLS)
    mask = offs < cols
    dy = tl.load(dy_ptr + row * cols + offs, mask, other=0.0).to(tl.float32)
    # --8<-- [start:locked]
    which = row % locks
    db_ptrs = partial_ptr + which * cols + offs
    # --8<-- [line:take]
    while tl.atomic_cas(lock_ptr + which, 0, 1) == 1:
        pass
    # --8<-- [line:add]
    tl.store(db_ptrs, tl.load(db_ptrs, mask, other=0.0) + dy, mask)
    # Wrong: one thread gives the lock back, and other threads have yet to store.
    # --8<-- [line:release]
    tl.atomic_xchg(lock_ptr + which, 0)
    # --8<-- [end:locked]


# --8<-- [end:kernel]
# --8<-- [start:launch]
def bias_gradient(dy: torch.Tensor, *, locks: int = 64) -> torch.Tensor:
    """A wrong sum of dy, [rows, cols] and contiguous, over its rows: [cols], float32.

    It is right only where the programs happen to run one after the other.
    """
    rows, cols = dy.shape
    partial = torch.zeros((locks, cols), dtype=torch.float32, device=dy.device)
    free = torch.zeros(locks, dtype=torch.int32, device=dy.device)
    with torch.cuda.device_of(dy):
        sum_kernel[(rows,)](
            dy, partial, free, cols, locks, triton.next_power_of_2(cols), num_warps=16
        )
    return partial.sum(dim=0)


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows, runs = (1024, 100) if device == "cuda" else (128, 2)
    dy = torch.ones(rows, 65536, device=device)
    found = [bias_gradient(dy) for _ in range(runs)]
    wrong = [db for db in found if not (db == rows).all()]
    print(f"{device}: {len(wrong)} of {runs} sums are wrong")
    if wrong:
        print(f"smallest: {min(db.min().item() for db in wrong):.0f} instead of {rows}")
# --8<-- [end:demo]
