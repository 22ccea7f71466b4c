"""Every code block of the documentation runs, over small things that have the names of the page."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from typer.testing import CliRunner

import headroles as hr
from headroles.cli import app
from tests.docs.conftest import KEPT, SCORED
from tests.docs.pages import REPOSITORY, Block, blocks_of, pages, parser_of


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_blocks_of_a_page_run(page: Path, workspace: Path, pipeline: Path) -> None:
    for name in ("en_core_web_sm", "PIPELINE"):
        (workspace / name).symlink_to(pipeline)
    names = _names(pipeline)
    for block in blocks_of(page):
        if block.is_python:
            with mpl.rc_context({"backend": "agg"}):
                exec(compile(block.python(), str(block.page), "exec"), names)
        for words in block.commands():
            _run_command(block, words, workspace)


def test_the_role_of_negation(
    bert_folder: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """22 pairs in 17 examples of the bundled sample, always one word ahead at best."""
    page = REPOSITORY / "docs" / "writing-roles.md"
    blocks = [block.text.partition("found = ")[0] for block in blocks_of(page) if block.is_python]
    functions = [block for block in blocks if "def " in block]
    assert len(functions) == 3
    (tmp_path / "my_roles.py").write_text("\n\n".join(functions), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_roles", raising=False)
    asked = "my_roles:negation,my_roles:proper_nouns"
    hits = hr.score_heads(bert_folder, hr.read_conllu(sample), roles=asked, score="hit")
    ends = "negation negation:back proper_nouns negation:other_trees negation:back:other_trees"
    assert hits.role_ids == tuple(f"my_roles:{end}" for end in ends.split())
    assert hits.counts[:, 0].sum() == 22
    assert (hits.counts[:, 0] > 0).sum() == 17
    assert hits.counts[:, 2].sum() > 0
    rules = hr.find_best_heads(hits).frame.set_index(["role", "half"])
    for half, rule in ((1, 0.833), (2, 0.917)):
        row = rules.loc[("my_roles:negation", half)]
        assert (row["offset"], round(row["offset_mean"], 3)) == (1, rule)


def _names(pipeline: Path) -> dict[str, Any]:
    """What a page takes for granted in Python."""
    import pandas as pd
    import spacy

    return {
        "hr": hr,
        "nlp": spacy.load(pipeline),
        "texts": ["The dog chased a cat. It ran."],
        "dataset": pd.DataFrame(
            {"text": ["A dog ran."], "premise": ["A dog ran."], "hypothesis": ["It slept."]}
        ),
        "MODEL": "MODEL",
        "roles": hr.RoleTable.load("DIR"),
    }


def _run_command(block: Block, words: list[str], folder: Path) -> None:
    program, *arguments = words
    if program == "headroles":
        _run_headroles(block, arguments, folder)
    elif program == "zcat":
        file, bar, headroles, *arguments = arguments
        assert (bar, headroles) == ("|", "headroles"), block.place
        _run_headroles(block, arguments, folder, given=(folder / file).read_bytes())
    elif program == "make":
        targets = [word for word in arguments if "=" not in word]
        makefile = (REPOSITORY / "Makefile").read_text()
        assert all(re.search(rf"^{one}:", makefile, re.M) for one in targets), block.place
    elif words[:2] == ["python", "-m"] and words[2].startswith(("docs.", "benchmarks.")):
        # Studies and benchmarks take minutes: they are there, and have this command line.
        parser_of(words[2]).parse_args(arguments[2:])
    else:
        assert program in ("pip", "python", "git", "cd"), f"{block.place}: {words}"


def _run_headroles(
    block: Block, arguments: list[str], folder: Path, given: bytes | None = None
) -> None:
    _make_room(arguments, folder)
    result = CliRunner().invoke(app, arguments, input=given)
    assert result.exit_code == 0, f"{block.place}: headroles {arguments}\n{result.output}"


def _make_room(arguments: list[str], folder: Path) -> None:
    """See to it that folders to read hold scores, and that those to write are not there.

    Pages call most folders DIR.
    """
    place = arguments.index("--out") + 1 if "--out" in arguments else 0
    read = [word for k, word in enumerate(arguments) if k != place and word in SCORED]
    for name in read:
        # At the usual threshold, no head of a random model has a role.
        if "--roles-from" in arguments or not (folder / name / "scores.parquet").exists():
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(folder / KEPT / name, folder / name)
    if place and arguments[place] in read:
        arguments[place] += "-out"
    if place and (folder / arguments[place]).is_dir():
        shutil.rmtree(folder / arguments[place])
