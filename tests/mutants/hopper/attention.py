"""Bugs that attention may have whose tiles are loaded by others."""

from tests.mutants import Mutant

LAUNCH = [
    Mutant("if descs:", "if True:", "a launch without descriptors"),
    Mutant(
        "with torch.cuda.device_of(q):",
        "with torch.no_grad():",
        "launched on whatever device is current",
    ),
]
HEADS_OF_KEYS = Mutant(
    "head // (q_desc.shape[1] // k_desc.shape[1])", "0", "one head of keys for all"
)
PRODUCER = [
    HEADS_OF_KEYS,
    Mutant("load(v_desc, rows", "load(k_desc, rows", "K in the place of V"),
    Mutant(
        "full, empty, 2 * i + 1)", "full, empty, 2 * i)", "V where K is", may_hang=True
    ),
]
NOT_CAUSAL = Mutant("if causal:", "if False:", "causal ignored")
RESCALED = Mutant(
    "        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None]\n",
    "",
    "an old sum not rescaled",
)
