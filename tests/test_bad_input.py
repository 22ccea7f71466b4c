"""What goes wrong for users: one line that names the thing, and nothing left behind."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import (
    BartConfig,
    GPT2Config,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    WhisperConfig,
    XmodConfig,
)

from headroles import HeadScores
from tests.commands import contents, names, run
from tests.conftest import CAT, DOG, conllu_sentence, make_bert, make_tokenizer

COMMANDS = ("classify", "score")
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


def assert_all_refuse(named: str, folder: Path, *arguments: object, code: int = 1) -> None:
    """All of ``COMMANDS`` refuse these arguments, as `assert_refused` says."""
    for command in COMMANDS:
        assert_refused(run(command, *arguments, "--out", folder / PLACE), named, folder, code)


def row(number: int | str, form: str, head: int | str, relation: str) -> str:
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_\n"


GOOD = conllu_sentence(CAT, "good-1")

CORPORA = {
    "empty file": (b"", "bad.conllu is empty"),
    "blank file": (b"\n\n\n", "no sentences in"),
    "not UTF-8": (
        GOOD.encode() + "1\tcafé\t".encode("latin-1"),
        "bad.conllu, line 6: byte 0xe9 at column 6 is not UTF-8",
    ),
    "columns": (
        (GOOD + "# sent_id = s-2\n1\tOne\t0\troot\n\n").encode(),
        "bad.conllu, line 7: sentence 's-2' has 4 tab-separated columns instead of 10",
    ),
    "spaces for tabs": (
        (GOOD + row(1, "One", 0, "root").replace("\t", " ")).encode(),
        "has 1 tab-separated columns instead of 10",
    ),
    "head out of range": (
        conllu_sentence([("A", 0, "root"), ("b", 9, "obj")], "s-1").encode(),
        "sentence 's-1' word 2 has head 9, but the sentence has 2 words",
    ),
    "no head": (row(1, "One", "_", "root").encode(), "has no head or no relation for word 1"),
    "no number as head": (row(1, "One", "x", "root").encode(), "line 1: sentence 'bad-1'"),
    "cycle": (
        conllu_sentence([("A", 2, "obj"), ("b", 1, "obj"), ("c", 0, "root")], "s-1").encode(),
        "sentence 's-1' has a cycle through words 1 and 2",
    ),
    "no root": (conllu_sentence([("A", 1, "obj")], "s-1").encode(), "cycle through word 1"),
    "two roots": (
        conllu_sentence([("A", 0, "root"), ("b", 0, "root")], "s-1").encode(),
        "sentence 's-1' has 2 roots (words 1, 2)",
    ),
    "numbering": ((row(1, "A", 0, "root") + row(3, "b", 1, "obj")).encode(), "word 2 as 3"),
    "same id": ((GOOD + conllu_sentence(DOG, "good-1")).encode(), "'good-1' has the id of"),
    "large number": (row(1, "One", "9" * 5000, "root").encode(), "is too large"),
    "row of nothing": (
        (GOOD + " #" + "\t_" * 9).encode(),
        "line 6: sentence 'bad-2' cannot be par",
    ),
    "escape sequence": (
        conllu_sentence([("A", 1, "obj")], "\x1b[2Jred").encode(),
        r"sentence '\x1b[2Jred' has a cycle",
    ),
    "no words": ((GOOD + "# sent_id = s-2\n# text = \n\n").encode(), "'s-2' has no words"),
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
        assert_all_refuse(named, tmp_path, "no-model", tmp_path / "bad.conllu")

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
        assert_all_refuse(named, tmp_path, "no-model", tmp_path / place, code=code)

    @pytest.mark.parametrize(
        ("relations", "named"),
        [
            ("nsubjj", "no relation 'nsubjj'; did you mean 'nsubj'?"),
            ("obj,iobj", "no relation 'iobj'; did you mean 'obj'?"),
            ("xyz", "no relation 'xyz'; it has: amod, nsubj, obj, punct"),
            ("all,nsubj", "'all' stands for every relation; give it alone, or give only names"),
            ("nsubj:pass", "--keep-subtypes"),
            ("ALL", "no relation 'ALL'"),
        ],
    )
    def test_relation_is_named(
        self, treebank: Path, tmp_path: Path, relations: str, named: str
    ) -> None:
        assert_all_refuse(named, tmp_path, "no-model", treebank, "--relations", relations)


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def with_pickled_weights(folder: Path) -> None:
    without_weights(folder)
    torch.save(make_bert().state_dict(), folder / "pytorch_model.bin")


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


def with_a_slow_tokenizer(folder: Path) -> None:
    """CTRL's tokenizer has no fast version."""
    without_tokenizer(folder)
    (folder / "vocab.json").write_text('{"<unk>": 0, "a</w>": 1}')
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CTRLTokenizer"}')


