"""Commands of studies as users run them: what they write, print, export and read again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from headroles import (
    HeadScores,
    RoleComparison,
    RoleTable,
    assign_roles,
    compare_roles,
)
from headroles.errors import UsageError
from headroles.models.loading.encoder import load_model
from headroles.results.formats import ENDINGS, FORMATS
from headroles.results.stored import save_together
from tests.cli.conftest import some_scores
from tests.commands import contents, follow, names, record_in, run, run_well
from tests.conftest import conllu_sentence
from tests.models.test_attention import make_inputs
from tests.rounding import assert_same_outputs, tolerance
from tests.tasks.conftest import classifier, labelled

__all__ = ["classifier", "labelled"]


TRANSCRIPTS = {
    "examples too long for the model are skipped and counted": """
score BERT TREEBANK LONG --out OUT                   => 3 examples
show OUT --json => "skipped": { "examples longer than the model takes": 1 }
show OUT --full                                      => examples longer than the model takes: 1
""",
    "a collaborative model, whose folder holds a table, is scored and compared": """
collaborate BERT --rank 16 --out OUT/model
classify OUT/model TREEBANK --no-beyond-offset --out OUT/after
assign OUT/after
assign OUT/after --preset published => warning: scores were not made with this preset
show OUT/after --json                                => "preset": "published"
score BERT TREEBANK --no-beyond-offset --out OUT/before
compare OUT/before OUT/after                         => /model over small.conllu
""",
    "a collaborative model is pruned": """
prune MADE --order top --keep 7 --out OUT            => 5 of 12 heads removed (order: top)
ls OUT => low_rank.json low_rank.safetensors config.json tokenizer.json tokenizer_config.json \
    pruning.csv pruning.parquet run.json
""",
    "roles of redundancy": """
classify BERT TREEBANK --no-beyond-offset --out OUT/roles
redundancy BERT --draws 9 --permutations 99 --roles-from OUT/roles --out OUT/redundancy
ls OUT/redundancy                                    => run.json redundancy.csv redundancy.parquet
export OUT/redundancy --view layers                  => layer,heads,head_size,width,head_90%
classify PRUNED TREEBANK --no-beyond-offset --out OUT/pruned
2 redundancy PRUNED --roles-from OUT/pruned          => lacks 5 of its heads
""",
    "other corpora are compared where they meet": """
score TUNED SMALL --relations nsubj --out OUT/part
2 compare BEFORE OUT/part --out OUT/shifts => differ in their relations ... --on-mismatch intersect
compare BEFORE OUT/part --out OUT/shifts --on-mismatch intersect => Dropped: of before
export OUT/shifts --format json                      => syntactic:nsubj:to_dependent
""",
    "best": """
best HITS --alpha 0.1 --json                         => "alpha": 0.1
best HITS --out OUT/best                             => headroles report OUT/best
export OUT/best                                      => role,half,layer,head
best HITS --top 2 --model BERT => The best 2 heads of each role ... 2 heads One head Best offset
""",
    "heads to use, as JSON, and in a sentence of one's own": """
