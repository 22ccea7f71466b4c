"""What studies tell beside their answers: controls by permutation, documents, lacking roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headroles as hr
from headroles.roles import contrast_of
from headroles.studies.classification.assignment import assign
from headroles.studies.classification.role_table import CONTROLS_IN_WORDS, AssignOptions
from headroles.studies.controls import with_permuted_weights, with_permuted_words
from tests.conftest import CAT, DOG, conllu_sentence, flat, make_bert, make_scores, make_tokenizer


def test_where_no_sentence_has_another_tree(bert_folder: Path) -> None:
    """Sentences of lengths of their own give no arcs of others, under first choices neither."""
    words = ("the", "a", "of", "to", "in")
    trees = [(words[:n], [-1, *[0] * (n - 1)], ["root", *["nsubj"] * (n - 1)]) for n in range(2, 6)]
    table = hr.classify_heads(bert_folder, hr.make_corpus(trees), score="hit", roles="syntactic")
    assert table.roles.frame["mean_trees"].isna().all()
    assert table.roles.frame["mean"].notna().any()


def test_words_are_permuted_and_trees_stay(sample: Path) -> None:
    """The order of a sentence depends on it and on the seed alone."""
    corpus = hr.read_conllu(sample)
    before, after = list(corpus), list(with_permuted_words(corpus, 0))
    assert after[3:4] == list(with_permuted_words(hr.make_corpus(before[3:4]), 0))
    assert after != list(with_permuted_words(corpus, 1))
    assert sum(one.words != other.words for one, other in zip(before, after, strict=True)) > 2
    for one, other in zip(before, after, strict=True):
        assert (one.governors, one.relations) == (other.governors, other.relations)
        pairs = [sorted(zip(own.words, own.upos, strict=True)) for own in (one, other)]
        assert pairs[0] == pairs[1]


def test_weights_are_permuted_within_matrices() -> None:
    model = make_bert()
    after, again, other = (with_permuted_weights(model, seed).state_dict() for seed in (0, 0, 1))
    for name, weights in model.state_dict().items():
        assert torch.equal(after[name].flatten().sort().values, weights.flatten().sort().values)
        assert torch.equal(after[name], again[name])
        is_moved = weights.ndim > 1
        assert torch.equal(after[name], weights) != is_moved
        assert torch.equal(after[name], other[name]) != is_moved


@pytest.mark.parametrize(("n_found", "warned"), [(1, False), (2, False), (3, True), (8, True)])
def test_a_control_that_finds_more_than_a_quarter_is_warned_of(n_found: int, warned: bool) -> None:
    """Of 8 heads with a role of arcs, a control finds some; the page and methods count them."""
    role = "syntactic:nsubj:to_governor"
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, 8, 2))
    of_control = np.where(np.arange(8) < n_found, 9.0, 1.0)[:, None] * [1, 0] + [0, 1.0]
    own, other = (
        make_scores(level + noise, [role, contrast_of(role)]) for level in ([9.0, 1.0], of_control)
    )
    for name in ("words", "trees"):
        words = CONTROLS_IN_WORDS[name]
        table = assign(own, AssignOptions(), {name: other})
        assert table.controls.iloc[0][["heads", name]].tolist() == [8, n_found]
        assert f"with {words}, {n_found} head" in flat(table)
        found = f"Controls find heads with a role of pairs too: {n_found} with {words}, beside 8"
        assert any(found in one for one in table.record.warnings) == warned


SENT_ID = "documents='sent_id', as ids name 2;"
HELP = (SENT_ID, "documents='comment:KEY'", "clusters='none'")
START = "the treebank names no documents (# newdoc): tests take examples as ind"
IDS = "a-1 a-2 a-3 b-1"


def write(folder: Path, ids: str, newdoc: str = "") -> Path:
    """Sentences of these ids, and a letter for the document of each; ``/`` stands between files."""
    for number, names in enumerate(ids.split("/")):
        sentences = [
            conllu_sentence(CAT if k % 2 else DOG, name, f"d{newdoc[k]}" if newdoc else None)
            for k, name in enumerate(names.split())
        ]
        (folder / f"{number}.conllu").write_text("".join(sentences))
    return folder


def classify(corpus: Path, **options: Any) -> hr.RoleTable:
    settings = {"tokenizer": make_tokenizer(), "controls": "none", **options}
    return hr.classify_heads(make_bert(layers=1), corpus, **settings).roles


@pytest.mark.parametrize(
    ("ids", "newdoc", "options", "parts"),
    [
        (IDS, "", {}, (START, *HELP)),
        ("s-1 s-2 s-3", "", {}, (START,)),  # ids that name one document do not help
        (f"{IDS} / c-1 c-2 c-3", "", {}, ("each file counts as one document",)),
        (IDS, "aaab", {}, ()),
        (IDS, "aaaa", {}, ("the corpus is one document",)),
        (IDS, "", {"clusters": "none"}, ()),
    ],
)
def test_a_treebank_without_documents_comes_with_options_that_help(
    tmp_path: Path, ids: str, newdoc: str, options: dict[str, Any], parts: tuple[str, ...]
) -> None:
    table = classify(write(tmp_path, ids, newdoc), roles="local", **options)
    told = "".join(one for one in table.warnings if "document" in one and "fewer" not in one)
    assert bool(told) == bool(parts)
    assert all(part in told for part in parts)
    assert (SENT_ID in told) == (SENT_ID in parts)


@pytest.mark.parametrize(
    ("newdoc", "options", "why"),
    [
        ("abcd", {}, "each of the 4 sentences is a document of its own"),
        ("aabb", {"pairing": "none"}, "with pairing='none' there are no pairs"),
    ],
)
def test_roles_that_are_left_out_come_with_the_reason(
    tmp_path: Path, newdoc: str, options: dict[str, Any], why: str
) -> None:
    table = classify(write(tmp_path, IDS, newdoc), roles="local,block:ratio", **options)
    assert (table.roles, list(table.facts["left_out"])) == (("local",), ["block:ratio"])
    assert "No example has the same sentence: that takes pairs of" in flat(table)
    assert why in flat(table)


def test_contrasts_that_nothing_can_be_compared_with(tmp_path: Path) -> None:
    words = [("dogs", 2, "nsubj"), ("sleep", 0, "root")]
    file = tmp_path / "t.conllu"
    file.write_text(conllu_sentence(words, "a") + conllu_sentence(words, "b"))
    frame = classify(file, roles="syntactic", pairing="none", threshold=0.01).frame
    assert frame["beyond_distance"].isna().all()
    assert set(frame["answer"]) <= {"undecided", "no"}
