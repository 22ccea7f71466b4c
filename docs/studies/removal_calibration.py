"""Calibration of by-role, pruning-curves and importance.

python -m docs.studies.removal_calibration make MODEL SST-2 DIR    losses and derivatives, once
python -m docs.studies.removal_calibration roles DIR               by-role: random roles
python -m docs.studies.removal_calibration draws                   curves: few draws
python -m docs.studies.removal_calibration orders DIR              curves: orders of other phrases
python -m docs.studies.removal_calibration importance DIR          importance: coverage

MODEL is a model fine-tuned on SST-2 (`docs.studies.task_models`), SST-2 the folder of the task's
files. ``make`` writes to DIR the derivatives of 6735 phrases of `train_part2.tsv` that the model
was not trained on, the losses of 300 development sentences without the less important half of the
heads, by each of 60 disjoint sets of 100 phrases, and those of all 872 sentences without each
single head. A second run makes missing files.

roles: heads are dealt to roles at random, important or not. The loss without several heads is that
of the whole model and what each of them adds (DIR, real losses), or is made up. By-role must not
show more than 5 % of such roles, nor one in more than 5 % of families of 24 after the correction of
Benjamini and Hochberg. A role of the most important heads must be shown.

draws: examples and draws are normal; how often is a mean of 0 shown to differ from 0?

orders: one method finds orders on disjoint sets of 100 phrases. Results of five orders each may
differ by p < 0.05 in 5 % of the pairs; results of one order each differ in more.

importance: the population is the 6735 phrases, samples are drawn with replacement; how many of the
intervals contain the mean of the population?

Each prints its figures, and ends with exit code 1 if one is worse than chance explains. Random
generators are others than that of the package (SFC64 and Philox).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from headroles.arrays import FloatArray
from headroles.inference import adjust_p_values
from headroles.studies.importance.by_role import ByRoleOptions, compare_removed
from headroles.studies.importance.importance import ESTIMATORS, make_frame, values_of
from headroles.studies.pruning.pruning_curves import CurveOptions, find_points, make_table
from headroles.studies.removals import without_each
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import Derivatives, Outcomes
from headroles.tasks.running import TaskRun, open_run

LEVEL = 0.05
METHODS = ("importance:signed", "importance")
DERIVATIVES, ORDERS, SINGLE = "derivatives.npz", "orders.npz", "single.npz"


@dataclass(frozen=True)
class Result:
    """A figure, and the most or the least that it may be."""

    words: str
    value: float
    most: float = np.inf
    least: float = -np.inf

    def show(self) -> bool:
        """Print it; whether it is as it should be."""
        is_right = self.least <= self.value <= self.most
        limits = (("at most", self.most), ("at least", self.least))
        allowed = "".join(f" ({words} {one:.1%})" for words, one in limits if np.isfinite(one))
        print(f"{'ok  ' if is_right else 'FAIL'} {self.words}: {self.value:.1%}{allowed}")
        return is_right


def errors(words: str, is_wrong: NDArray[np.bool_]) -> Result:
    """Return the wrong share, at most 5 % and three standard errors."""
    return Result(words, is_wrong.mean(), most=LEVEL + 3 * np.sqrt(LEVEL * 0.95 / len(is_wrong)))


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", *STUDIES))
    parser.add_argument("places", type=Path, nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == "make":
        make(*given.places)
        return
    shown = [one.show() for one in STUDIES[given.what](*given.places)]
    sys.exit(not all(shown))


def make(model: Path, data: Path, out: Path) -> None:
    """Write the derivatives of phrases, and the losses without heads, that are not there yet."""
    run = open_run(model, data / "dev.tsv", TaskOptions())
    if not (out / DERIVATIVES).exists():
        found = run.over(data / "train_part2.tsv", TaskOptions()).derivatives()
        np.savez(out / DERIVATIVES, **vars(found))
    if not (out / ORDERS).exists():
        tested = run.over(data / "dev.tsv", TaskOptions(examples=300))
        np.savez(out / ORDERS, **_losses_of_orders(tested, dict(np.load(out / DERIVATIVES))))
    if not (out / SINGLE).exists():
        sets = [(), *((head,) for head in run.heads)]
        np.savez(out / SINGLE, losses=run.outcomes(without_each(sets, run.shape)).losses)


def _losses_of_orders(tested: TaskRun, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return losses (sentences, orders) without the first half of each order, by method."""
    rows = np.random.Generator(np.random.SFC64(13)).permutation(len(columns["tokens"]))
    phrases = [SavedPhrases(taken(columns, own)) for own in rows[:6000].reshape(60, 100)]
    options = CurveOptions(orders=METHODS, against=METHODS[0], shares="0.5", draws=len(phrases))
    points, sets = find_points(tested, phrases, options)  # type: ignore[arg-type]
    losses = tested.outcomes(without_each(sets, tested.shape)).losses
    return {method: losses[:, points["setting"][points["order"] == method]] for method in METHODS}


