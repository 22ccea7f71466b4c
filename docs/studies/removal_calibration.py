"""Whether by-role, pruning-curves and importance keep what they promise.

python -m docs.studies.removal_calibration make MODEL SST-2 DIR    losses and derivatives, once
python -m docs.studies.removal_calibration roles DIR               by-role: random roles
python -m docs.studies.removal_calibration draws                   curves: few draws
python -m docs.studies.removal_calibration orders MODEL SST-2 DIR  curves: orders of other phrases
python -m docs.studies.removal_calibration importance DIR          importance: coverage

MODEL is a model fine-tuned on SST-2 (`docs.studies.task_models`), SST-2 the folder of the task's
files. ``make`` writes to DIR the losses of the 872 development sentences without each single head,
and the derivatives of 6735 phrases of `train_part2.tsv` that the model was not trained on.

roles: heads are dealt to roles at random, whatever they are worth. The loss without several heads
is that of the whole model and what each of them adds (DIR, real losses), or is made up. By-role
must not show more than 5 % of such roles, nor one in more than 5 % of families of 24 after the
correction of Benjamini and Hochberg. A role of the heads that are worth most must be shown.

draws: examples and draws are normal; how often is a mean of 0 shown not to be 0?

orders: one method finds orders on disjoint sets of 100 phrases. Two of its results may differ by
p < 0.05 in 5 % of the pairs.

importance: the population are the 6735 phrases, samples are drawn with replacement; how many of
the intervals hold the mean of the population?

Each prints its figures, and ends with 1 if one is worse than chance explains. Generators are
others than those of the package (SFC64 and Philox).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from headroles.inference import adjust_p_values
from headroles.studies.removal import find_pruning_curves
from headroles.studies.removal.ablation_options import RoleImportanceOptions
from headroles.studies.removal.curve_options import CurveOptions
from headroles.studies.removal.curve_points import Point, Points
from headroles.studies.removal.curve_table import make_table
from headroles.studies.removal.estimators import values_of
from headroles.studies.removal.importance import _frame
from headroles.studies.removal.options import ESTIMATORS
from headroles.studies.removal.orders import present_heads, without_each
from headroles.studies.removal.role_removals import compare_removed
from headroles.tasks import Derivatives, Outcomes, TaskOptions, open_run

FloatArray = NDArray[np.float64]
LEVEL = 0.05


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
        limit = f"at most {self.most:.1%}" if self.most < np.inf else f"at least {self.least:.1%}"
        print(f"{'ok  ' if is_right else 'FAIL'} {self.words}: {self.value:.1%} ({limit})")
        return is_right


def errors(words: str, is_wrong: NDArray[np.bool_]) -> Result:
    """The share that is wrong, which may be 5 % and three standard errors."""
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
    """Write the losses without each head, and the derivatives of phrases."""
    options = TaskOptions()
    run = open_run(model, data / "dev.tsv", options)
    sets = [(), *((head,) for head in present_heads(run))]
    np.savez(out / "single.npz", losses=run.outcomes(without_each(sets, run.shape)).losses)
    found = run.over(data / "train_part2.tsv", options).derivatives()
    np.savez(out / "derivatives.npz", **vars(found))


@dataclass(frozen=True)
class AddedLosses:
    """Stands for a run: the loss without heads is that of the whole model and what each adds."""

    whole: FloatArray
    added: FloatArray
    shape: tuple[int, int]

    def outcomes(self, gates: torch.Tensor) -> Outcomes:
        """The losses under gates."""
        closed = 1 - gates.reshape(len(gates), -1).double().numpy()
        losses = self.whole[:, None] + self.added @ closed.T
        return Outcomes(losses, np.full_like(losses, np.nan))


def study_roles(data: Path) -> Iterator[Result]:
    """By-role and roles that are dealt at random."""
    rng = np.random.Generator(np.random.SFC64(11))
    losses = np.load(data / "single.npz")["losses"]
    real = AddedLosses(losses[:, 0], losses[:, 1:] - losses[:, :1], (6, 12))
    few = rng.standard_gamma(0.1, 72) * (1 + rng.standard_normal((200, 72)))
    made = AddedLosses(rng.standard_exponential(200), few, (6, 12))
    for words, run in (("real losses", real), ("made losses, few heads of worth", made)):
        p, adjusted = [], []
        for _ in range(40):
            found = _compare(run, _random_roles(24, rng))
            p.append(found["p_removed"])
            adjusted.append(adjust_p_values(found["p_removed"], "fdr_bh"))
        yield errors(f"{words}: random roles with p < 0.05", np.concatenate(p) < LEVEL)
        some = np.array([(one <= LEVEL).any() for one in adjusted])
        yield errors(f"{words}: families of 24 with one that is shown", some)
        worst = np.argsort(run.added.mean(0))[-9:]
        found = _compare(run, {"worst": [divmod(int(place), 12) for place in worst]})
        yield Result(f"{words}: p of the nine heads that add most", found["p_removed"][0], LEVEL)


def _random_roles(n: int, rng: np.random.Generator) -> dict[str, list[tuple[int, int]]]:
    sizes = rng.integers(4, 36, n)
    dealt = [np.sort(rng.choice(72, size, replace=False)) for size in sizes]
    return {str(at): [divmod(int(head), 12) for head in own] for at, own in enumerate(dealt)}


def _compare(run: AddedLosses, having: dict[str, list[tuple[int, int]]]) -> dict[str, FloatArray]:
    heads = [divmod(place, 12) for place in range(72)]
    return compare_removed(run, heads, having, RoleImportanceOptions())  # type: ignore[arg-type]


def study_draws() -> Iterator[Result]:
    """Pruning curves of two random orders that do not differ."""
    rng = np.random.Generator(np.random.Philox(12))
    for n_draws in (2, 3, 4, 5, 8):
        for ratio in (1, 2.5, 5, 8):
            p = np.concatenate([_p_of_draws(n_draws, ratio, rng) for _ in range(10)])
            words = f"{n_draws} draws, {ratio} times as different as examples: p < 0.05"
            yield Result(words, float((p < LEVEL).mean()), most=0.058 + 3 * 0.0044)


def _p_of_draws(n_draws: int, ratio: float, rng: np.random.Generator) -> FloatArray:
    """p-values of 250 shares at which draws alone differ, and examples."""
    n, shares = 60, tuple(np.arange(1, 251) / 251)
    losses, points = [], []
    for order in ("random", "random_per_layer"):
        for share in shares:
            of_example = rng.standard_normal((n, 1))
            of_draw = rng.standard_normal(n_draws) * ratio / np.sqrt(n)
            for draw in range(n_draws):
                points.append(Point(order, share, draw, ((0, 0),), len(points)))
            losses.append(of_example + of_draw + 10)
    options = CurveOptions(
        orders="random,random_per_layer", against="random", shares=shares, draws=n_draws
    )
    return _p_values(points, np.concatenate(losses, axis=1), options)


def _p_values(points: list[Point], losses: FloatArray, options: CurveOptions) -> FloatArray:
    """p-values of all shares of the order that is compared."""
    outcomes = Outcomes(losses, np.full_like(losses, np.nan))
    frame, _ = make_table(Points(tuple(points), ()), outcomes, np.zeros(len(losses)), [], options)
    own = frame[(frame["order"] != options.against) & frame["share"].notna()]
    return own["p_value"].to_numpy(dtype=np.float64)


def study_orders(model: Path, data: Path, out: Path) -> Iterator[Result]:
    """Pruning curves of one method and other phrases."""
    header, *lines = (data / "train_part2.tsv").read_text(encoding="utf-8").splitlines()
    np.random.Generator(np.random.SFC64(13)).shuffle(lines)
    names = ("importance:signed", "importance")
    found = []
    for part in range(10):
        file = out / f"phrases-{part}.tsv"
        chosen = lines[part * 500 : part * 500 + 500]
        file.write_text("\n".join([header, *chosen, ""]), encoding="utf-8")
        found.append(
            find_pruning_curves(
                model,
                data / "dev.tsv",
                file,
                orders=",".join(names),
                against=names[0],
                shares="0.5",
                draws=5,
                examples=100,
                test_examples=300,
            )
        )
    for name in names:
        losses = [
            one.outcomes.losses[:, [at["setting"] for at in one.points if at["order"] == name]]
            for one in found
        ]
        p = np.array([_p_of_two(*pair) for pair in combinations(losses, 2)])
        # The pairs share ten results: a bound by chance alone would be too narrow.
        yield Result(f"{name}: pairs of results with p < 0.05", float((p < LEVEL).mean()), 0.15)


def _p_of_two(one: FloatArray, other: FloatArray) -> float:
    """P of two orders with a column of losses for each draw."""
    n_draws = one.shape[1]
    options = CurveOptions(
        orders="random,random_per_layer", against="random", shares="0.5", draws=n_draws
    )
    points = [
        Point(order, 0.5, draw, ((0, 0),), place * n_draws + draw)
        for place, order in enumerate(options.orders)
        for draw in range(n_draws)
    ]
    return float(_p_values(points, np.concatenate([one, other], axis=1), options)[0])


def study_importance(data: Path) -> Iterator[Result]:
    """Intervals of importance."""
    rng = np.random.Generator(np.random.SFC64(14))
    whole = np.load(data / "derivatives.npz")
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
    found = Derivatives(**{key: values[rows] for key, values in columns.items()})
    return _frame(name, values_of(found, name), found.by_gate.shape[1:], "none")


STUDIES = {
    "roles": study_roles,
    "draws": study_draws,
    "orders": study_orders,
    "importance": study_importance,
}

if __name__ == "__main__":
    main()
