"""Steps of evidence about roles of pairs: which rest on few documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroles import assign_roles
from headroles.role_names import (
    BETWEEN,
    BEYOND_OFFSET,
    NEAR,
    NEAR_BACK,
    contrast_of,
    other_trees_of,
)
from tests.conftest import make_scores

ARC = "syntactic:nsubj:to_governor"
CONTRASTS = [contrast_of(ARC, name) for name in (BEYOND_OFFSET, NEAR, NEAR_BACK, BETWEEN)]
ROLES = [ARC, *CONTRASTS, other_trees_of(ARC)]
DOCUMENTS = [f"d{k}" for k in range(40)]


@pytest.mark.parametrize(
    ("short", "n", "note"),
    [
        (BETWEEN, 40, ""),
        (BETWEEN, 20, ""),
        (BETWEEN, 19, "attractors rests on 19 documents"),
        (NEAR, 10, "class rests on 10 documents"),
        (BEYOND_OFFSET, 5, "distance rests on 5 documents"),
        ("trees", 3, "distance rests on 3 documents"),
        ("trees", 1, "distance rests on no other trees, which too few sentences find"),
    ],
)
def test_a_step_that_few_documents_show_is_noted(short: str, n: int, note: str) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 1, len(ROLES)))
    values = noise + np.array([9.0, 4.0, 4.0, 4.0, 4.0, 1.0])
    place = -1 if short == "trees" else ROLES.index(contrast_of(ARC, short))
    values[n:, ..., place] = np.nan
    row = assign_roles(make_scores(values, ROLES, DOCUMENTS)).frame.iloc[0]
    assert row["answer"] == "yes"
    assert row["evidence"] == "attractors"
    assert row["note"] == note


@pytest.mark.parametrize("test", ["t", "betting"])
@pytest.mark.parametrize("n", [40, 1, 0])
def test_a_role_with_too_few_other_trees_has_no_evidence(n: int, test: str) -> None:
    """If other roles have them; without any in the corpus, answers rest on the distance alone."""
    object_roles = [role.replace("nsubj", "obj") for role in ROLES]
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 1, 2 * len(ROLES)))
    values = noise + np.array(2 * [9.0, 4.0, 4.0, 4.0, 4.0, 1.0])
    values[n:, ..., -1] = np.nan
    bounds = np.broadcast_to(np.array([0.0, 12.0], np.float32), (40, 2 * len(ROLES), 2))
    scores = replace(make_scores(values, [*ROLES, *object_roles], DOCUMENTS), bounds=bounds)
    subject, with_few = assign_roles(scores, test=test).frame.to_dict("records")
    assert subject["answer"] == "yes"
    assert with_few["answer"] == ("yes" if n == 40 else "undecided")
    if n < 40:
        assert with_few["p_adjusted"] == 1
        assert with_few["certified"] == "undecided"
    values[..., ROLES.index(other_trees_of(ARC))] = np.nan
    values[..., -1] = np.nan
    scores = replace(make_scores(values, [*ROLES, *object_roles], DOCUMENTS), bounds=bounds)
    assert [*assign_roles(scores, test=test).frame["answer"]] == ["yes", "yes"]


@pytest.mark.parametrize(
    ("short", "evidence"), [(NEAR, "distance"), (NEAR_BACK, "distance"), (BETWEEN, "class")]
)
def test_a_further_step_takes_ten_documents(short: str, evidence: str) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 1, len(ROLES)))
    values = noise + np.array([9.0, 4.0, 4.0, 4.0, 4.0, 1.0])
    values[9:, ..., ROLES.index(contrast_of(ARC, short))] = np.nan
    bounds = np.broadcast_to(np.array([0.0, 12.0], np.float32), (40, len(ROLES), 2))
    scores = replace(make_scores(values, ROLES, DOCUMENTS), bounds=bounds)
    row = assign_roles(scores).frame.iloc[0]
    assert row["evidence"] == evidence
    step = "attractors" if short == BETWEEN else "class"
    assert row["note"] == f"{step} is open: it takes 10 documents, and has 9"
    # bets are valid with any number of documents: they do not ask for ten
    assert "it takes" not in assign_roles(scores, test="betting").frame.iloc[0]["note"]


def test_steps_that_are_not_shown_are_not_noted() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 1, len(ROLES)))
    values = noise + np.array([9.0, 4.0, 0.0, 4.0, 4.0, 1.0])  # not beyond the nearest of the class
    values[19:, ..., 2:5] = np.nan
    row = assign_roles(make_scores(values, ROLES, DOCUMENTS)).frame.iloc[0]
    assert row["evidence"] == "distance"
    assert row["note"] == ""


def test_a_step_that_skewed_contrasts_show_is_noted() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, (40, 1, 1, len(ROLES)))
    values += np.array([9.0, 4.0, 4.0, 4.0, 4.0, 1.0])
    for side, note in (
        (-1, "class rests on skewed contrasts, which t finds above too often"),
        (1, ""),
    ):
        values[:, 0, 0, 3] = 4 + 0.3 * side * rng.lognormal(0, 1.2, 40)  # near:back
        row = assign_roles(make_scores(values, ROLES, DOCUMENTS)).frame.iloc[0]
        assert row["evidence"] == "attractors"
        assert row["note"] == note


def test_betting_needs_no_note() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, (150, 1, 1, len(ROLES)))
    values += np.array([9.0, 4.0, 4.0, 4.0, 4.0, 1.0])
    values[:, 0, 0, 4] = np.maximum(0, 4 - 0.3 * rng.lognormal(0, 1.2, 150))
    bounds = np.broadcast_to(np.array([0.0, 12.0], np.float32), (150, len(ROLES), 2))
    scores = make_scores(values, ROLES, [f"d{k}" for k in range(150)])
    note = "attractors rests on skewed contrasts, which t finds above too often"
    for test, noted in (("t", note), ("betting", "")):
        row = assign_roles(replace(scores, bounds=bounds), test=test).frame.iloc[0]
        assert row["evidence"] == "attractors"
        assert row["note"] == noted
