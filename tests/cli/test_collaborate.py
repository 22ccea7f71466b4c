"""``headroles collaborate`` from the command line, and its folder in every other command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from headroles.models.loading.encoder import load_model
from tests.commands import names, run, run_well
from tests.conftest import make_tokenizer
from tests.models.families import make_model
from tests.models.test_low_rank import with_vocabulary
from tests.tasks.conftest import classifier, labelled  # noqa: F401

TABLE = {"run.json", "collaboration.csv", "collaboration.parquet"}
MODEL = {"config.json", "low_rank.json", "low_rank.safetensors", "tokenizer.json"}


@pytest.fixture(scope="module")
def collaborative(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collaborate") / "model"
    run_well("collaborate", bert_folder, "--rank", 16, "--out", folder)
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


class TestMaking:
    def test_folder_holds_model_and_table(self, collaborative: Path) -> None:
        assert names(collaborative) >= TABLE | MODEL
        tokenizer = AutoTokenizer.from_pretrained(collaborative)
        assert tokenizer.get_vocab() == make_tokenizer().get_vocab()

    def test_json(self, bert_folder: Path, out: Path) -> None:
        arguments = ("--rank", 16, "--method", "per-head", "--out", out, "--json")
        facts = json.loads(run_well("collaborate", bert_folder, *arguments).stdout)
        assert [layer["rank"] for layer in facts["layers"]] == [16] * 3
        assert facts["whole"]["parameters_after"] < facts["whole"]["parameters_before"]
        assert facts["out"] == str(out)

    def test_nothing_is_replaced_unless_asked_for(
        self, bert_folder: Path, collaborative: Path
    ) -> None:
        before = (collaborative / "low_rank.safetensors").read_bytes()
        result = run("collaborate", bert_folder, "--rank", 8, "--out", collaborative)
        assert result.exit_code == 1
        assert "is not empty" in result.stderr
        assert (collaborative / "low_rank.safetensors").read_bytes() == before

    def test_overwriting_replaces_model_and_table(self, bert_folder: Path, out: Path) -> None:
        for rank in (16, 8):
            run_well("collaborate", bert_folder, "--rank", rank, "--out", out, "--overwrite")
        scores = load_model(out).encoder.layer[0].attention.self.scores
        assert scores.rank == 8
        assert '"rank": 8' in run_well("export", out, "--format", "json").stdout


class TestFolderInEveryCommand:
    def test_classify_and_assign(self, collaborative: Path, treebank: Path, out: Path) -> None:
        run_well("classify", collaborative, treebank, "--no-beyond-offset", "--out", out)
        run_well("assign", out)
        record = json.loads((out / "run.json").read_text())
        assert record["model"]["model"] == str(collaborative)

    def test_compare_with_the_original(
        self, bert_folder: Path, collaborative: Path, treebank: Path, out: Path
    ) -> None:
        """Its folder holds a table too, and is a model all the same."""
        models = ("--models", bert_folder, collaborative)
        arguments = ("--corpus", treebank, "--no-beyond-offset", "--out", out)
        run_well("compare", *models, *arguments)
        assert "shifts.csv" in names(out)

    def test_export(self, collaborative: Path) -> None:
        assert run_well("export", collaborative).stdout.startswith("layer,method,rank,full_rank")

    def test_again(self, collaborative: Path, out: Path) -> None:
        result = run("collaborate", collaborative, "--rank", 8, "--out", out)
        assert result.exit_code == 1
        assert "of low rank already; give the original model" in result.stderr
        assert not out.exists()


class TestReport:
    def test_with_roles_it_is_saved(
        self, bert_folder: Path, treebank: Path, out: Path, tmp_path: Path
    ) -> None:
        classified = tmp_path / "classified"
        run_well("classify", bert_folder, treebank, "--no-beyond-offset", "--out", classified)
        arguments = ("--report", "--draws", 9, "--permutations", 99, "--roles-from", classified)
        run_well("collaborate", bert_folder, *arguments, "--out", out)
        assert names(out) == {"run.json", "redundancy.csv", "redundancy.parquet"}
        layers = run_well("export", out, "--view", "layers").stdout
        assert layers.startswith("layer,heads,head_size,width,head_90%")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a folder for the model with --out"),
        (("--rank", "8"), "name a folder for the model with --out"),
        (("--out", "x"), "give exactly one of --rank and --error"),
        (("--out", "x", "--rank", "8", "--error", "0.1"), "give exactly one of --rank"),
        (("--out", "x", "--rank", "99"), "the rank is 99; a layer has 4 heads of 8"),
        (("--out", "x", "--error", "2"), "--error is 2.0; it must be a number above 0 and below 1"),
        (("--report", "--rank", "8"), "leave out --rank, or --report"),
        (("--report", "--sample", "x.conllu"), "leave out --sample, or --report"),
        (("--report", "--overwrite"), "--overwrite needs a folder"),
        (("--report", "--task", "x.tsv"), "leave out --task, or --report"),
        (("--out", "x", "--rank", "8", "--label-column", "1"), "--label-column without a task"),
        (("--out", "x", "--rank", "8", "--no-header"), "name it with --sample"),
        (("--out", "x", "--rank", "8", "--roles-from", "d"), "pass --report, or leave"),
        (("--out", "x", "--rank", "8", "--parser", "p"), "name it with --sample"),
    ],
)
def test_wrong_usage(
    bert_folder: Path,
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("collaborate", bert_folder, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_family_with_position_terms_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "mpnet"
    with_vocabulary(make_model("mpnet")).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    for arguments in (("--rank", 8, "--out", tmp_path / "out"), ("--report",)):
        result = run("collaborate", folder, *arguments)
        assert result.exit_code == 1
        assert "scores of MPNet have a bias of relative positions" in result.stderr


@pytest.mark.parametrize("with_task", [False, True])
def test_progress_is_that_of_the_whole_study(
    with_task: bool,
    classifier: Path,  # noqa: F811
    labelled: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
    task = ("--task", labelled) if with_task else ()
    shown = run("collaborate", classifier, "--rank", 16, *task, "--out", tmp_path / "out")
    lines = re.findall(r"collaborating: (\d+) of (\d+) steps", shown.stderr)
    done, total = zip(*(map(int, line) for line in lines), strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == total[-1]
    assert done[0] < total[0] / 4 < done[len(done) // 2]
