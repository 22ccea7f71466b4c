"""A model and a task -> PruningCurves: what is lost as more and more heads go, order by order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.models.loading import Model
from headroles.options import takes
from headroles.record import RecordedTaskFile, TaskRecord
from headroles.results.columns import WHOLE, Axes, Column, one_of
from headroles.results.result import widened
from headroles.results.shown import Grid, Shown, Warned
from headroles.storage import Count, plain
from headroles.studies.importance.example_values import OutcomesResult
from headroles.studies.importance.measures import (
    BETTER,
    LOSS,
    WORSE,
    check_measured,
    describe_task,
    measured,
)
from headroles.studies.importance.removals import passes_to_choose, without_each
from headroles.studies.importance.resuming import keep_parts
from headroles.studies.pruning.curve_options import CurveOptions
from headroles.studies.pruning.curve_points import Point, find_points
from headroles.studies.pruning.curve_table import COMPARED, NOT_COMPARED, make_table
from headroles.studies.pruning.options import BY_TASK, refuse_idle
from headroles.tasks.options import MASKED_LM
from headroles.tasks.reading import read_task
from headroles.tasks.running import TaskRun, open_run
from headroles.testing.answers import UNDECIDED
from headroles.testing.recorded import RecordedCorrection
from headroles.wording import listed

_SHOWN, _FEW_SHARES = 8, 4
"""Orders and shares that the summary tabulates."""
_FEWEST = 2
"""Examples that an order can be found with."""


class DealtTask(RecordedTaskFile, frozen=True, kw_only=True):
    """The examples that orders were found with, and how many draws they were dealt to."""

    draws: Count


class Curves(RecordedCorrection, frozen=True, kw_only=True):
    """Record of curves and of their comparison."""

    orders: list[str]
    shares: list[float]
    draws: Count
    against: str
    whole: dict[str, float]
    task: DealtTask | None
    points: list[Point]
    warnings: list[str]


class CurvesRecord(TaskRecord, frozen=True, kw_only=True):
    """Record of curves: the model, the task, and the comparison."""

    curves: Curves

    def __post_init__(self) -> None:
        super().__post_init__()
        check_measured(self.curves.whole, self.task.metrics)


@dataclass(frozen=True, repr=False, eq=False)
class PruningCurves(OutcomesResult):
    """Losses of a task as more and more heads are removed, in several orders.

    ``frame`` has the columns of ``columns``, a row for each order, share of the heads removed and
    measure (the loss and the metrics of the task); the share NaN is the mean over all
    shares, where there are several.
    ``value`` is the mean over ``draws``, ``sd_draws`` their standard deviation; ``ci_low`` and
    ``ci_high`` are its interval over other examples and, where there are several, other draws: of
    heads at random, and of the examples that orders of importance are found with. With one draw it
    is about the very orders that were found.
    ``difference`` is the value less that of the order ``against`` which all were compared, with its
    interval and p-value (paired by example, both over examples and over draws); p-values are
    corrected over orders and shares, each measure by itself. ``answer`` is better, worse or
    undecided, ``note`` what to know of the test.

    ``outcomes`` are the losses and predictions (examples, settings), the first setting the whole
    model; ``targets`` (examples,) what was to be said. ``points`` tell which setting is which.

    With ``curves`` as `find_pruning_curves` returns them:

    >>> curves.frame["measure"].unique().tolist()
    ['loss', 'accuracy', 'f1', 'matthews']
    """

    record: CurvesRecord

    kind: ClassVar[str] = "pruning curves"
    stem: ClassVar[str] = "pruning-curves"
    examples_file: ClassVar[str] = "pruning-curves-examples.parquet"
    cure: ClassVar[str] = "make them with: headroles pruning-curves MODEL TASK --test FILE --out D"
    columns: ClassVar[tuple[str, ...]] = (
        *"order share n_removed draws measure n value sd_draws ci_low ci_high".split(),
        *COMPARED,
    )
    own: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(WORSE, BETTER, UNDECIDED, NOT_COMPARED),
        "n_removed": Column(WHOLE, -1),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "wide")

    def axes(self) -> Axes:
        """Return those of all orders."""
        return {("order",): [], ("share",): [], ("measure",): [(LOSS,)]}

    @property
    def curves(self) -> Curves:
        """The record of the comparison: options, warnings, measures of the whole model."""
        return self.record.curves

    @property
    def points(self) -> list[Point]:
        """The seed, the setting and the removed heads of every order, share and draw."""
        return self.curves.points

    @property
    def measure(self) -> str:
        """The first metric of the task, or the loss where there is none."""
        return next(iter(self.record.task.metrics), LOSS)

    def overall(self, measure: str) -> pd.DataFrame:
        """Return the rows of a measure that are means over the shares, or of the only share."""
        rows = self.frame[self.frame["measure"] == measure]
        return rows[rows["share"].isna()] if len(self.curves.shares) > 1 else rows

    def wide(self, value: str = "value") -> pd.DataFrame:
        """Return a row per order, a column per share, with ``value`` of the first metric.

        Raises UsageError for one that it does not have.
        """
        rows = self.frame[(self.frame["measure"] == self.measure) & self.frame["share"].notna()]
        own = rows.drop(columns="measure")
        return widened(own, ("order",), "share", _unique(own), value)

    def shown(self) -> Iterator[Shown]:
        """Say which order of removing heads loses least, and tabulate the curves."""
        asked = self.curves
        yield describe_task(self.record, asked.whole)
        rows, shares, against = self.overall(LOSS), asked.shares, asked.against
        where = f"With {shares[0]:.0%}" if len(shares) == 1 else "On average over the shares"
        for one in rows.nsmallest(1, "value").to_dict("records"):
            least = "least" if len(rows) > 1 else "that"
            yield (
                f"{where} of the heads removed, the loss is {least} of the order {one['order']}: "
                f"{one['value']:.3g} ({one['ci_low']:.3g} to {one['ci_high']:.3g})."
            )
        for answer in (BETTER, WORSE) if len(rows) > 1 else ():
            named = listed([str(row.order) for row in rows.itertuples() if row.answer == answer], 6)
            yield f"Shown to be {answer} than {against}: {named or 'no order'}."
        yield self._grid(self.measure, f"{self.measure} without", _in_short, most=_SHOWN)
        yield from map(Warned, asked.warnings)

    def details(self) -> Iterator[Shown]:
        """Tabulate the curves, and the differences from the order compared with."""
        asked = self.curves
        yield self._grid(self.measure, f"{self.measure} without", _value)
        if len(asked.orders) > 1:
            title = f"loss, less {asked.against} (p)"
            yield self._grid(LOSS, title, _difference, left_out=asked.against)
        means = "; all: the mean over the shares" if len(asked.shares) > 1 else ""
        found = asked.task
        phrases = f" and of {found.examples} examples of {found.file}" if found else ""
        draws = f" and other draws ({asked.draws}, of heads at random{phrases})"
        yield (
            f"Intervals of {1 - asked.alpha:.0%} and p-values over other examples"
            f"{draws * (asked.draws > 1)}; {asked.correction} over orders and shares{means}."
        )

    def _grid(
        self, measure: str, title: str, cell: Any, left_out: str = "", most: int | None = None
    ) -> Grid:
        """Tabulate the orders by share; of more than ``most`` the ends of the shares and orders."""
        rows = self.frame[(self.frame["measure"] == measure) & (self.frame["order"] != left_out)]
        shares = [f"{share:.0%}" if np.isfinite(share) else "all" for share in _unique(rows)]
        cells = tuple(
            (str(order), *(cell(one) for one in own.itertuples()))
            for order, own in rows.groupby("order", sort=False)
        )
        if most is None or (len(cells) <= most and len(shares) <= _FEW_SHARES):
            return Grid((title, *shares), cells)
        places = [*range(1, min(len(shares), _FEW_SHARES - 1) + 1), len(shares)]
        columns = [shares[place - 1] for place in places]
        return Grid(
            (title, *columns), tuple((row[0], *(row[k] for k in places)) for row in cells[:most])
        )

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts."""
        curves = {**self.record.options, **plain(self.curves)}
        return {"curves": curves, "values": to_records(self.frame)}


