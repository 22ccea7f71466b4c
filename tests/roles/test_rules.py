"""Rules that first choices are compared with: by hand, and by loops over words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from headroles.corpus import Sentence
from headroles.encoding import EncodedExample
from headroles.reach import EVERYTHING, Reach
from headroles.roles import (
    OFFSETS,
    SCORES,
    ClassRules,
    Nearest,
    PaddedBatch,
    Role,
    RoleOptions,
    Scope,
    choose_roles,
    classes_of_rules,
    nearest_words,
    with_class_rules,
)
from headroles.roles.rules import N_CLASSES, SIDES
from tests.reference import Asked, Tokens
from tests.roles.examples import (
    RELATIONS,
    S,
    examples,
    make_example,
    reaches,
    read_from,
    tokens_of,
)

CLASSES = ("VERB", "NOUN")


def compared(*classes: str, **options: Any) -> tuple[Role, ...]:
    """All roles, those of pairs compared with the nearest words of some classes."""
    roles = choose_roles(RoleOptions(**options), RELATIONS, SCORES["hit"])
    return tuple(
        replace(role, sieve=replace(role.sieve, rules=ClassRules(classes)))  # type: ignore[type-var]
        if role.id.startswith("syntactic")
        else role
        for role in roles
    )


def hits_in(
    example: EncodedExample, roles: tuple[Role, ...], reach: Reach = EVERYTHING
) -> tuple[dict[str, dict[str, int]], dict[str, dict[int, float]]]:
    """By role: how many arcs each class rule finds, and the share that each offset finds."""
    readout = read_from(roles, Scope(PaddedBatch([example]), reach, SCORES["hit"]))
    assert readout.class_hits is not None
    assert readout.offset_shares is not None
    by_class, by_offset = {}, {}
    for k, role in enumerate(roles):
        if role.relation:
            rules: Any = role.sieve
            counts = readout.class_hits[0, k].tolist()
            by_class[role.id] = dict(zip(map(str, rules.rules.rules), counts, strict=False))
            by_offset[role.id] = dict(zip(OFFSETS, readout.offset_shares[0, k], strict=True))
    return by_class, by_offset


def test_by_hand() -> None:
    """Of "dogs that cats chase bark", nouns 0 and 2 are subjects of verbs 4 and 3."""
    classes = ["NOUN", "PRON", "NOUN", "VERB", "VERB"]
    relations = {0: "r0", 2: "r0"}
    example = make_example([S, 0, 0, 0, 0, 0, S], None, [4, 3, 3, 0, -1], relations, classes)
    found, _ = hits_in(example, compared(*CLASSES))
    to_verbs = {name: n for name, n in found["syntactic:r0:to_governor"].items() if n}
    # the nearest verb of noun 0 is verb 3, on the right; that of noun 2 is the right one
    assert to_verbs == {"nearest verb to the right": 1, "nearest verb on either side": 1}
    to_nouns = {name: n for name, n in found["syntactic:r0:to_dependent"].items() if n}
    # noun 2 is the nearest of both verbs
    assert to_nouns == {"nearest noun to the left": 1, "nearest noun on either side": 1}


def test_of_two_words_as_near_the_left_one_is_found() -> None:
    for governor, n in ((0, 1), (2, 0)):
        heads = [-1, governor, 0] if governor == 0 else [2, 2, -1]
        classes = ["VERB", "NOUN", "VERB"]
        example = make_example([S, 0, 0, 0, S], None, heads, {1: "r0"}, classes)
        found = hits_in(example, compared("VERB"))[0]["syntactic:r0:to_governor"]
        assert found["nearest verb on either side"] == n
        assert found["nearest verb to the left"] + found["nearest verb to the right"] == 1


def nearest(tokens: Tokens, query: int, own: str, side: str, asked: Asked) -> int | None:
    """The nearest word of a class in view of the query's pieces, in its sentence, by a loop."""
    words = [
        word
        for word in range(len(tokens.classes))
        if word != query
        and tokens.classes[word] == own
        and tokens.sentences[word] == tokens.sentences[query]
        and any(
            key in asked.keys(piece, tokens.n)
            for piece in tokens.pieces(query)
            for key in tokens.pieces(word)
        )
    ]
    if side == SIDES[0]:
        words = [word for word in words if word < query]
    if side == SIDES[1]:
        words = [word for word in words if word > query]
    return min(words, key=lambda word: (abs(word - query), word), default=None)


