"""What changed in the heads? Scores before and after -> RoleComparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import (
    MODEL_TERMS,
    BoolArray,
    Float32Array,
    FloatArray,
    rounding_bound,
)
from headroles.errors import UsageError
from headroles.inference.sample import Bounds, Sample
from headroles.options import CIRCUMSTANCE, Convert, split_names, takes
from headroles.results.columns import Axes, Column, one_of
from headroles.results.consistency import (
    Rule,
    answers_by,
    around,
    equal_to,
    marked,
    standardised,
)
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.assignment import Classification, assign
from headroles.studies.classification.role_table import (
    NOT_CONTROLLED,
    AssignOptions,
    RoleGroups,
    RoleTable,
    about_level,
    digits,
    unit_of,
)
from headroles.studies.comparison.joining import join_scores
from headroles.studies.evidence import STEPS
from headroles.studies.heads import (
    HeadColumns,
    ScoreLevel,
    ThresholdOptions,
    UnitFacts,
    check_contrasts,
    clusters_in,
    describe_clusters,
    note_removed,
    scores_of,
)
from headroles.testing.evidence import (
    ANSWERS,
    BETTING,
    NO,
    POSITIONAL,
    UNDECIDED,
    UNTESTABLE,
    YES,
    by_betting,
    find_change,
    find_equivalence,
    find_p_values,
)
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.notes import find_notes, find_warnings
from headroles.testing.options import TestOptions
from headroles.wording import listed, numbered

BEFORE = "before"
STATUSES = ("kept", "gained", "lost", "absent", "undecided", "untestable")
CHANGES = {"changed": "changed", "equivalent": "equivalent", "open": "undecided"}
"""Answers about differences by column of counts; roles have a column undecided already."""
_TRIVIAL = "trivial"
"""Certified answer about a difference that is not 0, and lies within the margin."""
_CAP = 10
"""Usual margins: examples whose difference could be larger count less in betting. Page comparing.md
has the results of other caps."""
_SAME = "the same scores before and after"
"""Note on differences that are 0 in every example."""
_OF_CHANGES = (
    "checkpoint role layer head status change certified mean_before mean_after difference "
    "ci_low ci_high effect_size"
).split()
_FIGURES = "headroles.studies.comparison.figures"
SYNTACTIC = "grammatical partners"
_COUNTED = ("Before", "Kept", "Lost", "Gained", "After", "Open")
_MOST_NAMED = 4
_OPEN = "Open: *yes* for one model alone, but the data do not tell whether the head changed."


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TestOptions, ThresholdOptions):
    """Options of a comparison of score sets."""

    title: ClassVar[str] = "Comparison"

    names: Annotated[Sequence[str] | None, Convert(split_names), CIRCUMSTANCE] = None
    """Names of AFTER and of further score sets, separated by commas.

    If left out: "after", or "1", "2", ... if there are several.
    """
    margin: Annotated[float | None, Meta(gt=0)] = None
    """Difference that would matter; left out: 0.5 (bias), 0.025 (excess), 0.125 (hit).

    The smallest difference of mean scores that would matter, to be chosen before the data are
    seen. The default is a quarter of the way from uniform attention to the usual threshold.
    """
    on_mismatch: Literal["error", "intersect"] = "error"
    """Treatment of examples or roles that not all have; intersect skips them."""


class ComparisonFacts(ScoreLevel, UnitFacts):
    """Facts of a comparison: the margins of its tests, and what not all sides have.

    ``examples`` are those that all sides have. ``dropped_examples`` and ``dropped_roles`` are, for
    each side, what others lack.
    """

    distance_margin: float
    margin: float
    examples: int
    dropped_examples: dict[str, int]
    dropped_roles: dict[str, list[str]]


@dataclass(frozen=True, repr=False, eq=False)
class RoleComparison(Result[CompareOptions, ComparisonFacts]):
    """Changes of heads: a paired test for every checkpoint, role, layer and head.

    ``frame`` has the columns of ``columns``, ordered by checkpoint, role, layer and head; every
    checkpoint is compared with the scores before. Means, differences, their deviations, errors and
    intervals, and the margin, are in units of the score; undefined values are NaN.

    ``changed``: the mean is shown to have moved by more than the margin; ``equivalent``: by less;
    ``change`` is the answer of both, and ``status`` follows from the answers before and after
    (`role_status`). ``p_value`` is of no difference at all, uncorrected. ``certified`` says by
    betting whether ``certified_difference``, a mean in which every document counts the same,
    differs from 0 (``"changed"``), lies within the margin (``"equivalent"``), or both
    (``"trivial"``); it holds for any distribution, and is empty for scores without stored bounds.

    With ``shifts`` as `compare_roles` returns them:

    >>> shifts.changes()[["checkpoint", "role", "layer", "head", "status"]]
      checkpoint   role  layer  head status
    0      after  local      0     0   lost
    >>> int(shifts.counts()["kept"].sum())
    0
    """

    kind: ClassVar[str] = "comparison"
    question: ClassVar[str] = "What changed in the attention heads?"
    figures: ClassVar[Mapping[str, str]] = {
        "heads": f"{_FIGURES}:draw_changed_heads",
        "changes": f"{_FIGURES}:draw_changes",
        "trajectory": f"{_FIGURES}:draw_trajectory",
    }
    page: ClassVar[str] = f"{_FIGURES}:comparison_page"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "checkpoint layer head role n n_clusters mean_before mean_after difference sd "
            "standard_error effect_size ci_low ci_high statistic p_value margin p_changed "
            "p_changed_adjusted changed p_equivalent p_equivalent_adjusted equivalent change "
            "certified certified_difference threshold answer_before answer_after evidence_before "
            "evidence_after status note"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("answer_before", "answer_after"), one_of(*ANSWERS, POSITIONAL)),
        **dict.fromkeys(("evidence_before", "evidence_after"), one_of("", *STEPS)),
        "status": one_of(*STATUSES),
        "change": one_of(*CHANGES.values(), UNTESTABLE),
        "certified": one_of(*CHANGES.values(), _TRIVIAL, UNTESTABLE, ""),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "difference", "ci_high"),
        equal_to("difference", ("mean_after", "mean_before"), np.subtract),
        Rule(
            ("statistic", "difference", "standard_error"),
            "statistic is the difference in standard errors",
            lambda rows, options: (
                (options.test == BETTING)
                | rows["statistic"].isna()
                | np.isclose(
                    rows["statistic"] * rows["standard_error"], rows["difference"], rtol=1e-5
                )
            ),
        ),
        standardised("difference", "sd"),
        marked("changed", "change", "changed"),
        answers_by("change", "p_changed_adjusted", "changed"),
        answers_by("change", "p_equivalent_adjusted", "equivalent", otherwise=("changed",)),
        answers_by("equivalent", "p_equivalent_adjusted", True),
        Rule(
            ("answer_before", "answer_after", "status"),
            "status follows from the answers before and after",
            lambda rows, _: (
                role_status(rows["answer_before"], rows["answer_after"]) == rows["status"]
            ),
        ),
    )
    views: ClassVar[tuple[str, ...]] = ("long", "changes", "moved", "layers", "counts")

    def axes(self) -> Axes:
        """Return checkpoints, roles, layers and heads."""
        return {(name,): [] for name in ("checkpoint", "role", "layer", "head")}

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence on the tests, and the work to cite."""
        return (
            "We tested for each head and role whether its score changed, by paired tests over the "
            "same examples.",
        ), ("pande",)

    def clearest_role(self) -> str:
        """Return the role that changed most; roles that pool relations are no candidates."""
        return self.changed_most(self.rows_counted_once())[0]

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of the score sets after, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["checkpoint"]))

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return tuple(self.frame["role"].unique())

    def changes(self) -> pd.DataFrame:
        """Return lost roles, then gained ones, then other changed means, in a few columns.

        The largest standardised differences come first. Like all views, without roles that count
        the attention of others again (`rows_counted_once`).
        """
        rows = self.rows_counted_once().sort_values(
            "effect_size", key=abs, ascending=False, kind="stable"
        )
        lost, gained = (rows["status"] == name for name in ("lost", "gained"))
        other_changes = rows["changed"] & ~lost & ~gained
        return pd.concat([rows[lost], rows[gained], rows[other_changes]], ignore_index=True)[
            _OF_CHANGES
        ]

    def counts(self) -> pd.DataFrame:
        """Count the heads of each checkpoint, role and layer by status and by change.

        Columns ``checkpoint, role, layer, heads``, one for each of ``STATUSES``, one for each
        answer about the difference, ``open`` for undecided ones, and ``certified_changes``.
        """
        frame, key = self.rows_counted_once(), ["checkpoint", "role", "layer"]
        counted = {name: frame["status"] == name for name in STATUSES}
        counted |= {column: frame["change"] == answer for column, answer in CHANGES.items()}
        rows = frame[key].assign(heads=True, **counted, certified_changes=is_certified(frame))
        return rows.groupby(key, sort=False).sum().reset_index()

    def layers(self) -> pd.DataFrame:
        """Measure how far the heads of each layer moved at each checkpoint, over all roles.

        ``tests`` were made; ``changed`` and ``equivalent`` are the shares of them that found this.
        ``effect_size`` is the mean absolute standardised difference, and ``chance`` its expectation
        if no mean had changed: the mean of sqrt(2 / pi) SE / sd (normal approximation).
        ``rms_difference`` is the root mean square difference, in units of the score. ``gained`` and
        ``lost`` are numbers of roles.
        """
        rows = self.rows_counted_once()
        tested = rows[rows["change"] != UNTESTABLE]
        chance = np.sqrt(2 / np.pi) * tested["standard_error"]
        measured = {
            "effect_size": _distances(tested),
            "chance": chance / tested["sd"].where(tested["sd"] > 0),
            "rms_difference": tested["difference"] ** 2,
        }
        counted = {name: tested["status"] == name for name in ("gained", "lost")}
        layers = tested.assign(**measured, **counted).groupby(["checkpoint", "layer"], sort=False)
        means = layers[["changed", "equivalent", *measured]].mean()
        means["rms_difference"] **= 0.5
        means.insert(0, "tests", layers.size())
        return means.join(layers[[*counted]].sum()).reset_index()

    def moved(self, n: int = 10) -> pd.DataFrame:
        """Return the ``n`` heads of each checkpoint that moved most over all roles, farthest first.

        ``effect_size`` is the root mean square of a head's standardised differences, ``changed``
        the number of its roles that changed, and ``certified_changes`` of those that are certified;
        ``role`` is the changed one that moved most (of all, if none changed), with its
        ``role_effect_size`` and ``role_difference``, which have their sign.
        """
        key, rows = ["checkpoint", "layer", "head"], self.rows_counted_once()
        rows = rows.assign(distance=_distances(rows), certified_changes=is_certified(rows)).dropna(
            subset="distance"
        )
        by_head = rows.assign(square=rows["distance"] ** 2).groupby(key, sort=False)
        moved = by_head.agg(
            effect_size=("square", "mean"),
            changed=("changed", "sum"),
            certified_changes=("certified_changes", "sum"),
        )
        moved["effect_size"] **= 0.5
        farthest = rows.sort_values(["changed", "distance"], ascending=False, kind="stable")
        farthest = farthest.drop_duplicates(key).set_index(key)
        of_role = farthest[["effect_size", "difference"]].add_prefix("role_")
        moved = moved.join([farthest["role"], of_role])
        by_checkpoint = moved.groupby("checkpoint", sort=False, group_keys=False)["effect_size"]
        return moved.loc[by_checkpoint.nlargest(n).index].reset_index()

    @cached_property
    def groups(self) -> RoleGroups:
        """The roles of the table; the groups of pairs are of arcs alone."""
        return RoleGroups.from_arcs(self.known_roles(self.frame["role"].unique()))

    def rows_counted_once(self) -> pd.DataFrame:
        """Return the rows without roles that count the attention of others again.

        The column ``group`` is the role in words; all roles of arcs are one group.
        """
        groups = self.groups
        rows = self.frame[self.frame["role"].isin([*groups.others, *groups.single])]
        is_arc = rows["role"].isin(groups.single)
        return rows.assign(group=rows["role"].map(self.in_words).mask(is_arc, SYNTACTIC))

    def changed_most(self, rows: pd.DataFrame) -> list[str]:
        """Order the roles of some rows by how often heads gained or lost them, then changed.

        Roles of arcs come first.
        """
        arcs = self.groups.pairs
        is_moved = rows["status"].isin(["gained", "lost"])
        happened = is_moved.groupby(rows["role"], sort=False).sum()
        changed = (rows["change"] == "changed").groupby(rows["role"], sort=False).sum()
        return sorted(
            map(str, changed.index),
            key=lambda role: (role not in arcs, -happened[role], -changed[role]),
        )

    def summarize(self) -> Iterator[Shown]:
        """Count and name roles kept, lost and gained, and means that moved beyond the margin."""
        is_arc = self.frame["role"].isin(self.groups.pairs)
        of_arcs = self.frame["threshold"][is_arc].dropna()
        has_offsets = not np.allclose(of_arcs, self.facts["threshold"])
        first, *setting = _about_sides(self, has_offsets)
        yield first
        rows, last = self.rows_counted_once(), self.checkpoints[-1]
        of_last = rows[rows["checkpoint"] == last]
        to = f", before to {last}" if len(self.checkpoints) > 1 else ""
        if to:
            yield _grid("All roles, before to", rows.groupby("checkpoint", sort=False))
        happened = {name: of_last[of_last["status"] == name] for name in ("lost", "gained")}
        lost, gained = map(len, happened.values())
        if lost + gained:
            yield f"Heads lost {numbered(lost, 'role')} and gained {gained}."
        else:
            yield "No head was shown to lose or gain a role."
        yield _about_means(self, of_last)
        for status, changes in happened.items():
            if len(changes):
                yield f"{status.capitalize()}: {_named(changes, self, with_before=True)}."
        grid = _grid(f"Roles of heads{to}", of_last.groupby("group", sort=False))
        yield grid
        if any(row[-1] != "0" for row in grid.rows):
            yield _OPEN
        if further := _about_steps(of_last):
            yield further
        is_controlled = has_offsets or self.facts["distance_margin"]
        if not is_controlled and (rows["group"] == SYNTACTIC).any():
            yield NOT_CONTROLLED.replace("some of these", "some syntactic")
        if largest := _about_largest(self, of_last):
            yield largest
        yield "\n".join(setting)
        yield from map(Warned, self.record.warnings)


