"""First choices: the hand-checked examples of the literature, candidates, fixed offsets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headroles.roles import HIT, OFFSETS, Batch, Role, Scope, plan_roles
from headroles.roles.offsets import Offsets
from headroles.scoring.layer import as_tensors, read_scores
from tests.roles.examples import HAND_SEGMENTS, S, make_example, plan_of, roles_of, score_of

# Voita et al. 2019: four tokens and the end of the sentence
FOUR = np.array(
    [
        [0.10, 0.60, 0.20, 0.05, 0.05],
        [0.50, 0.10, 0.30, 0.05, 0.05],
        [0.10, 0.20, 0.10, 0.50, 0.10],
        [0.05, 0.05, 0.70, 0.10, 0.10],
        [0.30, 0.30, 0.20, 0.10, 0.10],
    ]
)[None, None]
FOUR_SEGMENTS = [0, 0, 0, 0, S]


def hits(attention: NDArray[np.float64], example: object, **options: object) -> dict[str, float]:
    found = score_of(attention, [example], "hit", **options)[0, 0]  # type: ignore[list-item,arg-type]
    return dict(zip([role.id for role in roles_of("hit")], found, strict=True))


class TestHandCheckedExamples:
    def test_arcs(self) -> None:
        example = make_example(FOUR_SEGMENTS, None, [1, 2, -1, 2], {0: "r0", 3: "r0", 1: "r0"})
        found = hits(FOUR, example)
        assert found["syntactic"] == pytest.approx(2 / 3)
        assert found["syntactic:to_dependent"] == pytest.approx(2 / 3)

    def test_best_offset(self) -> None:
        example = make_example(FOUR_SEGMENTS, None, [1, 2, -1, 2], {0: "r0", 3: "r0", 1: "r0"})
        plan = plan_of([example], "hit")
        assert plan.offset_shares is not None
        place = [role.id for role in roles_of("hit")].index("syntactic")
        shares = dict(zip(OFFSETS, plan.offset_shares[0, place], strict=True))
        assert shares[+1] == pytest.approx(2 / 3)
        assert shares[-1] == pytest.approx(1 / 3)
        assert sum(shares.values()) == pytest.approx(1)

    def test_positions(self) -> None:
        """Arg-max 1, 0, 3, 2; tokens without that neighbour are no queries."""
        roles = [Role(f"position:{k:+d}", sieve=Offsets((k,))) for k in (1, -1)]
        plan = plan_roles(roles, Scope(Batch([make_example(FOUR_SEGMENTS)]), None, HIT))
        read = read_scores(
            torch.tensor(FOUR, dtype=torch.float32), as_tensors(plan, torch.device("cpu"))
        )
        assert plan.counts.tolist() == [[3, 3]]
        assert read[0, 0].tolist() == pytest.approx([2 / 3, 2 / 3])

    def test_between_words(self) -> None:
        """Clark et al. 2019: words {1, 2}, {3}; w2 looks at the word of two pieces with .6."""
        attention = np.array(
            [
                [0.5, 0.1, 0.2, 0.1, 0.1],
                [0.1, 0.2, 0.3, 0.3, 0.1],
                [0.2, 0.3, 0.1, 0.2, 0.2],
                [0.1, 0.5, 0.1, 0.1, 0.2],
                [0.4, 0.1, 0.1, 0.1, 0.3],
            ]
        )[None, None]
        example = make_example([S, 0, 0, 0, S], [-1, 0, 0, 1, -1], [1, -1], {0: "r0"})
        found = hits(attention, example)
        assert found["syntactic"] == 1
        assert found["syntactic:to_dependent"] == 1


def test_pieces_add_up_and_queries_are_averaged() -> None:
    """Two pieces with .3 each beat a word with .4; no single piece does."""
    attention = np.full((1, 1, 6, 6), 0.0)
    attention[..., 0] = 1
    attention[0, 0, 1] = [0, 0, 0.4, 0.3, 0.3, 0]
    example = make_example([S, 0, 0, 0, 0, S], [-1, 0, 1, 2, 2, -1], [2, 2, -1], {0: "r0"})
    assert hits(attention, example)["syntactic:r0:to_governor"] == 1


def test_the_word_itself_is_no_candidate() -> None:
    attention = np.full((1, 1, 4, 4), 0.0)
    attention[..., 0] = 1
    attention[0, 0, 1] = [0, 0.9, 0.1, 0]
    example = make_example([S, 0, 0, S], None, [1, -1], {0: "r0"})
    assert hits(attention, example)["syntactic:r0:to_governor"] == 1


def test_special_tokens_are_candidates_where_they_are_the_sieve() -> None:
    attention = np.full((1, 1, 7, 7), 0.0)
    attention[..., 3] = 1
    found = hits(attention, make_example(HAND_SEGMENTS))
    assert (found["delimiter"], found["delimiter:sep"], found["delimiter:cls"]) == (1, 1, 0)


def test_the_first_of_equals_is_the_choice() -> None:
    attention = np.full((1, 1, 4, 4), 0.25)
    roles = [Role(f"position:{k:+d}", sieve=Offsets((k,))) for k in (1, -1)]
    plan = plan_roles(roles, Scope(Batch([make_example([S, 0, 0, S])]), None, HIT))
    read = read_scores(
        torch.tensor(attention, dtype=torch.float32), as_tensors(plan, torch.device("cpu"))
    )
    assert read[0, 0].tolist() == [0, 1]


def test_links_have_no_contrasts_but_offsets() -> None:
    assert not any(role.id.endswith("beyond_offset") for role in roles_of("hit"))
    plan = plan_of([make_example(HAND_SEGMENTS, None, [1, -1, 3, -1], {0: "r0"})], "hit")
    assert plan.offset_shares is not None
    known = ~np.isnan(plan.offset_shares[0]).all(axis=-1)
    of_links = [role.id.startswith("syntactic") and "r1" not in role.id for role in roles_of("hit")]
    assert known.tolist() == of_links
