"""The promises about files of others: each names tests that exist."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headroles.corpus.tables import _A_SENTENCE
from headroles.drawing.saving import _with_own_ids

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


def find_tests(file: str) -> set[str]:
    """List the tests in a file that pytest would collect."""
    found = set()
    for node in ast.parse((REPOSITORY / file).read_text(encoding="utf-8")).body:
        is_class = isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        for one in node.body if is_class else [node]:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                found.add(f"{file}::{node.name}::{one.name}" if is_class else f"{file}::{one.name}")
    return found


PROMISES = read_promises(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_names_tests_that_exist(promise: str) -> None:
    assert PROMISES[promise]
    for name in PROMISES[promise]:
        assert Path(name.split("::")[0]).name.startswith("test_")
        assert name in find_tests(name.split("::")[0])


def test_every_test_on_the_page_stands_behind_a_promise() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(PROMISES) > 15
    assert text.count("::test_") == sum(map(len, PROMISES.values()))
    assert "docs/security.md" in (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["lazy_loader", "typer", "json"])
def test_modules_of_the_current_folder_are_not_imported(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n")
    command = [sys.executable, "-m", "headroles", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("headroles ")
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("backend", ["", "evil", "module://evil"])
def test_matplotlib_settings_of_the_current_folder_do_not_act(backend: str, tmp_path: Path) -> None:
    """Settings there run TeX, and a damaged file of them ends the import of matplotlib."""
    (tmp_path / "matplotlibrc").write_bytes(b"text.usetex: True\n\xff")
    code = (
        "import os\n"
        "from headroles.cli import console\n"
        "with console.drawing():\n"
        "    import matplotlib as mpl\n"
        "    print(mpl.rcParams['text.usetex'])\n"
        "print(os.getcwd())\n"
    )
    command = [sys.executable, "-P", "-c", code]
    env = {**os.environ, "MPLBACKEND": backend, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", str(tmp_path)]


def test_names_with_a_backslash_are_ids_of_figures() -> None:
    assert _with_own_ids('<a id="k" href="#k">', r"\e") == r'<a id="\e-k" href="#\e-k">'


def test_a_long_cell_is_no_work() -> None:
    """A pattern that tries every place in a word takes the square of its length."""
    assert _A_SENTENCE.search("x" * 2_000_000) is None
    assert _A_SENTENCE.search("four words are enough")
