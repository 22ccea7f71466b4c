"""Learnt gates against greedy pruning at the same numbers of heads, tested over examples.

python -m docs.studies.gating --model DIR --learn-on FILE --test-on FILE [--keep 12 36]
    [--seeds 3] [--updates 200] [--draws 3] [--examples N] [--update-examples 32]

Gates are learnt and heads put in order on one file, and the models with the remaining heads are
measured on another. Losses are compared with those of the order ``reestimated``, paired by example
and tested over examples and over seeds or draws, as `headroles pruning-curves` does; p-values have
Holm's correction over all others and numbers of heads. The study also prints how many heads two
seeds share, and a seed and ``reestimated``, beside the number expected of as many heads at random.
docs/removing-heads-measured.md discusses the results.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from headroles.inference import adjust_p_values, crossed_sample, t_interval, t_test
from headroles.models.heads.remaining import Head
from headroles.studies.pruning.gate import GateOptions, learn_gates
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.removals import without_each
from headroles.tasks.running import TaskRun, open_run

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
    parser.add_argument("--update-examples", type=int, default=32)
    given = parser.parse_args()
    torch.set_num_threads(1)
    asked = GateOptions(
        keep=1,
        updates=given.updates,
        examples=given.examples,
        update_examples=given.update_examples,
    )
    learnt = open_run(given.model, given.learn_on, asked)
    tested = open_run(given.model, given.test_on, replace(asked, examples=None))
    rows = []
    for keep in given.keep:
        chosen = choices(learnt, replace(asked, keep=keep), given.seeds, given.draws)
        rows += compare(tested, keep, chosen)
    table = pd.DataFrame(rows)
    table["p (Holm)"] = adjust_p_values(table["p (Holm)"].to_numpy(), "holm")
    print("\n" + table.to_markdown(index=False, floatfmt=("", "", ".3f", "", ".3f", "", ".2g")))


def choices(
    run: TaskRun, options: GateOptions, n_seeds: int, n_draws: int
) -> dict[str, list[list[Head]]]:
    """Return the heads that each way removes, for every seed or draw."""
    heads = run.heads
    n_removed = len(heads) - options.n_kept
    greedy = PruneOptions(keep=options.n_kept)
    learnt = [learn_gates(run, options, seed) for seed in range(n_seeds)]
    found = {
        GATES: [[head for head in heads if head not in one.kept] for one in learnt],
        "importance": [choose_heads("importance", n_removed, heads, greedy, run)],
        BASE: [choose_heads(BASE, n_removed, heads, greedy, run)],
        RANDOM: [
            choose_heads(RANDOM, n_removed, heads, replace(greedy, seed=draw))
            for draw in range(n_draws)
        ],
    }
    kept = [{*one.kept} for one in learnt]
    left = {*heads} - {*found[BASE][0]}
    print(
        f"{options.n_kept} heads: losses on the task {[round(one.loss, 3) for one in learnt]}, "
        f"open by the rule {[one.n_open for one in learnt]}; "
        f"shared by two seeds {[len(one & other) for one, other in combinations(kept, 2)]}, "
        f"with {BASE} {[len(one & left) for one in kept]}, "
        f"expected {options.n_kept**2 / len(heads):.1f}",
        flush=True,
    )
    return found


def compare(
    run: TaskRun, keep: int, chosen: dict[str, list[list[Head]]]
) -> list[dict[str, object]]:
    """Return a row for each way, its p-value not yet corrected."""
    found = {
        name: run.outcomes(without_each(removed, run.shape)) for name, removed in chosen.items()
    }
    base = found[BASE].losses
    rows: list[dict[str, object]] = []
    for name, one in found.items():
        accuracies = (one.predictions == run.targets[:, None]).mean(0)
        row: dict[str, object] = {
            "heads": keep,
            "order": name,
            "accuracy": accuracies.mean(),
            "over seeds": f"{accuracies.min():.3f} to {accuracies.max():.3f}",
            "loss": one.losses.mean(),
            f"loss less {BASE}": "",
            "p (Holm)": np.nan,
        }
        if name != BASE:
            tested = crossed_sample((one.losses - base)[..., None])
            reach = t_interval(tested)
            row[f"loss less {BASE}"] = f"{reach.ci_low[0]:+.3f} to {reach.ci_high[0]:+.3f}"
            row["p (Holm)"] = t_test(tested, 0, alternative="two-sided").p_value[0]
        rows.append(row)
        print(*row.values(), flush=True)
    return rows


if __name__ == "__main__":
    main()
