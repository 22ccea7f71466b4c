"""The reference of functions: a list of all public names, and docstrings as a browser can set them.

The list is made from the package, so that a new public name has its page by being one.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from headroles.options import OPTIONS_FOLLOW

PAGE = Path("docs/reference/functions.rst")
INDENT = 4
NO_SUBSTITUTION = re.compile(r"(?<!`)\|(?!`)")
"""Bars of absolute values, which are markup outside of literals."""
GROUPS = {
    "Scores, roles, comparisons": ("headroles.scoring", "headroles.studies", "headroles.roles"),
    "Corpora and models": ("headroles.corpus", "headroles.models", "headroles.sample"),
    "Removing heads": ("headroles.studies.importance", "headroles.studies.pruning"),
    "Shared projections": ("headroles.studies.sharing",),
    "Figures and reports": ("headroles.report",),
    "Errors": ("headroles.errors",),
}
"""What stands together: names by the longest of these that their module begins with."""
MODULES = ("headroles", "headroles.report", "headroles.errors")
INTRODUCTION = """Functions
=========

``import headroles as hr`` has all names but those of figures (``headroles.report``) and errors
(``headroles.errors``). Functions take their options as keyword arguments; they are those of the
commands. Layers and heads count from 0.
"""


def write_page(app: Sphinx, _: Any) -> None:
    """Write the list of names where autosummary looks for such lists."""
    file, text = Path(app.srcdir) / PAGE, page()
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def page() -> str:
    """All public names under titles, each to get a page of its own."""
    return INTRODUCTION + "".join(
        f"\n{title}\n{'-' * len(title)}\n\n.. autosummary::\n   :toctree: generated\n"
        "   :nosignatures:\n\n" + "".join(f"   {name}\n" for name in found)
        for title, found in _grouped_names().items()
    )


def _grouped_names() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {title: [] for title in GROUPS}
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in _names(module):
            one = getattr(module, name)
            if one not in seen and one.__module__.startswith("headroles"):
                home = one.__module__ if module_name == "headroles" else module_name
                names[_group(home)].append(f"{module_name}.{name}")
            seen.add(one)
    return names


def _names(module: Any) -> list[str]:
    """Public names of a module: functions, then classes, each as listed."""
    listed = getattr(module, "__all__", None) or [
        name for name, one in vars(module).items() if isinstance(one, type)
    ]
    public = [name for name in listed if not name.startswith("_")]
    return sorted(public, key=lambda name: isinstance(getattr(module, name), type))


def _group(home: str) -> str:
    return max(
        ((title, prefix) for title, prefixes in GROUPS.items() for prefix in prefixes),
        key=lambda one: len(one[1]) if home.startswith(one[1]) else 0,
    )[0]


def mend_markup(app: Sphinx, what: str, name: str, obj: Any, _: Any, lines: list[str]) -> None:
    """Make markup of a docstring that is written for ``help()``."""
    if OPTIONS_FOLLOW in lines:
        start = lines.index(OPTIONS_FOLLOW)
        lines[start:] = [f"**{OPTIONS_FOLLOW.rstrip(':')}**", "", *_definitions(lines[start + 1 :])]
    else:
        lines[:] = [NO_SUBSTITUTION.sub(r"\\|", line) for line in lines]
    if what in ("property", "attribute"):
        lines.insert(0, r"\ ")  # nothing; else napoleon takes what precedes a colon for the type


def _definitions(lines: list[str]) -> Iterator[str]:
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            yield ""
        elif depth == 0:
            yield from (f"*{line.rstrip(':')}*", "")
        elif depth == INDENT:
            name, text = line.strip().split(":", 1)
            yield from (f"``{name}``", " " * INDENT + _plain(text.strip()))
        else:
            yield " " * INDENT + _plain(line.strip())


def _plain(text: str) -> str:
    """Text of a help, in which no character is markup."""
    return text.replace("\\", "\\\\").replace("*", r"\*").replace("|", r"\|").replace("`", r"\`")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the list before pages are looked for, and rewrite docstrings before napoleon does."""
    app.connect("config-inited", write_page)
    app.connect("autodoc-process-docstring", mend_markup, priority=400)
    return {"parallel_read_safe": True}
