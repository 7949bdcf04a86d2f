"""Tests of snippets/companions/transformers_attention.py.

Every model is small, of random weights: nothing is downloaded.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported

import pytest
import torch
import transformers
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils

from snippets.companions import key_ranges, transformers_attention
from tests.harness.accuracy import check_accuracy
from tests.harness.inputs import name, normal, qkv
from tests.harness.poison import Poison
from tests.snippets.companions.test_key_ranges import exactly

SEQ = 21
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    # Large enough that scores differ, and that a softcap shows.
    "initializer_range": 0.4,
    "pad_token_id": 0,
}
SLIDING = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6}
GEMMA = SLIDING | {"query_pre_attn_scalar": 40}
MODELS = {
    "Llama": {},
    "Qwen3": SLIDING | {"use_sliding_window": True},
    "Mistral": {"sliding_window": 6},
    "Gemma2": GEMMA | {"attn_logit_softcapping": 1.5},
    "Gemma3": GEMMA,
}
# What is given to a model beside its tokens.
PADDING = {"left": (0, 7), "right": (SEQ - 7, SEQ)}
DOCUMENTS = torch.cat([torch.arange(length) for length in (4, 9, 1, SEQ - 14)])
INPUTS = ("plain", "left", "right", "packed")


def make(kind: str, implementation: str | None = "eager", **more: Any) -> Any:
    """A causal model, always of the same weights."""
    name = "Gemma3Text" if kind == "Gemma3" else kind
    sizes = SIZES | MODELS[kind] | more
    config = getattr(transformers, f"{name}Config")(
        **sizes, attn_implementation=implementation
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def given(which: str, device: str) -> tuple[torch.Tensor, dict[str, Any], torch.Tensor]:
    """Tokens, what else says which are seen, and which rows of the result count."""
    batch = 1 if which == "packed" else 2
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(1, 64, (batch, SEQ), generator=generator).to(device)
    real = torch.ones_like(tokens)
    if which == "packed":
        positions = DOCUMENTS[None].to(device)
        return tokens, {"position_ids": positions, "use_cache": False}, real.bool()
    if which in PADDING:
        real[0, slice(*PADDING[which])] = 0
        return tokens, {"attention_mask": real}, real.bool()
    return tokens, {}, real.bool()


def outcome(
    model: Any, tokens: torch.Tensor, asked: dict[str, Any], real: torch.Tensor
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits where they count, and the gradients of all parameters."""
    model.zero_grad()
    with torch.enable_grad():
        logits = model(tokens, **asked).logits[real]
        weights = normal(logits.shape, torch.float64, logits.device.type)
        (logits * weights.to(logits.dtype)).sum().backward()
    return logits.detach(), [x.grad for x in model.parameters()]


