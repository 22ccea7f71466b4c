"""Which roles are scored: groups, ids, positions, names of none; and roles in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroles.corpus import ROOT, Sentence
from headroles.errors import CorpusError, UsageError
from headroles.roles import SCORES, RoleOptions, Score, choose_roles, find_role, in_words, role_of

SENTENCE = Sentence(
    "s", "d", 0, ("Yes", "."), (ROOT, 0), ("root", "punct"), {"upos": ("INTJ", "PUNCT")}
)
DEFAULT = [role.id for role in choose_roles(RoleOptions(), ("obj",), SCORES["bias"])]


def ids(roles: object, score: str = "bias") -> list[str]:
    options = RoleOptions(roles=roles)  # type: ignore[arg-type]
    chosen = choose_roles(options, ("obj",), SCORES[score], [SENTENCE])
    return [role.id for role in chosen]


@pytest.mark.parametrize(
    ("asked", "score", "expected"),
    [
        ("delimiter,local", "bias", "local delimiter delimiter:cls delimiter:sep"),
        (["position"], "bias", "position:-1 position:+1"),
        (
            "delimiter:sep, syntactic:obj:to_governor",
            "bias",
            "delimiter:sep syntactic:obj:to_governor",
        ),
        ("position:1,position:-3", "bias", "position:-3 position:+1"),
        ("block", "excess", "block block:evenness"),
    ],
)
def test_groups_are_all_of_their_roles_and_ids_one(
    asked: str | list[str], score: str, expected: str
) -> None:
    """Measures come with their roles; positions are called in one way."""
    assert " ".join(ids(asked, score)) == expected


def test_all_is_every_group_after_the_default() -> None:
    found = ids("all,position:+4")
    assert found[: len(DEFAULT)] == DEFAULT
    assert found[len(DEFAULT) :] == [
        *("position:-1", "position:+1", "position:+4", "self", "punctuation", "rare"),
        *("same", "same:back", "same:beyond_offset", "same:back:beyond_offset"),
        *("confidence", "entropy", "entropy:share", "distance"),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("positon:-1", r"'positon:-1' .did you mean 'position'\?.; give one"),
        ("xyz", r"no role 'xyz'; give one of local, delimiter"),
        ("syntactic:obj:to_governr", r"did you mean syntactic:obj:to_governor"),
        ("position:0", r"'position:0' has no valid offset; write position:-1"),
        ("position:x", r"'position:x' has no valid offset"),
        (",", r"roles names no role"),
    ],
)
def test_names_of_no_role(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ids(name)


def test_punctuation_needs_parts_of_speech() -> None:
    bare = Sentence("s", "d", 0, ("Yes",), (ROOT,), ("root",))
    with pytest.raises(CorpusError, match=r"no word of the corpus has a part of speech \(UPOS\)"):
        choose_roles(RoleOptions(roles=["punctuation"]), (), SCORES["bias"], [bare])


@pytest.mark.parametrize("score", SCORES.values())
def test_every_role_is_found_by_its_id(score: Score) -> None:
    for role in choose_roles(RoleOptions(), ("nsubj", "nmod:poss"), score):
        assert role_of(role.id, score) == replace(role, meaning={})
    for name in ("position:-2", "confidence", "entropy", "distance"):
        made = choose_roles(RoleOptions(roles=(name,)), (), score)
        role = next(one for one in made if one.id == name)
        assert role_of(name, score) == replace(role, meaning={})


# Names in words


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("local", "neighbouring words"),
        ("delimiter:cls", "[CLS]"),
        ("position:-1", "the previous token"),
        ("position:+1", "the next token"),
        ("position:3", "the token 3 places ahead"),
        ("position:-4", "the token 4 places back"),
        ("syntactic:any:to_governor", "word -> its governor"),
        ("syntactic:nsubj:to_governor", "subject -> its verb"),
        ("syntactic:nsubj:to_dependent", "verb -> its subject"),
        ("syntactic:nsubj:from_governor", "subject <- its verb"),
        ("syntactic:nsubj:pass:to_governor", "subject (nsubj:pass) -> its verb"),
        ("syntactic:acl:to_dependent", "noun it modifies -> its clause"),
        ("syntactic:odd:to_governor", "odd -> its governor"),
        ("syntactic:odd:to_dependent", "governor -> its odd"),
        ("syntactic:obj:to_governor:beyond_offset", "object -> its verb, beyond distance"),
        ("mine", "mine"),
        ("position:x", "position:x"),
    ],
)
def test_words(role: str, words: str) -> None:
    assert in_words(role) == words


KNOWN = ("local", "syntactic:nsubj:to_governor", "syntactic:nsubj:to_dependent", "mine:f")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("local", KNOWN[0]),
        ("Neighbouring words", KNOWN[0]),
        ("nsubj", KNOWN[1]),
        ("subject -> its verb", KNOWN[1]),
        ("subject", KNOWN[1]),
        ("verb->its subject", KNOWN[2]),
        ("verb \u2192 its subject", KNOWN[2]),
        ("mine:f", KNOWN[3]),
    ],
)
def test_roles_are_found_by_id_words_and_relation(name: str, role: str) -> None:
    assert find_role(name, KNOWN) == role


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("amod", r"there is no role 'amod'; .*local"),
        ("nsubjj", "there is no role 'nsubjj'; did you mean 'nsubj'"),
        ("subject -> it verb", "'subject -> it verb'; did you mean 'subject -> its verb'"),
    ],
)
def test_another_name_is_refused_with_what_may_be_meant(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_role(name, KNOWN)