classify BERT SAMPLE --threshold 0.5 --roles local --out OUT
export OUT --view heads                              => {"local": [[
export OUT --view heads --format csv                 => role,
examples OUT --head 0-0 --role local --tokens 'Old dogs sleep' => Old dogs sleep (tokens)
1 export OUT --out OUT/scores.parquet                => is a file of the results in
1 export OUT --out OUT/roles.csv                     => is a file of the results in
1 export OUT --out OUT/run.json                      => is a file of the results in
export OUT --out OUT/table.csv
""",
    "describe and examples": """
describe HITS                                        => confidence ... entropy:share ... distance
examples HITS --head 1-2 --role rare --n 3   => Head 1-2, the rarest word of the
examples HITS --head 1-2 --role rare --n 3   => (rare): the hit scores near
examples HITS --head 1-2 --role rare --n 3   => word a gives word b 0.62
""",
    "tokens": """
tokens BERT TREEBANK --out OUT                       => classifier tokens ... separators
export OUT --view summary => group,tokens,weights,norms,layer_norms,length,norms_less_weights
tokens BERT TREEBANK --frequencies COUNTS --out OUT --overwrite --json => "n_clusters": 2
""",
    "a plan": """
power BEFORE --out OUT => See: headroles report OUT (all tables and ... file) written to OUT
ls OUT                                               => power.csv power.parquet run.json
1 power BEFORE --out OUT                             => is not empty
power BEFORE --out OUT --overwrite
""",
    "one model over two corpora": """
score BERT TREEBANK --relations nsubj --out OUT/small
score BERT SAMPLE --relations nsubj --out OUT/sample
replicate OUT/small OUT/sample --threshold 0.5 --out OUT/both => 2 corpora: small, sample
export OUT/both --view heads --format csv            => layer,head,role,at_least,shown_in
replicate OUT/small OUT/sample --names Enga,Kobon --out OUT/other => 2 corpora: Enga, Kobon
""",
}


@pytest.fixture(scope="module")
def made(classifier: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collaborative classifier, measured on its task."""
    folder = tmp_path_factory.mktemp("task") / "model"
    settings = ("--rank", 16, "--sample-examples", 40)
    run_well("collaborate", classifier, *settings, "--task", labelled, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def pruned(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose last layer has no head left, and the one before it some."""
    folder = tmp_path_factory.mktemp("task") / "pruned"
    run_well("prune", classifier, "--order", "top", "--keep", 7, "--out", folder)
    return folder


def logits(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = load_model(folder)(**make_inputs()).logits
    return found


def test_overwriting_replaces_model_and_table(bert_folder: Path, out: Path) -> None:
    asked = ("collaborate", bert_folder, "--out", out, "--rank")
    printed = json.loads(run_well(*asked, 16, "--method", "per-head", "--json").stdout)
    assert (printed["out"], printed["rows"][0]["rank"]) == (str(out), 16)
    before = contents(out)
    assert "is not empty" in run(*asked, 8).stderr
    assert contents(out) == before
    run_well(*asked, 8, "--overwrite")
    assert load_model(out).encoder.layer[0].attention.self.scores.rank == 8
    assert '"rank": 8' in run_well("export", out, "--format", "json").stdout


def test_frequencies_change_the_numbers_of_tokens(
    bert_folder: Path, treebank: Path, out: Path, places: dict[str, object]
) -> None:
    asked = ("tokens", bert_folder, treebank, "--out", out, "--overwrite", "--json")
    by_corpus, by_file = (
        json.loads(run_well(*asked, *more).stdout)["rows"]
        for more in ((), ("--frequencies", places["COUNTS"]))
    )
    assert by_corpus != by_file


def test_progress_of_collaborate_is_that_of_the_whole_study(
    classifier: Path, labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroles.cli.console.SECONDS_BETWEEN_LINES", 0)
    for more in (["--out", tmp_path / "alone"], ["--task", labelled, "--out", tmp_path / "both"]):
        shown = run("collaborate", classifier, "--rank", 16, *more)
        lines = re.findall(r"collaboration: (\d+) of (\d+) examples", shown.stderr)
        done, total = zip(*(map(int, line) for line in lines), strict=True)
        assert list(done) == sorted(done)
        assert done[-1] == total[-1]
        assert done[0] < total[0] / 4 < done[len(done) // 2]


def test_a_collaborative_model_has_the_loss_and_metrics_that_are_said(
    made: Path, classifier: Path, labelled: Path
) -> None:
    task = record_in(made)["facts"]["task"]
    assert task["examples"] == 8
    assert set(task["before"]) == set(task["after"]) == {"loss", "accuracy", "f1", "matthews"}
    change = task["after"]["loss"] - task["before"]["loss"]
    assert task["loss_change"] == pytest.approx(change)
    assert task["ci_low"] < change < task["ci_high"]
    for folder, when in ((classifier, "before"), (made, "after")):
        out = run_well("ablate", folder, labelled, "--out", made.parent / when, "--json")
        assert json.loads(out.stdout)["facts"]["measured"] == pytest.approx(task[when])


@pytest.mark.parametrize(
    ("rank", "method", "ranks"),
    [
        (32, "shared", [32, 24]),
        (32, "per-head", [32, 24]),
        (16, "shared", [16, 16]),
        (16, "per-head", [16, 12]),
    ],
)
def test_a_rank_is_that_of_whole_layers(
    pruned: Path, rank: int, method: str, ranks: list[int], out: Path
) -> None:
    """At full rank the model is the pruned one; layers without heads have no row."""
    arguments = ("--rank", rank, "--method", method, "--out", out, "--json")
    rows = json.loads(run_well("collaborate", pruned, *arguments).stdout)["rows"]
    assert [(row["layer"], row["rank"]) for row in rows] == list(enumerate(ranks))
    if rank == 32:
        assert max(row["divergence"] for row in rows) < tolerance()
        assert_same_outputs(logits(out), logits(pruned))


# compare.


@pytest.fixture(scope="module")
def results(
    bert_folder: Path, tuned_folder: Path, sample: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Scores of both models; tests must not change them."""
    folder = tmp_path_factory.mktemp("results")
    for name, model in (("before", bert_folder), ("after", tuned_folder)):
        run_well("score", model, sample, "--out", folder / name)
    return folder


def test_compare_is_the_function_of_python_over_stored_scores(results: Path, out: Path) -> None:
    folders, asked = (results / "before", results / "after"), ("--threshold", 1.2)
    printed = run_well("compare", *folders, *asked).stdout
    assert run_well("compare", *folders, *asked, "--out", out).stdout.startswith(printed)
    assert names(out) == {"comparison.csv", "comparison.parquet", "run.json"}
    sets = [HeadScores.load(folder) for folder in folders]
    found, expected = RoleComparison.load(out), compare_roles(*sets, threshold=1.2)
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    assert found.facts == expected.facts
    several = ("compare", *folders, folders[0], "--names", "one, two", "--json")
    rows = pd.DataFrame(json.loads(run_well(*several).stdout)["rows"])
    assert rows["checkpoint"].unique().tolist() == ["one", "two"]
    assert not rows.query("checkpoint == 'two'")["changed"].any()


# best, describe, examples, tokens, replicate.


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path, sample: Path) -> Path:
    out = tmp_path_factory.mktemp("hits") / "out"
    roles = "syntactic,position:-2,punctuation,rare,confidence,entropy,distance"
    run_well("score", bert_folder, sample, "--score", "hit", "--roles", roles, "--out", out)
    return out


@pytest.fixture
def places(
    request: pytest.FixtureRequest, results: Path, hits: Path, tmp_path: Path
) -> dict[str, object]:
    """What words of a transcript in capital letters stand for."""
    counts, too_long = tmp_path / "counts.tsv", tmp_path / "long.conllu"
    too_long.write_text(
        conllu_sentence([("a" * 60, 0, "root")] + [("a" * 60, 1, "dep")] * 9, "c-1", "c")
    )
    counts.write_text("cats\t3\nsleep\t9\n", encoding="utf-8")
    fixtures = {"BERT": "bert_folder", "TUNED": "tuned_folder", "PRUNED": "pruned", "MADE": "made"}
    fixtures |= {"SAMPLE": "sample", "SMALL": "small", "TREEBANK": "treebank", "OUT": "out"}
    made = {name: request.getfixturevalue(fixture) for name, fixture in fixtures.items()}
    return {**made, "BEFORE": results / "before", "HITS": hits, "COUNTS": counts, "LONG": too_long}


@pytest.mark.parametrize("transcript", TRANSCRIPTS.values(), ids=TRANSCRIPTS)
def test_transcripts(transcript: str, places: dict[str, object]) -> None:
    follow(transcript, places)


# export.


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Folders of tables by their kind; tests must not change them."""
    scores, folder = some_scores(), tmp_path_factory.mktemp("results")
    roles = save_together(folder / "roles", [scores, assign_roles(scores)])
    shifts = compare_roles(scores, some_scores(1)).save(folder / "shifts")
    return {RoleTable: roles, RoleComparison: shifts}


@pytest.fixture(scope="module")
def loaded(stored: dict[Any, Path]) -> dict[Any, Any]:
    """The same tables as Python reads them."""
    return {kind: kind.load(folder) for kind, folder in stored.items()}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(
    ("kind", "view"), [(kind, one) for kind in (RoleTable, RoleComparison) for one in kind.views]
)
def test_every_view_in_every_format(
    stored: dict[Any, Path], loaded: dict[Any, Any], tmp_path: Path, kind: Any, view: str, fmt: str
) -> None:
    expected = loaded[kind].export(fmt, view)
    arguments = ("export", stored[kind], "--format", fmt, "--view", view)
    assert run_well(*arguments).stdout_bytes == expected
    assert run_well(*arguments, "--out", tmp_path / "table").stdout == ""
    assert (tmp_path / "table").read_bytes() == expected
    assert names(tmp_path) == {"table"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_chooses_the_format(
    stored: dict[Any, Path], loaded: dict[Any, Any], tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"table{ending}"
    run_well("export", stored[RoleTable], "--out", file)
    assert file.read_bytes() == loaded[RoleTable].export(ENDINGS[ending])


def test_parts_of_the_table(stored: dict[Any, Path], loaded: dict[Any, Any]) -> None:
    whole = loaded[RoleTable]
    assigned = whole.where(only_assigned=True)
    assert assigned.frame["assigned"].all()
    assert (whole.where(beyond="class").frame["class_answer"] == "yes").all()
    with pytest.raises(UsageError, match="'clas' is no step of evidence; pass one of distance, cl"):
        whole.where(beyond="clas")
    for flags, part in (
        ("--role block", whole.where("block")),
        ("--layer 1", whole.where(layer=1)),
        ("--only-assigned", assigned),
        ("--beyond distance", assigned),
        ("--role block --layer 1 --only-assigned", assigned.where("block", 1)),
    ):
        assert 0 < len(part) < len(whole)
        for view in ("long", "wide", "answers", "colocation"):
            found = run_well(
                "export", stored[RoleTable], *flags.split(), "--view", view
            ).stdout_bytes
            assert found == part.export("csv", view)
