"""Best heads, chosen on one half and reported on the other, and what describes heads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import t
from transformers import AutoModel, AutoTokenizer

from headroles import (
    HeadScores,
    Role,
    assign_roles,
    describe_heads,
    find_best_heads,
    read_conllu,
    score_heads,
)
from headroles.corpus import Example
from headroles.errors import UsageError
from headroles.inference import Sample, difference_interval, wilson_interval
from headroles.roles import OFFSETS, contrast_of
from tests.conftest import make_scores
from tests.reference import cut, first_choices
from tests.rounding import tolerance
from tests.studies.conftest import hits_of

ROLE = "syntactic:obj:to_governor"


def scores_of(hits: np.ndarray, rule: np.ndarray, arcs: list[int]) -> HeadScores:
    """Hits (examples, heads), what the offset -2 hits, and numbers of arcs."""
    scores = hits_of(hits, {-2: rule}, [f"d{k}" for k in range(len(hits))])
    return replace(scores, counts=np.array(arcs)[:, None])


def test_the_head_of_one_half_is_reported_on_the_other() -> None:
    """Head 0 is best in the first half (documents 0, 2, 4), head 1 in the second."""
    hits = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.1], [0.4, 0.8], [0.8, 0.1], [0.3, 0.8]])
    frame = find_best_heads(scores_of(hits, np.full(6, 0.25), [1, 1, 1, 1, 1, 2])).frame
    first, second = frame.iloc[0], frame.iloc[1]
    assert (first["half"], first["head"], second["half"], second["head"]) == (1, 1, 2, 0)
    assert first["mean"] == pytest.approx(0.1)
    assert second["mean"] == pytest.approx(0.3)
    assert second["share_of_arcs"] == pytest.approx((0.2 + 0.4 + 2 * 0.3) / 4)
    assert second["gain"] == pytest.approx(0.05)
    assert (second["offset"], second["offset_mean"], second["arcs"]) == (-2, 0.25, 4)
    own = hits[1::2, :1]
    intervals = wilson_interval(Sample.of(own)), difference_interval(Sample.of(own - 0.25))
    for of, interval in zip(("", "gain_"), intervals, strict=True):
        for end in ("ci_low", "ci_high"):
            expected = getattr(interval, end)[0]
            assert second[f"{of}{end}"] == pytest.approx(expected, abs=tolerance())


def test_other_scores_choose_by_what_is_beyond_distance() -> None:
    """Head 0 has the larger mean, head 1 what is beyond distance."""
    values = np.zeros((6, 1, 2, 2))
    values[..., 0] = np.array([5, 3]) + np.arange(6)[:, None, None] / 10
    values[..., 1] = np.array([0.1, 1]) * (1 + np.arange(6)[:, None, None])
    scores = make_scores(values, [ROLE, contrast_of(ROLE)], [f"d{k}" for k in range(6)])
    first, second = find_best_heads(scores).frame.iloc
    assert (first["head"], second["head"]) == (1, 1)
    assert first["mean"] == pytest.approx(np.mean([3, 3.2, 3.4]))
    assert first["gain"] == pytest.approx(np.mean([1, 3, 5]))
    low, high = t.interval(0.95, 2, 3, np.std([1, 3, 5], ddof=1) / np.sqrt(3))
    assert (first["gain_ci_low"], first["gain_ci_high"]) == pytest.approx((low, high))
    assert np.isnan(first["offset"])


@pytest.mark.numbers
@pytest.mark.parametrize("score", ["bias", "hit"])
def test_strongest_pairs_of_several_heads_by_a_loop(
    bert_folder: Path, sample: Path, score: str
) -> None:
    corpus = read_conllu(sample)
    scores = score_heads(
        bert_folder,
        corpus,
        roles="syntactic",
        relations="nsubj,obj",
        score=score,
        columns=score == "hit",
        pairing="none",
    )
    best = find_best_heads(scores, top=3)
    found = best.frame.set_index(["role", "half"])
    assert all(heads in best.in_full() for heads in found["top"])
    role = "syntactic:nsubj:to_dependent"  # governors may have several
    ranked_by = role if score == "hit" else contrast_of(role)
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    model = AutoModel.from_pretrained(bert_folder, attn_implementation="eager").eval()
    names = list(dict.fromkeys(scores.documents))
    halves = np.array([names.index(name) % 2 for name in scores.documents])
    for half in (0, 1):
        own = scores.column(ranked_by)[halves != half].astype(float)
        means = np.nanmean(own, axis=0)
        heads = [divmod(int(k), 4) for k in np.argsort(-means, kind="stable")[:3]]
        row = found.loc[role, half + 1]
        assert row["top"] == " ".join(f"{layer}-{head}" for layer, head in heads)
        shares, words = [], []
        for sentence, own in zip(corpus, halves, strict=True):
            tokens, ids = cut(Example((sentence,)), tokenizer)
            keys: dict[int, set[int]] = {}
            for place, (governor, relation) in enumerate(
                zip(sentence.governors, sentence.relations, strict=True)
            ):
                if relation.split(":")[0] == "nsubj" and own == half:
                    keys.setdefault(governor, set()).add(place)
            if not keys:
                continue
            with torch.no_grad():
                read = model(torch.tensor([ids]), output_attentions=True).attentions
            several = np.mean([read[layer][0, head].numpy() for layer, head in heads], axis=0)
            single = read[heads[0][0]][0, heads[0][1]].numpy()
            right = [
                [int(chosen[query]) in key for query, key in keys.items()]
                for chosen in (first_choices(one, tokens) for one in (several, single))
            ]
            shares.append(np.mean(right, axis=1))
            words.append(len(keys))
        assert row["words_read"] == sum(words)
        expected = np.mean(shares, axis=0)
        assert row["precision"] == pytest.approx(expected[0], abs=tolerance())
        assert row["head_precision"] == pytest.approx(expected[1], abs=tolerance())
        assert row["share_of_words"] == pytest.approx(
            np.average(np.array(shares)[:, 0], weights=words), abs=tolerance()
        )
        assert row["top_gain"] == pytest.approx(expected[0] - expected[1], abs=tolerance())
        assert row["top_gain_low"] <= row["top_gain"] <= row["top_gain_high"]
    for way in ("to_governor", "from_governor") if score == "hit" else ():
        forth = found.xs(f"syntactic:nsubj:{way}")  # a dependent has one governor
        assert forth["head_precision"].to_numpy() == pytest.approx(forth["mean"].to_numpy())
        assert forth["offset_precision"].to_numpy() == pytest.approx(forth["offset_mean"])


def test_what_cannot_be_ranked_is_refused() -> None:
    bias = make_scores(np.ones((4, 1, 2, 1)), [ROLE])
    hits = make_scores(np.ones((4, 1, 2, 1)), ["local"], score="hit")
    nothing = np.full((4, 1, len(OFFSETS)), np.nan, dtype=np.float32)
    for scores in (bias, replace(hits, offset_shares=nothing)):
        with pytest.raises(UsageError, match=r"no role of pairs of words with a contrast; score"):
            find_best_heads(scores)
    with pytest.raises(UsageError, match=r"device has no effect without top; omit it"):
        find_best_heads(bias, device="cpu")


# What describes heads.

VALUES = np.random.default_rng(0).random((12, 1, 2, 2))


def test_quantities_have_means_and_intervals_and_no_tests() -> None:
    scores = make_scores(VALUES, ["local", "entropy"])
    entropy = Role("entropy", is_described=True)
    scores = replace(scores, roles=(scores.roles[0], entropy))
    frame = describe_heads(scores, clusters="none").frame
    assert frame["role"].tolist() == ["entropy"] * 2
    own = VALUES[:, 0, 1, 1].astype(np.float32).astype(float)
    low, high = t.interval(0.95, 11, own.mean(), own.std(ddof=1) / np.sqrt(12))
    assert frame["mean"][1] == pytest.approx(own.mean())
    assert (frame["ci_low"][1], frame["ci_high"][1]) == pytest.approx((low, high))
    assert assign_roles(scores).roles == ("local",)
    alone = replace(make_scores(VALUES[..., 1:], ["x"]), roles=(entropy,))
    with pytest.raises(UsageError, match="no role to test"):
        assign_roles(alone)
    with pytest.raises(UsageError, match="no quantity that describes heads; score again with"):
        describe_heads(make_scores(VALUES, ["local", "syntactic:any:to_governor"]))
