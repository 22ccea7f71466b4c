"""Answers while values come, against those of all values at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headroles.inference import Bounds
from headroles.testing.answers import ANSWERS, RunningAnswers, answer
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

LABELS = np.repeat(np.arange(3), 4)
THRESHOLD = np.repeat([0.3, 0.4, 0.5], 4)


def bounds_of(n: int) -> Bounds:
    return Bounds(np.zeros((n, 3)), np.ones((n, 3)), np.zeros(3), np.ones(3), kinds=LABELS, cap=1.0)


def all_at_once(values: Any, clusters: Any, options: TestOptions, n_population: Any) -> Any:
    hypotheses = Hypotheses.of(
        values,
        THRESHOLD,
        size=1.0,
        labels=LABELS,
        names=("a", "b", "c"),
        family=options.family,
        clusters=clusters,
        bounds=bounds_of(len(values)),
        n_population=n_population,
    )
    above, below = (find_p_values(hypotheses, options, side) for side in ("greater", "less"))
    return answer(above, below, options.alpha)


@pytest.mark.parametrize("n_population", [None, 40])
@pytest.mark.parametrize("by_cluster", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"family": "role"}, {"correction": "holm", "alpha": 0.1}], ids=str
)
def test_every_look_has_the_answers_of_all_so_far(
    options: dict[str, Any], by_cluster: bool, n_population: int | None
) -> None:
    rng = np.random.default_rng(1)
    strength = rng.choice([0.05, 0.3, 0.6, 0.9], 12)
    clusters = np.repeat(np.arange(40), 3)
    values = rng.beta(6 * strength, 6 * (1 - strength), (120, 12)).astype(np.float32)
    values[:12, :2] = np.nan
    if not by_cluster:
        values = values[::3]
    asked = TestOptions(test="betting", **options)
    running = RunningAnswers(THRESHOLD, LABELS, asked, n_population)
    step = len(values) // 10
    seen: set[str] = set()
    for start in range(0, len(values), step):
        rows, end = slice(start, start + step), start + step
        own = clusters[rows] if by_cluster else None
        running.add(values[rows], bounds_of(step), own)
        expected = all_at_once(
            values[:end], clusters[:end] if by_cluster else None, asked, n_population
        )
        assert running.look().tolist() == expected.tolist()
        seen |= set(expected)
    assert seen == set(ANSWERS)
