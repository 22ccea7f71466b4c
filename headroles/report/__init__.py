"""Figures and pages of results, by their public names.

Importing this package loads none of them; the stub beside it says where each of them is.
"""

import ast
from importlib import import_module
from pathlib import Path

_HOMES = {
    alias.name: str(line.module)
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
