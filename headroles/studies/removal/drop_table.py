"""Relative drops of several tasks as a table, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.inference import adjust_p_values, contrast_test
from headroles.studies.removal.ablation import Ablations
from headroles.studies.removal.ablation_options import TaskDropOptions
from headroles.studies.removal.measures import LOSS, measured, unit_values, worse_by
from headroles.tasks.outcomes import FloatArray
from headroles.testing import (
    Hypotheses,
    TestOptions,
    find_intervals,
    find_p_values,
)

COLUMNS = (
    "measure",
    "set",
    "removed",
    "task",
    "n",
    "n_removed",
    "whole",
    "without",
    "relative_drop",
    "ci_low",
    "ci_high",
    "p_value",
    "p_adjusted",
    "answer",
    "deviation",
    "deviation_low",
    "deviation_high",
    "p_deviation",
    "p_deviation_adjusted",
    "deviates",
)
WORSE, BETTER, UNDECIDED = "worse", "better", "undecided"
MORE, LESS = "more", "less"


def make_table(
    ablations: Sequence[Ablations],
    names: Sequence[str],
    removals: Sequence[tuple[str, str]],
    measures: Sequence[str],
    options: TaskDropOptions,
) -> pd.DataFrame:
    """A row for each of ``measures``, removal and task."""
    frames = []
    for measure in measures:
        tasks = [
            _of_task(one, name, removals, measure, options)
            for one, name in zip(ablations, names, strict=True)
        ]
        frame = pd.concat([frame for frame, _ in tasks], ignore_index=True)
        deviations = _deviations([values for _, values in tasks], removals, options)
        frames.append(_answered(frame.assign(measure=measure, **deviations), options))
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def measures_of(
    ablations: Sequence[Ablations], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The loss and the metrics that all tasks have, and what to say of those left out.

    Of what a whole model does not reach, no share can be lost.
    """
    metrics = [one.provenance["task"]["metrics"] for one in ablations]
    kept, told = [LOSS], []
    for metric in [name for name in metrics[0] if all(name in own for own in metrics)]:
        reached = [one.ablated["measured"][metric] for one in ablations]
        failed = [name for name, value in zip(names, reached, strict=True) if value <= 0]
        if failed:
            told.append(
                f"{metric} is left out: that of the whole model is not above 0 in "
                f"{', '.join(failed)}, so that no share of it can be lost"
            )
        else:
            kept.append(metric)
    return kept, told


def _of_task(
    one: Ablations,
    name: str,
    removals: Sequence[tuple[str, str]],
    measure: str,
    options: TaskDropOptions,
) -> tuple[pd.DataFrame, FloatArray]:
    """The rows of one task, and the values (units, removals) whose means are the drops."""
    (outcomes, targets), asked = one.examples, [] if measure == LOSS else [measure]
    pairs = list(zip(one.frame["set"], one.frame["removed"], strict=True))
    rows = np.array([pairs.index(pair) for pair in removals])
    values = unit_values(outcomes, targets, asked)[measure]
    found = measured(outcomes, targets, asked)[measure]
    drops = relative_drops(values[:, [0, *(rows + 1)]], found[[0, *(rows + 1)]], measure)
    asked_tests = TestOptions(alpha=options.alpha, correction="none", clusters="none")
    estimated = _hypotheses(drops)
    intervals = find_intervals(estimated, asked_tests)
    # Where all that there was is lost, nothing varies around the ratio, which has no error then.
    low, high = (
        np.where(estimated.is_tested, one, np.nan) for one in (intervals.ci_low, intervals.ci_high)
    )
    # A share is lost if anything is: the difference is tested, which has an error then too.
    changes = _hypotheses(worse_by(values[:, rows + 1] - values[:, :1], measure))
    columns: dict[str, Any] = {
        "set": [kind for kind, _ in removals],
        "removed": [removed for _, removed in removals],
        "task": name,
        "n": len(targets),
        "n_removed": one.frame["n_removed"].to_numpy()[rows],
        "whole": found[0],
        "without": found[rows + 1],
        "relative_drop": drops.mean(0),
        "ci_low": low,
        "ci_high": high,
        "p_value": find_p_values(changes, asked_tests, "two-sided").single,
    }
    return pd.DataFrame(columns), drops


def relative_drops(values: FloatArray, measured: FloatArray, measure: str) -> FloatArray:
    """(units, S): values whose means are the relative drops, and whose errors are theirs.

    ``values`` (units, 1 + S) and their measure (1 + S,) are those of the whole model and of S
    removals. A ratio of means is linear in small changes of both (the delta method).
    """
    drops = worse_by(measured[1:] - measured[0], measure) / measured[0]
    around = values - values.mean(0)
    change = worse_by(around[:, 1:] - around[:, :1], measure)
    return np.asarray(drops + (change - drops * around[:, :1]) / measured[0])


def _deviations(
    drops: Sequence[FloatArray], removals: Sequence[tuple[str, str]], options: TaskDropOptions
) -> dict[str, NDArray[Any]]:
    """How much more each removal matters in each task than in the others; (tasks * removals,)."""
    kinds = np.array([kind for kind, _ in removals])
    moments = [_hypotheses(_less_mean(own, kinds)).moments for own in drops]
    n = len(drops)
    found = contrast_test(
        np.stack([one.mean for one in moments]),
        np.stack([one.standard_error for one in moments]),
        np.stack([one.df for one in moments]),
        np.eye(n) - (1 - np.eye(n)) / (n - 1),
    )
    limits = found.interval(1 - options.alpha)
    return {
        "deviation": found.estimate.ravel(),
        "deviation_low": limits.ci_low.ravel(),
        "deviation_high": limits.ci_high.ravel(),
        "p_deviation": found.p_value.ravel(),
    }


def _less_mean(drops: FloatArray, kinds: NDArray[np.str_]) -> FloatArray:
    """Values less their mean over the removals of the same set; NaN for the only one of a set."""
    found = np.full_like(drops, np.nan)
    for kind in np.unique(kinds):
        own = kinds == kind
        if own.sum() > 1:
            found[:, own] = drops[:, own] - drops[:, own].mean(1, keepdims=True)
    return found


def _hypotheses(values: FloatArray) -> Hypotheses:
    labels = np.zeros(values.shape[1], dtype=np.intp)
    return Hypotheses.of(values, 0.0, labels=labels, names=("drops",))


def _answered(frame: pd.DataFrame, options: TaskDropOptions) -> pd.DataFrame:
    """The rows of one measure with corrected p-values and answers, removal by removal."""
    for name, value, words in (
        ("p_value", "relative_drop", ("answer", WORSE, BETTER)),
        ("p_deviation", "deviation", ("deviates", MORE, LESS)),
    ):
        single = frame[name].to_numpy(dtype=np.float64)
        adjusted = adjust_p_values(single, options.correction, alpha=options.alpha)
        shown = adjusted <= options.alpha
        column, above, below = words
        answers = np.select([shown & (frame[value] > 0), shown], [above, below], UNDECIDED)
        frame = frame.assign(**{f"{name.removesuffix('_value')}_adjusted": adjusted})
        frame = frame.assign(**{column: answers})
    order = frame["removed"].map({name: at for at, name in enumerate(frame["removed"].unique())})
    return frame.iloc[np.argsort(order.to_numpy(), kind="stable")]
