"""How much does a task lose with fewer heads? Model and task -> PruningCurves, order by order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray
from scipy import stats

from headroles.arrays import FloatArray, IndexArray
from headroles.drawing.style import THRESHOLD, line_looks, new_axes
from headroles.drawing.style import plain as in_words
from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Model
from headroles.options import Convert, Options, split_names, takes
from headroles.record import TaskRecord
from headroles.results.columns import WHOLE, Axes, Column, one_of
from headroles.results.result import widened
from headroles.results.shown import Grid, Shown, Warned
from headroles.storage import plain
from headroles.studies.importance.importance import ESTIMATORS, NORMALISATIONS
from headroles.studies.importance.removals import (
    BETTER,
    LOSS,
    WORSE,
    OutcomesResult,
    describe_task,
    find_measures,
    keep_parts,
    known_measure,
    passes_to_choose,
    present_heads,
    unit_values,
    without_each,
    worse_by,
)
from headroles.studies.pruning.orders import (
    BY_ESTIMATE,
    BY_LAYER,
    BY_ROLE,
    BY_TASK,
    ORDERS,
    SelectionOptions,
    TestSetOptions,
    check_role,
    choose_heads,
    refuse_idle,
)
from headroles.tasks.options import MASKED_LM
from headroles.tasks.outcomes import Outcomes
from headroles.tasks.reading import read_task
from headroles.tasks.running import TaskRun, open_run
from headroles.testing.answers import UNDECIDED, answers
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

COMPARED = tuple("difference difference_low difference_high p_value p_adjusted answer note".split())
NOT_COMPARED = ""
_FEW_SHARES = 4
"""Shares that the summary tabulates."""
_FEWEST = 2
"""Examples that each draw needs to find an order."""
_SKEWED = 1.0
"""Skewness of draws from which p-values get a warning."""


def _shares(given: Any) -> tuple[float, ...]:
    found = []
    for name in split_names(str(given) if isinstance(given, float) else given):
        try:
            share = float(name)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise UsageError(f"the share is {name}; it must lie between 0 and 1")
        found.append(share)
    return tuple(sorted(set(found)))


@dataclass(frozen=True, kw_only=True)
class CurveOptions(SelectionOptions, CorrectionOptions, TestSetOptions):
    """Options of the orders of removing heads, and of their comparison."""

    orders: Annotated[Sequence[str], Convert(split_names)] = "importance,reestimated,random"
    """Orders in which heads are removed: orders of prune, separated by commas.

    importance and reestimated may name an estimator and a normalisation, as in
    importance:signed:l2; with_role and without_role a role, as in with_role:local.
    """
    shares: Annotated[Sequence[float], Convert(_shares)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of the heads that are removed, separated by commas."""
    examples: Annotated[int | None, Meta(ge=2)] = None
    """Most examples of TASK that each draw finds its orders with.

    No two draws have an example in common; left out: draws divide all of TASK.
    """
    draws: Annotated[int, Meta(ge=5)] = 5
    """Draws of random heads, and of the examples that orders are found with.

    With fewer than five, tests would err too often.
    """
    against: str = "random"
    """The order to compare all others with."""

    def check(self) -> None:
        """Reject unknown orders, orders by role without a role, and no order to compare with."""
        super().check()
        if not self.orders or not self.shares:
            raise UsageError("name an order and a share at least with `orders` and `shares`")
        if len(set(self.orders)) < len(self.orders):
            raise UsageError("an order is named twice; name each once in `orders`")
        for order in self.orders:
            check_role(*self.of_order(order))
        if self.against not in self.orders:
            raise UsageError(
                f"`against` is {self.against!r}; it must be one of the orders: "
                f"{', '.join(self.orders)}"
            )

    def of_order(self, order: str) -> tuple[str, Self]:
        """Return the bare name of an order, and the options that its full name sets."""
        name, colon, more = order.partition(":")
        if name not in ORDERS:
            raise UsageError(f"the order is {name!r}; it must be one of {', '.join(ORDERS)}")
        if not colon:
            return name, self
        if name in BY_ROLE:
            return name, self._changed(role=more)
        changes: dict[str, str] = {}
        for word in more.split(":"):
            if name in BY_ESTIMATE and word in ESTIMATORS:
                changes["estimator"] = word
            elif name in BY_ESTIMATE and word in NORMALISATIONS:
                changes["normalisation"] = word
            else:
                raise UsageError(
                    f"`orders` has {order!r}, of which {word!r} is not known; importance and "
                    "reestimated take an estimator and a normalisation, with_role and "
                    "without_role a role"
                )
        return name, self._changed(**changes)

    def _changed(self, **changes: Any) -> Self:
        # With one order of no name: `check` of the given orders would call itself.
        return replace(self, orders=("random",), against="random", **changes)


