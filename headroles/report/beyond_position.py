"""What the page of a role table says of heads that do more along arcs than look at a distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroles.report.page import Section, Table
from headroles.report.rows import rows_of, with_interval
from headroles.roles import contrast_of

if TYPE_CHECKING:
    from headroles.studies.role_table import RoleTable

_MOST_ROWS = 30


def beyond_position(table: RoleTable, more: list[dict[str, Any]]) -> str:
    """How many heads with arcs are more than their position; nothing without contrasts.

    ``more`` are the rows of ``table.beyond_position()``.
    """
    roles = [role for role in table.roles if contrast_of(role) in table.roles]
    having = _heads(rows_of(table.where(role=roles, only_assigned=True).frame))
    if not having:
        return ""
    strongest = (
        f". Farthest beyond it goes {row['layer']}-{row['head']} for {row['role']}: "
        f"{_more(row)} of its mean of {row['mean']:.3g}"
        for row in more
    )
    return (
        f"{len(having)} heads look along arcs, and {len(_heads(more))} of them more than at other "
        f"words at the same distance, so that it is not their position alone{next(strongest, '')}."
    )


def beyond_position_section(more: list[dict[str, Any]]) -> Section | None:
    """These heads with their roles, and how much of their means is more than position."""
    rows = tuple(
        (
            f"{row['layer']}-{row['head']}",
            row["role"],
            with_interval(row),
            _more(row),
            row["certified"] or "-",
            row["note"],
        )
        for row in more
    )
    if not rows:
        return None
    left = len(rows) - _MOST_ROWS
    first = f" The first {_MOST_ROWS} of {len(rows)}." if left > 0 else ""
    caption = (
        "Heads that have a role of arcs and give more along them than to other words at the same "
        f"distance in the same sentence; those first of which that is most.{first} All, as a file: "
        "headroles export DIR --view beyond_position"
    )
    names = ("head", "role", "mean and interval", "of it beyond position", "certified", "note")
    return Section("Beyond position", tables=(Table(caption, names, rows[:_MOST_ROWS]),))


def _heads(rows: list[dict[str, Any]]) -> set[tuple[int, int]]:
    return {(row["layer"], row["head"]) for row in rows}


def _more(row: dict[str, Any]) -> str:
    return with_interval(row, "beyond", "beyond_low", "beyond_high")
