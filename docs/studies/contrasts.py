"""Costs of orders of removing heads, beside the whole model and beside one another.

python -m docs.studies.contrasts --curves DIR [--measure accuracy] [--pairs ORDER,ORDER ...]

Reads what `headroles pruning-curves` wrote and runs no model. At every share: the measure of every
order less that of the whole model, and for every pair of orders the first less the second. Tests
are paired by example and made over examples and draws, as those of the command; p-values have
Holm's correction over the rows of a table. docs/removing-heads-measured.md discusses the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.inference import adjust_p_values, crossed_sample, t_interval, t_test
from headroles.studies.pruning.pruning_curves import PruningCurves

WHOLE = "whole model"


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--measure", help="left out: the first metric of the task")
    parser.add_argument("--pairs", nargs="*", default=[], help="two orders, with a comma between")
    given = parser.parse_args()
    curves = PruningCurves.load(given.curves)
    measure = given.measure or curves.measure
    pairs = [tuple(pair.split(",")) for pair in given.pairs]
    for asked in ([(order, WHOLE) for order in curves.options.orders], pairs):
        if asked:
            table = contrasts(curves, measure, asked)
            print(table.to_markdown(index=False, disable_numparse=True), end="\n\n")


def contrasts(
    curves: PruningCurves, measure: str, pairs: Sequence[tuple[str, ...]]
) -> pd.DataFrame:
    """Return a row for each pair of orders and share."""
    if curves.outcomes is None:
        raise UsageError("the folder lacks the values of examples; make the curves again")
    metrics = curves.record.task.metrics
    values = curves.outcomes.measures(metrics)[measure]
    units = curves.outcomes.units(metrics)[measure]
    rows, p_values = [], []
    for one, other in pairs:
        for share in curves.options.shares:
            own, those = (settings_of(curves, order, share) for order in (one, other))
            tested = crossed_sample((units[:, own] - units[:, those])[..., None])
            # Values with a bias of their own are not the centers of their intervals.
            difference = values[own].mean() - values[those].mean()
            reach = (t_interval(tested).ci_high - tested.moments.mean)[0]
            low, high = difference - reach, difference + reach
            rows.append(
                {
                    "order": one,
                    "less": other,
                    "share": f"{share:.0%}",
                    measure: f"{values[own].mean():.3f} less {values[those].mean():.3f}",
                    "difference, 95 %": f"{difference:+.3f} ({low:+.3f} to {high:+.3f})",
                }
            )
            p_values.append(t_test(tested, 0, alternative="two-sided").p_value[0])
    adjusted = adjust_p_values(np.array(p_values), "holm")
    return pd.DataFrame(rows).assign(p=[f"{value:.2g}" for value in adjusted])


def settings_of(curves: PruningCurves, order: str, share: float) -> list[int]:
    """Return the settings of the draws of an order; for the whole model its only setting."""
    if order == WHOLE:
        return [0]
    found = [
        one["setting"]
        for one in curves.facts["points"]
        if one["order"] == order and np.isclose(one["share"], share)
    ]
    if not found:
        orders = ", ".join(curves.options.orders)
        raise UsageError(f"the order is {order!r}; it must be one of {orders} (--pairs)")
    return found


if __name__ == "__main__":
    main()
