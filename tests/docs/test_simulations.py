"""Simulations of claims about tasks run, at each null hypothesis and at the effect."""

from __future__ import annotations

import numpy as np
import pytest

from docs.studies.claims_calibration import EFFECT, NULL, OPPOSITE, of_task
from headroles.studies.claims import CLAIMS, ClaimOptions
from headroles.studies.claims.claim import TASK, TWO_TASKS, Finding
from headroles.studies.claims.task_probabilities import TaskProbabilities
from tests.tasks.conftest import SENTENCES, make_task_model, save, write_labelled


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskProbabilities:
    folder = tmp_path_factory.mktemp("task")
    labelled = write_labelled(folder / "task.tsv", SENTENCES * 2)
    return TaskProbabilities.open(save(make_task_model(), folder), labelled, ClaimOptions())


@pytest.mark.parametrize("truth", [NULL, OPPOSITE, EFFECT])
def test_simulations_give_a_finding_of_each_claim(task: TaskProbabilities, truth: str) -> None:
    made = {claim: make for claim, _, make in of_task(task)}
    assert set(made) == {one.id for one in CLAIMS.values() if one.needs in (TASK, TWO_TASKS)}
    for claim, make in made.items():
        found = make(np.random.default_rng(0), truth)
        assert isinstance(found, Finding), claim