@dataclass(frozen=True)
class SavedPhrases:
    """Stands for a run over some phrases, whose derivatives at the whole model are known."""

    found: Derivatives

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of layers and heads."""
        n_layers, n_heads = self.found.by_gate.shape[1:]
        return n_layers, n_heads

    def derivatives(self, gates: torch.Tensor) -> Derivatives:
        """Return them."""
        assert bool((gates == 1).all())
        return self.found


@dataclass(frozen=True)
class AddedLosses:
    """Stands for a run: the loss without heads is that of the whole model and what each adds."""

    whole: FloatArray
    added: FloatArray
    shape: tuple[int, int]

    def outcomes(self, gates: torch.Tensor) -> Outcomes:
        """Return the losses under gates."""
        closed = 1 - gates.reshape(len(gates), -1).double().numpy()
        losses = self.whole[:, None] + self.added @ closed.T
        return Outcomes(losses, np.full_like(losses, np.nan), self.whole)

    def n_passes(self, gates: torch.Tensor) -> float:
        """Return the passes that a model would take: one for each setting."""
        return float(len(gates))

    def expect(self, passes: float) -> None:
        """Take no notice: nothing shows how far this run is."""


def study_roles(data: Path) -> Iterator[Result]:
    """Test by-role with roles that are dealt at random."""
    rng = np.random.Generator(np.random.SFC64(11))
    losses = np.load(data / SINGLE)["losses"]
    real = AddedLosses(losses[:, 0], losses[:, 1:] - losses[:, :1], (6, 12))
    few = rng.standard_gamma(0.1, 72) * (1 + rng.standard_normal((200, 72)))
    made = AddedLosses(rng.standard_exponential(200), few, (6, 12))
    for words, run in (("real losses", real), ("made losses, few heads of worth", made)):
        p, adjusted = [], []
        for _ in range(40):
            found = _compare(run, random_roles(24, rng))
            p.append(found["p_removed"])
            adjusted.append(adjust_p_values(found["p_removed"], "fdr_bh"))
        yield errors(f"{words}: random roles with p < 0.05", np.concatenate(p) < LEVEL)
        some = np.array([(one <= LEVEL).any() for one in adjusted])
        yield errors(f"{words}: families of 24 with one that is shown", some)
        worst = np.argsort(run.added.mean(0))[-9:]
        found = _compare(run, {"worst": [divmod(int(place), 12) for place in worst]})
        yield Result(f"{words}: p of the nine heads that add most", found["p_removed"][0], LEVEL)


def random_roles(n: int, rng: np.random.Generator) -> dict[str, list[tuple[int, int]]]:
    """Deal heads at random to ``n`` roles."""
    sizes = rng.integers(4, 36, n)
    dealt = [np.sort(rng.choice(72, size, replace=False)) for size in sizes]
    return {str(at): [divmod(int(head), 12) for head in own] for at, own in enumerate(dealt)}


def _compare(run: AddedLosses, having: dict[str, list[tuple[int, int]]]) -> dict[str, FloatArray]:
    heads = [divmod(place, 12) for place in range(72)]
    return compare_removed(run, heads, having, ByRoleOptions())  # type: ignore[arg-type]


def study_draws() -> Iterator[Result]:
    """Test pruning curves of two random orders that do not differ."""
    rng = np.random.Generator(np.random.Philox(12))
    for n_draws in (2, 3, 4, 5, 8):
        for ratio in (1, 2.5, 5, 8):
            p = np.concatenate([_p_of_draws(n_draws, ratio, rng) for _ in range(10)])
            words = f"{n_draws} draws, {ratio} times as different as examples: p < 0.05"
            yield Result(words, float((p < LEVEL).mean()), most=0.058 + 3 * 0.0044)


def _p_of_draws(n_draws: int, ratio: float, rng: np.random.Generator) -> FloatArray:
    """Return p-values of 250 shares at which only draws differ, and examples."""
    n, shares = 60, tuple(np.arange(1, 251) / 251)
    losses = []
    for _ in range(2 * len(shares)):
        of_example = rng.standard_normal((n, 1))
        of_draw = rng.standard_normal(n_draws) * ratio / np.sqrt(n)
        losses.append(of_example + of_draw + 10)
    options = CurveOptions(orders="random,random_per_layer", against="random", shares=shares)
    return _p_values(np.concatenate(losses, axis=1), options)


def _p_values(losses: FloatArray, options: CurveOptions) -> FloatArray:
    """Return p-values of all shares of the compared order; losses are by order, share and draw."""
    outcomes = Outcomes(losses, np.full_like(losses, np.nan), np.zeros(len(losses)))
    by_share = np.arange(losses.shape[1]).reshape(2, len(options.shares), -1)
    n_removed = [1] * len(options.shares)
    frame, _ = make_table(by_share.swapaxes(1, 2), n_removed, outcomes, [], options)
    own = frame[(frame["order"] != options.against) & frame["share"].notna()]
    return own["p_value"].to_numpy(dtype=np.float64)


def study_orders(data: Path) -> Iterator[Result]:
    """Test pruning curves of one method and other phrases."""
    rng = np.random.Generator(np.random.SFC64(15))
    for method, losses in np.load(data / ORDERS).items():
        for size, limits in ((1, {"least": LEVEL}), (5, {"most": LEVEL})):
            p = [_p_of_two(*_two_results(losses, size, rng)) for _ in range(400)]
            words = f"{method}: p < 0.05 between results of {size} orders each"
            yield Result(words, float((np.array(p) < LEVEL).mean()), **limits)


def _two_results(losses: FloatArray, size: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return the losses of two times ``size`` different orders."""
    drawn = rng.permutation(losses.shape[1])[: 2 * size]
    return [losses[:, drawn[:size]], losses[:, drawn[size:]]]


