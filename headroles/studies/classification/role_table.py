"""RoleTable: the tests of every head on every role, their summary and their views."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.options import Options
from headroles.record import Record
from headroles.results.columns import TEXT, Column, one_of
from headroles.results.formats import to_records
from headroles.results.result import Result
from headroles.results.shown import SEE_FULL, Grid, Shown, Warned
from headroles.role_names import GROUP, POOLED, relation_of
from headroles.roles import BIAS, EXCESS, HIT, SCORES, find_roles, in_words, is_arc, is_own
from headroles.scoring.options import PERMUTED_WEIGHTS, TREES, WORDS
from headroles.scoring.run_notes import about_fit, about_length, describe_run, facts_of_run
from headroles.studies.classification.options import AssignOptions
from headroles.testing.answers import NO, POSITIONAL, ROLE_ANSWERS, UNTESTABLE, YES
from headroles.testing.catalogue import TESTS
from headroles.testing.options import CorrectionOptions, describe_correction
from headroles.wording import head_name, listed, named_heads

Head = tuple[int, int]
CONTROLS_IN_WORDS = {
    TREES: "the trees of other {}",
    WORDS: "permuted words",
    PERMUTED_WEIGHTS: "permuted weights",
}
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
_PARTS = {"delimiter": ("delimiter:cls", "delimiter:sep")}
"""Roles that add nothing to their parts."""
_MOST_ROLES, _MOST_RELATIONS, _MOST_MISSING = 5, 5, 3  # in the summary, which fits on a screen
_STRONGEST = 3  # heads of a role in the details
_FACTS = ["layer", "head", "role", "mean", "beyond_distance", "p_adjusted"]
_OPTIONAL = [
    *("beyond_distance", "beyond_low", "beyond_high", "p_beyond", "offset", "offset_share"),
    *("evenness", "mean_trees", "mean_words", "mean_weights"),
]
_NOT_OF_ASSIGNED = ["assigned", "answer", "p_below", "p_below_adjusted", "df", "certified_mean"]


class RoleFacts(TypedDict):
    """Facts of a role table beside its rows.

    ``threshold`` and ``distance_margin`` are those that the tests used. ``controls`` are the heads
    that would have each role in each control. ``offsets`` are, of first choices, the fixed offsets
    in words that each role of arcs was compared with: the best one of the second half of the
    documents, for the first half, and the reverse. ``left_out`` are the reasons why no example has
    a role.
    """

    score: Literal["bias", "excess", "hit"]
    threshold: float
    distance_margin: float
    offsets: dict[str, tuple[int, int]]
    controls: dict[str, dict[str, list[Head]]]
    clustered_by: str
    n_clusters: int
    effective_clusters: float
    left_out: dict[str, str]


@dataclass(frozen=True, repr=False, eq=False)
class RoleTable(Result):
    """The tests of every head on every role, one row each, with their record.

    ``frame`` has the columns of ``columns``, ordered by role, layer and head. Means, deviations
    and intervals are in units of the score; undefined values are NaN. ``certified`` is the answer
    of betting, which assumes independent examples or documents and nothing else, about
    ``certified_mean``: this mean gives each document the same weight, and less weight to examples
    whose score could lie unusually far from the threshold. It is empty for scores without bounds.

    ``beyond_distance``, of roles of pairs of words, is the attention to them less that to other
    words at the same distance, with its interval and ``p_beyond``, the p-value against the margin;
    ``p_value`` is the larger of this one and that of the mean. Of first choices it is the share of
    hits beyond that of the best fixed ``offset``. ``mean_trees``, ``mean_words`` and
    ``mean_weights`` are the means of controls, NaN without.

    With ``table`` as `assign_roles` returns it:

    >>> table.heads_with("local")
    [(0, 0)]
    >>> table.where(role="local", only_assigned=True).frame["answer"].tolist()
    ['yes']
    >>> table.export("csv", "assigned", columns=["layer", "head", "role"]).decode().split()
    ['layer,head,role', '0,0,local']
    """

    kind: ClassVar[str] = "role table"
    options_type: ClassVar[type[Options]] = AssignOptions
    facts_type: ClassVar[Any] = RoleFacts
    figures: ClassVar[Mapping[str, str]] = {
        "roles": "headroles.studies.classification.figures:draw_roles",
        "heads": "headroles.studies.classification.figures:draw_heads",
        "role": "headroles.studies.classification.figures:draw_role",
        "shared": "headroles.studies.classification.figures:draw_colocation",
        "head": "headroles.studies.classification.figures:draw_head",
    }
    page: ClassVar[str] = "headroles.studies.classification.figures:role_page"
    filename: ClassVar[str] = "roles"
    hint: ClassVar[str] = "test scores with: headroles assign {folder}"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head role n n_clusters df mean sd effect_size ci_low ci_high threshold "
            "statistic beyond_distance beyond_low beyond_high p_beyond p_value p_adjusted p_below "
            "p_below_adjusted answer assigned certified certified_mean offset offset_share "
            "evenness mean_trees mean_words mean_weights note"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(*ROLE_ANSWERS),
        "certified": one_of(*ROLE_ANSWERS, ""),
        "offset": Column(TEXT),
    }
    views: ClassVar[tuple[str, ...]] = tuple(
        "long wide assigned heads answers colocation controls".split()
    )

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

    @property
    def assigned(self) -> pd.DataFrame:
        """The rows of the roles that were assigned, strongest mean first.

        Details of the whole table, and columns without any value, are omitted.
        """
        rows = self.frame[self.frame["assigned"]].drop(columns=_NOT_OF_ASSIGNED)
        has_values = rows[_OPTIONAL].notna() & (rows[_OPTIONAL] != "")
        rows = rows.drop(columns=[name for name in _OPTIONAL if not has_values[name].any()])
        return rows.sort_values(["mean", "layer", "head"], ascending=[False, True, True])

    def wide(self, value: str = "assigned") -> pd.DataFrame:
        """Return one row per head, a column per role, with the ``value`` of the long table.

        Raises UsageError for an unknown column.
        """
        by_head = self.frame.set_index(["layer", "head", "role"])
        if value not in by_head:
            known = ", ".join(by_head.columns)
            raise UsageError(f"the value is {value!r}; it must be one of {known}")
        # pivot_table would drop rows with missing values, or add combinations without rows
        wide = by_head[value].unstack("role")  # noqa: PD010
        return wide.reindex(columns=list(self.roles)).rename_axis(columns=None).reset_index()

    def answers(self, column: str = "answer") -> pd.DataFrame:
        """Count heads by answer, or by certified one: a row per role, a column per answer."""
        counts = pd.crosstab(self.frame["role"], self.frame[column])
        counts = counts.reindex(index=self.roles, columns=ROLE_ANSWERS, fill_value=0)
        return counts.rename_axis(index="role", columns=None)

    def colocation(self) -> pd.DataFrame:
        """Count the heads that have both of two roles; on the diagonal, the heads with one role."""
        roles = list(self.roles)
        has = self.wide()[roles].eq(other=True).to_numpy(dtype=int)
        return pd.DataFrame(has.T @ has, index=roles, columns=roles).rename_axis("role")

    @property
    def controls(self) -> pd.DataFrame:
        """Count heads with each role, and heads that would have it in each control.

        Columns ``role, heads`` and one for each control, NaN for roles that it does not test. The
        first row is any role of pairs of words.
        """
        return count_controls(self.frame, self.facts["controls"])

    # The heads with each role.

    @property
    def heads(self) -> pd.DataFrame:
        """The heads with each role: a row for each, with the columns role, layer and head."""
        return self.frame.loc[self.frame["assigned"], ["role", "layer", "head"]]

    def export(self, fmt: str, view: str = "long", *args: Any, **given: Any) -> bytes:
        """Return a view in a format, as `Result.export` does.

        In JSON, the view ``heads`` is ``{role: [[layer, head], ...]}``.
        """
        if (fmt, view) != ("json", "heads"):
            return super().export(fmt, view, *args, **given)
        heads = {role: heads_in(having) for role, having in self.heads.groupby("role", sort=False)}
        return f"{json.dumps(heads)}\n".encode()

    def heads_with(self, role: str) -> list[Head]:
        """Return (layer, head) of the heads that ``role`` was assigned to, each once.

        A relation means all of its directions, ``syntactic`` all roles of arcs. Raises UsageError
        for a role that the table does not have.
        """
        named = find_roles(role, self.roles)
        return heads_in(self.frame[self.frame["assigned"] & self.frame["role"].isin(named)])

    def strongest(self) -> pd.DataFrame:
        """Return the row of the strongest head with each role that heads have, strongest first.

        The index is the role, and ``heads`` has all heads with it. Heads of pairs of words come
        first, and are ranked by their attention beyond distance.
        """
        rows = by_strength(self.frame[self.frame["assigned"]])
        heads = {role: heads_in(having) for role, having in rows.groupby("role")}
        first = rows.drop_duplicates("role").set_index("role")
        return first.assign(heads=pd.Series(heads, dtype=object))

    def clearest_role(self, name: str | None = None) -> str:
        """Return the role that a user names; of several, such as both directions of a relation, the
        one of the strongest head, first of those that have it.

        Without a name, the role of pairs whose head goes farthest beyond distance, else the first.
        Raises UsageError for a role that the table does not have.
        """
        if name is None:
            _, single = split_roles(self.roles, pairs_among(self.frame))
            arcs = [str(role) for role in self.strongest().index if role in single]
            return arcs[0] if arcs else super().clearest_role()
        rows = by_strength(self.frame[self.frame["role"].isin(find_roles(name, self.roles))])
        return str(rows.sort_values("assigned", ascending=False, kind="stable")["role"].iloc[0])

    # What the table says, to people, papers and scripts.

    def summarize(self) -> Iterator[Shown]:
        """Summarise in some twenty lines the heads of each role, with cautions."""
        score, pairs, has = self.facts["score"], pairs_among(self.frame), self.strongest()
        others, single = split_roles(self.roles, pairs)
        offset_margin = self.options.offset_margin * bool(self.facts["offsets"])
        level = about_level(self.options.tests, self.facts, offset_margin)
        cautions = list(self.record.warnings)
        if (doubt := next(about_fit(self.scored), "")) in cautions:
            cautions.remove(doubt)
            yield Warned(doubt)
        yield "\n".join((*_about_run(self.scored), level, *_about_gaps(self)))
        roles = has.loc[[role for role in others if role in has.index]]
        arcs = has[has.index.isin(single)]
        is_positional = (self.frame["answer"] == POSITIONAL) & self.frame["role"].isin(single)
        positional = self.frame[is_positional].nlargest(1, "mean")
        grid = self._heads_grid(roles, arcs, pairs, bool(len(arcs) or len(positional)))
        yield grid if grid.rows else "No head was shown to have a role."
        named = [*others, *filter(is_own, single)]
        if lacking := [in_words(role) for role in named if role not in has.index]:
            more = f"; and {len(lacking) - _MOST_MISSING} more" * (len(lacking) > _MOST_MISSING)
            yield f"No head attends to: {'; '.join(lacking[:_MOST_MISSING])}{more}."
        if len(roles) > _MOST_ROLES:
            yield f"Heads have {len(roles) - _MOST_ROLES} more roles: {SEE_FULL}"
        yield from about_controls(self)
        if len(arcs):
            yield from self._arcs_grid(arcs, pairs)
        for row in positional.to_dict("records"):
            yield (
                f"Positional, not counted: {row['layer']}-{row['head']} ({in_words(row['role'])} "
                f"{row['mean']:{digits(score)}}): as much to any word that far away."
            )
        yield from map(Warned, cautions)

    def _heads_grid(
        self, roles: pd.DataFrame, arcs: pd.DataFrame, pairs: Sequence[str], has_pairs: bool
    ) -> Grid:
        """Return a row for each role that heads have: their number, names, and the strongest."""
        score, n_layers = self.facts["score"], self.scored.model.layers

        def row(words: str, heads: list[Head], strongest: pd.DataFrame) -> tuple[str, ...]:
            best = Grid.of(strongest[:1], {"": "{layer}-{head}", " ": f"{{mean:{digits(score)}}}"})
            return (
                words,
                str(len(heads)),
                named_heads(heads, n_layers),
                *next(iter(best.rows), ("", "")),
            )

        rows = []
        if has_pairs:
            heads = heads_in(self.frame[self.frame["assigned"] & self.frame["role"].isin(pairs)])
            partners = "syntactic partners" if all(map(is_arc, pairs)) else "words of pairs"
            rows.append(row(partners, heads, arcs))
        for role in roles.index[:_MOST_ROLES]:
            rows.append(row(in_words(role), roles.loc[role, "heads"], roles.loc[[role]]))
        title = f"What the {self.n_heads} heads attend to"
        columns = (title, "heads", "which", "strongest", unit_of(score))
        return Grid(columns, tuple(rows), left=frozenset(["which", "strongest"]))

    def _arcs_grid(self, arcs: pd.DataFrame, pairs: Sequence[str]) -> Iterator[Shown]:
        """Tabulate the strongest head of each relation, farthest beyond distance first."""
        score = self.facts["score"]
        relations = [relation_of(role) if is_arc(role) else role for role in map(str, arcs.index)]
        best = arcs.assign(words=arcs.index.map(in_words))[~pd.Index(relations).duplicated()]
        kind = "Syntactic heads" if all(map(is_arc, pairs)) else "Heads of pairs of words"
        of = f"the best of {_MOST_RELATIONS} of {len(best)} relations"
        title = f"{kind}, {of if len(best) > _MOST_RELATIONS else 'the best of each relation'}"
        cells = {title: "{words}", "head": "{layer}-{head}"}
        cells[unit_of(score)] = f"{{mean:{digits(score)}}}"
        is_controlled = self.frame["beyond_distance"].notna().any()
        if is_controlled:
            cells["beyond distance"] = f"{{beyond_distance:{digits(score)}}}"
        yield Grid.of(best[:_MOST_RELATIONS], cells)
        if not is_controlled:
            yield NOT_CONTROLLED

    def details(self) -> Iterator[Shown]:
        """Describe the tests, tabulate answers by role and layer, and name missing values."""
        tests, frame, facts = self.options.tests, self.frame, self.facts
        yield describe_run(self.scored)
        yield "\n".join(self._rule())
        yield f"Intervals of {100 * (1 - tests.alpha):g} %: t, for each head separately."
        yield "Heads by layer and by answer"
        yield self._answers_grid()
        given, certified = frame["answer"], frame["certified"]
        if (certified != "").any():
            against = (given == YES) & (certified == NO) | (given == NO) & (certified == YES)
            rows: Any = frame[against].itertuples()
            named = listed([f"{row.layer}-{row.head} {row.role}" for row in rows], 8)
            contradicted = f"; {against.sum()} against the answer given: {named}" * bool(named)
            yield f"Certified: by betting and e-BH, for any distribution of scores{contradicted}."
        if frame["assigned"].any():
            yield "Strongest heads of each role, those of pairs by what is beyond distance"
            yield self._strongest_grid()
        if caution := about_length(self.scored):
            yield caution
        untested = frame["note"][given == UNTESTABLE]
        causes = untested.str.removeprefix(f"{UNTESTABLE}: ").value_counts()
        if len(causes):
            named = "; ".join(f"{cause} ({n})" for cause, n in causes.items())
            yield f"{len(untested)} pairs of head and role are untestable: {named}."
        if changing := [role for role, halves in facts["offsets"].items() if len({*halves}) > 1]:
            yield f"The best offset differs between halves of the documents: {', '.join(changing)}."

    def _answers_grid(self) -> Grid:
        """Return for each role the numbers of examples, and of heads by layer and by answer."""
        by_role = self.frame.groupby("role", sort=False)
        sizes = by_role[["n", "n_clusters"]].max().set_axis(["examples", "clusters"], axis=1)
        layers = self.frame.pivot_table(
            "assigned", "role", "layer", aggfunc="sum", sort=False, fill_value=0
        )
        answers, certified = self.answers(), self.answers("certified")[[YES, NO]]
        rare = [name for name in (POSITIONAL, UNTESTABLE) if not answers[name].any()]
        is_certified = (self.frame["certified"] != "").any()
        joined = pd.concat(
            [
                sizes.drop(columns=["clusters"] * (self.facts["clustered_by"] == "none")),
                layers.astype(int).astype(str).replace("0", "."),
                answers.drop(columns=rare),
                certified.add_prefix("certified ") if is_certified else certified[[]],
            ],
            axis=1,
        ).astype(str)
        rows = tuple(joined.itertuples(name=None))
        return Grid(("role", *map(str, joined.columns)), rows, bold=YES)

    def _strongest_grid(self) -> Grid:
        """Return the three strongest heads of each role, with the intervals of their means."""
        ranked = by_strength(self.frame[self.frame["assigned"]])
        strongest = pd.concat(ranked[ranked["role"] == role][:_STRONGEST] for role in self.roles)
        beyond = ("beyond_distance", "beyond_low", "beyond_high")
        rows = [
            {
                "role": in_words(row["role"]),
                "head": head_name((row["layer"], row["head"])),
                "mean and interval": with_interval(row),
                "of it beyond distance": with_interval(row, *beyond),
                "certified": row["certified"],
            }
            for row in strongest.to_dict("records")
        ]
        columns = {name: f"{{{name}}}" for name in rows[0] if any(row[name] for row in rows)}
        return Grid.of(pd.DataFrame(rows), columns)

    def _rule(self) -> Iterator[str]:
        """State which means give a head a role, and the tests that show it."""
        tests, facts, margin = self.options.tests, self.facts, self.options.offset_margin
        beyond = ""
        if facts["offsets"]:
            beyond = f", and of arcs {margin:g} above that of the best fixed offset"
        units = f"{facts['n_clusters']} independent examples"
        if facts["clustered_by"] != "none":
            units = f"examples clustered by {facts['n_clusters']} documents"
            if facts["effective_clusters"] < 0.9 * facts["n_clusters"]:
                units += f" (effective number {facts['effective_clusters']:.0f})"
        n_tests = (self.frame["answer"] != UNTESTABLE).sum()
        correction = describe_correction(tests.correction).replace("fdr_bh", "Benjamini-Hochberg")
        correction = correction.replace("all tests", f"all {n_tests} tests")
        yield (
            f"A head has a role if its mean score is above {facts['threshold']:g}{beyond} "
            f"({TESTS[tests.test].words} of {units}, alpha {tests.alpha:g}, {correction})."
        )
        if facts["distance_margin"]:
            yield (
                "Of roles of arcs, its score on arcs also has to exceed that on other words at the "
                f"same distance by more than {facts['distance_margin']:g} "
                "(intersection-union test)."
            )

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return sentences on score and tests, and the work to cite."""
        sentence, work = _DEFINITIONS[self.facts["score"]]
        return (sentence, *self._rule(), *about_controls(self)), (work,)

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name commands that show more of the table in ``folder``."""
        yield f"See:     headroles report {folder}  (all tables and pictures, in one HTML file)"
        others, single = split_roles(self.roles, pairs_among(self.frame))
        has = self.strongest()
        arcs = [role for role in has.index if role in single]
        for role in [*arcs, *(role for role in others if role in has.index)][:1]:
            head = head_name((has.loc[role, "layer"], has.loc[role, "head"]))
            words = [f"headroles examples {folder} --head {head} --role {role}"]
            if is_own(role):
                words += ["--roles", ":".join(role.split(":")[:2])]
            yield f"         {' '.join(words)}"

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts, with the heads of every role."""
        return {
            **facts_of_run(self.scored),
            "tests": {**self.options.record(), **self.record.facts},
            "warnings": list(self.warnings),
            "answers_per_role": self.answers().to_dict(orient="index"),
            "certified_per_role": self.answers("certified").to_dict(orient="index"),
            "controls": to_records(self.controls),
            "assigned": to_records(self.frame[self.frame["assigned"]][_FACTS]),
        }