def with_broken_json(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert", "hidden_size": "wide"}')


MODELS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no weights": (without_weights, "the weights of {} cannot be loaded"),
    "pickled weights": (with_pickled_weights, "headroles reads model.safetensors"),
    "half a weight file": (with_half_a_weight_file, "the weights of {} cannot be loaded"),
    "NaN": (with_nan, "{}: the weights encoder.layer.2.attention.self.key.bias hold NaN"),
    "no tokenizer": (without_tokenizer, "{} holds no tokenizer"),
    "slow tokenizer": (with_a_slow_tokenizer, "is a slow tokenizer"),
    "broken configuration": (with_broken_json, "the configuration of {} cannot be read"),
    "decoder": (GPT2Config().save_pretrained, "gpt2 is a decoder"),
    "decoder of BART": (BartConfig(is_decoder=True).save_pretrained, "bart is a decoder"),
    "T5 without weights": (
        T5Config().save_pretrained,
        "{} lacks weights of its encoder (encoder.block.0",
    ),
    "encoder of speech": (WhisperConfig().save_pretrained, "whisper is an encoder-decoder whose"),
    "language not named": (XmodConfig().save_pretrained, "set default_language in config.json"),
}


class TestModel:
    @pytest.mark.parametrize("defect", MODELS)
    def test_defect_is_named(
        self, bert_folder: Path, treebank: Path, tmp_path: Path, defect: str
    ) -> None:
        spoil, named = MODELS[defect]
        folder = shutil.copytree(bert_folder, tmp_path / "model")
        spoil(folder)
        assert_all_refuse(named.format(folder), tmp_path, folder, treebank)

    def test_name_is_named(
        self, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        named = "there is no folder no-such-model"
        assert_all_refuse(named, tmp_path, "no-such-model", treebank)


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
        for command in COMMANDS:
            out = tmp_path / command
            full = ["--full"] if command == "classify" else []
            result = run(command, model, treebank, "--out", out, *full)
            assert result.exit_code == 0, result.output
            assert "3 examples" in result.stdout
            assert "kipped examples longer than the model takes: 1" in result.stdout
            stored = json.loads((out / "run.json").read_text())
            assert stored["skipped"] == {"examples longer than the model takes": 1}
            assert (stored["examples"], stored["corpus"]["sentences"]) == (3, 6)
            assert "c-1" not in HeadScores.load(out).ids

    def test_a_corpus_of_nothing_else_is_refused(self, model: Path, tmp_path: Path) -> None:
        (tmp_path / "long.conllu").write_text(self.long_sentence("c-1", "c"))
        named = "no example could be scored: 1 examples longer than the model takes"
        assert_all_refuse(named, tmp_path, model, tmp_path / "long.conllu")


def save_roberta(folder: Path, *, add_prefix_space: bool) -> Path:
    """A byte-level model whose vocabulary has ``cat`` as a word's beginning, and letters."""
    torch.manual_seed(0)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = ["<s>", "<pad>", "</s>", "<unk>", *letters, "Ġc", "at", "Ġcat"]
    backend = Tokenizer(
        BPE(
            {entry: number for number, entry in enumerate(entries)},
            [("Ġ", "c"), ("a", "t"), ("Ġc", "at")],
        )
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=add_prefix_space
    )
    PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=64,
    ).save_pretrained(folder)
    RobertaModel(
        RobertaConfig(
            vocab_size=len(entries),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=66,
            initializer_range=0.5,
            type_vocab_size=1,
        )
    ).save_pretrained(folder)
    return folder


