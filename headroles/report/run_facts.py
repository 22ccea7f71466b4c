"""How results were made: model, corpus, options, versions, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from headroles.report.page import Section
from headroles.wording import printable


def made_how(provenance: dict[str, Any]) -> Section:
    """The last section of a page."""
    command = provenance.get("command") or []
    return Section(
        "How it was made",
        facts=tuple(_facts(provenance)),
        command=printable(shlex.join(["headroles", *map(str, command[1:])])) if command else "",
    )


def _facts(provenance: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if sets := provenance.get("sets"):
        for name, one in sets.items():
            yield name, _written(one.get("model") or {})
    elif model := provenance.get("model"):
        yield "model", _written(model)
    named = ("corpus", "examples", "skipped", "options", "tests", "plan", "versions", "created")
    for name in named:
        if provenance.get(name) not in (None, {}, []):
            yield name, _written(provenance[name])


def _written(value: Any) -> str:
    """A record as text: names and values, without what is told elsewhere or not given."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _ELSEWHERE and v not in (None, [], {})}
        return "; ".join(f"{name}: {_written(one)}" for name, one in kept.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return printable(value)


_ELSEWHERE = ("warnings", "left_out", "why_left_out")
