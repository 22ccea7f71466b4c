"""Simulations that draw from losses and derivatives of a model fine-tuned on SST-2.

`make` measures, once, what the studies draw from: derivatives of 6735 phrases of `train_part2.tsv`
that the model was not trained on; losses of all 872 development sentences without each single head;
losses of 300 of them without the less important half of the heads, by each of 60 disjoint sets of
100 phrases. Samples are drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from docs.studies.simulations import ALPHA, Figures, Row, Study, averaged, generator
from headroles.arrays import FloatArray
from headroles.inference import adjust_p_values
from headroles.studies.importance import ablate, by_task
from headroles.studies.importance.ablate import AblateOptions, Removal
from headroles.studies.importance.by_role import ByRoleOptions, _within, compare_removed
from headroles.studies.importance.importance import (
    ESTIMATORS,
    make_frame,
    split_half,
    values_of,
)
from headroles.studies.pruning.pruning_curves import CurveOptions, find_points, make_table
from headroles.studies.removals import without_each
from headroles.tasks.options import TaskOptions
from headroles.tasks.outcomes import Derivatives, Outcomes
from headroles.tasks.running import TaskRun, open_run
from headroles.testing.options import CorrectionOptions

MAKE = "tasks-make"
METHODS = ("importance:signed", "importance")
DERIVATIVES, ORDERS, SINGLE = "derivatives.npz", "orders.npz", "single.npz"
SHAPE = (6, 12)
HEADS = [divmod(place, SHAPE[1]) for place in range(72)]
REMOVALS = [Removal("single", f"{layer}-{head}", ((layer, head),)) for layer, head in HEADS]
Having = dict[str, list[tuple[int, int]]]


def make(model: Path, data: Path, out: Path) -> None:
    """Write the derivatives of phrases, and the losses without heads, that are not there yet."""
    run = open_run(model, data / "dev.tsv", TaskOptions())
    out.mkdir(exist_ok=True)
    if not (out / DERIVATIVES).exists():
        found = run.over(data / "train_part2.tsv", TaskOptions()).derivatives()
        np.savez(out / DERIVATIVES, **vars(found))
    if not (out / ORDERS).exists():
        tested = run.over(data / "dev.tsv", TaskOptions(examples=300))
        np.savez(out / ORDERS, **_losses_of_orders(tested, saved(out, DERIVATIVES)))
    if not (out / SINGLE).exists():
        sets = [(), *((head,) for head in run.heads)]
        np.savez(out / SINGLE, losses=run.outcomes(without_each(sets, run.shape)).losses)


def saved(data: Path, name: str) -> dict[str, Any]:
    """Return the arrays that `make` wrote."""
    return dict(np.load(data / name))


def taken(columns: dict[str, FloatArray], rows: NDArray[np.intp]) -> Derivatives:
    """Return the derivatives of some examples."""
    return Derivatives(**{key: values[rows] for key, values in columns.items()})


def _losses_of_orders(tested: TaskRun, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return losses (sentences, orders) without the first half of each order, by method."""
    rows = generator("orders").permutation(len(columns["tokens"]))
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
    shape: tuple[int, int] = SHAPE

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


def wrong(p: FloatArray) -> FloatArray:
    """Return 1 for each p-value below 5 %, 0 for the others."""
    return np.asarray(p < ALPHA, dtype=float)


def random_roles(rng: np.random.Generator, n: int = 24) -> Having:
    """Deal heads at random to ``n`` roles."""
    dealt = [np.sort(rng.choice(72, size, replace=False)) for size in rng.integers(4, 36, n)]
    return {str(at): [HEADS[head] for head in own] for at, own in enumerate(dealt)}


