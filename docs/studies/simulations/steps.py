"""Simulations of the steps of evidence: wrong answers where one quantity of a role is at its limit.

The population is all scores of a folder. For each quantity that an answer needs, the mean and every
contrast, half of the heads and roles of arcs are moved so that this quantity lies exactly at its
limit, and all others well above theirs; the other half has all of them well above. Scores thus stay
as skewed, correlated and full of gaps as they are, and every H0 is true at its limit, where tests
err most. Documents are drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.simulations import ALPHA, Figures, Row, Study, averaged, generator
from docs.studies.simulations.scores import ROUNDING, SIDES, Kind, Population, share_of
from headroles import HeadScores
from headroles.arrays import BoolArray, FloatArray
from headroles.role_names import BETWEEN, BEYOND_OFFSET, NEAR, NEAR_BACK
from headroles.roles import Role
from headroles.studies.evidence import (
    ATTRACTORS,
    BEYOND_TREES,
    CLASS,
    CONTRASTS,
    DISTANCE,
    STEPS,
    RoleHypotheses,
    evidence_of,
)
from headroles.testing.evidence import NO, POSITIONAL, YES, find_p_values
from headroles.testing.options import TestOptions

DOCUMENTS = tuple(Kind(size, "documents") for size in (10, 30, 100))
MEAN = "mean"
QUANTITIES = (MEAN, BEYOND_OFFSET, BEYOND_TREES, NEAR, NEAR_BACK, BETWEEN)
AWAY = 2
"""Standard deviations of examples from the limit to quantities that lie well above it."""


def study_steps(folders: list[Path], n: int) -> Iterator[Row]:
    """Count wrong answers and steps of scores as they are."""
    for folder in folders:
        population = Population(of_arcs(HeadScores.load(folder)))
        yield from rows_of(population, folder.name, n)


def study_limits(folders: list[Path], n: int) -> Iterator[Row]:
    """Count wrong answers and steps with each quantity at its limit."""
    for folder in folders:
        scores = of_arcs(HeadScores.load(folder))
        for at in QUANTITIES:
            population = Population(at_limit(scores, at))
            yield from rows_of(population, f"{folder.name}, {at} at its limit", n, at)


def rows_of(population: Population, name: str, n: int, at: str = "") -> Iterator[Row]:
    """Yield a row for each number of documents: averages over draws."""
    truth = true_answers(population.whole)
    for kind in DOCUMENTS:
        rng, draws = generator("steps", at, kind), []
        for _ in range(n):
            tested = population.tested(population.draw(kind, rng))
            single = of_single_tests(tested, population.whole, at) if at else {}
            draws.append(wrong(tested, truth) | single)
        yield {"sample": f"{name}, {kind}", **averaged(draws)}


def of_arcs(scores: HeadScores) -> HeadScores:
    """Return the roles of arcs, their contrasts and their controls, which have no contrasts."""
    roles = [role.id for role in scores.roles if role.relation and not is_control_contrast(role)]
    return scores.select(roles=roles)


def is_control_contrast(role: Role) -> bool:
    """Tell whether a role is a contrast of a control."""
    return bool(role.control and role.contrast)


def at_limit(scores: HeadScores, at: str) -> HeadScores:
    """Move half of the heads and roles to the limit of a quantity; all else lies well above.

    No bounds hold for such scores.
    """
    values = scores.values.astype(np.float64)
    shape = values.shape[1:3]
    limits = {MEAN: scores.score.threshold}
    of_control = {role.parent: k for k, role in enumerate(scores.roles) if role.control}
    for place, role in enumerate(scores.roles):
        name = MEAN if role.is_tested else role.contrast
        if role.control or not name:
            continue
        is_at = halves(role.parent or role.id, shape) & (name == at)
        limit = limits.get(name, scores.score.margin)
        values[..., place] += shift_of(values[..., place], limit, is_at)
    for place, role in enumerate(scores.roles):  # after all means have moved
        if role.is_tested and role.id in of_control:
            control = values[..., of_control[role.id]]
            is_at = halves(role.id, shape) & (at == BEYOND_TREES)
            control -= shift_of(values[..., place] - control, scores.score.margin, is_at)
    return replace(scores, values=values.astype(np.float32), bounds=None)


def halves(role: str, shape: tuple[int, ...]) -> BoolArray:
    """Return the heads (layers, heads) whose role lies at a limit."""
    return np.asarray(generator("half at limit", role).random(shape) < 0.5)


def shift_of(values: Any, limit: float, is_at: BoolArray) -> FloatArray:
    """Return shifts (layers, heads) of values (examples, layers, heads) to the limit, or above."""
    n = np.maximum(1, (~np.isnan(values)).sum(axis=0))
    mean = np.nansum(values, axis=0) / n
    sd = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / n)
    return np.asarray(limit + np.where(is_at, 0.0, AWAY * sd) - mean)


def true_answers(tested: RoleHypotheses) -> dict[str, BoolArray]:
    """Tell for which columns (T,) each answer and step is right."""
    mean, limit = tested.means.moments.mean, tested.means.threshold
    is_true, legs = mean > limit + ROUNDING, tested.legs
    above = {
        name: np.nan_to_num(leg.spread(leg.hypotheses.moments.mean), nan=np.inf)
        - leg.hypotheses.threshold[0]
        for name, leg in legs.items()
    }
    lowest = np.min([above[name] for name in CONTRASTS[DISTANCE] if name in above], axis=0)
    truth = {NO: mean < limit - ROUNDING, POSITIONAL: is_true & (lowest < -ROUNDING)}
    for step in STEPS:
        for name in CONTRASTS[step]:
            is_true = is_true & (above.get(name, np.full(len(mean), -np.inf)) > ROUNDING)
        truth[step] = is_true
    return truth


def wrong(tested: RoleHypotheses, truth: dict[str, BoolArray]) -> Figures:
    """Return of each answer and step the wrong share, tables with a wrong one, and those found."""
    options = TestOptions()
    answered = tested.answered(options)
    steps = tested.steps(answered.above, options)
    evidence = evidence_of(answered.answers, steps, ~np.isnan(tested.beyond), ALPHA)
    shown = {word: answered.answers == word for word in (NO, POSITIONAL)}
    shown[DISTANCE] = answered.answers == YES
    shown[CLASS] = np.isin(evidence, (CLASS, ATTRACTORS))
    shown[ATTRACTORS] = evidence == ATTRACTORS
    figures: Figures = {}
    for name, own in shown.items():
        figures[f"{name}, wrong"] = share_of(own & ~truth[name], own)
        figures[f"{name}, tables"] = float((own & ~truth[name]).any())
        figures[f"{name}, found"] = share_of(own & truth[name], truth[name])
    return figures


def of_single_tests(tested: RoleHypotheses, whole: RoleHypotheses, at: str) -> Figures:
    """Return the share of single tests at the limit that reject H0 at 5 %, on either side."""
    own, population = (
        one.means if at == MEAN else one.legs[at].hypotheses for one in (tested, whole)
    )
    is_at = np.abs(population.moments.mean - population.threshold) < ROUNDING
    figures: Figures = {}
    for side in SIDES:
        p = find_p_values(own, TestOptions(), side).single
        figures[f"single tests, {side}"] = np.where(is_at & ~np.isnan(p), p <= ALPHA, np.nan)
    return figures


STUDIES: dict[str, tuple[Study, int]] = {
    "steps": (study_steps, 20),
    "limits": (study_limits, 20),
}
