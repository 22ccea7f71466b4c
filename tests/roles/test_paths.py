"""Roles of paths of arcs: from a word over its dependent to a dependent of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles import assign_roles, read_conllu, score_heads
from headroles.corpus import Sentence
from headroles.errors import CorpusError, UsageError
from headroles.role_names import arc_in_words
from headroles.roles.syntactic import Arcs, Paths
from tests.rounding import SUMS

#            the  cat  sat  on  the  mat  of  Bob
GOVERNORS = (1, 2, -1, 5, 5, 2, 7, 5)
RELATIONS = ("det", "nsubj", "root", "case", "det", "obl", "case", "nmod:poss")
CLASSES = ("DET", "NOUN", "VERB", "ADP", "DET", "NOUN", "ADP", "PROPN")
SENTENCE = Sentence(
    "s", "d", 0, tuple("the cat sat on the mat of Bob".split()), GOVERNORS, RELATIONS,
    {"upos": CLASSES},
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "links"),
    [
        ("obl+case", [(3, 2)]),  # on <- sat
        ("obl+nmod+case", [(6, 2)]),
        ("obl+nmod", [(7, 2)]),
        ("nmod+case", [(6, 5)]),
        ("obl/content+case", [(3, 2)]),
        ("obl/function+case", []),
        ("obl+nmod/content", [(7, 2)]),
        ("nsubj+case", []),
    ],
)
def test_paths_by_hand(path: str, links: list[tuple[int, int]]) -> None:
    found = Paths(tuple(path.split("+"))).of_sentence(SENTENCE)
    assert [link[:2] for link in found] == links


def test_subtypes_of_paths_are_folded_unless_they_are_kept() -> None:
    assert Paths(("obl", "nmod"), keep_subtypes=True).of_sentence(SENTENCE) == []
    assert len(Paths(("obl", "nmod:poss"), keep_subtypes=True).of_sentence(SENTENCE)) == 1


def test_the_ends_of_a_path_are_no_control_of_it_and_may_be_one_of_an_arc() -> None:
    ends = frozenset({2, 3})
    assert ends in Paths(("obl", "case")).joined_in(SENTENCE)
    assert ends not in Arcs(("obl",)).joined_in(SENTENCE)
    assert frozenset({2, 5}) in Paths(("obl", "case")).joined_in(SENTENCE)


def markers_of_obliques(sentence: Sentence) -> list[tuple[int, int]]:
    """The case markers of obliques, and the word that the oblique depends on, by loops."""
    words = range(len(sentence.words))
    folded = [relation.split(":")[0] for relation in sentence.relations]
    return [
        (marker, sentence.governors[noun])
        for noun in words
        for marker in words
        if folded[noun] == "obl" and folded[marker] == "case" and sentence.governors[marker] == noun
    ]


def test_scores_of_a_path_equal_those_of_a_function_of_ones_own(
    bert_folder: Path, sample: Path
) -> None:
    roles = ["syntactic", markers_of_obliques]
    scores = score_heads(bert_folder, read_conllu(sample), roles=roles, relations="obl+case,amod")
    own = [role.id for role in scores.roles if role.function and role.is_tested]
    for end, function in zip(("to_governor", "to_dependent"), own, strict=True):
        path = scores.column(f"syntactic:obl+case:{end}")
        assert (~np.isnan(path)).any()
        np.testing.assert_allclose(path, scores.column(function), rtol=SUMS, atol=SUMS)
        assert not np.isnan(scores.column(f"syntactic:obl+case:{end}:near")).all()
    # pooled are the arcs alone
    np.testing.assert_array_equal(
        scores.column("syntactic:any:to_governor"), scores.column("syntactic:amod:to_governor")
    )
    frame = assign_roles(scores).frame
    of_path = frame[frame["role"] == "syntactic:obl+case:to_governor"]
    assert of_path["other_arcs"].notna().all()


def test_paths_alone_have_no_pooled_role(bert_folder: Path, sample: Path) -> None:
    scores = score_heads(bert_folder, read_conllu(sample), roles="syntactic", relations="obl+case")
    assert "syntactic:any:to_governor" not in scores.role_ids
    assert assign_roles(scores).heads_with("obl+case") is not None


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("obl+cas", CorpusError, "no relation 'cas'; did you mean 'case'"),
        ("obl+nmod+nmod+case", UsageError, "has 4 relations; give 3 at most"),
        ("obl+", CorpusError, "no relation ''"),
    ],
)
def test_a_path_that_is_none(
    path: str, error: type[Exception], message: str, bert_folder: Path, sample: Path
) -> None:
    with pytest.raises(error, match=message.replace("+", r"\+")):
        score_heads(bert_folder, read_conllu(sample), roles="syntactic", relations=path)


@pytest.mark.parametrize(
    ("path", "end", "words"),
    [
        ("obl+case", "to_governor", "case marker -> verb of its oblique"),
        ("obl+case", "to_dependent", "verb -> case marker of its oblique"),
        ("obl+nmod+case", "to_dependent", "verb -> case marker of its oblique's nominal modifier"),
        ("obl+nmod+case", "to_governor", "case marker -> verb of its nominal modifier's oblique"),
        ("obl+case", "from_governor", "case marker <- verb of its oblique"),
    ],
)
def test_paths_in_words(path: str, end: str, words: str) -> None:
    assert arc_in_words(path, end) == words
