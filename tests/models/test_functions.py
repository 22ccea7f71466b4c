"""Attention of the user's own: functions, saved arrays, and encoders with code of their own."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.numpy import save_file
from transformers import BigBirdConfig, BigBirdModel

import headroles
from headroles import HeadScores, SavedAttention, Sentence, score_attention, score_heads
from headroles.errors import (
    HeadRolesError,
    ModelError,
    ModelSupportError,
    TokenizerError,
    UsageError,
)
from headroles.models.attention.functions import FunctionAttention
from headroles.models.attention.reader import open_reader
from headroles.models.heads.stack import find_stack
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from tests.conftest import change_json, make_tokenizer
from tests.models import families, own_code
from tests.models.families import make_model
from tests.models.test_attention import LENGTHS, capture, hooks, make_inputs
from tests.rounding import WEIGHTS, assert_same_sums
from tests.tasks.conftest import save

LAYERS, HEADS = 2, 3
WORDS = {
    "first": ("the", "dog", "was", "in", "."),
    "second": ("it", "was"),
    "third": ("this", "cat", "was", "with", "that", "dog", "."),
}
TOKENIZER = make_tokenizer()


SENTENCES = [
    Sentence(name, "d", k, words, (-1, *[0] * (n - 1)), ("root", *["dep"] * (n - 1)))
    for k, (name, words) in enumerate(WORDS.items())
    for n in [len(words)]
]
"""All words depend on the first one."""


def attend(pieces: dict[str, Any]) -> Any:
    """Attention by the numbers of pieces."""
    ids, mask = pieces["input_ids"], pieces["attention_mask"]
    factors = np.arange(1, 1 + LAYERS * HEADS).reshape(LAYERS, HEADS, 1, 1)
    scores = np.cos(ids[:, None, None, :, None] * factors + ids[:, None, None, None, :])
    weights = np.exp(scores) * mask[:, None, None, None, :]
    return weights / weights.sum(-1, keepdims=True)


def layer_by_layer(pieces: dict[str, Any]) -> Iterator[torch.Tensor]:
    """The same as tensors."""
    for layer in range(LAYERS):
        yield torch.from_numpy(attend(pieces)[:, layer])


def score(function: Any, **options: Any) -> HeadScores:
    given = {"tokenizer": TOKENIZER, "pairing": "none", "roles": ["self", "delimiter"]}
    return score_heads(function, SENTENCES, **{**given, **options})


def pieces_of(name: str) -> dict[str, Any]:
    batch = TOKENIZER(list(WORDS[name]), is_split_into_words=True)
    return {key: np.array([ids]) for key, ids in batch.items()}


def saved() -> dict[str, Any]:
    return {name: attend(pieces_of(name))[0] for name in WORDS}


def alignment() -> dict[str, Any]:
    return {
        name: TOKENIZER(list(words), is_split_into_words=True).word_ids()
        for name, words in WORDS.items()
    }


def test_scores_of_a_function_are_those_of_its_attention() -> None:
    scores = score(attend)
    assert (scores.n_layers, scores.n_heads) == (LAYERS, HEADS)
    for row, name in enumerate(WORDS):
        weights = attend(pieces_of(name))[0]
        mean = weights.diagonal(axis1=-2, axis2=-1).mean(-1) * weights.shape[-1]
        assert_same_sums(scores.values[row, :, :, scores.role_ids.index("self")], mean)


@pytest.mark.parametrize(
    "function",
    [
        layer_by_layer,
        lambda pieces: list(layer_by_layer(pieces)),
        lambda pieces: torch.from_numpy(attend(pieces)),
        lambda pieces: attend(pieces).tolist() and tuple(layer_by_layer(pieces)),
    ],
)
@pytest.mark.parametrize("batch_tokens", [8, 1000])
def test_arrays_tensors_and_iterators_are_the_same(function: Any, batch_tokens: int) -> None:
    found, expected = score(function, batch_tokens=batch_tokens), score(attend)
    assert_same_sums(found.values, expected.values)


@pytest.mark.parametrize("kind", ["mapping", "lists", "tokenizer", ".npz", ".safetensors"])
def test_saved_attention_has_the_scores_of_the_function(kind: str, tmp_path: Path) -> None:
    arrays: Any = saved()
    known: Any = TOKENIZER if kind == "tokenizer" else alignment()
    if kind == "lists":
        arrays, known = list(arrays.values()), list(known.values())
    elif kind == ".npz":
        np.savez(tmp_path / "a.npz", **arrays)
        arrays = tmp_path / "a.npz"
    elif kind == ".safetensors":
        save_file(arrays, tmp_path / "a.safetensors")
        arrays = str(tmp_path / "a.safetensors")
    found = score_attention(arrays, SENTENCES, known, roles=["self", "delimiter"])
    assert_same_sums(found.values, score(attend).values)
    assert found.record.model.class_ == "saved attention"
    if kind.startswith("."):  # the file in the place of a model, as commands have it
        same = score(str(arrays))
        assert np.array_equal(same.values, score(SavedAttention(arrays, TOKENIZER)).values)


def at(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], Any]:
    """`attend`, but for one sentence, wherever it is in a batch."""
    own = pieces_of(name)["input_ids"][0]

    def changed(pieces: dict[str, Any]) -> Any:
        weights = attend(pieces)
        for row, ids in enumerate(pieces["input_ids"]):
            if ids[: len(own)].tolist() == own.tolist():
                weights[row] = change(weights[row])
        return weights

    return changed


def fail(weights: Any) -> Any:
    raise RuntimeError("no such tensor")


def fewer_later() -> Callable[[Any], Any]:
    """All layers in the trial, one layer later."""
    calls = itertools.count(1)
    return lambda pieces: list(layer_by_layer(pieces))[: LAYERS if next(calls) < 5 else 1]


def unmasked(pieces: dict[str, Any]) -> Any:
    return attend({**pieces, "attention_mask": np.ones_like(pieces["attention_mask"])})


def of_width(pieces: dict[str, Any]) -> Any:
    weights = attend(pieces) ** pieces["input_ids"].shape[1]
    return weights / weights.sum(-1, keepdims=True)


FAILING: list[tuple[Any, str]] = [
    (at("second", fail), r"raised an error for 'second' \(RuntimeError: no such tensor\)"),
    (at("second", lambda weights: weights * np.nan), "'second': in layer 0, head 0.* hold NaN"),
    (at("second", lambda weights: weights / 2), r"'second': in layer 0, head 0.* sum to 0\.5"),
    (
        at("second", lambda weights: weights * 2 - 0.25),
        "'second': in layer 0, head 0.*(sum to|at least)",
    ),
    (lambda pieces: attend(pieces)[:, 0], r"\(batch, layers, heads, query, key\) is needed"),
    (lambda pieces: [attend(pieces)], r"in layer 0 \(batch, heads, query, key\)"),
    (lambda pieces: [attend(pieces)[:, 0, ..., 1:]], r"\(batch, heads, query, key\)"),
    (lambda pieces: 3, "a value of type int"),
    (lambda pieces: ["a"], "raised an error"),
    (lambda pieces: [], "one layer or more"),
    (lambda pieces: [attend(pieces)[:, 0], attend(pieces)[:, 0, :2]], "as many heads"),
    (lambda: 3, "raised an error for .The old dog sleeps"),
    (fewer_later(), r"gives 1 layers for '.*and gave 2 before"),
    (unmasked, r"It rains \.'.*sum to"),
]


@pytest.mark.parametrize(
    ("error", "function", "message"),
    [
        *((ModelError, *row) for row in FAILING),
        (ModelSupportError, of_width, "if another sentence is beside it"),
    ],
)
def test_functions_without_valid_attention_are_refused(
    error: type[ModelError], function: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        score(function, batch_tokens=8)


@pytest.mark.parametrize(
    ("of_a_row", "message"),
    [
        (lambda name: 1 / 3, "raised an error for 'a' and the 1 others of its batch"),
        (lambda name: np.full((1, 1, 1, 3, 3), 1 / 2), "for 'a' and the 1 others of its batch"),
        (lambda name: 1 / 3 if name == "a" else fail(name), "raised an error for 'b'"),
        (fail, "raised an error for 'a'"),
    ],
)
def test_checks_of_a_sentence_alone_hide_no_error(of_a_row: Any, message: str) -> None:
    def fail_together(_: object, names: Any) -> Any:
        return fail(names) if len(names) > 1 else np.asarray(of_a_row(names[0]))

    made = FunctionAttention(fail_together, "the function f", torch.device("cpu"))
    inputs = {"attention_mask": torch.ones(2, 3, dtype=torch.long)}
    with pytest.raises(ModelError, match=rf"{message} \(RuntimeError: no such tensor\)"):
        list(made.layers(inputs, ["a", "b"]))


def test_more_than_attention_is_refused_by_name() -> None:
    options = ModelOptions(tokenizer=TOKENIZER)
    encoder = load_encoder(attend, options)
    for ask in (
        lambda: encoder.model,
        lambda: load_encoder(attend, options, "classification"),
        lambda: load_encoder(attend, options, None),
        lambda: open_reader(encoder.attention, "norms").__enter__(),
        lambda: score(attend, measure="norms"),
    ):
        with pytest.raises(UsageError, match="attention weights alone"):
            ask()
    with pytest.raises(TokenizerError, match="pass tokenizer="):
        score(attend, tokenizer=None)
    with pytest.raises(TokenizerError, match=r"'first\+second' is a pair; pass pairing"):
        score_heads(SavedAttention(saved(), alignment()), SENTENCES)


@pytest.mark.parametrize(
    ("arrays", "aligned", "message"),
    [
        ({"first": saved()["first"]}, alignment(), r"has no array for 'second' \(it has first\)"),
        (saved(), {"first": alignment()["first"]}, "the alignment has no sentence 'second'"),
        ({**saved(), "second": saved()["third"]}, alignment(), r"for 'second'; .*2, 3, 4, 4"),
        ({**saved(), "second": saved()["second"][:1]}, alignment(), r"\(1, 3, 4, 4\) for 'second'"),
        ({**saved(), "second": saved()["second"] / 3}, alignment(), "'second'.* sum to 0.3333"),
        (
            {**saved(), "first": 0.5},
            alignment(),
            r"for 'first' in .* cannot be read \(its shape is",
        ),
        ({**saved(), "second": "text"}, alignment(), "for 'second' in saved attention cannot be"),
        (saved(), {**alignment(), "second": [None, 0, 7, None]}, "'second' names the word 7"),
        (saved(), {**alignment(), "second": [None, 1, 0, None]}, "'second' has words out of order"),
        (saved(), {**alignment(), "second": [0, None, None, 1]}, "a special token between words"),
        (
            list(saved().values())[:2],
            alignment(),
            "3 sentences, and 2 entries in the arrays",
        ),
        (3, alignment(), "the arrays are a int"),
        ({}, alignment(), "holds no arrays"),
        ("no.npz", alignment(), "no.npz cannot be read"),
    ],
)
def test_saved_attention_that_does_not_fit(arrays: Any, aligned: Any, message: str) -> None:
    with pytest.raises(HeadRolesError, match=message):
        score_attention(arrays, SENTENCES, aligned, roles=["self"])


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(saved()))
    objects: Any = {name: np.array([{}], dtype=object) for name in WORDS}
    np.savez(tmp_path / "b.npz", **objects)
    with (tmp_path / "c.npz").open("wb") as one:
        np.save(one, np.ones(3))
    for name, message in (
        ("a.pkl", "opens no pickles"),
        ("b.npz", r"'first' in .* cannot be read"),
        ("c.npz", r"c\.npz is one array without a name; save the arrays"),
    ):
        with pytest.raises(ModelError, match=message):
            score_attention(tmp_path / name, SENTENCES, alignment())


@pytest.mark.parametrize("kind", ["function", "saved", "file"])
def test_tasks_need_a_model(kind: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "saved.npz", a=np.ones((1, 1, 2, 2)) / 2)
    saved = SavedAttention({"a": np.ones((1, 1, 2, 2)) / 2}, {"a": [0, 1]})
    given: Any = {"function": attend, "saved": saved, "file": tmp_path / "saved.npz"}[kind]
    task = tmp_path / "task.tsv"
    task.write_text("text\tlabel\na b\t0\n")
    for ask in (
        lambda: headroles.find_importance(given, task),
        lambda: headroles.ablate_heads(given, task),
        lambda: headroles.gate_heads(given, task, tmp_path / "out", keep=1),
        lambda: headroles.prune_heads(given, tmp_path / "out", order="random", keep=1),
        lambda: headroles.find_pruning_curves(given, task, task),
        lambda: headroles.collaborate_heads(given, None, rank=1),
        lambda: headroles.find_redundancy(given),
    ):
        with pytest.raises(UsageError, match="gives attention weights alone; norms, tasks"):
            ask()


@pytest.mark.parametrize("from_folder", [False, True])
def test_own_code_is_read_as_it_says(from_folder: bool, tmp_path: Path) -> None:
    """Code that comes with a folder is run when it is asked for."""
    model, layers = own_code.own(), []
    if from_folder:
        shutil.copy(own_code.__file__, tmp_path / "theirs.py")
        save(model, tmp_path)
        mapped = {"AutoConfig": "theirs.OwnConfig", "AutoModel": "theirs.OwnModel"}
        change_json(tmp_path / "config.json", auto_map=mapped)
        with pytest.raises(ModelError, match="give trust_remote_code=True") as refused:
            load_encoder(tmp_path)
        assert "\n" not in str(refused.value)
        model = load_encoder(tmp_path, ModelOptions(trust_remote_code=True)).model
        assert type(model).__module__.startswith("transformers_modules.")
    before = hooks(model)
    with open_reader(find_stack(model)) as reader:
        for _ in range(2):
            layers.clear()
            reader.read(make_inputs(), lambda layer, weights: layers.append((layer, weights)))
        assert reader.read_through == "returned attentions"
        assert (reader.n_layers, reader.n_heads) == (own_code.LAYERS, own_code.HEADS)
    assert hooks(model) == before
    expected = own_code.own()(**make_inputs(), output_attentions=True).attentions
    assert [layer for layer, _ in layers] == list(range(own_code.LAYERS))
    for (_, ours), others in zip(layers, expected, strict=True):
        assert torch.equal(ours, others)


@pytest.mark.parametrize(
    ("kind", "path", "names"),
    [
        ("xlm", "attentions.{}.{}_lin", "q k"),
        ("flaubert", "attentions.{}.{}_lin", "q k"),
        ("fsmt", "encoder.layers.{}.self_attn.{}_proj", "q k"),
        ("prophetnet", "layers.{}.self_attn.{}_proj", "query key"),
    ],
)
def test_weights_are_the_softmax_of_products_of_queries_and_keys(
    kind: str, path: str, names: str
) -> None:
    """Computed anew from the hidden states and the projections of each layer."""
    model, inputs, states = find_stack(make_model(kind)).base, make_inputs(), []
    projections = [
        [model.get_submodule(path.format(layer, name)) for name in names.split()]
        for layer in range(families.LAYERS)
    ]
    for queries, _ in projections:
        queries.register_forward_pre_hook(lambda _, given: states.append(given[0]))
    with torch.no_grad():
        model(**inputs)
    for layer, weights in enumerate(capture(model, inputs)):
        hidden = states[layer].transpose(0, 1) if kind == "fsmt" else states[layer]
        products = [
            (hidden @ linear.weight.T + linear.bias).view(2, -1, families.HEADS, 8).transpose(1, 2)
            for linear in projections[layer]
        ]
        scores = products[0] @ products[1].mT / 8**0.5
        padding = inputs["attention_mask"][:, None, None] == 0
        expected = scores.masked_fill(padding, -torch.inf).softmax(-1)
        for row, length in enumerate(LENGTHS):
            assert_same_sums(weights[row, :, :length], expected[row, :, :length], of=WEIGHTS)


def test_big_bird_with_full_attention_is_read() -> None:
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
    config = BigBirdConfig(vocab_size=60, attention_type="original_full", **sizes)
    with open_reader(find_stack(BigBirdModel(config).eval())) as reader:
        assert reader.n_heads == 2


WIDTH = 16
"""Pieces of the padded arrays below, more than any sentence has."""


def padded(weights: Any, filler: float, at_start: bool = False) -> Any:
    """Weights within a longer text: no piece attends to its padding, whose rows hold ``filler``."""
    n = weights.shape[-1]
    place = slice(WIDTH - n, None) if at_start else slice(n)
    longer = np.full((*weights.shape[:2], WIDTH, WIDTH), filler)
    longer[..., place, :] = 0
    longer[..., place, place] = weights
    return longer


@pytest.mark.parametrize("filler", [0.0, 1 / WIDTH, np.nan])
@pytest.mark.parametrize("at_start", [False, True])
@pytest.mark.parametrize("aligned", ["word_ids of the batch", "word_ids", "tokenizer"])
def test_padding_is_cut_off(filler: float, at_start: bool, aligned: str) -> None:
    arrays = {name: padded(weights, filler, at_start) for name, weights in saved().items()}
    words: Any = TOKENIZER if aligned == "tokenizer" else alignment()
    if aligned == "word_ids of the batch":
        for name, ids in words.items():
            beside = [None] * (WIDTH - len(ids))
            words[name] = [*beside, *ids] if at_start else [*ids, *beside]
    found = score_attention(arrays, SENTENCES, words, roles=["self", "delimiter"])
    assert np.array_equal(found.values, score(SavedAttention(saved(), TOKENIZER)).values)


def test_special_tokens_that_attend_to_themselves_alone_are_no_padding() -> None:
    arrays = {}
    for name, weights in saved().items():
        n = weights.shape[-1]  # each piece attends to the next one, the last two to themselves
        arrays[name] = np.eye(n)[[*range(1, n - 1), n - 2, n - 1]][None, None]
    found = score_attention(arrays, SENTENCES, alignment(), roles=["self"])
    assert found.values.ravel().tolist() == [2.0] * len(arrays)  # 2 of n rows, n times uniform


def outputs(attentions: Any) -> Any:
    return hf.modeling_outputs.BaseModelOutput(attentions=attentions)


FORMS: dict[str, Callable[[Any], Any]] = {
    "with a gradient": lambda weights: weights.requires_grad_(),
    "sparse": lambda weights: weights.to_sparse(),
    "other bytes": lambda weights: weights.numpy().astype(">f8"),
    "long numbers": lambda weights: weights.numpy().astype(np.longdouble),
    "layers": lambda weights: tuple(layer[None] for layer in weights),
    "outputs": lambda weights: outputs(tuple(layer[None] for layer in weights)),
    "a batch of one": lambda weights: weights[None],
    "stacked layers of one": lambda weights: weights[:, None],
    "lists": lambda weights: weights.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_attention_is_read_in_every_plain_form(form: str) -> None:
    arrays = [FORMS[form](torch.from_numpy(weights)) for weights in saved().values()]
    found = score_attention(arrays, SENTENCES, alignment(), roles=["self", "delimiter"])
    assert np.array_equal(found.values, score(SavedAttention(saved(), TOKENIZER)).values)


def test_half_precision_is_read_in_its_own_tolerance() -> None:
    arrays = {name: torch.from_numpy(weights).bfloat16() for name, weights in saved().items()}
    found = score_attention(arrays, SENTENCES, alignment(), roles=["self", "delimiter"])
    np.testing.assert_allclose(found.values, score(attend).values, rtol=2e-2)
    arrays["second"] = torch.from_numpy(saved()["second"])
    with pytest.raises(ModelError, match=r"float32 for 'second' and torch\.bfloat16 before"):
        score_attention(arrays, SENTENCES, alignment(), roles=["self"])


@pytest.mark.parametrize("whole", [False, True])
def test_outputs_of_a_batch_are_read_with_its_encoding(whole: bool) -> None:
    texts = [list(words) for words in WORDS.values()]
    encoding = TOKENIZER(texts, is_split_into_words=True, padding=True)
    pieces = {name: np.array(rows) for name, rows in encoding.items()}
    layers = tuple(layer_by_layer(pieces))
    given = outputs(layers) if whole else layers
    found = score_attention(given, SENTENCES, encoding, roles=["self", "delimiter"])
    assert_same_sums(found.values, score(attend).values)
    of_two, two = tuple(layer[:2] for layer in layers), list(alignment().values())[:2]
    with pytest.raises(UsageError, match="2 tensors of 2 entries each, which may be layers or"):
        score_attention(of_two, SENTENCES[:2], two)
    own = score(lambda given: outputs(tuple(layer_by_layer(given))))
    assert_same_sums(own.values, found.values)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["[CLS]", "it", "was", "[SEP]"], r"'second' holds '\[CLS\]'; give the number of its word"),
        ([None, "0", "1", None], "'second' holds '0'; give the number"),
        ([None, 0, float("nan"), None], "'second' holds nan"),
        ([None, 0, float("inf"), None], "'second' holds inf"),
        ([-1, 0, 1, -1], "'second' names the word -1; use 0 to 1"),
        ("[CLS] it was [SEP]", "'second' is '.CLS. it was .SEP.'; give the number"),
        (3, "'second' is 3; give the number"),
    ],
)
def test_alignments_without_numbers_are_refused(words: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        score_attention(saved(), SENTENCES, {**alignment(), "second": words}, roles=["self"])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "values of type object"),
        ([[1, 2], [3]], "inhomogeneous"),
        (np.ones((2, 3, 4, 4), complex) / 4, "values of type complex128"),
        (torch.ones((2, 3, 4, 4), dtype=torch.complex64) / 4, "complex numbers"),
        (torch.ones((2, 3, 4, 4), device="meta"), "meta"),
        (np.ones((2, 3, 4, 0)), r"its shape is \(2, 3, 4, 0\), and not \(layers, heads, query"),
        (np.ones((0, 3, 4, 4)), r"its shape is \(0, 3, 4, 4\), and not \(layers, heads, query"),
        (0.5, r"its shape is \(\), and not \(layers, heads, query, key\)"),
        (outputs(None), "it has no attentions: call the model with output_attentions=True"),
    ],
)
def test_arrays_without_real_numbers_are_refused(array: Any, message: str) -> None:
    with pytest.raises(ModelError, match=f"the array for 'second' .* cannot be read .*{message}"):
        score_attention({**saved(), "second": array}, SENTENCES, alignment(), roles=["self"])
