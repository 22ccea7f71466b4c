"""What the card of a model, the README.md in its folder, says of it."""

from __future__ import annotations

import re
from pathlib import Path

_MOST_BYTES = 100_000
_CODE = re.compile(r"[a-z]{2,3}")


def languages_of(source: str) -> list[str]:
    """Return codes of the languages that the card of a model in a folder names; empty if none."""
    try:
        with (Path(source) / "README.md").open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return []
    _, begin, rest = text.partition("---\n")
    found = re.search(r"^languages?:(.*\n(?:[ ]*- .*\n)*)", rest.partition("\n---")[0] + "\n", re.M)
    if not begin or not found:
        return []
    return [one for one in re.split(r"[^a-zA-Z]+", found[1]) if _CODE.fullmatch(one)]