@pytest.mark.numbers
@given(example=examples(min_words=2), reach=reaches())
@settings(max_examples=60, deadline=None)
def test_by_loops_over_words(example: EncodedExample, reach: Reach) -> None:
    tokens, asked = tokens_of(example), Asked("hit", reach)
    by_class, by_offset = hits_in(example, compared(*CLASSES, columns=True), reach)
    for role, found in by_class.items():
        _, relation, way = role.split(":")
        arcs = []
        for word, governor in enumerate(tokens.governors):
            label = tokens.relations[word]
            if governor < 0 or label not in ((relation,) if relation != "any" else RELATIONS):
                continue
            query, key = (governor, word) if way == "to_dependent" else (word, governor)
            if any(
                j in asked.keys(i, tokens.n)
                for i in tokens.pieces(query)
                for j in tokens.pieces(key)
            ):
                arcs.append((query, key))
        for own in CLASSES:
            for side in SIDES:
                hits = sum(nearest(tokens, x, own, side, asked) == y for x, y in arcs)
                assert found[str(Nearest(own, side))] == hits
        for offset, share in by_offset[role].items():
            hits = [y - x == offset for x, y in arcs]
            assert share == pytest.approx(np.mean(hits) if hits else np.nan, nan_ok=True)


@pytest.mark.numbers
@given(example=examples(min_words=2), reach=reaches())
@settings(max_examples=30, deadline=None)
def test_nearest_words_of_all_words_by_loops(example: EncodedExample, reach: Reach) -> None:
    rules, tokens = ClassRules(("VERB", "ADJ", "NOUN")), tokens_of(example)
    found = nearest_words(Scope(PaddedBatch([example]), reach, SCORES["hit"]), rules)
    for row, rule in zip(found, rules.rules, strict=True):
        for query, word in enumerate(row.tolist()):
            expected = nearest(tokens, query, rule.word_class, rule.side, Asked("hit", reach))
            assert word == (-1 if expected is None else expected)


def sentence(upos: list[str], governors: list[int], relations: list[str]) -> Sentence:
    words = tuple(f"w{k}" for k in range(len(upos)))
    return Sentence("s", "d", 0, words, tuple(governors), tuple(relations), {"upos": tuple(upos)})


def test_the_classes_of_most_partners_are_tried() -> None:
    """A name is a noun; of classes of as many partners, the first by name."""
    one = sentence(["PROPN", "VERB", "ADJ"], [1, -1, 0], ["r0", "root", "r1"])
    two = sentence(["PRON", "NOUN", "NUM"], [1, -1, 1], ["r0", "root", "r1"])
    roles = with_class_rules(
        choose_roles(RoleOptions(roles="local,syntactic"), RELATIONS, SCORES["hit"]),
        [one, two],
        "upos",
    )
    expected = {
        "syntactic:any:to_governor": ["NOUN", "VERB"],
        "syntactic:any:to_dependent": ["ADJ", "NOUN", "NUM", "PRON"],
        "syntactic:r0:to_governor": ["NOUN", "VERB"],
        "syntactic:r0:to_dependent": ["NOUN", "PRON"],
        "syntactic:r1:to_governor": ["NOUN"],
        "syntactic:r1:to_dependent": ["ADJ", "NUM"],
    }
    assert classes_of_rules(roles) == expected
    of_forms = with_class_rules(roles, [one, two], "lemma")
    assert classes_of_rules(of_forms)["syntactic:r1:to_dependent"] == ["_ w2"]
    many = sentence([*"ABCDEF"], [-1, 0, 0, 0, 0, 0], ["root", *["r0"] * 5])
    most = classes_of_rules(with_class_rules(roles, [many], "upos"))
    assert most["syntactic:r0:to_dependent"] == [*"BCDE"]
    assert N_CLASSES == 4


def across(first: Sentence, second: Sentence) -> list[tuple[int, int]]:
    """Join the first words of two sentences."""
    return [(0, 0)]


def test_pairs_across_two_sentences_have_class_rules_in_cross_attention_alone() -> None:
    one = sentence(["NOUN", "VERB"], [1, -1], ["r0", "root"])
    other = replace(one, id="t", position=1)
    roles = choose_roles(RoleOptions(roles=[across]), (), SCORES["hit"], [one, other])
    assert classes_of_rules(with_class_rules(roles, [one, other], "upos")) == {}
    two = [one, replace(other, annotations={"upos": ("ADV", "ADJ")}, document="d")]
    found = classes_of_rules(with_class_rules(roles, two, "upos", across=True))
    assert [*found.values()] == [["ADV"], ["NOUN"]]


def test_rules_are_named_in_words() -> None:
    named = [*map(str, ClassRules(("VERB", "_ the", "Case=Acc")).rules)]
    assert named[0] == "nearest verb to the left"
    assert named[4:6] == ["nearest the to the right", "nearest the on either side"]
    assert named[-1] == "nearest Case=Acc on either side"
