"""Pruning curves as a table: values with intervals, and tests of orders against one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.studies.importance.measures import BETTER, WORSE, measured, unit_values, worse_by
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.curve_points import Points
from headroles.tasks.outcomes import FloatArray, Outcomes
from headroles.testing.answers import answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.intervals import find_intervals
from headroles.testing.notes import find_notes, warn_of_differences
from headroles.testing.options import TestOptions

COMPARED = tuple("difference difference_low difference_high p_value p_adjusted answer note".split())
NOT_COMPARED = ""


def make_table(
    points: Points,
    outcomes: Outcomes,
    targets: FloatArray,
    metrics: Sequence[str],
    options: CurveOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each measure, order and share, and for the mean over shares; warnings."""
    values = unit_values(outcomes, targets, metrics)
    found = measured(outcomes, targets, metrics)
    frames, warnings = [], []
    for measure, own in values.items():
        estimated = [_estimated(order, points, own, options) for order in options.orders]
        warnings += warn_of_differences(Hypotheses.joined(estimated), options)
        parts = [
            _of_order(order, points, found[measure], one, options)
            for order, one in zip(options.orders, estimated, strict=True)
        ]
        frame = pd.concat(parts, ignore_index=True)
        frame.insert(4, "measure", measure)
        frame.insert(5, "n", len(targets))
        others = (frame["order"] != options.against).to_numpy()
        compared = _compared(points, found[measure], own, measure, options)
        for name, column in compared.items():
            frame[name] = NOT_COMPARED if name in ("answer", "note") else np.nan
            frame.loc[others, name] = column
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), list(dict.fromkeys(warnings))


def _estimated(order: str, points: Points, values: FloatArray, options: CurveOptions) -> Hypotheses:
    """Return the means of an order, over other examples and draws."""
    own = _with_mean(values[:, _settings(order, points, options)])
    return Hypotheses.of_crossed(own, size=size_of(own), called="the curves")


def _of_order(
    order: str, points: Points, found: FloatArray, estimated: Hypotheses, options: CurveOptions
) -> pd.DataFrame:
    """Return the values of an order; ``estimated`` has the errors of those ``found``."""
    own = _settings(order, points, options)
    by_draw, reach = _with_mean(found[own]), _reach(estimated, options)
    n_rows = by_draw.shape[-1]
    columns: dict[str, Any] = {
        "order": order,
        "share": [*options.shares, np.nan][:n_rows],
        "n_removed": [*(points.n_removed(share) for share in options.shares), -1][:n_rows],
        "draws": len(own),
        "value": by_draw.mean(0),
        "sd_draws": by_draw.std(0, ddof=1) if len(by_draw) > 1 else np.nan,
        "ci_low": by_draw.mean(0) - reach,
        "ci_high": by_draw.mean(0) + reach,
    }
    return pd.DataFrame(columns)


def _compared(
    points: Points, found: FloatArray, values: FloatArray, measure: str, options: CurveOptions
) -> dict[str, NDArray[Any]]:
    """Return columns of the differences of the other orders from ``against``."""
    base = _settings(options.against, points, options)
    parts, differences = [], []
    for order in options.orders:
        if order == options.against:
            continue
        # Draws of both orders have the same seeds, and the same examples to find orders with.
        own = _settings(order, points, options)
        pair = _with_mean(values[:, own]), _with_mean(values[:, base])
        parts.append(Hypotheses.of_crossed(pair[0] - pair[1], size=size_of(*pair)))
        differences.append(_with_mean(found[own]).mean(0) - _with_mean(found[base]).mean(0))
    if not parts:
        return dict.fromkeys(COMPARED, np.empty(0))
    tests, difference = Hypotheses.joined(parts), np.concatenate(differences)
    tested, reach = find_p_values(tests, options, "two-sided"), _reach(tests, options)
    is_worse = worse_by(difference, measure)
    columns = (
        difference,
        difference - reach,
        difference + reach,
        tested.single,
        tested.adjusted,
        answers(tested.shows(options.alpha), is_worse, (WORSE, BETTER)),
        find_notes(tests),
    )
    return dict(zip(COMPARED, columns, strict=True))


def _settings(order: str, points: Points, options: CurveOptions) -> NDArray[np.intp]:
    """Return (draws, shares): where each draw of an order was run at each share."""
    return np.array([points.settings(order, share) for share in options.shares]).T


def _with_mean(values: FloatArray) -> FloatArray:
    """Append to values (..., shares) their mean, if there are several shares."""
    if values.shape[-1] == 1:  # The same test twice would count twice in the correction.
        return values
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def _reach(hypotheses: Hypotheses, options: CurveOptions) -> FloatArray:
    """Return half the lengths of intervals."""
    found = find_intervals(hypotheses, TestOptions(alpha=options.alpha))
    return found.ci_high - hypotheses.moments.mean
