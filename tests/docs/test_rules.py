"""Rules of attention without a tree: what they look at, and as attention of pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from docs.studies.rules import NAMES, RANDOM, RULES, STRENGTHS, RandomHeads, View, by_rules
from headroles import make_corpus

WORDS = ("She", "paid", "the", "phone", "bill", "and", "left", ".")
CLASSES = ("PRON", "VERB", "DET", "NOUN", "NOUN", "CCONJ", "VERB", "PUNCT")
GOVERNORS = (1, -1, 4, 4, 1, 6, 1, 1)
RELATIONS = ("nsubj", "root", "det", "compound", "obj", "cc", "conj", "punct")
PIECES = (None, 0, 1, 2, 3, 3, 4, 5, 6, 7, None)  # "phone" has two
RULE = {name: rule for rules in RULES.values() for name, rule in rules.items()}


@pytest.fixture(scope="module")
def view() -> View:
    (sentence,) = make_corpus([(WORDS, GOVERNORS, RELATIONS)])
    tagged = replace(sentence, annotations={"upos": CLASSES})
    return View(tagged, PIECES, dict.fromkeys(map(str.casefold, WORDS), 1))


@pytest.mark.parametrize(
    ("rule", "word", "looks_at"),
    [
        ("next word", "the", "phone"),
        ("second previous word", "the", "She"),
        ("nearest verb", "bill", "left"),
        ("nearest verb to the left", "bill", "paid"),
        ("nearest verb", "left", "paid"),
        ("second nearest verb", "bill", "paid"),
        ("last noun of the next run of nouns", "paid", "bill"),
        ("nearest noun to the right", "paid", "phone"),
        ("by class and side", "She", "paid"),
        ("longest word", "the", "phone"),
        ("last verb", "the", "left"),
        ("root", "bill", "paid"),
        ("governor", "the", "bill"),
        ("nearest adjective", "the", ""),
        ("governor", "paid", ""),
    ],
)
def test_a_rule_looks_at_one_word(view: View, rule: str, word: str, looks_at: str) -> None:
    row = RULE[rule](view)[WORDS.index(word)]
    assert [WORDS[k] for k in np.flatnonzero(row)] == [looks_at] * bool(looks_at)


def test_dependents_share_the_attention(view: View) -> None:
    row = RULE["dependents"](view)[1]
    assert [WORDS[k] for k in np.flatnonzero(row)] == ["She", "bill", "left", "."]


def test_rules_make_attention(view: View) -> None:
    attention = by_rules(view)
    assert attention.shape == (len(STRENGTHS), len(NAMES), len(PIECES), len(PIECES))
    assert attention.min() >= 0
    np.testing.assert_allclose(attention.sum(axis=-1), 1)
    the_next, its_rule = (
        attention[0][[name for _, name in NAMES].index(one)] for one in ("next word", "next piece")
    )
    assert the_next[3].tolist() == [0, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 0]  # both pieces of "phone"
    assert its_rule[4].argmax() == 5  # from the first to the second of them
    assert the_next[9].argmax() == 0  # the last word has no next one


def test_random_heads_make_attention(view: View) -> None:
    attention = RandomHeads.drawn(np.random.default_rng(0))(view)
    assert len(attention) == len(RANDOM)
    assert attention.min() >= 0
    np.testing.assert_allclose(attention.sum(axis=-1), 1)
