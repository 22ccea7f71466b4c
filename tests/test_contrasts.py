"""Contrasts from treebank to score, borrowed controls included, against their definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headroles.corpus import make_examples, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.models import AttentionReader, load_encoder, open_reader
from headroles.scoring import ScoringOptions, ScoringRun
from headroles.sieves import BEYOND_OFFSET
from headroles.tokens import EncodedExample
from tests.conftest import conllu_sentence, make_bert
from tests.sieves.examples import controls_at

HEADS = 2
REACHES = (None, 3, None)
Attention = NDArray[np.float64]


def planted(input_ids: NDArray[np.int64], layer: int) -> Attention:
    """(heads, n, n): random rows for an input and a layer, over the keys within reach."""
    n, reach = len(input_ids), REACHES[layer]
    seed = [layer, *input_ids.tolist()]
    raw: Attention = np.exp(2 * np.random.default_rng(seed).normal(size=(HEADS, n, n)))
    if reach is not None:
        raw *= np.abs(np.subtract.outer(range(n), range(n))) <= reach
    return raw / raw.sum(axis=-1, keepdims=True)


def read_planted(
    reader: AttentionReader, inputs: Mapping[str, Tensor], on_layer: Callable[[int, Tensor], None]
) -> None:
    """In the place of a model; rows of padding hold what rows of padding may hold."""
    batch, width = inputs["input_ids"].shape
    for layer in range(len(REACHES)):
        attention = torch.rand(batch, HEADS, width, width)
        for row, n in enumerate(inputs["attention_mask"].sum(dim=1).tolist()):
            own = planted(inputs["input_ids"][row, :n].numpy(), layer)
            attention[row, :, :n] = 0
            attention[row, :, :n, :n] = torch.from_numpy(own)
        on_layer(layer, attention)


def write_treebank(path: Path) -> None:
    """Short sentences with random trees, so that many lack controls."""
    rng = np.random.default_rng(1)
    forms = ["the", "it", "was", "an", "cat"]
    sentences = []
    for k in range(80):
        n = int(rng.integers(2, 8))
        order = rng.permutation(n) + 1
        words = [("", 0, "root")] * n
        for place, word in enumerate(order):
            governor = int(order[rng.integers(0, place)]) if place else 0
            relation = str(rng.choice(["nsubj", "obj", "punct"])) if place else "root"
            words[word - 1] = (str(rng.choice(forms)), governor, relation)
        sentences.append(conllu_sentence(words, f"s{k}", f"d{k // 8}"))
    path.write_text("".join(sentences), "utf-8")


def has_arc_at(example: EncodedExample, segment: int, distance: int) -> bool:
    return any(
        abs(i - j) == distance
        for d, d_size, g, g_size, _ in example.arcs.tolist()
        if example.segments[d] == segment
        for i in range(d, d + d_size)
        for j in range(g, g + g_size)
    )


def expected_mean(
    examples: list[EncodedExample], attention: list[Attention], k: int, segment: int, offset: int
) -> tuple[NDArray[np.float64], str]:
    """(heads,): mean at the offset in the sentence, else in those of the same length; and where."""
    places = [(k, segment)]
    where = "in the same sentence"
    if not controls_at(examples[k], segment, offset):
        where = "in sentences read together"
        places = [
            (other, its_segment)
            for other, example in enumerate(examples)
            for its_segment in (0, 1)
            if len(example) == len(examples[k]) and has_arc_at(example, its_segment, abs(offset))
        ]
    cells = [(e, *pair) for e, s in places for pair in controls_at(examples[e], s, offset)]
    if not cells:
        return np.full(HEADS, np.nan), "nowhere"
    values = [attention[e][:, i, j] for e, i, j, _ in cells]
    return np.average(values, axis=0, weights=[weight for *_, weight in cells]), where


def expected_contrasts(
    examples: list[EncodedExample], layer: int
) -> tuple[NDArray[np.float64], Counter[str]]:
    """(examples, heads, 6), bias scores; how many pairs had their controls where."""
    attention = [planted(example.input_ids, layer) for example in examples]
    reach = REACHES[layer] or 10**6
    values = np.full((len(examples), HEADS, 6), np.nan)
    places: Counter[str] = Counter()

    def row_value(k: int, segment: int, i: int, keys: list[int]) -> NDArray[np.float64]:
        terms = []
        for j in keys:
            mean, where = expected_mean(examples, attention, k, segment, j - i)
            places[where] += 1
            terms.append(attention[k][:, i, j] - mean)
        n_keys = sum(abs(i - j) <= reach for j in range(len(examples[k])))
        return n_keys * np.asarray(np.mean(terms, axis=0))

    for k, example in enumerate(examples):
        of_role: dict[int, list[NDArray[np.float64]]] = {}
        for d, d_size, g, g_size, relation in example.arcs.tolist():
            ends = [range(d, d + d_size), range(g, g + g_size)]
            for direction, (queries, keys) in enumerate((ends, ends[::-1])):
                seen = {i: [j for j in keys if abs(i - j) <= reach] for i in queries}
                segment = int(example.segments[d])
                rows = [row_value(k, segment, i, of_row) for i, of_row in seen.items() if of_row]
                if rows:
                    for role in (direction, 2 + 2 * relation + direction):
                        of_role.setdefault(role, []).append(np.mean(rows, axis=0))
        for role, arcs in of_role.items():
            values[k, :, role] = np.mean(arcs, axis=0)
    return values, places


@pytest.mark.parametrize("batch_tokens", [30, 400])
def test_equal_their_definition(
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
    batch_tokens: int,
) -> None:
    """Windowed layers, words of several pieces, sentences that lend and that borrow."""
    write_treebank(tmp_path / "short.conllu")
    options = ScoringOptions(relations=("nsubj", "obj"), batch_tokens=batch_tokens)
    encoder = load_encoder(make_bert(layers=len(REACHES), heads=HEADS), tokenizer, device="cpu")
    monkeypatch.setattr(AttentionReader, "read", read_planted)
    with prepared(read_conllu(tmp_path / "short.conllu")) as corpus:
        cut = ExampleEncoder(tokenizer, encoder.max_tokens, ("nsubj", "obj"), with_token_types=True)
        examples = cut.encode(list(make_examples(corpus)), Counter())
        with open_reader(encoder.model) as reader:
            run = ScoringRun(encoder, replace(reader, reaches=REACHES), corpus, options)
            blocks = list(run.blocks())
    contrasts = [k for k, role in enumerate(run.roles) if role.endswith(BEYOND_OFFSET)]
    found = np.concatenate([block.values for block in blocks])[..., contrasts]
    assert any(len(example.words) > example.words.max() + 4 for example in examples)
    for layer in range(len(REACHES)):
        expected, places = expected_contrasts(examples, layer)
        np.testing.assert_allclose(found[:, layer], expected, rtol=1e-4, atol=2e-4)
        if REACHES[layer] is None:
            assert run.provenance["controls"] == places
            assert min(places.values()) > 5
            assert len(places) == 3