def _p_of_two(one: FloatArray, other: FloatArray) -> float:
    """Return the p-value of two orders with a column of losses for each draw."""
    options = CurveOptions(orders="random,random_per_layer", against="random", shares="0.5")
    return float(_p_values(np.concatenate([one, other], axis=1), options)[0])


def study_importance(data: Path) -> Iterator[Result]:
    """Test the intervals of importance."""
    rng = np.random.Generator(np.random.SFC64(14))
    whole = np.load(data / DERIVATIVES)
    truth = {
        name: _importance(name, {key: whole[key] for key in whole}, np.arange(len(whole["tokens"])))
        for name in ESTIMATORS
    }
    columns = {key: whole[key] for key in whole}
    for n, least in ((50, 0.86), (100, 0.93), (300, 0.93), (1000, 0.93)):
        held: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
        for _ in range(200):
            rows = rng.integers(0, len(columns["tokens"]), n)
            for name in ESTIMATORS:
                frame = _importance(name, columns, rows)
                mean = truth[name]["importance"]
                holds = (frame["ci_low"] <= mean) & (mean <= frame["ci_high"])
                held[name].append(float(holds.mean()))
        for name in ESTIMATORS:
            yield Result(
                f"{name}, {n} examples: intervals that hold", np.mean(held[name]), least=least
            )


def _importance(name: str, columns: dict[str, FloatArray], rows: NDArray[np.intp]) -> pd.DataFrame:
    found = taken(columns, rows)
    return make_frame(name, values_of(found, name), found.by_gate.shape[1:], "none")


def taken(columns: dict[str, FloatArray], rows: NDArray[np.intp]) -> Derivatives:
    """Return the derivatives of some examples."""
    return Derivatives(**{key: values[rows] for key, values in columns.items()})


STUDIES = {
    "roles": study_roles,
    "draws": study_draws,
    "orders": study_orders,
    "importance": study_importance,
}

if __name__ == "__main__":
    main()
