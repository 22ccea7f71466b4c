"""How results were made: model, corpus, options, versions, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from headroles.record import Record
from headroles.report.page import Section
from headroles.storage import plain
from headroles.wording import printable


def made_how(record: Record) -> Section:
    """The last section of a page."""
    command = record.command
    return Section(
        "How it was made",
        facts=tuple(_facts(record)),
        command=printable(shlex.join(["headroles", *command[1:]])) if command else "",
    )


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    said = {
        **plain(record.models),
        "corpus": plain(getattr(record, "corpus", None)),
        **{
            name: plain(getattr(record, name)) for name in _TOLD if name in record.__struct_fields__
        },
    }
    for name, one in said.items():
        if one and (told := _written(one)):
            yield name, told


def _written(value: Any) -> str:
    """A record as text: names and values, without what is told elsewhere or not given."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _ELSEWHERE and v not in _EMPTY}
        return "; ".join(f"{name}: {_written(one)}" for name, one in kept.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return printable(value)


_TOLD = ("examples", "skipped", "options", "tests", "plan", "versions", "created")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ELSEWHERE = ("warnings", "left_out", "why_left_out")
