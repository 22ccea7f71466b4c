"""The package as a whole: what importing it costs, and its public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headroles

HEAVY = (
    "torch",
    "spacy",
    "transformers",
    "pandas",
    "scipy",
    "statsmodels",
    "pyarrow",
    "matplotlib",
)


def loaded_after(code: str) -> set[str]:
    """The heavy libraries that a fresh interpreter holds after ``code``."""
    report = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(eval(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import headroles") == set()


def test_figures_and_pages_load_when_they_are_used() -> None:
    assert loaded_after("import headroles.report") == set()
    drawn = loaded_after("from headroles.report import draw_role")
    assert "torch" not in drawn


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["classify", "--help"],
        ["compare", "--help"],
        ["collaborate", "--help"],
        ["redundancy", "--help"],
        ["demo", "--help"],
        ["export", "--help"],
        ["report", "--help"],
        ["figure", "--help"],
        ["classify"],
        ["compare"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "from headroles.cli import app\n"
        f"try: app({arguments!r})\n"
        "except SystemExit as end: assert end.code in (0, 2)"
    )
    assert loaded_after(code) == set()


@pytest.mark.parametrize("name", headroles.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(headroles, name).__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        headroles.no_such_name  # noqa: B018