def test_byte_level_words_begin_with_their_space(tmp_path: Path) -> None:
    """Without a space before every word ``cat`` would fall to letters, and score differently."""
    words = [("a", 2, "det"), ("cat", 3, "nsubj"), ("sat", 0, "root"), ("cat", 3, "obj")]
    corpus = tmp_path / "cats.conllu"
    corpus.write_text(conllu_sentence(words, "1") + conllu_sentence(words, "2"))
    found = []
    for prefix in (True, False):
        model = save_roberta(tmp_path / f"roberta-{prefix}", add_prefix_space=prefix)
        result = run("score", model, corpus, "--out", tmp_path / str(prefix))
        assert result.exit_code == 0, result.output
        found.append(HeadScores.load(tmp_path / str(prefix)))
    right, mended = found
    # <s> Ġ a Ġcat Ġ s at Ġcat </s>, then </s> and the second sentence
    assert right.lengths.tolist() == mended.lengths.tolist() == [18]
    np.testing.assert_array_equal(right.values, mended.values)


class TestCompare:
    def assert_refuses(self, named: str, folder: Path, *arguments: object, code: int = 2) -> None:
        result = run("compare", *arguments, "--out", folder / PLACE)
        assert_refused(result, named, folder, code)

    @pytest.fixture
    def scored(self, bert_folder: Path, treebank: Path, tmp_path: Path) -> Path:
        out = tmp_path / "scored"
        assert run("score", bert_folder, treebank, "--out", out).exit_code == 0
        return out

    def test_one_folder(self, scored: Path, tmp_path: Path) -> None:
        named = f"only {scored} is given; name two or more to compare"
        for options in ([], ["--models", "--corpus", "small.conllu"]):
            self.assert_refuses(named, tmp_path, scored, *options)

    def test_a_folder_without_scores(self, bert_folder: Path, scored: Path, tmp_path: Path) -> None:
        compared = tmp_path / "compared"
        assert run("compare", scored, scored, "--out", compared).exit_code == 0
        for other, named in (
            (tmp_path, f"there are no scores in {tmp_path}; name folders that score or classify"),
            (bert_folder, "or pass --models to score models first"),
            (tmp_path / "none", "there are no scores in"),
            (compared, f"{compared} holds no scores (it holds: comparison)"),
        ):
            for sides in ((scored, other), (other, scored), (scored, scored, other)):
                self.assert_refuses(named, tmp_path, *sides, code=1)

    @pytest.mark.parametrize(
        ("found", "instead", "why"),
        [
            ("a-2", "z-2", "'after' lacks it"),
            ("\tDogs\t", "\tCats\t", "its tokens, its tree or its labels differ"),
            ("\t3\tnsubj\t", "\t4\tnsubj\t", "its tokens, its tree or its labels differ"),
        ],
    )
    def test_another_corpus(
        self, bert_folder: Path, tmp_path: Path, found: str, instead: str, why: str
    ) -> None:
        dogs = [("Old", 2, "amod"), ("Dogs", 3, "nsubj"), ("eat", 0, "root"), ("it", 3, "obj")]
        text = conllu_sentence(CAT, "a-1") + conllu_sentence(dogs, "a-2")
        assert text.count(found) == 1
        for name, content in (("one", text), ("other", text.replace(found, instead))):
            corpus = tmp_path / f"{name}.conllu"
            corpus.write_text(content)
            arguments = ("score", bert_folder, corpus, "--pairing", "none", "--out")
            assert run(*arguments, tmp_path / name).exit_code == 0
        sides = (tmp_path / "one", tmp_path / "other")
        for named in (
            f"1 of the 2 of 'before' have no match, first 'a-2' ({why})",
            "--on-mismatch intersect",
        ):
            self.assert_refuses(named, tmp_path, *sides)

    def test_another_pairing(self, bert_folder: Path, scored: Path, tmp_path: Path) -> None:
        arguments = ("score", bert_folder, tmp_path / "small.conllu", "--pairing", "none")
        assert run(*arguments, "--out", tmp_path / "single").exit_code == 0
        named = "differ in their pairing of sentences"
        self.assert_refuses(named, tmp_path, scored, tmp_path / "single")

    def test_another_architecture(self, scored: Path, treebank: Path, tmp_path: Path) -> None:
        deeper = tmp_path / "deeper"
        make_bert(layers=4).save_pretrained(deeper)
        make_tokenizer().save_pretrained(deeper)
        assert run("score", deeper, treebank, "--out", tmp_path / "deep").exit_code == 0
        named = "'before' and 'after' differ in their number of layers: 3 and 4"
        self.assert_refuses(named, tmp_path, scored, tmp_path / "deep")

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (["--corpus", "small.conllu"], "leave out --corpus; or pass --models"),
            (["--window", "2"], "leave out --window; or pass --models"),
            (
                ["--no-beyond-offset", "--no-header", "--text-columns", "0"],
                "leave out --header, --text-columns, --beyond-offset; or",
            ),
            (["--margin", "0"], "the margin is 0.0; it must be a number above 0"),
            (
                ["--test", "wilcoxon", "--clusters", "none"],
                "the test is 'wilcoxon'; it must be one of t,",
            ),
            (["--correction", "max_t"], "--test sign_flip"),
            (["--alpha", "0.5"], "alpha is 0.5"),
            (["--on-mismatch", "ignore"], "on_mismatch is 'ignore'; it must be one of error"),
            (["--names", "a,b"], "names are ['a', 'b'] for 1 score sets"),
            (["--names", "before"], "give each a different name, other than 'before'"),
            (["--names", ","], "names are [] for 1 score sets"),
        ],
    )
    def test_options_of_stored_scores(
        self, scored: Path, tmp_path: Path, options: list[str], named: str
    ) -> None:
        self.assert_refuses(named, tmp_path, scored, scored, *options)

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (["--margin", "0"], "the margin is 0.0"),
            (
                ["--test", "bootstrap_t"],
                "the test is 'bootstrap_t'; it must be one of t, sign_flip",
            ),
            (["--on-mismatch", "ignore"], "on_mismatch is 'ignore'"),
            (["--names", "a,b"], "names are ['a', 'b'] for 1 score sets"),
            (["--names", "../a"], "'../a' cannot be the name of a folder"),
            (["--names", ".."], "'..' cannot be the name of a folder"),
            (["--names", "run.json"], "'run.json' cannot be the name of a folder"),
            (["--score", "share"], "the score is 'share'; it must be one of bias, excess"),
            (["--pairing", "random"], "the pairing is 'random'"),
            (["--text-columns", "0"], "--parser"),
            (["--relations", ","], "--relations names no relation"),
            (["--clusters", "document"], "all examples are of one document"),
        ],
    )
    def test_options_of_models_before_any_is_looked_for(
        self, tmp_path: Path, options: list[str], named: str
    ) -> None:
        corpus = tmp_path / "one.conllu"
        corpus.write_text(GOOD)
        models = ("--models", "no-such-model", "no-other-model", "--corpus", corpus)
        self.assert_refuses(named, tmp_path, *models, *options)

    def test_what_is_no_model(
        self, bert_folder: Path, scored: Path, treebank: Path, tmp_path: Path
    ) -> None:
        for sides, named in (
            ((bert_folder, scored), f"{scored} holds results and no model; to compare stored"),
            ((bert_folder, bert_folder, treebank), f"{treebank} is a file and no model"),
        ):
            self.assert_refuses(named, tmp_path, "--models", *sides, "--corpus", treebank)
        self.assert_refuses("--corpus FILE", tmp_path, "--models", bert_folder, bert_folder)

    def test_name_of_either_model(
        self, bert_folder: Path, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        for sides in ((bert_folder, "no-such-model"), ("no-such-model", bert_folder)):
            models = ("--models", *sides, "--corpus", treebank)
            self.assert_refuses("there is no folder no-such-model", tmp_path, *models, code=1)

    def test_defect_of_the_corpus(self, tmp_path: Path) -> None:
        content, named = CORPORA["cycle"]
        (tmp_path / "bad.conllu").write_bytes(content)
        models = ("--models", "no-model", "no-model", "--corpus", tmp_path / "bad.conllu")
        self.assert_refuses(named, tmp_path, *models, code=1)

    def test_scores_are_never_in_the_way(
        self, bert_folder: Path, scored: Path, treebank: Path, tmp_path: Path
    ) -> None:
        held = contents(scored)
        stored = ("compare", scored, scored)
        models = ("compare", "--models", bert_folder, bert_folder, "--corpus", treebank)
        for arguments in (stored, models):
            for options in ([], ["--overwrite"]):
                result = run(*arguments, "--out", scored, *options)
                named = f"{scored} holds scores, which a comparison would replace"
                assert_refused(result, named, tmp_path)
        assert contents(scored) == held

    def test_a_folder_with_files(self, scored: Path, tmp_path: Path) -> None:
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "mine.txt").touch()
        result = run("compare", scored, scored, "--out", tmp_path / "notes")
        assert_refused(result, "is not empty", tmp_path)
        assert names(tmp_path / "notes") == {"mine.txt"}


