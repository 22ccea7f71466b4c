"""How messages put things."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[object], most: int = 3) -> str:
    """Names with commas between them; dots for those beyond the first."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")