@dataclass(frozen=True)
class Point:
    """Heads that an order removes, of one share and one draw, and the place of their outcomes."""

    order: str
    share: float
    seed: int
    removed: Sequence[Head]
    setting: int


@dataclass(frozen=True, repr=False, eq=False)
class PruningCurves(OutcomesResult):
    """Losses of a task as more and more heads are removed, in several orders.

    ``frame`` has the columns of ``columns``, a row for each order, share of the heads removed and
    measure (the loss and the metrics of the task). Rows with the share NaN are the mean over
    several shares.
    ``value`` is the mean over ``draws``, ``sd_draws`` their standard deviation. ``ci_low`` and
    ``ci_high`` are the interval of ``value`` over other examples and over other draws: of heads at
    random, and of the examples that orders of importance are found with.
    ``difference`` is the value less the value of the order ``against`` which all are compared, with
    its interval and p-value (paired by example, over examples and draws); p-values are corrected
    over orders and shares, each measure by itself. ``answer`` is better, worse or undecided;
    ``note`` is about the test.

    ``outcomes`` are the losses and predictions (examples, settings), the whole model first;
    ``targets`` (examples,) are the right labels or numbers. ``points`` have the heads that each
    setting lacks.

    With ``curves`` as `find_pruning_curves` returns them:

    >>> curves.frame["measure"].unique().tolist()
    ['loss', 'accuracy', 'f1', 'matthews']
    """

    record: TaskRecord

    kind: ClassVar[str] = "pruning-curves"
    question: ClassVar[str] = "How many attention heads can the model do without?"
    options_type: ClassVar[type[Options]] = CurveOptions
    figures: ClassVar[Mapping[str, str]] = {"curves": "draw_pruning_curves"}
    examples_file: ClassVar[str] = "pruning-curves-examples.safetensors"
    remedy: ClassVar[str] = (
        "make them with: headroles pruning-curves MODEL TASK --test FILE --out D"
    )
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
        """Return orders, shares, and measures with the loss among them."""
        return {("order",): [], ("share",): [], ("measure",): [(LOSS,)]}

    @property
    def points(self) -> list[Point]:
        """The seed, the setting and the removed heads of every order, share and draw."""
        return [Point(**point) for point in self.facts["points"]]

    @property
    def measure(self) -> str:
        """The first metric of the task, or the loss where there is none."""
        return next(iter(self.record.task.metrics), LOSS)

    def overall(self, measure: str) -> pd.DataFrame:
        """Return the rows of a measure that are means over the shares, or of the only share."""
        rows = self.frame[self.frame["measure"] == measure]
        return rows[rows["share"].isna()] if len(self.options.shares) > 1 else rows

    def wide(self, value: str = "value") -> pd.DataFrame:
        """Return a row per order, a column per share, with ``value`` of the first metric.

        Raises UsageError for an unknown column.
        """
        rows = self.frame[(self.frame["measure"] == self.measure) & self.frame["share"].notna()]
        shares = rows["share"].drop_duplicates().tolist()
        return widened(rows.drop(columns="measure"), ("order",), "share", shares, value)

    def summarize(self) -> Iterator[Shown]:
        """Name the order with the least loss, and tabulate the curves."""
        options, rows = self.options, self.overall(LOSS)
        shares, against = options.shares, options.against
        yield describe_task(self.record, self.facts["measured"])
        where = f"With {shares[0]:.0%}" if len(shares) == 1 else "On average over the shares"
        least = rows.nsmallest(1, "value").iloc[0]
        yield (
            f"{where} of the heads removed, the loss is {'least' if len(rows) > 1 else 'that'} of "
            f"the order {least['order']}: {least['value']:.3g} ({least['ci_low']:.3g} to "
            f"{least['ci_high']:.3g})."
        )
        for answer in (BETTER, WORSE) if len(rows) > 1 else ():
            named = listed([str(row.order) for row in rows.itertuples() if row.answer == answer], 6)
            yield f"Shown to be {answer} than {against}: {named or 'no order'}."
        yield self._grid()
        yield (
            f"Intervals of {1 - options.alpha:.0%} and p-values ({options.correction}) over other "
            f"examples, and other draws ({options.draws}) of heads and of examples to find orders."
        )
        yield from map(Warned, self.record.warnings)

    def _grid(self) -> Grid:
        """Tabulate the orders by share, or by few of many shares."""
        rows = self.frame[self.frame["measure"] == self.measure]
        shares = rows["share"].drop_duplicates().tolist()
        if len(shares) > _FEW_SHARES:
            shares = [*shares[: _FEW_SHARES - 1], shares[-1]]
        titles = (f"{share:.0%}" if np.isfinite(share) else "all" for share in shares)
        shown = rows[rows["share"].isin(shares)].groupby("order", sort=False)
        cell = "{value:.2f} ({ci_low:.2f} to {ci_high:.2f})"
        cells = tuple(
            (str(order), *(cell.format_map(row) for row in of_order.to_dict("records")))
            for order, of_order in shown
        )
        return Grid((f"{self.measure} without", *titles), cells)


