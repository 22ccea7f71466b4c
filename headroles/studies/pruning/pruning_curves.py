"""How much does a task lose with fewer heads? Model and task -> PruningCurves, order by order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired, TypedDict, cast, get_args

import numpy as np
import pandas as pd
from msgspec import Meta
from scipy import stats

from headroles.arrays import FloatArray, IndexArray
from headroles.drawing.style import THRESHOLD, legend_below, line_looks, new_axes
from headroles.drawing.style import plain as in_words
from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.models.loading.encoder import Model
from headroles.options import Convert, split_names, takes
from headroles.results.columns import WHOLE, Axes, Column, one_of
from headroles.results.consistency import Rule, answers_by, around, inside
from headroles.results.shown import Grid, Shown, Warned
from headroles.storage import plain
from headroles.studies.importance.importance import ESTIMATORS, NORMALISATIONS
from headroles.studies.pruning.orders import (
    BY_ESTIMATE,
    BY_ROLE,
    Order,
    SelectionOptions,
    choose_heads,
    warn_of_one_file,
)
from headroles.studies.removals import (
    BETTER,
    WORSE,
    ExamplesResult,
    describe_task,
    known_measure,
    without_each,
    worse_by,
)
from headroles.studies.translations import (
    TranslationFacts,
    as_frame,
    compare_translations,
    describe_translations,
    translations_without,
)
from headroles.tasks.options import UNLABELLED, GenerateOptions
from headroles.tasks.outcomes import DERIVATIVES, LOSS, PERPLEXITY, Measures, Outcomes
from headroles.tasks.reading import Task, read_task
from headroles.tasks.running import TaskRun, keep_parts, open_run
from headroles.tasks.translating import check_generation
from headroles.testing.evidence import UNDECIDED, answers, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

COMPARED = tuple("difference difference_low difference_high p_value p_adjusted answer note".split())
_FEW_SHARES = 4
"""Shares that the summary tabulates."""
_RANGES = {
    LOSS: (0, np.inf),
    PERPLEXITY: (1, np.inf),
    **dict.fromkeys(("matthews", "spearman"), (-1, 1)),
}
"""Least and greatest value of measures; of all others from 0 to 1."""
_SKEWED = 1.0
"""Skewness of draws from which p-values get a warning."""
_ROUNDING = 1e-9
"""Share of losses by which draws of the same heads may differ."""


def _shares(value: str | float | Sequence[float]) -> tuple[float, ...]:
    shares = []
    names = [str(value)] if isinstance(value, float) else value
    for name in split_names(names if isinstance(names, str) else [*map(str, names)]):
        try:
            share = float(name)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            raise UsageError(f"the share is {name}; it must lie between 0 and 1")
        shares.append(share)
    return tuple(sorted(set(shares)))


@dataclass(frozen=True, kw_only=True)
class CurveOptions(SelectionOptions, CorrectionOptions, GenerateOptions):
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
        by_name = [self.of_order(order) for order in self.orders]
        self.check_orders([(name, chosen.role) for name, chosen in by_name])
        if self.against not in self.orders:
            raise UsageError(
                f"`against` is {self.against!r}; it must be one of the orders: "
                f"{', '.join(self.orders)}"
            )

    def of_order(self, order: str) -> tuple[str, SelectionOptions]:
        """Return the bare name of an order, and the options that its full name sets."""
        name, *more = order.split(":")
        if name not in (orders := get_args(Order)):
            raise UsageError(f"the order is {name!r}; it must be one of {', '.join(orders)}")
        changes: dict[str, str] = {}
        if more and name in BY_ROLE:
            changes["role"] = ":".join(more)
            more = []
        for word in more:
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
        return name, self.as_group(SelectionOptions, **changes)


class Point(TypedDict):
    """The heads that an order removes for a share, and the setting of the outcomes with it."""

    order: str
    share: float
    seed: int
    removed: list[Head]
    setting: int


class CurveFacts(TypedDict):
    """Loss and metrics of the whole model, the task that orders were found with, all settings."""

    measured: Measures
    found_with: dict[str, Any] | None
    points: list[Point]
    translations: NotRequired[TranslationFacts]


@dataclass(frozen=True, repr=False, eq=False)
class PruningCurves(ExamplesResult[CurveOptions, CurveFacts]):
    """Losses of a task as more and more heads are removed, in several orders.

    ``frame`` has the columns of ``columns``, a row for each order, share of the heads removed and
    measure (the loss and the metrics of the task). Rows with the share NaN are the mean over
    several shares.
    ``value`` is the mean over ``draws``, ``sd_draws`` their standard deviation. ``ci_low`` and
    ``ci_high`` are the interval of ``value`` over other examples and over other draws: of heads at
    random, and of the examples that orders of importance are found with. They are cut at the
    range of the measure, which does not change how often the interval is right.
    ``difference`` is the value less the value of the order ``against`` which all are compared, with
    its interval and p-value (paired by example, over examples and draws); p-values are corrected
    over orders and shares, each measure by itself. ``answer`` is better, worse or undecided;
    ``note`` is about the test.

    ``outcomes`` are the losses and predictions (examples, settings), the whole model first, with
    their targets. ``facts["points"]`` have the heads that each setting lacks. The view
    ``translations`` has BLEU and chrF at the ends of the curves, if translations were written: of
    the whole model, and of the first draw of each order without the largest share.

    With ``curves`` as `find_pruning_curves` returns them:

    >>> curves.frame["measure"].unique().tolist()
    ['loss', 'accuracy', 'f1', 'matthews']
    """

    outcomes: Outcomes | None = None

    kind: ClassVar[str] = "pruning-curves"
    question: ClassVar[str] = "How many attention heads can the model do without?"
    figures: ClassVar[Mapping[str, str]] = {"curves": "draw_pruning_curves"}
    views: ClassVar[tuple[str, ...]] = ("long", "kinds", "translations")
    columns: ClassVar[tuple[str, ...]] = (
        *"order share n_removed draws measure n value sd_draws ci_low ci_high".split(),
        *COMPARED,
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(WORSE, BETTER, UNDECIDED, ""),
        "n_removed": Column(WHOLE, -1),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        inside("ci_low", "value", "ci_high"),
        around("difference_low", "difference", "difference_high"),
        answers_by("answer", "p_adjusted", WORSE, BETTER, of="difference"),
    )

    @property
    def kinds(self) -> pd.DataFrame:
        """The share of the heads of each kind of attention that stays, mean over draws.

        A row for each order and share, a column for each kind; empty for models of one kind.
        """
        names = self.record.model.rows
        if len(names.layers) < 2:
            return pd.DataFrame()
        heads = self.record.model.stack_heads
        sizes = {kind: n * heads[kind] for kind, n in names.layers.items()}
        rows = [
            {
                "order": point["order"],
                "share": point["share"],
                **{
                    kind: 1 - n / sizes[kind]
                    for kind, n in names.numbers_of(point["removed"]).items()
                },
            }
            for point in self.facts["points"]
        ]
        return pd.DataFrame(rows).groupby(["order", "share"], sort=False).mean().reset_index()

    @property
    def translations(self) -> pd.DataFrame:
        """BLEU and chrF at the ends, with tests of their changes; empty if none were written."""
        return as_frame(self.facts.get("translations"))

    def axes(self) -> Axes:
        """Return orders, shares, and measures with the loss among them."""
        return {("order",): [], ("share",): [], ("measure",): [(LOSS,)]}

    @property
    def measure(self) -> str:
        """The first metric of the task, or the loss where there is none."""
        return next(iter(self.record.task.metrics), LOSS)

    def summarize(self) -> Iterator[Shown]:
        """Name the order with the least loss, and tabulate the curves."""
        options, shares, rows = self.options, self.options.shares, self.frame
        rows = rows[(rows["measure"] == LOSS) & (rows["share"].isna() | (len(shares) == 1))]
        yield from describe_task(self.record, self.facts["measured"])
        where = f"With {shares[0]:.0%}" if len(shares) == 1 else "On average over the shares"
        least = rows.nsmallest(1, "value").iloc[0]
        yield (
            f"{where} of the heads removed, the loss is {'least' if len(rows) > 1 else 'that'} of "
            f"the order {least['order']}: {least['value']:.3g} ({least['ci_low']:.3g} to "
            f"{least['ci_high']:.3g})."
        )
        for answer in (BETTER, WORSE) if len(rows) > 1 else ():
            orders = listed(rows["order"][rows["answer"] == answer].tolist(), 6)
            yield f"Shown to be {answer} than {options.against}: {orders or 'no order'}."
        yield self._grid()
        yield (
            f"Intervals of {1 - options.alpha:.0%} and p-values ({options.correction}) over other "
            f"examples, and other draws ({options.draws}) of heads and of examples to find orders."
        )
        yield from describe_translations(self.facts.get("translations"))
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

    Every order is one sequence of heads, of which longer and longer parts are removed. Each of
    several draws finds all orders anew: orders of importance with other examples of ``task``,
    random orders with other heads. The model is not trained after the removal.

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
    tested = open_run(model, test, replace(options, examples=None))
    check_generation(tested, options)
    runs = _deal(tested, task, options)
    keep_parts("pruning curves", options, tested, *runs)
    _expect(tested, runs, options)
    points, sets = find_points(tested, runs, options)
    gates = without_each(sets, tested.shape)
    tested.expect(tested.n_passes(gates))
    outcomes = tested.outcomes(gates)
    settings = points["setting"].to_numpy().reshape(-1, options.draws, len(options.shares))
    n_removed = [len(heads) for heads in points["removed"][: len(options.shares)]]
    frame, of_tests = make_table(settings, n_removed, outcomes, tested.metrics, options)
    warnings = [*_warn_of_examples(runs[0].task, tested.task, options)] if runs else []
    measured = outcomes.measures(tested.metrics)
    facts: CurveFacts = {
        "measured": {name: float(values[0]) for name, values in measured.items()},
        "found_with": plain(runs[0].record(options).task) if runs else None,
        "points": cast(list[Point], points.to_dict("records")),
    }
    if options.generate:
        facts["translations"] = _translations(tested, facts["points"], options)
    record = tested.record(
        options, kind="pruning-curves", facts=facts, warnings=warnings + of_tests
    )
    return PruningCurves(frame, record, outcomes)


def _translations(
    tested: TaskRun, points: Sequence[Point], options: CurveOptions
) -> TranslationFacts:
    """Compare translations at the ends of the curves, those of the first draw of each order."""
    ends = {
        f"{point['share']:.0%}, {point['order']}": point["removed"]
        for point in points
        if point["share"] == options.shares[-1] and point["seed"] == options.seed
    }
    translations = translations_without(tested, [(), *ends.values()], options)
    return compare_translations([*ends], translations, options, options)


def _warn_of_examples(task: Task, tested: Task, options: CurveOptions) -> Iterator[str]:
    """Warn of draws with fewer examples than they should have, and as `warn_of_one_file`."""
    if options.examples is not None and len(task) < options.examples:
        yield (
            f"{task.file} has {len(task)} examples for each of {options.draws} draws, not "
            f"{options.examples}: give more examples, or fewer `draws`"
        )
    yield from warn_of_one_file(task, tested)


def _expect(tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions) -> None:
    """Report the progress of all runs as one; equal sets of heads count several times."""
    single = tested.n_passes(without_each([(), *((head,) for head in tested.heads)], tested.shape))
    of_orders = {
        "importance": DERIVATIVES,
        "reestimated": DERIVATIVES * options.steps,
        "ablation": single,
    }
    n_passes = sum(of_orders.get(options.of_order(order)[0], 0) for order in options.orders)
    n_settings = 1 + len(options.orders) * len(options.shares) * options.draws
    amount = len(tested.batches) * n_settings + sum(len(run.batches) for run in runs) * n_passes
    for run in (tested, *runs):
        run.rounds = tested.rounds
    tested.rounds.expect(amount)


def _deal(tested: TaskRun, file: str | Path | None, options: CurveOptions) -> list[TaskRun]:
    """Return for each draw a run over its examples of a file; no runs without a file.

    No two draws have an example in common, and each has its share of every label.

    Raises UsageError for fewer than two examples a draw.
    """
    if file is None:
        return []
    n_asked = None if options.examples is None else options.examples * options.draws
    task = read_task(file, replace(options, examples=n_asked), tested.objective)
    size = len(task) // options.draws
    if size < 2:
        raise UsageError(
            f"{file} has {len(task)} examples for {options.draws} draws, each of which needs 2 of "
            "its own; give more examples"
        )
    order = np.random.default_rng(options.seed).permutation(len(task))[: size * options.draws]
    labelled = tested.objective not in UNLABELLED
    dealt = sorted(order.tolist(), key=lambda at: task.labels[at] if labelled else "")
    parts = [sorted(dealt[draw :: options.draws]) for draw in range(options.draws)]
    return [TaskRun(tested.encoder, task.take(part), options) for part in parts]


def find_points(
    tested: TaskRun, runs: Sequence[TaskRun], options: CurveOptions
) -> tuple[pd.DataFrame, list[tuple[Head, ...]]]:
    """Return a row for each order, draw and share, and the settings: different sets of heads.

    Rows have the seed of the draw, the removed heads and the place of their setting; the first
    setting is the whole model. ``runs`` are over the examples that each draw finds orders with;
    they may be empty if no order needs examples.

    Raises UsageError as `choose_heads`, and for a share of no heads or of all.
    """
    heads, names = tested.heads, tested.sites.rows
    counts = [round(share * len(heads)) for share in options.shares]
    for share, count in zip(options.shares, counts, strict=True):
        if not 0 < count < len(heads):
            raise UsageError(
                f"a share of {share:g} is {count} of {len(heads)} heads; it must be one at least "
                "and leave one: change `shares`"
            )
    numbers: dict[frozenset[Head], int] = {frozenset(): 0}
    points = []
    for order in options.orders:
        name, chosen = options.of_order(order)
        for draw in range(options.draws):
            drawn = replace(chosen, seed=options.seed + draw)
            run = runs[draw] if runs else None
            path = tuple(choose_heads(name, max(counts), heads, drawn, run, names))
            for share, count in zip(options.shares, counts, strict=True):
                removed = path[:count]
                setting = numbers.setdefault(frozenset(removed), len(numbers))
                points.append((order, share, drawn.seed, removed, setting))
    columns = ["order", "share", "seed", "removed", "setting"]
    return pd.DataFrame(points, columns=columns), [tuple(sorted(heads)) for heads in numbers]


def make_table(
    settings: IndexArray,
    n_removed: Sequence[int],
    outcomes: Outcomes,
    metrics: Sequence[str],
    options: CurveOptions,
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each measure, order and share, and for the mean over shares; warnings.

    ``settings`` (orders, draws, shares) are places in ``outcomes``, and ``n_removed`` (shares,)
    the numbers of removed heads.
    """
    orders, shares = list(options.orders), list(options.shares)
    if len(shares) > 1:  # The same test twice would count twice in the correction.
        shares, n_removed = [*shares, np.nan], [*n_removed, -1]
    order = np.repeat(orders, len(shares))
    is_base = order == options.against
    units, reached = outcomes.units(metrics), outcomes.measures(metrics)
    frames, warnings = [], list(_warn_of_skew(units[LOSS], orders, settings))
    for measure, values in units.items():
        curves = [_with_mean(values[:, at]) for at in settings]
        base = orders.index(options.against)
        of_draws = np.stack([_with_mean(reached[measure][at]) for at in settings])
        means = of_draws.mean(1)
        tests, reach = _crossed(curves, options)
        limits = _RANGES.get(measure, (0, 1))
        warnings += warn_of_differences(tests, options)
        frame = pd.DataFrame(
            {
                "order": order,
                "share": np.tile(shares, len(orders)),
                "n_removed": np.tile(n_removed, len(orders)),
                "draws": settings.shape[1],
                "measure": measure,
                "n": len(outcomes.targets),
                "value": means.ravel(),
                "sd_draws": of_draws.std(1, ddof=1).ravel(),
                "ci_low": np.clip(means.ravel() - reach, *limits),
                "ci_high": np.clip(means.ravel() + reach, *limits),
                **dict.fromkeys(COMPARED, np.nan),
                **dict.fromkeys(("answer", "note"), ""),
            }
        )
        # Draws of all orders have the same seeds, and the same examples to find orders with.
        if not is_base.all():
            tests, reach = _crossed(curves[:base] + curves[base + 1 :], options, curves[base])
            difference = (means - means[base]).ravel()[~is_base]
            p_values = find_p_values(tests, options, "two-sided")
            worse = worse_by(difference, measure)
            compared = (
                *(difference, difference - reach, difference + reach),
                *(p_values.single, p_values.adjusted),
                answers(p_values.shows(options.alpha), worse, (WORSE, BETTER)),
                find_notes(tests),
            )
            for name, column in zip(COMPARED, compared, strict=True):
                frame.loc[~is_base, name] = column
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), list(dict.fromkeys(warnings))


