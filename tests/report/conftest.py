"""Results made by hand for figures and pages, and a task with the roles of its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from matplotlib.axes import Axes

import headroles as hr
from headroles.drawing.page import Page
from headroles.models.heads.remaining import Head
from tests.conftest import make_bert, make_scores, make_tokenizer
from tests.studies.conftest import classifier, labelled, roles

__all__ = ["classifier", "labelled", "roles"]
P = TypeVar("P")
ROLES = ("local", "delimiter", "syntactic:any:to_governor")


def scores_around(means: np.ndarray, seed: int = 0) -> hr.HeadScores:
    """40 examples of 2 layers x 3 heads; the last role has a score in one example only."""
    rng = np.random.default_rng(seed)
    values = rng.normal(means[None, :, :, None], 0.5, size=(40, 2, 3, 3))
    values[1:, ..., 2] = np.nan
    made = make_scores(values, ROLES)
    return replace(made, digests=made.ids)


def marked(ax: Axes) -> dict[str, set[Head]]:
    """(layer, head) of the marks of each answer in a map."""
    return {
        str(one.get_label()): {
            (round(y), round(x))
            for path in one.get_paths()
            for x, y in [(path.vertices.max(axis=0) + path.vertices.min(axis=0)) / 2]
        }
        for one in ax.collections[1:]
    }


def parts_of(page: Page, kind: type[P]) -> list[P]:
    """The parts of a page of one kind, in their order."""
    return [part for one in page.sections for part in one.parts if isinstance(part, kind)]


@pytest.fixture(scope="session")
def scores() -> hr.HeadScores:
    return scores_around(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


@pytest.fixture(scope="session")
def table(scores: hr.HeadScores) -> hr.RoleTable:
    return hr.assign_roles(scores)


@pytest.fixture(scope="session")
def shifts(scores: hr.HeadScores) -> hr.RoleComparison:
    after = scores_around(np.array([[1.0, 6.0, 3.0], [4.0, 1.0, 6.0]]), seed=1)
    return hr.compare_roles(scores, after, scores)


@pytest.fixture(scope="session")
def bounded(scores: hr.HeadScores) -> hr.HeadScores:
    limits = np.broadcast_to(np.array([0, 15], dtype=np.float32), (40, 3, 2))
    return replace(scores, values=np.maximum(scores.values, 0), bounds=limits)


@pytest.fixture(scope="session")
def plan(scores: hr.HeadScores) -> hr.PowerAnalysis:
    return hr.power_analysis(scores)


@pytest.fixture(scope="session")
def replication(bounded: hr.HeadScores) -> hr.Replication:
    other = replace(bounded, digests=tuple(f"other-{one}" for one in bounded.digests))
    return hr.replicate_roles([bounded, other], ["one", "two"], threshold=0)


@pytest.fixture(scope="session")
def layer_counts(bounded: hr.HeadScores) -> hr.Replication:
    return hr.replicate_roles([bounded, bounded], ["one", "two"], over="seeds")


@pytest.fixture(scope="session")
def importance(classifier: Path, labelled: Path) -> hr.Importance:
    return hr.find_importance(classifier, labelled)


@pytest.fixture(scope="session")
def ablations(classifier: Path, labelled: Path) -> hr.Ablations:
    return hr.ablate_heads(classifier, labelled, sets="single,layers")


@pytest.fixture(scope="session")
def role_importance(classifier: Path, labelled: Path, roles: Path) -> hr.ImportanceByRole:
    return hr.importance_by_role(
        classifier, labelled, roles_from=str(roles), draws=2, permutations=99
    )


@pytest.fixture(scope="session")
def curves(classifier: Path, labelled: Path) -> hr.PruningCurves:
    return hr.find_pruning_curves(classifier, labelled, orders="random,middle", shares="0.25,0.5")


@pytest.fixture(scope="session")
def drops(ablations: hr.Ablations) -> hr.DropsByTask:
    return hr.drops_by_task([ablations, ablations], ["one", "two"])


@pytest.fixture(scope="session")
def groups(sample: Path) -> hr.TokenGroups:
    return hr.measure_token_groups(make_bert(), hr.read_conllu(sample), tokenizer=make_tokenizer())
