"""A model and a task -> Importance: how the loss depends on a gate at the output of every head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from msgspec.structs import asdict

from headroles.arrays import FloatArray
from headroles.formats import to_records
from headroles.inference.intervals import skewed_interval
from headroles.models.loading.encoder import Model
from headroles.options import takes
from headroles.record import Record, Recorded, RecordedTask, TaskRecord
from headroles.results.columns import NUMBER, Axes, Column, one_of
from headroles.results.result import Result, widened
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.storage import plain
from headroles.studies.importance.estimators import normalise, reliability_of, values_of
from headroles.studies.importance.example_values import read_examples, write_examples
from headroles.studies.importance.measures import check_measured, describe_task
from headroles.studies.importance.options import (
    ABSOLUTE,
    ESTIMATORS,
    L2,
    SIGNED,
    TAYLOR,
    TOKEN,
    ImportanceOptions,
)
from headroles.studies.importance.removals import present_heads
from headroles.studies.importance.resuming import keep_parts
from headroles.tasks.outcomes import Derivatives
from headroles.tasks.running import open_run
from headroles.testing.hypotheses import Hypotheses, size_of

EXAMPLES_FILE = "importance-examples.parquet"
_STRONGEST = 5
_RELIABLE = 0.8
USES = {
    ABSOLUTE: ("choose heads to remove (Michel et al. 2019)", "nats"),
    SIGNED: ("estimate the rise of the loss without the head", "nats"),
    TAYLOR: ("choose heads, where rare large effects count more", "nats squared"),
    TOKEN: ("repeat what Michel et al. released", "nats a token"),
}
"""What to use each estimator for, and its unit."""


class MeasuredTask(RecordedTask, frozen=True, kw_only=True):
    """A task, with the loss and the metrics of the whole model."""

    measured: dict[str, float]

    def __post_init__(self) -> None:
        check_measured(self.measured, self.metrics)


class Reliability(Recorded, frozen=True):
    """Reliability of the order of one estimator; None for undefined figures."""

    split_half: float | None
    full: float | None
    examples_needed: float | None


class ImportanceRecord(TaskRecord, frozen=True, kw_only=True):
    """Record of importance: the model, the task, and the reliability of orders."""

    task: MeasuredTask
    reliability: dict[str, Reliability]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.read_options(AskedReliability)

    @property
    def asked_reliability(self) -> float:
        """The reliability for which the needed examples are reported."""
        return self.read_options(AskedReliability).reliability


class AskedReliability(Recorded, frozen=True):
    """The option of the reliability."""

    reliability: float


@dataclass(frozen=True, repr=False, eq=False)
class Importance(Result):
    """Dependence of the loss of a task on each head, by several estimators.

    With d the derivative of an example's loss by the gate of a head (a gate of 1 leaves the head
    as it is), the estimators are means over examples: ``absolute`` of |d| (Michel et al. 2019,
    equation 2); ``signed`` of -d, to first order the rise of the loss if the head is removed;
    ``taylor`` of d^2 (Molchanov et al. 2019); ``token`` adds up absolute values over tokens
    before anything else and divides by the number of tokens, in the last layer by the number of
    examples (as the released code of Michel et al.; values per token bound values per example from
    above).

    ``frame`` has the columns of ``columns``, ordered by estimator, layer and head. ``importance``
    is in units of the loss (``taylor`` squared), with its standard error and 95 % interval: by t
    for ``signed``, by `skewed_interval` for the others, whose upper tails are long (of ``taylor``
    from 50 examples it holds the mean in 89 %);
    ``normalised`` is divided by the Euclidean length of its layer; ``rank`` counts from 1, the most
    important head, by ``normalised`` under l2, else by ``importance``. Removed heads are NaN.

    ``derivatives`` are the derivatives of every example.

    With ``importance`` as `find_importance` returns it:

    >>> importance.of("absolute").shape
    (3, 4)
    """

    record: ImportanceRecord
    derivatives: Derivatives | None = None

    kind: ClassVar[str] = "importance"
    stem: ClassVar[str] = "importance"
    remedy: ClassVar[str] = "make it with: headroles importance MODEL TASK --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer head estimator n importance standard_error ci_low ci_high normalised rank".split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        "estimator": one_of(*ESTIMATORS),
        "rank": Column(NUMBER, 1, gaps=True),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "wide")

    def axes(self) -> Axes:
        """Return all estimators and all heads of a layer; layers may be missing."""
        heads = [(head,) for head in range(self.record.heads)]
        return {("estimator",): [(one,) for one in ESTIMATORS], ("layer",): [], ("head",): heads}

    def of(self, estimator: str, column: str = "importance") -> FloatArray:
        """Return (layers, heads): a column of one estimator; NaN for missing layers."""
        rows = self.frame[self.frame["estimator"] == estimator]
        values = np.full((self.record.layers, self.record.heads), np.nan)
        values[rows["layer"], rows["head"]] = rows[column]
        return values

    def wide(self, value: str = "importance") -> pd.DataFrame:
        """Return one row per head, a column per estimator, holding column ``value``.

        Raises UsageError for an unknown column.
        """
        return widened(self.frame, ("layer", "head"), "estimator", ESTIMATORS, value)

    def correlations(self) -> pd.DataFrame:
        """Return rank correlations (Spearman) of the estimators with one another, over heads."""
        return self.wide()[list(ESTIMATORS)].corr("spearman").rename_axis("estimator")

    @property
    def reliability(self) -> dict[str, dict[str, float]]:
        """For each estimator ``split_half``, ``full`` and ``examples_needed``."""
        return {  # JSON has null for NaN
            estimator: {name: np.nan if one is None else one for name, one in asdict(own).items()}
            for estimator, own in self.record.reliability.items()
        }

    def agreement(self) -> Iterator[tuple[str, str, float]]:
        """Return Spearman's rank correlation over heads, for every two estimators."""
        between = self.wide("rank")[list(ESTIMATORS)].corr().to_numpy()
        for one, other in combinations(range(len(ESTIMATORS)), 2):
            yield ESTIMATORS[one], ESTIMATORS[other], float(between[one, other])

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the definition of importance, and the work to cite."""
        return (
            "The importance of a head is the expected derivative of the loss by a gate on its "
            "output (Michel et al., 2019).",
        ), ("michel",)

    def summarize(self) -> Iterator[Shown]:
        """Name the estimator to use and its most important heads; warn of unreliable orders."""
        yield describe_task(self.record, self.record.task.measured)
        yield (
            f"Use `{ABSOLUTE}` to choose heads to remove: how much the loss of an example changes, "
            "up or down,\nas the head is scaled, in nats, mean over examples. Heads are named "
            "layer-head, counted from 0."
        )
        yield self._heads()
        yield self._estimators()
        yield Warned(
            "Reliability is not validity: check the ranking with `headroles ablate`, which removes "
            "each head and tests the loss."
        )
        if task_cut := self.record.task.cut:
            yield f"{task_cut} examples were cut to the length that the model takes."
        weak = [name for name in ESTIMATORS if self.reliability[name]["full"] < _RELIABLE]
        if weak:
            yield Warned(
                f"Other examples would give another order by {', '.join(weak)} (reliability below "
                f"{_RELIABLE:g}). Add examples."
            )

    def details(self) -> Iterator[Shown]:
        """Tabulate the most important heads of each estimator, and how far its order holds."""
        title = "most important heads: layer-head importance (standard error)"
        needed = f"needed for {self.record.asked_reliability:g}"
        columns = ("estimator", "split-half", "all", needed, title)
        yield Grid(columns, tuple(map(self._row, ESTIMATORS)), left=frozenset([title]))
        yield (
            "split-half: rank correlation of the orders in random halves of the examples; all: "
            "expected for all examples; needed: examples for such an order."
        )
        agreed = [
            f"{one} and {other} {r:.2f}" for one, other, r in self.agreement() if np.isfinite(r)
        ]
        if agreed:
            yield f"Rank correlations of importances: {', '.join(agreed)}."

    def _heads(self) -> Grid:
        """List the heads most important by the estimator to use."""
        rows = self.frame[self.frame["estimator"] == ABSOLUTE].dropna(subset="importance")
        cells = {
            f"Most important of {len(rows)} heads": "{layer}-{head}",
            "nats": "{importance:.3g}",
            "95 % interval": "{ci_low:.3g} to {ci_high:.3g}",
        }
        return Grid.of(rows.nsmallest(_STRONGEST, "rank"), cells)

    def _estimators(self) -> Grid:
        """Tabulate the purpose of each estimator, its unit, and how reliable its order is."""
        rows = tuple(
            (name, use, unit, in_digits(self.reliability[name]["full"]))
            for name, (use, unit) in USES.items()
        )
        columns = ("Estimator", "to", "unit", "reliability")
        return Grid(columns, rows, left=frozenset(columns[1:3]))

    def _row(self, estimator: str) -> tuple[str, ...]:
        found = self.reliability[estimator]
        rows = self.frame[self.frame["estimator"] == estimator].dropna(subset="importance")
        heads = [
            f"{row.layer}-{row.head} {row.importance:.3g} ({row.standard_error:.1g})"
            for row in rows.nsmallest(_STRONGEST, "rank").itertuples()
        ]
        needed = found["examples_needed"]
        n_needed = f"{needed:,.0f}" if np.isfinite(needed) else "-"
        reliable = (in_digits(found[name]) for name in ("split_half", "full"))
        return (estimator, *reliable, n_needed, "  ".join(heads))

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        names = ("task", "layers", "heads", "reliability")
        heads = to_records(self.frame[["layer", "head", "estimator", "importance", "rank"]])
        return {**{name: plain(getattr(self.record, name)) for name in names}, "importance": heads}

    def write_files(self, folder: Path) -> list[str]:
        """Write the table, and the derivatives of all examples."""
        names = super().write_files(folder)
        if self.derivatives is None:
            return names
        write_examples(folder / EXAMPLES_FILE, vars(self.derivatives))
        return [*names, EXAMPLES_FILE]

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Importance:
        """Read the table and the derivatives."""
        table, types = super().read_files(folder, record), Derivatives.types(record.shape)
        shapes = {name: shape for name, (_, shape) in types.items()}
        found = read_examples(folder / EXAMPLES_FILE, shapes)
        return replace(table, derivatives=Derivatives(**found))


@takes(ImportanceOptions)
def find_importance(model: Model, task: str | Path, options: ImportanceOptions) -> Importance:
    """Estimate how much the loss of a task depends on each head of a model trained for the task.

    One pass forward and one back over the examples of ``task``, a file of labelled text (or plain
    text for a masked language model), gives the derivative of every example's loss by the gate of
    every head. Take examples that the model was trained on, or others that you will not test on.

    Importance does not measure the loss without heads, least of all without many: see
    `ablate_heads` for single heads and `find_pruning_curves` for many.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: a tab-separated file of labelled text; plain text for masked language models.
        options: keyword arguments, described below.

    Raises:
        CorpusError, UsageError: a task that cannot be read, or labels the model does not know.
        ModelError, TokenizerError: as `score_heads`; nothing trained on top of the encoder.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from headroles import find_importance
    >>> importance = find_importance(model, task)
    >>> importance.of("absolute").shape
    (3, 4)
    >>> importance.frame["estimator"].unique().tolist()
    ['absolute', 'signed', 'token', 'taylor']
    """
    run = open_run(model, task, options)
    keep_parts("importance", options, run.encoder, run)
    is_removed = np.ones(run.shape, dtype=bool)
    is_removed[tuple(zip(*present_heads(run), strict=True))] = False
    found = run.derivatives()
    values = {
        name: np.where(is_removed.ravel(), np.nan, values_of(found, name)) for name in ESTIMATORS
    }
    reliability = {
        name: Reliability(**reliability_of(own.reshape(-1, *run.shape), options))
        for name, own in values.items()
    }
    frames = [_frame(name, own, run.shape, options.normalisation) for name, own in values.items()]
    record = run.record(options)
    measured = MeasuredTask.extending(record.task, measured=run.measure(found.outcomes))
    return Importance(
        pd.concat(frames, ignore_index=True),
        ImportanceRecord.extending(record, task=measured, reliability=reliability),
        found,
    )


def _frame(
    name: str, values: FloatArray, shape: tuple[int, int], normalisation: str
) -> pd.DataFrame:
    tested = Hypotheses.of(values, 0.0, size=size_of(values))
    # absolute ones are never negative, with upper tails that are too long for t
    intervals = tested.intervals(0.05) if name == SIGNED else skewed_interval(tested.sample)
    means = tested.moments.mean
    normalised = normalise(means.reshape(shape), L2).ravel()
    ranked = normalised if normalisation == L2 else means
    layer, head = (axis.ravel() for axis in np.indices(shape))
    return pd.DataFrame(
        {
            "layer": layer,
            "head": head,
            "estimator": name,
            "n": tested.moments.n,
            "importance": means,
            "standard_error": tested.moments.standard_error,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "normalised": normalised,
            "rank": pd.Series(-ranked).rank(method="first").to_numpy(),
        }
    )[list(Importance.columns)]
