"""Scores of all roles: hand-checked examples, the slow reference, invariants, bounds."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from headroles.encoding import EncodedExample
from headroles.errors import UsageError
from headroles.reach import EVERYTHING, Reach
from headroles.roles import (
    BIAS,
    EVENNESS,
    EXCESS,
    OFFSETS,
    SCORES,
    PaddedBatch,
    Scope,
    bounds_of,
)
from headroles.scoring import layer
from headroles.scoring.layer import first_largest
from tests.reference import Asked, largest_difference, reference_positions, reference_scores
from tests.roles.examples import (
    HAND,
    HAND_SEGMENTS,
    RELATIONS,
    ROLES,
    S,
    examples,
    make_example,
    random_attention,
    reaches,
    read_from,
    readout_of,
    roles_of,
    score_of,
    scores_by_role,
    sizes_in,
    tenths,
    tokens_of,
    values_of,
)
from tests.rounding import assert_same_sums, tolerance

HAND_EXAMPLE = make_example(HAND_SEGMENTS)
PLAIN = ("local", "delimiter", "delimiter:cls", "delimiter:sep", "block:ratio")
ENDS = ("r0:to_governor", "r0:to_dependent", "r1:to_governor")  # of which the last has no arc


def with_arc(words: list[int], dependent: int, governor: int) -> EncodedExample:
    governors = [-1] * (max(words) + 1)
    governors[dependent] = governor
    return make_example(HAND_SEGMENTS, words, governors, {dependent: "r0"})


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
FOUR_EXAMPLE = make_example([0, 0, 0, 0, S], None, [1, 2, -1, 2], {0: "r0", 3: "r0", 1: "r0"})
# Clark et al. 2019: the governor is the word that attends most to its dependent. [CLS] w1 w2 w3 w4
# [SEP]; governors 2, 3, root, 3, counted from 1: by rows 2, 3, 2, 3, and so 3 of the 3 arcs; by
# columns 2, 3, 4, 1, and so 2 of them
SIX = tenths("312112 124111 212311 115111 112411 511111")
SIX_EXAMPLE = make_example([S, 0, 0, 0, 0, S], None, [1, 2, -1, 2], {0: "r0", 1: "r0", 3: "r1"})
HIT = {"score": "hit"}
COLUMNS = HIT | {"columns": True}
# From a word the mean over its pieces: two of .3 and .2 are less than one of .28.
PIECES = np.zeros((1, 1, 6, 6))
PIECES[..., 0] = 1
PIECES[0, 0, [1, 2, 4], 3] = [0.3, 0.2, 0.28]
PIECES_EXAMPLE = make_example([S, 0, 0, 0, 0, S], [-1, 0, 0, 1, 2, -1], [-1, 2, -1], {1: "r0"})


@pytest.mark.parametrize(
    ("attention", "example", "options", "expected"),
    [
        (
            HAND,
            HAND_EXAMPLE,
            {},
            dict(zip(PLAIN, (1.231667, 1.166667, 1, 1.25, 1.35), strict=True)),
        ),
        (HAND, HAND_EXAMPLE, {"preset": "published"}, {"local": 1.153333, "block": 2.139783}),
        *(
            (HAND, with_arc(*arc), {}, dict(zip(ENDS, (governor, dependent, np.nan), strict=True)))
            for arc, governor, dependent in (
                (([-1, 0, 1, -1, 2, 3, -1], 0, 1), 2.8, 2.8),
                (([-1, 0, 1, -1, 2, 2, -1], 2, 1), 0.35, 0.0),
                (([-1, 0, 1, -1, 2, 2, -1], 0, 2), 0.7, 0.35),
            )
        ),
        (FOUR, FOUR_EXAMPLE, HIT, {"any:to_governor": 2 / 3, "any:to_dependent": 2 / 3}),
        (SIX, SIX_EXAMPLE, COLUMNS, {"any:to_governor": 1, "any:from_governor": 2 / 3}),
        (SIX, SIX_EXAMPLE, COLUMNS, {"r0:from_governor": 1, "r1:from_governor": 0}),
        (PIECES, PIECES_EXAMPLE, COLUMNS, {"r0:from_governor": 1}),
    ],
)
def test_hand_checked_examples(
    attention: NDArray[np.float64],
    example: EncodedExample,
    options: dict[str, Any],
    expected: dict[str, float],
) -> None:
    found = scores_by_role(attention, example, **options)
    for role, value in expected.items():
        known = role if role in found else f"syntactic:{role}"
        assert found[known] == pytest.approx(value, abs=tolerance(), nan_ok=True), role


@pytest.mark.numbers
@pytest.mark.parametrize("score", SCORES)
def test_quantities_by_hand(score: str) -> None:
    """Voita et al.'s confidence; the entropies of the rows of the other example."""
    options = {"score": score, "noisy": True, "roles": ["confidence", "entropy", "distance"]}
    assert scores_by_role(FOUR, FOUR_EXAMPLE, **options)["confidence"] == pytest.approx(0.575)
    rows = [1.609438, 1.609438, 1.470808, 1.054920, 1.748067, 1.470808, 1.834372]
    found = scores_by_role(HAND, HAND_EXAMPLE, **options)
    assert found["entropy"] == pytest.approx(np.mean(rows), abs=tolerance(rows))
    assert found["entropy:share"] == pytest.approx(np.mean(rows) / np.log(7), abs=tolerance())
    apart = np.abs(np.subtract.outer(range(7), range(7)))
    assert found["distance"] == pytest.approx((HAND[0, 0] * apart).sum(1).mean(), rel=tolerance())


