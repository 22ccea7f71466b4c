"""Trees of a parser beside gold trees: the same words, and answers that differ."""

from __future__ import annotations

import pandas as pd
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import headroles as hr
from docs.studies.parsed import by_relation, different, parsed_again
from headroles.corpus import Sentence


@Language.component("chain")  # type: ignore[misc]
def chain(doc: Doc) -> Doc:
    """Make each word the object of the next one, and the last one the root."""
    for token in doc:
        is_last = token.i + 1 == len(doc)
        token.head, token.dep_ = (token, "ROOT") if is_last else (doc[token.i + 1], "dobj")
    return doc


def test_a_parser_gets_the_words_and_documents_of_the_treebank() -> None:
    gold = [*hr.read_conllu(hr.sample_treebank())][:12]
    pipeline = spacy.blank("en")
    pipeline.add_pipe("chain")
    parsed = [*parsed_again(gold, pipeline)]
    for before, after in zip(gold, parsed, strict=True):
        assert (before.words, before.document) == (after.words, after.document)
        assert after.spaces[:-1] == before.spaces[:-1]
        assert after.governors == (*range(1, len(after.words)), -1)
    assert {one.document: one.position for one in parsed} == {
        one.document: one.position for one in gold
    }


def test_arcs_count_by_either_name() -> None:
    words = ("dogs", "chase", "old", "cats")
    gold = Sentence("1", "a", 0, words, (1, -1, 3, 1), ("nsubj", "root", "amod", "obj"))
    parsed = Sentence("1", "a", 0, words, (1, -1, 3, 1), ("nsubj:pass", "root", "dobj", "dobj"))
    rows = {row["relation"]: row for row in by_relation([gold], [parsed])}
    assert rows["nsubj"] == {"relation": "nsubj", "gold": 1, "parsed": 1, "both": 1}
    assert rows["obj"] == {"relation": "obj", "gold": 1, "parsed": 2, "both": 1}
    assert rows["amod"] == {"relation": "amod", "gold": 1, "parsed": 0, "both": 0}


def test_answers_that_differ_are_counted() -> None:
    keys = pd.MultiIndex.from_product([[0], range(5), ["role"]])
    first = pd.Series(["yes", "yes", "no", "undecided", "yes"], index=keys)
    second = pd.Series(["yes", "no", "no", "yes", "undecided"], index=keys)
    assert different(first, second) == {
        "answers": 5,
        "different": 3,
        "yes with either, with both": "4, 1",
        "opposite": 1,
    }
