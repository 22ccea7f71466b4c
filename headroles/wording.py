"""How messages put things."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def listed(names: Sequence[object], most: int = 3) -> str:
    """Names with commas between them; dots for those beyond the first."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def not_among(what: str, name: object, known: Sequence[str]) -> str:
    """What to say of a name that is not among those ``known``."""
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}? There is" if near else "there is"
    return f"there is no {what} {name!r}; {hint}: {', '.join(known) or 'none'}"
