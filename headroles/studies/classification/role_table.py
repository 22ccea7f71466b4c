"""RoleTable: the tests of every head on every role, and views of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from headroles.errors import UsageError
from headroles.record import ScoresRecord
from headroles.results.columns import TEXT, Column, one_of
from headroles.results.formats import to_records
from headroles.results.result import Result, widened
from headroles.results.shown import Shown
from headroles.roles import find_roles
from headroles.scoring.run_notes import facts_of_run
from headroles.storage import Count, plain
from headroles.studies.classification.answers import (
    about_controls,
    count_controls,
    find_answers,
    heads_in,
)
from headroles.studies.classification.summary import detailed, method_of, next_steps, summarized
from headroles.studies.heads import roles_in
from headroles.testing.answers import ROLE_ANSWERS, YES
from headroles.testing.recorded import RecordedTests
from headroles.wording import addressed

_FACTS = ["layer", "head", "role", "mean", "beyond_distance", "p_adjusted"]
_OPTIONAL = [
    *("beyond_distance", "beyond_low", "beyond_high", "p_beyond", "offset", "offset_share"),
    *("evenness", "mean_trees", "mean_words", "mean_weights"),
]
_NOT_OF_ASSIGNED = ["assigned", "answer", "p_below", "p_below_adjusted", "df", "certified_mean"]


class RoleTests(RecordedTests, frozen=True, kw_only=True):
    """Record of the tests of a role table; ``offsets`` are those of `RoleTable.rivals`.

    ``controls`` are the heads that would have each role in each control; ``left_out`` are the
    reasons why no example has a role.
    """

    controls: dict[str, dict[str, list[tuple[Count, Count]]]]
    offsets: dict[str, tuple[int, int]]
    preset: str
    clustered_by: str
    n_clusters: Count
    effective_clusters: float
    left_out: dict[str, str]
    warnings: list[str]


class RolesRecord(ScoresRecord, frozen=True, kw_only=True):
    """Record of a role table: its scores and its tests."""

    tests: RoleTests


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

    record: RolesRecord

    kind: ClassVar[str] = "role table"
    figures: ClassVar[Mapping[str, str]] = {
        "roles": "headroles.studies.classification.figures:draw_roles",
        "heads": "headroles.studies.classification.figures:draw_heads",
        "role": "headroles.studies.classification.figures:draw_role",
        "shared": "headroles.studies.classification.figures:draw_colocation",
        "head": "headroles.studies.classification.figures:draw_head",
        "error": "headroles.studies.classification.figures:draw_error",
    }
    page: ClassVar[str] = "headroles.studies.classification.page:role_page"
    stem: ClassVar[str] = "roles"
    remedy: ClassVar[str] = "test scores with: headroles assign {folder}"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head role n n_clusters df mean sd effect_size ci_low ci_high threshold "
            "statistic beyond_distance beyond_low beyond_high p_beyond p_value p_adjusted p_below "
            "p_below_adjusted answer assigned certified certified_mean offset offset_share "
            "evenness mean_trees mean_words mean_weights note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(*ROLE_ANSWERS),
        "certified": one_of(*ROLE_ANSWERS, ""),
        "offset": Column(TEXT),
    }
    views: ClassVar[tuple[str, ...]] = tuple(
        "long wide assigned counts answers certified colocation controls".split()
    )

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return roles_in(self.frame)

    @property
    def assigned(self) -> pd.DataFrame:
        """The rows of the roles that were assigned, strongest mean first.

        Details of the whole table, and columns without any value, are omitted.
        """
        rows = self.frame[self.frame["assigned"]].drop(columns=_NOT_OF_ASSIGNED)
        empty = [
            name
            for name in _OPTIONAL
            if rows[name].isin(["", None]).all() or rows[name].isna().all()
        ]
        rows = rows.drop(columns=empty)
        return rows.sort_values(["mean", "layer", "head"], ascending=[False, True, True])

    @property
    def controls(self) -> pd.DataFrame:
        """Count heads with each role, and heads that would have it in each control.

        Columns ``role, heads`` and one for each control; the first row is any role of arcs.
        """
        return count_controls(self.frame, self.tests.controls)

    @property
    def tests(self) -> RoleTests:
        """The record of the tests: options, units, roles without examples, warnings."""
        return self.record.tests

    @property
    def rivals(self) -> dict[str, tuple[int, int]]:
        """The fixed offsets, in words, that each role of arcs was compared with.

        The first offset is the best one of the second half of the documents, to compare the first
        half with; the second offset is the reverse.
        """
        return self.tests.offsets

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return sentences on score and tests, and the work to cite."""
        return method_of(self)

    def clearest_role(self) -> str:
        """Return the role whose head goes farthest beyond distance, else the first."""
        arcs = find_answers(self).arcs
        return arcs[0].role if arcs else super().clearest_role()

    def heads_with(self, role: str) -> list[tuple[int, int]]:
        """Return (layer, head) of the heads that ``role`` was assigned to, each once.

        A relation means all of its directions, ``syntactic`` all roles of arcs. Raises UsageError
        for a role that the table does not have.
        """
        named = find_roles(role, self.roles)
        return list(heads_in(self.frame[self.frame["assigned"] & self.frame["role"].isin(named)]))

    def wide(self, value: str = "assigned") -> pd.DataFrame:
        """Return one row per head, a column per role, with the ``value`` of the long table.

        Raises UsageError for an unknown column.
        """
        by_head = self.frame.sort_values(["layer", "head"], kind="stable")
        return widened(by_head, ("layer", "head"), "role", self.roles, value)

    def counts(self, answer: str = YES) -> pd.DataFrame:
        """Count heads with an answer: a row per role, a column per layer, and the total.

        Raises UsageError for anything but ``"yes"``, ``"no"``, ``"undecided"``, ``"untestable"``.
        """
        if answer not in ROLE_ANSWERS:
            raise UsageError(
                f"the answer is {answer!r}; it must be one of {', '.join(ROLE_ANSWERS)}"
            )
        chosen = self.frame.assign(chosen=self.frame["answer"] == answer)
        counts = chosen.pivot_table(
            index="role", columns="layer", values="chosen", aggfunc="sum", sort=False, fill_value=0
        ).astype(int)
        return counts.assign(total=counts.sum(axis=1)).rename_axis(columns=None)

    def answers(self) -> pd.DataFrame:
        """Count heads by answer: a row per role, columns yes, no, undecided, untestable."""
        return self._heads_by("answer")

    def certified(self) -> pd.DataFrame:
        """Count heads by certified answer: a row per role, a column per answer."""
        return self._heads_by("certified")

    def _heads_by(self, column: str) -> pd.DataFrame:
        counts = pd.crosstab(self.frame["role"], self.frame[column])
        counts = counts.reindex(index=self.roles, columns=ROLE_ANSWERS, fill_value=0)
        return counts.rename_axis(index="role", columns=None)

    def colocation(self) -> pd.DataFrame:
        """Count the heads that have both of two roles; on the diagonal, the heads with one role."""
        names = list(self.roles)
        has = self.wide()[names].eq(other=True).to_numpy(dtype=int)
        return pd.DataFrame(has.T @ has, index=names, columns=names).rename_axis("role")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Cautions about the result, a sentence each."""
        return tuple(map(addressed, self.tests.warnings))

    def summarize(self) -> Iterator[Shown]:
        """Summarise in some twenty lines the heads of each role, with cautions."""
        yield from summarized(self)

    def details(self) -> Iterator[Shown]:
        """Describe the tests, tabulate answers by role and layer, and name missing values."""
        yield from detailed(self)

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name commands that show more of the table in ``folder``."""
        yield from next_steps(self, folder)

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts, with the heads of every role."""
        assigned = self.frame[self.frame["assigned"]]
        answers = self.answers()
        return {
            **facts_of_run(self.record),
            "tests": plain(self.tests),
            "heads_per_role": answers["yes"].to_dict(),
            "answers_per_role": answers.to_dict(orient="index"),
            "certified_per_role": self.certified().to_dict(orient="index"),
            "controls": to_records(self.controls),
            "controls_in_words": " ".join(about_controls(self)),
            "assigned": to_records(assigned[_FACTS]),
        }