def _crossed(
    curves: Sequence[FloatArray], options: CurveOptions, *base: FloatArray
) -> tuple[Hypotheses, FloatArray]:
    """Make H0: means of curves (examples, draws, shares), less a ``base`` if there is one, are 0.

    Returns half the lengths of the intervals of the means too.
    """
    tests = []
    for curve in curves:
        size = size_of(curve, *base)
        tests.append(Hypotheses.of_crossed(curve - sum(base), size=size, called="the curves"))
    joined = Hypotheses.joined(tests)
    return joined, joined.intervals(options.alpha).ci_high - joined.moments.mean


def _with_mean(values: FloatArray) -> FloatArray:
    """Append to values (..., shares) their mean, if there are several shares."""
    if values.shape[-1] == 1:
        return values
    return np.concatenate([values, values.mean(-1, keepdims=True)], axis=-1)


def _warn_of_skew(losses: FloatArray, orders: Sequence[str], settings: IndexArray) -> Iterator[str]:
    """Warn of orders of which draws have skewed losses at a share."""
    skewed = []
    for order, at in zip(orders, settings, strict=True):
        of_draws = losses[:, at].mean(0)
        varying = of_draws[:, np.ptp(of_draws, axis=0) > _ROUNDING * np.abs(of_draws).max(axis=0)]
        if varying.size and np.nanmax(np.abs(stats.skew(varying))) > _SKEWED:
            skewed.append(order)
    if skewed:
        yield (
            f"Draws have skewed losses in {listed(skewed)}: p < 0.05 then comes by chance in 12 to "
            "16 % of the tests with 5 draws, and in 7 to 10 % with 20. Make more `draws`."
        )


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
    for look, (order, points) in zip(line_looks(), rows.groupby("order", sort=False), strict=False):
        ax.plot(points["share"], points["value"], label=in_words(order), **look)
        band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(points["share"], points["ci_low"], points["ci_high"], **band)
    if (whole := curves.facts["measured"][measure]) is not None:
        ax.axhline(whole, color=THRESHOLD, linestyle="dotted", label="whole model")
    ax.set_xticks(shares := sorted(rows["share"].unique()), [f"{share:.0%}" for share in shares])
    ax.set(xlabel="heads removed", ylabel=f"{measure} without them")
    legend_below(ax, "order of removing")
    return ax