def study_removed(folders: list[Path], n: int) -> Iterator[Row]:
    """Test by-role with roles dealt at random: by the loss without all, or each, of their heads."""
    (data,) = folders
    rng = generator("removed")
    losses = saved(data, SINGLE)["losses"]
    few = rng.standard_gamma(0.1, 72) * (1 + rng.standard_normal((200, 72)))
    runs = {
        "real losses": AddedLosses(losses[:, 0], losses[:, 1:] - losses[:, :1]),
        "made losses, few important heads": AddedLosses(rng.standard_exponential(200), few),
    }
    for name, run in runs.items():
        draws: list[Figures] = []
        for _ in range(n):
            p = _removed(run, random_roles(rng))
            shown = (adjust_p_values(p, "fdr_bh") <= ALPHA).any()
            draws.append({"roles with p < 0.05": wrong(p), "families with one": float(shown)})
        worst = {"worst": [HEADS[place] for place in np.argsort(run.added.mean(0))[-9:]]}
        strongest = {"p of the nine heads that add most": f"{_removed(run, worst)[0]:.3f}"}
        yield {"losses": name, **averaged(draws), **strongest}
    options = ByRoleOptions(permutations=999)
    columns = saved(data, DERIVATIVES)
    whole = taken(columns, np.arange(len(columns["tokens"])))
    for name, values in (
        ("importance of each head", values_of(whole, "absolute").mean(0)),
        ("loss without each head", losses[:, 1:].mean(0) - losses[:, 0].mean()),
    ):
        found = (
            _within(values.reshape(SHAPE), HEADS, random_roles(rng), options, "own")["p_own"]
            for _ in range(n)
        )
        yield {"losses": name, **averaged({"roles with p < 0.05": wrong(p)} for p in found)}


def _removed(run: AddedLosses, having: Having) -> FloatArray:
    found = compare_removed(run, HEADS, having, ByRoleOptions())  # type: ignore[arg-type]
    return np.asarray(found["p_removed"])


def study_curves(folders: list[Path], n: int) -> Iterator[Row]:
    """Test pruning curves of two random orders that do not differ, by draws and their deviation."""
    for n_draws in (2, 3, 4, 5, 8):
        row: Row = {"draws": n_draws}
        for ratio in (1, 2.5, 5, 8):
            rng = generator("curves", n_draws, ratio)
            draws = ({f"draws differ {ratio:g}": _of_draws(n_draws, ratio, rng)} for _ in range(n))
            row |= averaged(draws)
        yield row


def _of_draws(n_draws: int, ratio: float, rng: np.random.Generator) -> FloatArray:
    """Return the errors of 250 shares at which only draws differ, and examples."""
    n, shares = 60, tuple(np.arange(1, 251) / 251)
    losses = []
    for _ in range(2 * len(shares)):
        of_draw = rng.standard_normal(n_draws) * ratio / np.sqrt(n)
        losses.append(rng.standard_normal((n, 1)) + of_draw + 10)
    return wrong(_p_of_curves(np.concatenate(losses, axis=1), shares))


def _p_of_curves(losses: FloatArray, shares: Any) -> FloatArray:
    """Return p-values of all shares of the compared order; losses are by order, share and draw."""
    options = CurveOptions(orders="random,random_per_layer", against="random", shares=shares)
    outcomes = Outcomes(losses, np.full_like(losses, np.nan), np.zeros(len(losses)))
    by_share = np.arange(losses.shape[1]).reshape(2, len(options.shares), -1)
    n_removed = [1] * len(options.shares)
    frame, _ = make_table(by_share.swapaxes(1, 2), n_removed, outcomes, [], options)
    own = frame[(frame["order"] != options.against) & frame["share"].notna()]
    return own["p_value"].to_numpy(dtype=np.float64)


def study_orders(folders: list[Path], n: int) -> Iterator[Row]:
    """Test two results of one method; those of one order each differ in more than 5 %."""
    (data,) = folders
    for method, losses in saved(data, ORDERS).items():
        row: Row = {"orders by": method}
        for size in (1, 5):
            rng, p = generator(method, size), []
            for _ in range(n):
                drawn = rng.permutation(losses.shape[1])[: 2 * size]
                p.append(_p_of_curves(losses[:, drawn], "0.5"))
            row |= averaged({f"results of {size} orders each": wrong(one)} for one in p)
        yield row


def study_importance(folders: list[Path], n: int) -> Iterator[Row]:
    """Measure how many intervals of importance hold the mean of all phrases."""
    (data,) = folders
    columns = saved(data, DERIVATIVES)
    everything = np.arange(len(columns["tokens"]))
    for name in ESTIMATORS:
        truth = _importance(name, columns, everything)["importance"]
        row: Row = {"estimator": name}
        for size in (50, 100, 300, 1000):
            rng, draws = generator(name, size), []
            for _ in range(n):
                frame = _importance(name, columns, rng.integers(0, len(everything), size))
                held = (frame["ci_low"] <= truth) & (truth <= frame["ci_high"])
                draws.append({f"{size} examples": held.to_numpy(dtype=float)})
            row |= averaged(draws)
        yield row


