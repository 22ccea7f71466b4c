"""Contrasts with words of the same class: worked by hand, and for heads that know no tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from headroles.corpus import Sentence
from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.roles import RoleOptions
from headroles.roles.word_classes import classes_in
from tests.reference import Tokens
from tests.roles.examples import (
    ROLES,
    S,
    examples,
    make_example,
    roles_of,
    score_of,
    scores_by_role,
    tokens_of,
)
from tests.rounding import tolerance

# verb 0, noun 1, verb 2, noun 3, verb 4: noun 1 depends on verb 4, and noun 3 on verb 2
CLASSES = ["VERB", "NOUN", "VERB", "NOUN", "VERB"]
EXAMPLE = make_example(
    [S, 0, 0, 0, 0, 0, S],
    None,
    [4, 4, 4, 2, -1],
    {1: "r0"} | dict.fromkeys((0, 2, 3), "r1"),
    CLASSES,
)
ROLE = "syntactic:r0:to_governor"


@pytest.mark.parametrize(
    ("weights", "near", "back", "between"),
    [
        ({(1, 4): 0.5}, 3.5, 3.5, 3.5),
        # verb 0 is as near on the other side: it competes, and is not between
        ({(1, 4): 0.5, (1, 0): 0.4}, 2.1, 3.5, 3.5),
        ({(1, 4): 0.5, (1, 2): 0.4}, 2.1, 3.5, 0.7),
        # noun 3 gives the verb as much as the noun that depends on it
        ({(1, 4): 0.5, (3, 4): 0.5}, 3.5, 0.0, 3.5),
        # words of other classes, and those that arcs join, do not compete
        ({(1, 4): 0.5, (1, 3): 0.4, (2, 4): 0.9}, 3.5, 3.5, 3.5),
    ],
)
def test_by_hand(
    weights: dict[tuple[int, int], float], near: float, back: float, between: float
) -> None:
    attention = np.zeros((1, 1, 7, 7))
    for (query, key), weight in weights.items():
        attention[0, 0, query + 1, key + 1] = weight
    attention[..., 0] = 1 - attention.sum(-1)
    values = scores_by_role(attention, EXAMPLE)
    found = [values[f"{ROLE}:{contrast}"] for contrast in ("near", "near:back", "between")]
    assert found == pytest.approx([near, back, between], abs=tolerance())


def nearest(tokens: Tokens, query: int, side: int) -> list[int]:
    """The nearest verbs of the sentence to the left (-1), to the right (1), or on both sides."""
    verbs = [
        k
        for k, own in enumerate(tokens.classes)
        if own == "VERB" and k != query and tokens.sentences[k] == tokens.sentences[query]
        if not side or (k - query) * side > 0
    ]
    closest = min((abs(k - query) for k in verbs), default=0)
    return [k for k in verbs if abs(k - query) == closest]


@pytest.mark.numbers
@pytest.mark.parametrize(("side", "contrast"), [(0, "near"), (-1, "between"), (1, "between")])
@given(example=examples(min_words=3))
@settings(deadline=None, max_examples=40)
def test_the_nearest_of_a_class_has_no_positive_contrast(
    example: EncodedExample, side: int, contrast: str
) -> None:
    """A head that looks at the nearest verb may find the governor, but never past another verb."""
    tokens = tokens_of(example)
    attention = np.zeros((1, 1, tokens.n, tokens.n))
    for i, word in enumerate(tokens.words):
        if word >= 0:
            pieces = [j for k in nearest(tokens, word, side) for j in tokens.pieces(k)]
            attention[0, 0, i, pieces] = 1 / max(1, len(pieces))
    values = score_of(attention, [example])[0, 0]
    places = [k for k, role in enumerate(ROLES) if role.endswith(f"governor:{contrast}")]
    # links that arcs join to several words of a class have partners that do not compete
    joined = any(
        tokens.governors[k] == word or tokens.governors[word] == k
        for word in range(len(tokens.classes))
        for k in nearest(tokens, word, side)
        if tokens.governors[word] != k
    )
    assert joined or not (values[places] > tolerance()).any()


def sentence(**annotations: tuple[str, ...]) -> Sentence:
    return Sentence("s", "d", 0, ("Ann", "sees", "ann"), (1, -1, 1), ("x",) * 3, annotations)


@pytest.mark.parametrize(
    ("annotations", "source", "classes"),
    [
        ({"upos": ("PROPN", "VERB", "NOUN")}, "upos", ["NOUN", "VERB", "NOUN"]),
        ({"upos": ("PROPN", "VERB", "_")}, "upos", ["NOUN", "VERB", "_ ann"]),
        ({}, "upos", ["_ ann", "_ sees", "_ ann"]),
        ({"xpos": ("NNP", "VBZ", "NN")}, "xpos", ["NNP", "VBZ", "NN"]),
        (
            {"feats": ("Case=Nom|Number=Sing", "_", "Case=Acc")},
            "feats:Case",
            ["Nom", "_ sees", "Acc"],
        ),
        ({"misc": ("Kind=a", "Kind=b", "_")}, "misc:Kind", ["a", "b", "_ ann"]),
    ],
)
def test_classes_of_words(
    annotations: dict[str, tuple[str, ...]], source: str, classes: list[str]
) -> None:
    assert classes_in(sentence(**annotations), source) == classes


@pytest.mark.parametrize("source", ["pos", "feats", "misc:", ""])
def test_what_is_no_source_of_classes(source: str) -> None:
    with pytest.raises(UsageError, match=r"no source of classes of words; pass upos, xpos"):
        RoleOptions(classes=source)


def test_classes_need_contrasts() -> None:
    with pytest.raises(UsageError, match="classes has no effect without contrasts"):
        RoleOptions(classes="xpos", beyond_offset=False)


def test_other_classes_are_another_contrast() -> None:
    by_role = {role.id: role for role in roles_of(classes="xpos")}
    assert by_role[f"{ROLE}:near"].meaning["classes"] == "xpos"
    assert "classes" not in by_role[f"{ROLE}:beyond_offset"].meaning
    assert by_role[f"{ROLE}:near"] != {role.id: role for role in roles_of()}[f"{ROLE}:near"]
