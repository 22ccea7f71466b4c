"""Studies of removed heads: orders, estimators of importance, learnt gates.

python -m docs.studies.removed orders --curves DIR [--measure accuracy] [--pairs ORDER,ORDER ...]
python -m docs.studies.removed estimators --importance DIR --ablation DIR [--splits 200]
python -m docs.studies.removed gates --model DIR --learn-on FILE --test-on FILE [--keep 12 36]
    [--seeds 3] [--updates 200] [--draws 3] [--examples N] [--update-examples 32]

orders      of `headroles pruning-curves`: the measure of every order less that of the whole model,
            and for every pair of orders the first less the second, over examples and draws
estimators  of `headroles importance` and `headroles ablate --sets single` for the same examples:
            rank correlations over heads of every estimator with the rise of the loss without each
            head, and with the mean of its absolute value; on the same examples, and, mean over
            splits, one on a random half and the other on the other half
gates       learnt gates against greedy pruning at the same numbers of heads, over examples and
            seeds or draws, and how many heads two seeds share

p-values have Holm's correction over a table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import stats

from docs.studies.simulations import Row, markdown
from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.inference import (
    adjust_p_values,
    crossed_sample,
    t_interval,
    t_test,
)
from headroles.models.heads.remaining import Head
from headroles.studies.importance.ablate import Ablations
from headroles.studies.importance.importance import ESTIMATORS, Importance, values_of
from headroles.studies.pruning.gate import GateOptions, learn_gates
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.pruning.pruning_curves import PruningCurves
from headroles.studies.removals import without_each
from headroles.tasks.running import TaskRun, open_run

WHOLE = "whole model"
RISE, SIZE = "rise of the loss", "size of the change"
BASE, GATES, RANDOM = "reestimated", "gates", "random"


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=STUDIES)
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--measure", help="left out: the first metric of the task")
    parser.add_argument("--pairs", nargs="*", default=[], help="two orders, with a comma between")
    parser.add_argument("--importance", type=Path)
    parser.add_argument("--ablation", type=Path)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--learn-on", type=Path)
    parser.add_argument("--test-on", type=Path)
    parser.add_argument("--keep", type=int, nargs="+", default=[12, 36])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--examples", type=int)
    parser.add_argument("--update-examples", type=int, default=32)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for rows in STUDIES[given.what](given):
        print(markdown(rows), end="\n\n", flush=True)


def with_p(rows: list[Row], p_values: list[float]) -> list[Row]:
    """Add p-values to rows, with Holm's correction."""
    adjusted = adjust_p_values(np.array(p_values), "holm")
    cells = ["" if np.isnan(p) else f"{p:.2g}" for p in adjusted]
    return [{**row, "p": cell} for row, cell in zip(rows, cells, strict=True)]


# Orders


def orders(given: argparse.Namespace) -> Iterator[list[Row]]:
    """Yield a table of orders less the whole model, and one of pairs of orders."""
    curves = PruningCurves.load(given.curves)
    pairs = [tuple(pair.split(",")) for pair in given.pairs]
    for asked in ([(order, WHOLE) for order in curves.options.orders], pairs):
        if asked:
            yield contrasts(curves, given.measure or curves.measure, asked)


def contrasts(curves: PruningCurves, measure: str, pairs: list[tuple[str, ...]]) -> list[Row]:
    """Return a row for each pair of orders and share."""
    if curves.outcomes is None:
        raise UsageError("the folder lacks the values of examples; make the curves again")
    metrics = curves.record.task.metrics
    values = curves.outcomes.measures(metrics)[measure]
    units = curves.outcomes.units(metrics)[measure]
    rows: list[Row] = []
    p_values = []
    for first, second in pairs:
        for share in curves.options.shares:
            own, those = (settings_of(curves, order, share) for order in (first, second))
            tested = crossed_sample((units[:, own] - units[:, those])[..., None])
            # Values with a bias of their own are not the centers of their intervals.
            difference = values[own].mean() - values[those].mean()
            reach = (t_interval(tested).ci_high - tested.moments.mean)[0]
            low, high = difference - reach, difference + reach
            rows.append(
                {
                    "order": first,
                    "less": second,
                    "share": f"{share:.0%}",
                    measure: f"{values[own].mean():.3f} less {values[those].mean():.3f}",
                    "difference, 95 %": f"{difference:+.3f} ({low:+.3f} to {high:+.3f})",
                }
            )
            p_values.append(float(t_test(tested, 0, alternative="two-sided").p_value[0]))
    return with_p(rows, p_values)


def settings_of(curves: PruningCurves, order: str, share: float) -> list[int]:
    """Return the settings of the draws of an order; for the whole model its only setting."""
    if order == WHOLE:
        return [0]
    settings = [
        point["setting"]
        for point in curves.facts["points"]
        if point["order"] == order and np.isclose(point["share"], share)
    ]
    if not settings:
        orders = ", ".join(curves.options.orders)
        raise UsageError(f"the order is {order!r}; it must be one of {orders} (--pairs)")
    return settings


# Estimators


def estimators(given: argparse.Namespace) -> Iterator[list[Row]]:
    """Yield the rises, correlations with rise and size, and those of estimators."""
    values = by_example(Importance.load(given.importance), Ablations.load(given.ablation))
    means = {name: own.mean(0) for name, own in values.items()}
    rises = means[RISE]
    yield [
        {
            "examples": len(values[RISE]),
            "heads": len(rises),
            "removals that lower the loss": int((rises < 0).sum()),
            "change of the loss": f"{rises.min():+.4f} to {rises.max():+.4f}",
        }
    ]
    yield [with_target(values, target, given.splits) for target in (RISE, SIZE)]
    correlations = pd.DataFrame(means).corr("spearman").round(2)
    yield correlations.reset_index(names="over heads").to_dict("records")  # type: ignore[misc]


