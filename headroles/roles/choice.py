"""Which roles are scored: the list of all there are, and the options that choose among them."""

from __future__ import annotations

from dataclasses import dataclass

from headroles.roles import block, delimiter, local, syntactic
from headroles.roles.local import LocalOptions
from headroles.roles.role import Role
from headroles.roles.scores import Score
from headroles.roles.syntactic import SyntacticOptions

ROLE_FILES = (local, delimiter, block, syntactic)
"""In the order of every table. Each has a function ``roles``, which gives those asked for."""


@dataclass(frozen=True, kw_only=True)
class RoleOptions(SyntacticOptions, LocalOptions):
    """What any role can be asked for."""


def choose_roles(
    options: RoleOptions, relations: tuple[str, ...], score: Score
) -> tuple[Role, ...]:
    """The roles to score with a score, and arcs of these ``relations``."""
    return tuple(role for file in ROLE_FILES for role in file.roles(options, relations, score))
