"""The promises about files of others: each names tests that exist."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from headroles import HeadScores, assign_roles, find_examples, read_conllu, score_heads
from headroles.corpus.opening import reopen_corpus
from headroles.corpus.tables import _A_SENTENCE
from headroles.corpus.treebanks import is_quick
from headroles.drawing.saving import _with_own_ids
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.models.loading.folders import languages_of, local_folder
from headroles.report import write_report
from headroles.results.stored import save_together

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "security.md"
PROMISES: dict[str, list[str]] = tomllib.loads(
    (REPOSITORY / "tests" / "promises.toml").read_text(encoding="utf-8")
)
"""The promises of the page, each with the tests that hold it."""


def find_tests(file: str) -> set[str]:
    """List the tests in a file that pytest would collect."""
    found = set()
    for node in ast.parse((REPOSITORY / file).read_text(encoding="utf-8")).body:
        is_class = isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        for one in node.body if is_class else [node]:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                found.add(f"{file}::{node.name}::{one.name}" if is_class else f"{file}::{one.name}")
    return found


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_names_tests_that_exist(promise: str) -> None:
    assert PROMISES[promise]
    for name in PROMISES[promise]:
        assert Path(name.split("::")[0]).name.startswith("test_")
        assert name in find_tests(name.split("::")[0])


def test_the_page_has_these_promises() -> None:
    items = re.findall(r"^- (.+(?:\n  .+)*)", PAGE.read_text(encoding="utf-8"), re.M)
    assert {" ".join(item.split()) for item in items} == set(PROMISES)
    assert len(PROMISES) > 15
    assert "docs/security.md" in (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["msgspec", "typer", "json"])
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


# Model folders


@pytest.mark.parametrize("name", ["/dev/zero", "../x.safetensors", "a/b", r"a\b", "c:x", "", 3])
def test_an_index_of_weights_names_files_of_its_folder(name: object, tmp_path: Path) -> None:
    """transformers would open any other."""
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "model-1.safetensors", "y": name}}))
    with pytest.raises(ModelError, match=r"index\.json names .* is no file of its folder; correct"):
        local_folder(tmp_path)


@pytest.mark.parametrize("place", ["model.safetensors", "a/b", "a/b/c/d/tokenizer.json"])
@pytest.mark.parametrize("target", [None, "/dev/zero"])
def test_pipes_and_devices_in_a_model_folder(
    place: str, target: str | None, tmp_path: Path
) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file) if target is None else file.symlink_to(target)
    with pytest.raises(ModelError, match=f"{place} cannot be read.*it is a pipe or a device"):
        local_folder(tmp_path)


def test_a_pipe_in_place_of_the_card_of_a_model(tmp_path: Path) -> None:
    """It may lie beside a model that waits in .headroles, whose files alone are looked at."""
    os.mkfifo(tmp_path / "README.md")
    assert languages_of(str(tmp_path)) == []


# Records


@pytest.fixture
def scores(bert_folder: Path, treebank: Path) -> HeadScores:
    return score_heads(bert_folder, read_conllu(treebank), roles="local")


def _with_corpus(scores: HeadScores, **changed: object) -> HeadScores:
    """Scores whose record says something else of the corpus."""
    corpus = structs.replace(scores.record.corpus, **changed)
    return replace(scores, record=structs.replace(scores.record, corpus=corpus))


def test_a_pattern_of_a_record_is_quick(scores: HeadScores, treebank: Path) -> None:
    sent = _with_corpus(scores, documents_by="sent_id:(a+)+$").record.corpus
    with pytest.raises(CorpusError, match=r"pattern 'sent_id:\(a\+\)\+\$', which may take forever"):
        reopen_corpus([treebank], sent)


@pytest.mark.parametrize(
    ("pattern", "quick"),
    [
        ("^.{6}", True),
        (r"^([nw]\d{3})\d+$", True),
        (r"^(?:x|(?P<n>[+*)]+))?\(+", True),
        ("(a|a)*$", False),
        ("(a+){9}", False),
        ("a?a?a?a?a?aaaaa", False),
        (".*.*.*.*.*x", False),
    ],
)
def test_patterns_that_are_quick(pattern: str, quick: bool) -> None:
    assert is_quick(f"sent_id:{pattern}") == quick
    assert is_quick(f"comment:{pattern}")


def test_standard_input_is_not_read_for_a_record(
    scores: HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").touch()
    with pytest.raises(CorpusError, match=r"standard input was scored, which .* with corpus"):
        find_examples(_with_corpus(scores, files=["-"]), (0, 0), "local")


def test_no_module_is_imported_that_a_record_names_as_a_parser(
    scores: HeadScores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lookalike.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    sent = _with_corpus(scores, parser="lookalike 1")
    refused = "names the pipeline 'lookalike', which is none of spaCy's that is installed"
    with pytest.raises(UsageError, match=refused):
        find_examples(sent, (0, 0), "local", text="Cats eat.")
    tests: Any = {"alpha": 0.4, "clusters": "none", "correction": "none", "threshold": 0.001}
    folder = save_together(tmp_path / "sent", [sent, assign_roles(sent, **tests)])
    with pytest.raises(UsageError, match=refused):
        write_report(folder, text="Cats eat.")
    assert not (tmp_path / "imported").exists()
