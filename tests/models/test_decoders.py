"""Attention of decoders: what the trial finds equals what transformers computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, PreTrainedTokenizerBase

from headroles import SavedAttention, classify_heads, make_corpus, read_attention, score_heads
from headroles.errors import ModelError, ModelSupportError, UsageError
from headroles.models.attention.reader import open_reader
from headroles.models.families import INTERFACE, RETURNED
from headroles.models.heads.gates import Ablation, HeadSites, gated
from headroles.models.heads.stack import find_stack
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.reach import EVERYTHING, TARGET, window_of_decoder
from tests.conftest import make_bert, make_tokenizer
from tests.models.decoders import DECODERS, SIZES, WHOLE, WINDOW, WINDOWS, make_decoder
from tests.rounding import SUMS, assert_same_outputs, assert_same_sums


def make_inputs() -> dict[str, Tensor]:
    """Two sequences, longer than any window, the second padded."""
    ids = torch.randint(5, 60, (2, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 13:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


@pytest.mark.numbers
@pytest.mark.parametrize("kind", DECODERS)
def test_weights_and_spans_are_those_of_transformers(kind: str) -> None:
    model, inputs, captured = make_decoder(kind), make_inputs(), list[Tensor]()
    with open_reader(find_stack(model)) as reader:
        reader.read(inputs, lambda layer, weights: captured.append(weights.clone()))
    assert reader.reaches == DECODERS[kind][1]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**inputs, output_attentions=True).attentions
    distances = torch.arange(20) - torch.arange(20)[:, None]
    for ours, theirs, reach in zip(captured, expected, reader.reaches, strict=True):
        for row, length in enumerate(inputs["attention_mask"].sum(1)):
            assert_same_sums(ours[row, :, :length], theirs[row, :, :length], of=SUMS)
        # where a weight is, a token sees it, and the reverse
        assert torch.equal(ours[0].amax(0) > 0, reach.sees(distances))


def test_decoders_of_encoder_decoders_may_have_windows() -> None:
    if "t5gemma" not in CONFIG_MAPPING:
        pytest.skip("transformers of this version has no encoder-decoder with windows")
    half = {**SIZES, **WINDOWS, "query_pre_attn_scalar": 8, "hidden_activation": "gelu"}
    model = make_decoder("t5gemma", encoder=half, decoder=half)
    inputs, captured = make_inputs(), list[Tensor]()
    inputs |= {f"decoder_{name}": values[:, :15] for name, values in inputs.items()}
    with open_reader(find_stack(model, "decoder")) as reader:
        reader.read(inputs, lambda layer, weights: captured.append(weights.clone()))
    assert reader.reaches == tuple(window_of_decoder(width, TARGET) for width in (WINDOW, None))
    distances = torch.arange(15) - torch.arange(15)[:, None]
    for weights, reach in zip(captured, reader.reaches, strict=True):
        assert torch.equal(weights[0].amax(0) > 0, reach.sees(distances))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "gpt_oss",
        {"num_local_experts": 2, "num_experts_per_tok": 2, **WINDOWS},
        r"gpt_oss gives no attention .* sink",
    ),
    ("llama4_text", {}, "llama4_text: tokens do not see one span of keys in .* chunked_attention"),
    (
        "qwen3_next",
        {
            "layer_types": ["linear_attention", "full_attention"],
            "num_experts": 4,
            "num_experts_per_tok": 2,
        },
        r"qwen3_next.* \(its layers are of the kinds linear_attention, full_attention\)",
    ),
]


@pytest.mark.parametrize(("kind", "sizes", "message"), REFUSED)
def test_what_has_no_row_for_each_token_is_refused_by_name(
    kind: str, sizes: dict[str, Any], message: str
) -> None:
    with (
        pytest.raises(ModelSupportError, match=message),
        open_reader(find_stack(make_decoder(kind, **sizes))),
    ):
        pass


def test_outputs_that_a_sink_scales_are_not_computed_anew() -> None:
    """Weights of granite_swa are those of others; its outputs, and so later layers, are not."""
    if "granite_swa" not in CONFIG_MAPPING:
        pytest.skip("transformers of this version has no model with such a sink")
    with open_reader(find_stack(make_decoder("granite_swa", **WINDOWS))) as reader:
        assert reader.read_through == RETURNED
    with open_reader(find_stack(make_decoder("llama"))) as reader:
        assert reader.read_through == INTERFACE


def test_uniform_outputs_are_those_of_the_tokens_in_view() -> None:
    """Attention without queries is uniform over them."""
    outputs = []
    for has_queries in (True, False):
        model = make_decoder("bert")
        sites = HeadSites(find_stack(model))
        query, gates = sites.layers[0].query, torch.ones(2, 4)
        gates[0, 1] = not has_queries
        assert query is not None
        with torch.no_grad():
            for values in () if has_queries else query.linear.parameters():
                values[query.rows[1]] = 0
            inputs = make_inputs()
            uniform = Ablation("uniform", inputs=inputs)
            with gated(sites, gates, uniform):
                outputs.append(model(**inputs)[0][0])
    assert_same_outputs(*outputs)


def test_segments_are_not_passed_to_models_that_look_them_up_among_their_words() -> None:
    tokenizer = make_tokenizer()
    assert "token_type_ids" in tokenizer.model_input_names
    options = ModelOptions(tokenizer=tokenizer)
    assert not load_encoder(make_decoder("gpt2"), options).takes_token_types
    assert load_encoder(make_bert(), options).takes_token_types


def test_words_by_attention_that_others_give_them_are_refused(
    sample: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    with pytest.raises(UsageError, match=r"each token sees itself and earlier ones: omit"):
        score_heads(make_decoder("gpt2"), sample, tokenizer=tokenizer, score="hit", columns=True)


def test_screens_say_what_each_token_sees(sample: Path, tmp_path: Path) -> None:
    make_decoder("llama").save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    found = classify_heads(tmp_path / "model", sample)
    assert "Each token sees itself and earlier ones." in str(found)
    found.save(tmp_path / "out")
    record = type(found.scores).load(tmp_path / "out").record
    assert record.model.reaches_of_layers == (WHOLE,) * 2
    (read,) = read_attention(found.scores, (1, 2), "local", n=1)
    assert not np.triu(read.sieve, 1).any()
    assert np.tril(read.sieve).any()


def uniform_over(visible: Callable[[int], np.ndarray]) -> Any:
    """Attention (layers, heads, n, n) that is equal over the keys that each query sees."""

    def make(n: int) -> np.ndarray:
        rows = visible(n).astype(float)
        return (rows / rows.sum(-1, keepdims=True))[None, None]

    return make


CAUSAL, ALL = uniform_over(lambda n: np.tri(n)), uniform_over(lambda n: np.ones((n, n)))
LENGTHS = (1, 4, 6)


def corpus_of_chains() -> Any:
    """Sentences in which each word depends on the one before."""
    return make_corpus(
        [
            ([f"w{k}" for k in range(n)], [k - 1 for k in range(n)], ["root", *["obj"] * (n - 1)])
            for n in LENGTHS
        ]
    )


def test_uniform_attention_to_earlier_tokens_has_a_bias_of_one() -> None:
    """The first array, of a single piece, does not show that tokens see earlier ones alone."""
    arrays = {f"tree-{k}": CAUSAL(n) for k, n in enumerate(LENGTHS, 1)}
    words = {f"tree-{k}": list(range(n)) for k, n in enumerate(LENGTHS, 1)}
    options = {"roles": "local,syntactic,position:-1", "relations": "obj", "pairing": "none"}
    scores = score_heads(SavedAttention(arrays, words), corpus_of_chains(), **options)
    assert scores.record.model.reaches_of_layers == (WHOLE,)
    for role in ("local", "position:-1", "obj"):
        found = scores.of_head((0, 0), role)
        np.testing.assert_allclose(found[~np.isnan(found)], 1, atol=SUMS)
        assert np.isfinite(found[1:]).all()
    mixed = {**arrays, "tree-3": ALL(6)}
    with pytest.raises(ModelError, match=r"'tree-3' attention to later pieces \(in layer 0\)"):
        score_heads(SavedAttention(mixed, words), corpus_of_chains(), **options)
    whole = {name: ALL(n) for name, n in zip(words, LENGTHS, strict=True)}
    scores = score_heads(SavedAttention(whole, words), corpus_of_chains(), **options)
    assert scores.record.model.reaches_of_layers == (EVERYTHING,)
