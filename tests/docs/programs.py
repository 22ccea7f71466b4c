"""Studies of the documentation and benchmarks: the names that they need, and command lines."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.pages import PLACEHOLDERS, REPOSITORY

FOLDERS = ("docs/studies", "benchmarks")
OWN = r"(?:headroles|docs\.studies|benchmarks|tests)(?:\.\w+)+"
"""Dotted names of the repository, of modules and of what is in them."""
INLINE = r"`(?:python -m )?((?:docs[./]studies|benchmarks)[./]\w+)(?:\.py)?((?:\s[^`]*)?)`"
"""A program in the text of a page, with its arguments."""


def programs() -> list[str]:
    """All modules of studies and benchmarks, by their names; a package by that of its command."""
    files = (file for folder in FOLDERS for file in sorted((REPOSITORY / folder).rglob("*.py")))
    names = (".".join(file.relative_to(REPOSITORY).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__main__") for name in names if not name.endswith("__init__")]


def source_of(name: str) -> str:
    place = REPOSITORY / name.replace(".", "/")
    file = place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
    return file.read_text(encoding="utf-8")


def module_of(name: str) -> ModuleType:
    """Import the module of a program."""
    place = REPOSITORY / name.replace(".", "/")
    return import_module(f"{name}.__main__" if place.is_dir() else name)


def has_command_line(name: str) -> bool:
    return "\nif __name__ == " in source_of(name)


def names_needed(source: str) -> Iterator[str]:
    """Dotted names that a program imports or patches, and those of programs in its strings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(OWN, node.value):
                yield node.value
            elif re.search(r"^(import|from) ", node.value, re.M):
                yield from _names_in(node.value)


def _names_in(text: str) -> Iterator[str]:
    """The names that a text needs if it is a program; none of other texts."""
    try:
        yield from names_needed(text)
    except SyntaxError:
        return


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a program's command line, which printed its help."""
    found = []
    parse = argparse.ArgumentParser.parse_args

    def note(parser: argparse.ArgumentParser) -> None:
        found.append(parser)
        parse(parser, ["--help"])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(argparse.ArgumentParser, "parse_args", note)
        patched.setattr(sys, "argv", [name])
        with pytest.raises(SystemExit, match="0"):
            module_of(name).main()
    (parser,) = found
    return parser


def command_lines(name: str) -> Iterator[list[str]]:
    """The arguments in the command lines that the docstring of a program begins with."""
    text = ast.get_docstring(ast.parse(source_of(name))) or ""
    lines = re.sub(r"\n {4}", " ", text).splitlines()
    command = f"python -m {name}"
    for line in lines:
        if line == command or line.startswith(f"{command} "):
            # What stands far to the right tells what the command does; of alternatives, the first.
            usage = re.split(r"\s{3,}\S+(?: \S+)*$", line.removeprefix(command))[0]
            usage = re.sub(r"\|\S*|\.\.\.|[\[\]()]", "", usage)
            yield [PLACEHOLDERS.get(word, word) for word in shlex.split(usage)]


def mentioned(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The programs that a page names in its text, each with the flags that stand there."""
    for module, more in re.findall(INLINE, page.read_text(encoding="utf-8")):
        yield module.replace("/", "."), re.findall(r"--[a-z][\w-]*", more)
