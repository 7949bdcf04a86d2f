"""A matrix product in Gluon, pipelined: tiles arrive while others are multiplied."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


# --8<-- [start:kernel]
# --8<-- [start:where]
@gluon.jit
def first_of_tile(c_desc):
    """The first row and column of this program's tile of c."""
    block_m: gl.constexpr = c_desc.block_type.shape[0]
    block_n: gl.constexpr = c_desc.block_type.shape[1]
    blocks_m = gl.cdiv(c_desc.shape[0], block_m)
    blocks_n = gl.cdiv(c_desc.shape[1], block_n)
    # Neighbours in time share rows of a and of b: 8 blocks down, then one across.
    group = gl.program_id(0) // (8 * blocks_n)
    high = gl.minimum(blocks_m - 8 * group, 8)
    place = gl.program_id(0) % (8 * blocks_n)
    return (8 * group + place % high) * block_m, place // high * block_n


# --8<-- [end:where]
# --8<-- [start:load]
@gluon.jit
def load(a_desc, b_desc, start_m, start_n, i, count, a, b, full, STAGES: gl.constexpr):
    """Ask for the tiles of turn i, if there is one."""
    stage, start_k = i % STAGES, i * a_desc.block_type.shape[1]
    barrier, pred = full.index(stage), i < count
    nbytes: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    mbarrier.expect(barrier, nbytes, pred=pred)
    tma.async_copy_global_to_shared(
        a_desc, [start_m, start_k], barrier, a.index(stage), pred=pred
    )
    tma.async_copy_global_to_shared(
        b_desc, [start_n, start_k], barrier, b.index(stage), pred=pred
    )


# --8<-- [end:load]
@gluon.jit
def product_kernel(a_desc, b_desc, c_desc, STAGES: gl.constexpr):
    block_m: gl.constexpr = c_desc.block_type.shape[0]
    block_n: gl.constexpr = c_desc.block_type.shape[1]
    block_k: gl.constexpr = a_desc.block_type.shape[1]
    start_m, start_n = first_of_tile(c_desc)

    # --8<-- [start:memory]
    a = gl.allocate_shared_memory(
        a_desc.dtype, [STAGES, block_m, block_k], a_desc.layout
    )
    b = gl.allocate_shared_memory(
        b_desc.dtype, [STAGES, block_n, block_k], b_desc.layout
    )
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
    # --8<-- [end:memory]
    # --8<-- [start:layout]
    # Which thread holds which sum: each warp has 16 rows, as wgmma wants it.
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[block_m // 16, 1], instr_shape=[16, block_n, 16]
    )
    acc = gl.zeros([block_m, block_n], gl.float32, layout)
    # --8<-- [end:layout]

    # --8<-- [start:loop]
    count = gl.cdiv(a_desc.shape[1], block_k)
    # --8<-- [line:ahead]
    for s in gl.static_range(STAGES - 1):
        load(a_desc, b_desc, start_m, start_n, s, count, a, b, full, STAGES)
    for i in range(count):
        stage = i % STAGES
        # --8<-- [line:full]
        mbarrier.wait(full.index(stage), i // STAGES & 1)
        # --8<-- [line:multiply]
        b_turned = b.index(stage).permute((1, 0))
        acc = warpgroup_mma(a.index(stage), b_turned, acc, is_async=True)
        # The product before this one is over: its stage is free.
        # --8<-- [line:multiplied]
        acc = warpgroup_mma_wait(1, deps=[acc])
        # --8<-- [line:load]
        load(
            a_desc, b_desc, start_m, start_n, i + STAGES - 1, count, a, b, full, STAGES
        )
    # --8<-- [line:last]
    acc = warpgroup_mma_wait(0, deps=[acc])
    # --8<-- [end:loop]

    # --8<-- [start:store]
    c = gl.allocate_shared_memory(c_desc.dtype, [block_m, block_n], c_desc.layout)
    c.store(acc.to(c_desc.dtype))
    # What threads have written is shown to the TMA unit.
    # --8<-- [line:fence]
    fence_async_shared()
    tma.async_copy_shared_to_global(c_desc, [start_m, start_n], c)
    tma.store_wait(0)
    # --8<-- [end:store]


# --8<-- [end:kernel]
# --8<-- [start:checks]
def check(a: torch.Tensor, b: torch.Tensor) -> None:
    """Raise a ValueError that names the tensor that the kernel cannot take."""
    if a.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"a is {a.dtype}; it must be float16 or bfloat16")
    right = f"{a.dtype} of 2 dimensions on {a.device}"
    for name, x in (("a", a), ("b", b)):
        got = f"{x.dtype} of {x.ndim} dimensions on {x.device}"
        if got != right:
            raise ValueError(f"{name} is {got}; it must be {right}")
        if torch.is_grad_enabled() and x.requires_grad:
            raise ValueError(f"{name} requires a gradient; detach it or use no_grad")
    if b.shape[1] != a.shape[1]:
        right = f"[any, {a.shape[1]}]"
        raise ValueError(f"b has shape {list(b.shape)}; it must be {right}")
    for name, x in (("a", a), ("b", b)):
        odd = x.stride(1) != 1 or x.stride(0) % 8 or x.data_ptr() % 16
        if odd and x.numel():
            right = "1 at the end, the other and the address multiples of 16 bytes"
            raise ValueError(f"{name} has strides {x.stride()}; it must have {right}")


# --8<-- [end:checks]
# --8<-- [start:launch]
def product(
    a: torch.Tensor, b: torch.Tensor, *,
    block_m: int = 128, block_n: int = 256, stages: int = 4,
) -> torch.Tensor:  # fmt: skip
    """a b^T, with sums in float32.

    Args:
        a: [m, k], float16 or bfloat16. The last stride is 1; the other one and the
            address are multiples of 16 bytes.
        b: [n, k], dtype, device and strides as a: the weight of a linear layer.
        block_m: rows of a tile of the result, 64 or 128.
        block_n: its columns, 64, 128 or 256.
        stages: tiles of a and of b in shared memory, at least 2 and as many as fit.

    Returns:
        [m, n], dtype of a; its rows begin at multiples of 16 bytes.

    Raises:
        ValueError: an argument is none of the above, or requires a gradient.
    """
    check(a, b)
    (m, k), n = a.shape, len(b)
    # TMA may fill the last 16 bytes of a row: they belong to c.
    c = a.new_empty((m, triton.cdiv(n, 8) * 8))[:, :n]
    if m == 0 or n == 0 or k == 0:  # a descriptor cannot be of an empty tensor
        return c.zero_()
    layout = gl.NVMMASharedLayout(128, element_bitwidth=16, rank=2)
    a_desc = TensorDescriptor.from_tensor(a, [block_m, 64], layout)
    b_desc = TensorDescriptor.from_tensor(b, [block_n, 64], layout)
    c_desc = TensorDescriptor.from_tensor(c, [block_m, block_n], layout)
    programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    with torch.cuda.device_of(a):
        product_kernel[(programs,)](
            a_desc, b_desc, c_desc, STAGES=stages, num_warps=block_m // 16
        )
    return c


# --8<-- [end:launch]
# --8<-- [start:demo]
if __name__ == "__main__":
    if torch.cuda.is_available():
        a, b = (torch.randn(n, 200, device="cuda").half() for n in (300, 500))
        error = (product(a, b) - a.double() @ b.double().T).abs().max()
        print(f"cuda: largest error {error:.1e}")
    else:
        print("no GPU here, and nothing else runs Gluon")
# --8<-- [end:demo]
