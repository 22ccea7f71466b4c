"""Results made by hand for figures and pages, and a task with the roles of its model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headroles import HeadScores, RoleComparison, RoleTable, assign_roles, compare_roles
from tests.conftest import make_scores
from tests.studies.conftest import classifier, labelled, roles

__all__ = ["classifier", "labelled", "roles"]
ROLES = ("local", "delimiter", "syntactic:any:to_governor")


def scores_around(means: np.ndarray, seed: int = 0) -> HeadScores:
    """40 examples of 2 layers x 3 heads; the last role has a score in one example only."""
    rng = np.random.default_rng(seed)
    values = rng.normal(means[None, :, :, None], 0.5, size=(40, 2, 3, 3))
    values[1:, ..., 2] = np.nan
    made = make_scores(values, ROLES)
    return replace(made, digests=made.ids)


@pytest.fixture(scope="session")
def scores() -> HeadScores:
    return scores_around(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


@pytest.fixture(scope="session")
def table(scores: HeadScores) -> RoleTable:
    return assign_roles(scores)


@pytest.fixture(scope="session")
def shifts(scores: HeadScores) -> RoleComparison:
    after = scores_around(np.array([[1.0, 6.0, 3.0], [4.0, 1.0, 6.0]]), seed=1)
    return compare_roles(scores, after, scores)
