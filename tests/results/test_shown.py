"""What results and messages show: text, for readers in Python and on the command line."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headroles
from headroles.errors import CorpusError, UsageError
from headroles.results.shown import Grid, Shown, Warned, as_html, as_text, brief
from headroles.wording import (
    addressed,
    as_given,
    in_one_line,
    json_lines,
    know_options,
    printable,
    printable_lines,
    speaking_of_flags,
)

NASTY = {
    "\x1b[31m": r"\x1b[31m",
    "\x9b2J": r"\x9b2J",
    "\u202egpj\u2069": r"\u202egpj\u2069",
    "\u200fx": r"\u200fx",
    "\u2066x\u2028": r"\u2066x\u2028",
    "\x07\x00\x7f": r"\x07\x00\x7f",
    "a\tb": r"a\tb",
    "\udc80": r"\udc80",
}


@pytest.mark.parametrize(("given", "shown"), NASTY.items())
def test_escapes_stand_for_what_terminals_obey(given: str, shown: str) -> None:
    parts: list[Shown] = [
        f"a {given}\nsecond line",
        Warned(f"w {given}"),
        Grid(("role", f"n{given}"), ((f"cell {given}", f"1{given}"),)),
    ]
    text = as_text(iter(parts))
    assert text.count(shown) == 5
    assert printable(f"{given}\n\r") == rf"{shown}\n\r"
    assert printable(given).encode()
    assert printable_lines(text) == text
    assert f"a {shown}\nsecond line" in text
    page = as_html(iter(parts))
    assert page.count(shown) == 5
    assert printable_lines(page) == page
    assert json_lines(f'{{"a": "{given}"}}\n').isprintable() is False  # the end of the line
    assert printable(json_lines(f'"{given}"')) == json_lines(f'"{given}"')


def test_other_writing_stays() -> None:
    text = "caf\u00e9 \u0627\u0628 \u65e5 \U0001f600 a\u0301 \u200b\xa0x"
    assert as_text(iter([text])) == printable(text) == text


def test_values_and_errors_that_cannot_describe_themselves() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise self

        __repr__ = __str__

    assert in_one_line(Mute()) == "Mute"
    assert as_given(Mute()) == "a value of type Mute"
    assert as_given(10**5000) == "a value of type int"
    assert as_given("x") == "'x'"


@given(
    st.lists(st.integers(1, 120), max_size=2),
    st.lists(st.integers(1, 50).map(lambda n: f"{'so ' * n}. More."), max_size=9),
)
def test_summaries_fit_a_screen(n_rows: list[int], warnings: list[str]) -> None:
    """Sentences stay; warnings keep their first, and the longest grid loses rows, and says so."""
    grids = [Grid(("a", "b"), (("x", "y"),) * n) for n in n_rows]
    parts: list[Shown] = ["one", *grids[:1], "two", *map(Warned, warnings), *grids[1:]]
    lines = as_text(brief(parts)).splitlines()
    assert len(lines) <= 21
    assert {"one", "two"} <= set(lines)
    rows = sum(line.split() == ["x", "y"] for line in lines)
    left = [int(line.split()[0]) for line in lines if "more rows" in line]
    assert rows + sum(left) == sum(n_rows)
    text = " ".join(lines)
    assert all(warning.partition(" More")[0] in text for warning in warnings[:3])


@given(st.text(alphabet=st.characters()))
def test_printable_text_is_one_line_that_stays_as_it_is(text: str) -> None:
    once = printable(text)
    assert printable(once) == once
    assert not any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in once)


def test_errors_are_one_line_of_readable_length() -> None:
    error = CorpusError("first\nsecond \x1b[2J" + "x" * 10_000 + "; the cure")
    assert str(error).startswith("first\\nsecond \\x1b[2Jxxx")
    assert str(error).endswith("; the cure")
    assert len(str(error)) == 1500


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


def test_messages_address_options_that_are_known() -> None:
    """Groups of options are known once they are imported, other arguments always."""
    code = (
        "import importlib, pkgutil, headroles\n"
        "from headroles.wording import _options, speaking_of_flags\n"
        "for module in pkgutil.walk_packages(headroles.__path__, 'headroles.'):\n"
        "    if not module.name.startswith(('headroles.cli', 'headroles.__main__')):\n"
        "        importlib.import_module(module.name)\n"
        "print(*_options)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unknown = [
        f"{file.relative_to(PACKAGE)}:{line}: {name}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, text in _texts(ast.parse(file.read_text(encoding="utf-8")))
        for name in re.findall(r"`(\.?[a-z_]{2,}(?:\(\))?)(?:=[^`]*)?`", text)
        if name not in done.stdout.split()
    ]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize(
    ("message", "argument", "flag"),
    [
        ("pass `test='b'`", "pass test='b'", "pass --test b"),
        ('or `device="skip"`, x', 'or device="skip", x', "or --device skip, x"),
        ("leave `beyond_offset` out", "leave beyond_offset out", "leave --beyond-offset out"),
        ("pass `header=False`", "pass header=False", "pass --no-header"),
        ("pass `header=True`", "pass header=True", "pass --header"),
        ("pass `n=3`", "pass n=3", "pass --n 3"),
        ("pass `documents='a b'`", "pass documents='a b'", "pass --documents 'a b'"),
        ("pass `written_as='zeroed'`", "pass written_as='zeroed'", "pass --as zeroed"),
        ("see `.in_full()`.", "see .in_full().", "see --full."),
        ("run: headroles x --a b", "run: headroles x --a b", "run: headroles x --a b"),
        ("the word `` and `", "the word `` and `", "the word `` and `"),
        *(
            (of_another, of_another, of_another)
            for of_another in ("pass `attn_mask=None` to `scaled_dot`", "the file `x y`.conllu")
        ),
    ],
)
def test_one_message_for_two_readers(message: str, argument: str, flag: str) -> None:
    know_options(["beyond_offset", "device", "documents", "header", "n", "test"])
    assert (addressed(message), str(UsageError(message))) == (argument, argument)
    with speaking_of_flags():
        assert (addressed(message), str(UsageError(message))) == (flag, flag)
