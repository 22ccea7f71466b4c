"""What the page of a role table says of heads that do more along arcs than look at a distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroles.report.page import Section, Table
from headroles.roles import contrast_of

if TYPE_CHECKING:
    from headroles.studies.role_table import RoleTable

_MOST_ROWS = 30


def beyond_position(table: RoleTable) -> str:
    """How many heads with arcs are more than their position; nothing without contrasts."""
    having = {
        head
        for role in table.roles
        if contrast_of(role) in table.roles
        for head in table.heads_with(role)
    }
    if not having:
        return ""
    more = _rows(table)
    heads = {(row["layer"], row["head"]) for row in more}
    strongest = (
        f". Farthest beyond it goes {row['layer']}-{row['head']} for {row['role']}: "
        f"{_more(row)} of its mean of {row['mean']:.3g}"
        for row in more
    )
    return (
        f"{len(having)} heads look along arcs, and {len(heads)} of them more than at other words "
        f"at the same distance, so that it is not their position alone{next(strongest, '')}."
    )


def beyond_position_section(table: RoleTable) -> Section | None:
    """These heads with their roles, and how much of their means is more than position."""
    rows = tuple(
        (
            f"{row['layer']}-{row['head']}",
            row["role"],
            f"{row['mean']:.3g} ({row['ci_low']:.3g} to {row['ci_high']:.3g})",
            _more(row),
            row["certified"] or "-",
            row["note"],
        )
        for row in _rows(table)
    )
    if not rows:
        return None
    left = len(rows) - _MOST_ROWS
    more = f" The first {_MOST_ROWS} of {len(rows)}." if left > 0 else ""
    caption = (
        "Heads that have a role of arcs and give more along them than to other words at the same "
        f"distance in the same sentence; those first of which that is most.{more} All, as a file: "
        "headroles export DIR --view beyond_position"
    )
    names = ("head", "role", "mean and interval", "of it beyond position", "certified", "note")
    return Section("Beyond position", tables=(Table(caption, names, rows[:_MOST_ROWS]),))


def _rows(table: RoleTable) -> list[dict[str, Any]]:
    records = table.beyond_position().to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in records]


def _more(row: dict[str, Any]) -> str:
    return f"{row['beyond']:.3g} ({row['beyond_low']:.3g} to {row['beyond_high']:.3g})"
