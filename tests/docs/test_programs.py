"""Studies and benchmarks load, and have the command lines that they and the pages describe."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.docs.pages import REPOSITORY
from tests.docs.programs import (
    command_lines,
    has_command_line,
    mentioned,
    module_of,
    names_needed,
    parser_of,
    programs,
    source_of,
)

WITH_COMMAND_LINE = [one for one in programs() if has_command_line(one)]
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("name", programs())
def test_all_that_a_program_needs_is_there(name: str) -> None:
    module_of(name)
    for needed in names_needed(source_of(name)):
        resolve_name(needed)


@pytest.mark.parametrize("name", WITH_COMMAND_LINE)
def test_a_program_tells_how_to_run_it(name: str) -> None:
    lines = list(command_lines(name))
    assert lines, f"the docstring of {name} has no command line"
    parser = parser_of(name)
    for arguments in lines:
        parser.parse_args(arguments)
    named = {word for arguments in lines for word in arguments}
    options = {one.option_strings[-1] for one in parser._actions if one.option_strings}
    assert options - named == {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_programs_and_flags_that_exist(page: Path) -> None:
    for name, flags in mentioned(page):
        assert name in programs()
        if flags:
            assert set(flags) <= set(parser_of(name)._option_string_actions), name


@pytest.mark.parametrize(
    "source",
    [
        "from headroles import no_such_name",
        "def run():\n    from docs.studies.roles import no_such_name",
        "CHILD = '''\nimport sys\nfrom headroles.no_such_module import this\n'''",
        "patch('headroles.scoring.run.NO_SUCH_NAME', 8)",
    ],
)
def test_names_that_are_gone_are_found(source: str) -> None:
    (needed,) = (name for name in names_needed(source) if "such" in name.lower())
    with pytest.raises((AttributeError, ImportError)):
        resolve_name(needed)
