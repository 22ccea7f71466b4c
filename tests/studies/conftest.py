"""The models and tasks of ``tests/tasks``, here too, and roles of one of the models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headroles import HeadScores, classify_heads, read_conllu
from headroles.roles import N_RULES, OFFSETS
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run
from tests.conftest import changed, make_scores
from tests.tasks.conftest import classifier as classifier
from tests.tasks.conftest import labelled as labelled
from tests.tasks.conftest import labelled_twice as labelled_twice
from tests.tasks.conftest import masked_lm as masked_lm
from tests.tasks.conftest import numbered as numbered
from tests.tasks.conftest import plain as plain
from tests.tasks.conftest import regressor as regressor


@pytest.fixture(scope="session")
def roles(classifier: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the roles of ``classifier``."""
    folder = tmp_path_factory.mktemp("roles") / "roles"
    classify_heads(classifier, read_conllu(sample), threshold=1.0).save(folder)
    return folder


def hits_of(hits: np.ndarray, shares: dict[int, np.ndarray], documents: list[str]) -> HeadScores:
    """First choices (examples, heads) of one layer for objects, and what some offsets hit."""
    role = "syntactic:obj:to_governor"
    table = np.zeros((len(hits), 1, len(OFFSETS)), dtype=np.float32)
    for offset, share in shares.items():
        table[:, 0, OFFSETS.index(offset)] = share
    scores = make_scores(hits[:, None, :, None], [role], documents, score="hit")
    return replace(scores, offset_shares=table)


def with_class_hits(scores: HeadScores, hits: dict[int, np.ndarray], n_arcs: int) -> HeadScores:
    """Add the hits (examples,) of class rules, by their place, for verbs and nouns."""
    table = np.zeros((scores.n_examples, 1, N_RULES), dtype=np.uint16)
    for rule, of_rule in hits.items():
        table[:, 0, rule] = of_rule
    counts = np.full(scores.counts.shape, n_arcs)
    with_hits = replace(scores, class_hits=table, counts=counts)
    return changed(with_hits, facts={"class_rules": {scores.role_ids[0]: ["VERB", "NOUN"]}})


@pytest.fixture
def opened(classifier: Path, labelled: Path) -> TaskRun:
    """``classifier`` over ``labelled``."""
    return open_run(classifier, labelled, TaskOptions())


def losses_of(model: Path, task: Path) -> np.ndarray:
    """The losses of a model as it is, (examples, 1)."""
    return open_run(model, task, TaskOptions()).outcomes_unmasked().losses
