"""Contrasts from treebank to score: windowed layers, words of many pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headroles.corpus import make_examples, prepared, read_conllu
from headroles.models.attention.reader import AttentionReader, open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.roles.contrasts import ARCS, ARCS_LEFT_OUT
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from tests.conftest import conllu_sentence, make_bert
from tests.noise import with_noise
from tests.reference import Asked, cut, largest_difference, reference_scores
from tests.rounding import sizes_of

HEADS = 2
REACHES = (None, 3, None)
RELATIONS = ("nsubj", "obj")


def planted(input_ids: list[int], layer: int) -> NDArray[np.float64]:
    """(heads, n, n): random rows for an input and a layer, over the keys within reach."""
    n, reach = len(input_ids), REACHES[layer]
    seed = [layer, *input_ids]
    raw: NDArray[np.float64] = np.exp(2 * np.random.default_rng(seed).normal(size=(HEADS, n, n)))
    if reach is not None:
        raw *= np.abs(np.subtract.outer(range(n), range(n))) <= reach
    return raw / raw.sum(axis=-1, keepdims=True)


def read_planted(
    reader: AttentionReader,
    inputs: Mapping[str, Tensor],
    on_layer: Callable[[int, Tensor], None],
    names: Sequence[str],
) -> None:
    """Read in place of a model; rows of padding hold arbitrary numbers."""
    batch, width = inputs["input_ids"].shape
    for layer in range(len(REACHES)):
        attention = torch.rand(batch, HEADS, width, width)
        for row, n in enumerate(inputs["attention_mask"].sum(dim=1).tolist()):
            own = planted(inputs["input_ids"][row, :n].tolist(), layer)
            attention[row, :, :n] = 0
            attention[row, :, :n, :n] = torch.from_numpy(own)
        on_layer(layer, with_noise(attention))


def write_treebank(path: Path) -> None:
    """Short sentences with random trees, so that many arcs have no control."""
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


@pytest.mark.numbers
@pytest.mark.parametrize(("score", "batch_tokens"), [("bias", 30), ("excess", 400)])
def test_equal_their_definition(
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerBase,
    monkeypatch: pytest.MonkeyPatch,
    batch_tokens: int,
    score: str,
) -> None:
    write_treebank(tmp_path / "short.conllu")
    asked = {"relations": RELATIONS, "batch_tokens": batch_tokens, "score": score}
    options = ScoreOptions(**asked, controls="none")
    loading = ModelOptions(tokenizer=tokenizer, device="cpu")
    encoder = load_encoder(make_bert(layers=len(REACHES), heads=HEADS), loading)
    monkeypatch.setattr(AttentionReader, "read", read_planted)
    with prepared(read_conllu(tmp_path / "short.conllu")) as corpus:
        examples = list(make_examples(corpus, "adjacent"))
        with open_reader(encoder.model) as reader:
            run = ScoringRun(encoder, replace(reader, reaches=REACHES), corpus, options)
            blocks = list(run.blocks())
    values = np.concatenate([block.values for block in blocks])
    roles, n_long = [role.id for role in run.roles], 0
    counts, lows = (
        np.concatenate(of)
        for of in zip(*[(one.counts, one.bounds[..., 0]) for one in blocks], strict=True)
    )
    sizes = sizes_of(values, roles, counts, lows)
    for own, size, example in zip(values, sizes, examples, strict=True):
        tokens, ids = cut(example, tokenizer)
        n_long += len(tokens.words) > len(tokens.governors) + 4
        for layer, reach in enumerate(REACHES):
            expected = reference_scores(planted(ids, layer), tokens, RELATIONS, Asked(score, reach))
            assert largest_difference(own[layer], roles, expected, size[layer]) <= 1
    assert n_long > 10
    controls = run.record.facts["controls"]
    assert 20 < controls[ARCS_LEFT_OUT] < controls[ARCS] / 2