@pytest.fixture
def named(poisoned: Poison) -> Iterator[str]:
    """The name under which the attention is registered, for one test."""
    # Names of transformers and of its models, not memory that a kernel leaves.
    with poisoned.lifted():
        transformers_attention.register("ranged")
        yield "ranged"
        for interface in (AttentionInterface, AttentionMaskInterface):
            del interface._global_mapping["ranged"]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles in a few rows; and of the mask, a few rows at a time."""
    whole = key_ranges.attention

    def tiled(*args: Any, **options: Any) -> torch.Tensor:
        return whole(*args, **options, block=16)

    monkeypatch.setattr(transformers_attention, "attention", tiled)
    monkeypatch.setattr(transformers_attention, "ROWS", 8)


# Masks.


def dense(ranges: torch.Tensor, keys: int) -> torch.Tensor:
    """The mask that ranges stand for."""
    cols = torch.arange(keys)
    return (cols >= ranges[..., :1]) & (cols < ranges[..., 1:])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "causal": masking_utils.causal_mask_function,
    "all": masking_utils.bidirectional_mask_function,
    "window": masking_utils.sliding_window_causal_mask_function(6),
    "window both ways": masking_utils.sliding_window_bidirectional_mask_function(3),
    "chunks": masking_utils.chunked_causal_mask_function(5, torch.tensor([0, 2])),
}


@pytest.mark.parametrize("padded", [None, *PADDING])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("cached", [(SEQ, 0, 0), (3, 9, 0), (2, 16, 8)], ids=str)
def test_ranges_are_the_mask(
    cached: tuple[int, int, int], function: str, padded: str | None
) -> None:
    # `before` keys came before, and of all a cache has dropped the first `cut`.
    rows, before, cut = cached
    keys = rows + before - cut
    asked: dict[str, Any] = {
        "batch_size": 2,
        "q_length": rows,
        "kv_length": keys,
        "q_offset": before,
        "kv_offset": cut,
        "mask_function": FUNCTIONS[function],
        "allow_is_causal_skip": False,
        "allow_is_bidirectional_skip": False,
    }
    if padded:
        mask = torch.ones(2, keys + cut, dtype=torch.bool)
        mask[0, slice(*PADDING[padded])] = False
        asked["attention_mask"] = mask
    expected = masking_utils.sdpa_mask(**asked)
    skips = dict.fromkeys((x for x in asked if x.startswith("allow")), True)
    if padded:  # as a tokenizer makes it
        asked["attention_mask"] = mask.long()
    ranges = transformers_attention.ranges_of(**asked | skips)
    assert (ranges.dtype, ranges.shape) == (torch.int32, (2, 1, rows, 2))
    assert torch.equal(dense(ranges, keys), expected)


def test_the_offset_may_be_a_tensor() -> None:
    ranges = transformers_attention.ranges_of(1, 1, 9, torch.tensor(4))
    assert ranges.tolist() == [[[[0, 5]]]]


# A layer.


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=name)
@pytest.mark.parametrize("softcap", [None, 1.5])
def test_what_a_layer_gets(
    softcap: float | None, dtype: torch.dtype, device: str
) -> None:
    q, k, v = (
        normal((2, 19, heads, 64), dtype, device, seed=heads).transpose(1, 2)
        for heads in (4, 2, 2)
    )
    ranges = transformers_attention.ranges_of(2, 19, 19, device=device)
    asked = {"softcap": softcap, "scaling": 0.2, "sliding_window": 99}
    layer = torch.nn.Module()
    o, weights = transformers_attention.attend(layer, q, k, v, ranges, **asked)
    assert o.shape == (2, 19, 4, 64)
    assert weights is None
    # Whatever the layout of q, for models that view a row's heads as one.
    for each in (q, q.contiguous()):
        found, _ = transformers_attention.attend(layer, each, k, v, ranges, **asked)
        assert found.is_contiguous()
        assert torch.equal(found, o)
    of = (ranges[:, 0], 0.2, softcap)
    exact = exactly(*(x.double() for x in (q, k, v)), *of).transpose(1, 2)
    check_accuracy(o, exact, exactly(q, k, v, *of).transpose(1, 2))


def test_queries_and_keys_that_autocast_has_left_in_float32(device: str) -> None:
    q, k, v = qkv((2, 4), (2, 2), 19, 19, 64, torch.float16, device)
    ranges = transformers_attention.ranges_of(2, 19, 19, device=device)
    layer = torch.nn.Module()
    expected, _ = transformers_attention.attend(layer, q, k, v, ranges)
    o, _ = transformers_attention.attend(layer, q.float(), k.float(), v, ranges)
    assert torch.equal(o, expected)


def test_autocast(named: str, device: str) -> None:
    tokens, asked, real = given("left", device)
    model, own = make("Llama", named).to(device), make("Llama").to(device)
    low = torch.float16  # the interpreter has no bfloat16
    expected = own(tokens, **asked).logits[real]
    with torch.autocast(device, low):
        logits = model(tokens, **asked).logits[real]
        baseline = own(tokens, **asked).logits[real]
    assert logits.dtype == baseline.dtype
    error, own_error = (
        (x - expected).abs().max() for x in (logits.float(), baseline.float())
    )
    assert error <= 2 * own_error


# What is refused.


def test_refuses_a_mask_with_gaps(named: str, device: str) -> None:
    tokens, _, real = given("plain", device)
    model, holes = make("Llama", named).to(device), real.long()
    holes[1, 9] = 0
    with pytest.raises(ValueError, match=r"^the mask has gaps"):
        model(tokens, attention_mask=holes)


def test_refuses_a_mask_of_every_pair(named: str, device: str) -> None:
    tokens, _, _ = given("plain", device)
    model = make("Llama", named).to(device)
    for mask in (torch.ones(2, 1, SEQ, SEQ, device=device).tril().bool(),):
        for each in (mask, mask.float(), mask.int()):
            with pytest.raises(ValueError, match=r"^ranges is .*; it must be"):
                model(tokens, attention_mask=each)


def test_refuses_ranges_of_each_head(device: str) -> None:
    q, k, v = qkv((1, 2), (1, 2), 5, 5, 16, torch.float32, device)
    ranges = transformers_attention.ranges_of(1, 5, 5, device=device)
    each, layer = ranges.expand(-1, 2, -1, -1), torch.nn.Module()
    with pytest.raises(ValueError, match=r"^ranges is .*; it must be"):
        transformers_attention.attend(layer, q, k, v, each)


def test_of_two_keys_ranges_are_no_mask_and_a_mask_is_no_range(
    named: str, device: str
) -> None:
    tokens = torch.tensor([[3, 4]], device=device)
    model = make("Llama", named).to(device)
    near([model(tokens).logits], [make("Llama").to(device)(tokens).logits])
    with pytest.raises(ValueError, match=r"^ranges is .*; it must be"):
        model(tokens, attention_mask=torch.ones(1, 1, 2, 2, device=device).int())
    # Bloom's layers do not ask for attention by name: they add the mask to scores.
    config = transformers.BloomConfig(
        vocab_size=64, hidden_size=32, n_layer=1, n_head=2, attn_implementation=named
    )
    with pytest.raises(RuntimeError, match="must match the size"):
        transformers.BloomForCausalLM(config).to(device)(tokens)


def test_refuses_dropout_where_it_is_used(named: str, device: str) -> None:
    tokens, _, _ = given("plain", device)
    model = make("Llama", named, attention_dropout=0.1).to(device)
    model(tokens)
    with pytest.raises(ValueError, match=r"^dropout is 0.1; it must be 0"):
        model.train()(tokens)


@pytest.mark.parametrize("causal", [True, False, None])
def test_refuses_no_mask_where_one_is_needed(causal: bool | None, device: str) -> None:
    q, k, v = qkv((1, 2), (1, 2), 5, 9, 16, torch.float32, device)
    layer = torch.nn.Module()
    layer.is_causal = True
    asked = {} if causal is None else {"is_causal": causal}
    if causal is False:
        o, _ = transformers_attention.attend(layer, q, k, v, None, **asked)
        ends = torch.tensor([0, 9], device=device).expand(1, 5, 2)
        exact = exactly(q, k, v, ends).transpose(1, 2)
        torch.testing.assert_close(o, exact, rtol=1e-5, atol=1e-5)
        asked["sliding_window"] = 3
    with pytest.raises(ValueError, match=r"^attention_mask is None; it must be"):
        transformers_attention.attend(layer, q, k, v, None, **asked)


def test_refuses_half_a_registration(named: str, device: str) -> None:
    AttentionInterface.register("half", transformers_attention.attend)
    tokens, asked, _ = given("left", device)
    with pytest.raises(ValueError, match=r"^attention_mask is None; it must be"):
        make("Llama", "half").to(device)(tokens, **asked)
    del AttentionInterface._global_mapping["half"]


@pytest.mark.parametrize("word", ["output_attentions", "cu_seq_lens_q", "s_aux"])
def test_refuses_what_it_does_not_know(word: str, named: str, device: str) -> None:
    tokens, _, _ = given("plain", device)
    model = make("Llama", named).to(device)
    value = True if word == "output_attentions" else torch.zeros(2, device=device)
    with pytest.raises(ValueError, match=rf"^{word} given; it must be left out"):
        model(tokens, **{word: value})
    for nothing in (None, False):
        model(tokens, **{word: nothing})


# Models.


def near(found: Any, expected: Any) -> None:
    """Float32 through two layers: each tensor up to 1e-4 of its largest value."""
    for x, y in zip(found, expected, strict=True):
        assert (x - y).abs().max() <= 1e-4 * y.abs().max()


@pytest.mark.parametrize("which", INPUTS)
@pytest.mark.parametrize("kind", MODELS)
def test_logits_and_gradients_are_those_of_transformers(
    kind: str, which: str, named: str, device: str
) -> None:
    inputs, model = given(which, device), make(kind, named).to(device)
    logits, gradients = outcome(model, *inputs)
    assert model.config._attn_implementation == named
    # Of the two, sdpa forgets a softcap: see below.
    for implementation in ("eager",) if kind == "Gemma2" else ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        expected, expected_gradients = outcome(model, *inputs)
        near([logits], [expected])
        near(gradients, expected_gradients)


def test_a_row_of_padding_has_a_result_of_its_own(named: str, device: str) -> None:
    tokens, asked, real = given("left", device)
    rows = {}
    for implementation in ("eager", named):
        model = make("Llama", implementation).to(device)
        rows[implementation] = model(tokens, **asked).logits[~real]
    assert (rows[named] - rows["eager"]).abs().max() > 0.1


def test_a_softcap_is_lost_in_sdpa_but_not_here(named: str, device: str) -> None:
    inputs, model = given("plain", device), make("Gemma2", None).to(device)
    assert model.config._attn_implementation == "sdpa"
    logits = {}
    for implementation in ("eager", "sdpa", named):
        model.set_attn_implementation(implementation)
        logits[implementation], _ = outcome(model, *inputs)
    far, near = (logits[x] - logits["eager"] for x in ("sdpa", named))
    assert far.abs().max() > 0.1
    assert near.abs().max() < 1e-4


def test_with_a_cache_or_a_mask_transformers_forgets_that_rows_are_packed(
    named: str, device: str
) -> None:
    tokens, asked, _ = given("packed", device)
    for implementation in ("eager", named):
        model = make("Llama", implementation).to(device)
        packed = model(tokens, **asked).logits
        for more in ({"use_cache": True}, {"attention_mask": torch.ones_like(tokens)}):
            other = model(tokens, **asked | more).logits
            assert (other - packed).abs().max() > 0.1


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("kind", ["Llama", "Gemma2"])
def test_generated_tokens_are_those_of_eager(
    kind: str, cache: str, named: str, device: str
) -> None:
    tokens, asked, _ = given("left", device)
    found = {}
    for implementation in ("eager", named):
        found[implementation] = (
            make(kind, implementation)
            .to(device)
            .generate(
                tokens,
                **asked,
                max_new_tokens=5,
                do_sample=False,
                cache_implementation=cache,
                disable_compile=True,
                output_logits=True,
                return_dict_in_generate=True,
            )
        )
    assert torch.equal(found[named].sequences, found["eager"].sequences)
    near(found[named].logits, found["eager"].logits)


def test_several_tokens_after_some_in_a_cache(named: str, device: str) -> None:
    tokens, _, _ = given("plain", device)
    model = make("Mistral", named).to(device)
    whole = model(tokens).logits
    start = model(tokens[:, :9])
    rest = model(tokens[:, 9:], past_key_values=start.past_key_values).logits
    near([rest], [whole[:, 9:]])


ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "initializer_range": 0.4,
}


def test_an_encoder_sees_all_that_is_not_padding(named: str, device: str) -> None:
    tokens, asked, real = given("right", device)
    config = transformers.BertConfig(**ENCODER, vocab_size=64)
    found = {}
    for implementation in ("eager", named):
        config._attn_implementation = implementation
        torch.manual_seed(0)
        model = transformers.BertModel(config).to(device).eval()
        found[implementation] = model(tokens, **asked).last_hidden_state[real]
    near([found[named]], [found["eager"]])


def test_a_model_without_a_mask(
    named: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A GPU's convolutions are rounded to TF32 unless they are told otherwise.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    config = transformers.ViTConfig(**ENCODER, image_size=32, patch_size=8)
    pixels = normal((2, 3, 32, 32), torch.float32, device)
    found = {}
    for implementation in ("eager", named):
        config._attn_implementation = implementation
        torch.manual_seed(0)
        model = transformers.ViTModel(config).to(device).eval()
        found[implementation] = model(pixels).last_hidden_state
    near([found[named]], [found["eager"]])


def test_a_decoder_that_looks_at_an_encoder(named: str, device: str) -> None:
    config = transformers.BartConfig(
        vocab_size=64,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
        init_std=0.4,
    )
    tokens, asked, _ = given("right", device)
    found = {}
    for implementation in ("eager", named):
        config._attn_implementation = implementation
        torch.manual_seed(0)
        model = transformers.BartModel(config).to(device).eval()
        inputs = asked | {"decoder_input_ids": tokens[:, :11]}
        found[implementation] = model(tokens, **inputs).last_hidden_state
    near([found[named]], [found["eager"]])


# Training.


def test_checkpointing_computes_the_same_again(named: str, device: str) -> None:
    inputs, model = given("left", device), make("Llama", named).to(device).train()
    logits, gradients = outcome(model, *inputs)
    model.gradient_checkpointing_enable()
    again, gradients_again = outcome(model, *inputs)
    assert torch.equal(again, logits)
    near(gradients_again, gradients)


def test_compiled(named: str, device: str) -> None:
    inputs = given("left", device)
    model = make("Llama", named, num_hidden_layers=1).to(device)
    expected = outcome(model, *inputs)
    torch._dynamo.reset()
    model.forward = torch.compile(model.forward, backend="aot_eager")
    logits, gradients = outcome(model, *inputs)
    near([logits], [expected[0]])
    near(gradients, expected[1])


# CUDA graphs.


def test_with_ranges_made_beforehand_nothing_is_read_back(named: str) -> None:
    # Fake tensors have no values, and raise where Python asks for one: a CUDA graph
    # cannot be captured there.
    with FakeTensorMode():
        model, tokens = make("Llama", named), torch.zeros(2, SEQ, dtype=torch.int64)
        ranges = torch.zeros(2, 1, SEQ, 2, dtype=torch.int32)
        loss = model(tokens, attention_mask=ranges, labels=tokens).loss
        found = torch.autograd.grad(loss, [*model.parameters()])
        assert [x.shape for x in found] == [x.shape for x in model.parameters()]
        with pytest.raises(DataDependentOutputException):  # the check for gaps
            model(tokens, attention_mask=torch.ones_like(tokens))


def batches(model: Any, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Tokens and ranges, of one shape: texts with padding on either side, and none."""
    for shift, which in enumerate(("left", "right", "plain", "left")):
        tokens, asked, _ = given(which, device)
        embedded = model.get_input_embeddings()(tokens)
        mask = masking_utils.create_causal_mask(
            model.config, embedded, asked.get("attention_mask"), None
        )
        yield tokens.roll(shift, dims=1), mask


