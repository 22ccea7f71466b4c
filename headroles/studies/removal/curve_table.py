"""Pruning curves as a table: values with intervals, and tests of orders against one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.inference import CrossedTest, adjust_p_values, crossed_t_test
from headroles.studies.removal.curve_options import CurveOptions
from headroles.studies.removal.curve_points import Points
from headroles.studies.removal.measures import measured, unit_values, worse_by
from headroles.tasks import Outcomes
from headroles.tasks.outcomes import FloatArray

COLUMNS = (
    "order",
    "share",
    "n_removed",
    "draws",
    "measure",
    "n",
    "value",
    "sd_draws",
    "ci_low",
    "ci_high",
    "difference",
    "difference_low",
    "difference_high",
    "p_value",
    "p_adjusted",
    "answer",
)
WORSE, BETTER, UNDECIDED, NOT_COMPARED = "worse", "better", "undecided", ""


def make_table(
    points: Points,
    outcomes: Outcomes,
    targets: FloatArray,
    metrics: Sequence[str],
    options: CurveOptions,
) -> pd.DataFrame:
    """A row for each measure, order and share, and one for the mean over several shares."""
    values = unit_values(outcomes, targets, metrics)
    found = measured(outcomes, targets, metrics)
    frames = []
    for measure, own in values.items():
        frame = pd.concat(
            [_of_order(order, points, found[measure], own, options) for order in options.orders],
            ignore_index=True,
        )
        frame.insert(4, "measure", measure)
        frame.insert(5, "n", len(targets))
        frames.append(_answered(frame, measure, options))
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def _of_order(
    order: str, points: Points, found: FloatArray, values: FloatArray, options: CurveOptions
) -> pd.DataFrame:
    # Both orders have one draw, or as many with the same seeds.
    own, base = (_settings(one, points, options) for one in (order, options.against))
    by_draw = _with_mean(found[own])
    reach = _reach(crossed_t_test(_with_mean(values[:, own])), options)
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
        "difference": np.nan,
        "difference_low": np.nan,
        "difference_high": np.nan,
        "p_value": np.nan,
    }
    if order != options.against:
        tested = crossed_t_test(_with_mean(values[:, own]) - _with_mean(values[:, base]))
        difference = by_draw.mean(0) - _with_mean(found[base]).mean(0)
        columns["difference"], columns["p_value"] = difference, tested.p_value
        columns["difference_low"] = difference - _reach(tested, options)
        columns["difference_high"] = difference + _reach(tested, options)
    return pd.DataFrame(columns)


def _settings(order: str, points: Points, options: CurveOptions) -> NDArray[np.intp]:
    """(draws, shares): where each draw of an order was run at each share."""
    return np.array([points.settings(order, share) for share in options.shares]).T


def _with_mean(values: FloatArray) -> FloatArray:
    """Values (..., shares), and as the last their mean over the shares if there are several."""
    if values.shape[-1] == 1:  # The same test twice would count twice in the correction.
        return values
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def _reach(tested: CrossedTest, options: CurveOptions) -> FloatArray:
    """Half the lengths of intervals. Values with a bias of their own are not their centers."""
    return tested.interval(1 - options.alpha).ci_high - tested.mean


def _answered(frame: pd.DataFrame, measure: str, options: CurveOptions) -> pd.DataFrame:
    """The frame of one measure with corrected p-values and answers."""
    adjusted = adjust_p_values(
        frame["p_value"].to_numpy(dtype=np.float64), options.correction, alpha=options.alpha
    )
    worse = worse_by(frame["difference"].to_numpy(dtype=np.float64), measure)
    differ = adjusted <= options.alpha
    cases = [(frame["order"] == options.against).to_numpy(), differ & (worse > 0), differ]
    answers = np.select(cases, [NOT_COMPARED, WORSE, BETTER], UNDECIDED)
    return frame.assign(p_adjusted=adjusted, answer=answers)
