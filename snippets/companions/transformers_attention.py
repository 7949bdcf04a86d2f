"""Our attention in models of Hugging Face transformers, which ask for it by name."""

import torch
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.masking_utils import sdpa_mask

from snippets.companions.key_ranges import attention

# --8<-- [start:mask]
ROWS = 1024  # of the mask that exist at the same time


def ranges_of(batch_size, q_length, kv_length, q_offset=0, **wanted) -> Tensor:
    """The keys that each query sees, of a mask that transformers describes.

    Args: those of each mask function of transformers.

    Returns [batch_size, 1, q_length, 2], int32: the first key, and the one behind the
    last. Of four dimensions, because transformers hands such a mask on as it is. Of two
    keys it has a column more, so that no scores have its shape.
    Raises ValueError: between the keys of a query lies one that it does not see.
    """
    # --8<-- [line:skips]
    wanted |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    blocks = []
    for start in range(0, q_length, ROWS):
        rows = min(ROWS, q_length - start)
        # --8<-- [line:dense]
        mask = sdpa_mask(batch_size, rows, kv_length, q_offset + start, **wanted)
        seen = mask.bool().view(torch.uint8)  # [batch_size, 1, rows, kv_length]
        # --8<-- [line:ends]
        first, count = seen.argmax(dim=-1), seen.sum(dim=-1)
        last = kv_length - 1 - seen.flip(-1).argmax(dim=-1)
        # --8<-- [line:gaps]
        if ((count > 0) & (last - first + 1 != count)).any():
            raise ValueError("the mask has gaps; each query must see a run of keys")
        blocks.append(torch.stack((first, first + count), dim=-1))
    # --8<-- [line:column]
    return nn.functional.pad(torch.cat(blocks, dim=2).int(), (0, int(kv_length == 2)))


# --8<-- [end:mask]
# --8<-- [start:adapter]
# What a layer says besides: the mask has it, or attention has no use for it.
HARMLESS = {
    "is_causal", "sliding_window", "position_ids", "use_cache", "num_items_in_batch",
}  # fmt: skip


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor,
    attention_mask: Tensor | None, scaling: float | None = None, dropout: float = 0.0,
    softcap: float | None = None, **others,
) -> tuple[Tensor, None]:  # fmt: skip
    """What a layer of transformers calls for its attention.

    Args:
        module: the layer.
        query, key, value: [batch, heads, seq, head_dim], as of `attention`.
        attention_mask: of `ranges_of`; None only if each query sees each key.
        scaling, softcap: `scale` and `softcap` of `attention`.
        dropout: 0, because the kernel has none.
        others: nothing that changes the result.

    Returns the output, [batch, seq, heads, head_dim], and no weights.
    Raises ValueError: the layer asks for something else.
    """
    # --8<-- [line:unknown]
    unknown = {x for x, y in others.items() if y is not None and y is not False}
    if unknown := sorted(unknown - HARMLESS):
        raise ValueError(f"{', '.join(unknown)} given; it must be left out")
    if dropout:
        raise ValueError(f"dropout is {dropout}; it must be 0")
    if attention_mask is None:
        causal = others.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        if causal or others.get("sliding_window"):
            raise ValueError("attention_mask is None; it must be of ranges_of")
        rows = len(query), query.shape[2]
        ends = query.new_full(rows, key.shape[2], dtype=torch.int32)
        ranges = torch.stack((torch.zeros_like(ends), ends), dim=-1)
    else:
        # Without the column more; what differs from head to head keeps its heads.
        ranges = attention_mask[..., :-1] if key.shape[2] == 2 else attention_mask
        ranges = ranges.squeeze(1)
    # Under autocast RoPE has made these two float32, but not the value.
    query, key = query.to(value.dtype), key.to(value.dtype)
    o = attention(query, key, value, ranges, scale=scaling, softcap=softcap)
    # --8<-- [line:back]
    return o.transpose(1, 2).contiguous(), None


# --8<-- [end:adapter]
# --8<-- [start:register]
def register(name: str) -> None:
    """From now on `model.set_attn_implementation(name)` means this attention."""
    AttentionInterface.register(name, attend)
    AttentionMaskInterface.register(name, ranges_of)


# --8<-- [end:register]
# --8<-- [start:demo]
if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(device)
    tokens = torch.randint(64, (2, 40), device=device)
    padding = torch.ones_like(tokens)
    padding[0, :9] = 0  # the first text is shorter
    expected = model(tokens, attention_mask=padding).logits
    # --8<-- [start:call]
    register("key_ranges")
    model.set_attn_implementation("key_ranges")
    logits = model(tokens, attention_mask=padding).logits
    # --8<-- [end:call]
    error = (logits - expected)[padding.bool()].abs().max().item()
    print(f"{device}: largest difference of logits {error:.1e}")
# --8<-- [end:demo]