def role_status(before: ArrayLike, after: ArrayLike) -> NDArray[np.str_]:
    """Return the status of each role (tests,), from the answers before and after.

    ``"kept"`` (yes, yes), ``"gained"`` (no, yes), ``"lost"`` (yes, no) and ``"absent"`` (no, no)
    rest on two shown answers. A role that is undecided at one end is ``"undecided"``: that it
    could not be shown again is no evidence that it was lost. ``"untestable"`` goes before.

    >>> role_status(["yes", "yes", "no"], ["no", "undecided", "yes"]).tolist()
    ['lost', 'undecided', 'gained']
    """
    (had, lacked, untested), (has, lacks, untestable) = (
        (end == YES, np.isin(end, (NO, POSITIONAL)), end == UNTESTABLE)
        for end in map(np.asarray, (before, after))
    )
    cases = (untested | untestable, had & has, lacked & has, had & lacks, lacked & lacks)
    answers = ("untestable", "kept", "gained", "lost", "absent")
    return np.select(cases, answers, default="undecided")


def _about_steps(rows: pd.DataFrame) -> str:
    """Count the heads that keep a role with evidence up to another step; empty without any."""
    kept = rows[rows["status"] == "kept"]
    places = (kept[f"evidence_{side}"].map(("", *STEPS).index) for side in ("before", "after"))
    before, after = places
    farther, less = (
        len(kept[which].groupby(["layer", "head"])) for which in (after > before, after < before)
    )
    if not farther + less:
        return ""
    return (
        f"Of heads that kept a role, {farther} reach a further step of evidence after, and {less} "
        "a nearer one, or are undecided there."
    )


