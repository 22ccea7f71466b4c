"""Studies and benchmarks load, have the command lines that are described, and simulations run."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name

import pytest

from docs.studies.simulations.__main__ import STUDIES
from docs.studies.simulations.claims import rows_of, simulations
from headroles.studies.claims.claims import CLAIMS
from tests.docs.pages import (
    REPOSITORY,
    command_lines,
    mentioned,
    module_of,
    names_needed,
    parser_of,
    programs,
    source_of,
)

WITH_COMMAND_LINE = [one for one in programs() if "\nif __name__ == " in source_of(one)]
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted((REPOSITORY / "docs" / "studies").glob("*.sh")),
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


def test_simulations_of_claims_run() -> None:
    made = {str(row["claim"]).strip("`"): row for row in rows_of(simulations(), 3)}
    assert all({"null hypothesis", "shown", "contradicted"} <= set(row) for row in made.values())
    without = {name for name in CLAIMS if "independently" in CLAIMS[name].rule}
    of_copies = {"special-tokens-little", "frequent-words-little"}
    assert {*made} - {"trends over layers"} == set(CLAIMS) - without - of_copies


@pytest.mark.parametrize(
    "what", "level families answers limit half intervals steps limits replicate changes".split()
)
def test_simulations_of_scores_run(what: str, prepared: Path) -> None:
    folders = [prepared / name for name in ("BEFORE", "AFTER")]
    rows = list(STUDIES[what][0](folders if what == "changes" else folders[:1], 2))
    assert rows
    assert all("sample" in row and len(row) > 1 for row in rows)
