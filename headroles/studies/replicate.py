"""Does it replicate over corpora, checkpoints, or models of several seeds?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from headroles.drawing.style import draw_values, grid_of, new_axes, role_label
from headroles.errors import UsageError
from headroles.options import takes
from headroles.results.columns import Axes as Combinations
from headroles.results.consistency import Rule, answers_by
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.roles import BIAS, Role, find_role
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.ladder import BEYOND, heads_in
from headroles.studies.classification.role_table import (
    NOT_CONTROLLED,
    RoleGroups,
    about_level,
    digits,
    unit_of,
)
from headroles.studies.evidence import CONTRASTS, DISTANCE, RoleHypotheses
from headroles.studies.heads import (
    HeadColumns,
    ScoreLevel,
    ThresholdOptions,
    check_contrasts,
    contrasts_by_parent,
)
from headroles.testing.evidence import find_replicated, of_bets
from headroles.testing.options import LevelOptions
from headroles.wording import all_of, listed, named_heads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CORPORA, CHECKPOINTS, SEEDS = "corpora", "checkpoints", "seeds"
_OTHER_LENGTH = 1.2
"""Ratio of mean lengths of examples above which a caution is given."""


@dataclass(frozen=True, kw_only=True)
class ReplicateOptions(LevelOptions, ThresholdOptions):
    """Options of tests over several score sets."""

    over: Literal["corpora", "checkpoints", "seeds"] = "corpora"
    """What sets of scores are of: a model over corpora, its checkpoints, or models of many seeds.

    Heads of models of different seeds do not correspond: they are counted per layer.
    """
    beyond: Literal["distance", "class", "attractors"] = "distance"
    """The step that the evidence about pairs of words has to reach; class or attractors leaves out
    roles that have no such steps."""


class ReplicationFacts(ScoreLevel):
    """Facts of a replication: the ``names`` of the sets, and whether they share no example."""

    distance_margin: float | None
    names: list[str]
    independent: bool


_BETTING_ASKS_MORE = (
    "Betting takes more documents than the tests of classify: roles that are *yes* in each set may "
    "be missing here."
)


@dataclass(frozen=True, repr=False, eq=False)
class Replication(Result[ReplicateOptions, ReplicationFacts]):
    """In at least how many of k score sets each head has each role.

    ``frame`` has a row per layer, head, role and number ``at_least`` from 1 to k. ``sets`` is the
    number of sets in which the role could be tested. ``shown_in`` names, with commas between them,
    the sets that show the role each by itself, corrected over its own tests: fewer than
    ``at_least``, which adds up the evidence of several sets, or more. ``mean`` is the smallest
    among the ``at_least`` sets with the largest mean scores, and so is ``beyond_distance`` of
    contrasts; NaN if fewer were tested. ``log_e`` is the natural logarithm of the evidence that at
    least so many sets have the role, ``p_adjusted`` min(1, 1 / E) corrected over the family of all
    heads and roles for this number, ``replicated`` whether it is at most alpha.

    Heads of models of different seeds do not correspond: `layers` has the answer, and `heads` no
    row; ``at_least`` is 1 alone, numbers after it are NaN, and ``replicated`` is False.

    With ``replication`` as `replicate_roles` returns it:

    >>> replication.facts["names"]
    ['news', 'mail']
    """

    kind: ClassVar[str] = "replication"
    question: ClassVar[str] = "Which roles replicate?"
    figures: ClassVar[Mapping[str, str]] = {
        "role": "draw_replication",
        "layers": "draw_layer_counts",
    }
    columns: ClassVar[tuple[str, ...]] = (
        *"layer head role sets shown_in at_least mean beyond_distance".split(),
        *"log_e p_adjusted replicated".split(),
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        answers_by("replicated", "p_adjusted", True),
        Rule(
            ("log_e", "p_adjusted"),
            "p_adjusted is at least 1 / E",
            lambda rows, _: (
                ~(rows["p_adjusted"] < np.exp(-rows["log_e"].clip(lower=0)) * (1 - 1e-6))
            ),
        ),
    )
    views: ClassVar[tuple[str, ...]] = ("long", "heads", "layers")

    def axes(self) -> Combinations:
        """Return the axes: all heads and roles, by numbers of sets."""
        most = 1 if self.options.over == SEEDS else len(self.record.sources)
        numbers = [(k + 1,) for k in range(most)]
        return {**dict.fromkeys((("layer",), ("head",), ("role",)), ()), ("at_least",): numbers}

    @property
    def figure_kinds(self) -> tuple[str, ...]:
        """Of seeds heads by layer, else heads by themselves."""
        return ("layers",) if self.options.over == SEEDS else ("role",)

    def heads(self) -> pd.DataFrame:
        """Return for each head and role the number ``at_least`` of its sets, and their names."""
        shown = self.frame["at_least"].where(self.frame["replicated"], 0)
        by_head = self.frame.assign(at_least=shown).groupby(["layer", "head", "role"], sort=False)
        heads: pd.DataFrame = by_head.agg({"at_least": "max", "shown_in": "first"}).reset_index()
        return heads[:0] if self.options.over == SEEDS else heads

    @cached_property
    def groups(self) -> RoleGroups:
        """The roles of the table; the groups of pairs are of arcs alone."""
        return RoleGroups.from_arcs(self.known_roles(self.frame["role"].unique()))

    def everywhere(self) -> pd.DataFrame:
        """Return heads with roles in all sets, no role counted in two ways.

        Rows have ``layer, head, role, mean, beyond_distance``, the smallest among the sets. Heads
        farthest beyond distance come first, then heads with the largest means.
        """
        groups = self.groups
        is_shown = self.frame["replicated"] & (self.frame["at_least"] == len(self.facts["names"]))
        rows = self.frame[is_shown & self.frame["role"].isin([*groups.others, *groups.single])]
        rows = rows[["layer", "head", "role", "mean", "beyond_distance"]]
        return rows.sort_values(["beyond_distance", "mean"], ascending=False, kind="stable")

    def layers(self) -> pd.DataFrame:
        """Count for each set, role and layer the heads that the set shows to have it, by itself.

        Columns ``set, role, layer, heads, with_role``; ``heads`` are all of the layer.
        """
        rows = self.frame[self.frame["at_least"] == 1]
        shown_in, counted = rows["shown_in"].str.split(", "), []
        for name, source in self.record.sources.items():
            is_there = (rows[["layer", "head"]] < [*source.shape]).all(axis=1)
            of_set = rows.assign(set=name, with_role=[name in names for names in shown_in])
            counted.append(of_set[is_there])
        by_layer = pd.concat(counted).groupby(["set", "role", "layer"], sort=False)["with_role"]
        return by_layer.agg(heads="size", with_role="sum").reset_index()

    def summarize(self) -> Iterator[Shown]:
        """Say which heads have which roles in all sets; of seeds, how many in each layer."""
        names, over = self.facts["names"], self.options.over
        of_what = "Heads are named layer-head, from 0."
        if over == SEEDS:
            of_what = "Heads per layer, fewest and most among the sets:"
        level = about_level(self.options, self.facts)
        betting = "Tested by betting."
        if (step := self.options.beyond) in BEYOND:
            betting = f"Tested by betting, {BEYOND[step]}."
        yield f"{len(names)} {over}: {listed(names, 6)}.\n{level}\n{betting} {of_what}"
        yield from self._by_layer() if over == SEEDS else self._by_role()
        yield from map(Warned, self.record.warnings)

    def _by_layer(self) -> Iterator[Shown]:
        """Tabulate fewest and most heads with each role by layer."""
        ranges = _ranges(self.layers())
        least, most = ranges["min"].astype(str), ranges["max"].astype(str)
        cells = least.where(least == most, least + "-" + most).unstack(fill_value="")  # noqa: PD010
        cells = cells.reindex(ranges.index.unique("role"))
        rows = tuple((self.in_words(role), *row) for role, *row in cells.itertuples())
        yield Grid(("role", *map(str, cells.columns)), rows)

    def _by_role(self) -> Iterator[Shown]:
        """Name the heads with roles in all sets, farthest beyond distance first."""
        rows, score = self.everywhere(), self.facts["score"]
        every = all_of(len(self.facts["names"]), self.options.over)
        units = {unit_of(score): "mean"}
        if rows["beyond_distance"].notna().any():
            units["beyond distance"] = "beyond_distance"
        n_layers, cells = int(self.frame["layer"].max()) + 1, []
        for role, of_role in rows.groupby("role", sort=False):
            heads, first = heads_in(of_role), of_role.iloc[0]
            which, values = named_heads(heads, n_layers, most=5), first[list(units.values())]
            numbers = ["" if np.isnan(value) else f"{value:{digits(score)}}" for value in values]
            best = f"{first['layer']}-{first['head']}"
            cells.append((self.in_words(role), str(len(heads)), which, best, *numbers))
        if cells:
            titles = (f"Roles in {every}", "heads", "which", "strongest", *units)
            yield Grid(titles, tuple(cells), left=frozenset(["which", "strongest"]))
        arcs = self.groups.pairs
        has_arcs = rows["role"].isin(arcs).any()
        if not cells:
            yield f"No head is shown to have a role in {every}. {_BETTING_ASKS_MORE}"
        elif arcs and not has_arcs:
            yield (
                f"No head is shown to attend to grammatical partners in {every}. "
                f"{_BETTING_ASKS_MORE}"
            )
        elif has_arcs and not self.facts["distance_margin"]:
            yield NOT_CONTROLLED
        if not self.facts["independent"]:
            yield "The sets share examples, or may: their evidence is averaged, not multiplied."


def _ranges(layers: pd.DataFrame) -> pd.DataFrame:
    """Return fewest, mean and most heads with a role among the sets, by role and layer."""
    by_layer = layers.groupby(["role", "layer"], sort=False)["with_role"]
    ranges: pd.DataFrame = by_layer.agg(["min", "mean", "max"])
    return ranges


@takes(ReplicateOptions)
def replicate_roles(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> Replication:
    """Test in at least how many of k score sets each head has each role.

    Evidence comes from betting: valid for any number of examples and any distribution. The test of
    a role in at least u sets takes the evidence of the k - u + 1 sets that have the least
    (Benjamini and Heller 2008), multiplies it if the sets share no example and averages it
    otherwise, and is corrected over the family for every u by itself.

    Args:
        sets: two or more, from `score_heads`, of one kind of score.
        names: of the sets.
        options: keyword arguments, described below.

    Raises:
        UsageError: fewer than two sets, sets that do not go together, or without bounds.

    In both corpora the first head has the role, and no score can be below 0 or above 10:

    >>> import numpy as np
    >>> from headroles import HeadScores, replicate_roles
    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal([[5.0], [1.0]], 0.3, size=(2, 20, 1, 2, 1))
    >>> news, mail = (HeadScores.by_hand(own, ["local"], bounds=(0, 10)) for own in values)
    >>> replicate_roles([news, mail], ["news", "mail"]).heads()[["head", "role", "at_least"]]
       head   role  at_least
    0     0  local         2
    1     1  local         0
    """
    _check_sets(sets, names, options.over)
    for scores in sets:
        check_contrasts(scores)
    roles, left_out = _common_roles(sets)
    if options.beyond != DISTANCE:
        roles = _with_steps(roles, sets, options.beyond)
    ids = {role.id for role in roles}
    scored = dict.fromkeys(role for scores in sets for role in scores.roles)
    contrasts = [role for name, role in contrasts_by_parent(scored).items() if name in ids]
    score, distinct = sets[0].score, [set(scores.digests) for scores in sets]
    # that no two sets share an example, as far as is known
    independent = all(distinct) and len(set().union(*distinct)) == sum(map(len, distinct))
    n_layers, n_heads = (max(scores.values.shape[axis] for scores in sets) for axis in (1, 2))
    tested = [_of_roles(each, roles, contrasts, (n_layers, n_heads), options) for each in sets]
    return Replication.made(
        _frame(tested, names, independent, options),
        options,
        facts={
            **options.facts_about(score),
            "distance_margin": options.margin_of(score) * bool(contrasts),
            "names": list(names),
            "independent": independent,
        },
        warnings=list(_warnings(sets, names, roles, left_out)),
        sources={name: scores.record for name, scores in zip(names, sets, strict=True)},
    )


def _warnings(
    sets: Sequence[HeadScores], names: Sequence[str], roles: list[Role], left_out: list[str]
) -> Iterator[str]:
    """Warn of sets that differ in what their scores depend on, and of roles that some lack."""
    lengths = [float(scores.lengths.mean()) for scores in sets]
    if sets[0].score is BIAS and max(lengths) > _OTHER_LENGTH * min(lengths):
        means = ", ".join(f"{name} {n:.0f}" for name, n in zip(names, lengths, strict=True))
        yield (
            f"Examples differ in length (mean number of tokens: {means}), and bias scores grow "
            "with length. Score with `score='excess'`."
        )
    for name, scores in zip(names, sets, strict=True):
        present = HeadColumns.from_scores(scores).roles
        if lacking := [role.id for role in roles if role not in present]:
            yield f"{name} has no example of these roles: {', '.join(lacking)}"
    if left_out:
        yield (
            "roles that fewer than two sets have, or that sets define differently, are skipped: "
            + ", ".join(left_out)
        )


def _check_sets(sets: Sequence[HeadScores], names: Sequence[str], over: str) -> None:
    if len(sets) < 2:
        raise UsageError("replication needs two score sets or more; name another folder")
    if len(set(names)) != len(sets):
        raise UsageError(f"{len(sets)} score sets are called {', '.join(names)}; name each apart")
    if with_comma := [name for name in names if "," in name]:
        raise UsageError(f"the name {with_comma[0]!r} has a comma, which separates names in tables")
    first, called = sets[0], names[0]
    for scores, name in zip(sets[1:], names[1:], strict=True):
        if scores.score != first.score:
            kinds = f"{name} has {scores.score.name} scores and {called} {first.score.name} scores"
            raise UsageError(f"{kinds}; score them alike")
        if over != SEEDS and scores.values.shape[1:3] != first.values.shape[1:3]:
            raise UsageError(
                f"{name} has {scores.n_layers} layers x {scores.n_heads} heads and {called} "
                f"{first.n_layers} x {first.n_heads}: they are no checkpoints of one model"
            )
        models = {side.record.model.weights_sha256 for side in (scores, first)}
        if over == CORPORA and len(models) > 1:
            raise UsageError(
                f"{name} and {called} are of different models; pass `over={CHECKPOINTS!r}`"
                f" if their heads correspond, or {SEEDS!r} if they do not"
            )


def _common_roles(sets: Sequence[HeadScores]) -> tuple[list[Role], list[str]]:
    """Return roles of at least two sets, and ids of roles that one set has or that differ."""
    present = [HeadColumns.from_scores(scores).roles for scores in sets]
    every = list(dict.fromkeys(role for roles in present for role in roles))
    ids = Counter(role.id for role in every)
    common = [
        role for role in every if ids[role.id] == 1 and sum(role in roles for roles in present) > 1
    ]
    if not common:
        raise UsageError("no role is in two of the score sets; score them for the same roles")
    return common, list(dict.fromkeys(role.id for role in every if role not in common))


def _with_steps(roles: list[Role], sets: Sequence[HeadScores], step: str) -> list[Role]:
    """Return the roles that have the contrasts of a step, or the rules that stand for them.

    Raises UsageError if none has.
    """
    if sets[0].score.of_first_choice:
        chosen = [role for role in roles if all(one.class_rules(role.id).rules for one in sets)]
    else:
        scored = {(role.parent, role.contrast) for scores in sets for role in scores.roles}
        names = CONTRASTS[step]
        chosen = [role for role in roles if all((role.id, name) in scored for name in names)]
    if not chosen:
        raise UsageError(
            f"no role of these scores has evidence up to {step}; score roles of pairs of words "
            "with their contrasts, or omit `beyond`"
        )
    return chosen


def _of_roles(
    scores: HeadScores,
    roles: list[Role],
    contrasts: list[Role],
    shape: tuple[int, int],
    options: ReplicateOptions,
) -> RoleHypotheses:
    """Return H0 of roles and heads of ``shape`` (layers, heads); NaN where the set lacks one."""
    lacking = [role for role in (*roles, *contrasts) if role not in scores.roles]
    layers, heads = ((0, n) for n in np.subtract(shape, scores.values.shape[1:3]))
    of_roles = [(0, 0), (0, len(lacking))]
    added = {name: [*of_roles, (0, 0)] for name in ("offset_shares", "class_hits", "bounds")}
    added |= {"values": [(0, 0), layers, heads, of_roles[1]], "counts": of_roles}
    if lacking or shape != scores.values.shape[1:3]:
        widened: Any = {
            name: np.pad(
                array, added[name], constant_values=np.nan if array.dtype.kind == "f" else 0
            )
            for name, array in scores.arrays.items()
            if name in added
        }
        scores = replace(scores, roles=(*scores.roles, *lacking), **widened)
    return RoleHypotheses.from_scores(scores, options, options, HeadColumns(tuple(roles), *shape))


def _frame(
    sets: list[RoleHypotheses], names: Sequence[str], independent: bool, options: ReplicateOptions
) -> pd.DataFrame:
    log_e = np.array([tested.log_e(options.beyond) for tested in sets])
    shows = np.stack([of_bets(of_set, options).shows(options.alpha) for of_set in log_e], axis=1)
    # the largest of each test first, missing ones last
    means = -np.sort([-tested.means.moments.mean for tested in sets], axis=0)
    beyond = -np.sort([-tested.beyond for tested in sets], axis=0)
    frames = []
    for at_least in range(1, 2 if options.over == SEEDS else len(sets) + 1):
        combined = find_replicated(log_e, at_least, independent, options)
        part = {
            **sets[0].columns.labels,
            "sets": (~np.isnan(log_e)).sum(axis=0),
            "shown_in": [", ".join(compress(names, row)) for row in shows.tolist()],
            "at_least": at_least,
            "mean": means[at_least - 1],
            "beyond_distance": beyond[at_least - 1],
            "log_e": combined.statistic,
            "p_adjusted": combined.adjusted,
            "replicated": combined.shows(options.alpha),
        }
        frames.append(pd.DataFrame(part)[list(Replication.columns)])
    frame = pd.concat(frames, ignore_index=True)
    if options.over == SEEDS:  # no answers about single heads
        frame[["mean", "beyond_distance", "log_e", "p_adjusted"]] = np.nan
        frame["replicated"] = False
    return frame


def draw_replication(
    replication: Replication, role: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw layers x heads: in at least how many score sets each head has a role.

    Without ``role``, the number of roles that a head was shown to have in all sets. Raises
    UsageError for a role that the table does not have, and for seeds, whose heads do not
    correspond.

    With ``replication`` as `replicate_roles` returns it:

    >>> from headroles.report import draw_replication
    >>> draw_replication(replication).get_title()
    'roles in both corpora'
    """
    if replication.options.over == SEEDS:
        raise UsageError("heads of seeds do not correspond; count them by draw_layer_counts")
    heads, sets = replication.heads(), len(replication.facts["names"])
    if role is None:
        numbers = (heads["at_least"] == sets).groupby([heads["layer"], heads["head"]]).sum()
        title, label = f"roles in {all_of(sets, replication.options.over)}", "number of roles"
    else:
        role = find_role(role, replication.known_roles(replication.frame["role"].unique()))
        numbers = heads[heads["role"] == role].set_index(["layer", "head"])["at_least"]
        title, label = (
            role_label(replication, role),
            f"{replication.options.over} (of {sets})",
        )
    counts = grid_of(heads, numbers.astype(float))
    return draw_values(ax, counts, title, label, counts)


def draw_layer_counts(counts: Replication, role: str = "", ax: Axes | None = None) -> Axes:
    """Draw heads with a role by layer: the mean over score sets, with the fewest and the most.

    ``role`` is by default the one that most heads of any set have. Raises UsageError for a role
    that the table does not have.

    With ``replication`` as `replicate_roles` returns it:

    >>> from headroles.report import draw_layer_counts
    >>> draw_layer_counts(replication, "local").get_xlabel()
    'layer'
    """
    layers = counts.layers()
    most = layers.groupby(["set", "role"])["with_role"].sum().groupby("role").max().idxmax()
    role = find_role(role or str(most), counts.known_roles(layers["role"].unique()))
    rows = _ranges(layers).loc[role]
    ax = new_axes(ax, 6, 3.2)
    apart = np.stack([rows["mean"] - rows["min"], rows["max"] - rows["mean"]])
    ax.bar(rows.index, rows["mean"], color="0.75", yerr=apart, capsize=4)
    ax.set_xticks(rows.index)
    title = role_label(counts, role)
    ax.set(xlabel="layer", ylabel="heads: mean, fewest and most", title=title)
    return ax