def by_example(importance: Importance, ablations: Ablations) -> dict[str, FloatArray]:
    """Return (examples, heads) of every estimator, and of the change of the loss."""
    first, second = importance.record, ablations.record
    if (first.corpus, first.model) != (second.corpus, second.model):
        raise UsageError("importance and ablation are of other models or examples; take the same")
    if importance.derivatives is None or ablations.outcomes is None:
        raise UsageError("the folders lack the values of examples; make them again")
    single = np.flatnonzero(ablations.frame["set"] == "single")
    rows = ablations.frame.iloc[single]
    heads = (rows["layer"] * first.heads + rows["head"]).to_numpy()
    losses = ablations.outcomes.losses
    changes = losses[:, 1 + single] - losses[:, :1]
    found = {name: values_of(importance.derivatives, name)[:, heads] for name in ESTIMATORS}
    return {**found, RISE: changes, SIZE: np.abs(changes)}


def with_target(values: dict[str, FloatArray], target: str, n_splits: int) -> Row:
    """Correlate each estimator with a target, in brackets on other examples, and it with itself."""
    row: Row = {"with": target}
    those = values[target]
    for name in (*ESTIMATORS, target):
        across = [
            correlation(values[name][one], those[other])
            for one, other in halves(len(those), n_splits)
        ]
        same = "" if name == target else f"{correlation(values[name], those):.2f} "
        row["itself" if name == target else name] = f"{same}({np.mean(across):.2f})"
    return row


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Correlate the means over examples, over heads."""
    return float(stats.spearmanr(first.mean(0), second.mean(0)).statistic)


def halves(n: int, n_splits: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield random halves of the examples, and the others."""
    rng = np.random.default_rng(0)
    for _ in range(n_splits):
        order = rng.permutation(n)
        yield order[: n // 2], order[n // 2 :]


# Gates


def gates(given: argparse.Namespace) -> Iterator[list[Row]]:
    """Learn gates, prune, and yield a table of both."""
    options = GateOptions(
        keep=1,
        updates=given.updates,
        examples=given.examples,
        update_examples=given.update_examples,
    )
    learnt = open_run(given.model, given.learn_on, options)
    tested = open_run(given.model, given.test_on, replace(options, examples=None))
    rows: list[Row] = []
    p_values: list[float] = []
    for keep in given.keep:
        chosen = choices(learnt, replace(options, keep=keep), given.seeds, given.draws)
        for row, p in compared(tested, keep, chosen):
            rows.append(row)
            p_values.append(p)
    yield with_p(rows, p_values)


def choices(
    run: TaskRun, options: GateOptions, n_seeds: int, n_draws: int
) -> dict[str, list[list[Head]]]:
    """Return the heads that each way removes, for every seed or draw; print what is shared."""
    heads = run.heads
    n_removed = len(heads) - options.n_kept
    greedy = PruneOptions(keep=options.n_kept)
    learnt = [learn_gates(run, options, seed) for seed in range(n_seeds)]
    kept = [{*gates.kept} for gates in learnt]
    drawn = [replace(greedy, seed=draw) for draw in range(n_draws)]
    removed = {
        GATES: [[head for head in heads if head not in own] for own in kept],
        "importance": [choose_heads("importance", n_removed, heads, greedy, run)],
        BASE: [choose_heads(BASE, n_removed, heads, greedy, run)],
        RANDOM: [choose_heads(RANDOM, n_removed, heads, own) for own in drawn],
    }
    left = {*heads} - {*removed[BASE][0]}
    print(
        f"{options.n_kept} heads: losses on the task {[round(gates.loss, 3) for gates in learnt]}, "
        f"open by the rule {[gates.n_open for gates in learnt]}; "
        f"shared by two seeds {[len(own & other) for own, other in combinations(kept, 2)]}, "
        f"with {BASE} {[len(own & left) for own in kept]}, "
        f"expected {options.n_kept**2 / len(heads):.1f}",
        flush=True,
    )
    return removed


def compared(
    run: TaskRun, keep: int, chosen: dict[str, list[list[Head]]]
) -> Iterator[tuple[Row, float]]:
    """Yield a row for each way, with its p-value."""
    found = {
        name: run.outcomes(without_each(removed, run.shape)) for name, removed in chosen.items()
    }
    base = found[BASE].losses
    for name, outcomes in found.items():
        accuracies = (outcomes.predictions == run.targets[:, None]).mean(0)
        row: Row = {
            "heads": keep,
            "order": name,
            "accuracy": f"{accuracies.mean():.3f}",
            "over seeds": f"{accuracies.min():.3f} to {accuracies.max():.3f}",
            "loss": f"{outcomes.losses.mean():.3f}",
        }
        p = np.nan
        if name != BASE:
            tested = crossed_sample((outcomes.losses - base)[..., None])
            reach = t_interval(tested)
            row[f"loss less {BASE}"] = f"{reach.ci_low[0]:+.3f} to {reach.ci_high[0]:+.3f}"
            p = float(t_test(tested, 0, alternative="two-sided").p_value[0])
        yield row, p


STUDIES = {"orders": orders, "estimators": estimators, "gates": gates}

if __name__ == "__main__":
    main()
