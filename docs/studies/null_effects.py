"""Errors of studies where no effect exists, and the reliability of `importance`.

python -m docs.studies.null_effects ablate DATA        removals that change nothing
python -m docs.studies.null_effects within DATA        by-role: roles dealt at random
python -m docs.studies.null_effects tasks DATA         by-task: two tasks that are one
python -m docs.studies.null_effects reliability DATA   importance: orders of other phrases
python -m docs.studies.null_effects replicate SCORES   roles that too few corpora have

`docs.studies.removal_calibration make` wrote the folder DATA, `headroles score` the folder SCORES.
Samples are drawn with replacement, by a generator other than the package's (SFC64).

ablate: real losses without each of 72 heads, each shifted so that its mean change is 0; right and
wrong predictions of an example are exchanged at random between the whole model and the model
without the head.

within: real importances, and losses without each head; the heads of a role are any heads.

tasks: two samples of the same sentences stand for two tasks; the losses of each are tested against
no change, to which they are shifted, and the real ones against those of the other.

reliability: the correlation of orders that two samples find, and what `importance` expects of one.

replicate: samples of documents stand for four corpora. Every head has the mean of the threshold in
three of them and a role in the first, so that any role shown in two or more is an error. The rows
"real means" take means and thresholds as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from docs.studies.certified import Population
from docs.studies.removal_calibration import (
    DERIVATIVES,
    LEVEL,
    SINGLE,
    FloatArray,
    Result,
    errors,
    random_roles,
    taken,
)
from headroles.studies.importance import ablate, by_task
from headroles.studies.importance.ablate import AblateOptions, Removal
from headroles.studies.importance.by_role import ByRoleOptions, _within
from headroles.studies.importance.by_task import ByTaskOptions
from headroles.studies.importance.importance import (
    ESTIMATORS,
    split_half,
    values_of,
)
from headroles.tasks.outcomes import Outcomes
from headroles.testing.evidence import find_replicated
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.options import TestOptions

HEADS = [divmod(place, 12) for place in range(72)]
REMOVALS = [Removal("single", f"{layer}-{head}", ((layer, head),)) for layer, head in HEADS]
CORPORA = 4


def errors_of(words: str, tables: list[FloatArray]) -> Result:
    """Return the share of p-values below 0.05, at most 5 % and three errors of a mean over tables.

    The p-values of one table are of the same examples.
    """
    shares = np.array([(own < LEVEL).mean() for own in tables])
    allowed = LEVEL + 3 * shares.std(ddof=1) / np.sqrt(len(shares))
    return Result(words, float(shares.mean()), most=float(allowed))


def study_ablate(data: Path) -> Iterator[Result]:
    """Test losses and accuracies that no head changes."""
    rng = np.random.Generator(np.random.SFC64(21))
    for n in (100, 300):
        found = [_ablated(_losses(data), n, rng) for _ in range(100)]
        for column in ("p_value", "p_accuracy"):
            p = [one[column].to_numpy() for one in found]
            yield errors_of(f"ablate, {n} examples: {column} < 0.05", p)


def _losses(data: Path) -> FloatArray:
    """Return losses of the whole model and without each head, shifted to the same mean."""
    losses = np.load(data / SINGLE)["losses"]
    losses[:, 1:] -= losses[:, 1:].mean(0) - losses[:, 0].mean()
    return losses


def _ablated(population: FloatArray, n: int, rng: np.random.Generator) -> pd.DataFrame:
    losses = population[rng.integers(0, len(population), n)]
    right = (losses < np.log(2)).astype(float)
    exchanged = rng.random((n, 72)) < 0.5
    whole = np.where(exchanged, right[:, 1:], right[:, :1])
    without = np.where(exchanged, right[:, :1], right[:, 1:])
    # The table compares all heads with one whole model: here each is compared with its own.
    parts = [
        ablate.make_table(
            REMOVALS[k : k + 1],
            Outcomes(
                losses[:, [0, k + 1]], np.stack([whole[:, k], without[:, k]], axis=1), np.ones(n)
            ),
            True,
            AblateOptions(),
        )[0]
        for k in rng.choice(72, 12, replace=False)
    ]
    return pd.concat(parts)


def study_within(data: Path) -> Iterator[Result]:
    """Test roles of heads that are permuted within layers."""
    rng = np.random.Generator(np.random.SFC64(22))
    columns = dict(np.load(data / DERIVATIVES))
    rows = np.arange(len(columns["tokens"]))
    losses = np.load(data / SINGLE)["losses"].mean(0)
    options = ByRoleOptions(permutations=999)
    for words, values in (
        ("importance", values_of(taken(columns, rows), "absolute").mean(0)),
        ("loss without each head", losses[1:] - losses[0]),
    ):
        p = []
        for _ in range(120):
            having = random_roles(24, rng)
            found = _within(values.reshape(6, 12), HEADS, having, options, "own")
            p.append(found["p_own"])
        yield errors_of(f"by-role, {words}: random roles with p < 0.05", p)


def study_tasks(data: Path) -> Iterator[Result]:
    """Test two samples of one task as two tasks."""
    rng = np.random.Generator(np.random.SFC64(23))
    real, alike = np.load(data / SINGLE)["losses"], _losses(data)
    for n in (100, 300):
        rows = [rng.integers(0, len(real), (2, n)) for _ in range(200)]
        dropped = [_dropped(alike[one])["p_value"].to_numpy() for one in rows]
        yield errors_of(f"by-task, {n} examples: drops with p < 0.05", dropped)
        deviating = [_dropped(real[one])["p_deviation"].to_numpy() for one in rows]
        yield errors_of(f"by-task, {n} examples: deviations with p < 0.05", deviating)


def _dropped(losses: FloatArray) -> pd.DataFrame:
    """Make the table of two tasks with these losses (tasks, examples, settings)."""
    removals = [(one.set, one.removed) for one in REMOVALS]
    frame = pd.DataFrame(removals, columns=["set", "removed"]).assign(n_removed=1)
    tasks: dict[str, Any] = {
        name: SimpleNamespace(frame=frame, outcomes=Outcomes(own, own, np.zeros(len(own))))
        for name, own in zip("ab", losses, strict=True)
    }
    return by_task.make_table(tasks, removals, "loss", ByTaskOptions())[0]


def study_reliability(data: Path) -> Iterator[Result]:
    """Compare the agreement of two samples on the order of heads with the one expected."""
    rng = np.random.Generator(np.random.SFC64(24))
    columns = dict(np.load(data / DERIVATIVES))
    for n in (100, 500):
        for name in ESTIMATORS:
            expected, agreed = [], []
            for _ in range(40):
                rows = rng.permutation(len(columns["tokens"]))[: 2 * n].reshape(2, n)
                one, other = (values_of(taken(columns, own), name) for own in rows)
                half = split_half(one.reshape(n, 6, 12), "none")
                expected.append(np.nan if half is None else 2 * half / (1 + half))
                agreed.append(spearmanr(one.mean(0), other.mean(0)).statistic)
            words = f"importance, {name}, {n} examples: {np.mean(agreed):.2f} between samples"
            off = abs(np.mean(expected) - np.mean(agreed))
            yield Result(f"{words}, {np.mean(expected):.2f} expected, off by", off, most=0.05)


def study_replicate(folder: Path) -> Iterator[Result]:
    """Test roles in more corpora than have them."""
    rng = np.random.Generator(np.random.SFC64(25))
    population = Population.load(folder)
    options = TestOptions(test="betting", correction="fdr_bh")
    means = population.means("documents")["betting"]
    limits = [means - 0.3, *[means] * (CORPORA - 1)]
    for size in (20, 50, 150):
        found, real = [], []
        for _ in range(40):
            drawn = [population.draw(size, "documents", rng) for _ in range(CORPORA)]
            for own, shown in ((limits, found), ([population.thresholds] * CORPORA, real)):
                parts = [
                    Hypotheses.of(
                        sample, limit, size=size_of_scores(sample), is_clustered=True, bounds=bounds
                    )
                    for (sample, bounds), limit in zip(drawn, own, strict=True)
                ]
                shown.append(
                    [find_replicated(parts, u, True, options).shows(LEVEL) for u in (1, 2, 4)]
                )
        wrong = np.array(found)[:, 1:].any((1, 2))
        words = f"replicate, {size} documents each: tables with a role in too many corpora"
        yield errors(words, wrong)
        true = means > population.thresholds
        shown_real = np.array(real)[:, 1:]
        yield errors(f"{words}, real means", (shown_real & ~true).any((1, 2)))
        yield Result("  of heads with the role in all, shown in two", shown_real[:, 0, true].mean())


STUDIES = {
    "ablate": study_ablate,
    "within": study_within,
    "tasks": study_tasks,
    "reliability": study_reliability,
    "replicate": study_replicate,
}


def main() -> None:
    """Parse the command line, measure, print; end with 1 if more is found than chance explains."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=STUDIES)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    shown = [one.show() for one in STUDIES[given.what](given.folder)]
    sys.exit(not all(shown))


if __name__ == "__main__":
    main()
