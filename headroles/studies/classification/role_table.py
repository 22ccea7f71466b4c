"""RoleTable: the tests of every head on every role, their summary and their views."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NotRequired, Self

import numpy as np
import pandas as pd

from headroles.arrays import BoolArray
from headroles.corpus import BITEXT, can_reopen
from headroles.errors import UsageError
from headroles.models.heads.remaining import Head
from headroles.models.options import CROSS, ENCODER
from headroles.options import PresetOptions, fields_of
from headroles.record import NO_MODEL, Record, RecordedRole
from headroles.results.columns import NUMBER, TEXT, Axes, Column, one_of
from headroles.results.consistency import (
    Rule,
    answers_by,
    around,
    at_most,
    interval_of,
    marked,
    on_side,
    standardised,
)
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.role_names import GROUP, POOLED
from headroles.roles import BIAS, EXCESS, HIT, SCORES, find_roles
from headroles.scoring.options import PERMUTED_WEIGHTS, PERMUTED_WORDS, TREES
from headroles.scoring.run_notes import about_fit, describe_run
from headroles.storage import plain
from headroles.studies.classification.ladder import (
    BEYOND,
    BEYOND_RULES,
    Count,
    Rung,
    heads_in,
    ladder,
    positional_in,
    reaches,
    undecided_in,
)
from headroles.studies.evidence import CLASS, STEPS
from headroles.studies.heads import ScoreLevel, ThresholdOptions, UnitFacts
from headroles.testing.evidence import (
    ANSWERS,
    NO,
    POSITIONAL,
    ROLE_ANSWERS,
    UNDECIDED,
    UNTESTABLE,
    YES,
    T,
)
from headroles.testing.options import CorrectionOptions, TestOptions, describe_test
from headroles.wording import head_name, listed, named_heads, numbered

CONTROLS_IN_WORDS = {
    TREES: "trees swapped between sentences",
    PERMUTED_WORDS: "words permuted",
    PERMUTED_WEIGHTS: "weights permuted",
}
_OF_ALIGNMENTS = {"cross": {TREES: "the alignments of other pairs"}}
"""Words of controls that differ by the attention that was read."""
NOT_CONTROLLED = (
    "Distance was not controlled: some of these heads may only look at a fixed place. Score with "
    "`beyond_offset`."
)
_DEFINITIONS = {
    BIAS.name: (
        "The sieve bias score of a head for a role is the attention that it gives to the words of "
        "the role, over what uniform attention would give them (Pande et al., 2021).",
        "pande",
    ),
    EXCESS.name: (
        "The excess score of a head for a role is its attention to the words of the role beyond "
        "uniform attention, over the largest possible excess.",
        "pande",
    ),
    HIT.name: (
        "The score of a head for a role is the share of words whose largest attention goes where "
        "the role looks (Clark et al., 2019).",
        "clark",
    ),
}
"""What each score measures, and the work that defines it."""
_UNITS_IN_PAPERS = {BIAS.name: " times uniform attention", EXCESS.name: "", HIT.name: " of words"}
_WHOLE, _PARTS = "delimiter", {"delimiter:cls", "delimiter:sep"}
"""A role that adds nothing to its parts."""


@dataclass(frozen=True, kw_only=True)
class AssignOptions(PresetOptions, TestOptions, ThresholdOptions):
    """Options of the assignment of roles."""

    __test__ = False

    def check(self) -> None:
        """Reject options that the published preset sets itself: all but threshold and alpha."""
        super().check()
        tests = self.as_group(TestOptions).record()
        for field in fields_of(TestOptions) if self.is_published else ():
            if field.name != "alpha" and tests[field.name] != field.default:
                raise UsageError(
                    f"`{field.name}` of the published preset is fixed; leave `{field.name}` "
                    f"out, or the preset"
                )

    @cached_property
    def tests(self) -> TestOptions:
        """The options that the tests follow."""
        if not self.is_published:
            return self.as_group(TestOptions)
        return TestOptions(alpha=self.alpha, correction="none", clusters="none")


@dataclass(frozen=True)
class RoleGroups:
    """Roles, sorted so that no two of ``single`` and ``others`` count the same attention.

    ``pairs`` are all roles of pairs of words; ``single`` of these the single relations, if any;
    ``others`` are without sums of their parts.
    """

    pairs: list[str]
    single: list[str]
    others: list[str]
    are_arcs: bool
    """Whether all roles of pairs are arcs, rather than a user's own."""
    own: list[str]
    """The functions of a user that find other pairs."""

    @classmethod
    def from_roles(cls, roles: Sequence[RecordedRole], pairs: Collection[str]) -> RoleGroups:
        """Sort ``roles``, of which ``pairs`` are those of pairs of words."""
        of_pairs = [role for role in roles if role.id in pairs]
        single = [role.id for role in of_pairs if role.relation != POOLED]
        ids = [role.id for role in roles]
        sums = {_WHOLE} if set(ids) >= _PARTS else set()
        return cls(
            pairs=[role.id for role in of_pairs],
            single=single or [role.id for role in of_pairs],
            others=[name for name in ids if name not in {*pairs, *sums}],
            are_arcs=all(role.relation for role in of_pairs),
            own=list(dict.fromkeys(role.function for role in of_pairs if role.function)),
        )

    @classmethod
    def from_arcs(cls, roles: Sequence[RecordedRole]) -> RoleGroups:
        """Sort ``roles``, of which only those of arcs are of pairs here."""
        return cls.from_roles(roles, [role.id for role in roles if role.relation])


