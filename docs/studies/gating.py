"""Learnt gates against greedy pruning at the same numbers of heads, tested over examples.

python -m docs.studies.gating --model DIR --learn-on FILE --test-on FILE [--keep 12 36]
    [--seeds 3] [--updates 200] [--draws 3] [--examples N]

Gates are learnt and heads put in order on one file, and the models with the heads that are left are
measured on another. Losses of examples, means over seeds and draws, are compared with those of the
order ``reestimated`` by paired t-tests with Holm's correction over all others and numbers of heads.
What comes of it is discussed in docs/removing-heads.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from headroles.studies.removal import GateOptions, PruneOptions
from headroles.studies.removal.gates import learn_gates, without
from headroles.studies.removal.orders import Head, choose_heads, present_heads
from headroles.tasks import TaskRun, open_run
from headroles.testing import Hypotheses, TestOptions, find_intervals, find_p_values

BASE, GATES, RANDOM = "reestimated", "gates", "random"


def main() -> None:
    """Parse the command line, learn, prune, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--learn-on", type=Path, required=True)
    parser.add_argument("--test-on", type=Path, required=True)
    parser.add_argument("--keep", type=int, nargs="+", default=[12, 36])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--examples", type=int, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    asked = GateOptions(keep=1, updates=given.updates, examples=given.examples)
    learnt = open_run(given.model, given.learn_on, asked)
    tested = open_run(given.model, given.test_on, replace(asked, examples=None))
    rows, differences = [], []
    for keep in given.keep:
        chosen = choices(learnt, replace(asked, keep=keep), given.seeds, given.draws)
        made, losses = compare(tested, keep, chosen)
        rows += made
        differences += losses
    print(with_tests(pd.DataFrame(rows), differences).to_markdown(index=False))


def choices(
    run: TaskRun, options: GateOptions, n_seeds: int, n_draws: int
) -> dict[str, list[list[Head]]]:
    """The heads that each way removes, for every seed or draw."""
    heads = present_heads(run)
    n_removed = len(heads) - options.n_kept
    greedy = PruneOptions(keep=options.n_kept)
    learnt = [learn_gates(run, heads, options, seed) for seed in range(n_seeds)]
    shared = [len({*one.kept} & {*other.kept}) for one, other in combinations(learnt, 2)]
    print(
        f"{options.n_kept} heads: losses on the task {[round(one.loss, 3) for one in learnt]}, "
        f"open by the rule {[one.n_open for one in learnt]}, shared by two seeds {shared}"
    )
    return {
        GATES: [[head for head in heads if head not in one.kept] for one in learnt],
        "importance": [choose_heads("importance", n_removed, heads, greedy, run)],
        BASE: [choose_heads(BASE, n_removed, heads, greedy, run)],
        RANDOM: [
            choose_heads(RANDOM, n_removed, heads, replace(greedy, seed=draw))
            for draw in range(n_draws)
        ],
    }


def compare(
    run: TaskRun, keep: int, chosen: dict[str, list[list[Head]]]
) -> tuple[list[dict[str, object]], list[np.ndarray]]:
    """A row for each way, and its losses less those of the base (examples,)."""
    found = {
        name: run.outcomes(torch.stack([without(one, run.shape) for one in removed]))
        for name, removed in chosen.items()
    }
    base = found[BASE].losses.mean(1)
    rows: list[dict[str, object]] = []
    for name, one in found.items():
        accuracies = (one.predictions == run.targets[:, None]).mean(0)
        rows.append(
            {
                "heads": keep,
                "order": name,
                "accuracy": accuracies.mean().round(3),
                "over seeds": f"{accuracies.min():.3f} to {accuracies.max():.3f}",
                "loss": one.losses.mean().round(3),
            }
        )
    return rows, [one.losses.mean(1) - base for one in found.values()]


def with_tests(rows: pd.DataFrame, differences: list[np.ndarray]) -> pd.DataFrame:
    """The rows with tests of the losses less those of the base."""
    others = np.flatnonzero(rows["order"] != BASE)
    asked = TestOptions(correction="holm", clusters="none")
    hypotheses = Hypotheses.of(
        np.stack(differences, axis=1)[:, others],
        0.0,
        labels=np.zeros(len(others), dtype=np.intp),
        names=("orders",),
    )
    p_values = find_p_values(hypotheses, asked, "two-sided").adjusted
    intervals = find_intervals(hypotheses, asked)
    for place, row in enumerate(others):
        low, high = intervals.ci_low[place], intervals.ci_high[place]
        rows.loc[row, f"loss less {BASE}"] = f"{low:+.3f} to {high:+.3f}"
        rows.loc[row, "p (Holm)"] = f"{p_values[place]:.2g}"
    return rows


if __name__ == "__main__":
    main()
