"""The code blocks of pages: what is Python, what is a command, and with what it can be run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