class RoleFacts(ScoreLevel, UnitFacts):
    """Facts of a role table beside its rows.

    ``threshold`` and ``distance_margin`` are those that the tests used. ``controls`` are the heads
    that would have each role in each control, and ``controls_beyond`` those that reach each further
    step of evidence there. ``offsets`` are, of first choices, the fixed offsets
    in words that each role of arcs was compared with: the best one of the second half of the
    documents, for the first half, and the reverse. ``class_rules`` are the rules of the step
    *class*, found in the same way. ``doubled_examples`` stand in several of the
    ``joined_documents``, which share most of their text with others. ``left_out`` are the reasons
    why no example has a role.
    """

    distance_margin: float
    offsets: dict[str, tuple[int, int]]
    class_rules: NotRequired[dict[str, tuple[str, str]]]
    controls: dict[str, dict[str, list[Head]]]
    controls_beyond: NotRequired[dict[str, dict[str, list[Head]]]]
    left_out: dict[str, str]


def _is_p_of_t(rows: pd.DataFrame, options: Any) -> BoolArray:
    """Tell which rows (n,) have the p-value of their statistic; those of betting have others."""
    from scipy.special import stdtr

    if options.tests.test != T:
        return np.ones(len(rows), dtype=bool)
    expected = stdtr(rows["df"].to_numpy(), rows["statistic"].to_numpy())
    fits = np.isclose(rows["p_below"], expected, rtol=1e-4, atol=1e-12)
    return np.asarray(fits | rows["statistic"].isna() | rows["p_below"].isna())


