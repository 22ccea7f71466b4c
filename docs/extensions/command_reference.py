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
from typer.main import get_command

from headroles.cli import app as headroles_app
from headroles.cli.flags import help_record
from headroles.options import TITLES, Option, Options, fields_of

ORDER = ("Arguments", *TITLES, "Options")


class Commands(SphinxDirective):
    """A section for each command, in the order of work."""

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of all commands where the directive stands."""
        group: Any = get_command(headroles_app)
        written = "\n".join(
            line for name, one in group.commands.items() for line in describe_command(name, one)
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
        sections.setdefault(_title(param), []).append(param)
    for title in sorted(sections, key=ORDER.index):
        yield from (f"**{title}**", "")
        for param in sections[title]:
            yield from _param(param, context, known)


def _title(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    return param.rich_help_panel or "Options"


def _param(param: Any, context: Any, known: dict[str, Option]) -> Iterator[str]:
    term, text = help_record(param, context) or ("", "")
    option = known.get(param.help)
    said = f"{text.strip()} {option.more}" if option and option.more else text.strip()
    yield from (f"`{term}`", f": {_plain(said)}", "")


def _plain(text: str) -> str:
    """Text of a help, in which no character is markup."""
    return re.sub(r"([\\*_<\[\]`{}$#])", r"\\\1", text)


def _options() -> dict[str, Option]:
    """All options of all groups, by their help: names mean different things in some commands."""
    found: dict[str, Option] = {}
    groups = Options.__subclasses__()
    while groups:
        group = groups.pop()
        groups += group.__subclasses__()
        found |= {one.option.help: one.option for one in fields_of(group)}
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
