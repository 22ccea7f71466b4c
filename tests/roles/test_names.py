"""Roles in words."""

from __future__ import annotations

import pytest

from headroles.errors import UsageError
from headroles.role_names import find_roles
from headroles.roles import find_role, in_words


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


def test_a_relation_among_several_roles_means_both_directions() -> None:
    assert find_roles("nsubj", [*KNOWN, f"{KNOWN[1]}:beyond_offset"]) == [KNOWN[1], KNOWN[2]]
    assert find_roles("nsubj", KNOWN[2:]) == [KNOWN[2]]
    assert find_roles("mine", ["mine", "syntactic:mine:to_governor"]) == ["mine"]
    assert find_roles("subject -> its verb", KNOWN) == [KNOWN[1]]


def test_a_refusal_names_no_more_roles_than_fit_on_two_lines() -> None:
    many = [f"syntactic:{number}:to_governor" for number in range(99)]
    with pytest.raises(
        UsageError, match=r"'x+ \.\.\. x+'; there is: syntactic:0:.*, and 9\d more$"
    ) as caught:
        find_role("x" * 5000, many)
    assert len(str(caught.value)) < 320
