"""How much is lost when heads are pruned in different orders, tested against random ones.

python -m docs.studies.pruning --model DIR --order-on FILE --test-on FILE [--draws 5]
    [--orders NAME ...] [--examples N] [--shares 0.25 0.5 0.75 0.83]
    [--text-columns N --label-column N --no-header]

The orders that need a task are found on one file, and the models without the heads are measured on
another. The losses of examples are compared with their mean under as many random orders as there
are draws, by paired t-tests with Holm's correction over all orders and shares. Roles of the heads
are not needed. What comes of it is discussed in docs/removing-heads.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from headroles.studies.removal import PruneOptions
from headroles.studies.removal.orders import choose_heads, present_heads, rises_of, sorted_by
from headroles.tasks import TaskRun, open_run
from headroles.testing import Hypotheses, TestOptions, find_intervals, find_p_values

ORDERS = {
    "importance": {"order": "importance"},
    "importance, l2": {"order": "importance", "normalisation": "l2"},
    "importance, signed": {"order": "importance", "estimator": "signed"},
    "importance, token": {"order": "importance", "estimator": "token"},
    "reestimated": {"order": "reestimated"},
    "bottom": {"order": "bottom"},
    "top": {"order": "top"},
    "middle": {"order": "middle"},
    "both_ends": {"order": "both_ends"},
}
RANDOM, ABLATION = "random", "ablation"


def main() -> None:
    """Parse the command line, prune, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--order-on", type=Path, required=True)
    parser.add_argument("--test-on", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 0.75, 0.83])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--examples", type=int, default=None)
    parser.add_argument("--orders", nargs="+", default=[*ORDERS, ABLATION])
    parser.add_argument("--text-columns")
    parser.add_argument("--label-column")
    parser.add_argument("--no-header", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    options = PruneOptions(
        keep=1,
        examples=given.examples,
        text_columns=given.text_columns,
        label_column=given.label_column,
        header=not given.no_header,
    )
    ordered = open_run(given.model, given.order_on, options)
    tested = open_run(given.model, given.test_on, replace(options, examples=None))
    made = table(ordered, tested, options, given.shares, given.draws, given.orders)
    print(made.to_markdown(index=False))


def table(
    ordered: TaskRun,
    tested: TaskRun,
    options: PruneOptions,
    shares: list[float],
    draws: int,
    orders: list[str],
) -> pd.DataFrame:
    """A row for each share and order."""
    heads = present_heads(ordered)
    by_ablation = sorted_by(rises_of(ordered), heads) if ABLATION in orders else []
    gates, names = [torch.ones(ordered.shape)], [("whole", 0.0)]
    for share in shares:
        n_removed = round(share * len(heads))
        chosen = [
            (
                name,
                choose_heads(asked["order"], n_removed, heads, replace(options, **asked), ordered),
            )
            for name, asked in ORDERS.items()
            if name in orders
        ]
        if ABLATION in orders:
            chosen.append((ABLATION, by_ablation[:n_removed]))
        for draw in range(draws):
            asked = replace(options, seed=draw)
            chosen.append((RANDOM, choose_heads(RANDOM, n_removed, heads, asked)))
        for name, removed in chosen:
            setting = torch.ones(ordered.shape)
            for head in removed:
                setting[head] = 0
            gates.append(setting)
            names.append((name, share))
    found = tested.outcomes(torch.stack(gates))
    right = found.predictions == tested.targets[:, None]
    rows, differences = [], []
    for share in shares:
        at_random = [place for place, name in enumerate(names) if name == (RANDOM, share)]
        base = found.losses[:, at_random].mean(1)
        for name in [*orders, RANDOM]:
            places = [place for place, one in enumerate(names) if one == (name, share)]
            accuracies = right[:, places].mean(0)
            metrics = tested.measure(found, places[0])
            rows.append(
                {
                    "share pruned": share,
                    "order": name,
                    "accuracy": accuracies.mean().round(3),
                    "over draws": f"{accuracies.min():.3f} to {accuracies.max():.3f}",
                    "Matthews": round(metrics["matthews"], 3) if name != RANDOM else np.nan,
                    "loss": found.losses[:, places].mean().round(3),
                }
            )
            differences.append(found.losses[:, places].mean(1) - base)
    return with_tests(pd.DataFrame(rows), np.stack(differences, axis=1), right[:, 0].mean())


def with_tests(rows: pd.DataFrame, differences: np.ndarray, whole: float) -> pd.DataFrame:
    """The rows with tests of the losses less those at random."""
    others = np.flatnonzero(rows["order"] != RANDOM)
    asked = TestOptions(correction="holm", clusters="none")
    hypotheses = Hypotheses.of(
        differences[:, others], 0.0, labels=np.zeros(len(others), dtype=np.intp), names=("orders",)
    )
    p_values = find_p_values(hypotheses, asked, "two-sided").adjusted
    intervals = find_intervals(hypotheses, asked)
    for place, row in enumerate(others):
        low, high = intervals.ci_low[place], intervals.ci_high[place]
        rows.loc[row, "loss less random"] = f"{low:+.3f} to {high:+.3f}"
        rows.loc[row, "p (Holm)"] = f"{p_values[place]:.2g}"
    print(f"accuracy of the whole model: {whole:.3f}\n")
    return rows


if __name__ == "__main__":
    main()
