"""Bugs that the tests of snippets/companions/transformers_attention.py must catch."""

from tests.mutants import Mutant

MUTANTS = [
    # The mask.
    Mutant(
        "    wanted |= {",
        "    wanted | {",
        "a plain mask is skipped, as sdpa likes it",
    ),
    Mutant("mask.bool().view", "mask.view", "integers are read byte by byte"),
    Mutant(
        "q_offset + start, **wanted",
        "q_offset, **wanted",
        "each block of rows is the first one",
    ),
    Mutant(
        "q_offset + start, **wanted",
        "start, **wanted",
        "what is in the cache is forgotten: top left instead of bottom right",
    ),
    Mutant(
        "    blocks = []\n",
        '    wanted.pop("attention_mask", None)\n    blocks = []\n',
        "padding is ignored",
    ),
    Mutant(
        "    blocks = []\n",
        '    wanted.pop("mask_function", None)\n    blocks = []\n',
        "every mask is causal",
    ),
    Mutant(
        "(first, first + count)",
        "(torch.zeros_like(first), first + count)",
        "a window, left padding and packing are ignored",
    ),
    Mutant("(first, first + count)", "(first + 1, first + count)", "off by one"),
    Mutant("(first, first + count)", "(first, first + count + 1)", "one key more"),
    Mutant(
        "        if ((count > 0) & (last - first + 1 != count)).any():",
        "        if False:",
        "gaps are filled",
    ),
    Mutant("(count > 0) & ", "", "rows that see nothing are refused"),
    # What a layer asks for.
    Mutant(
        "scale=scaling, softcap", "softcap", "the scale of the kernel, not of the model"
    ),
    Mutant(", softcap=softcap)", ")", "the softcap is lost"),
    Mutant(
        "        ranges = ranges.squeeze(1)\n",
        "        ranges = ranges[:1].squeeze(1).expand(len(query), -1, -1)\n",
        "all texts have the padding of the first",
    ),
    Mutant("ranges = ranges.squeeze(1)", "ranges = ranges[:, 0]", "one head for all"),
    Mutant(
        "int(kv_length == 2)", "0", "ranges that a model can add to scores of two keys"
    ),
    Mutant(
        "attention_mask[..., :-1] if key.shape[2] == 2 else attention_mask",
        "attention_mask[..., :2]",
        "of two keys, a mask of each pair is taken for ranges",
    ),
    Mutant("o.transpose(1, 2).contiguous(), None", "o, None", "heads before rows"),
    Mutant("2).contiguous(), None", "2).contiguous(), o", "weights"),
    Mutant("2).contiguous(), None", "2), None", "rows that cannot be viewed as one"),
    Mutant(
        "    query, key = query.to(value.dtype), key.to(value.dtype)\n",
        "    from transformers.integrations.sdpa_attention import repeat_kv\n"
        "    key, value = (repeat_kv(x, 2).flip(1) for x in (key, value))\n",
        "heads of keys are repeated, in another order",
    ),
    Mutant(
        "    query, key = query.to(value.dtype), key.to(value.dtype)\n",
        "",
        "autocast is forgotten",
    ),
    # What is refused.
    Mutant(
        "unknown - HARMLESS", "unknown - unknown", "what it does not know is ignored"
    ),
    Mutant(" and y is not False", "", "what is False counts as asked for"),
    Mutant("    if dropout:\n", "    if False:\n", "dropout is ignored"),
    Mutant(
        "        if causal or others",
        "        if others",
        "without a mask, a causal layer sees the future",
    ),
    Mutant(
        'if causal or others.get("sliding_window")',
        "if causal",
        "without a mask, a window is ignored",
    ),
    Mutant(
        'getattr(module, "is_causal", True) if causal is None else causal',
        'getattr(module, "is_causal", True)',
        "a call that says it is not causal is not believed",
    ),
    Mutant(
        "(torch.zeros_like(ends), ends)",
        "(ends - query.shape[2], ends)",
        "without a mask, as many keys as queries",
    ),
    # Registration.
    Mutant(
        "    AttentionMaskInterface.register(name, ranges_of)\n",
        "",
        "no mask function: transformers makes no mask",
    ),
    Mutant(
        "    AttentionInterface.register(name, attend)",
        '    AttentionInterface.register("sdpa", attend)',
        "another name is taken",
    ),
    Mutant("dim=2).int()", "dim=2)[:, 0].int()", "a mask of three dimensions"),
]