@pytest.mark.parametrize(
    ("attention", "example", "n_queries", "to_next", "to_previous"),
    [
        (FOUR, FOUR_EXAMPLE, 3, 2 / 3, 2 / 3),
        (np.full((1, 1, 4, 4), 0.25), make_example([S, 0, 0, S]), 1, 0, 1),
    ],
    ids=["arg-max 1, 0, 3, 2", "the first of equals"],
)
def test_first_choices_of_positions(
    attention: Any, example: EncodedExample, n_queries: int, to_next: float, to_previous: float
) -> None:
    """Tokens without that neighbour are no queries."""
    found = scores_by_role(attention, example, "hit", roles="position")
    assert found == pytest.approx({"position:-1": to_previous, "position:+1": to_next})
    assert readout_of([example], "hit", roles="position").counts.tolist() == [[n_queries] * 2]


def test_first_choices_have_offsets_in_place_of_contrasts() -> None:
    roles = [role.id for role in roles_of("hit")]
    assert not any("beyond_offset" in role or "from_governor" in role for role in roles)
    with pytest.raises(UsageError, match=r"columns need first choices"):
        roles_of("excess", columns=True)
    found = readout_of([FOUR_EXAMPLE], "hit").offset_shares
    assert found is not None
    place = roles.index("syntactic:any:to_governor")
    shares = dict(zip(OFFSETS, found[0, place], strict=True))
    assert shares[+1] == pytest.approx(2 / 3)
    assert shares[-1] == pytest.approx(1 / 3)
    assert sum(shares.values()) == pytest.approx(1)
    known = ~np.isnan(found[0]).all(axis=-1)
    assert known.tolist() == [role.startswith("syntactic") and "r1" not in role for role in roles]


ARCS = make_example(HAND_SEGMENTS, None, [1, 0, 1, -1], {0: "r0", 1: "r0", 2: "r1"})


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (ARCS, dict(zip(ROLES, [7] * 5 + [3, 3, 2, 2, 1, 1], strict=False))),
        (make_example([S, 0, 0, S]), {"block:ratio": 0}),
        (make_example([S, 0, 0, 1, 1, S]), {"block:ratio": 0, "delimiter:sep": 6}),
        (make_example([0, 0, 0]), {"delimiter": 0, "local": 3}),
    ],
    ids=["arcs", "one segment", "no separator between", "no special tokens"],
)
def test_counts(example: EncodedExample, expected: dict[str, int]) -> None:
    counts = dict(zip(ROLES, readout_of([example]).counts[0].tolist(), strict=True))
    assert {role: counts[role] for role in expected} == expected


