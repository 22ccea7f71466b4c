"""First choices: the hand-checked examples of the literature, candidates, fixed offsets."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.roles import HIT, OFFSETS, PaddedBatch, Role, Scope, make_readout, sieves_of
from headroles.roles.pairs import Offsets
from headroles.scoring import layer
from headroles.scoring.layer import first_largest
from tests.roles.examples import (
    HAND_SEGMENTS,
    S,
    examples,
    make_example,
    readout_of,
    roles_of,
    score_of,
    values_of,
)

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
EVEN = np.full((1, 1, 4, 4), 0.25)


def hits(attention: NDArray[np.float64], example: object, **options: object) -> dict[str, float]:
    found = score_of(attention, [example], "hit", **options)[0, 0]  # type: ignore[list-item,arg-type]
    return dict(zip([role.id for role in roles_of("hit")], found, strict=True))


class TestHandCheckedExamples:
    def test_arcs(self) -> None:
        example = make_example(FOUR_SEGMENTS, None, [1, 2, -1, 2], {0: "r0", 3: "r0", 1: "r0"})
        found = hits(FOUR, example)
        assert found["syntactic:any:to_governor"] == pytest.approx(2 / 3)
        assert found["syntactic:any:to_dependent"] == pytest.approx(2 / 3)

    def test_best_offset(self) -> None:
        example = make_example(FOUR_SEGMENTS, None, [1, 2, -1, 2], {0: "r0", 3: "r0", 1: "r0"})
        readout = readout_of([example], "hit")
        assert readout.offset_shares is not None
        place = [role.id for role in roles_of("hit")].index("syntactic:any:to_governor")
        shares = dict(zip(OFFSETS, readout.offset_shares[0, place], strict=True))
        assert shares[+1] == pytest.approx(2 / 3)
        assert shares[-1] == pytest.approx(1 / 3)
        assert sum(shares.values()) == pytest.approx(1)

    @pytest.mark.parametrize(
        ("attention", "segments", "counts", "expected"),
        [(FOUR, FOUR_SEGMENTS, [3, 3], [2 / 3, 2 / 3]), (EVEN, [S, 0, 0, S], [1, 1], [0, 1])],
        ids=["arg-max 1, 0, 3, 2", "the first of equals"],
    )
    def test_positions(
        self, attention: Any, segments: list[int], counts: list[int], expected: list[float]
    ) -> None:
        """Tokens without that neighbour are no queries."""
        roles = [Role(f"position:{k:+d}", sieve=Offsets((k,))) for k in (1, -1)]
        readout = make_readout(
            sieves_of(roles), Scope(PaddedBatch([make_example(segments)]), None, HIT)
        )
        assert readout.counts.tolist() == [counts]
        assert values_of(attention, readout, noisy=False)[0, 0] == pytest.approx(expected)


class TestColumns:
    """Clark et al. 2019: the governor is the word that attends most to its dependent."""

    # [CLS] w1 w2 w3 w4 [SEP]; governors 2, 3, root, 3, counted from 1
    SIX = np.array(
        [
            [0.3, 0.1, 0.2, 0.1, 0.1, 0.2],
            [0.1, 0.2, 0.4, 0.1, 0.1, 0.1],
            [0.2, 0.1, 0.2, 0.3, 0.1, 0.1],
            [0.1, 0.1, 0.5, 0.1, 0.1, 0.1],
            [0.1, 0.1, 0.2, 0.4, 0.1, 0.1],
            [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
        ]
    )[None, None]

    def test_hand_checked_example(self) -> None:
        """By rows 2, 3, 2, 3, and so 3 of the 3 arcs; by columns 2, 3, 4, 1, and so 2 of them."""
        example = make_example([S, 0, 0, 0, 0, S], None, [1, 2, -1, 2], {0: "r0", 1: "r0", 3: "r1"})
        roles = roles_of("hit", columns=True)
        found = score_of(self.SIX, [example], "hit", columns=True)[0, 0]
        by_id = dict(zip([role.id for role in roles], found, strict=True))
        assert by_id["syntactic:any:to_governor"] == pytest.approx(1)
        assert by_id["syntactic:any:from_governor"] == pytest.approx(2 / 3)
        assert by_id["syntactic:r0:from_governor"] == pytest.approx(1)
        assert by_id["syntactic:r1:from_governor"] == 0

    def test_words_of_several_pieces(self) -> None:
        """From a word the mean over its pieces: two of .3 and .2 are less than one of .28."""
        attention = np.full((1, 1, 6, 6), 0.0)
        attention[..., 0] = 1
        attention[0, 0, [1, 2, 4], 3] = [0.3, 0.2, 0.28]
        example = make_example([S, 0, 0, 0, 0, S], [-1, 0, 0, 1, 2, -1], [-1, 2, -1], {1: "r0"})
        roles = [role.id for role in roles_of("hit", columns=True)]
        found = score_of(attention, [example], "hit", columns=True)[0, 0]
        assert found[roles.index("syntactic:r0:from_governor")] == 1

    def test_are_of_first_choices_only(self) -> None:
        assert not any("from_governor" in role.id for role in roles_of("hit"))
        with pytest.raises(UsageError, match=r"columns need first choices"):
            roles_of("excess", columns=True)


@given(
    arrays(np.float32, (3, 2, 5), elements=st.sampled_from([0, 1e-45, 0.1, 0.25, 0.25, 1])),
    arrays(np.bool_, (3, 1, 5)),
)
def test_first_largest_is_argmax(rows: NDArray[np.float32], barred: NDArray[np.bool_]) -> None:
    for copies in (1, 20):  # wide rows go another way
        weights = torch.from_numpy(rows).repeat(1, 1, copies)
        apart = torch.from_numpy(barred).repeat(1, 1, copies)
        assert torch.equal(first_largest(weights), weights.argmax(-1))
        masked = weights.masked_fill(apart, -1)
        assert torch.equal(first_largest(weights, apart), masked.argmax(-1))
        columns = weights.mT.contiguous()
        assert torch.equal(first_largest(columns, axis=-2), columns.argmax(-2))


@given(examples(min_words=2), st.integers(0, 2**16))
def test_long_examples_are_read_as_short_ones(example: EncodedExample, seed: int) -> None:
    """Weights are few and have exact sums, so that both ways to add them find the same ties."""
    n = len(example)
    attention = np.random.default_rng(seed).integers(0, 4, (1, 2, n, n)) / 8
    by_product = score_of(attention, [example], "hit", columns=True)
    with mock.patch.object(layer, "WIDEST_PRODUCT", 0):
        picked = score_of(attention, [example], "hit", columns=True)
    np.testing.assert_array_equal(by_product, picked)


def test_links_have_no_contrasts_but_offsets() -> None:
    assert not any(role.id.endswith("beyond_offset") for role in roles_of("hit"))
    readout = readout_of([make_example(HAND_SEGMENTS, None, [1, -1, 3, -1], {0: "r0"})], "hit")
    assert readout.offset_shares is not None
    known = ~np.isnan(readout.offset_shares[0]).all(axis=-1)
    of_links = [role.id.startswith("syntactic") and "r1" not in role.id for role in roles_of("hit")]
    assert known.tolist() == of_links
