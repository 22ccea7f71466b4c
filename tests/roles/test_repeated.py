"""The first token, earlier copies of a token, and the tokens after them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroles.encoding import UNKNOWN_PIECE, EncodedExample
from headroles.reach import Reach
from headroles.roles import SCORES
from tests.reference import Asked, mean
from tests.roles.examples import (
    S,
    examples,
    make_example,
    random_attention,
    reaches,
    roles_of,
    score_of,
    scores_by_role,
    sizes_in,
    tenths,
    tokens_of,
)
from tests.rounding import assert_same_sums

ROLES = {"roles": "first,duplicate,induction"}


def expected_of(attention: Any, example: EncodedExample, asked: Asked) -> list[Any]:
    """Straight from the definitions, one query after the other."""
    tokens, ids = tokens_of(example), example.input_ids.tolist()
    inner = [i for i in range(tokens.n) if i not in tokens.specials]
    copies = {i: [j for j in inner if j < i and ids[j] == ids[i]] for i in inner}
    after = {i: [j + 1 for j in own if j + 1 in inner and j + 1 < i] for i, own in copies.items()}

    def of(sieves: dict[int, list[int]], among: list[int]) -> Any:
        if asked.score != "hit":
            return mean([asked.row(attention, i, sieve) for i, sieve in sieves.items()])
        rows = []
        for i, sieve in sieves.items():
            if inside := [j for j in sieve if j in asked.keys(i, tokens.n)]:
                choice = np.array(among)[attention[..., i, among].argmax(-1)]
                rows.append(np.isin(choice, inside).astype(float))
        return mean(rows)

    every = list(range(tokens.n))
    return [of({i: [0] for i in every}, every), of(copies, inner), of(after, inner)]


@pytest.mark.numbers
@given(examples(), st.data(), st.integers(0, 2**16), st.sampled_from(sorted(SCORES)), reaches())
@settings(deadline=None, max_examples=100)
def test_equals_the_definition(
    example: EncodedExample, data: st.DataObject, seed: int, score: str, reach: Reach
) -> None:
    ids = data.draw(st.lists(st.integers(2, 5), min_size=len(example), max_size=len(example)))
    example = replace(example, input_ids=np.array(ids))
    attention = random_attention(len(example), seed, reach=reach)
    found = score_of(attention, [example], score, reach, **ROLES)
    expected = expected_of(attention[0], example, Asked(score, reach))
    sizes = sizes_in(found, [example], score, reach, **ROLES)[0]
    assert [role.id for role in roles_of(score, **ROLES)] == ["first", "duplicate", "induction"]
    for place, wanted in enumerate(expected):
        if wanted is None:
            assert np.isnan(found[0, :, place]).all()
        else:
            assert_same_sums(found[0, :, place], wanted, sizes[:, place])


def test_by_hand() -> None:
    """a b a b: the second a may look at the first, or at the b after it; so may the second b."""
    example = replace(make_example([0, 0, 0, 0]), input_ids=np.array([7, 8, 7, 8]))
    attention = tenths("1900 1900 1810 0721")
    scores = scores_by_role(attention, example, **ROLES)
    # b after the first a has .8 and .7 follows no copy: the token after the first b is an a, .2
    assert scores["duplicate"] == pytest.approx(4 * (0.1 + 0.7) / 2)
    assert scores["induction"] == pytest.approx(4 * (0.8 + 0.2) / 2)
    assert scores["first"] == pytest.approx(4 * (0.1 + 0.1 + 0.1) / 4)


def test_pieces_of_unknown_text_and_special_tokens_have_no_copies() -> None:
    unknown = replace(make_example([0, 0, 0]), input_ids=np.full(3, UNKNOWN_PIECE))
    special = replace(make_example([S, 0, S, S]), input_ids=np.array([5, 6, 5, 5]))
    for example in (unknown, special):
        values = scores_by_role(np.full((1, 1, len(example), len(example)), 0.25), example, **ROLES)
        assert np.isnan([values["duplicate"], values["induction"]]).all()
        assert not np.isnan(values["first"])