@pytest.mark.numbers
@given(
    examples(),
    st.integers(0, 2**16),
    st.sampled_from(sorted(SCORES)),
    reaches(),
    st.integers(0, 4),
    st.sampled_from([RELATIONS, ("r0/function", "r0/content", "r1")]),
)
@settings(deadline=None, max_examples=150)
def test_equals_the_reference(
    example: EncodedExample,
    seed: int,
    score: str,
    reach: Reach,
    window: int,
    relations: tuple[str, ...],
) -> None:
    """Every role and contrast, whatever the window and however far the layer reaches."""
    attention = random_attention(len(example), seed, reach=reach)
    options = {
        "relations": relations,
        "window": window,
        "is_causal": True,
        "roles": "local,delimiter,block,syntactic,position:-3,position,self",
    }
    values = score_of(attention, [example], score, reach, **options)[0]
    asked, tokens = Asked(score, reach, window), tokens_of(example)
    expected = reference_scores(attention[0], tokens, relations, asked)
    expected |= reference_positions(attention[0], tokens, (-3, -1, 0, 1), asked)
    roles = [role.id for role in roles_of(score, **options)]
    assert set(roles) == set(expected)
    sizes = sizes_in(values[None], [example], score, reach, **options)[0]
    assert largest_difference(values, roles, expected, sizes) <= 1


