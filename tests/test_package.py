"""The package as a whole: what importing it costs, its public names, and code of users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headroles as hr

HEAVY = (*"torch spacy transformers pandas scipy statsmodels pyarrow matplotlib".split(),)


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


LIGHT = [["--help"], *([name, "--help"] for name in "export report figure show".split())]
OF_TESTS = [
    *([name, "--help"] for name in "classify demo compare collaborate redundancy power".split()),
    ["classify"],
    ["compare"],
]


@pytest.mark.parametrize(
    ("commands", "allowed"), [(LIGHT, set()), (OF_TESTS, {"pandas", "scipy", "pyarrow"})]
)
def test_help_loads_nothing_heavy(commands: list[list[str]], allowed: set[str]) -> None:
    """Commands of tests may load what tables need, but nothing that models or pictures need."""
    code = (
        "from headroles.cli import app\n"
        f"for arguments in {commands!r}:\n"
        "    try: app(arguments)\n"
        "    except SystemExit as end: assert end.code in (0, 2)"
    )
    assert loaded_after(code) <= allowed


@pytest.mark.parametrize("name", hr.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(hr, name).__doc__


def test_public_names_stay() -> None:
    """As docs/versions.md promises: a name that goes is first one of the renamed."""
    promised = (Path(__file__).parent / "public_names.txt").read_text(encoding="utf-8").split()
    assert {*promised} <= {*hr.__all__, *hr._RENAMED}  # type: ignore[attr-defined]


def test_a_renamed_name_works_for_one_version_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(hr._RENAMED, "rank_heads", "find_best_heads")  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"rank_heads is now headroles\.find_best_heads"):
        assert hr.rank_heads is hr.find_best_heads  # type: ignore[attr-defined]


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        hr.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_the_code_of_users_runs(bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
    """As they write it, against the public names and types, which mypy checks."""
    model = str(bert_folder)
    scores: hr.HeadScores = hr.score_heads(model, hr.read_conllu(treebank))
    table: hr.RoleTable = hr.assign_roles(scores, alpha=0.01)
    heads: list[tuple[int, int]] = table.heads_with("syntactic:nsubj:to_governor")
    assert isinstance(heads, list)
    result: hr.Classification = hr.classify_heads(model, hr.read_conllu(treebank))
    result.save(tmp_path / "roles")
    loaded: hr.RoleTable = hr.RoleTable.load(tmp_path / "roles")
    assert loaded.frame["answer"].value_counts().sum() == len(loaded.frame)
    shifts: hr.RoleComparison = hr.compare_roles(scores, scores)
    assert str(shifts)