class TestInterrupt:
    """Ctrl-C, sent when the process itself shows how far it is."""

    def arguments(self, command: str, model: Path, corpus: Path, folder: Path) -> list[str]:
        return ["-m", "headroles", command, *map(str, (model, corpus, "--out", folder / PLACE))]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_while_scoring(
        self, bert_folder: Path, sample: Path, tmp_path: Path, command: str
    ) -> None:
        text = sample.read_text(encoding="utf-8")
        with (tmp_path / "large.conllu").open("w", encoding="utf-8") as file:
            for copy in range(40):
                file.write(text.replace("# sent_id = ", f"# sent_id = {copy}-"))
        arguments = self.arguments(command, bert_folder, tmp_path / "large.conllu", tmp_path)
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True
        ) as process:
            os.close(theirs)
            shown = b""
            while not re.search(rb"[1-9]\d*/5600", shown):  # the bar counts: scoring runs
                shown += os.read(ours, 4096)
            process.send_signal(signal.SIGINT)
            stdout = process.communicate()[0]
        shown += read_rest(ours)
        assert process.returncode == 130
        assert stdout == ""
        assert re.search(rb"interrupted: (\d+ parts? of the work .* --resume|nothing was)", shown)
        assert b"Traceback" not in shown

    def test_while_starting(self, bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
        arguments = self.arguments("classify", bert_folder, treebank, tmp_path)
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", *arguments], stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            while not process.stderr.readline().endswith(" torch._utils\n"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            shown = process.stderr.read()
        assert process.returncode == 130
        assert "interrupted: nothing was written" in shown
        assert "Traceback" not in shown
        assert names(tmp_path) == {treebank.name}


def read_rest(terminal: int) -> bytes:
    """What is left to read; the other end is closed, which Linux reports as an error."""
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:
        pass
    finally:
        os.close(terminal)
    return shown
