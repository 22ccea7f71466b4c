"""Nothing from a corpus, a model or a folder reaches a terminal as more than text."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from headroles.wording import printable_lines
from tests.commands import read_terminal, run
from tests.conftest import CAT, DOG, conllu_sentence

WORD = "Ca\x9bts\u202e\x1b]0;x"
NAME = "a\x1b[2J\u2066"


@pytest.fixture(scope="module")
def nasty(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a treebank whose words, ids and documents a terminal would obey."""
    folder = tmp_path_factory.mktemp("nasty")
    words = [(WORD, *CAT[0][1:]), *CAT[1:]]
    blocks = [
        conllu_sentence(words if k % 2 else DOG, f"{NAME}-{k}", newdoc=f"{NAME}{k // 2}")
        for k in range(8)
    ]
    corpus = folder / "corpus.conllu"
    corpus.write_text("".join(blocks), encoding="utf-8")
    printed("classify", bert_folder, corpus, "--out", folder / "out", "--threshold", "0.5")
    return folder / "out"


def printed(*arguments: object) -> str:
    """Return the output of a command, after a check that every line is text."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    for stream in (done.stdout, done.stderr):
        assert printable_lines(stream) == stream
    return done.stdout


HEAD = ("--head", "0-0", "--role", "local")


def test_sentences(nasty: Path) -> None:
    assert r"Ca\x9bts\u202e\x1b]0;x" in printed("examples", nasty, *HEAD)
    found = json.loads(printed("examples", nasty, *HEAD, "--json"))
    assert any(WORD in row["text"] for row in found["rows"])


def test_summaries(nasty: Path) -> None:
    """And pages."""
    for command, *more in (["assign"], ["power"], ["report"], ["assign", "--json"]):
        printed(command, nasty, *more)
    page = (nasty / "report.html").read_text(encoding="utf-8")
    assert printable_lines(page) == page


def test_a_folder_and_words_of_a_command_line(nasty: Path, tmp_path: Path) -> None:
    for words in (
        ["export", tmp_path / NAME],
        ["report", nasty, NAME],
        ["report", nasty, f"--{NAME}"],
        ["report", tmp_path / NAME],
        [f"x{NAME}"],
    ):
        done = run(*words)
        assert done.exit_code in (1, 2)
        assert printable_lines(done.stderr) == done.stderr
        assert r"\x1b" in done.stderr


def test_exported_tables_keep_names_but_on_a_terminal(nasty: Path, tmp_path: Path) -> None:
    out = tmp_path / "sentences"
    printed("examples", nasty, *HEAD, "--out", out)
    piped = run("export", out).stdout
    assert any(WORD in row["text"] for row in csv.DictReader(io.StringIO(piped)))
    command = [sys.executable, "-m", "headroles", "export", str(out)]
    seen = on_terminal(command)
    assert r"Ca\x9bts\u202e\x1b]0;x" in seen
    assert printable_lines(seen) == seen
    assert "Parquet is no text for a terminal" in on_terminal([*command, "--format", "parquet"])


def on_terminal(command: list[str]) -> str:
    """What a command writes to a terminal, without the colours of errors."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.STDOUT):
        os.close(theirs)
        return read_terminal(ours).decode().replace("\r\n", "\n")
