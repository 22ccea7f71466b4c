"""Positional heads: attention to the token a fixed number of places on, or to the token itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headroles.errors import UsageError
from headroles.options import Options
from headroles.roles.offsets import Offsets
from headroles.roles.role import Context, Role

GROUP = "position"
USUAL = (-1, 1)
"""The neighbours: the offsets of the group."""


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Those of the usual offsets, and of any others that are asked for."""
    asked = [offset_of(name) for name in getattr(options, "roles", None) or () if is_one(name)]
    yield from map(position, sorted({*USUAL, *asked}))


def itself(options: Options, context: Context) -> Iterator[Role]:
    """The token itself."""
    yield Role("self", "the token itself", sieve=Offsets((0,)))


def position(offset: int) -> Role:
    """Every token looks for the one ``offset`` places on; tokens without one are no queries."""
    many = "token" if abs(offset) == 1 else "tokens"
    words = f"{abs(offset)} {many} {'back' if offset < 0 else 'ahead'}"
    return Role(
        f"{GROUP}:{offset:+d}",
        words,
        in_window=": partly architecture",
        sieve=Offsets((offset,)),
    )


def is_one(name: str) -> bool:
    """Whether a name is that of a position, whatever it says."""
    return name.startswith(f"{GROUP}:")


def refuse_too_far(names: Iterable[str], max_tokens: int) -> None:
    """Raise UsageError for the id of a role that looks beyond the longest input of a model."""
    for name in names:
        if is_one(name) and abs(offset_of(name)) >= max_tokens:
            raise UsageError(
                f"the role {name} looks farther than the model reads ({max_tokens} tokens); choose "
                "an offset below that"
            )


def offset_of(name: str) -> int:
    """The offset that a name such as ``position:-1`` says. Raises UsageError for others."""
    try:
        offset = int(name.removeprefix(f"{GROUP}:"))
    except ValueError:
        offset = 0
    if not offset:
        raise UsageError(
            f"the role {name!r} names no position; it must be like position:-1 or position:+2, "
            "a number of tokens other than 0"
        )
    return offset
