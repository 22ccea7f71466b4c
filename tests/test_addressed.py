"""Messages name arguments in Python and flags on the command line, from one text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headroles
from headroles.errors import UsageError
from headroles.wording import addressed, speaking_of_flags

PACKAGE = Path(headroles.__file__).parent
COMMAND = re.compile(r"\b(headroles|pip|command) [a-z][^();]*")  # quoted whole, for all readers
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are no docstrings, values in them as x."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.JoinedStr):
            skipped |= {id(one) for one in ast.iter_child_nodes(node)}
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(one.value) if isinstance(one, ast.Constant) else "x" for one in node.values
            )
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in skipped:
            yield node.lineno, str(node.value)


def test_messages_name_options_as_arguments() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{line}: {text}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.parent.name != "cli"
        for line, text in _texts(ast.parse(file.read_text(encoding="utf-8")))
        if " " in text and FLAG.search(COMMAND.sub("", addressed(text)))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("message", "argument", "flag"),
    [
        ("pass `a='b'`", "pass a='b'", "pass --a b"),
        ('or `on="skip"`, x', 'or on="skip", x', "or --on skip, x"),
        ("leave `one_more` out", "leave one_more out", "leave --one-more out"),
        ("pass `header=False`", "pass header=False", "pass --no-header"),
        ("pass `header=True`", "pass header=True", "pass --header"),
        ("pass `n=3`", "pass n=3", "pass --n 3"),
        ("pass `documents='a b'`", "pass documents='a b'", "pass --documents 'a b'"),
        ("pass `written_as='zeroed'`", "pass written_as='zeroed'", "pass --as zeroed"),
        ("see `.in_full()`.", "see .in_full().", "see --full."),
        ("run: headroles x --a b", "run: headroles x --a b", "run: headroles x --a b"),
        ("the word `` and `", "the word `` and `", "the word `` and `"),
    ],
)
def test_one_message_for_two_readers(message: str, argument: str, flag: str) -> None:
    assert (addressed(message), str(UsageError(message))) == (argument, argument)
    with speaking_of_flags():
        assert (addressed(message), str(UsageError(message))) == (flag, flag)
