"""A model and a task -> Ablations: what is lost without heads, tested over examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles.formats import to_records
from headroles.inference import adjust_p_values, mcnemar_test, smallest_n
from headroles.models import Model
from headroles.models.kept_heads import Head
from headroles.options import takes
from headroles.results import Grid, Result, Shown, Warned
from headroles.studies.removal.examples import read_examples, write_examples
from headroles.studies.removal.options import AblateOptions
from headroles.studies.removal.orders import heads_by_role, load_roles, present_heads, without_each
from headroles.tasks import Outcomes, TaskRun, open_run
from headroles.tasks.options import CLASSIFICATION
from headroles.testing import (
    MAX_T,
    Hypotheses,
    differs,
    find_equivalence,
    find_intervals,
    find_notes,
    find_p_values,
    find_warnings,
    is_equivalent,
)

COLUMNS = (
    "set",
    "removed",
    "layer",
    "head",
    "n_removed",
    "n",
    "loss",
    "loss_change",
    "sd",
    "ci_low",
    "ci_high",
    "p_value",
    "p_adjusted",
    "p_equivalence",
    "p_equivalence_adjusted",
    "answer",
    "equivalent",
    "examples_needed",
    "accuracy_change",
    "p_accuracy",
    "p_accuracy_adjusted",
    "note",
)
WORSE, BETTER, UNDECIDED = ANSWERS = ("worse", "better", "undecided")
EXAMPLES_FILE = "ablation-examples.parquet"
_SHOWN = 8
_POWER = 0.8


@dataclass(frozen=True)
class Removal:
    """Heads that are removed together, and what tables call them."""

    kind: str
    name: str
    heads: tuple[Head, ...]
    layer: int = -1
    head: int = -1


@dataclass(frozen=True, repr=False, eq=False)
class Ablations(Result):
    """What the loss of a task becomes without heads, each removal tested over the examples.

    ``frame`` has the columns of ``COLUMNS``, a row for each removal. ``layer`` and ``head`` are -1
    where it is not of one layer or head. ``loss_change`` is the mean of the paired differences of
    losses (nats), with and without the heads; ``ci_low`` and ``ci_high`` are its interval,
    ``p_value`` that of no change (two-sided). ``answer`` is worse, better or undecided;
    ``equivalent`` says that the change was shown to be smaller than the margin. ``examples_needed``
    are those that would show a change of this size at the level of a Bonferroni correction, with
    power 0.8. ``accuracy_change`` is tested by McNemar's exact test; NaN without classes.

    ``outcomes`` are the losses and predictions (examples, 1 + removals) of every example, the first
    those of the whole model.
    """

    outcomes: Outcomes | None = None

    kind: ClassVar[str] = "ablations"
    stem: ClassVar[str] = "ablations"
    cure: ClassVar[str] = "make them with: headroles ablate MODEL TASK --out DIR"
    columns: ClassVar[tuple[str, ...]] = COLUMNS

    @property
    def ablated(self) -> dict[str, Any]:
        """How was removed and tested: options, warnings, what was measured of the whole model."""
        ablated: dict[str, Any] = self.provenance["ablated"]
        return ablated

    def rises(self) -> NDArray[np.float64]:
        """(layers, heads): the change of the loss without each single head; NaN if not removed."""
        found = np.full((self.provenance["layers"], self.provenance["heads"]), np.nan)
        rows = self.frame[self.frame["set"] == "single"]
        found[rows["layer"], rows["head"]] = rows["loss_change"]
        return found

    def shown(self) -> Iterator[Shown]:
        """How many removals changed the loss, the largest changes, what to be careful about."""
        asked, task = self.ablated, self.provenance["task"]
        whole = asked["measured"]
        yield (
            f"{task['examples']} examples of {self.provenance['corpus']['file']}; whole model: "
            f"loss {whole['loss']:.4f}"
            + "".join(f", {name} {whole[name]:.3f}" for name in task["metrics"])
            + f"\nheads replaced by {asked['ablation']}; alpha {asked['alpha']:g}, "
            f"{asked['correction']}, margin {asked['margin']:g}\n"
        )
        yield self._counts()
        yield self._largest()
        yield from map(Warned, asked["warnings"])

    def _counts(self) -> Grid:
        rows = []
        for kind, part in self.frame.groupby("set", sort=False):
            counts = [str(int((part["answer"] == answer).sum())) for answer in ANSWERS]
            lower = str(int((part["loss_change"] < 0).sum()))
            needed = part["examples_needed"].median()
            told = f"{needed:,.0f}" if np.isfinite(needed) else "-"
            equivalent = str(int(part["equivalent"].sum()))
            tested = str(int((part["p_accuracy_adjusted"] <= self.ablated["alpha"]).sum()))
            rows.append((str(kind), str(len(part)), *counts, equivalent, lower, tested, told))
        names = ("equivalent", "loss fell", "accuracy changed", "examples needed (median)")
        return Grid(("removed", "sets", *ANSWERS, *names), tuple(rows))

    def _largest(self) -> Grid:
        rows = []
        for row in self.frame.nlargest(_SHOWN, "loss_change").itertuples():
            interval = f"{row.ci_low:+.4f} to {row.ci_high:+.4f}"
            numbers = (f"{row.loss_change:+.4f}", interval, f"{row.p_adjusted:.2g}")
            rows.append(
                (f"{row.removed}", *numbers, f"{row.accuracy_change:+.3f}", str(row.answer))
            )
        names = ("loss", "interval", "p adjusted", "accuracy", "answer")
        return Grid(("largest losses without", *names), tuple(rows))

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {"ablated": self.ablated, "removals": to_records(self.frame)}

    def write_files(self, folder: Path) -> list[str]:
        """The table, and what came of every example."""
        names = super().write_files(folder)
        if self.outcomes is None:
            return names
        one = self.outcomes
        columns: dict[str, NDArray[Any]] = {"loss": one.losses, "prediction": one.predictions}
        write_examples(folder / EXAMPLES_FILE, columns)
        return [*names, EXAMPLES_FILE]

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> Ablations:
        """The table and the outcomes."""
        table = super().read_files(folder, provenance)
        found = read_examples(folder / EXAMPLES_FILE)
        return cls(table.frame, provenance, Outcomes(found["loss"], found["prediction"]))


@takes(AblateOptions)
def ablate_heads(model: Model, task: str | Path, options: AblateOptions) -> Ablations:
    """What a model that was trained for a task loses without heads, tested over its examples.

    Each removal is compared with the whole model, example by example: the losses by paired tests,
    accuracy by McNemar's. Both are corrected over all removals. That a head was not shown to matter
    does not show that it does not: ``equivalent`` does, by two one-sided tests against the margin.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: examples that the model was not trained on: a tab-separated file of labelled text,
            plain text for masked language models.
        options: keyword arguments, described below.

    Raises:
        UsageError, CorpusError, ModelError: as `find_importance`; roles of another model.
    """
    return ablate(model, task, options)


def ablate(model: Model, task: str | Path, options: AblateOptions) -> Ablations:
    """`ablate_heads` for callers that have their options together."""
    run = open_run(model, task, options)
    removals = removals_of(run, options)
    gates = without_each([(), *(one.heads for one in removals)], run.shape)
    outcomes = run.outcomes(gates, options.ablation, options.on_progress)
    frame, warnings = _test(run, removals, outcomes, options)
    ablated = {
        **options.record(),
        "measured": run.measure(outcomes),
        "warnings": warnings,
    }
    return Ablations(frame, {**run.provenance(options), "ablated": ablated}, outcomes)


def removals_of(run: TaskRun, options: AblateOptions) -> list[Removal]:
    """The sets of heads that are removed, as asked for."""
    heads = present_heads(run)
    layers = sorted({layer for layer, _ in heads})
    of_layer = {layer: tuple(one for one in heads if one[0] == layer) for layer in layers}
    found: list[Removal] = []
    for kind in options.sets:
        if kind == "single":
            found += [Removal(kind, f"{one[0]}-{one[1]}", (one,), *one) for one in heads]
        elif kind == "others":
            for one in heads:
                rest = tuple(other for other in of_layer[one[0]] if other != one)
                if rest:
                    found.append(Removal(kind, f"layer {one[0]} but {one[1]}", rest, *one))
        elif kind == "layers":
            found += [
                Removal(kind, f"layer {layer}", own, layer) for layer, own in of_layer.items()
            ]
        else:
            having = heads_by_role(load_roles(str(options.roles_from)), run)
            found += [Removal(kind, role, tuple(sorted(own))) for role, own in having.items()]
    return found


def _test(
    run: TaskRun, removals: Sequence[Removal], outcomes: Outcomes, options: AblateOptions
) -> tuple[pd.DataFrame, list[str]]:
    changes = outcomes.losses[:, 1:] - outcomes.losses[:, :1]
    hypotheses = Hypotheses.of(
        changes,
        0.0,
        labels=np.zeros(len(removals), dtype=np.intp),
        names=("removals",),
        called="the differences",
        size=outcomes.losses[:, 1:].mean(0),
    )
    two_sided = find_p_values(hypotheses, options, "two-sided")
    near = find_equivalence(hypotheses, options, options.margin)
    intervals = find_intervals(hypotheses, options)
    differ = differs(hypotheses, two_sided, options.alpha)
    means = hypotheses.moments.mean
    frame = pd.DataFrame(
        {
            "set": [one.kind for one in removals],
            "removed": [one.name for one in removals],
            "layer": [one.layer for one in removals],
            "head": [one.head for one in removals],
            "n_removed": [len(one.heads) for one in removals],
            "n": hypotheses.moments.n,
            "loss": outcomes.losses[:, 1:].mean(0),
            "loss_change": means,
            "sd": hypotheses.moments.sd,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "p_value": two_sided.single,
            "p_adjusted": two_sided.adjusted,
            "p_equivalence": near.single,
            "p_equivalence_adjusted": near.adjusted,
            "answer": np.select([differ & (means > 0), differ], [WORSE, BETTER], UNDECIDED),
            "equivalent": is_equivalent(hypotheses, near, options.margin, options.alpha),
            "examples_needed": _needed(hypotheses, options),
            **_accuracy(run, outcomes, options),
            "note": find_notes(hypotheses),
        }
    )
    return frame[list(COLUMNS)], find_warnings(hypotheses, options, two_sided, sides=2)


def _needed(hypotheses: Hypotheses, options: AblateOptions) -> NDArray[np.float64]:
    """Examples (T,) at which a two-sided test with a Bonferroni correction has power 0.8."""
    effect = np.abs(hypotheses.effect_size)
    needed = np.where(np.isnan(effect), np.nan, np.inf)
    some = effect > 0
    if some.any():
        level = options.alpha / 2 / hypotheses.n_tests
        needed[some] = smallest_n(effect[some], level, _POWER)
    return needed


def _accuracy(
    run: TaskRun, outcomes: Outcomes, options: AblateOptions
) -> dict[str, NDArray[np.float64]]:
    n_removals = outcomes.losses.shape[1] - 1
    if run.objective != CLASSIFICATION:
        nothing = np.full(n_removals, np.nan)
        return dict.fromkeys(("accuracy_change", "p_accuracy", "p_accuracy_adjusted"), nothing)
    right = outcomes.predictions == run.targets[:, None]
    p_values = mcnemar_test(right[:, 1:], right[:, :1])
    correction = "holm" if options.correction == MAX_T else options.correction
    return {
        "accuracy_change": right[:, 1:].mean(0) - right[:, 0].mean(),
        "p_accuracy": p_values,
        "p_accuracy_adjusted": adjust_p_values(p_values, correction, alpha=options.alpha),
    }