def is_certified(frame: pd.DataFrame) -> pd.Series[bool]:
    """Tell which rows are changes that are certified to differ from 0."""
    return frame["changed"] & frame["certified"].isin(("changed", _TRIVIAL))


def _distances(frame: pd.DataFrame) -> pd.Series[float]:
    """Return absolute standardised differences: 0 if nothing varies or changed, else NaN."""
    still = ~frame["changed"] & (frame["change"] != UNTESTABLE)
    return frame["effect_size"].abs().mask(frame["effect_size"].isna() & still, 0.0)


def _about_sides(shifts: RoleComparison, has_offsets: bool) -> Iterator[str]:
    """Name models, corpus, examples, level and what was dropped."""
    facts, names = shifts.facts, [model.name for model in shifts.record.models.values()]
    over = listed([file.rpartition("/")[2] for file in shifts.record.files])
    units = f" of {facts['n_clusters']} documents" if facts["clustered_by"] != "none" else ""
    yield (
        f"{names[0]} -> {', '.join(names[1:])}{f' over {over}' if over else ''}: "
        f"{numbered(facts['examples'], 'example')}{units} that all models read."
    )
    level = about_level(shifts.options, facts, shifts.options.offset_margin * has_offsets)
    yield f"{level} Heads: layer-head, from 0."
    dropped = []
    for name, n_examples in facts["dropped_examples"].items():
        roles = facts["dropped_roles"][name]
        parts = []
        if n_examples:
            parts.append(f"{n_examples} examples")
        if roles:
            parts.append(f"{len(roles)} roles ({listed(roles)})")
        if parts:
            dropped.append(f"of {name} {' and '.join(parts)}")
    if dropped:
        yield f"Dropped: {'; '.join(dropped)}."


