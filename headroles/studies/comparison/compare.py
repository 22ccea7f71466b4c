"""What changed in the heads? Scores before and after -> RoleComparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.options import Options, takes
from headroles.record import Record, ScoresRecord
from headroles.results.columns import Column, one_of
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.roles import BIAS, in_words, is_arc
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.options import AssignOptions
from headroles.studies.classification.role_table import NOT_CONTROLLED, about_level, split_roles
from headroles.studies.comparison.answers import (
    CERTIFIED_SMALL,
    CHANGES,
    STATUSES,
    changed_most,
    count_answers,
    find_moved_heads,
    is_certified,
    measure_agreement,
    role_status,
    summarise_layers,
)
from headroles.studies.comparison.joining import join_scores
from headroles.studies.comparison.options import CompareOptions
from headroles.studies.comparison.shifts import shift_frame
from headroles.studies.heads import clusters_of, general_threshold, roles_in, scores_of
from headroles.testing.answers import ANSWERS, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name, listed

if TYPE_CHECKING:
    from headroles.studies.classification.classify import Classification

    Scored: TypeAlias = HeadScores | Classification

BEFORE = "before"
SYNTACTIC = "syntactic partners"
_SHOWN_HEADS = 10
_COUNTED = ("before", "kept", "lost", "gained", "after", "open")
_MOST_NAMED = 4
_FIGURES = "headroles.studies.comparison.figures"


@dataclass(frozen=True, repr=False, eq=False)
class RoleComparison(Result):
    """Changes of heads: a paired test for every checkpoint, role, layer and head.

    ``frame`` has the columns of ``columns``, ordered by checkpoint, role, layer and head; every
    checkpoint is compared with the scores before. Means, differences, their deviations, errors and
    intervals, and the margin, are in units of the score; undefined values are NaN.

    ``changed``: the mean is shown to have moved by more than the margin; ``equivalent``: by less;
    ``change`` follows from the two (`describe_change`), and ``status`` from the answers before and
    after (`role_status`). ``p_value`` is of no difference at all, uncorrected. ``certified`` says
    by betting whether ``certified_difference``, a mean in which every document counts the same,
    differs from 0 (``"changed"``), lies within the margin (``"equivalent"``), or both
    (``"trivial"``); it holds for any distribution, and is empty for scores without stored bounds.

    With ``shifts`` as `compare_roles` returns them:

    >>> shifts.with_status("lost")[["checkpoint", "layer", "head", "role"]]
      checkpoint  layer  head   role
    0      after      0     0  local
    >>> int(shifts.counts()["kept"].sum())
    0
    """

    kind: ClassVar[str] = "comparison"
    question: ClassVar[str] = "What changed in the attention heads?"
    options_type: ClassVar[type[Options]] = CompareOptions
    figures: ClassVar[Mapping[str, str]] = {
        "heads": f"{_FIGURES}:draw_changed_heads",
        "changes": f"{_FIGURES}:draw_changes",
        "trajectory": f"{_FIGURES}:draw_trajectory",
    }
    page: ClassVar[str] = f"{_FIGURES}:comparison_page"
    remedy: ClassVar[str] = "compare scores with: headroles compare BEFORE AFTER --out DIR"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "checkpoint layer head role n n_clusters mean_before mean_after difference sd "
            "standard_error effect_size ci_low ci_high statistic p_value margin p_changed "
            "p_changed_adjusted changed p_equivalent p_equivalent_adjusted equivalent change "
            "certified certified_difference threshold answer_before answer_after status note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("answer_before", "answer_after"), one_of(*ANSWERS, POSITIONAL)),
        "status": one_of(*STATUSES),
        "change": one_of(*CHANGES.values(), UNTESTABLE),
        "certified": one_of(*CHANGES.values(), CERTIFIED_SMALL, UNTESTABLE, ""),
    }
    views: ClassVar[tuple[str, ...]] = ("long", "counts", "layers", "agreement", "moved")

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence on the tests, and the work to cite."""
        return (
            "We tested for each head and role whether its score changed, by paired tests over the "
            "same examples.",
        ), ("pande",)

    def clearest_role(self) -> str:
        """Return the role that changed most."""
        return changed_most(self.frame)[0]

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of the score sets after, in the order of the table."""
        return tuple(dict.fromkeys(self.frame["checkpoint"]))

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return roles_in(self.frame)

    def with_status(self, status: str) -> pd.DataFrame:
        """Return rows with a status, as ``"gained"``, largest standardised difference first.

        Raises UsageError for anything that is not one of ``STATUSES``.
        """
        if status not in STATUSES:
            raise UsageError(f"the status is {status!r}; it must be one of {', '.join(STATUSES)}")
        rows = self.frame[self.frame["status"] == status]
        return rows.sort_values("effect_size", key=abs, ascending=False, kind="stable")

    def counts(self) -> pd.DataFrame:
        """Return heads by status for each checkpoint, role and layer, as `count_answers` does."""
        return count_answers(self.frame)

    def layers(self) -> pd.DataFrame:
        """Measure how far each layer moved, as `summarise_layers` does."""
        return summarise_layers(self.frame)

    def agreement(self) -> pd.DataFrame:
        """Measure how far the tables before and after agree, as `measure_agreement` does."""
        return measure_agreement(self.frame, self.options.alpha)

    def moved(self, n: int = _SHOWN_HEADS) -> pd.DataFrame:
        """Return the ``n`` heads of each checkpoint that moved most, as `find_moved_heads` does."""
        return find_moved_heads(self.frame, n)

    def summarize(self) -> Iterator[Shown]:
        """Count and name roles kept, lost and gained, and means that moved beyond the margin."""
        yield "\n".join(self._about_sides())
        changes, last = find_role_changes(self.frame), self.checkpoints[-1]
        of_last = changes[changes["checkpoint"] == last]
        if len(self.checkpoints) > 1:
            yield _grid("All roles, before to", changes.groupby("checkpoint", sort=False))
        lost, gained = (
            len(of_last.loc[of_last["status"] == status, ["layer", "head"]].drop_duplicates())
            for status in ("lost", "gained")
        )
        if lost + gained:
            yield f"{lost} head{'s' * (lost != 1)} lost a role, {gained} gained one."
        else:
            yield "No head was shown to lose or gain a role."
        to = f", before to {last}" if len(self.checkpoints) > 1 else ""
        yield _grid(f"Roles of heads{to}", of_last.groupby("group", sort=False))
        had, has = of_last["before"] == YES, of_last["after"] == YES
        if ((of_last["status"] == UNDECIDED) & (had | has)).any():
            yield "Open: shown on one side only; the change itself is not shown."
        for status in ("lost", "gained"):
            if (rows := of_last[of_last["status"] == status]).size:
                yield f"{status.capitalize()}: {_named(rows)}."
        if lacking := set(of_last["group"]) - set(of_last.loc[had | has, "group"]):
            yield f"No head has, before or after: {'; '.join(sorted(lacking))}."
        is_controlled = self._has_offsets or self.facts["distance_margin"]
        if not is_controlled and (changes["group"] == SYNTACTIC).any():
            yield NOT_CONTROLLED.replace("some of these", "some syntactic")
        yield from self._about_means(last)
        yield from map(Warned, self.record.warnings)

    @property
    def _has_offsets(self) -> bool:
        """Whether roles of arcs were compared with the best fixed offset."""
        of_arcs = self.frame["threshold"][self.frame["role"].map(is_arc)].dropna()
        return not np.allclose(of_arcs, self.facts["threshold"])

    def _about_sides(self) -> Iterator[str]:
        """Name models, corpus, examples, level and what was dropped."""
        facts, names = self.facts, [model.name for model in self.record.models.values()]
        over = listed([file.rpartition("/")[2] for file in self.record.files])
        units = f" of {facts['n_clusters']} documents" * (facts["clustered_by"] != "none")
        yield f"{names[0]} -> {', '.join(names[1:])}{f' over {over}' if over else ''}:"
        yield (
            f"{facts['examples']} examples{units} that all models read. Heads are named "
            "layer-head, counted from 0."
        )
        limits = {name: facts[name] for name in ("threshold", "distance_margin")}
        yield about_level(replace(self.options, **limits), facts["score"], self._has_offsets)
        dropped = []
        for name, n_examples in facts["dropped_examples"].items():
            roles = facts["dropped_roles"][name]
            parts = [f"{n_examples} examples"] * bool(n_examples)
            parts += [f"{len(roles)} roles ({listed(roles)})"] * bool(roles)
            dropped += [f"of {name} {' and '.join(parts)}"] * bool(parts)
        if dropped:
            yield f"Dropped: {'; '.join(dropped)}."

    def _about_means(self, checkpoint: str) -> Iterator[str]:
        """Count means by their change, and name layers and the largest change.

        Contrasts, and pooled roles whose parts are tested, do not count.
        """
        others, arcs = split_roles(self.roles)
        rows = self.frame[self.frame["checkpoint"] == checkpoint]
        rows = rows[rows["role"].isin([*others, *arcs])]
        changed = rows[rows["changed"]].sort_values("difference", key=abs, ascending=False)
        layers = sorted(changed["layer"].unique())
        named = f" (layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))})" if layers else ""
        yield (
            f"Of {len(rows)} mean scores, {len(changed)} moved by more than "
            f"{self.facts['margin']:g}{named}, {rows['equivalent'].sum()} by less; the others are "
            "undecided."
        )
        if (self.frame["certified"] != "").any() and len(changed):
            n_certified = is_certified(changed).sum()
            yield f"Certified to differ from 0: {n_certified} of the {len(changed)}."
        for layer, head, role, difference in (
            changed[["layer", "head", "role", "difference"]].head(1).itertuples(index=False)
        ):
            unit = " times uniform attention" * (self.facts["score"] == BIAS.name)
            where = f"{head_name((layer, head))} {in_words(role)}"
            yield f"Largest: {where} ({difference:+.2g}{unit})."


def find_role_changes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the change of each role of each head, no role counted in two ways.

    Columns ``checkpoint, layer, head, role, group, before, after, status``. ``group`` is the
    role in words; all roles of arcs are one group. Pooled roles are left out if the table has their
    parts.
    """
    others, arcs = split_roles(list(frame["role"].unique()))
    rows = frame[frame["role"].isin([*others, *arcs])].reset_index(drop=True)
    changes = rows[["checkpoint", "layer", "head", "role"]].copy()
    changes["group"] = [SYNTACTIC if is_arc(role) else in_words(role) for role in rows["role"]]
    for end in ("before", "after"):
        changes[end] = rows[f"answer_{end}"]
    changes["status"] = role_status(changes["before"], changes["after"])
    return changes