def _unique(rows: pd.DataFrame) -> list[float]:
    shares: list[float] = rows["share"].drop_duplicates().tolist()
    return shares


def _value(row: Any) -> str:
    return f"{row.value:.3f} ({row.ci_low:.3f} to {row.ci_high:.3f})"


def _in_short(row: Any) -> str:
    return f"{row.value:.2f} ({row.ci_low:.2f} to {row.ci_high:.2f})"


def _difference(row: Any) -> str:
    return f"{row.difference:+.3f} ({row.p_adjusted:.2g})"


@takes(CurveOptions)
def find_pruning_curves(
    model: Model,
    test: str | Path,
    task: str | Path | None = None,
    *,
    options: CurveOptions,
) -> PruningCurves:
    """Return what a model loses as more and more heads are removed, in several orders.

    Every order is one sequence of heads, of which longer and longer parts are removed (the groups
    of layers are found anew for each share). Each of several draws finds all orders anew: orders of
    importance with other examples of ``task``, random ones with other heads. Nothing is trained
    after heads were removed.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        test: examples that losses and metrics are measured on, others than those of ``task``.
        task: examples that orders of importance are found with, as of `find_importance`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an order without what it needs, or more heads than may go.
        CorpusError, ModelError: as `find_importance`.

    With ``model`` a classifier, ``task`` and ``other`` files of 8 examples each:

    >>> from headroles import find_pruning_curves
    >>> curves = find_pruning_curves(model, other, task, orders="importance,random", draws=2)
    >>> curves.frame["order"].unique().tolist(), curves.measure
    (['importance', 'random'], 'accuracy')
    """
    refuse_idle([options.of_order(one)[0] for one in options.orders], options)
    tested = open_run(model, test, options.of_test())
    runs = _deal(tested, task, options)
    keep_parts("pruning curves", options, tested.encoder, tested, *runs)
    _expect(tested, runs, options)
    found = find_points(tested, runs, options)
    gates = without_each(found.sets, tested.shape)
    tested.expect(tested.n_passes(gates))
    outcomes = tested.outcomes(gates)
    frame, warnings = make_table(found, outcomes, tested.targets, tested.metrics, options)
    whole = measured(outcomes, tested.targets, tested.metrics)
    curves = Curves.from_options(
        options.record(),
        whole={name: float(values[0]) for name, values in whole.items()},
        task=DealtTask.extending(runs[0].task.describe(), draws=len(runs)) if runs else None,
        points=list(found.points),
        warnings=[*_warnings(tested, runs, options), *warnings],
    )
    record = CurvesRecord.extending(tested.record(options), curves=curves)
    return PruningCurves(frame[list(PruningCurves.columns)], record, outcomes, tested.targets)


