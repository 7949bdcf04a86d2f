"""Forward and backward in one call of autograd, at all shapes of the backward part."""

import importlib
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from typing import Any

from torch import Tensor

from benchmarks import peers
from benchmarks.calls import Call
from benchmarks.part import Shape
from benchmarks.parts.attention import output
from benchmarks.parts.backward import PROTOCOL, training


def fa4(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Call:
    """FlashAttention-4, a beta, which wants the sequence before the heads."""
    attention = importlib.import_module("flash_attn.cute").flash_attn_func
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    return lambda: output(attention(*rows, causal=causal)).transpose(1, 2)


def facts(name: str, shape: Shape) -> dict[str, Any]:
    """The work, and of the beta its version, because no other list has it as a peer."""
    found = training.facts(name, shape)
    if name == BETA:
        with suppress(metadata.PackageNotFoundError):
            found["version"] = metadata.version(BETA)
    return found


BETA = "flash-attn-4"
TUNED = "backward/autograd_tuned.py"
PART = replace(
    training.PART,
    shapes=PROTOCOL,
    own={TUNED: training.PART.own[TUNED]},
    peers=training.PART.peers
    | {
        "sdpa-efficient": training.peer(peers.sdpa_efficient),
        BETA: training.peer(fa4),
    },
    facts=facts,
)
