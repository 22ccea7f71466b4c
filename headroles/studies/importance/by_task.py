"""Which layers or heads matter for which task? Ablations in several tasks -> DropsByTask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray
from headroles.drawing.style import draw_grid, new_axes, plain, role_label, set_title
from headroles.errors import UsageError
from headroles.inference.combined import contrast_sample
from headroles.inference.sample import Sample
from headroles.options import takes
from headroles.results.columns import Axes, Column, one_of
from headroles.results.consistency import Rule, answers_by, around, on_side
from headroles.results.result import NoFacts, Result
from headroles.results.shown import Grid, Shown, Title, Warned
from headroles.studies.importance.ablate import Ablations
from headroles.studies.removals import BETTER, LESS, MORE, WORSE, known_measure, two_sided, worse_by
from headroles.tasks.outcomes import LOSS
from headroles.testing.evidence import UNDECIDED, answers, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences, warn_of_shared
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

_TABULATED, _DRAWN = 8, 24
"""Removals that change most: rows of the summary and of the figure."""
_WITH_INTERVALS = 3  # tasks whose intervals fit on a line


@dataclass(frozen=True, repr=False, eq=False)
class DropsByTask(Result[CorrectionOptions, NoFacts]):
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

    With ``drops`` as `drops_by_task` returns them:

    >>> list(drops.tasks)
    ['one', 'other']
    """

    kind: ClassVar[str] = "by-task"
    question: ClassVar[str] = "Which attention heads matter for which task?"
    figures: ClassVar[Mapping[str, str]] = {"tasks": "draw_drops_by_task"}
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "measure set removed task n n_removed whole without relative_drop ci_low ci_high "
            "p_value p_adjusted answer deviation deviation_low deviation_high p_deviation "
            "p_deviation_adjusted deviates note"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(WORSE, BETTER, UNDECIDED),
        "deviates": one_of(MORE, LESS, UNDECIDED),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "relative_drop", "ci_high"),
        around("deviation_low", "deviation", "deviation_high"),
        answers_by("answer", "p_adjusted", WORSE, BETTER, of="relative_drop"),
        on_side("answer", (WORSE,), (BETTER,), of="relative_drop"),
        answers_by("deviates", "p_deviation_adjusted", MORE, LESS, of="deviation"),
        on_side("deviates", (MORE,), (LESS,), of="deviation"),
        Rule(
            ("whole", "without", "relative_drop"),
            "relative_drop is the share of whole that is lost",
            lambda rows, _: np.isclose(
                rows["relative_drop"].abs(),
                ((rows["without"] - rows["whole"]) / rows["whole"]).abs(),
                rtol=1e-5,
                atol=1e-6,
                equal_nan=True,
            ),
        ),
    )

    def axes(self) -> Axes:
        """Return measures with the loss among them, removals, and tasks."""
        return {("measure",): [(LOSS,)], ("set", "removed"): [], ("task",): []}

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
        return list(self.record.sources)

    def largest(self, measure: str, most: int = _DRAWN) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of at most ``most`` removals, the largest changes, each task by task."""
        rows = self.frame[self.frame["measure"] == measure]
        changes = rows["relative_drop"].abs().groupby(rows["removed"]).max()
        chosen = set(changes.nlargest(most).index)
        by_removal: dict[Any, Any] = {
            removed: of_removal.to_dict("records")
            for removed, of_removal in rows.groupby("removed", sort=False)
            if removed in chosen
        }
        return by_removal

    def summarize(self) -> Iterator[Shown]:
        """Count removals that matter, and tabulate the largest drops."""
        rows = self.frame[self.frame["measure"] == LOSS]
        worse, more = (rows["answer"] == WORSE).sum(), (rows["deviates"] == MORE).sum()
        n_removals, n_open = rows["removed"].nunique(), (rows["answer"] == UNDECIDED).sum()
        yield (
            f"{n_removals} sets of heads were removed in each of {len(self.tasks)} tasks "
            f"({listed(self.tasks, 6)}). Of {len(rows)} removals, {worse} are shown to raise the "
            f"loss ({n_open} undecided), and {more} to matter more for their task than for others."
        )
        largest = rows.nlargest(1, "relative_drop").iloc[0]
        yield (
            f"The largest change: without {largest['removed']}, the loss of {largest['task']} "
            f"changes by {largest['relative_drop']:+z.1%}."
        )
        shown = self.largest(self.measure, _TABULATED)
        which = f" (the {len(shown)} largest of {n_removals})" if len(shown) < n_removals else ""
        yield Title(f"Share of {self.measure} lost{which}")
        has_limits = len(self.tasks) <= _WITH_INTERVALS
        rows_of_grid = []
        for removed, by_task in shown.items():
            cells = [removed]
            for row in by_task:
                limits = " ({ci_low:+z.1%} to {ci_high:+z.1%})".format_map(row)
                interval = limits if has_limits and not np.isnan(row["ci_low"]) else ""
                cells.append(f"{row['relative_drop']:+z.1%}{interval}{_marks(row):2}")
            rows_of_grid.append(tuple(cells))
        yield Grid(("Removed", *self.tasks), tuple(rows_of_grid))
        yield "* shown to differ from 0; > shown to be more, < to be less, than in the other tasks."
        yield from map(Warned, self.record.warnings)


def _marks(row: Mapping[str, Any]) -> str:
    """Return marks: ``*`` differs from 0, ``>`` more, ``<`` less than in other tasks."""
    differs = "" if row["answer"] == UNDECIDED else "*"
    return differs + {MORE: ">", LESS: "<"}.get(row["deviates"], "")


@takes(CorrectionOptions)
def drops_by_task(
    ablations: Sequence[Ablations], names: Sequence[str], options: CorrectionOptions
) -> DropsByTask:
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

    >>> from headroles import ablate_heads, drops_by_task
    >>> ablations = [ablate_heads(model, file, sets="layers") for file in (task, other)]
    >>> drops = drops_by_task(ablations, ["one", "other"])
    >>> list(drops.tasks), len(drops)
    (['one', 'other'], 18)
    """
    _check(ablations, names)
    removals = _common_removals(ablations, names)
    tasks = dict(zip(names, ablations, strict=True))
    measures, warnings = _measures(tasks)
    files = {name: of_task.record.task.sha256 for name, of_task in tasks.items()}
    warnings += warn_of_shared(files)
    frames = []
    for measure in measures:
        rows, of_measure = make_table(tasks, removals, measure, options)
        frames.append(rows)
        warnings += of_measure
    return DropsByTask.made(
        pd.concat(frames, ignore_index=True),
        options,
        warnings=list(dict.fromkeys(warnings)),
        sources={name: of_task.record for name, of_task in tasks.items()},
    )


