"""RoleTable: the tests of every head on every role, and views of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.record import ScoresRecord
from headroles.results.columns import Column, one_of
from headroles.results.result import Result, widened
from headroles.results.shown import Shown
from headroles.roles import contrast_of, find_role
from headroles.scoring.run_notes import facts_of_run
from headroles.storage import Count, plain
from headroles.studies.classification.answers import find_answers
from headroles.studies.classification.card import card_of, method_of
from headroles.studies.classification.summary import detailed, next_steps, summarized
from headroles.studies.heads import roles_in
from headroles.testing.answers import ANSWERS, YES
from headroles.testing.catalogue import INTERVALS
from headroles.testing.recorded import RecordedTests
from headroles.wording import addressed

_OF_HEAD = ["layer", "head", "role"]
_NOT_OF_ASSIGNED = ["assigned", "answer", "p_below", "p_below_adjusted", "df", "certified_mean"]


class RoleTests(RecordedTests, frozen=True, kw_only=True):
    """Record of the tests of a role table; ``offsets`` are those of `RoleTable.rivals`.

    ``near`` are layers, heads and roles whose answers half precision may have changed.
    """

    interval: str
    offsets: dict[str, tuple[int, int]]
    preset: str
    clustered_by: str
    n_clusters: Count
    effective_clusters: float
    left_out: list[str]
    why_left_out: dict[str, str]
    warnings: list[str]
    near: list[tuple[Count, Count, str]]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval not in INTERVALS:
            raise ValueError(f"unknown interval {self.interval!r}")


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

    With ``table`` as `assign_roles` returns it:

    >>> table.heads_with("local")
    [(0, 0)]
    >>> table.where(role="local", only_assigned=True).frame["answer"].tolist()
    ['yes']
    >>> table.export("csv", "assigned", columns=["layer", "head", "role"]).decode().split()
    ['layer,head,role', '0,0,local']
    """

    record: RolesRecord
    _whole: pd.DataFrame | None = None
    """The whole frame of a part that `where` took, with the contrasts of all roles."""

    kind: ClassVar[str] = "role table"
    stem: ClassVar[str] = "roles"
    remedy: ClassVar[str] = "test scores with: headroles assign {folder}"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head role n n_clusters df mean sd effect_size ci_low ci_high threshold "
            "statistic p_value p_adjusted p_below p_below_adjusted answer assigned certified "
            "certified_mean evenness note"
        ).split()
    )
    own: ClassVar[Mapping[str, Column]] = {
        "answer": one_of(*ANSWERS),
        "certified": one_of(*ANSWERS, ""),
    }
    views: ClassVar[tuple[str, ...]] = (
        "long",
        "wide",
        "assigned",
        "counts",
        "answers",
        "certified",
        "colocation",
        "beyond_position",
    )

    texts: ClassVar[tuple[str, ...]] = ("card",)

    @property
    def roles(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return roles_in(self.frame)

    @property
    def assigned(self) -> pd.DataFrame:
        """The rows of the roles that were assigned, strongest mean first.

        Constant columns and details of the whole table are omitted. The column ``beyond_distance``
        is the answer of `answers_beyond_distance`.
        """
        rows = self.frame[self.frame["assigned"]].drop(columns=_NOT_OF_ASSIGNED)
        rows = rows.assign(beyond_distance=self.answers_beyond_distance(rows))
        return rows.sort_values(["mean", "layer", "head"], ascending=[False, True, True])

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
        """Return (layer, head) of the heads that ``role`` was assigned to.

        Raises UsageError for a role that the table does not have.
        """
        rows = self.where(find_role(role, self.roles), only_assigned=True).frame
        return list(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True))

    def answers_beyond_distance(self, rows: pd.DataFrame) -> pd.Series[str]:
        """Return for each row the answer of its role's contrast in its head; empty without one."""
        answers = self._all.set_index(_OF_HEAD)["answer"]
        contrasts = pd.MultiIndex.from_frame(
            rows[_OF_HEAD].assign(role=rows["role"].map(contrast_of))
        )
        return pd.Series(answers.reindex(contrasts).fillna("").to_numpy(), rows.index, dtype=object)

    def where(
        self,
        role: str | Sequence[str] | None = None,
        layer: int | str | Sequence[int | str] | None = None,
        only_assigned: bool = False,
    ) -> Self:
        """Return the matching rows as a table; it still knows the contrasts of their roles."""
        part = super().where(role, layer, only_assigned)
        return part if part is self else replace(part, _whole=self._all)

    @property
    def _all(self) -> pd.DataFrame:
        return self.frame if self._whole is None else self._whole

    def card(self) -> str:
        """Return a card in Markdown for the README of the model."""
        return card_of(self)

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
        if answer not in ANSWERS:
            raise UsageError(f"the answer is {answer!r}; it must be one of {', '.join(ANSWERS)}")
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
        counts = counts.reindex(index=self.roles, columns=ANSWERS, fill_value=0)
        return counts.rename_axis(index="role", columns=None)

    def colocation(self) -> pd.DataFrame:
        """Count the heads that have both of two roles; on the diagonal, the heads with one role."""
        names = list(self.roles)
        has = self.wide()[names].eq(other=True).to_numpy(dtype=int)
        return pd.DataFrame(has.T @ has, index=names, columns=names).rename_axis("role")

    def beyond_position(self) -> pd.DataFrame:
        """Return heads that have a role of arcs and give less to other words at the same distance.

        Rows, farthest beyond position first, have ``layer``, ``head``, ``role``, ``mean`` with its
        interval, and ``beyond``, the mean of the contrast, with its interval, certified answer and
        note. Scores without contrasts (``beyond_offset``) give no rows.
        """
        assigned = self.frame[self.frame["assigned"]]
        own = assigned[[*_OF_HEAD, "mean", "ci_low", "ci_high"]]
        values = ["mean", "ci_low", "ci_high", "certified", "note"]
        contrasts = self._all[self._all["assigned"]][[*_OF_HEAD, *values]].rename(
            columns={"mean": "beyond", "ci_low": "beyond_low", "ci_high": "beyond_high"}
        )
        both = own.assign(contrast=own["role"].map(contrast_of)).merge(
            contrasts.rename(columns={"role": "contrast"}), on=["layer", "head", "contrast"]
        )
        by = ["beyond", "layer", "head"]
        found = both.drop(columns="contrast").sort_values(by, ascending=[False, True, True])
        return found.reset_index(drop=True)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Cautions about the result, a sentence each."""
        return tuple(map(addressed, self.tests.warnings))

    def shown(self) -> Iterator[Shown]:
        """Summarise in some twenty lines the heads of each role, with cautions."""
        yield from summarized(self)

    def details(self) -> Iterator[Shown]:
        """Describe the tests, tabulate answers by role and layer, and name missing values."""
        yield from detailed(self)

    def next_steps(self, folder: Path) -> Iterator[str]:
        """Name commands that show more of the table in ``folder``."""
        yield from next_steps(self, folder)

    def facts(self) -> dict[str, Any]:
        """Return the result for scripts, with the heads of every role."""
        assigned = self.assigned[["layer", "head", "role", "mean", "p_adjusted"]]
        answers = self.answers()
        return {
            **facts_of_run(self.record),
            "tests": plain(self.tests),
            "heads_per_role": answers["yes"].to_dict(),
            "answers_per_role": answers.to_dict(orient="index"),
            "certified_per_role": self.certified().to_dict(orient="index"),
            "assigned": to_records(assigned),
        }