def step(
    forward: Callable[..., Any], model: Any, tokens: torch.Tensor, ranges: torch.Tensor
) -> list[torch.Tensor]:
    """Logits, and the gradients of all parameters."""
    logits = forward(tokens, attention_mask=ranges, use_cache=False).logits
    loss = (logits * logits.detach().cos()).sum()
    return [logits.detach(), *torch.autograd.grad(loss, [*model.parameters()])]


@pytest.mark.gpu
def test_a_training_step_in_a_cuda_graph(named: str, device: str) -> None:
    model = make("Llama", named).to(device)
    first, *others = batches(model, device)
    tokens, ranges = (x.clone() for x in first)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(model, model, tokens, ranges)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step(model, model, tokens, ranges)
    for fresh in others:
        tokens.copy_(fresh[0])
        ranges.copy_(fresh[1])
        graph.replay()
        torch.cuda.synchronize()
        near(found, step(model, model, *fresh))


@pytest.mark.gpu
def test_compiled_into_cuda_graphs(
    named: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, replays = torch.cuda.CUDAGraph.replay, []

    def counted(graph: torch.cuda.CUDAGraph) -> None:
        replays.append(graph)
        replay(graph)

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", counted)
    model = make("Llama", named, num_hidden_layers=1).to(device)
    torch._dynamo.reset()
    compiled = torch.compile(model.forward, mode="reduce-overhead")
    for fresh in batches(model, device):
        expected = step(model, model, *fresh)
        torch.compiler.cudagraph_mark_step_begin()
        near(step(compiled, model, *fresh), expected)
    assert len(replays) >= 4  # of forward and backward, when both are recorded


def test_a_prepared_mask_is_handed_on(named: str, device: str) -> None:
    tokens, asked, _ = given("left", device)
    model = make("Llama", named).to(device)
    expected = model(tokens, **asked).logits
    prepared = masking_utils.create_causal_mask(
        model.config, model.model.embed_tokens(tokens), asked["attention_mask"], None
    )
    assert (prepared.dtype, prepared.shape) == (torch.int32, (2, 1, SEQ, 2))
    assert torch.equal(model(tokens, attention_mask=prepared).logits, expected)


def test_other_names_are_as_they_were(named: str, device: str) -> None:
    both = AttentionInterface._global_mapping, AttentionMaskInterface._global_mapping
    before = [{x: y for x, y in mapping.items() if x != named} for mapping in both]
    tokens, asked, _ = given("left", device)
    model = make("Llama", "sdpa").to(device)
    expected = model(tokens, **asked).logits
    transformers_attention.register(named)
    model.set_attn_implementation(named)
    model(tokens, **asked)
    model.set_attn_implementation("sdpa")
    assert torch.equal(model(tokens, **asked).logits, expected)
    assert before == [{x: y for x, y in m.items() if x != named} for m in both]
