"""What goes wrong for users: one line that names the thing, and nothing left behind."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result
from safetensors.torch import load_file, save_file
from transformers import (
    GPT2Config,
)

from headroles import HeadScores
from tests.commands import names, read_terminal, record_in, run
from tests.conftest import CAT, DOG, conllu_sentence, make_bert, make_tokenizer

PLACE = "results/new/out"


def assert_refused(result: Result, named: str, folder: Path, code: int = 1) -> None:
    """One line on standard error that names the thing, and no trace of ``PLACE`` in ``folder``."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert named in result.stderr
    assert "Traceback" not in result.output
    assert not (folder / "results").exists()
    assert not list(folder.glob(".*"))


def assert_refuses(named: str, folder: Path, *arguments: object, code: int = 1) -> None:
    """``classify`` refuses these arguments, as `assert_refused` says."""
    assert_refused(run("classify", *arguments, "--out", folder / PLACE), named, folder, code)


GOOD = conllu_sentence(CAT, "good-1")

CORPORA = {  # one of each way to fail; tests/corpus has all defects
    "empty file": (b"", "bad.conllu is empty"),
    "blank file": (b"\n\n\n", "no sentences in"),
    "not UTF-8": (
        GOOD.encode() + "1\tcaf\u00e9\t".encode("latin-1"),
        "bad.conllu, line 6: byte 0xe9 at column 6 is not UTF-8",
    ),
    "columns": (
        (GOOD + "# sent_id = s-2\n1\tOne\t0\troot\n\n").encode(),
        "bad.conllu, line 7: sentence 's-2' has 4 tab-separated columns instead of 10",
    ),
    "same id": ((GOOD + conllu_sentence(DOG, "good-1")).encode(), "'good-1' has the id of"),
    "escape sequence": (
        conllu_sentence([("A", 1, "obj")], "\x1b[2Jred").encode(),
        r"sentence '\x1b[2Jred' has a cycle",
    ),
    "two schemes": (
        conllu_sentence([("A", 0, "root"), ("b", 1, "dobj"), ("c", 1, "obj")], "s-1").encode(),
        "two label schemes in one corpus",
    ),
}


class TestCorpus:
    @pytest.mark.parametrize("defect", CORPORA)
    def test_defect_is_named(self, tmp_path: Path, defect: str) -> None:
        content, named = CORPORA[defect]
        (tmp_path / "bad.conllu").write_bytes(content)
        # "no-model" is not even looked for: corpora are read first.
        assert_refuses(named, tmp_path, "no-model", tmp_path / "bad.conllu")

    @pytest.mark.parametrize(
        ("place", "named", "code"),
        [
            ("none.conllu", "none.conllu does not exist", 1),
            ("folder", "folder holds no .conllu file", 1),
            ("text.txt", "name a spaCy pipeline with --parser", 2),
            ("x" * 300, "File name too long", 1),
            ("caf\udce9.conllu", r"caf\udce9.conllu does not exist", 1),
        ],
    )
    def test_place_is_named(self, tmp_path: Path, place: str, named: str, code: int) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "text.txt").write_text("Cats sleep.\n")
        assert_refuses(named, tmp_path, "no-model", tmp_path / place, code=code)


def with_half_a_weight_file(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def with_nan(folder: Path) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["encoder.layer.2.attention.self.key.bias"][1] = torch.nan
    save_file(weights, file, metadata={"format": "pt"})


def without_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


MODELS: dict[str, tuple[Callable[[Path], object], str]] = {  # tests/models has all defects
    "half a weight file": (with_half_a_weight_file, "the weights of {} cannot be loaded"),
    "NaN": (with_nan, "{}: the weights encoder.layer.2.attention.self.key.bias hold NaN"),
    "decoder": (GPT2Config().save_pretrained, "gpt2 is a decoder"),
}


class TestModel:
    @pytest.mark.parametrize("defect", MODELS)
    def test_defect_is_named(
        self, bert_folder: Path, treebank: Path, tmp_path: Path, defect: str
    ) -> None:
        spoil, named = MODELS[defect]
        folder = shutil.copytree(bert_folder, tmp_path / "model")
        spoil(folder)
        assert_refuses(named.format(folder), tmp_path, folder, treebank)


class TestTooLong:
    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        """A model for 40 tokens: pairs of short sentences fit, 60 letters of a word do not."""
        folder = tmp_path / "short"
        make_bert(max_position_embeddings=40).save_pretrained(folder)
        make_tokenizer().save_pretrained(folder)
        return folder

    def long_sentence(self, name: str, document: str) -> str:
        return conllu_sentence([("a" * 60, 2, "nsubj"), ("is", 0, "root")], name, document)

    def test_is_skipped_and_counted(self, model: Path, treebank: Path, tmp_path: Path) -> None:
        with treebank.open("a") as file:
            file.write(self.long_sentence("c-1", "c"))
        out = tmp_path / "out"
        result = run("classify", model, treebank, "--out", out, "--full")
        assert result.exit_code == 0, result.output
        assert "3 examples" in result.stdout
        assert "kipped examples longer than the model takes: 1" in result.stdout
        stored = record_in(out)["sources"]["scores"]["corpus"]
        assert stored["skipped"] == {"examples longer than the model takes": 1}
        assert (stored["examples"], stored["sentences"]) == (3, 6)
        assert "c-1" not in HeadScores.load(out).ids

    def test_a_corpus_of_nothing_else_is_refused(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "long.conllu").write_text(self.long_sentence("c-1", "c"))
        named = "no example could be scored: 1 examples longer than the model takes"
        assert_refuses(named, tmp_path, model, tmp_path / "long.conllu")


class TestInterrupt:
    """Ctrl-C, sent when the process itself shows how far it is."""

    def arguments(self, model: Path, corpus: Path, folder: Path) -> list[str]:
        return ["-m", "headroles", "classify", *map(str, (model, corpus, "--out", folder / PLACE))]

    def test_while_scoring(self, bert_folder: Path, sample: Path, tmp_path: Path) -> None:
        text = sample.read_text(encoding="utf-8")
        with (tmp_path / "large.conllu").open("w", encoding="utf-8") as file:
            for copy in range(20):
                file.write(text.replace("# sent_id = ", f"# sent_id = {copy}-"))
        arguments = self.arguments(bert_folder, tmp_path / "large.conllu", tmp_path)
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True
        ) as process:
            os.close(theirs)
            shown = b""
            while not re.search(rb"[1-9]\d*/2800", shown):  # the bar counts: scoring runs
                shown += os.read(ours, 4096)
            process.send_signal(signal.SIGINT)
            stdout = process.communicate()[0]
        shown += read_terminal(ours)
        assert process.returncode == 130
        assert stdout == ""
        assert re.search(rb"interrupted: (\d+ parts? of the work .* --resume|nothing was)", shown)
        assert b"Traceback" not in shown

    def test_while_starting(self, bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
        arguments = self.arguments(bert_folder, treebank, tmp_path)
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", *arguments], stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            while not process.stderr.readline().endswith(" torch._utils\n"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            shown = process.stderr.read()
        assert process.returncode == 130
        assert "interrupted" in shown
        assert "Traceback" not in shown
        assert names(tmp_path) == {treebank.name}
