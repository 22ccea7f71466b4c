"""Provenance: the record of a result's origin, stored with every result."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from headroles.wording import printable

_PACKAGES = ("headroles", "torch", "transformers", "tokenizers", "numpy", "scipy", "statsmodels")


def new_provenance(
    *, model: dict[str, Any], corpus: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Start the record of a run; counts are added when it ends."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [printable(word) for word in sys.argv],
        "model": model,
        "corpus": corpus,
        "options": options,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