@takes(CurveOptions)
def find_pruning_curves(
    model: Model,
    test: str | Path,
    task: str | Path | None = None,
    *,
    options: CurveOptions,
) -> PruningCurves:
    """Measure a task with more and more heads removed, in several orders.

    Every order is one sequence of heads, of which longer and longer parts are removed (groups of
    layers are found anew for each share). Each of several draws finds all orders anew: orders of
    importance with other examples of ``task``, random orders with other heads. The model is not
    trained after the removal.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        test: examples to measure losses and metrics on; others than the examples of ``task``.
        task: examples to find orders of importance with, as of `find_importance`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an order without the task or the role that it needs, or too many heads.
        CorpusError, ModelError: as `find_importance`.

    With ``model`` a classifier, ``other`` and ``more`` files of 8 and 16 examples:

    >>> from headroles import find_pruning_curves
    >>> curves = find_pruning_curves(model, other, more, orders="importance,random")
    >>> curves.frame["order"].unique().tolist(), curves.measure
    (['importance', 'random'], 'accuracy')
    """
    refuse_idle([options.of_order(one)[0] for one in options.orders], options)
    tested = open_run(model, test, options.of_test())
    runs = _deal(tested, task, options)
    keep_parts("pruning curves", options, tested.encoder, tested, *runs)
    _expect(tested, runs, options)
    points, settings = find_points(tested, runs, options)
    gates = without_each(settings, tested.shape)
    tested.expect(tested.n_passes(gates))
    outcomes = tested.outcomes(gates)
    frame, warnings = make_table(points, outcomes, tested.targets, tested.metrics, options)
    measured = find_measures(outcomes, tested.targets, tested.metrics)
    facts = {
        "measured": {name: float(values[0]) for name, values in measured.items()},
        "found_with": runs[0].task.describe() if runs else None,
        "points": [asdict(point) for point in points],
    }
    record = tested.record(
        options,
        kind="pruning-curves",
        facts=plain(facts),
        warnings=[*_warnings(tested, runs, options), *warnings],
    )
    return PruningCurves(frame[list(PruningCurves.columns)], record, outcomes, tested.targets)


