"""Pruning curves as a table: values with intervals, and tests of orders against one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.arrays import FloatArray, IndexArray
from headroles.studies.importance.measures import (
    BETTER,
    WORSE,
    find_measures,
    unit_values,
    worse_by,
)
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.curve_points import Point
from headroles.tasks.outcomes import Outcomes
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.intervals import find_intervals
from headroles.testing.notes import find_notes, warn_of_differences
from headroles.testing.options import TestOptions

COMPARED = tuple("difference difference_low difference_high p_value p_adjusted answer note".split())
NOT_COMPARED = ""


def make_table(
    points: Sequence[Point],
    outcomes: Outcomes,
    targets: FloatArray,
    metrics: Sequence[str],
    options: CurveOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each measure, order and share, and for the mean over shares; warnings."""
    values = unit_values(outcomes, targets, metrics)
    reached = find_measures(outcomes, targets, metrics)
    settings = {order: _settings(order, points, options) for order in options.orders}
    n_removed = [
        next(len(one.removed) for one in points if one.share == share) for share in options.shares
    ]
    frames, warnings = [], []
    for measure, own in values.items():
        curves = {order: _with_mean(own[:, at]) for order, at in settings.items()}
        found = {order: _with_mean(reached[measure][at]) for order, at in settings.items()}
        estimated = [
            Hypotheses.of_crossed(curve, size=size_of(curve), called="the curves")
            for curve in curves.values()
        ]
        warnings += warn_of_differences(Hypotheses.joined(estimated), options)
        of_orders = [
            _of_order(order, found[order], n_removed, tests, options)
            for order, tests in zip(curves, estimated, strict=True)
        ]
        frame = pd.concat(of_orders, ignore_index=True)
        frame.insert(4, "measure", measure)
        frame.insert(5, "n", len(targets))
        others = (frame["order"] != options.against).to_numpy()
        for name, column in _compared(curves, found, measure, options).items():
            frame[name] = NOT_COMPARED if name in ("answer", "note") else np.nan
            frame.loc[others, name] = column
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), list(dict.fromkeys(warnings))


def _of_order(
    order: str,
    found: FloatArray,
    n_removed: Sequence[int],
    estimated: Hypotheses,
    options: CurveOptions,
) -> pd.DataFrame:
    """Return the rows of an order; ``estimated`` has the errors of ``found`` (draws, shares)."""
    n_draws, n_rows = found.shape
    value, reach = found.mean(0), _reach(estimated, options)
    columns: dict[str, Any] = {
        "order": order,
        "share": [*options.shares, np.nan][:n_rows],
        "n_removed": [*n_removed, -1][:n_rows],
        "draws": n_draws,
        "value": value,
        "sd_draws": found.std(0, ddof=1) if n_draws > 1 else np.nan,
        "ci_low": value - reach,
        "ci_high": value + reach,
    }
    return pd.DataFrame(columns)


def _compared(
    curves: Mapping[str, FloatArray],
    found: Mapping[str, FloatArray],
    measure: str,
    options: CurveOptions,
) -> dict[str, NDArray[Any]]:
    """Return columns of the differences of the other orders from ``against``."""
    base, others = options.against, [order for order in curves if order != options.against]
    if not others:
        return dict.fromkeys(COMPARED, np.empty(0))
    # Draws of all orders have the same seeds, and the same examples to find orders with.
    pairs = [(curves[order], curves[base]) for order in others]
    tests = Hypotheses.joined(
        [Hypotheses.of_crossed(one - other, size=size_of(one, other)) for one, other in pairs]
    )
    difference = np.concatenate([found[order].mean(0) - found[base].mean(0) for order in others])
    tested, reach = find_p_values(tests, options, "two-sided"), _reach(tests, options)
    columns = (
        difference,
        difference - reach,
        difference + reach,
        tested.single,
        tested.adjusted,
        answers(tested.shows(options.alpha), worse_by(difference, measure), (WORSE, BETTER)),
        find_notes(tests),
    )
    return dict(zip(COMPARED, columns, strict=True))


def _settings(order: str, points: Sequence[Point], options: CurveOptions) -> IndexArray:
    """Return the settings (draws, shares) of an order."""
    by_share = [
        [one.setting for one in points if (one.order, one.share) == (order, share)]
        for share in options.shares
    ]
    return np.array(by_share).T


def _with_mean(values: FloatArray) -> FloatArray:
    """Append to values (..., shares) their mean, if there are several shares."""
    if values.shape[-1] == 1:  # The same test twice would count twice in the correction.
        return values
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def _reach(hypotheses: Hypotheses, options: CurveOptions) -> FloatArray:
    """Return half the lengths of intervals."""
    found = find_intervals(hypotheses, TestOptions(alpha=options.alpha))
    return found.ci_high - hypotheses.moments.mean