def _check(ablations: Sequence[Ablations], names: Sequence[str]) -> None:
    if len(ablations) < 2:
        raise UsageError(f"{len(ablations)} task is given; name two folders of ablations at least")
    if len(set(names)) < len(names) or len(names) != len(ablations):
        raise UsageError(
            f"{len(ablations)} tasks are called {listed(names, 8)}; give each a different name"
        )
    kinds = [of_task.options.ablation for of_task in ablations]
    if len(set(kinds)) > 1:
        which = ", ".join(f"{kind} in {name}" for kind, name in zip(kinds, names, strict=True))
        raise UsageError(f"the ablations differ: {which}; give all tasks the same `ablation`")


def _common_removals(ablations: Sequence[Ablations], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (set, removed) of the removals that all tasks have, in the order of the first."""
    shapes = {of_task.record.shape for of_task in ablations}
    first, *others = (list(zip(a.frame["set"], a.frame["removed"], strict=True)) for a in ablations)
    common = [pair for pair in first if all(pair in other for other in map(set, others))]
    if len(shapes) > 1:
        common = [pair for pair in common if pair[0] == "thirds"]
    if common:
        return common
    if len(shapes) > 1:
        sizes = ", ".join(f"{layers} layers x {heads} heads" for layers, heads in sorted(shapes))
        raise UsageError(
            f"the models have different sizes ({sizes}), so that only thirds of their layers can "
            "be compared; ablate all with `sets='thirds'`"
        )
    raise UsageError(f"no removal is in all of {listed(names, 8)}; ablate all with the same `sets`")


def _measures(tasks: Mapping[str, Ablations]) -> tuple[list[str], list[str]]:
    """Return the loss and the metrics that all tasks have, and warnings about skipped metrics.

    A metric of 0 or below has no relative drop.
    """
    first, *others = (of_task.record.task.metrics for of_task in tasks.values())
    usable, warnings = [LOSS], []
    for metric in [name for name in first if all(name in metrics for metrics in others)]:
        reached = {name: of_task.facts["measured"][metric] for name, of_task in tasks.items()}
        failed = [name for name, value in reached.items() if value is None or value <= 0]
        if failed:
            warnings.append(
                f"{metric} is skipped: the whole model does not exceed 0 in {', '.join(failed)}, "
                "and so has nothing to lose"
            )
        else:
            usable.append(metric)
    return usable, warnings


def make_table(
    tasks: Mapping[str, Any],
    removals: Sequence[tuple[str, str]],
    measure: str,
    options: CorrectionOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row of a measure for each removal and task, and warnings about the tests."""
    frames, drops, changes = [], [], []
    for name, ablations in tasks.items():
        rows, of_task, changed = _drops(ablations, removals, measure, options)
        frames.append(rows.assign(task=name))
        drops.append(of_task)
        changes.append(changed)
    joined = Hypotheses.joined(changes)
    p_values = find_p_values(joined, options, "two-sided")
    frame = pd.concat(frames, ignore_index=True)
    names = "deviation deviation_low deviation_high p_deviation p_deviation_adjusted deviates"
    frame = frame.assign(
        measure=measure,
        p_value=p_values.single,
        p_adjusted=p_values.adjusted,
        answer=answers(p_values.shows(options.alpha), frame["relative_drop"], (WORSE, BETTER)),
        **two_sided(_deviations(drops, removals), options, (MORE, LESS), names),
        note=find_notes(joined),
    )
    by_removal = np.arange(len(frame)).reshape(len(tasks), -1).T.ravel()
    return frame.loc[by_removal, list(DropsByTask.columns)], warn_of_differences(joined, options)


def _drops(
    ablations: Ablations,
    removals: Sequence[tuple[str, str]],
    measure: str,
    options: CorrectionOptions,
) -> tuple[pd.DataFrame, Hypotheses, Hypotheses]:
    """Return the rows of a task, its relative drops (units, removals), and its changes."""
    if ablations.outcomes is None:
        raise UsageError("these ablations lack their examples; load them from their folder")
    metrics = [] if measure == LOSS else [measure]
    rows = ablations.frame.reset_index().set_index(["set", "removed"]).loc[[*removals]]
    settings = np.array([0, *(1 + rows["index"])])
    values = ablations.outcomes.units(metrics)[measure][:, settings]
    measured = ablations.outcomes.measures(metrics)[measure][settings]
    size = size_of(values[:, 1:], values[:, :1])
    drops = Hypotheses.from_values(
        relative_drops(values, measured, measure), 0.0, size=size / abs(measured[0])
    )
    limits = drops.intervals(options.alpha)
    # A drop to 0 is a ratio of 1 for any draw of examples: it has no error.
    low, high = (np.where(drops.is_tested, end, np.nan) for end in (limits.ci_low, limits.ci_high))
    # The ratio differs from 0 if the difference does, which has an error even after a drop to 0.
    change = worse_by(values[:, 1:] - values[:, :1], measure)
    changes = Hypotheses.from_values(change, 0.0, size=size, called=f"the differences of {measure}")
    frame = pd.DataFrame(removals, columns=["set", "removed"]).assign(
        n=len(ablations.outcomes.targets),
        n_removed=rows["n_removed"].to_numpy(),
        whole=measured[0],
        without=measured[1:],
        relative_drop=drops.moments.mean,
        ci_low=low,
        ci_high=high,
    )
    return frame, drops, changes


def relative_drops(values: FloatArray, measured: FloatArray, measure: str) -> FloatArray:
    """Return (units, S): values with the relative drops as means, and with their errors.

    ``values`` (units, 1 + S) and their measure (1 + S,) are of the whole model and of S removals.
    A ratio of means is linear in small changes of both (the delta method).
    """
    drops = worse_by(measured[1:] - measured[0], measure) / measured[0]
    around = values - values.mean(0)
    change = worse_by(around[:, 1:] - around[:, :1], measure)
    return np.asarray(drops + (change - drops * around[:, :1]) / measured[0])


def _deviations(drops: Sequence[Hypotheses], removals: Sequence[tuple[str, str]]) -> Hypotheses:
    """Test how much more each removal matters in each task than in the others."""
    kinds = np.array([kind for kind, _ in removals])
    n = len(drops)
    weights = np.eye(n) - (1 - np.eye(n)) / (n - 1)
    samples = []
    for of_task in drops:
        centred = np.full_like(of_task.sample.values, np.nan)  # NaN for a set of one
        for kind in np.unique(kinds):
            of_kind = of_task.sample.values[:, kinds == kind]
            if of_kind.shape[1] > 1:
                centred[:, kinds == kind] = of_kind - of_kind.mean(1, keepdims=True)
        samples.append(Sample.from_values(centred))
    sizes = np.abs(weights) @ np.stack([of_task.size for of_task in drops])
    return Hypotheses.from_values(contrast_sample(samples, weights), 0.0, size=sizes.ravel())


def draw_drops_by_task(
    drops: DropsByTask, measure: str | None = None, ax: Plot | None = None
) -> Plot:
    """Draw removals x tasks: the relative drop, as colour and number, with the marks of the table.

    ``*`` differs from 0; ``>`` matters more, ``<`` less than in the other tasks. ``measure`` is by
    default the measure of the summary. Of many removals the largest drops are drawn. Raises
    UsageError for a measure that the tasks do not have.

    With ``drops`` as `drops_by_task` returns them:

    >>> from headroles.report import draw_drops_by_task
    >>> draw_drops_by_task(drops, "loss").get_title().split()
    ['relative', 'drop', 'without', 'heads,', 'by', 'loss']
    """
    from matplotlib.ticker import PercentFormatter

    measure = known_measure(measure or drops.measure, drops.measures)
    shown, names = drops.largest(measure), drops.tasks
    rows = list(shown.values())
    values = np.array([[cell["relative_drop"] for cell in row] for row in rows])
    ax = new_axes(ax, 3 + 0.9 * len(names), 1.3 + 0.28 * len(shown))
    mesh = draw_grid(ax, values, is_signed=True)
    reach = mesh.get_clim()[1]
    bar = ax.figure.colorbar(mesh, ax=ax, label="relative drop")
    bar.formatter = PercentFormatter(1)
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if abs(value) > 0.6 * reach else "black"
        text = f"{value:+z.1%}{_marks(rows[row][column])}"
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    ax.set_xticks(range(len(names)), [plain(name, 16) for name in names])
    ax.set_yticks(range(len(shown)), [role_label(drops, name) for name in shown])
    set_title(ax, f"relative drop without heads, by {measure}")
    return ax