def _expect(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> None:
    """Report the progress of all runs as one; equal sets of heads count several times."""
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
    """Return for each draw a run over its examples of a file; no runs without a file.

    No two draws have an example in common, and each has its share of every label.

    Raises UsageError for an order that needs a file, and for fewer than two examples a draw.
    """
    if file is None:
        lacking = [order for order in options.orders if options.of_order(order)[0] in BY_TASK]
        if lacking:
            raise UsageError(
                f"the order {lacking[0]} needs a task; name its file after the model, or other "
                "`orders`"
            )
        return []
    n_asked = None if options.examples is None else options.examples * options.draws
    labelled = tested.objective != MASKED_LM
    task = read_task(file, replace(options, examples=n_asked), labelled)
    size = len(task) // options.draws
    if size < _FEWEST:
        raise UsageError(
            f"{file} has {len(task)} examples for {options.draws} draws, each of which needs "
            f"{_FEWEST} of its own; give more examples"
        )
    order = np.random.default_rng(options.seed).permutation(len(task))[: size * options.draws]
    dealt = sorted(order.tolist(), key=lambda at: task.labels[at] if labelled else "")
    parts = [sorted(dealt[draw :: options.draws]) for draw in range(options.draws)]
    return [TaskRun(tested.encoder, task.take(part), options) for part in parts]


def _warnings(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> list[str]:
    """Warn of examples to find orders with that are few, or of the test."""
    found = []
    if runs and runs[0].task.digest == tested.task.digest:
        found.append(
            f"orders were found and measured in one file, {tested.task.file}: heads chosen by "
            "examples do better on these examples than on others; take other examples for the test"
        )
    size = len(runs[0].task) if runs else 0
    if options.examples is not None and 0 < size < options.examples:
        found.append(
            f"{runs[0].task.file} has {size} examples for each of {options.draws} draws, not "
            f"{options.examples}; orders were found with {size}"
        )
    return found


def find_points(
    tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions
) -> tuple[list[Point], list[tuple[Head, ...]]]:
    """Return the points of all orders, and the settings: different sets of removed heads.

    The first setting is the whole model. ``runs`` are over the examples that each draw finds orders
    with; they may be empty if no order needs examples.

    Raises UsageError as `choose_heads`, and for a share of no heads or of all.
    """
    heads = present_heads(tested)
    counts = _counts(len(heads), options)
    places: dict[frozenset[Head], int] = {frozenset(): 0}
    points = []
    for order in options.orders:
        for seed, removed in _draws_of(order, counts, heads, options, runs):
            for share, own in zip(options.shares, removed, strict=True):
                setting = places.setdefault(frozenset(own), len(places))
                points.append(Point(order, share, seed, tuple(own), setting))
    return points, [tuple(sorted(own)) for own in places]


def _counts(n_heads: int, options: CurveOptions) -> list[int]:
    counts = [round(share * n_heads) for share in options.shares]
    for share, count in zip(options.shares, counts, strict=True):
        if not 0 < count < n_heads:
            raise UsageError(
                f"a share of {share:g} is {count} of {n_heads} heads; it must be one at least and "
                "leave one: change `shares`"
            )
    return counts


def _draws_of(
    order: str,
    counts: Sequence[int],
    heads: Sequence[Head],
    options: CurveOptions,
    runs: Sequence[TaskRun],
) -> Iterator[tuple[int, list[list[Head]]]]:
    """Yield the seed of each draw, and the heads to remove for each of ``counts``."""
    name, own = options.of_order(order)
    for draw in range(options.draws):
        seed, run = options.seed + draw, runs[draw] if name in BY_TASK else None
        drawn = replace(own, seed=seed)
        if name in BY_LAYER:  # groups of more layers need not include those of fewer
            yield seed, [choose_heads(name, count, heads, drawn) for count in counts]
        else:
            path = choose_heads(name, max(counts), heads, drawn, run)
            yield seed, [path[:count] for count in counts]


def make_table(
    points: Sequence[Point],
    outcomes: Outcomes,
    targets: FloatArray,
    metrics: Sequence[str],
    options: CurveOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each measure, order and share, and for the mean over shares; warnings."""
    values = unit_values(outcomes, targets, metrics)
    reached = find_measures(outcomes, targets, metrics)
    settings = {order: _settings(order, points, options) for order in options.orders}
    n_removed = [
        next(len(one.removed) for one in points if one.share == share) for share in options.shares
    ]
    frames, warnings = [], list(_warn_of_skew(values[LOSS], settings))
    for measure, own in values.items():
        curves = {order: _with_mean(own[:, at]) for order, at in settings.items()}
        found = {order: _with_mean(reached[measure][at]) for order, at in settings.items()}
        estimated = [
            Hypotheses.of_crossed(curve, size=size_of(curve), called="the curves")
            for curve in curves.values()
        ]
        warnings += warn_of_differences(Hypotheses.joined(estimated), options)
        of_orders = [
            _of_order(order, found[order], n_removed, tests, options)
            for order, tests in zip(curves, estimated, strict=True)
        ]
        frame = pd.concat(of_orders, ignore_index=True)
        frame.insert(4, "measure", measure)
        frame.insert(5, "n", len(targets))
        others = (frame["order"] != options.against).to_numpy()
        for name, column in _compared(curves, found, measure, options).items():
            frame[name] = NOT_COMPARED if name in ("answer", "note") else np.nan
            frame.loc[others, name] = column
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), list(dict.fromkeys(warnings))


def _warn_of_skew(losses: FloatArray, settings: Mapping[str, IndexArray]) -> Iterator[str]:
    """Warn of orders of which draws have skewed losses at a share."""
    means = {order: losses[:, at].mean(0) for order, at in settings.items()}
    skewed = [
        order
        for order, of_draws in means.items()
        if (np.ptp(of_draws, axis=0) > 0).any()
        and np.nanmax(np.abs(stats.skew(of_draws))) > _SKEWED
    ]
    if skewed:
        yield (
            f"Draws have skewed losses in {listed(skewed)}: p < 0.05 then comes by chance in 12 to "
            "16 % of the tests with 5 draws, and in 7 to 10 % with 20. Make more `draws`."
        )


def _of_order(
    order: str,
    found: FloatArray,
    n_removed: Sequence[int],
    estimated: Hypotheses,
    options: CurveOptions,
) -> pd.DataFrame:
    """Return the rows of an order; ``estimated`` has the errors of ``found`` (draws, shares)."""
    n_draws, n_rows = found.shape
    value, reach = found.mean(0), _reach(estimated, options)
    columns: dict[str, Any] = {
        "order": order,
        "share": [*options.shares, np.nan][:n_rows],
        "n_removed": [*n_removed, -1][:n_rows],
        "draws": n_draws,
        "value": value,
        "sd_draws": found.std(0, ddof=1) if n_draws > 1 else np.nan,
        "ci_low": value - reach,
        "ci_high": value + reach,
    }
    return pd.DataFrame(columns)


def _compared(
    curves: Mapping[str, FloatArray],
    found: Mapping[str, FloatArray],
    measure: str,
    options: CurveOptions,
) -> dict[str, NDArray[Any]]:
    """Return columns of the differences of the other orders from ``against``."""
    base, others = options.against, [order for order in curves if order != options.against]
    if not others:
        return dict.fromkeys(COMPARED, np.empty(0))
    # Draws of all orders have the same seeds, and the same examples to find orders with.
    pairs = [(curves[order], curves[base]) for order in others]
    tests = Hypotheses.joined(
        [Hypotheses.of_crossed(one - other, size=size_of(one, other)) for one, other in pairs]
    )
    difference = np.concatenate([found[order].mean(0) - found[base].mean(0) for order in others])
    tested, reach = find_p_values(tests, options, "two-sided"), _reach(tests, options)
    columns = (
        difference,
        difference - reach,
        difference + reach,
        tested.single,
        tested.adjusted,
        answers(tested.shows(options.alpha), worse_by(difference, measure), (WORSE, BETTER)),
        find_notes(tests),
    )
    return dict(zip(COMPARED, columns, strict=True))


def _settings(order: str, points: Sequence[Point], options: CurveOptions) -> IndexArray:
    """Return the settings (draws, shares) of an order."""
    by_share = [
        [one.setting for one in points if (one.order, one.share) == (order, share)]
        for share in options.shares
    ]
    return np.array(by_share).T


def _with_mean(values: FloatArray) -> FloatArray:
    """Append to values (..., shares) their mean, if there are several shares."""
    if values.shape[-1] == 1:  # The same test twice would count twice in the correction.
        return values
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def _reach(hypotheses: Hypotheses, options: CurveOptions) -> FloatArray:
    """Return half the lengths of intervals."""
    found = hypotheses.intervals(options.alpha)
    return found.ci_high - hypotheses.moments.mean


def draw_pruning_curves(
    curves: PruningCurves, measure: str | None = None, ax: Plot | None = None
) -> Plot:
    """Draw the measure without a share of the heads: a line with its band for each order.

    Bands are the intervals of the table; the dotted line is the whole model. ``measure`` is by
    default the first metric of the task, or the loss. Raises UsageError for a measure that the
    table does not have.

    With ``curves`` as `find_pruning_curves` returns them:

    >>> from headroles.report import draw_pruning_curves
    >>> draw_pruning_curves(curves, "loss").get_xlabel()
    'heads removed'
    """
    measure = known_measure(measure or curves.measure, list(curves.frame["measure"].unique()))
    rows = curves.frame[(curves.frame["measure"] == measure) & curves.frame["share"].notna()]
    ax = new_axes(ax, 6.5, 4)
    for look, (order, own) in zip(line_looks(), rows.groupby("order", sort=False), strict=False):
        ax.plot(own["share"], own["value"], label=in_words(order), **look)
        band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(own["share"], own["ci_low"], own["ci_high"], **band)
    whole = curves.facts["measured"][measure]
    ax.axhline(whole, color=THRESHOLD, linestyle="dotted", label="whole model")
    ax.set_xticks(shares := sorted(rows["share"].unique()), [f"{share:.0%}" for share in shares])
    ax.set(xlabel="heads removed", ylabel=f"{measure} without them")
    ax.legend(fontsize="small", title="order of removing")
    return ax
