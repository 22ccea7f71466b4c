"""What the site makes from the program, and what its check finds."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import headroles as hr
from headroles.cli.app import COMMANDS, make_command
from headroles.cli.flags import help_record
from headroles.report import __all__ as figures
from tests.docs.pages import REPOSITORY

pytest.importorskip("sphinx")

HTML = '<html><body id="here">{}</body></html>'


def extension(name: str) -> ModuleType:
    """A module of docs/extensions, where Sphinx alone looks otherwise."""
    sys.path.insert(0, str(REPOSITORY / "docs" / "extensions"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def test_reference_has_every_option_of_every_command_and_says_more_than_help() -> None:
    made = extension("command_reference")
    for name in COMMANDS:
        command = make_command(name)
        text = "\n".join(made.describe_command(name, command))
        context = command.make_context(name, [], resilient_parsing=True)
        for param in command.get_params(context):
            assert f"`{help_record(param, context)[0]}`" in text
    text = "\n".join(made.describe_command("classify", make_command("classify")))
    assert "excess is 0 for uniform attention and 1 where" in text


def test_reference_has_every_public_name_and_options_as_definitions() -> None:
    made = extension("function_reference")
    listed = made.page()
    for name in hr.__all__:
        assert f"   headroles.{name}\n" in listed
    for name in figures:
        assert f"   headroles.report.{name}\n" in listed
    lines = (hr.classify_heads.__doc__ or "").splitlines()
    made.mend_markup(None, "function", "", None, None, lines)
    at = lines.index("``window``")
    assert lines[at + 1] == "    Reach of the local sieve, in tokens."


def test_every_figure_is_in_the_gallery_or_in_a_worked_example() -> None:
    pages = [REPOSITORY / "docs" / "gallery.md", *(REPOSITORY / "notebooks").glob("*.ipynb")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    for name in figures:
        assert not name.startswith("draw_") or f"{name}(" in shown, name


LINKS = '<a href="b.html#here"><a href="#here"><a href="https://x.org"><img src="data:,x">'


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ('<a href="b.html#there">', ["links to b.html#there; the page has no such place"]),
        ('<a href="c.html">', ["links to c.html, which is not there"]),
        ('<img src="no.svg">', ["loads no.svg, which is not there"]),
        ('<script src="https://cdn.example/x.js"></script>', ["loads https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', ["loads //cdn.example/x.css"]),
        (LINKS, []),
    ],
)
def test_faults_of_a_site_are_found(tmp_path: Path, body: str, faults: list[str]) -> None:
    (tmp_path / "b.html").write_text(HTML.format(""))
    (tmp_path / "a.html").write_text(HTML.format(body))
    assert list(extension("site_check").faults_of(tmp_path / "a.html")) == faults
