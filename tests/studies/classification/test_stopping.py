"""Scoring that stops when enough is decided."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroles import HeadScores, assign_roles, classify_heads, read_conllu, score_heads
from headroles.corpus import prepared
from headroles.errors import UsageError
from headroles.scoring.blocks import ScoreBlock
from headroles.studies.classification.options import UntilOptions
from headroles.studies.classification.stopping import Stopping, find_units, split_off_last
from headroles.testing.options import TestOptions
from tests.rounding import WEIGHTS, assert_same_sums, sizes_of_scores
from tests.scoring.test_scores import make_block

OPTIONS: dict[str, Any] = {"score": "excess", "relations": "nsubj", "beyond_offset": False}


@pytest.mark.parametrize(("by_document", "expected"), [(True, [3, 2]), (False, [2, 1, 2])])
def test_units_are_documents_or_examples(
    treebank: Path, by_document: bool, expected: list[int]
) -> None:
    with prepared(read_conllu(treebank)) as corpus:
        in_order = [sentence.id for sentence in corpus]
        units = find_units(corpus, "adjacent", by_document)
        assert [len(unit) for unit in units] == expected
        again = replace(corpus, order=tuple(offset for unit in units for offset in unit))
        assert [sentence.id for sentence in again] == in_order
        first = replace(corpus, order=tuple(units[-1]))
        assert [sentence.id for sentence in first] == ["b-1", "b-2"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 20])
def test_a_document_that_was_not_read_to_its_end_is_held_back(size: int) -> None:
    block = make_block(0, 20)  # documents of three examples
    waiting: list[ScoreBlock] = []
    given: list[str] = []
    for start in range(0, 20, size):
        whole, waiting = split_off_last(waiting, block.take(slice(start, start + size)))
        given += [name for part in whole for name in part.ids]
        n_read = min(start + size, 20)
        # the end of a document shows when another one begins
        assert len(given) == (n_read - 1) // 3 * 3
    held_back = [name for part in waiting for name in part.ids]
    assert given + held_back == block.ids


@pytest.fixture
def all_scores(bert_folder: Path, sample: Path) -> HeadScores:
    return score_heads(bert_folder, read_conllu(sample), **OPTIONS)


@pytest.mark.parametrize("until_of", ["corpus", "text"])
def test_it_stops_early_with_scores_of_the_whole_corpus(
    bert_folder: Path, sample: Path, all_scores: HeadScores, until_of: str
) -> None:
    found = classify_heads(
        bert_folder, read_conllu(sample), until=0.5, until_of=until_of, threshold=0.9, **OPTIONS
    )
    scores, stopped = found.scores, found.scores.record.stopped
    assert stopped.decided >= 0.5
    assert stopped.units == {"corpus": all_scores.n_examples, "text": 20}[until_of]
    assert stopped.of_sentences == 140
    places = [all_scores.ids.index(name) for name in scores.ids]
    assert places != sorted(places)
    assert_same_sums(scores.values, all_scores.values[places], sizes_of_scores(scores), WEIGHTS)
    assert scores.record.examples == scores.n_examples
    if until_of == "text":
        read = Counter(all_scores.documents)
        assert all(read[name] == n for name, n in Counter(scores.documents).items())
    assert found.roles.tests.test == "betting"
    assert f"Scoring stopped after {stopped.sentences} of 140 sentences" in repr(found)


def test_stored_scores_get_the_same_answers(
    bert_folder: Path, sample: Path, tmp_path: Path
) -> None:
    found = classify_heads(bert_folder, read_conllu(sample), until=0.5, threshold=0.9, **OPTIONS)
    again = HeadScores.load(found.save(tmp_path / "out"))
    assert assign_roles(again, threshold=0.9).frame.equals(found.roles.frame)
    decided = found.roles.frame["answer"].isin(["yes", "no"]).mean()
    assert decided == pytest.approx(again.record.stopped.decided)
    with pytest.raises(UsageError, match="which only tests by betting allow"):
        assign_roles(again, test="sign_flip")
    with pytest.raises(UsageError, match="in a random order of examples"):
        assign_roles(again, clusters="document")


def test_the_whole_corpus_decides_by_its_means(bert_folder: Path, treebank: Path) -> None:
    """All examples there are were drawn: nothing is left to chance."""
    found = classify_heads(bert_folder, read_conllu(treebank), until=0.999, **OPTIONS)
    frame = found.roles.frame
    assert found.scores.record.stopped.sentences == 5
    many = frame[frame["n"] >= 2]
    assert (many["answer"] == np.where(many["certified_mean"] > 0.1, "yes", "no")).all()


def test_the_same_seed_gives_the_same_order(bert_folder: Path, treebank: Path) -> None:
    orders = [
        Stopping(UntilOptions(until=0.99, shuffle_seed=seed), TestOptions())
        .score(bert_folder, read_conllu(treebank), _score_options())
        .ids
        for seed in (3, 3, 4, 5, 6)
    ]
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1
    assert len({frozenset(order) for order in orders}) == 1


def _score_options() -> Any:
    from headroles.scoring.options import ScoreOptions

    return ScoreOptions(**OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until_of": "text"}, r"until_of says how to stop early"),
        ({"shuffle_seed": 3}, r"shuffle_seed says how to stop early"),
        ({"until": 0.9, "test": "bootstrap_t"}, "only tests by betting are valid"),
        ({"until": 0.9, "preset": "published"}, "only tests by betting are valid"),
        ({"until": 1.5}, "the share to decide is 1.5; it must lie between 0 and 1"),
    ],
)
def test_options_that_do_not_go_together(
    bert_folder: Path, treebank: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        classify_heads(bert_folder, read_conllu(treebank), **options)