def _grid(title: str, groups: Any) -> Grid:
    """Count roles by group; arcs come first."""
    rows = []
    for name, changes in groups:
        had, has = changes["answer_before"] == YES, changes["answer_after"] == YES
        if not (had | has).any():
            continue
        status, n = changes["status"], changes["role"].nunique()
        by_relation = f", {n} roles" if name == SYNTACTIC and n > 1 else ""
        by_status = (status == each for each in ("kept", "lost", "gained"))
        counted = (had, *by_status, has, (status == UNDECIDED) & (had | has))
        rows.append((f"{name}{by_relation}", *(str(int(each.sum())) for each in counted)))
    rows.sort(key=lambda row: not row[0].startswith(SYNTACTIC))
    return Grid((title, *_COUNTED), tuple(rows))


def _named(changes: pd.DataFrame, shifts: RoleComparison, with_before: bool = False) -> str:
    """Name heads with their roles, those of arcs first; ``with_before`` the other side."""
    ordered = changes.sort_values("group", key=lambda group: group != SYNTACTIC, kind="stable")
    rows: Any = ordered.itertuples()
    number, texts = digits(shifts.facts["score"]), []
    for row in rows:
        text = f"{row.layer}-{row.head} {shifts.in_words(row.role)}"
        if with_before:
            ends = f"{row.mean_before:{number}} to {row.mean_after:{number}}"
            other = f"*{row.answer_before}* before"
            if row.answer_before == YES:
                other = f"*{row.answer_after}* after"
            text += f" ({other}, {ends})"
        texts.append(text)
    more = len(texts) - _MOST_NAMED
    return "; ".join(texts[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _about_means(shifts: RoleComparison, rows: pd.DataFrame) -> str:
    """Count the means of a checkpoint, of single heads and roles, by their change."""
    facts, counts = shifts.facts, rows["change"].value_counts()
    n_heads, n_roles = len(rows[["layer", "head"]].drop_duplicates()), rows["role"].nunique()
    text = (
        f"{counts.get('changed', 0)} of {numbered(len(rows), 'mean')} ({n_heads} heads x "
        f"{numbered(n_roles, 'role')}) changed by more than {facts['margin']:g}, "
        f"{counts.get('equivalent', 0)} by less"
    )
    if n_same := (rows["note"] == _SAME).sum():
        text += f" ({n_same} of them have {_SAME})"
    text += f", {counts.get(UNDECIDED, 0)} undecided"
    if n_untestable := counts.get(UNTESTABLE, 0):
        text += f", {n_untestable} untestable"
    return f"{text}."


def _about_largest(shifts: RoleComparison, rows: pd.DataFrame) -> str:
    """Name layers with changed means, and the largest change; empty if there is none."""
    facts, changed = shifts.facts, rows[rows["changed"]]
    if not len(changed):
        return ""
    layers = ", ".join(map(str, sorted(changed["layer"].unique())))
    text = f"Changed means are in layer{'s' if ', ' in layers else ''} {layers}"
    if (shifts.frame["certified"] != "").any():
        text += f"; {is_certified(changed).sum()} of {len(changed)} are certified to differ from 0"
    largest = changed.loc[[changed["difference"].abs().idxmax()]]
    by = f"{largest['difference'].item():+.2g} {unit_of(facts['score'])}"
    return f"{text}. The largest change: {_named(largest, shifts)} ({by})."


@takes(CompareOptions)
def compare_roles(
    before: HeadScores | Classification,
    after: HeadScores | Classification,
    *later: HeadScores | Classification,
    options: CompareOptions,
) -> RoleComparison:
    """Compare score sets: test for every head and role whether the mean and the role changed.

    The unit is the pair: the scores of one example before and after, clustered by documents as in
    `assign_roles`. Two questions are tested and corrected separately. Has the mean changed by more
    than ``margin``? Paired tests against both ends of the margin. Did it move by less? Two
    one-sided tests of H0: abs(difference) >= margin (Schuirmann 1987). `assign_roles` assigns roles
    before and after, with the same options, over the same examples.

    ``block:evenness`` is not a role and is skipped. If all differences are equal, the number of
    examples decides; but the same scores before and after are equivalent.
    ``docs/comparing.md`` explains the result.

    Args:
        before: scores from `score_heads`, or a result of `classify_heads`.
        after: scores of the same examples by the same architecture, as of another checkpoint.
        later: further checkpoints; each is compared with ``before``. The paired tests of all
            checkpoints are one family.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, or scores that cannot be compared: of other
            examples, numbers of layers or heads, or scored with other options.

    The head 0-0 has a role before that it does not have after:

    >>> import numpy as np
    >>> from headroles import HeadScores, compare_roles
    >>> rng = np.random.default_rng(0)
    >>> before, after = (
    ...     HeadScores.by_hand(rng.normal(means, 1.0, size=(20, 1, 2, 1)), ["local"])
    ...     for means in ([[5.0], [1.0]], [[1.0], [1.0]])
    ... )
    >>> compare_roles(before, after).frame[["layer", "head", "change", "status"]]
       layer  head     change  status
    0      0     0    changed    lost
    1      0     1  undecided  absent
    """
    sides = list(map(scores_of, (before, after, *later)))
    for scores in sides:
        check_contrasts(scores)
    scores_by_name = dict(zip(_name_sides(len(sides), options.names), sides, strict=True))
    sets = join_scores(scores_by_name, options.on_mismatch)
    tables = {
        name: assign(scores, options.as_group(AssignOptions), {}) for name, scores in sets.items()
    }
    score, first = sides[0].score, sets[BEFORE]
    margin = score.margin if options.margin is None else options.margin
    hypotheses, frame = _differences(sets, options)
    frame = frame.assign(
        **_paired_tests(hypotheses, options, margin),
        **_certified(hypotheses, options, margin),
    )
    frame.loc[(hypotheses.size == 0) & (frame["change"] != UNTESTABLE), "note"] = _SAME
    for name, scores in sets.items():
        among = True if name == BEFORE else frame["checkpoint"] == name
        note_removed(frame, scores.record, among)
    warnings = [
        f"{name} has the very weights of {BEFORE}: check the paths"
        for name in _with_weights_of_before(sets)
    ]
    texts_of_tables = {name: table.record.warnings for name, table in tables.items()}
    texts_of_tables["differences"] = find_warnings(hypotheses, options, sides=2)
    names_by_text: dict[str, list[str]] = {}
    for name, texts in texts_of_tables.items():
        for text in texts:
            names_by_text.setdefault(text, []).append(name)
    warnings += [f"{', '.join(names)}: {text}" for text, names in names_by_text.items()]
    return RoleComparison.made(
        _with_answers(frame, tables),
        options,
        facts={
            **options.facts_about(score),
            "distance_margin": tables[BEFORE].facts["distance_margin"],
            "margin": margin,
            "examples": first.n_examples,
            **describe_clusters(hypotheses, first.clusters),
            "dropped_examples": {
                name: scores.n_examples - first.n_examples
                for name, scores in scores_by_name.items()
            },
            "dropped_roles": {
                name: [role for role in scores.role_ids if role not in first.role_ids]
                for name, scores in scores_by_name.items()
            },
        },
        warnings=warnings,
        sources={name: scores.record for name, scores in sets.items()},
    )


def _name_sides(n: int, names: Sequence[str] | None) -> tuple[str, ...]:
    """Name ``n`` score sets. Raises UsageError for names that do not fit."""
    if names is None:
        names = ["after"] if n == 2 else [str(place) for place in range(1, n)]
    if len(names) != n - 1 or len({BEFORE, *names}) != n:
        raise UsageError(
            f"names are {list(names)} for {n - 1} score sets; "
            f"give each a different name, other than {BEFORE!r}"
        )
    return (BEFORE, *names)


def _differences(
    sets: Mapping[str, HeadScores], options: TestOptions
) -> tuple[Hypotheses, pd.DataFrame]:
    """Return H0: no mean differs from that before, and the first columns of the table."""
    (_, before), *checkpoints = sets.items()
    columns = HeadColumns.from_scores(before)
    first, *later = (columns.values(scores) for scores in sets.values())
    means = np.concatenate([_means(first, after) for after in later], axis=1)
    differences = np.concatenate([after.astype(np.float64) - first for after in later], axis=1)
    size = np.fmax(2.0, means[2])  # uniform attention is 1, before and after
    is_same = _are_same(first, differences, size, sets)
    differences[:, is_same] *= 0  # NaN stays
    size[is_same] = 0
    hypotheses = Hypotheses.from_values(
        differences,
        0,
        labels=np.tile(columns.indices[0], len(later)),
        names=columns.ids,
        clusters=clusters_in(before.clusters, options),
        size=size,
        bounds=_bounds(list(sets.values()), columns),
    )
    labels = [pd.DataFrame({"checkpoint": name, **columns.labels}) for name, _ in checkpoints]
    frame = pd.concat(labels, ignore_index=True)
    return hypotheses, frame.assign(mean_before=means[0], mean_after=means[1])


def _are_same(
    before: Float32Array,
    differences: FloatArray,
    size: FloatArray,
    sets: Mapping[str, HeadScores],
) -> BoolArray:
    """Tell which columns (T,) of differences are of the same scores.

    Scores of one model are if they agree in every example up to rounding. Those of two models have
    to agree to the last bit, and to vary: first choices, and attention of 0, agree by chance too.
    """
    rounding, distance = rounding_bound(size, MODEL_TERMS), np.abs(np.nan_to_num(differences))
    is_exact, agree = (distance == 0).all(axis=0), (distance <= rounding).all(axis=0)
    n_tests = before.shape[1]
    varies = Sample.from_values(before).moments.sd > rounding.reshape(-1, n_tests)
    if sets[BEFORE].score.of_first_choice:
        varies[:] = False
    of_before = _with_weights_of_before(sets)
    of_one_model = np.repeat([name in of_before for name in sets][1:], n_tests)
    return np.asarray((is_exact & varies.ravel()) | (agree & of_one_model))


def _means(before: Float32Array, after: Float32Array) -> FloatArray:
    """Return (3, T): means of the scores (examples, T) before, after, and of their absolute sums.

    Means are over the examples with both scores; NaN without any.
    """
    has_both = ~np.isnan(before + after)
    n = np.where(has_both.any(axis=0), has_both.sum(axis=0), np.nan)
    each = (before, after, np.abs(before) + np.abs(after))
    sums = [np.where(has_both, values, 0).sum(axis=0, dtype=np.float64) for values in each]
    return np.stack(sums) / n


def _bounds(sets: Sequence[HeadScores], columns: HeadColumns) -> Bounds | None:
    """Return bounds of the differences from the first of ``sets``; None where they are unknown."""
    limits = [bounds for scores in sets if (bounds := columns.bounds(scores)) is not None]
    if len(limits) < len(sets):
        return None
    before, *later = limits
    return Bounds(
        low=np.concatenate([after.low - before.high for after in later], axis=1),
        high=np.concatenate([after.high - before.low for after in later], axis=1),
        least=np.concatenate([after.least - before.most for after in later]),
        most=np.concatenate([after.most - before.least for after in later]),
        kinds=np.concatenate(
            [columns.indices[0] + len(columns.roles) * k for k in range(len(later))]
        ),
        cap=_CAP * sets[0].score.margin,
    )


def _paired_tests(
    hypotheses: Hypotheses, options: TestOptions, margin: float
) -> dict[str, NDArray[np.generic] | float]:
    """Return the results of the tests, by column; each question is corrected by itself.

    If all differences are equal, as in frozen layers, tests other than betting need the size of
    the scores, not their bounds.
    """
    if options.test != BETTING:
        hypotheses = replace(hypotheses, bounds=None)
    moments = hypotheses.moments
    against_0 = find_p_values(hypotheses, options, "two-sided")
    change = find_change(hypotheses, options, margin)
    equivalence = find_equivalence(hypotheses, options, margin)
    changed, equivalent = change.shows(options.alpha), equivalence.shows(options.alpha)
    intervals = hypotheses.intervals(options.alpha)
    return {
        "n": moments.n,
        "n_clusters": moments.n_clusters,
        "difference": moments.mean,
        "sd": moments.sd,
        "standard_error": moments.standard_error,
        "effect_size": hypotheses.effect_size,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "statistic": against_0.statistic,
        "p_value": against_0.single,
        "margin": margin,
        "p_changed": change.single,
        "p_changed_adjusted": change.adjusted,
        "changed": changed,
        "p_equivalent": equivalence.single,
        "p_equivalent_adjusted": equivalence.adjusted,
        "equivalent": equivalent,
        "change": _in_words(moments.status == UNTESTABLE, changed, equivalent),
        "note": find_notes(hypotheses),
    }


def _certified(
    hypotheses: Hypotheses, options: TestOptions, margin: float
) -> dict[str, NDArray[np.generic] | str | float]:
    """Return the answers of betting and the weighted mean difference; nothing without bounds."""
    if hypotheses.bounds is None:
        return {"certified": "", "certified_difference": np.nan}
    against_0 = find_p_values(hypotheses, by_betting(options), "two-sided")
    equivalence = find_equivalence(hypotheses, by_betting(options), margin)
    changed, equivalent = against_0.shows(options.alpha), equivalence.shows(options.alpha)
    words = _in_words(np.isnan(against_0.single), changed, equivalent)
    words[changed & equivalent] = _TRIVIAL
    return {"certified": words, "certified_difference": hypotheses.betting.mean}


def _in_words(untestable: BoolArray, changed: BoolArray, equivalent: BoolArray) -> NDArray[Any]:
    """Return the answer about each difference (tests,)."""
    cases, answers = (untestable, changed, equivalent), (UNTESTABLE, "changed", "equivalent")
    return np.select(cases, answers, default="undecided").astype(object)


def _with_answers(frame: pd.DataFrame, tables: Mapping[str, RoleTable]) -> pd.DataFrame:
    """Add thresholds, the answers of role tables before and after, and the status of the role."""
    key = ["layer", "head", "role"]
    rows = pd.concat({name: table.frame.set_index(key) for name, table in tables.items()})
    before = rows.loc[BEFORE].reindex(pd.MultiIndex.from_frame(frame[key]))
    after = rows.reindex(pd.MultiIndex.from_frame(frame[["checkpoint", *key]]))
    # A role table has no row for a role that no example has.
    answers = before["answer"].array, after["answer"].fillna(UNTESTABLE).array
    return frame.assign(
        threshold=before["threshold"].array,
        answer_before=answers[0],
        answer_after=answers[1],
        evidence_before=before["evidence"].array,
        evidence_after=after["evidence"].fillna("").array,
        status=role_status(*answers).astype(object),
    )


def _with_weights_of_before(sets: Mapping[str, HeadScores]) -> list[str]:
    """Name sets that come from one and the same model as the first, by the same measure."""
    before, names = sets[BEFORE].record, []
    for name, scores in sets.items():
        is_same = scores.record.model.weights_sha256 == before.model.weights_sha256 is not None
        same_measure = scores.record.options.get("measure") == before.options.get("measure")
        if name != BEFORE and is_same and same_measure:
            names.append(name)
    return names
