"""Ablations in several tasks -> TaskDrops: the layers or heads that matter for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.options import takes
from headroles.record import Record, RecordedModel, RecordedTaskFile
from headroles.results.columns import Axes, Column, one_of
from headroles.results.result import Result, widened
from headroles.results.shown import Grid, Shown, Warned
from headroles.studies.importance.ablation import Ablations
from headroles.studies.importance.drop_table import make_table, measures_of
from headroles.studies.importance.measures import BETTER, LESS, LOSS, MORE, WORSE
from headroles.studies.importance.options import TaskDropOptions
from headroles.testing.answers import UNDECIDED
from headroles.testing.notes import warn_of_shared
from headroles.testing.recorded import RecordedCorrection
from headroles.wording import listed

MOST_ROWS = 24
"""Rows of a printed matrix: the removals that change most."""
_THIRDS, _SHOWN = "thirds", 8
_WITH_INTERVALS = 3  # tasks whose intervals fit on a line


class TaskOfDrops(RecordedTaskFile, frozen=True, kw_only=True):
    """One of several tasks, its model, and the loss and metrics of the whole model."""

    name: str
    model: RecordedModel
    whole: dict[str, float]


class Drops(RecordedCorrection, frozen=True, kw_only=True):
    """Record of the comparison of several tasks."""

    tasks: list[TaskOfDrops]
    warnings: list[str]


class DropsRecord(Record, frozen=True, kw_only=True):
    """Record of several tasks and of their comparison."""

    by_task: Drops

    @property
    def models(self) -> dict[str, RecordedModel]:
        """The models of the tasks, by the names of the tasks."""
        return {one.name: one.model for one in self.by_task.tasks}


@dataclass(frozen=True, repr=False, eq=False)
class TaskDrops(Result):
    """Losses of several tasks (or languages, genres) without layers or heads.

    ``frame`` has the columns of ``columns``, a row for each measure that all tasks have, removal
    and task. ``relative_drop`` is the change as a share of the whole model's value: of a metric
    (whole - without) / whole, of the loss (without - whole) / whole; positive is worse. Its
    interval (NaN if the model without the heads has a metric of 0) and p-value are over examples.
    ``deviation`` is the relative drop less the mean drop of its task over the removals of the same
    set, less the mean of this difference over the other tasks: how much more a removal matters in
    this task than in the others, with equal mean drops. Both kinds of p-values are corrected over
    removals and tasks, each measure by itself. ``answer`` is worse, better or undecided;
    ``deviates`` more, less or undecided; ``note`` is about the test behind ``answer``.

    With ``drops`` as `compare_tasks` returns them:

    >>> list(drops.tasks)
    ['one', 'other']
    """

    record: DropsRecord

    kind: ClassVar[str] = "task drops"
    stem: ClassVar[str] = "task-drops"
    remedy: ClassVar[str] = "make them with: headroles by-task DIR DIR --out DROPS"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "measure set removed task n n_removed whole without relative_drop ci_low ci_high "
            "p_value p_adjusted answer deviation deviation_low deviation_high p_deviation "
            "p_deviation_adjusted deviates note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(WORSE, BETTER, UNDECIDED),
        "deviates": one_of(MORE, LESS, UNDECIDED),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "wide")

    def axes(self) -> Axes:
        """Return measures with the loss among them, removals, and tasks."""
        return {("measure",): [(LOSS,)], ("set", "removed"): [], ("task",): []}

    @property
    def compared(self) -> Drops:
        """The record of the comparison: tasks, options, warnings."""
        return self.record.by_task

    @property
    def measures(self) -> list[str]:
        """The measures that all tasks have: metrics first, the loss last."""
        names: list[str] = self.frame["measure"].drop_duplicates().tolist()
        return sorted(names, key=lambda name: name == LOSS)

    @property
    def measure(self) -> str:
        """The measure of the summary: Matthews' correlation if all tasks have it."""
        # The lowest accuracy is the share of the larger class, which differs by task.
        return "matthews" if "matthews" in self.measures else self.measures[0]

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, in their order."""
        return [one.name for one in self.compared.tasks]

    def largest(self, measure: str, most: int = MOST_ROWS) -> list[str]:
        """Return at most ``most`` removals, the largest changes, in the order of the table."""
        rows = self.frame[self.frame["measure"] == measure]
        order: list[str] = rows["removed"].drop_duplicates().tolist()
        if len(order) <= most:
            return order
        largest = rows.groupby("removed")["relative_drop"].agg(lambda own: own.abs().max())
        chosen = set(largest.nlargest(most).index)
        return [name for name in order if name in chosen]

    @staticmethod
    def marks(row: Any) -> str:
        """Return marks: ``*`` differs from 0, ``>`` more, ``<`` less than in other tasks."""
        marks = "*" if row["answer"] != "undecided" else ""
        return marks + {MORE: ">", LESS: "<"}.get(row["deviates"], "")

    def wide(self, value: str = "relative_drop") -> pd.DataFrame:
        """Return one row per measure and removal, a column per task, holding column ``value``.

        Raises UsageError for an unknown column.
        """
        return widened(self.frame, ("measure", "set", "removed"), "task", self.tasks, value)

    def correlations(self, kind: str, measure: str = LOSS) -> pd.DataFrame:
        """Return rank correlations (Spearman) of tasks, over the removals of a set."""
        wide = self.wide()
        rows = wide[(wide["measure"] == measure) & (wide["set"] == kind)]
        return rows[self.tasks].corr("spearman").rename_axis("task")

    def summarize(self) -> Iterator[Shown]:
        """Count removals that matter, and tabulate the largest drops."""
        rows = self.frame[self.frame["measure"] == LOSS]
        worse, more = (rows["answer"] == WORSE).sum(), (rows["deviates"] == MORE).sum()
        yield (
            f"{rows['removed'].nunique()} removals in {len(self.tasks)} tasks "
            f"({listed(self.tasks, 6)}): {worse} of {len(rows)} make the loss worse,\n"
            f"{more} matter more for their task than for the others."
        )
        for one in rows.nlargest(1, "relative_drop").to_dict("records"):
            yield (
                f"Largest: without {one['removed']} the loss of {one['task']} changes by "
                f"{one['relative_drop']:+.1%}."
            )
        yield from self._grid(self.measure, _SHOWN)
        yield "* differs from 0; > more, < less than in the other tasks."
        yield from map(Warned, self.compared.warnings)

    def details(self) -> Iterator[Shown]:
        """Tabulate relative drops by ``measure`` and by the loss."""
        asked = self.compared
        yield (
            "Drops without heads, as shares of the whole model's values.\n"
            + "\n".join(
                f"{one.name}: {one.examples} examples of {one.file}, "
                + ", ".join(f"{name} {value:.3f}" for name, value in one.whole.items())
                for one in asked.tasks
            )
        )
        for measure in dict.fromkeys((self.measure, LOSS)):
            yield from self._grid(measure)
        yield (
            f"Intervals of {1 - asked.alpha:.0%} over examples; > and < compare tasks after "
            f"subtracting each task's mean ({asked.correction})."
        )
        for kind in dict.fromkeys(self.frame["set"]):
            if line := self._agreement(str(kind)):
                yield line

    def _grid(self, measure: str, most: int = MOST_ROWS) -> Iterator[Shown]:
        rows = self.frame[self.frame["measure"] == measure]
        order, removals = self.largest(measure, most), rows["removed"].nunique()
        of_all = f" (the {len(order)} largest of {removals})" if len(order) < removals else ""
        yield f"{measure} lost without{of_all}"
        cells = rows.set_index(["removed", "task"]).to_dict("index")
        grid = tuple(
            (str(removed), *(_cell(cells[removed, name], len(self.tasks)) for name in self.tasks))
            for removed in order
        )
        yield Grid(("", *self.tasks), grid)

    def _agreement(self, kind: str) -> str:
        found = self.correlations(kind).to_numpy()
        pairs = found[np.triu_indices(len(found), 1)]
        if not np.isfinite(pairs).any():
            return ""
        return (
            f"{kind}: the orders of losses have a rank correlation of {np.nanmin(pairs):.2f} to "
            f"{np.nanmax(pairs):.2f} between tasks"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {"by_task": self.compared, "drops": to_records(self.frame)}


def _cell(row: Any, n_tasks: int) -> str:
    limits = f" ({row['ci_low']:+.1%} to {row['ci_high']:+.1%})"
    if np.isnan(row["ci_low"]) or n_tasks > _WITH_INTERVALS:
        limits = ""
    return f"{row['relative_drop']:+.1%}{limits}{TaskDrops.marks(row):2}"


@takes(TaskDropOptions)
def compare_tasks(
    ablations: Sequence[Ablations], names: Sequence[str], options: TaskDropOptions
) -> TaskDrops:
    """Test which layers or heads matter for which of several tasks, languages or genres.

    The tasks may share a model (a multilingual model and texts of several languages) or have a
    model each (fine-tuned for one task each); heads are compared by their places. Models of
    different sizes are compared by thirds of their layers.

    Args:
        ablations: results of `ablate_heads`, one for each task, of the same sets of heads.
        names: names of the tasks in tables.
        options: keyword arguments, described below.

    Raises:
        UsageError: fewer than two tasks, equal names, different ablations, no removals in common,
            or results without their examples.

    With ``model`` a classifier, ``task`` and ``other`` files of examples:

    >>> from headroles import ablate_heads, compare_tasks
    >>> ablations = [ablate_heads(model, file, sets="layers") for file in (task, other)]
    >>> drops = compare_tasks(ablations, ["one", "other"])
    >>> list(drops.tasks), len(drops)
    (['one', 'other'], 18)
    """
    _check(ablations, names)
    common = _common_removals(ablations, names)
    measures, left_out = measures_of(ablations, names)
    frame, warnings = make_table(ablations, names, common, measures, options)
    tasks = [
        TaskOfDrops.extending(
            one.record.corpus, name=name, model=one.record.model, whole=one.ablated.measured
        )
        for one, name in zip(ablations, names, strict=True)
    ]
    cautions = [*left_out, *warn_of_shared({one.name: one.sha256 for one in tasks}), *warnings]
    by_task = Drops(**options.record(), tasks=tasks, warnings=cautions)
    return TaskDrops(frame[list(TaskDrops.columns)], DropsRecord.now(by_task=by_task))


def _check(ablations: Sequence[Ablations], names: Sequence[str]) -> None:
    if len(ablations) < 2:
        raise UsageError(f"{len(ablations)} task is given; name two folders of ablations at least")
    if len(set(names)) < len(names) or len(names) != len(ablations):
        raise UsageError(
            f"{len(ablations)} tasks are called {listed(names, 8)}; give each a different name"
        )
    kinds = [one.ablated.ablation for one in ablations]
    if len(set(kinds)) > 1:
        found = ", ".join(f"{kind} in {name}" for kind, name in zip(kinds, names, strict=True))
        raise UsageError(f"the ablations differ: {found}; give all tasks the same `ablation`")


def _common_removals(ablations: Sequence[Ablations], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (set, removed) of the removals that all tasks have, in the order of the first."""
    shapes = {(one.record.layers, one.record.heads) for one in ablations}
    found = [list(zip(one.frame["set"], one.frame["removed"], strict=True)) for one in ablations]
    common = [
        pair
        for pair in found[0]
        if all(pair in other for other in found) and (len(shapes) == 1 or pair[0] == _THIRDS)
    ]
    if common:
        return common
    if len(shapes) > 1:
        sizes = ", ".join(f"{layers} layers x {heads} heads" for layers, heads in sorted(shapes))
        raise UsageError(
            f"the models have different sizes ({sizes}), so that only thirds of their layers can "
            "be compared; ablate all with `sets='thirds'`"
        )
    raise UsageError(f"no removal is in all of {listed(names, 8)}; ablate all with the same `sets`")