@dataclass(frozen=True, repr=False, eq=False)
class RoleTable(Result[AssignOptions, RoleFacts]):
    """The tests of every head on every role, one row each, with their record.

    ``frame`` has the columns of ``columns``, ordered by role, layer and head. Means, deviations
    and intervals are in units of the score; undefined values are NaN. ``n`` are the examples with a
    score, in ``n_clusters`` clusters; ``effect_size`` is the distance of the mean from the
    ``threshold`` in standard deviations; an interval is for one head by itself. ``p_value`` tests
    that the mean is above the threshold (of pairs of words, the largest of this and of the
    contrasts of the first step), ``p_below`` that it is below, and the ``..._adjusted`` ones are
    corrected over all heads and roles. ``answer`` is yes, positional, no, undecided or untestable;
    ``assigned`` whether it is yes; ``note`` names risks of the test. ``certified`` is the answer of
    betting, which assumes independent examples or documents and nothing else, about
    ``certified_mean``: this mean gives each document the same weight, and less weight to examples
    whose score could lie unusually far from the threshold. It is empty for scores without bounds.

    ``beyond_distance``, of roles of pairs of words, is the attention to them less that to other
    words at the same distance, with its interval and ``p_beyond``, the p-value against the margin.
    In decoders, whose rows differ in length, it is less that to the same places of other trees, as
    in ``beyond_trees``. Of first choices it is the share of hits beyond that of the best fixed
    ``offset``, which gets ``offset_share`` right. ``evidence`` is the farthest step that is shown.
    ``beyond_class`` and ``past_attractors`` are the contrasts of the further steps, each with
    interval, p-value, examples and an answer (of first choices, ``beyond_class`` is the share of
    hits beyond the nearest word of a class). ``other_arcs`` is the mean along the arcs of all other
    relations in the same direction, and ``above_others`` the difference to it, paired by example,
    with its interval and two-sided ``p_others``; ``specific`` is *no* where the relation is shown
    to get less. ``evenness``, of ``block`` under ``excess``, is how evenly attention spreads in the
    sentence, 0 to 1. ``mean_trees``, ``mean_words`` and ``mean_weights`` are the means of controls,
    NaN without.

    With ``table`` as `assign_roles` returns it:

    >>> table.heads_with("local")
    [(0, 0)]
    >>> table.where(role="local", only_assigned=True).frame["answer"].tolist()
    ['yes']
    >>> having = table.where(only_assigned=True)
    >>> having.export("csv", columns=["layer", "head", "role"]).decode().split()
    ['layer,head,role', '0,0,local']
    """

    kind: ClassVar[str] = "role table"
    figures: ClassVar[Mapping[str, str]] = {
        "roles": "headroles.studies.classification.figures:draw_roles",
        "heads": "headroles.studies.classification.figures:draw_heads",
        "role": "headroles.studies.classification.figures:draw_role",
    }
    tested: pd.DataFrame | None = None
    """The rows that the heads with roles are among, in a table of these heads alone."""
    page: ClassVar[str] = "headroles.studies.classification.figures:role_page"
    filename: ClassVar[str] = "roles"
    hint: ClassVar[str] = "test scores with: headroles assign {folder}"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head role n n_clusters df mean sd effect_size ci_low ci_high threshold "
            "statistic beyond_distance beyond_low beyond_high p_beyond beyond_trees trees_low "
            "trees_high p_trees p_value p_adjusted p_below p_below_adjusted answer assigned "
            "evidence beyond_class class_low class_high p_class n_class class_answer "
            "past_attractors attractors_low attractors_high p_attractors n_attractors "
            "attractors_answer other_arcs above_others others_low others_high p_others specific "
            "certified certified_mean offset offset_share evenness mean_trees mean_words "
            "mean_weights note"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(*ROLE_ANSWERS),
        "evidence": one_of("", *STEPS),
        **dict.fromkeys(("class_answer", "attractors_answer"), one_of(*ANSWERS, "")),
        **dict.fromkeys(("other_arcs", "above_others"), Column(NUMBER, gaps=True)),
        "specific": one_of(*ANSWERS, ""),
        "certified": one_of(*ROLE_ANSWERS, ""),
        **dict.fromkeys(("n_class", "n_attractors"), Column(NUMBER, 0, gaps=True)),
        "offset": Column(TEXT),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "mean", "ci_high"),
        around("beyond_low", "beyond_distance", "beyond_high"),
        around("trees_low", "beyond_trees", "trees_high"),
        around("class_low", "beyond_class", "class_high"),
        around("attractors_low", "past_attractors", "attractors_high"),
        around("others_low", "above_others", "others_high"),
        interval_of(
            "ci_low",
            "ci_high",
            lambda rows: (rows["effect_size"] * rows["sd"] / rows["statistic"]).to_numpy(),
            "df",
        ),
        Rule(("statistic", "df", "p_below"), "p_below is that of t", _is_p_of_t),
        Rule(
            ("answer", "p_below"),
            "an untestable row has no p-value",
            lambda rows, _: (rows["answer"] != UNTESTABLE) | rows["p_below"].isna(),
        ),
        standardised("mean", "sd", "threshold"),
        at_most("p_beyond", "p_value"),
        at_most("p_trees", "p_value"),
        Rule(
            ("evidence", "assigned"),
            "evidence is of heads with the role",
            lambda rows, _: (rows["evidence"] == "") | rows["assigned"],
        ),
        marked("assigned", "answer", YES),
        answers_by("answer", "p_adjusted", YES),
        answers_by("answer", "p_below_adjusted", NO, otherwise=(YES,)),
        on_side("answer", (YES, POSITIONAL), (NO,), of="mean", at="threshold"),
    )
    views: ClassVar[tuple[str, ...]] = tuple("long wide heads answers colocation controls".split())

    def axes(self) -> Axes:
        """Return roles, layers and heads; a part of assigned rows has any of them."""
        if self.frame["assigned"].all():
            return {}
        return {(name,): [] for name in ("role", "layer", "head")}

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return tuple(self.frame["role"].unique())

    @property
    def n_heads(self) -> int:
        """Number of heads of the model, without those that were removed from it."""
        in_model = {*heads_in(self.frame), *np.ndindex(*self.record.shape)}
        return len(in_model - set(self.scored.model.removed_heads))

    @property
    def scored(self) -> Record:
        """The record of the scores that were tested."""
        return self.record.sources["scores"]

    # Views of the table.

    def wide(self, value: str = "assigned") -> pd.DataFrame:
        """Return one row per head, a column per role, with the ``value`` of the long table.

        Raises UsageError for an unknown column.
        """
        by_head = self.frame.set_index(["layer", "head", "role"])
        if value not in by_head:
            columns = ", ".join(by_head.columns)
            raise UsageError(f"the value is {value!r}; it must be one of {columns}")
        # pivot_table would drop rows with missing values, or add combinations without rows
        wide = by_head[value].unstack("role")  # noqa: PD010
        return wide.reindex(columns=list(self.roles)).rename_axis(columns=None).reset_index()

    def answers(self) -> pd.DataFrame:
        """Count heads by answer: a row per role, a column per answer."""
        counts = pd.crosstab(self.frame["role"], self.frame["answer"])
        counts = counts.reindex(index=self.roles, columns=ROLE_ANSWERS, fill_value=0)
        return counts.rename_axis(index="role", columns=None)

    def colocation(self) -> pd.DataFrame:
        """Count the heads that have both of two roles; on the diagonal, the heads with one role."""
        roles = list(self.roles)
        has = self.wide()[roles].eq(other=True).to_numpy(dtype=int)
        return pd.DataFrame(has.T @ has, index=roles, columns=roles).rename_axis("role")

    @property
    def controls(self) -> pd.DataFrame:
        """Count heads with each role, undecided ones, and those that would have it in controls.

        Columns ``role, heads, undecided`` and one for each control, NaN for roles that it does not
        test. The first row is any role of pairs of words.
        """
        pairs, rows = self.groups.pairs, []
        roles_by_name = ({GROUP: pairs} if pairs else {}) | {role: [role] for role in self.roles}
        for name, roles in roles_by_name.items():
            count = self.count_of(roles)
            counts: dict[str, Any] = {"role": name, "heads": len(count.heads)}
            counts["undecided"] = len(count.undecided)
            for control, heads in self.facts["controls"].items():
                tested = [role for role in roles if control != TREES or role in pairs]
                either = {tuple(head) for role in tested for head in heads.get(role, [])}
                counts[control] = len(either) if tested else np.nan
            rows.append(counts)
        return pd.DataFrame(rows)

    # The heads with each role.

    @property
    def heads(self) -> pd.DataFrame:
        """The heads with each role: a row each, with role, layer, head, evidence, specific."""
        columns = ["role", "layer", "head", "evidence", "specific"]
        return self.frame.loc[self.frame["assigned"], columns]

    def export(self, fmt: str, view: str = "long", *args: Any, **choices: Any) -> bytes:
        """Return a view in a format, as `Result.export` does.

        In JSON, the view ``heads`` is ``{role: [[layer, head], ...]}``, with such mappings of the
        heads beyond *class* and *attractors*, of heads that give the arcs of other relations
        more, and of undecided heads, as ``class``, ``attractors``, ``not_specific`` and
        ``undecided``.
        """
        if (fmt, view) != ("json", "heads"):
            return super().export(fmt, view, *args, **choices)
        heads: dict[str, Any] = _by_role(self.heads)
        for step in STEPS[1:]:
            heads[step] = _by_role(self.frame[reaches(self.frame, step)])
        is_unspecific = self.frame["assigned"] & (self.frame["specific"] == NO)
        heads["not_specific"] = _by_role(self.frame[is_unspecific])
        roles = (self.frame if self.tested is None else self.tested).groupby("role", sort=False)
        heads["undecided"] = {str(role): undecided_in(rows) for role, rows in roles}
        return f"{json.dumps(heads)}\n".encode()

    def heads_with(
        self, role: str, beyond: Literal["distance", "class", "attractors"] = "distance"
    ) -> list[Head]:
        """Return (layer, head) of the heads that ``role`` was assigned to, each once.

        A relation means all of its directions, ``syntactic`` all roles of arcs. With ``beyond``,
        evidence has to reach that step: ``"class"`` or ``"attractors"``. Raises UsageError for a
        role or step that the table does not have.
        """
        is_named = self.frame["role"].isin(self._named(role))
        return heads_in(self.frame[is_named & self._reaching(beyond)])

    def _reaching(self, step: str) -> BoolArray:
        if step not in STEPS:
            raise UsageError(f"{step!r} is no step of evidence; pass one of {', '.join(STEPS)}")
        return reaches(self.frame, step).to_numpy(dtype=bool)

    def count_of(self, roles: Collection[str] | None = None) -> Count:
        """Count the heads with any of some roles, by default of all, and the undecided ones."""
        rows = self.frame if self.tested is None else self.tested
        return Count.from_rows(rows if roles is None else rows[rows["role"].isin(roles)])

    def where(
        self,
        role: str | Sequence[str] | None = None,
        layer: int | str | Sequence[int | str] | None = None,
        only_assigned: bool = False,
        beyond: str | None = None,
    ) -> Self:
        """Return rows as `Result.where` does; heads with a role remember those they are among."""
        rows = super().where(role, layer)
        tested = self.tested
        if tested is not None and rows is not self:
            tested = replace(self, frame=tested, tested=None).where(role, layer).frame
        having = super(RoleTable, rows).where(only_assigned=only_assigned, beyond=beyond)
        if len(having) == len(rows):
            return rows if tested is self.tested else replace(rows, tested=tested)
        return replace(having, tested=rows.frame)

    def caption(self) -> str:
        """Return the caption of all results, with the heads that have a role and undecided ones."""
        if self.tested is not None:
            return replace(self, frame=self.tested, tested=None).caption()
        if self.frame["assigned"].all():  # the rows of other heads may lie elsewhere
            return super().caption()
        count = self.count_of()
        roles = "the role" if len(self.roles) == 1 else "a role"
        found = f"{count.none_shown[0].upper()}{count.none_shown[1:]}"
        if count.heads:
            n_heads = len(set(heads_in(self.frame)) - set(self.scored.model.removed_heads))
            found = f"{len(count.heads)} of {n_heads} heads have {roles}"
            found += f" ({len(count.undecided)} undecided)"
        return f"{super().caption()} {found}."

    def to_json(self) -> dict[str, Any]:
        """Return options, facts and rows, with the numbers of heads and undecided ones by role."""
        return super().to_json() | {"counts": plain(self.controls.to_dict("records"))}

    def _named(self, name: str) -> list[str]:
        """Return the ids of the roles that a user names."""
        return find_roles(name, self.known_roles(self.roles))

    @cached_property
    def groups(self) -> RoleGroups:
        """The roles of the table by group.

        Roles of pairs are those that the scores record so, and those with a contrast in tables of
        scores that were made by hand.
        """
        has_contrast = self.frame["beyond_distance"].notna()
        roles = self.known_roles(self.roles)
        pairs = {role.id for role in roles if role.kind != "tokens"}
        return RoleGroups.from_roles(roles, pairs | set(self.frame["role"][has_contrast]))

    @cached_property
    def strongest(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of the strongest head with each role that heads have: of single pairs, of others.

        If heads have no single relation, rows of any relation take their place. The index is the
        role, and ``heads`` has all heads with it. Roles of pairs of words are ranked by their
        attention beyond distance; others stand in the order of the table.
        """
        rows = by_strength(self.frame[self.frame["assigned"]])
        heads = {role: heads_in(having) for role, having in rows.groupby("role")}
        first = rows.drop_duplicates("role").set_index("role")
        first = first.assign(heads=pd.Series(heads, dtype=object))
        other_roles = [role for role in self.groups.others if role in heads]
        pairs = first[first.index.isin(self.groups.single)]
        if pairs.empty:
            pairs = first[first.index.isin(self.groups.pairs)]
        return pairs, first.loc[other_roles]

    def clearest_role(self, name: str | None = None) -> str:
        """Return the role that a user names; of several, such as both directions of a relation, the
        one of the strongest head, first of those that have it.

        Without a name, the role of pairs whose head goes farthest beyond distance, else the first.
        Raises UsageError for a role that the table does not have.
        """
        if name is None:
            pairs, _ = self.strongest
            return str(pairs.index[0]) if len(pairs) else super().clearest_role()
        rows = by_strength(self.frame[self.frame["role"].isin(self._named(name))])
        return str(rows.sort_values("assigned", ascending=False, kind="stable")["role"].iloc[0])

    # What the table says, to people and papers.

    def summarize(self) -> Iterator[Shown]:
        """Yield the heads of each role, and of each relation the strongest one, with cautions."""
        (arcs, _), cautions = self.strongest, [*self.record.warnings]
        if (doubt := next(about_fit(self.scored), "")) in cautions:
            cautions.remove(doubt)
            yield Warned(doubt)
        first, *facts = self._about_run()
        yield first
        yield " ".join(facts)
        yield from self._heads_grid()
        if len(arcs):
            yield from self._arcs_grid(arcs)
        yield from about_controls(self)
        yield from self._about_positional()
        yield from self.about_unspecific()
        yield from map(Warned, cautions)

    def _about_positional(self) -> Iterator[str]:
        """Name heads that attend to partners, but no more than place explains in any role."""
        of_pairs = self.frame[self.frame["role"].isin(self.groups.single)]
        counted = {*heads_in(of_pairs[of_pairs["assigned"]])}
        rows = positional_in(of_pairs)
        heads = zip(rows["layer"], rows["head"], strict=True)
        rows = rows[[head not in counted for head in heads]]
        for row in rows[:1].to_dict("records"):
            left = len(heads_in(rows)) - 1
            rest = f" and {left} other{'s' if left > 1 else ''}" if left else ""
            score = f"{row['mean']:{digits(self.facts['score'])}}"
            yield (
                f"Not counted, because position may explain them: {row['layer']}-{row['head']} "
                f"({self.in_words(row['role'])}, {score}){rest}."
            )

    def about_unspecific(self) -> Iterator[str]:
        """Name heads that have a relation, and give the arcs of other relations more."""
        rows = by_strength(self.frame[self.frame["assigned"] & (self.frame["specific"] == NO)])
        number = digits(self.facts["score"])
        for row in rows[:1].to_dict("records"):
            left = len(rows) - 1
            rest = f"; {left} other{'s' if left > 1 else ''} likewise" if left else ""
            yield (
                f"Not specific: {row['layer']}-{row['head']} ({self.in_words(row['role'])}, "
                f"{row['mean']:{number}}) gives other arcs more ({row['other_arcs']:{number}})"
                f"{rest}."
            )

    def _about_run(self) -> Iterator[str]:
        """Name model, corpus, level of tests, skipped examples, and roles that no example has."""
        record, corpus = self.scored, self.scored.corpus
        if record.is_by_hand:
            yield "Scores made by hand."
        else:
            over = listed([Path(name).name for name in corpus.files]) or "sentences in memory"
            texts = numbered(corpus.sentences, "text" if corpus.format == "arcs" else "sentence")
            if record.model.attention != ENCODER:
                texts = numbered(corpus.sentences // 2, "pair")
            documents = numbered(corpus.documents, "document")
            yield (
                f"{record.model.name} ({record.model.family}, {record.model.layout}) over {over}: "
                f"{texts}, {documents}."
            )
            if sight := record.model.sight:
                yield f"{sight[0].upper()}{sight[1:]}."
        offset_margin = self.options.offset_margin if self.facts["offsets"] else 0
        yield about_level(self.options.tests, self.facts, offset_margin)
        yield "Heads: layer-head, from 0."
        yield from (f"Skipped {reason}: {count}." for reason, count in corpus.skipped.items())
        absent: dict[str, list[str]] = {}
        for role, reason in self.facts["left_out"].items():
            absent.setdefault(reason, []).append(self.in_words(role))
        for reason, roles in absent.items():
            yield f"No example has {listed(roles)}" + (f": {reason}." if reason else ".")

    def _heads_grid(self) -> Iterator[Shown]:
        """Count the heads with each role, and those undecided; name roles that no head can have."""
        score, rows, without, is_absent = self.facts["score"], [], [], False
        cells = {"": "{layer}-{head}", " ": f"{{mean:{digits(score)}}}"}
        pairs, other_rows = self.strongest
        for words, count, strongest in self._targets(pairs, other_rows):
            if not words.startswith(" "):  # else a step, which goes with its role
                is_absent = not count.heads and not count.undecided
                without += [words] if is_absent else []
            if is_absent:
                continue
            which = named_heads(count.heads, self.scored.model.layers)
            if not count.heads:
                which = count.none_in_cell
            best = next(iter(Grid.from_frame(strongest[:1], cells).rows), ("", ""))
            rows.append((words, str(len(count.heads)), str(len(count.undecided)), which, *best))
        if rows:
            left = frozenset(["Which", "Strongest"])
            titles = (f"Target of the {self.n_heads} heads", "Heads", "Undecided")
            yield Grid((*titles, "Which", "Strongest", unit_of(score)), tuple(rows), left=left)
        if without:
            yield f"No head passed the test for: {listed(without)}."

    def _targets(
        self, pairs: pd.DataFrame, other_rows: pd.DataFrame
    ) -> Iterator[tuple[str, Count, pd.DataFrame]]:
        """Yield what heads attend to, how many do, and the strongest row."""
        if self.groups.pairs:
            for rung in self.ladder:
                words = f"  {self.beyond[rung.step]}" if rung.step in BEYOND else self._partners
                strongest = pairs if rung.step not in BEYOND else pairs[:0]
                yield words, rung, strongest
        for role in self.groups.others:
            yield self.in_words(role), self.count_of([role]), other_rows[other_rows.index == role]

    @property
    def _partners(self) -> str:
        """The partners of words in roles of pairs: of arcs, of links, or of a user's own."""
        if self.scored.model.attention == CROSS and len(self.groups.pairs) == 1:
            return self.in_words(self.groups.pairs[0])
        if self.groups.are_arcs:
            return "grammatical partners"
        has_arcs = any(role.relation for role in self.known_roles(self.groups.pairs))
        partners = list(self.groups.own)
        if has_arcs:
            partners.insert(0, "grammatical partners")
        return ", ".join(partners) or "words of pairs"

    @property
    def beyond(self) -> Mapping[str, str]:
        """The steps beyond distance in words."""
        return BEYOND_RULES if self.facts["offsets"] else BEYOND

    @property
    def ladder(self) -> list[Rung]:
        """The steps of evidence about roles of pairs of words, with the heads of each."""
        if not self.groups.pairs:
            return []
        return ladder(self.frame[self.frame["role"].isin(self.groups.pairs)])

    def _arcs_grid(self, arcs: pd.DataFrame) -> Iterator[Shown]:
        """Tabulate the strongest head of each relation, farthest beyond distance first."""
        score = self.facts["score"]
        number = f":{digits(score)}"
        relations = [role.relation or role.id for role in self.known_roles(arcs.index)]
        best = arcs.assign(words=arcs.index.map(self.in_words))[~pd.Index(relations).duplicated()]
        best = best.assign(is_open=_open_marks(best))
        kind = "relation" if self.groups.are_arcs else "role"
        cells = {f"Best head per {kind}": "{words}", "Head": "{layer}-{head}"}
        cells[unit_of(score)] = f"{{mean{number}}}"
        is_controlled = self.frame["beyond_distance"].notna().any()
        if is_controlled:
            compared = "other trees" if self.scored.model.is_causal else "same distance"
            cells[f"Above {compared}"] = f"{{beyond_distance{number}}}"
        if best["beyond_class"].notna().any():
            cells["Above word class"] = f"{{beyond_class{number}}}{{is_open}}"
        if best["other_arcs"].notna().any():
            cells["Other arcs"] = f"{{other_arcs{number}}}"
        grid = Grid.from_frame(best, cells)
        missing = {"nan": "-", "nan%": "-"}
        rows = (tuple(missing.get(cell, cell) for cell in row) for row in grid.rows)
        yield replace(grid, rows=tuple(rows))
        if not is_controlled:
            yield NOT_CONTROLLED

    def details(self) -> Iterator[Shown]:
        """Describe the run, what to compare, and why tests were not made; then the tables."""
        yield describe_run(self.scored)
        if self.facts["score"] == BIAS.name:
            yield (
                "Bias scores grow with the length of examples. To compare corpora, score with "
                "`score='excess'`."
            )
        yield from self._dependents_grid()
        for words, count, _ in self._targets(*self.strongest):
            if not count.heads and count.n_open:
                target = words.strip()
                yield f"{target[0].upper()}{target[1:]}: {count.none_shown}."
        notes = self.frame["note"][self.frame["answer"] == UNTESTABLE]
        reasons = notes.str.removeprefix(f"{UNTESTABLE}: ").value_counts()
        if len(reasons):
            yield f"Untestable: {'; '.join(f'{why} ({n})' for why, n in reasons.items())}."
        yield from super().details()

    def _dependents_grid(self) -> Iterator[Shown]:
        """Say how many different words the arcs of each relation have as dependents.

        Many arcs of a few pronouns say little about other words.
        """
        counted = self.scored.corpus.relations
        relations = dict.fromkeys(role.relation for role in self.known_roles(self.roles))
        rows = tuple(
            (
                name,
                f"{counted[name].arcs:,}",
                f"{counted[name].dependents:,}",
                f"{counted[name].effective_dependents:,.0f}",
            )
            for name in relations
            if name in counted
        )
        if rows:
            yield Grid(("Relation", "Arcs", "Different dependents", "Effective number"), rows)

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return sentences on score, tests and controls, and the work to cite."""
        tests, facts, margin = self.options.tests, self.facts, self.options.offset_margin
        definition, work = _DEFINITIONS[facts["score"]]
        beyond = f", and of arcs {margin:g} above the best fixed offset" if facts["offsets"] else ""
        units = f"{facts['n_clusters']} independent examples"
        if facts["clustered_by"] != "none":
            units = f"examples clustered by {facts['n_clusters']} documents"
            units += " (those that share texts are one)" if facts.get("joined_documents") else ""
            if 0 < facts["effective_clusters"] < 0.9 * facts["n_clusters"]:
                units += f" (effective number {facts['effective_clusters']:.0f})"
        n_tests = (self.frame["answer"] != UNTESTABLE).sum()
        by = tests.correction.replace("fdr_bh", "Benjamini-Hochberg")
        correction = "no correction" if by == "none" else f"{by} over all {n_tests} tests"
        rule = (
            f"A head has a role if its mean score is above {facts['threshold']:g}{beyond} "
            f"({describe_test(tests.test)} of {units}, alpha {tests.alpha:g}, {correction})."
        )
        if facts["distance_margin"]:
            rule += (
                " For roles of pairs of words, the score must also exceed, by more than "
                f"{facts['distance_margin']:g}, that of other words at the same distance and that "
                "of the same places in other trees (intersection-union test)."
            )
        return (definition, rule, *about_controls(self)), (work,)

    def finding(self) -> str:
        """Return the number of heads at each step of evidence, and the clearest head."""
        sentences, unit = [], _UNITS_IN_PAPERS[self.facts["score"]]
        for words, count, _ in self._targets(*self.strongest):
            if words.startswith(" "):
                words = f"{self._partners} {words.strip()}"
            found = f"{len(count.heads)} of {self.n_heads} heads"
            found = f"{found} attended to {words} ({len(count.undecided)} undecided)"
            if not count.heads and count.n_open:
                found = f"No head was shown to attend to {words} ({count.open_tests})"
            elif not count.heads:
                found = f"No head passed the test for {words}"
            sentences.append(f"{found}.")
        arcs, _ = self.strongest
        for row in arcs[:1].reset_index().to_dict("records"):
            number = f"{{:{digits(self.facts['score'])}}}".format
            level = 100 * (1 - self.options.tests.alpha)
            text = f"{row['layer']}-{row['head']} ({self.in_words(row['role'])}): "
            text += f"mean {number(row['mean'])}{unit}"
            if not np.isnan(row["beyond_distance"]):
                low, high = number(row["beyond_low"]), number(row["beyond_high"])
                than = "other words at the same distance"
                than = "the best fixed offset" if self.facts["offsets"] else than
                text += f", {number(row['beyond_distance'])} more than {than} "
                text += f"({level:g} % CI {low} to {high})"
            sentences.append(f"The clearest was head {text}; layers and heads count from 0.")
        return " ".join(sentences)

    def next_steps(self, folder: str) -> Iterator[str]:
        """Name commands that show more of the table in ``folder``, and that can run as they are."""
        yield from super().next_steps(folder)
        yield from (f"         {command}" for command in self._examples_of_strongest(folder))

    def _examples_of_strongest(self, folder: str) -> Iterator[str]:
        """Yield the command for sentences of the strongest head; for own words without a file."""
        arcs, other_rows = self.strongest
        corpus, model = self.scored.corpus, self.scored.model
        is_there = can_reopen(corpus) and all(Path(file).exists() for file in corpus.files)
        if not is_there and (model.model is None or model.model_type == NO_MODEL):
            return
        for best in (arcs if len(arcs) else other_rows)[:1].reset_index().to_dict("records"):
            head, role = head_name((best["layer"], best["head"])), best["role"]
            command = ["headroles examples", folder, "--head", head, "--role", role]
            if function := self.known_roles([role])[0].function:
                command += ["--roles", function]
            if not is_there:
                command += ["--tokens", "'Words of your own'"]
            yield " ".join(command)


# Rows of a table.


def _by_role(rows: pd.DataFrame) -> dict[str, list[Head]]:
    """Return the heads of rows by role."""
    return {str(role): heads_in(having) for role, having in rows.groupby("role", sort=False)}


def about_controls(table: RoleTable) -> Iterator[str]:
    """Say in a sentence how many heads would count in each control."""
    controls = [name for name in CONTROLS_IN_WORDS if name in table.facts["controls"]]
    if not table.groups.pairs or not controls:
        return
    in_words = CONTROLS_IN_WORDS | _OF_ALIGNMENTS.get(table.scored.model.attention, {})
    counts, n_sentences = table.controls.iloc[0], table.scored.corpus.sentences
    if table.scored.corpus.format == BITEXT:
        n_sentences //= 2  # targets alone find one another
    unmatched = table.scored.facts.get("without_other_tree") or 0 if TREES in controls else 0
    if unmatched and unmatched == n_sentences:
        yield "Control: no sentence has as many words as another one, so trees cannot be swapped."
        controls.remove(TREES)
    parts, beyond = [], table.facts.get("controls_beyond", {})
    for name in controls:
        n = int(counts[name])
        verb = "counts" if n == 1 else "count"
        parts.append(f"with {in_words[name]}, {numbered(n, 'head')} {verb}")
        if n and name in beyond:
            parts[-1] += f", {len(beyond[name][CLASS])} {table.beyond[CLASS]}"
        if name == TREES and 0 < unmatched < n_sentences:
            parts[-1] += f" ({unmatched} of {n_sentences} have no match)"
    if parts:
        yield f"Control of partners: {'; '.join(parts)}."


def _open_marks(rows: pd.DataFrame) -> pd.Series[str]:
    """Return a question mark for each row whose contrast with the word class is undecided."""
    is_open = (rows["class_answer"] == UNDECIDED) & rows["beyond_class"].notna()
    marks: pd.Series[str] = is_open.map({True: "?", False: ""})
    return marks


def by_strength(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by attention beyond distance, largest first, then those without it by mean."""
    columns = ["beyond_distance", "mean", "layer", "head"]
    return rows.sort_values(columns, ascending=[False, False, True, True])


# Words, in studies of roles too.


def about_level(
    tests: CorrectionOptions, facts: Mapping[str, Any], offset_margin: float = 0
) -> str:
    """State the threshold of roles, and the error rate of answers."""
    score, limit, margin = SCORES[facts["score"]], facts["threshold"], facts["distance_margin"]
    if score.of_first_choice:
        over = f"its first choice is right in more than {limit:.0%} of cases"
        if offset_margin:
            points = f"{100 * offset_margin:g} points"
            over += f" and, for pairs of words, beats the best fixed offset by {points}"
    else:
        unit = f"{limit:g} in {score.name} score"
        if score.name == BIAS.name:
            unit = f"{limit:g} times uniform"
        over = f"its mean attention exceeds {unit}"
        if margin:
            compared = "attention to other words at the same distance"
            over += f" and, for pairs of words, {compared} by {margin:g}"
    return f"A head has a role if {over} ({rate_of(tests)})."


def rate_of(tests: CorrectionOptions) -> str:
    """State the error rate of answers in a few words."""
    if tests.correction == "none":
        return f"each test at {tests.alpha:.2g}, uncorrected"
    kind = "false discovery" if tests.correction.startswith("fdr") else "family-wise error"
    return f"{kind} rate {tests.alpha:.2g}"


def unit_of(score: str) -> str:
    """Name the unit of means in a few words."""
    if SCORES[score].of_first_choice:
        return "first choices"
    return "x uniform" if score == BIAS.name else "excess"


def digits(score: str) -> str:
    """Return the format of means: the digits that their unit takes."""
    if SCORES[score].of_first_choice:
        return ".0%"
    return ".1f" if SCORES[score].threshold >= 1 else ".2f"
