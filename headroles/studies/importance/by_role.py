"""Do heads with a role matter more to a task? Roles and a task -> ImportanceByRole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb, prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, Self, TypedDict

import numpy as np
import pandas as pd
from msgspec import Meta

from headroles.arrays import FloatArray
from headroles.drawing.style import DARK, THRESHOLD, legend_below, new_axes, role_label
from headroles.errors import UsageError
from headroles.inference.permutation import permute_within
from headroles.models.heads.remaining import Head
from headroles.models.options import ENCODER
from headroles.options import Convert, Seed, split_names, takes
from headroles.results.columns import Column, one_of
from headroles.results.consistency import Rule, answers_by, equal_to, only_with
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.studies.classification.role_table import RoleTable, rate_of
from headroles.studies.importance.importance import values_of
from headroles.studies.removals import (
    LESS,
    MORE,
    RolesFromOptions,
    at_most,
    heads_by_role,
    rises_of,
    without_each,
)
from headroles.studies.translations import (
    TranslationFacts,
    as_frame,
    compare_translations,
    describe_translations,
    translations_without,
)
from headroles.tasks.options import GenerateOptions, RunOptions
from headroles.tasks.outcomes import DERIVATIVES
from headroles.testing.evidence import RANK, UNDECIDED, answers, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed, numbered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.models.loading.encoder import Model
    from headroles.tasks.running import TaskRun

_TABULATED = 8
_ENOUGH = 10
"""Draws of a role end once this many lost more, and this many less, than without its heads."""
_QUICK_DRAWS, _QUICK_EXAMPLES = 99, 64
_ROUND = 4
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class ByRoleOptions(RolesFromOptions, CorrectionOptions, GenerateOptions, RunOptions):
    """Options of comparing heads with a role to other heads."""

    roles: Annotated[Sequence[str] | None, Convert(split_names)] = None
    """Only these roles, separated by commas; * stands for anything, as in 'syntactic*'.

    Every role takes a pass for each draw, and counts in the correction.
    """
    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute"
    """Estimator of importance that is compared."""
    permutations: Annotated[int, Meta(ge=99)] = 9999
    """Permutations of heads within layers, for each role."""
    draws: Annotated[int, Meta(ge=1)] = 999
    """Most random sets of as many heads of each layer that a role is ranked among.

    Draws end once both tails have ten. One role alone of R can be shown at alpha after correction
    with 2 R / alpha draws or more.
    """
    seed: Seed = 0
    """Seed of permutations and draws."""
    quick: bool = False
    """A first answer in minutes: 64 examples, and 99 draws, or as many as can show one role."""

    @property
    def at_speed(self) -> Self:
        """The options with the numbers that are asked for, smaller ones for a first answer."""
        if not self.quick:
            return self
        examples = min(self.examples or _QUICK_EXAMPLES, _QUICK_EXAMPLES)
        return replace(self, draws=min(self.draws, _QUICK_DRAWS), examples=examples)


class ByRoleFacts(TypedDict):
    """Translations of the whole model, without heads, if any were written."""

    translations: NotRequired[TranslationFacts]


@dataclass(frozen=True, repr=False, eq=False)
class ImportanceByRole(Result[ByRoleOptions, ByRoleFacts]):
    """Tests of whether heads with a role matter more to a task than others of their layers.

    ``frame`` has the columns of ``columns``, a row for each role that some heads have.
    ``importance_difference`` and ``loss_difference`` are means over the heads with the role, of
    their importance and of the rise of the loss without each, less the means of their layers; both
    are tested by permuting heads within layers. ``removed_loss`` is the loss without all heads with
    the role, ``drawn_loss`` the mean of the losses without random sets of as many heads of each
    layer, drawn from all heads of these layers, and ``removed_difference`` the one less the other.
    ``p_removed`` is from the rank of ``removed_loss`` among the losses of the ``draws``; 1 - alpha
    of these losses lie between ``drawn_low`` and ``drawn_high``. ``answer`` says whether heads with
    the role matter ``more`` or ``less`` than such sets, else ``undecided``. NaN where only whole
    layers have the role.
    ``shared_with`` is the role that most of these heads have too, and ``overlap`` the share of
    heads with either role that have both: either role may explain the result of the other. The view
    ``translations`` has BLEU and chrF without the heads of each role, and without one random set of
    as many heads of each layer, if translations were written.

    With ``by_role`` as `importance_by_role` returns it:

    >>> by_role.frame["role"].tolist()
    ['local', 'punctuation']
    """

    kind: ClassVar[str] = "by-role"
    question: ClassVar[str] = "Do attention heads with a role matter more?"
    figures: ClassVar[Mapping[str, str]] = {"worth": "draw_importance_by_role"}
    views: ClassVar[tuple[str, ...]] = ("long", "translations")
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "role heads shared_with overlap importance_difference p_importance "
            "p_importance_adjusted loss_difference p_loss p_loss_adjusted draws removed_loss "
            "drawn_loss drawn_low drawn_high removed_difference p_removed p_removed_adjusted "
            "answer"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {"answer": one_of(MORE, LESS, UNDECIDED)}
    rules: ClassVar[tuple[Rule, ...]] = (
        equal_to("removed_difference", ("removed_loss", "drawn_loss"), np.subtract),
        answers_by("answer", "p_removed_adjusted", MORE, LESS, of="removed_difference"),
        only_with("drawn_loss", "draws", 1),
    )

    @property
    def translations(self) -> pd.DataFrame:
        """BLEU and chrF without heads, with tests of their changes; empty if none were written."""
        return as_frame(self.facts.get("translations"))

    def summarize(self) -> Iterator[Shown]:
        """Say heads of which roles matter more or less than random heads of the same layers."""
        frame, task = self.frame, self.record.task
        yield (
            f"{self.record.model.name} on {task.examples} examples of "
            f"{Path(task.file).name}: the loss without all heads of a role, beside that without "
            "as many random heads of the same layers "
            f"({rate_of(self.options)} over {numbered(len(frame), 'role')})."
        )
        for answer in (MORE, LESS):
            roles_named = [self.in_words(role) for role in frame["role"][frame["answer"] == answer]]
            yield f"Matter {answer} than random heads: {listed(roles_named, 6) or 'no role shown'}."
        order = frame["removed_difference"].abs().sort_values(ascending=False).index
        rows = frame.loc[order[:_TABULATED]]
        cells = {
            "Loss without all heads with": "{role}",
            "heads": "{heads}",
            "loss": "{removed_loss:.3f}",
            "of random": "{drawn_loss:.3f}",
            "difference": "{removed_difference:+z.3f}",
            "p": "{p_removed_adjusted:.2g}",
        }
        yield Grid.from_frame(rows.assign(role=rows["role"].map(self.in_words)), cells)
        words = {role: self.in_words(role) for role in frame["role"]}
        yield from describe_translations(self.facts.get("translations"), words)
        if n_alike := (frame["overlap"] > 1 / 2).sum():
            yield Warned(
                f"More than half of the heads of {n_alike} roles have another role too: tests "
                "cannot tell which of the two matters. The column shared_with names the other role."
            )
        yield from map(Warned, self.record.warnings)


@takes(ByRoleOptions)
def importance_by_role(model: Model, task: str | Path, options: ByRoleOptions) -> ImportanceByRole:
    """Test whether heads with a role matter more to a task than other heads of their layers.

    Three tests: by importance (derivatives), by the loss without each head, and by the loss
    without all heads of a role, ranked among losses without random sets of as many heads of each
    layer. H0 of all three: the heads of the role are any heads of their layers. Roles of a decoder
    or of cross-attention are compared among the heads of this kind, unless ``attention`` has more.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: examples, as `ablate_heads` takes them.
        options: keyword arguments, described below; ``roles_from`` is required.

    Raises:
        UsageError: no roles, or those of a model of another size; else as `ablate_heads`.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples,
    and ``folder`` the roles of its heads, as `classify_heads` saved them:

    >>> from headroles import importance_by_role
    >>> by_role = importance_by_role(model, task, roles_from=folder, draws=9, permutations=99)
    >>> by_role.frame[["role", "draws", "answer"]]
              role  draws     answer
    0        local      9  undecided
    1  punctuation      9  undecided
    """
    from headroles.tasks.running import keep_parts, open_run
    from headroles.tasks.translating import check_generation

    options = options.at_speed
    if options.roles_from is None:
        raise UsageError("name the folder of roles: `roles_from`")
    table = RoleTable.load(options.roles_from).where(role=options.roles)
    if options.attention is None and table.record.attention != ENCODER:
        options = replace(options, attention=table.record.attention)
    run = open_run(model, task, options)
    check_generation(run, options)
    having, heads = heads_by_role(table, run), run.heads
    if not having:
        raise UsageError(f"no head has a role in {options.roles_from}; there is nothing to compare")
    if options.quick:  # as many draws as can show one role alone
        options = replace(options, draws=max(options.draws, _enough_for_one(having, options)))
    keep_parts("by-role", options, run)
    units = [(head,) for head in heads]
    without_roles = run.n_passes(without_each(having.values(), run.shape))
    run.expect(
        DERIVATIVES
        + run.n_passes(without_each([(), *units], run.shape))
        + without_roles * (1 + options.draws)
    )
    is_in = np.array([[head in of_role for head in heads] for of_role in having.values()], int)
    n_both, sizes = is_in @ is_in.T, is_in.sum(1)
    shares = n_both / (sizes[:, None] + sizes - n_both)
    np.fill_diagonal(shares, 0)
    nearest = np.array(list(having), dtype=object)[shares.argmax(1)]
    importances = values_of(run.derivatives(), options.estimator).mean(0).reshape(run.shape)
    columns = {
        "role": list(having),
        "heads": [len(of_role) for of_role in having.values()],
        "shared_with": np.where(shares.any(1), nearest, ""),
        "overlap": shares.max(1),
        **_within(importances, heads, having, options, "importance"),
        **_within(rises_of(run, units), heads, having, options, "loss"),
        **compare_removed(run, heads, having, options),
    }
    warnings = list(_warnings(having, heads, options))
    facts: ByRoleFacts = {}
    if options.generate:
        facts["translations"] = _translations(run, having, options)
    record = run.record(options, kind="by-role", facts=facts, warnings=warnings)
    return ImportanceByRole(pd.DataFrame(columns)[list(ImportanceByRole.columns)], record)


def _translations(
    run: TaskRun, having: Mapping[str, Sequence[Head]], options: ByRoleOptions
) -> TranslationFacts:
    """Compare translations without each role, and without the first random set like it."""
    rng, sets = np.random.default_rng(options.seed), dict[str, Sequence[Head]]()
    order = [run.heads[place] for place in rng.permutation(len(run.heads))]
    for role, of_role in having.items():
        sets |= {role: of_role, f"random, as many as {role}": draw_like(of_role, order)}
    translations = translations_without(run, [(), *sets.values()], options)
    return compare_translations([*sets], translations, options, options)


def _enough_for_one(having: Mapping[str, Sequence[Head]], options: ByRoleOptions) -> int:
    """Return the number of draws with which one role alone can be shown after correction."""
    return ceil(2 * len(having) / options.alpha) - 1


def _warnings(
    having: Mapping[str, Sequence[Head]], heads: Sequence[Head], options: ByRoleOptions
) -> Iterator[str]:
    """Warn of roles that cannot be shown to matter by the loss without their heads."""
    enough = ceil(2 / options.alpha) - 1
    enough_for_one = _enough_for_one(having, options)
    if options.draws < enough:
        yield (
            f"{options.draws} draws give no p-value below {2 / (1 + options.draws):.2g}: nothing "
            f"can be shown by the loss without a role; take {enough} `draws` or more"
        )
    elif options.draws < enough_for_one:
        yield (
            f"{options.draws} draws cannot show one role alone among {len(having)} after "
            f"correction; take {enough_for_one} `draws`, or fewer `roles`"
        )
    if few := [role for role, of_role in having.items() if n_sets_like(of_role, heads) < enough]:
        yield (
            f"too few sets of as many heads are possible for {listed(few, 3)}: the loss without "
            f"these roles cannot have a p-value of {options.alpha:g}"
        )


def _within(
    values: FloatArray,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: ByRoleOptions,
    name: str,
) -> dict[str, FloatArray]:
    """Compare the values of heads with a role with those of their layers; test the differences."""
    numbers, layers = [values[head] for head in heads], [layer for layer, _ in heads]
    marks = ([head in of_role for head in heads] for of_role in having.values())
    permuted = [
        permute_within(numbers, has, layers, options.permutations, options.seed) for has in marks
    ]
    differences = np.array([observed for observed, _ in permuted])
    drawn = np.stack([of_role for _, of_role in permuted], axis=1)
    some = ~np.isnan(differences)
    ranks = Hypotheses.from_draws(
        np.abs(differences[some]), np.abs(drawn[:, some]), size=np.abs(numbers).max()
    )
    tested = find_p_values(ranks, options, "greater", RANK)
    single, adjusted = np.full((2, len(having)), np.nan)
    single[some], adjusted[some] = tested.single, tested.adjusted
    return {f"{name}_difference": differences, f"p_{name}": single, f"p_{name}_adjusted": adjusted}


def compare_removed(
    run: TaskRun,
    heads: Sequence[Head],
    having: Mapping[str, Sequence[Head]],
    options: ByRoleOptions,
) -> dict[str, Any]:
    """Rank the loss without the heads of each role among losses without random sets of heads.

    Under H0 the heads of a role are any heads of their layers. Draws are therefore of all heads of
    these layers, heads with the role included, as many of each layer as have the role.
    """
    sets = [tuple(of_role) for of_role in having.values()]
    losses = run.outcomes(without_each(sets, run.shape)).losses
    observed = losses.mean(0)
    drawn = _draw(run, heads, sets, observed, options)
    ranks = Hypotheses.from_draws(observed, drawn, size=size_of(losses))
    p_values = find_p_values(ranks, options, "two-sided", RANK)
    n_draws = (~np.isnan(drawn)).sum(0)
    low, middle, high = np.full((3, len(sets)), np.nan)
    if (some := n_draws > 0).any():
        limits = [options.alpha / 2, 1 - options.alpha / 2]
        low[some], high[some] = np.nanquantile(drawn[:, some], limits, axis=0)
        middle[some] = np.nanmean(drawn[:, some], axis=0)
    return {
        "draws": n_draws,
        "removed_loss": observed,
        "drawn_loss": middle,
        "drawn_low": low,
        "drawn_high": high,
        "removed_difference": observed - middle,
        "p_removed": p_values.single,
        "p_removed_adjusted": p_values.adjusted,
        "answer": answers(p_values.shows(options.alpha), p_values.direction, (MORE, LESS)),
    }


def n_sets_like(chosen: Iterable[Head], heads: Iterable[Head]) -> int:
    """Count the sets of ``heads`` with as many heads of each layer as ``chosen``."""
    n_in = Counter(layer for layer, _ in heads)
    return prod(comb(n_in[layer], n) for layer, n in Counter(at for at, _ in chosen).items())


def draw_like(chosen: Iterable[Head], order: Iterable[Head]) -> tuple[Head, ...]:
    """Return the first heads of an order, as many of each layer as ``chosen`` has."""
    return tuple(sorted(at_most(Counter(layer for layer, _ in chosen), order)))


def enough_draws(options: ByRoleOptions) -> int:
    """Return the number k of draws in each tail after which a role needs no more draws.

    With k in both tails after n draws, the p-value is at least 2 (1 + k) / (1 + n), and would
    hardly be smaller after all ``draws``.
    """
    undecided = int(options.alpha * (1 + options.draws) / 2 + _ROUNDING)
    return min(undecided, _ENOUGH) or _ENOUGH


def _draw(
    run: TaskRun,
    heads: Sequence[Head],
    sets: Sequence[tuple[Head, ...]],
    observed: FloatArray,
    options: ByRoleOptions,
) -> FloatArray:
    """Return mean losses (draws, roles) without random sets; NaN after a role's last draw.

    One order of all heads serves all roles in each draw: roles with equal numbers of heads in the
    lower layers share passes through these layers. Draws of a role end once both of its tails have
    `enough_draws`; its p-value stays valid (Besag and Clifford 1991).
    """
    rng, enough = np.random.default_rng(options.seed), enough_draws(options)
    drawn = np.full((options.draws, len(sets)), np.nan)
    is_open = np.array([n_sets_like(chosen, heads) > 1 for chosen in sets])
    cost, start = run.n_passes(without_each(sets, run.shape)) / len(sets), 0
    while start < options.draws and is_open.any():
        open_roles: list[int] = np.flatnonzero(is_open).tolist()
        run.expect(cost * len(open_roles) * (options.draws - start))
        part = slice(start, min(start + max(_ROUND, start // 4), options.draws))
        wanted = []
        for _ in range(part.start, part.stop):
            order = [heads[place] for place in rng.permutation(len(heads))]
            wanted += [draw_like(sets[role], order) for role in open_roles]
        numbers = {chosen: place for place, chosen in enumerate(dict.fromkeys(wanted))}
        gates = without_each(numbers, run.shape)
        cost = run.n_passes(gates) / len(wanted)
        losses = run.outcomes(gates).losses.mean(0)
        by_draw = losses[[numbers[chosen] for chosen in wanted]].reshape(-1, len(open_roles))
        drawn[part, open_roles] = by_draw
        above, below = (drawn >= observed).cumsum(0), (drawn <= observed).cumsum(0)
        is_decided = np.minimum(above, below) >= enough
        drawn[is_decided.cumsum(0) > 1] = np.nan
        is_open[open_roles] = ~is_decided.any(0)[open_roles]
        start = part.stop
    return drawn


def draw_importance_by_role(by_role: ImportanceByRole, ax: Axes | None = None) -> Axes:
    """Draw for each role the loss without its heads, less the mean of random sets as large.

    Lines hold the middle of the random sets; points are full for roles whose p-value, after
    correction, is at most alpha.

    With ``by_role`` as `importance_by_role` returns it:

    >>> from headroles.report import draw_importance_by_role
    >>> len(draw_importance_by_role(by_role).get_yticklabels())
    2
    """
    frame = by_role.frame
    ax = new_axes(ax, 7, 1.3 + 0.26 * len(frame))
    y = np.arange(len(frame))
    is_shown = (frame["answer"] != UNDECIDED).to_numpy()
    low, high = (frame[name] - frame["drawn_loss"] for name in ("drawn_low", "drawn_high"))
    ax.hlines(y, low, high, color="0.5", label="random sets of heads")
    look: dict[str, Any] = {"markeredgecolor": DARK, "marker": "o", "linestyle": "none"}
    for chosen, color, label in (
        (is_shown, DARK, "significant"),
        (~is_shown, "white", "not significant"),
    ):
        if chosen.any():
            differences = frame["removed_difference"][chosen]
            ax.plot(differences, y[chosen], color=color, label=label, **look)
    ax.axvline(0, color=THRESHOLD, linestyle="dotted")
    names = [f"{role_label(by_role, row.role)} ({row.heads} heads)" for row in frame.itertuples()]
    ax.set_yticks(y, names)
    ax.set(ylim=(len(frame) - 0.5, -0.5))
    label = "loss without its heads, minus loss\nwithout as many random heads (nats)"
    ax.set_xlabel(label, loc="right")
    legend_below(ax)
    return ax