def _importance(name: str, columns: dict[str, FloatArray], rows: NDArray[np.intp]) -> pd.DataFrame:
    found = taken(columns, rows)
    return make_frame(name, values_of(found, name), found.by_gate.shape[1:], "none")


def study_unchanged(folders: list[Path], n: int) -> Iterator[Row]:
    """Test losses and accuracies that no head changes: real ones, shifted and exchanged."""
    (data,) = folders
    population = _same_mean(data)
    for size in (100, 300):
        rng = generator("unchanged", size)
        tables = (_ablated(population, size, rng) for _ in range(n))
        figures = (
            {"loss": wrong(one["p_value"]), "accuracy": wrong(one["p_accuracy"])} for one in tables
        )
        yield {"examples": size, **averaged(figures)}


def _same_mean(data: Path) -> FloatArray:
    """Return losses of the whole model and without each head, shifted to the same mean."""
    losses: FloatArray = saved(data, SINGLE)["losses"]
    losses[:, 1:] -= losses[:, 1:].mean(0) - losses[:, 0].mean()
    return losses


def _ablated(population: FloatArray, n: int, rng: np.random.Generator) -> pd.DataFrame:
    losses = population[rng.integers(0, len(population), n)]
    right = (losses < np.log(2)).astype(float)
    exchanged = rng.random((n, 72)) < 0.5
    whole = np.where(exchanged, right[:, 1:], right[:, :1])
    without = np.where(exchanged, right[:, :1], right[:, 1:])
    # The table compares all heads with one whole model: here each is compared with its own.
    parts = []
    for k in rng.choice(72, 12, replace=False):
        predictions = np.stack([whole[:, k], without[:, k]], axis=1)
        outcomes = Outcomes(losses[:, [0, k + 1]], predictions, np.ones(n))
        parts.append(ablate.make_table(REMOVALS[k : k + 1], outcomes, True, AblateOptions())[0])
    return pd.concat(parts)


def study_two_tasks(folders: list[Path], n: int) -> Iterator[Row]:
    """Test two samples of one task as two tasks: drops that are none, and deviations."""
    (data,) = folders
    real, alike = saved(data, SINGLE)["losses"], _same_mean(data)
    for size in (100, 300):
        rng, draws = generator("two tasks", size), []
        for _ in range(n):
            rows = rng.integers(0, len(real), (2, size))
            dropped, deviating = _dropped(alike[rows]), _dropped(real[rows])
            draws.append(
                {
                    "drops": wrong(dropped["p_value"].to_numpy()),
                    "deviations": wrong(deviating["p_deviation"].to_numpy()),
                }
            )
        yield {"examples": size, **averaged(draws)}


def _dropped(losses: FloatArray) -> pd.DataFrame:
    """Make the table of two tasks with these losses (tasks, examples, settings)."""
    removals = [(one.set, one.removed) for one in REMOVALS]
    frame = pd.DataFrame(removals, columns=["set", "removed"]).assign(n_removed=1)
    tasks: dict[str, Any] = {
        name: SimpleNamespace(frame=frame, outcomes=Outcomes(own, own, np.zeros(len(own))))
        for name, own in zip("ab", losses, strict=True)
    }
    return by_task.make_table(tasks, removals, "loss", CorrectionOptions())[0]


def study_reliability(folders: list[Path], n: int) -> Iterator[Row]:
    """Compare the agreement of two samples on the order of heads with the one expected."""
    (data,) = folders
    columns = saved(data, DERIVATIVES)
    for name in ESTIMATORS:
        row: Row = {"estimator": name}
        for size in (100, 500):
            rng, draws = generator("reliability", name, size), []
            for _ in range(n):
                rows = rng.permutation(len(columns["tokens"]))[: 2 * size].reshape(2, size)
                one, other = (values_of(taken(columns, own), name) for own in rows)
                halves = split_half(one.reshape(size, *SHAPE), "none")
                expected = np.nan if halves is None else 2 * halves / (1 + halves)
                agreed = float(spearmanr(one.mean(0), other.mean(0)).statistic)
                draws.append({f"{size} phrases#": agreed, f"{size}, expected#": expected})
            row |= averaged(draws)
        yield row


STUDIES: dict[str, tuple[Study, int]] = {
    "removed": (study_removed, 40),
    "curves": (study_curves, 10),
    "orders": (study_orders, 400),
    "importance": (study_importance, 200),
    "unchanged": (study_unchanged, 100),
    "two-tasks": (study_two_tasks, 200),
    "reliability": (study_reliability, 40),
}
