"""Do two tables give roles to the same heads? RoleTables -> Overlap; and the role next-comma."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import pandas as pd
from msgspec import Meta

from headroles import RoleTable, Sentence
from headroles.drawing.style import new_axes
from headroles.options import Options, takes
from headroles.results.columns import WHOLE, Column
from headroles.results.result import NoFacts, Result
from headroles.results.shown import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class OverlapOptions(Options):
    """Which roles to count."""

    title: ClassVar[str] = "Roles"

    least: Annotated[int, Meta(ge=0)] = 1
    """Least number of heads that have a role in one of the tables; other roles are left out."""


@dataclass(frozen=True, repr=False, eq=False)
class Overlap(Result[OverlapOptions, NoFacts]):
    """Numbers of heads that have a role in the first table, the second, and both, by role."""

    kind: ClassVar[str] = "overlap"
    question: ClassVar[str] = "Do two tables give a role to the same heads?"
    columns: ClassVar[tuple[str, ...]] = ("role", "first", "second", "both")
    schema: ClassVar[Mapping[str, Column]] = dict.fromkeys(columns[1:], Column(WHOLE, least=0))
    figures: ClassVar[Mapping[str, str]] = {"overlap": "draw_overlap"}

    def summarize(self) -> Iterator[Shown]:
        """Yield the sums over all roles."""
        first, second, both = self.frame[["first", "second", "both"]].sum()
        yield f"{both} heads have a role in both tables, of {first} and {second} heads with one."


@takes(OverlapOptions)
def count_overlap(first: RoleTable, second: RoleTable, options: OverlapOptions) -> Overlap:
    """Count the heads that have a role in both of two tables.

    FIRST and SECOND are folders that classify or assign wrote.
    """
    rows = []
    for role in first.roles:
        heads = {*first.heads_with(role)}
        other_heads = {*second.heads_with(role)} if role in second.roles else set()
        if max(len(heads), len(other_heads)) >= options.least:
            rows.append((role, len(heads), len(other_heads), len(heads & other_heads)))
    frame = pd.DataFrame(rows, columns=[*Overlap.columns])
    return Overlap.made(frame, options, sources={"first": first.record, "second": second.record})


def draw_overlap(overlap: Overlap, ax: Axes | None = None) -> Axes:
    """Draw the heads that have each role in both tables."""
    ax = new_axes(ax, 6, 3)
    ax.bar(overlap.frame["role"], overlap.frame["both"])
    return ax


def find_next_commas(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Yield each word with the next comma: which heads look for commas ahead?"""
    comma = None
    for place in reversed(range(len(sentence.words))):
        if comma is not None:
            yield place, comma
        if sentence.words[place] == ",":
            comma = place
