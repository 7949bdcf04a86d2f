"""The backward pass alone, of batches of heads."""

from benchmarks import peers, timing
from benchmarks.parts.backward import PROTOCOL, backward, derived, ours

PART = backward(
    shapes=PROTOCOL,
    own=ours("backward/two_kernels.py", takes=lambda shape: not shape.causal)
    | ours("backward/causal_backward.py")
    | ours("backward/backward_tuned.py", takes=lambda shape: shape.dtype != "float32"),
    peers={
        "sdpa-flash": derived(peers.sdpa_flash),
        "sdpa-efficient": derived(peers.sdpa_efficient),
        "sdpa-cudnn": derived(peers.sdpa_cudnn),
        "flex_attention": derived(peers.flex),
    },
    measure=timing.one_by_one,
    ceiling="matmul",
    against={
        "times_flash": "sdpa-flash",
        "times_flex": "flex_attention",
        "times_cudnn": "sdpa-cudnn",
    },
)
