"""The code blocks of pages, with what they can be run, and the programs that pages name."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md")
SHELL = ("", "bash", "console", "sh")
PROGRAMS = ("headroles", "make", "python", "pip", "git", "zcat", "cd")
PLACEHOLDERS = {"N": "2", "NAME": "importance"}
"""Words of a page that stand for what a user puts there, beside names of files."""
SMALLER = {"192": "16", "36": "6"}
"""Ranks and numbers of heads that pages speak of, and what takes their place in a tiny model."""


@dataclass(frozen=True)
class Block:
    """A code block: its page, the line it begins in, its language and its text."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    def python(self) -> str:
        """Python in which lists that go on end, at the lines where it stands in the page."""
        text = re.sub(r"rank=(\d+)", lambda found: f"rank={SMALLER[found[1]]}", self.text)
        return "\n" * (self.line - 1) + text.replace(", ...]", "]")

    def commands(self) -> Iterator[list[str]]:
        """Commands of a shell, word by word; none in other blocks, such as outputs."""
        if self.language in SHELL:
            for line in re.sub(r"\s*\\\n\s*", " ", self.text).splitlines():
                if words := _words(line.removeprefix("$ ")):
                    yield words


def _words(line: str) -> list[str]:
    """The words of a command; brackets of what may be left out, and what is said of it, are not."""
    command = re.split(r"\s{3,}|\s# ", line.strip())[0]
    if command.split(" ")[0] not in PROGRAMS:
        return []
    command = re.sub(r"\s\[(?!\w+\]\S)([^\]]*)\]", r" \1", command).replace("...", "")
    return [(PLACEHOLDERS | SMALLER).get(word, word) for word in shlex.split(command)]


def pages() -> list[Path]:
    """All pages with blocks of code in them."""
    files = (file for pattern in PAGES for file in sorted(REPOSITORY.glob(pattern)))
    return [file for file in files if blocks_of(file)]


def blocks_of(page: Path) -> list[Block]:
    """The code blocks of a page, but for directives of the site."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [
        Block(page, token.map[0] + 2, token.info.strip(), token.content)
        for token in tokens
        if token.type in ("fence", "code_block") and token.map and not token.info.startswith("{")
    ]


# Studies of the documentation and benchmarks.

OWN = r"(?:headroles|docs\.studies|benchmarks|tests)(?:\.\w+)+"
"""Dotted names of the repository, of modules and of what is in them."""
INLINE = r"`(?:python -m )?((?:docs[./]studies|benchmarks)[./]\w+)(?:\.py)?((?:\s[^`]*)?)`"
"""A program in the text of a page, with its arguments."""


def programs() -> list[str]:
    """All modules of studies and benchmarks, by their names; a package by that of its command."""
    folders = (REPOSITORY / "docs" / "studies", REPOSITORY / "benchmarks")
    files = (file for folder in folders for file in sorted(folder.rglob("*.py")))
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
                with suppress(SyntaxError):  # of a text that is no program
                    yield from names_needed(node.value)


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a program's command line, which printed its help."""
    found, parse = [], argparse.ArgumentParser.parse_args

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
    command = f"python -m {name}"
    for line in re.sub(r"\n {4}", " ", text).splitlines():
        if line == command or line.startswith(f"{command} "):
            # What stands far to the right tells what the command does; of alternatives, the first.
            usage = re.split(r"\s{3,}\S+(?: \S+)*$", line.removeprefix(command))[0]
            usage = re.sub(r"\|\S*|\.\.\.|[\[\]()]", "", usage)
            yield [PLACEHOLDERS.get(word, word) for word in shlex.split(usage)]


def mentioned(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The programs that a page names in its text, each with the flags that stand there."""
    for module, more in re.findall(INLINE, page.read_text(encoding="utf-8")):
        yield module.replace("/", "."), re.findall(r"--[a-z][\w-]*", more)
