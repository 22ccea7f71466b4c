"""Best heads, chosen on one half and reported on the other, and what describes heads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import t
from transformers import AutoModel, AutoTokenizer

from headroles import Role, assign_roles, describe_heads, find_best_heads, read_conllu, score_heads
from headroles.corpus import Example
from headroles.errors import UsageError
from headroles.inference import Sample, difference_interval, wilson_interval
from headroles.roles import OFFSETS, contrast_of
from tests.conftest import make_scores
from tests.reference import cut, first_choices
from tests.rounding import tolerance
from tests.studies.conftest import hits_of, with_class_hits

ROLE = "syntactic:obj:to_governor"


def test_the_head_of_one_half_is_reported_on_the_other() -> None:
    """Head 0 is best in the first half (documents 0, 2, 4), head 1 in the second."""
    hits = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.1], [0.4, 0.8], [0.8, 0.1], [0.3, 0.8]])
    scores = hits_of(hits, {-2: np.full(6, 0.25)}, [f"d{k}" for k in range(6)])
    scores = replace(scores, counts=np.array([[1, 1, 1, 1, 1, 2]]).T)
    first, second = find_best_heads(scores).frame.to_dict("records")
    assert (first["half"], first["head"], first["mean"]) == (1, 1, pytest.approx(0.1))
    own = hits[1::2, :1]
    hit, gain = (
        wilson_interval(Sample.from_values(own)),
        difference_interval(Sample.from_values(own - 0.25)),
    )
    expected = {"half": 2, "head": 0, "mean": 0.3, "share_of_arcs": (0.2 + 0.4 + 2 * 0.3) / 4}
    expected |= {"gain": 0.05, "offset": -2, "offset_mean": 0.25, "arcs": 4}
    expected |= {"ci_low": hit.ci_low[0], "ci_high": hit.ci_high[0]}
    expected |= {"gain_ci_low": gain.ci_low[0], "gain_ci_high": gain.ci_high[0]}
    assert {name: second[name] for name in expected} == pytest.approx(expected)


def test_both_rules_stand_beside_the_head() -> None:
    """Class rules are chosen on one half, and reported on the other."""
    hits = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.1], [0.4, 0.8], [0.8, 0.1], [0.3, 0.8]])
    scores = hits_of(hits, {-2: np.full(6, 0.25)}, [f"d{k}" for k in range(6)])
    verbs, nouns = np.array([4, 3, 4, 3, 4, 4]), np.array([2, 4, 2, 4, 2, 4])
    scores = with_class_hits(scores, {0: verbs, 3: nouns}, 4)
    best = find_best_heads(scores)
    first, second = best.frame.to_dict("records")
    assert [first["class_rule"], second["class_rule"]] == [
        "nearest noun to the left",
        "nearest verb to the left",
    ]
    own = hits[1::2, :1] - verbs[1::2, None] / 4
    gain = difference_interval(Sample.from_values(own))
    expected = {"class_mean": 10 / 12, "class_share_of_arcs": 10 / 12, "class_gain": own.mean()}
    expected |= {"class_gain_ci_low": gain.ci_low[0], "class_gain_ci_high": gain.ci_high[0]}
    assert {name: second[name] for name in expected} == pytest.approx(expected)
    said = " ".join(str(best).split())
    assert "Beats both" in said
    rule = "nearest noun to the left or nearest verb to the left"
    assert f"the rule *{rule}* finds 67%, the" in said
    above = find_best_heads(with_class_hits(scores, {0: np.zeros(6)}, 4))
    assert "the rule" not in str(above)
    lacking = find_best_heads(replace(scores, class_hits=None))
    assert "score again for the best class rule" in " ".join(str(lacking).split())
    assert lacking.frame["class_mean"].isna().all()


def test_shares_of_many_arcs_may_be_rounded_above_one() -> None:
    hits = np.array([[1.0000004], [0.5]] * 3)
    scores = hits_of(hits, {-2: np.zeros(6)}, [f"d{k}" for k in range(6)])
    best = find_best_heads(with_class_hits(scores, {0: np.zeros(6)}, 4)).frame
    np.testing.assert_allclose(best["class_gain"], [1, 0.5], rtol=1e-5)


def test_other_scores_choose_by_what_is_beyond_distance() -> None:
    """Head 0 has the larger mean, head 1 what is beyond distance."""
    values = np.zeros((6, 1, 2, 2))
    values[..., 0] = np.array([5, 3]) + np.arange(6)[:, None, None] / 10
    values[..., 1] = np.array([0.1, 1]) * (1 + np.arange(6)[:, None, None])
    scores = make_scores(values, [ROLE, contrast_of(ROLE)], [f"d{k}" for k in range(6)])
    frame = find_best_heads(scores).frame
    assert frame["head"].tolist() == [1, 1]
    low, high = t.interval(0.95, 2, 3, np.std([1, 3, 5], ddof=1) / np.sqrt(3))
    columns = ["mean", "gain", "gain_ci_low", "gain_ci_high", "offset"]
    expected = [np.mean([3, 3.2, 3.4]), np.mean([1, 3, 5]), low, high, np.nan]
    assert frame[columns].to_numpy()[0] == pytest.approx(expected, nan_ok=True)


@pytest.mark.numbers
@pytest.mark.parametrize("score", ["bias", "hit"])
def test_strongest_pairs_of_several_heads_by_a_loop(
    bert_folder: Path, sample: Path, score: str
) -> None:
    corpus = read_conllu(sample)
    asked: Any = {"roles": "syntactic", "relations": "nsubj,obj", "pairing": "none"}
    scores = score_heads(bert_folder, corpus, **asked, score=score, columns=score == "hit")
    best = find_best_heads(scores, top=3)
    found = best.frame.set_index(["role", "half"])
    assert all(heads in best.in_full() for heads in found["top"])
    role = "syntactic:nsubj:to_dependent"  # governors may have several
    ranked_by = role if score == "hit" else contrast_of(role)
    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    model = AutoModel.from_pretrained(bert_folder, attn_implementation="eager").eval()
    halves = pd.factorize(np.array(scores.documents))[0] % 2
    for half in (0, 1):
        own = scores.column(ranked_by)[halves != half].astype(float)
        means = np.nanmean(own, axis=0)
        heads = [divmod(int(k), 4) for k in np.argsort(-means, kind="stable")[:3]]
        row = found.loc[role, half + 1]
        assert row["top"] == " ".join(f"{layer}-{head}" for layer, head in heads)
        shares, words, by_rule = [], [], []
        for sentence, own in zip(corpus, halves, strict=True):
            tokens, ids = cut(Example((sentence,)), tokenizer)
            keys: dict[int, set[int]] = {}
            for place, relation in enumerate(sentence.relations):
                if relation.split(":")[0] == "nsubj":
                    keys.setdefault(sentence.governors[place], set()).add(place)
            if own != half or not keys:
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
            names = {"pronoun": ["PRON"], "noun": ["NOUN", "PROPN"]}
            of_class = names[row["class_rule"].split()[1]]
            n_found = 0
            for query, key in keys.items():
                others = [k for k, upos in enumerate(sentence.upos) if upos in of_class]
                others = [k for k in others if k < query]
                n_found += max(others, default=-1) in key
            by_rule.append(n_found / len(keys))
        assert row["class_rule"].endswith("to the left")
        assert row["class_precision"] == pytest.approx(np.mean(by_rule))
        of_several, of_one = np.mean(shares, axis=0)
        share_of_words = np.average(np.array(shares)[:, 0], weights=words)
        expected = [sum(words), of_several, of_one, share_of_words, of_several - of_one]
        columns = ["words_read", "precision", "head_precision", "share_of_words", "top_gain"]
        assert row[columns].tolist() == pytest.approx(expected, abs=tolerance())
        assert row["top_gain_low"] <= row["top_gain"] <= row["top_gain_high"]
    for way in ("to_governor", "from_governor") if score == "hit" else ():
        forth = found.xs(f"syntactic:nsubj:{way}")  # a dependent has one governor
        assert forth["head_precision"].to_numpy() == pytest.approx(forth["mean"].to_numpy())
        assert forth["offset_precision"].to_numpy() == pytest.approx(forth["offset_mean"])
        assert forth["class_precision"].to_numpy() == pytest.approx(forth["class_mean"])


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
    own = VALUES[:, 0, 1, 1]
    interval = t.interval(0.95, 11, own.mean(), own.std(ddof=1) / np.sqrt(12))
    found = frame[["mean", "ci_low", "ci_high"]].to_numpy()[1]
    assert found == pytest.approx([own.mean(), *interval])
    assert assign_roles(scores).roles == ("local",)
    alone = replace(make_scores(VALUES[..., 1:], ["x"]), roles=(entropy,))
    with pytest.raises(UsageError, match="no role to test"):
        assign_roles(alone)
    with pytest.raises(UsageError, match="no quantity that describes heads; score again with"):
        describe_heads(make_scores(VALUES, ["local", "syntactic:any:to_governor"]))
