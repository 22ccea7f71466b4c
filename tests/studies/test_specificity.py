"""Whether a relation of a head is specific: attention along its arcs, and along all others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from headroles import RoleTable, assign_roles, read_conllu, score_heads
from headroles.corpus import ROOT, Sentence, fold_subtype
from headroles.scoring.scores import HeadScores
from tests.conftest import make_scores
from tests.rounding import SUMS

ARC, EVERY = "syntactic:nsubj:to_governor", "syntactic:any:to_governor:every_arc"
POOLED = "syntactic:any:to_governor"


def other_than_adjectives(sentence: Sentence) -> list[tuple[int, int]]:
    return [
        (dependent, governor)
        for dependent, governor in enumerate(sentence.governors)
        if governor != ROOT and fold_subtype(sentence.relations[dependent]) != "amod"
    ]


@pytest.mark.parametrize("score", ["bias", "excess", "hit"])
def test_other_arcs_are_those_that_a_function_of_ones_own_finds(
    score: str, bert_folder: Path, sample: Path
) -> None:
    """In both directions, by the examples that have arcs of both kinds."""
    given: dict[str, Any] = {"score": score, "relations": "amod", "controls": "none"}
    roles = ["syntactic", other_than_adjectives]
    scores = score_heads(bert_folder, read_conllu(sample), roles=roles, **given)
    frame = assign_roles(scores).frame
    own = [role.id for role in scores.roles if role.function and role.is_tested]
    for name, other in zip(("to_governor", "to_dependent"), own, strict=True):
        rows = frame[frame["role"] == f"syntactic:amod:{name}"]
        of_role, of_others = scores.column(f"syntactic:amod:{name}"), scores.column(other)
        has_both = ~np.isnan(of_role[:, 0]) & ~np.isnan(of_others[:, 0])
        # a mean over N arcs was multiplied by N, and one over n arcs by n
        exact = {"rtol": 100 * SUMS, "atol": 100 * SUMS}
        np.testing.assert_allclose(rows["other_arcs"], of_others[has_both].mean(axis=0), **exact)
        difference = (of_role - of_others)[has_both].mean(axis=0)
        np.testing.assert_allclose(rows["above_others"], difference, **exact)
        assert (rows["others_low"] <= rows["above_others"]).all()


def table_of(own: float, others: float, n_own: int = 1) -> RoleTable:
    """Of one head: means along the arcs of a relation, and along four arcs of others."""
    noise = np.random.default_rng(0).normal(0, 0.1, (60, 1, 1, 1))
    every = (n_own * own + 4 * others) / (n_own + 4)
    values = np.concatenate([own + noise, own + noise, every + noise], axis=-1)
    counts = np.broadcast_to([n_own, n_own, n_own + 4], (60, 3))
    documents = [f"d{k}" for k in range(60)]
    scores = make_scores(values, [POOLED, ARC, EVERY], documents)
    return assign_roles(HeadScores(**{**vars(scores), "counts": counts.astype(np.int64)}))


@pytest.mark.parametrize(("own", "others", "answer"), [(5, 8, "no"), (5, 2, "yes"), (5, 5, "")])
def test_a_relation_that_gets_less_than_others_is_not_specific(
    own: float, others: float, answer: str
) -> None:
    table = table_of(own, others)
    row = table.frame[table.frame["role"] == ARC].iloc[0]
    assert row["other_arcs"] == pytest.approx(others, abs=0.05)
    assert row["specific"] == (answer or "undecided")
    assert ("Not specific: 0-0 (subject -> its verb, 5.0)" in str(table)) == (answer == "no")
    listed = json.loads(table.export("json", view="heads"))["not_specific"]
    assert listed == ({ARC: [[0, 0]]} if answer == "no" else {})


def test_a_pooled_role_and_a_corpus_of_one_relation_have_no_other_arcs() -> None:
    frame = table_of(5, 2).frame
    assert frame[frame["role"] == POOLED]["specific"].tolist() == [""]
    noise = np.random.default_rng(0).normal(5, 0.1, (60, 1, 1, 1))
    values = np.concatenate([noise] * 3, axis=-1)
    frame = assign_roles(make_scores(values, [POOLED, ARC, EVERY])).frame
    assert frame[frame["role"] == ARC]["specific"].tolist() == ["untestable"]


def test_answers_are_corrected_for_tests_that_depend_on_one_another() -> None:
    """By Benjamini and Yekutieli in the place of Benjamini and Hochberg, and as asked otherwise."""
    rng = np.random.default_rng(2)
    above = np.linspace(0, 3, 40)
    own = 5 + above[:, None] + rng.normal(0, 6, (60, 1, 40, 1))
    every = (own + 4 * (5 + rng.normal(0, 1, own.shape))) / 5
    values = np.concatenate([own, own, every], axis=-1)
    counts = np.broadcast_to([1, 1, 5], (60, 3)).astype(np.int64)
    scores = replace(make_scores(values, [POOLED, ARC, EVERY]), counts=counts)
    shown = {}
    for correction, method in (("fdr_bh", "fdr_by"), ("holm", "holm"), ("none", None)):
        frame = assign_roles(scores, correction=correction).frame
        rows = frame[frame["role"] == ARC]
        p = rows["p_others"].to_numpy()
        adjusted = p if method is None else multipletests(p, method=method)[1]
        shown[correction] = rows["specific"] != "undecided"
        np.testing.assert_array_equal(shown[correction], adjusted <= 0.05)
    assert 0 < shown["fdr_bh"].sum() < (multipletests(p, method="fdr_bh")[1] <= 0.05).sum()