# Rows of a table.


def about_controls(table: RoleTable) -> Iterator[str]:
    """Say in a sentence how many heads would be called syntactic in each control."""
    pairs = pairs_among(table.frame)
    named = [name for name in CONTROLS_IN_WORDS if name in table.facts["controls"]]
    if not pairs or not named:
        return
    counts, texts = table.controls.iloc[0], _texts(table.scored)
    called = "be called syntactic" if all(map(is_arc, pairs)) else "have roles of pairs"
    (first, n), *others = (
        (CONTROLS_IN_WORDS[name].format(texts), int(counts[name])) for name in named
    )
    rest = "".join(f", with {words} {number}" for words, number in others)
    lacking = ""
    if TREES in named and (alone := table.scored.facts.get("without_other_tree")):
        lacking = f" ({alone} of {table.scored.corpus.sentences} find none)"
    yield f"With {first}{lacking} {n} head{'s' * (n != 1)} would {called}{rest}."


def heads_in(rows: pd.DataFrame) -> list[Head]:
    """Return the heads of some rows, by layer and head, each once."""
    return sorted(set(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True)))


def by_strength(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by attention beyond distance, largest first, then those without it by mean."""
    columns = ["beyond_distance", "mean", "layer", "head"]
    return rows.sort_values(columns, ascending=[False, False, True, True])


def pairs_among(frame: pd.DataFrame) -> list[str]:
    """Return the roles of pairs of words: arcs, and a user's own pairs that have contrasts."""
    beyond = set(frame["role"][frame["beyond_distance"].notna()])
    return [role for role in frame["role"].unique() if is_arc(role) or role in beyond]


def split_roles(
    roles: Sequence[str], pairs: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """Split roles into others and those of pairs, so that no two count the same attention."""
    arcs = [role for role in roles if (is_arc(role) if pairs is None else role in pairs)]
    others = [
        role
        for role in roles
        if role not in arcs and not set(_PARTS.get(role, ("",))) <= set(roles)
    ]
    return others, [role for role in arcs if relation_of(role) != POOLED] or arcs


def count_controls(
    frame: pd.DataFrame, controls: Mapping[str, Mapping[str, Sequence[Head]]]
) -> pd.DataFrame:
    """Count heads with each role, and those that would have it in each control.

    ``controls`` are the heads with each role in each control.
    """
    pairs = pairs_among(frame)
    groups = {GROUP: pairs} if pairs else {}
    rows = []
    for name, roles in (groups | {role: [role] for role in frame["role"].unique()}).items():
        having = frame[frame["assigned"] & frame["role"].isin(roles)]
        counts: dict[str, Any] = {"role": name, "heads": len(heads_in(having))}
        for control, heads in controls.items():
            tested = [role for role in roles if control != TREES or role in pairs]
            either = {tuple(head) for role in tested for head in heads.get(role, [])}
            counts[control] = len(either) if tested else np.nan
        rows.append(counts)
    return pd.DataFrame(rows)


# Words, in studies of roles too.


def _about_run(record: Record) -> Iterator[str]:
    """Name the model and the corpus."""
    corpus, named = record.corpus, "Heads are named layer-head, counted from 0."
    if record.is_by_hand:
        yield f"Scores made by hand. {named}"
        return
    over = listed([Path(name).name for name in corpus.files]) or "sentences in memory"
    documents = f"{corpus.documents} document{'s' * (corpus.documents != 1)}"
    yield (
        f"{record.model.name} ({record.model.family}, {record.model.layers} layers x "
        f"{record.model.heads} heads) over {over}:"
    )
    yield f"{corpus.sentences} {_texts(record)}, {documents}, {corpus.examples} examples. {named}"


def _texts(record: Record) -> str:
    """Name the units of a corpus: the texts of a file of tokens and arcs, or sentences."""
    return "texts" if record.corpus.format == "arcs" else "sentences"


def _about_gaps(table: RoleTable) -> Iterator[str]:
    """Report skipped examples, and roles that no example has."""
    for reason, count in table.scored.corpus.skipped.items():
        yield f"Skipped {reason}: {count}."
    by_reason: dict[str, list[str]] = {}
    for role, reason in table.facts["left_out"].items():
        by_reason.setdefault(reason, []).append(in_words(role))
    for reason, roles in by_reason.items():
        yield f"No example has {listed(roles)}" + (f": {reason}." if reason else ".")


def about_level(
    tests: CorrectionOptions, facts: Mapping[str, Any], offset_margin: float = 0
) -> str:
    """State the threshold of roles, and the error rate of answers."""
    score, limit, margin = SCORES[facts["score"]], facts["threshold"], facts["distance_margin"]
    if score.of_first_choice:
        over = f"a share of first choices above {limit:g}"
        if offset_margin:
            over += f",\nof arcs by {offset_margin:g} more than the best fixed offset has"
    else:
        of_arcs = f", of arcs {margin:g} beyond distance" * bool(margin)
        unit = f"in {score.name} score"
        if score.name == BIAS.name:
            unit = "times uniform" + " attention" * (not of_arcs)
        over = f"a mean above {limit:g} {unit}{of_arcs}"
    return f"A role takes {over} ({error_rate(tests)})."


def error_rate(tests: CorrectionOptions) -> str:
    """State the error rate of answers."""
    level = f"{tests.alpha:.2g}"
    if tests.correction == "none":
        return f"each test at {level}, uncorrected"
    kind = "false discovery" if tests.correction.startswith("fdr") else "family-wise error"
    return f"{kind} rate {level}"


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


def with_interval(
    row: Mapping[Any, Any], value: str = "mean", low: str = "ci_low", high: str = "ci_high"
) -> str:
    """Write a value of a row with its interval; nothing if it is missing."""
    return "" if np.isnan(row[value]) else f"{row[value]:.3g} ({row[low]:.3g} to {row[high]:.3g})"
