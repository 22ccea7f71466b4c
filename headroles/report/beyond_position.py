"""Say on the page of a role table which heads follow arcs, and which only a distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headroles.report.page import Section, Table
from headroles.report.rows import with_interval
from headroles.roles import in_words

if TYPE_CHECKING:
    from headroles.studies.role_answers import RoleAnswers

_MOST_ROWS = 30


def beyond_position(answers: RoleAnswers) -> Iterator[str]:
    """Say how many heads follow arcs, which goes farthest, and which only looks at a distance."""
    if answers.arcs:
        first = answers.arcs[0]
        best = f"head {_name(first.head)}, {in_words(first.role)}"
        if answers.controls_distance:
            yield (
                f"{len(answers.syntactic)} of the {answers.n_heads} heads give syntactic partners "
                f"more than distance explains. Farthest goes {best}: {first.beyond:.3g} of its "
                f"mean of {first.mean:.3g} is beyond distance."
            )
        else:
            yield (
                f"{len(answers.syntactic)} of the {answers.n_heads} heads attend to syntactic "
                f"partners. The largest mean, {first.mean:.3g}, is that of {best}. Distance was "
                "not controlled: some of these heads may only look at a fixed place."
            )
    if answers.only_position:
        most = max(answers.only_position, key=lambda one: one.mean)
        yield (
            f"Not counted: head {_name(most.head)} ({in_words(most.role)}, mean {most.mean:.3g}), "
            "which may give as much to any word at that distance."
        )


def beyond_position_section(more: list[dict[str, Any]]) -> Iterator[Section]:
    """Yield these heads with their roles, and how much of their means is beyond distance.

    ``more`` are the rows of ``RoleTable.beyond_position``.
    """
    rows = tuple(
        (
            f"{row['layer']}-{row['head']}",
            in_words(row["role"]),
            with_interval(row),
            _more(row),
            row["certified"] or "-",
            row["note"],
        )
        for row in more
    )
    if not rows:
        return
    left = len(rows) - _MOST_ROWS
    first = f" The first {_MOST_ROWS} of {len(rows)}." if left > 0 else ""
    caption = (
        "Heads that have a role of arcs and give more along them than to other words at the same "
        f"distance in the same sentence; those first of which that is most.{first} All, as a file: "
        "headroles export DIR --view beyond_position"
    )
    names = ("head", "role", "mean and interval", "of it beyond distance", "certified", "note")
    table = Table(caption, names, rows[:_MOST_ROWS])
    yield Section("Heads that follow syntax, not distance", tables=(table,))


def _more(row: dict[str, Any]) -> str:
    return with_interval(row, "beyond", "beyond_low", "beyond_high")


def _name(head: tuple[int, int]) -> str:
    return f"{head[0]}-{head[1]}"