def _grid(title: str, groups: Any) -> Grid:
    """Count roles by group; arcs come first."""
    rows = []
    for name, changes in groups:
        had, has, status = changes["before"] == YES, changes["after"] == YES, changes["status"]
        if not (had | has).any():
            continue
        n = changes["role"].nunique()
        by_relation = f", by relation ({n})" * (name == SYNTACTIC and n > 1)
        by_status = (status == each for each in ("kept", "lost", "gained"))
        counted = (had, *by_status, has, (status == UNDECIDED) & (had | has))
        rows.append((f"{name}{by_relation}", *(str(int(each.sum())) for each in counted)))
    rows.sort(key=lambda row: not row[0].startswith(SYNTACTIC))
    return Grid((title, *_COUNTED), tuple(rows))


def _named(changes: pd.DataFrame) -> str:
    """Name heads with their roles, those of arcs first."""
    ordered = changes.sort_values("group", key=lambda group: group != SYNTACTIC, kind="stable")
    named = [
        f"{head_name((row['layer'], row['head']))} {in_words(row['role'])}"
        for row in ordered.to_dict("records")
    ]
    more = len(named) - _MOST_NAMED
    return "; ".join(named[:_MOST_NAMED]) + f"; and {more} more" * (more > 0)


@takes(CompareOptions)
def compare_roles(
    before: Scored, after: Scored, *later: Scored, options: CompareOptions
) -> RoleComparison:
    """Compare score sets: test for every head and role whether the mean and the role changed.

    The unit is the pair: the scores of one example before and after, clustered by documents as in
    `assign_roles`. Two questions are tested and corrected separately. Has the mean changed? A
    paired test of H0: difference = 0. Did it move by less than ``margin``? Two one-sided tests of
    H0: abs(difference) >= margin (Schuirmann 1987). `assign_roles` assigns roles before and after,
    with the same options, over the same examples.

    ``block:evenness`` is not a role and is skipped. If all differences are equal, the number of
    examples decides. ``docs/comparing.md`` explains the result.

    Args:
        before: scores from `score_heads`, or a result of `classify_heads`.
        after: scores of the same examples by the same architecture, as of another checkpoint.
        later: further checkpoints; each is compared with ``before``. The paired tests of all
            checkpoints are one family.
        options: keyword arguments, described below.

    Returns:
        The tests, with the options and the records of all sides.

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
    sides = [before, after, *later]
    scores = list(map(scores_of, sides))
    named = dict(zip(name_sides(len(sides), options), scores, strict=True))
    joined = join_scores(named, options.on_mismatch)
    as_roles = options.as_group(AssignOptions)
    tables = {name: assign_roles(scores, as_roles) for name, scores in joined.sets.items()}
    score, first = scores[0].score, joined.sets[BEFORE]
    margin = score.margin if options.margin is None else options.margin
    clusters = clusters_of(first, options)
    frame, warnings = shift_frame(
        joined.sets,
        {name: table.frame for name, table in tables.items()},
        clusters,
        options.tests,
        margin,
    )
    of_tables = {name: table.tests.warnings for name, table in tables.items()}
    record = Record.now(
        kind="comparison",
        options=options.record(),
        facts={
            "score": score.name,
            "threshold": general_threshold(score, options.threshold),
            "distance_margin": tables[BEFORE].tests.distance_margin,
            "margin": margin,
            "examples": first.n_examples,
            "clustered_by": "none" if clusters is None else "document",
            "n_clusters": first.n_examples if clusters is None else len(np.unique(clusters)),
            "dropped_examples": joined.dropped_examples,
            "dropped_roles": joined.dropped_roles,
        },
        warnings=[
            *_same_weights({name: scores.record for name, scores in joined.sets.items()}),
            *_name_warnings({**of_tables, "differences": warnings}),
        ],
        sources={name: scores.record for name, scores in joined.sets.items()},
    )
    return RoleComparison(frame[list(RoleComparison.columns)], record)


def name_sides(n: int, options: CompareOptions) -> tuple[str, ...]:
    """Name ``n`` score sets. Raises UsageError for names that do not fit."""
    names = options.names
    if names is None:
        names = ["after"] if n == 2 else [str(place) for place in range(1, n)]
    if len(names) != n - 1 or len({BEFORE, *names}) != n:
        raise UsageError(
            f"names are {list(names)} for {n - 1} score sets; "
            f"give each a different name, other than {BEFORE!r}"
        )
    return (BEFORE, *names)


def _same_weights(sets: Mapping[str, ScoresRecord]) -> list[str]:
    """Warn of sets that come from one and the same model."""
    before = sets[BEFORE]
    digest = before.model.weights_sha256
    same = [
        name
        for name, other in sets.items()
        if name != BEFORE
        and digest is not None
        and other.model.weights_sha256 == digest
        and other.measure == before.measure
    ]
    return [f"{name} has the very weights of {BEFORE}: check the paths" for name in same]


def _name_warnings(warnings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each warning once, after the names of the sets that it is about."""
    named: dict[str, list[str]] = {}
    for name, texts in warnings.items():
        for text in texts:
            named.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in named.items()]
