"""The directive ``commands``: every command of the app, with the options that it really has.

It reads what ``--help`` reads; for options of a group it adds what functions say more of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from headroles.cli.app import COMMANDS, make_command
from headroles.cli.flags import SECTIONS, help_of, help_record, section_of
from headroles.options import Field, Options, fields_of
from headroles.wording import addressed


class Commands(SphinxDirective):
    """A section for each command, in the order of the list of commands."""

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of all commands where the directive stands."""
        written = "\n".join(
            line for name in COMMANDS for line in describe_command(name, make_command(name))
        )
        return self.parse_text_to_nodes(written, allow_section_headings=True)


def describe_command(name: str, command: Any) -> Iterator[str]:
    """The section of a command, line by line, in Markdown."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(["headroles", name, *command.collect_usage_pieces(context)])
    yield from (f"(command-{name})=", f"## {name}", "", command.help or "", "")
    yield from ("```text", usage, "```", "")
    known = _options()
    sections: dict[str, list[Any]] = {}
    for param in command.get_params(context):
        sections.setdefault(section_of(param), []).append(param)
    for title in sorted(sections, key=SECTIONS.index):
        yield from (f"**{title}**", "")
        for param in sections[title]:
            yield from _param(param, context, known)


def _param(param: Any, context: Any, known: dict[str, Field]) -> Iterator[str]:
    term, text = help_record(param, context) or ("", "")
    field = known.get(param.help)
    more = addressed(" ".join(field.text.partition("\n\n")[2].split())) if field else ""
    said = f"{text.strip()} {more}".strip()
    yield from (f"`{term}`", f": {_plain(said)}", "")


def _plain(text: str) -> str:
    """Text of a help, in which no character is markup."""
    return re.sub(r"([\\*_<\[\]`{}$#])", r"\\\1", text)


def _options() -> dict[str, Field]:
    """All options of all groups, by their help: names mean different things in some commands."""
    found: dict[str, Field] = {}
    groups = Options.__subclasses__()
    while groups:
        group = groups.pop()
        groups += group.__subclasses__()
        found |= {help_of(field): field for field in fields_of(group)}
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
