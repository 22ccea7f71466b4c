"""What does one head do? Its roles, farthest beyond distance and class first -> HeadProfile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from headroles.errors import HeadRolesError, UsageError
from headroles.models.heads.remaining import Head
from headroles.results.columns import NUMBER, Column, one_of
from headroles.results.consistency import Rule, around
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Verbatim
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.role_table import AssignOptions, RoleTable, digits, unit_of
from headroles.studies.evidence import STEPS
from headroles.studies.heads import ScoreLevel
from headroles.studies.inspection.examples import SentenceOptions, find_examples
from headroles.testing.evidence import ANSWERS, NO, ROLE_ANSWERS, UNDECIDED, YES
from headroles.wording import head_name

_OF_TABLE = (
    "layer head role n n_clusters mean ci_low ci_high threshold beyond_distance beyond_low "
    "beyond_high beyond_class class_low class_high answer assigned evidence specific"
).split()
_OF_EACH = 3
"""Most undecided roles on a screen, beside those that the head has."""
_LEAST = 5
"""Fewest roles on a screen, if there are as many: the next ones have other answers."""


class ProfileFacts(ScoreLevel):
    """The head, and sentences with its strongest role of pairs of words and its strongest other."""

    layer: int
    head: int
    sentences: dict[str, str]


@dataclass(frozen=True, repr=False, eq=False)
class HeadProfile(Result[AssignOptions, ProfileFacts]):
    """The roles of one head, one row each: those that it has first, farthest beyond distance first.

    Columns are those of role tables, over all heads of which the tests were corrected. ``rank`` is
    the place of the head among all heads in the role, by attention beyond distance where it was
    measured, else by the mean: 1 is the strongest.
    """

    kind: ClassVar[str] = "profile"
    hint: ClassVar[str] = "make one with headroles describe DIR --head LAYER-HEAD"
    question: ClassVar[str] = "What does this head do?"
    columns: ClassVar[tuple[str, ...]] = (*_OF_TABLE, "rank")
    schema: ClassVar[Mapping[str, Column]] = {
        "rank": Column(NUMBER, 1),
        "answer": one_of(*ROLE_ANSWERS),
        "evidence": one_of("", *STEPS),
        "specific": one_of(*ANSWERS, ""),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "mean", "ci_high"),
        around("beyond_low", "beyond_distance", "beyond_high"),
        around("class_low", "beyond_class", "class_high"),
    )

    def summarize(self) -> Iterator[Shown]:
        """Count the roles, tabulate them, and show the head in sentences."""
        rows, facts = self.frame, self.facts
        having, is_open = rows[rows["answer"] == YES], rows["answer"] == UNDECIDED
        model = self.record.sources["scores"].model.name
        yield (
            f"Head {head_name((facts['layer'], facts['head']))} of {model} has {len(having)} of "
            f"{len(rows)} roles; {int(is_open.sum())} are undecided."
        )
        other_roles = having[having["beyond_distance"].isna()]
        is_shown = (rows["answer"] == YES) | (is_open & (is_open.cumsum() <= _OF_EACH))
        is_left = ~is_shown & rows["mean"].notna()
        missing = max(_LEAST - int(is_shown.sum()), 0)
        yield self._grid(rows[is_shown | (is_left & (is_left.cumsum() <= missing))])
        if having["beyond_distance"].notna().any() and len(other_roles):
            role = other_roles.iloc[0]
            yield (
                f"Its strongest other use: {self.in_words(role['role'])} ({self._mean(role)}, "
                f"place {role['rank']:.0f} among all heads)."
            )
        for name, sentence in facts["sentences"].items():
            yield Verbatim(f"{self.in_words(name)}: {sentence}")

    def _mean(self, row: Any) -> str:
        score = self.facts["score"]
        return f"{row['mean']:{digits(score)}} {unit_of(score)}"

    def _grid(self, rows: pd.DataFrame) -> Grid:
        """Tabulate roles with what goes beyond distance and class, and the place among heads."""
        number = f":{digits(self.facts['score'])}"
        cells = {"Role of the head": "{words}", unit_of(self.facts["score"]): f"{{mean{number}}}"}
        if self.frame["beyond_distance"].notna().any():
            cells["Above same distance"] = f"{{beyond_distance{number}}}"
        if self.frame["beyond_class"].notna().any():
            cells["Above word class"] = f"{{beyond_class{number}}}"
        cells |= {"Place among heads": "{rank:.0f}", "Answer": "{told}"}
        told = [
            ", ".join(filter(None, (answer, evidence, "not specific" if specific == NO else "")))
            for answer, evidence, specific in rows[["answer", "evidence", "specific"]].to_numpy()
        ]
        words = rows["role"].map(self.in_words)
        grid = Grid.from_frame(rows.assign(words=words, told=told), cells, ["Answer"])
        texts = tuple(
            tuple({"nan": "-", "nan%": "-"}.get(cell, cell) for cell in row) for row in grid.rows
        )
        return Grid(grid.columns, texts, grid.left, view="long")


def profile_head(scores: HeadScores, head: Head, options: AssignOptions) -> HeadProfile:
    """Return the roles of a head, tested among all heads as `assign_roles` does."""
    table = assign_roles(scores, options=options)
    layer, number = map(int, head)
    ranked = table.frame.assign(rank=_ranks(table))
    rows = ranked[(ranked["layer"] == layer) & (ranked["head"] == number)]
    if rows.empty:
        raise UsageError(
            f"there is no head {head_name((layer, number))}; the model has layers 0 to "
            f"{scores.n_layers - 1} of {scores.n_heads} heads, from 0"
        )
    order = ["assigned", "beyond_distance", "beyond_class", "mean"]
    rows = rows.sort_values(order, ascending=False, kind="stable").reset_index(drop=True)
    return HeadProfile.made(
        rows,
        options,
        facts={
            "score": table.facts["score"],
            "threshold": table.facts["threshold"],
            "layer": layer,
            "head": number,
            "sentences": dict(_sentences(scores, (layer, number), rows)),
        },
        sources={"scores": scores.record},
        warnings=table.record.warnings,
    )


def _ranks(table: RoleTable) -> pd.Series[float]:
    """Return the place of each row among all heads in its role."""
    strength = table.frame["beyond_distance"].fillna(table.frame["mean"])
    ranks = strength.groupby(table.frame["role"]).rank(ascending=False, method="min")
    return ranks.fillna(len(table.frame))


def _sentences(scores: HeadScores, head: Head, rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield a typical sentence of the first role of pairs of the head, and of its first other.

    A head without any role has one of its first role. There is none where the text cannot be read
    again.
    """
    having = rows[rows["assigned"]] if rows["assigned"].any() else rows[:1]
    of_pairs = having["beyond_distance"].notna()
    for part in (having[of_pairs], having[~of_pairs]):
        for role in part["role"][:1]:
            options = SentenceOptions(n=1, weights=False)
            try:
                found = find_examples(scores, head, role, options=options).frame
            except HeadRolesError:
                continue
            for row in found.to_dict("records"):
                words = f" ({row['words']})" if row["words"] else ""
                yield role, f"{row['text']}{words}"
