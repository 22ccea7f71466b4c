"""Local heads: attention to nearby tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option
from headroles.presets import PresetOptions
from headroles.roles.offsets import Offsets
from headroles.roles.role import Context, Role


@dataclass(frozen=True, kw_only=True)
class LocalOptions(PresetOptions):
    """Options of the local role."""

    title: ClassVar[str] = "Roles"

    window: Annotated[
        int, Option("Reach of the local sieve, in tokens.", words="the window", least=0)
    ] = 2


def roles(options: LocalOptions, context: Context) -> Iterator[Role]:
    """Yield the local role with the chosen window."""
    yield local(options.window, options.is_published)


def local(window: int, published_edge: bool = False) -> Role:
    """Return the role whose tokens look for tokens at most ``window`` away, themselves included.

    ``published_edge`` takes the size of the window as in the released notebooks, which is one too
    large for the last ``window`` tokens.
    """
    return Role(
        id="local",
        words=f"tokens at most {window} positions away",
        meaning={"window": window, "published_edge": published_edge},
        in_window=": partly architecture",
        sieve=Offsets(tuple(range(-window, window + 1)), published_edge),
    )
