"""Relative drops of several tasks as a table, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import FloatArray
from headroles.inference.combined import contrast_sample
from headroles.inference.sample import Sample
from headroles.studies.importance.ablation import Ablations
from headroles.studies.importance.measures import (
    BETTER,
    LESS,
    LOSS,
    MORE,
    WORSE,
    find_measures,
    unit_values,
    worse_by,
)
from headroles.studies.importance.options import TaskDropOptions
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences


def make_table(
    ablations: Sequence[Ablations],
    names: Sequence[str],
    removals: Sequence[tuple[str, str]],
    measures: Sequence[str],
    options: TaskDropOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each of ``measures``, removal and task; warnings."""
    frames, warnings = [], []
    for measure in measures:
        tasks = [
            _of_task(one, name, removals, measure, options)
            for one, name in zip(ablations, names, strict=True)
        ]
        frame = pd.concat([one.frame for one in tasks], ignore_index=True).assign(measure=measure)
        changes = Hypotheses.joined([one.changes for one in tasks])
        warnings += warn_of_differences(changes, options)
        changed = find_p_values(changes, options, "two-sided")
        deviating = _deviations([one.drops for one in tasks], removals)
        deviated = find_p_values(deviating, options, "two-sided")
        limits = deviating.intervals(options.alpha)
        frame = frame.assign(
            p_value=changed.single,
            p_adjusted=changed.adjusted,
            answer=answers(changed.shows(options.alpha), frame["relative_drop"], (WORSE, BETTER)),
            deviation=deviating.moments.mean,
            deviation_low=limits.ci_low,
            deviation_high=limits.ci_high,
            p_deviation=deviated.single,
            p_deviation_adjusted=deviated.adjusted,
            deviates=answers(deviated.shows(options.alpha), deviated.direction, (MORE, LESS)),
            note=find_notes(changes),
        )
        at = frame["removed"].map({name: k for k, name in enumerate(frame["removed"].unique())})
        frames.append(frame.iloc[np.argsort(at.to_numpy(), kind="stable")])
    return pd.concat(frames, ignore_index=True), list(dict.fromkeys(warnings))


def measures_of(
    ablations: Sequence[Ablations], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the loss and the metrics that all tasks have, and warnings about skipped metrics.

    A metric of 0 or below has no relative drop.
    """
    metrics = [one.record.task.metrics for one in ablations]
    usable, warnings = [LOSS], []
    for metric in [name for name in metrics[0] if all(name in own for own in metrics)]:
        reached = [one.ablated.measured[metric] for one in ablations]
        failed = [name for name, value in zip(names, reached, strict=True) if value <= 0]
        if failed:
            warnings.append(
                f"{metric} is skipped: the whole model does not exceed 0 in {', '.join(failed)}, "
                "and so has nothing to lose"
            )
        else:
            usable.append(metric)
    return usable, warnings


class _Task(NamedTuple):
    """The rows of one task; its relative drops (units, removals), and changes of the measure."""

    frame: pd.DataFrame
    drops: Hypotheses
    changes: Hypotheses


def _of_task(
    one: Ablations,
    name: str,
    removals: Sequence[tuple[str, str]],
    measure: str,
    options: TaskDropOptions,
) -> _Task:
    (outcomes, targets), asked = one.examples, [] if measure == LOSS else [measure]
    pairs = list(zip(one.frame["set"], one.frame["removed"], strict=True))
    rows = np.array([0, *(1 + pairs.index(pair) for pair in removals)])
    values = unit_values(outcomes, targets, asked)[measure][:, rows]
    found = find_measures(outcomes, targets, asked)[measure][rows]
    size = size_of(values[:, 1:], values[:, :1])
    drops = Hypotheses.of(relative_drops(values, found, measure), 0.0, size=size / abs(found[0]))
    limits = drops.intervals(options.alpha)
    # A drop to 0 is a ratio of 1 for any draw of examples: it has no error.
    low, high = (np.where(drops.is_tested, end, np.nan) for end in (limits.ci_low, limits.ci_high))
    # The ratio differs from 0 if the difference does, which has an error even after a drop to 0.
    change = worse_by(values[:, 1:] - values[:, :1], measure)
    changes = Hypotheses.of(change, 0.0, size=size, called=f"the differences of {measure}")
    columns: dict[str, Any] = {
        "set": [kind for kind, _ in removals],
        "removed": [removed for _, removed in removals],
        "task": name,
        "n": len(targets),
        "n_removed": one.frame["n_removed"].to_numpy()[rows[1:] - 1],
        "whole": found[0],
        "without": found[1:],
        "relative_drop": drops.moments.mean,
        "ci_low": low,
        "ci_high": high,
    }
    return _Task(pd.DataFrame(columns), drops, changes)


def relative_drops(values: FloatArray, measured: FloatArray, measure: str) -> FloatArray:
    """Return (units, S): values with the relative drops as means, and with their errors.

    ``values`` (units, 1 + S) and their measure (1 + S,) are of the whole model and of S removals.
    A ratio of means is linear in small changes of both (the delta method).
    """
    drops = worse_by(measured[1:] - measured[0], measure) / measured[0]
    around = values - values.mean(0)
    change = worse_by(around[:, 1:] - around[:, :1], measure)
    return np.asarray(drops + (change - drops * around[:, :1]) / measured[0])


def _deviations(drops: Sequence[Hypotheses], removals: Sequence[tuple[str, str]]) -> Hypotheses:
    """Test how much more each removal matters in each task than in the others."""
    kinds = np.array([kind for kind, _ in removals])
    n = len(drops)
    weights = np.eye(n) - (1 - np.eye(n)) / (n - 1)
    samples = [Sample.of(_less_mean(one.sample.values, kinds)) for one in drops]
    sizes = np.abs(weights) @ np.stack([one.size for one in drops])
    return Hypotheses.of(contrast_sample(samples, weights), 0.0, size=sizes.ravel())


def _less_mean(drops: NDArray[np.floating], kinds: NDArray[np.str_]) -> FloatArray:
    """Subtract the mean over the removals of the same set; NaN for a set of one."""
    found = np.full_like(drops, np.nan)
    for kind in np.unique(kinds):
        own = kinds == kind
        if own.sum() > 1:
            found[:, own] = drops[:, own] - drops[:, own].mean(1, keepdims=True)
    return found
