"""Ids of the roles, in the order of every table."""

from __future__ import annotations

from collections.abc import Sequence

SCORES = ("bias", "excess")
POSITIONAL_ROLES = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "block", "block:ratio")
EVENNESS = "block:evenness"
"""No role: how evenly a head spreads over the words of the segment that it stays in."""
TO_GOVERNOR = "to_governor"
TO_DEPENDENT = "to_dependent"
BEYOND_OFFSET = "beyond_offset"


def role_ids(
    relations: Sequence[str], score: str = "bias", beyond_offset: bool = False
) -> tuple[str, ...]:
    """Ids of all roles: positional, pooled syntax, each relation, the contrasts of these.

    Contrasts are there with ``beyond_offset`` only. Among the ``excess`` scores
    ``block:evenness`` stands in the place of ``block:ratio``, which ``block`` itself is there.

    >>> role_ids(["amod"])[-2:]
    ('syntactic:amod:to_governor', 'syntactic:amod:to_dependent')
    """
    positional = POSITIONAL_ROLES if score == "bias" else (*POSITIONAL_ROLES[:-1], EVENNESS)
    if not relations:
        return positional
    by_relation = [
        f"syntactic:{relation}:{direction}"
        for relation in relations
        for direction in (TO_GOVERNOR, TO_DEPENDENT)
    ]
    syntactic = ("syntactic", f"syntactic:{TO_DEPENDENT}", *by_relation)
    contrasts = [f"{role}:{BEYOND_OFFSET}" for role in syntactic] if beyond_offset else []
    return (*positional, *syntactic, *contrasts)
