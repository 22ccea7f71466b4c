"""Positional heads: attention to a token at a fixed offset, or to the token itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headroles.errors import UsageError
from headroles.options import Options
from headroles.roles.offsets import Offsets
from headroles.roles.role import Context, Role

GROUP = "position"
USUAL = (-1, 1)
"""Offsets of the group ``position``: the neighbours."""


def roles(options: Options, context: Context) -> Iterator[Role]:
    """Yield the roles of the usual offsets, and of any others that are asked for."""
    asked = [offset_of(name) for name in getattr(options, "roles", None) or () if is_one(name)]
    yield from map(position, sorted({*USUAL, *asked}))


def itself(options: Options, context: Context) -> Iterator[Role]:
    """Yield the role of the token itself."""
    yield Role("self", "the token itself", sieve=Offsets((0,)))


def position(offset: int) -> Role:
    """Return the role that looks ``offset`` places on; tokens without one are no queries."""
    many = "token" if abs(offset) == 1 else "tokens"
    words = f"{abs(offset)} {many} {'back' if offset < 0 else 'ahead'}"
    return Role(
        f"{GROUP}:{offset:+d}",
        words,
        in_window=": partly architecture",
        sieve=Offsets((offset,)),
    )


def is_one(name: str) -> bool:
    """Tell whether a name has the form of a positional role, even with an invalid offset."""
    return name.startswith(f"{GROUP}:")


def refuse_too_far(names: Iterable[str], max_tokens: int) -> None:
    """Raise UsageError for the id of a role that looks beyond the longest input of a model."""
    for name in names:
        if is_one(name) and abs(offset_of(name)) >= max_tokens:
            raise UsageError(
                f"the role {name} looks farther than the model reads ({max_tokens} tokens); choose "
                "a smaller offset"
            )


def offset_of(name: str) -> int:
    """Return the offset in a name such as ``position:-1``. Raises UsageError for others."""
    try:
        offset = int(name.removeprefix(f"{GROUP}:"))
    except ValueError:
        offset = 0
    if not offset:
        raise UsageError(
            f"the role {name!r} has no valid offset; write position:-1, position:+2 or another "
            "number of tokens other than 0"
        )
    return offset
