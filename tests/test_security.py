"""The promises about files of others: each names tests that exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "security.md"
TEST = re.compile(r"`([\w/]+\.py)((?:::\w+)+)`")


def read_promises(text: str) -> dict[str, list[str]]:
    """Read the promises of a page, the rows of its tables, each with the tests that it names."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {
        row[0]: ["".join(found) for found in TEST.findall(row[-1])]
        for row in rows
        if row[0] not in ("promise", "---")
    }


def find_test(name: str) -> bool:
    """Look for the test of this name among those that pytest would collect."""
    file, *names = name.split("::")
    if not (REPOSITORY / file).is_file() or not Path(file).name.startswith("test_"):
        return False
    body: list[ast.stmt] = ast.parse((REPOSITORY / file).read_text(encoding="utf-8")).body
    for one in names:
        wanted = ast.FunctionDef if one is names[-1] else ast.ClassDef
        node = next((n for n in body if isinstance(n, wanted) and n.name == one), None)
        if node is None or not one.startswith("test_" if wanted is ast.FunctionDef else "Test"):
            return False
        body = node.body
    return True


PROMISES = read_promises(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_names_tests_that_exist(promise: str) -> None:
    assert PROMISES[promise]
    assert [name for name in PROMISES[promise] if not find_test(name)] == []


def test_every_test_on_the_page_stands_behind_a_promise() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(PROMISES) > 15
    assert text.count("::test_") == sum(map(len, PROMISES.values()))
    assert "docs/security.md" in (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_nowhere.py::test_a",
        "tests/test_security.py::test_that_nobody_wrote",
        "tests/test_security.py::find_test",
        "tests/storage/test_hostile.py::TestJournal",
        "tests/storage/test_hostile.py::TestJournal::test_links_in_the_hidden_folder",
    ],
)
def test_other_names_are_noticed(name: str) -> None:
    assert not find_test(name)


@pytest.mark.parametrize("module", ["lazy_loader", "typer", "json"])
def test_modules_of_the_current_folder_are_not_imported(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n")
    command = [sys.executable, "-m", "headroles", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("headroles ")
    assert not (tmp_path / "imported").exists()
