"""Cost of studies of removed heads, beside the plain forward pass over the same examples.

python -m benchmarks.removal --model DIR --task FILE [--examples 64] [--rounds 5] [--threads 1]

A row for each job, its time divided by that of a forward pass over the same batches, inputs ready:
the median over the rounds, and its first and last quartile. ``runs`` is how many forward passes the
job would take if removals shared nothing. In a round each job comes between two forward passes,
with which it is compared, so that a machine that slows down slows both.

importance      derivatives of every example's loss by all gates
ablate          the loss without each single head
re-estimated    a quarter of the heads removed in 5 steps, each with importances of its own
gates           updates of learnt gates, as many as there are batches, three at least; and then the
                loss with the remaining heads
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from headroles.studies.importance.removals import present_heads, rises_of
from headroles.studies.pruning.gate import GateOptions, learn_gates
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run

_STEPS = 5


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    run = open_run(given.model, given.task, TaskOptions(examples=given.examples))
    jobs = jobs_of(run)
    ratios = measure(run, jobs, given.rounds)
    rows = []
    for name, (runs, _) in jobs.items():
        low, middle, high = np.quantile(ratios[name], [0.25, 0.5, 0.75])
        ratio = f"{middle:.1f} ({low:.1f} to {high:.1f})"
        rows.append({"job": name, "runs": runs, "forward passes": ratio})
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))


def measure(
    run: TaskRun, jobs: dict[str, tuple[str, Callable[[], object]]], rounds: int
) -> dict[str, np.ndarray]:
    """Return the processor time of each job (rounds,) over that of a forward pass."""
    ratios = {name: np.empty(rounds) for name in jobs}
    for number in range(rounds):
        before = seconds_of(lambda: forward(run))
        for name, (_, job) in jobs.items():
            own = seconds_of(job)
            after = seconds_of(lambda: forward(run))
            ratios[name][number] = 2 * own / (before + after)
            before = after
    return ratios


def jobs_of(run: TaskRun) -> dict[str, tuple[str, Callable[[], object]]]:
    """Return the timed jobs, with the forward passes that each would take."""
    heads = present_heads(run)
    pruning = PruneOptions(keep=1, order="reestimated", steps=_STEPS)
    gates = GateOptions(keep=len(heads) // 4, updates=max(len(run.groups(32)), 3))
    return {
        "importance": ("", run.derivatives),
        "ablate": (str(1 + len(heads)), lambda: rises_of(run)),
        "re-estimated": (
            "",
            lambda: choose_heads(pruning.order, len(heads) // 4, heads, pruning, run),
        ),
        f"gates, {gates.updates} updates": (
            "",
            lambda: learn_gates(run, heads, gates, 0),
        ),
    }


def forward(run: TaskRun) -> None:
    """Run the passes that a user would write in a notebook."""
    with torch.inference_mode():
        for batch in run.batches:
            run.encoder.model(**batch.inputs)


def seconds_of(job: Callable[[], object]) -> float:
    """Return the processor time of a job."""
    start = time.process_time()
    job()
    return time.process_time() - start


if __name__ == "__main__":
    main()
