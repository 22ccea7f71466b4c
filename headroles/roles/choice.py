"""Which roles are scored: the list of all there are, and the options that choose among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from headroles.errors import UsageError
from headroles.options import Option, split_names
from headroles.roles import block, delimiter, local, position, syntactic
from headroles.roles.local import LocalOptions
from headroles.roles.role import Role
from headroles.roles.scores import Score
from headroles.roles.syntactic import SyntacticOptions
from headroles.wording import listed

ROLE_FILES = (local, delimiter, block, syntactic, position)
"""In the order of every table. Each has a function ``roles``, which gives those asked for."""
GROUPS = {file.__name__.rpartition(".")[2]: file for file in ROLE_FILES}
"""The files by the names that users call groups of roles by."""
DEFAULT_GROUPS = ("local", "delimiter", "block", "syntactic")
"""What is scored if nothing is named: every role more is a test more to correct all others for."""
ALL = "all"


def _names(given: Any) -> tuple[str, ...]:
    """Names of groups or roles, positions as tables have them."""
    names = split_names(given)
    if not names:
        raise UsageError("--roles names no role; leave it out for the defaults")
    return tuple(
        f"{position.GROUP}:{position.offset_of(name):+d}" if position.is_one(name) else name
        for name in names
    )


@dataclass(frozen=True, kw_only=True)
class RoleOptions(SyntacticOptions, LocalOptions):
    """What any role can be asked for."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[
        Sequence[str] | None,
        Option(
            "Roles to score, separated by commas: groups "
            f"({', '.join(GROUPS)}), ids such as position:-2, or all.",
            more=f"None takes {', '.join(DEFAULT_GROUPS)}. A group is all of its roles: delimiter "
            "is also delimiter:cls and delimiter:sep.",
            convert=_names,
        ),
    ] = None


def choose_roles(
    options: RoleOptions, relations: tuple[str, ...], score: Score
) -> tuple[Role, ...]:
    """The roles to score with a score, and arcs of these ``relations``, in the order of tables.

    Raises UsageError for names of no role.
    """
    named = DEFAULT_GROUPS if options.roles is None else options.roles
    groups = {name: tuple(file.roles(options, relations, score)) for name, file in GROUPS.items()}
    _refuse_unknown(named, groups)
    return tuple(
        role
        for group, roles in groups.items()
        for role in roles
        if {group, ALL, role.id, role.measure_of} & set(named)
    )


def _refuse_unknown(named: Sequence[str], groups: dict[str, tuple[Role, ...]]) -> None:
    known = [ALL, *groups, *(role.id for roles in groups.values() for role in roles)]
    for name in named:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            raise UsageError(
                f"there is no role {name!r} to score; "
                + (
                    f"did you mean {listed(near)}?"
                    if near
                    else f"it must be one of {listed(known)}"
                )
            )
