"""The commands that look closer at heads: best, describe, examples, tokens, replicate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headroles as hr
from headroles import HeadScores, Replication, RoleTable
from tests.commands import run_well


@pytest.fixture(scope="module")
def hits(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path, sample: Path) -> Path:
    out = tmp_path_factory.mktemp("hits") / "out"
    roles = "syntactic,position:-2,punctuation,rare,confidence,entropy,distance"
    run_well("score", bert_folder, sample, "--score", "hit", "--roles", roles, "--out", out)
    return out


def test_best(hits: Path, tmp_path: Path) -> None:
    shown = run_well("best", hits).stdout
    found = hr.find_best_heads(HeadScores.load(hits))
    in_python = repr(found).replace(".in_full()", "--full").split()  # which says how to go on
    assert shown.split() == in_python[: len(shown.split())]
    printed = json.loads(run_well("best", hits, "--alpha", "0.1", "--json").stdout)
    assert printed["options"]["alpha"] == 0.1
    assert len(printed["rows"]) == len(found)
    run_well("best", hits, "--out", tmp_path / "best")
    assert run_well("export", tmp_path / "best").stdout.startswith("role,half,layer,head")


def test_heads_to_use(hits: Path, bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    """The best heads together, as JSON, and in a sentence of one's own."""
    shown = run_well("best", hits, "--top", 2, "--model", bert_folder).stdout
    assert "The best 2 heads of each role" in shown
    assert "2 heads one head best offset more than one" in " ".join(shown.split())
    out = tmp_path / "roles"
    run_well("classify", bert_folder, sample, "--threshold", 0.5, "--roles", "local", "--out", out)
    heads = json.loads(run_well("export", out, "--view", "heads").stdout)
    expected = RoleTable.load(out).heads_with("local")
    assert heads == {"local": [list(head) for head in expected]}
    assert run_well("export", out, "--view", "heads", "--format", "csv").stdout.startswith("role,")
    asked = ("examples", out, "--head", "0-0", "--role", "local")
    assert "  Old dogs sleep  (tokens)" in run_well(*asked, "--tokens", "Old dogs sleep").stdout


def test_describe_and_examples(hits: Path) -> None:
    shown = run_well("describe", hits).stdout
    assert all(name in shown for name in ("confidence", "entropy:share", "distance"))
    asked = ("--layer", 1, "--head", 2, "--role", "rare", "--n", 3)
    shown = run_well("examples", hits, *asked).stdout
    assert "Head 1-2, the rarest word of the sentence (rare): the hit scores near" in shown
    assert "of its attention, the head gives" in shown
    printed = json.loads(run_well("examples", hits, *asked, "--json").stdout)
    assert len(printed["rows"]) == 3
    assert all("[" in row["text"] for row in printed["rows"])


def test_tokens(bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens"
    shown = run_well("tokens", bert_folder, treebank, "--out", out).stdout
    assert all(group in shown for group in ("classifier", "separators", "punctuation", "other"))
    exported = run_well("export", out, "--view", "summary").stdout
    assert exported.startswith("group,tokens,weights,norms,layer_norms,length,norms_less_weights")
    counts = tmp_path / "counts.tsv"
    counts.write_text("cats\t3\nsleep\t9\n", encoding="utf-8")
    asked = ("--frequencies", counts, "--pairing", "none", "--json")
    again = run_well("tokens", bert_folder, treebank, "--out", out, *asked, "--overwrite")
    printed = json.loads(again.stdout)
    assert printed["facts"]["n_clusters"] == 2
    found = hr.measure_token_groups(
        str(bert_folder), hr.read_conllu(treebank), frequencies=str(counts), pairing="none"
    )
    assert printed["rows"][0]["mean"] == found.frame["mean"][0]


def test_one_model_over_two_corpora(
    bert_folder: Path, treebank: Path, sample: Path, tmp_path: Path
) -> None:
    folders = [tmp_path / "small", tmp_path / "sample"]
    for folder, corpus in zip(folders, (treebank, sample), strict=True):
        run_well("score", bert_folder, corpus, "--out", folder, "--relations", "nsubj")
    out = tmp_path / "out"
    shown = run_well("replicate", *folders, "--threshold", 0.5, "--out", out).stdout
    assert "2 corpora: small, sample" in shown
    table = Replication.load(out)
    assert set(table.frame["at_least"]) == {1, 2}
    assert len(table) == 2 * 3 * 4 * len(set(table.frame["role"]))
    exported = run_well("export", out, "--view", "counts", "--format", "csv").stdout
    assert exported.startswith("role,1,2")
    again = ("replicate", *folders, "--out", out, "--overwrite")
    summary = json.loads(run_well(*again, "--json").stdout)
    assert summary["facts"]["names"] == ["small", "sample"]
    shown = run_well(*again, "--names", "English,German").stdout
    assert "2 corpora: English, German" in shown
