"""From scores to what is tested: columns, thresholds, families, clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, assign_roles, compare_roles, power_analysis
from headroles.errors import UsageError
from headroles.studies.heads import HeadColumns, RoleHypotheses, clusters_in
from headroles.studies.options import ThresholdOptions
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions
from tests.conftest import changed, make_scores, role_ids

RNG = np.random.default_rng(0)


def hypotheses(scores: HeadScores, threshold: float | None = None, **options: Any) -> Hypotheses:
    against = ThresholdOptions(threshold=threshold)
    return RoleHypotheses.of(scores, TestOptions(**options), against).means


def test_order_is_role_layer_head() -> None:
    values = RNG.normal(size=(4, 2, 3, 2)).astype(np.float32)
    scores = make_scores(values, ["local", "syntactic:any:to_governor"])
    columns, found = HeadColumns.of(scores), hypotheses(scores)
    for test, (role, layer, head) in enumerate(np.ndindex(2, 2, 3)):
        np.testing.assert_array_equal(found.sample.values[:, test], values[:, layer, head, role])
        labels = [columns.labels[name][test] for name in ("role", "layer", "head")]
        assert labels == [columns.ids[role], layer, head]
    assert found.n_tests == 12


def test_roles_without_examples_contrasts_controls_and_measures_are_no_columns() -> None:
    values = RNG.normal(size=(4, 1, 2, 3))
    values[..., 1] = np.nan
    assert hypotheses(make_scores(values, ["a", "b", "c"])).names == ("a", "c")
    roles = role_ids(["obj"])
    roles = (*roles, *(f"{name}:other_trees" for name in roles if name.endswith("governor")))
    names = HeadColumns.of(make_scores(RNG.normal(size=(4, 1, 2, len(roles))), roles)).ids
    assert names == tuple(name for name in roles if not name.endswith(("offset", "trees")))
    roles = role_ids([], score="excess")
    names = hypotheses(make_scores(RNG.normal(size=(4, 1, 2, len(roles))), roles)).names
    assert names == tuple(name for name in roles if "evenness" not in name)


@pytest.mark.parametrize(("score", "threshold"), [("bias", 3), ("excess", 0.1), ("hit", 0.5)])
def test_thresholds_are_those_of_the_score(score: str, threshold: float) -> None:
    scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"], score=score)
    assert (hypotheses(scores).threshold == threshold).all()


@pytest.mark.parametrize(
    ("clusters", "documents", "expected"),
    [
        ("auto", "bbaa", [1, 1, 0, 0]),
        ("auto", "aaaa", None),
        ("document", "abca", [0, 1, 2, 0]),
        ("none", "bbaa", None),
    ],
)
def test_documents_are_clusters(clusters: str, documents: str, expected: list[int] | None) -> None:
    scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"], list(documents))
    found = clusters_in(scores.documents, TestOptions(clusters=clusters))
    assert (None if found is None else found.tolist()) == expected
    n_clusters = hypotheses(scores, clusters=clusters).n_clusters
    assert n_clusters == (4 if expected is None else len(set(documents)))


def test_one_document_cannot_be_clustered() -> None:
    scores = make_scores(RNG.normal(size=(4, 1, 2, 1)), ["local"])
    with pytest.raises(UsageError, match=r"all examples are of one document.*clusters='none'"):
        hypotheses(scores, clusters="document")


def test_every_table_of_tests_notes_removed_heads() -> None:
    """Of a comparison whichever side lacks them, each checkpoint by itself."""
    values = np.random.default_rng(0).normal(3, 1, (30, 2, 2, 1)).astype(np.float32)
    whole = replace(made := make_scores(values, ["local"]), digests=made.ids)
    values = values.copy()
    values[:, 1, 0] = np.nan
    pruned = changed(replace(whole, values=values), model={"removed_heads": [[1, 0]]})
    removed = "untestable: the head was removed from the model"
    shifts = compare_roles(whole, pruned, whole, names=["pruned", "same"]).frame
    by_name = shifts.set_index("checkpoint")
    tables = [assign_roles(pruned), power_analysis(pruned), compare_roles(pruned, whole)]
    for frame in (*(table.frame for table in tables), by_name.loc["pruned"]):
        gone = frame["note"] == removed
        assert frame[gone][["layer", "head"]].to_numpy().tolist() == [[1, 0]]
    assert removed not in set(by_name.loc["same", "note"])
    assert shifts["checkpoint"].tolist() == ["pruned"] * 4 + ["same"] * 4