def _expect(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> None:
    """Report the progress of all runs as one; points that remove the same heads are counted."""
    orders = [options.of_order(one) for one in options.orders]
    n_points = 1 + len(orders) * len(options.shares) * options.draws
    amount = n_points * len(tested.batches) + sum(
        len(run.batches) * passes_to_choose(name, run, own.steps)
        for run in runs
        for name, own in orders
    )
    for run in (tested, *runs):
        run.rounds = tested.rounds
    tested.rounds.expect(amount)


def _deal(tested: TaskRun, file: str | Path | None, options: CurveOptions) -> list[TaskRun]:
    """Return for each draw a run over the examples that it finds orders with, none without a file.

    No two draws have an example in common, and each has its share of every label.

    Raises UsageError where an order needs examples, and for fewer than two of each draw.
    """
    if file is None:
        lacking = [order for order in options.orders if options.of_order(order)[0] in BY_TASK]
        if lacking:
            raise UsageError(
                f"the order {lacking[0]} needs a task; name its file after the model, or other "
                "orders (--orders)"
            )
        return []
    n_asked = None if options.examples is None else options.examples * options.draws
    labelled = tested.objective != MASKED_LM
    task = read_task(file, replace(options, examples=n_asked), labelled)
    size = len(task) // options.draws
    if size < _FEWEST:
        raise UsageError(
            f"{file} has {len(task)} examples for {options.draws} draws, each of which needs "
            f"{_FEWEST} of its own; give more examples, or ask for fewer draws (--draws)"
        )
    order = np.random.default_rng(options.seed).permutation(len(task))[: size * options.draws]
    dealt = sorted(order.tolist(), key=lambda at: task.labels[at] if labelled else "")
    parts = [sorted(dealt[draw :: options.draws]) for draw in range(options.draws)]
    return [TaskRun(tested.encoder, task.take(part), options) for part in parts]


def _warnings(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> list[str]:
    """Warn of the examples that orders were found with."""
    found = []
    if runs and runs[0].task.digest == tested.task.digest:
        found.append(
            f"orders were found and measured in one file, {tested.task.file}: heads that were "
            "chosen by examples do better on these than on others; take others for the test"
        )
    size = len(runs[0].task) if runs else 0
    if options.examples is not None and 0 < size < options.examples:
        found.append(
            f"{runs[0].task.file} has {size} examples for each of {options.draws} draws, not "
            f"{options.examples}; orders were found with {size}"
        )
    return found
