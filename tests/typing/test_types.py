"""Types as users see them: stubs say what functions take, and type checkers find mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.typing.make_stubs import ROOT, STUBS, make_stubs

USES = Path(__file__).with_name("uses.py")


def run(*command: str) -> str:
    """Run a type checker on the uses, and return what it writes."""
    checker = [sys.executable, "-m", *command, str(USES.relative_to(ROOT))]
    return subprocess.run(checker, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def lines_by_mypy() -> set[int]:
    return {int(line) for line in re.findall(r"^[^:\n]+:(\d+): error:", run("mypy"), re.M)}


def lines_by_pyright() -> set[int]:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    said = run("pyright", "--pythonpath", sys.executable, "--outputjson")
    if not said.startswith("{"):
        pytest.skip("pyright could not be downloaded, which it is when it runs first")
    errors = [one for one in json.loads(said)["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1 for one in errors}


@pytest.mark.parametrize("find_lines", [lines_by_mypy, lines_by_pyright])
def test_each_mistake_is_found_and_each_right_use_accepted(find_lines: object) -> None:
    lines = USES.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 40
    assert callable(find_lines)
    assert find_lines() == wrong


def test_stubs_are_up_to_date() -> None:
    stale = [str(file) for file, text in make_stubs() if file.read_text("utf-8") != text]
    assert not stale, "run: make stubs"
    assert len(STUBS) == 2