@pytest.mark.numbers
@given(st.lists(examples(), min_size=2, max_size=4), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_padding_and_neighbours_change_nothing(batch: list[EncodedExample], seed: int) -> None:
    """A score depends on its own example alone."""
    width = max(len(example) for example in batch)
    attention = np.random.default_rng(seed).random((len(batch), 2, width, width))
    alone = []
    for k, example in enumerate(batch):
        own = random_attention(len(example), seed + k)
        attention[k, :, :, len(example) :] = 0
        attention[k, :, : len(example), : len(example)] = own[0]
        alone.append(score_of(own, [example])[0])
    found = score_of(attention, batch)
    assert_same_sums(found, alone, sizes_in(found, batch))


@given(examples(), st.integers(0, 2**16), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_other_roles_and_their_order_change_nothing(
    example: EncodedExample, seed: int, random: Random
) -> None:
    """A role has the same score and count beside others, in any order, as with all of them."""
    attention = random_attention(len(example), seed)
    all_roles = roles_of()
    roles = random.sample(all_roles, 7)
    readout = read_from(roles, Scope(PaddedBatch([example]), EVERYTHING, BIAS))
    values = values_of(attention, readout)[0]
    there = [all_roles.index(role) for role in roles]
    together, sizes = score_of(attention, [example]), readout_of([example])
    np.testing.assert_array_equal(readout.counts, sizes.counts[:, there])
    assert_same_sums(values, together[0][:, there], sizes_in(together, [example])[0][:, there])


@given(examples(), st.integers(0, 5), reaches())
@settings(deadline=None, max_examples=60)
def test_uniform_attention(example: EncodedExample, window: int, reach: Reach) -> None:
    """1 for bias, 0 for excess and for every contrast, within reach."""
    n = len(example)
    allowed = Asked(reach=reach).visible(n)
    attention = (allowed / allowed.sum(1, keepdims=True))[None, None]
    for score in (BIAS, EXCESS):
        values = score_of(attention, [example], score.name, reach, window=window)
        sizes = sizes_in(values, [example], score.name, reach, window=window)[0, 0]
        for role, value, size in zip(roles_of(score.name), values[0, 0], sizes, strict=True):
            if role.baseline is not None and reach.is_limited:
                continue  # rows of windowed layers differ in length: contrasts are approximate
            plain = 1.0 if role.id == EVENNESS else score.uniform
            expected = plain if role.baseline is None else role.baseline
            if not np.isnan(value):
                assert value == pytest.approx(expected, abs=tolerance(size)), role.id


@given(examples(), st.sampled_from(range(5)), st.integers(0, 3), st.integers(0, 2**16))
@settings(deadline=None, max_examples=100)
def test_all_attention_inside_has_an_excess_of_one(
    example: EncodedExample, place: int, window: int, seed: int
) -> None:
    """Attention put at random on keys of the role's sieve only, whatever length and window."""
    n, rng = len(example), np.random.default_rng(seed)
    role = roles_of("excess", window=window)[place]
    assert role.sieve is not None
    inside = role.sieve.cells(Scope(PaddedBatch([example]), EVERYTHING, SCORES["excess"]))
    attention = np.where(inside, rng.random((n, n)) + 0.1, 0.0)
    attention[~inside.any(1)] = 1
    attention /= attention.sum(1, keepdims=True)
    value = score_of(attention[None, None], [example], "excess", window=window)[0, 0, place]
    assert np.isnan(value) or value == pytest.approx(1, abs=tolerance(2 * n))


def test_a_window_wider_than_the_sequence_holds_all_of_it() -> None:
    """A window of ten million positions is no longer than the sequence: it would not fit memory."""
    example = make_example([S, 0, 0, S])
    attention = np.full((1, 1, 4, 4), 0.25)
    wide, whole = (score_of(attention, [example], window=window) for window in (10**7, 4))
    assert np.array_equal(wide, whole, equal_nan=True)


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
@settings(deadline=None)
def test_long_examples_are_read_as_short_ones(example: EncodedExample, seed: int) -> None:
    """Weights are few and have exact sums, so that both ways to add them find the same ties."""
    n = len(example)
    attention = np.random.default_rng(seed).integers(0, 4, (1, 2, n, n)) / 8
    by_product = score_of(attention, [example], "hit", columns=True)
    with mock.patch.object(layer, "WIDEST_PRODUCT", 0):
        picked = score_of(attention, [example], "hit", columns=True)
    np.testing.assert_array_equal(by_product, picked)


@pytest.mark.parametrize("score", SCORES)
@given(example=examples(), seed=st.integers(0, 2**32 - 1), reach=reaches())
@settings(max_examples=40, deadline=None)
def test_no_score_leaves_its_bounds_of_all_layers(
    score: str, example: EncodedExample, seed: int, reach: Reach
) -> None:
    n = len(example)
    readouts = [readout_of([example], score, of) for of in dict.fromkeys((reach, Reach(3, 3)))]
    low, high = np.moveaxis(bounds_of(readouts).astype(float), -1, 0)
    given = [random_attention(n, seed, reach=reach)]
    if not reach.is_limited:  # six heads, of which every row gives all it has to one key
        given.append(np.eye(n)[np.random.default_rng(seed).integers(0, n, (1, 6, n))])
    for attention in given:
        values = score_of(attention, [example], score, reach)
        there = ~np.isnan(values[0, 0])
        assert not np.isnan(low[0, there]).any()
        slack = tolerance() * (np.abs(low) + np.abs(high))
        assert (values[..., there] >= (low - slack)[:, None, there]).all()
        assert (values[..., there] <= (high + slack)[:, None, there]).all()


@pytest.mark.parametrize("score", SCORES)
def test_attention_that_stays_in_the_sieve_reaches_the_bound(score: str) -> None:
    """Seven tokens, all attention to the classifier, then none."""
    place = [role.id for role in roles_of(score)].index("delimiter:cls")
    low, high = bounds_of([readout_of([HAND_EXAMPLE], score)])[0, place]
    attention = np.zeros((1, 2, 7, 7))
    attention[:, 0, :, 0] = attention[:, 1, :, 1] = 1
    values = score_of(attention, [HAND_EXAMPLE], score)[0, :, place]
    assert values == pytest.approx([high, low])
    assert (low, high) == pytest.approx({"bias": (0, 7), "excess": (-1 / 6, 1)}.get(score, (0, 1)))


# One arc between words of one piece in five words: 8 keys, of which one is looked for.
FIVE = make_example([S, 0, 0, 0, 0, 0, S], None, [1, -1, -1, -1, -1], {0: "r0"})


@pytest.mark.parametrize(
    ("example", "options", "role", "expected"),
    [
        # Four rows look for two keys, three rows for two: n / |S| is 7 / 2 in each.
        (HAND_EXAMPLE, {}, "block:ratio", [0, 3.5]),
        (HAND_EXAMPLE, {"preset": "published"}, "block", [0, 3.5 * np.log(7)]),
        (FIVE, {}, "syntactic:r0:to_governor", [0, 7]),
        (FIVE, {}, "syntactic:r0:to_governor:beyond_offset", [-7, 7]),
    ],
)
def test_bounds_by_hand(
    example: EncodedExample, options: dict[str, str], role: str, expected: list[float]
) -> None:
    place = [one.id for one in roles_of(**options)].index(role)
    assert bounds_of([readout_of([example], **options)])[0, place] == pytest.approx(expected)
