"""Sieves against the hand-checked example, a slow reference and their invariants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.contraction import SieveTensors, contract, row_entropy
from headroles.sieves import build_sieves, role_ids
from headroles.tokens import EncodedExample
from tests.sieves.examples import (
    HAND,
    HAND_SEGMENTS,
    ROLES,
    S,
    examples,
    make_example,
    random_attention,
    score,
)


class TestHandCheckedExample:
    @pytest.mark.parametrize(
        ("role", "expected"),
        [
            ("local", 1.231667),
            ("delimiter", 1.166667),
            ("delimiter:cls", 1.000000),
            ("delimiter:sep", 1.250000),
            ("block:ratio", 1.350000),
            ("block", 2.139783),
        ],
    )
    def test_positional_roles(self, role: str, expected: float) -> None:
        values = score(HAND, [make_example(HAND_SEGMENTS)])
        assert values[0, 0, ROLES.index(role)] == pytest.approx(expected, abs=1e-6)

    def test_local_with_the_published_edge(self) -> None:
        values = score(HAND, [make_example(HAND_SEGMENTS)], published_edge=True)
        assert values[0, 0, ROLES.index("local")] == pytest.approx(1.153333, abs=1e-6)

    @pytest.mark.parametrize(
        ("arc", "to_governor", "to_dependent"),
        [
            ((1, 1, 2, 1, 0), 2.8, 2.8),
            ((4, 2, 2, 1, 0), 0.35, 0.0),
            ((1, 1, 4, 2, 0), 0.7, 0.35),
        ],
    )
    def test_arcs(self, arc: tuple[int, ...], to_governor: float, to_dependent: float) -> None:
        values = score(HAND, [make_example(HAND_SEGMENTS, [arc])])[0, 0]
        assert values[ROLES.index("syntactic:r0:to_governor")] == pytest.approx(to_governor)
        assert values[ROLES.index("syntactic:r0:to_dependent")] == pytest.approx(
            to_dependent, abs=1e-6
        )
        assert np.isnan(values[ROLES.index("syntactic:r1:to_governor")])

    def test_row_entropies(self) -> None:
        expected = [1.609438, 1.609438, 1.470808, 1.054920, 1.748067, 1.470808, 1.834372]
        assert row_entropy(torch.tensor(HAND)).numpy()[0, 0] == pytest.approx(expected, abs=1e-6)


def by_definition(attention: NDArray[np.float64], example: EncodedExample) -> dict[str, float]:
    """Every score of one head from the definition, in plain loops."""
    n = len(example)
    segments = example.segments.tolist()
    special = [i for i in range(n) if segments[i] == S]

    def mean_ratio(rows: list[tuple[int, list[int]]]) -> float:
        ratios = [
            np.mean([attention[i, j] for j in sieve]) / np.mean(attention[i])
            for i, sieve in rows
            if sieve
        ]
        return float(np.mean(ratios)) if ratios else float("nan")

    near = [(i, [j for j in range(n) if abs(i - j) <= 2]) for i in range(n)]
    scores = {
        "local": mean_ratio(near),
        "delimiter": mean_ratio([(i, special) for i in range(n)]),
        "delimiter:cls": mean_ratio([(i, special[:1]) for i in range(n)]),
        "delimiter:sep": mean_ratio([(i, special[1:]) for i in range(n)]),
        "block": float("nan"),
        "block:ratio": float("nan"),
    }
    if 1 in segments:
        own = [(i, [j for j in range(n) if segments[j] == int(i >= special[1])]) for i in range(n)]
        scores["block:ratio"] = mean_ratio(own)
        entropy = [-sum(a * np.log(a) for a in row if a > 0) for row in attention]
        scores["block"] = float(np.mean([mean_ratio([row]) * entropy[row[0]] for row in own]))
    for direction, name in ((0, "to_governor"), (1, "to_dependent")):
        arcs: list[tuple[int, float]] = []
        for dep, dep_size, gov, gov_size, relation in example.arcs.tolist():
            spans = [range(dep, dep + dep_size), range(gov, gov + gov_size)]
            queries, keys = spans[::-1] if direction else spans
            cells = [attention[i, j] for i in queries for j in keys]
            arcs.append((relation, n * float(np.mean(cells))))
        pooled = "syntactic" + (":to_dependent" if direction else "")
        for role, chosen in [(pooled, arcs)] + [
            (f"syntactic:r{k}:{name}", [arc for arc in arcs if arc[0] == k]) for k in (0, 1)
        ]:
            scores[role] = float(np.mean([a for _, a in chosen])) if chosen else float("nan")
    return scores


class TestInvariants:
    @given(examples(), st.integers(0, 2**16))
    @settings(deadline=None, max_examples=60)
    def test_equals_the_definition(self, example: EncodedExample, seed: int) -> None:
        attention = random_attention(len(example), seed)
        values = score(attention, [example])
        for head in range(2):
            expected = by_definition(attention[0, head], example)
            np.testing.assert_allclose(
                values[0, head], [expected[role] for role in ROLES], rtol=2e-5
            )

    @given(examples(), st.integers(0, 5))
    @settings(deadline=None, max_examples=40)
    def test_uniform_attention_scores_one(self, example: EncodedExample, window: int) -> None:
        n = len(example)
        values = score(np.full((1, 1, n, n), 1 / n), [example], window=window)[0, 0]
        present = ~np.isnan(values)
        expected = [np.log(n) if role == "block" else 1.0 for role in ROLES]
        np.testing.assert_allclose(values[present], np.array(expected)[present], rtol=1e-5)
        assert present[:4].all()

    @given(st.lists(examples(), min_size=2, max_size=4), st.integers(0, 2**16))
    @settings(deadline=None, max_examples=40)
    def test_padding_changes_nothing(self, batch: list[EncodedExample], seed: int) -> None:
        width = max(len(example) for example in batch)
        attention = np.random.default_rng(seed).random((len(batch), 2, width, width))
        alone = []
        for k, example in enumerate(batch):
            own = random_attention(len(example), seed + k)
            attention[k, :, :, len(example) :] = 0
            attention[k, :, : len(example), : len(example)] = own[0]
            alone.append(score(own, [example])[0])
        np.testing.assert_allclose(score(attention, batch), alone, rtol=1e-5, equal_nan=True)

    def test_attention_inside_the_sieve_scores_the_maximum(self) -> None:
        n = 9
        example = make_example([S, 0, 0, 0, S, 1, 1, 1, S], [(1, 1, 3, 1, 0)])
        attention = np.zeros((1, 1, n, n))
        attention[..., 0] = 1
        values = score(attention, [example])[0, 0]
        assert values[ROLES.index("delimiter:cls")] == n
        assert values[ROLES.index("delimiter")] == pytest.approx(n / 3)
        assert values[ROLES.index("delimiter:sep")] == 0

    def test_second_relation_is_pooled_with_the_first(self) -> None:
        arcs = [(1, 1, 2, 1, 0), (4, 1, 5, 1, 1)]
        values = score(HAND, [make_example(HAND_SEGMENTS, arcs)])[0, 0]
        by_relation = [values[ROLES.index(f"syntactic:r{k}:to_governor")] for k in (0, 1)]
        assert values[ROLES.index("syntactic")] == pytest.approx(np.mean(by_relation))


class TestCounts:
    def test_tokens_and_arcs(self) -> None:
        arcs = [(1, 1, 2, 1, 0), (2, 1, 1, 1, 0), (4, 2, 2, 1, 1)]
        counts = build_sieves([make_example(HAND_SEGMENTS, arcs)], 2).counts[0].tolist()
        expected = dict.fromkeys(ROLES[:6], 7) | {
            "syntactic": 3,
            "syntactic:to_dependent": 3,
            "syntactic:r0:to_governor": 2,
            "syntactic:r0:to_dependent": 2,
            "syntactic:r1:to_governor": 1,
            "syntactic:r1:to_dependent": 1,
        }
        assert dict(zip(ROLES, counts, strict=True)) == expected

    def test_one_segment_has_no_block_score(self) -> None:
        sieves = build_sieves([make_example([S, 0, 0, S])], 2)
        assert not sieves.has_blocks
        assert sieves.counts[0, ROLES.index("block")] == 0

    def test_segments_without_a_separator_between_have_no_block_score(self) -> None:
        counts = build_sieves([make_example([S, 0, 0, 1, 1, S])], 2).counts[0]
        assert counts[ROLES.index("block")] == 0
        assert counts[ROLES.index("delimiter:sep")] == 6

    def test_no_special_tokens_no_delimiter_score(self) -> None:
        counts = build_sieves([make_example([0, 0, 0])], 2).counts[0]
        assert counts[ROLES.index("delimiter")] == 0
        assert counts[ROLES.index("local")] == 3

    def test_every_separator_counts(self) -> None:
        """Two separators between the segments, as in RoBERTa."""
        example = make_example([S, 0, S, S, 1, S])
        attention = np.zeros((1, 1, 6, 6))
        attention[..., 2] = 1
        values = score(attention, [example])[0, 0]
        assert values[ROLES.index("delimiter:sep")] == pytest.approx(6 / 3)
        assert values[ROLES.index("delimiter:cls")] == 0

    def test_no_relations_no_syntactic_roles(self) -> None:
        assert not any(role.startswith("syntactic") for role in role_ids([]))
        sieves = build_sieves([make_example(HAND_SEGMENTS)], 0)
        assert sieves.counts.shape == (1, len(role_ids([])))

    def test_window_reaches_as_told(self) -> None:
        example = make_example([S, 0, 0, 0, 0, 0, S])
        n = len(example)
        attention = np.zeros((1, 1, n, n))
        attention[0, 0, range(n), [min(i + 3, n - 1) for i in range(n)]] = 1
        narrow = score(attention, [example], window=1)[0, 0, 0]
        wide = score(attention, [example], window=3)[0, 0, 0]
        assert narrow == pytest.approx(np.mean([0, 0, 0, 0, 0, 7 / 3, 7 / 2]), rel=1e-6)
        assert wide > narrow


def test_arcs_of_long_words_fill_their_rectangle() -> None:
    example = make_example([S, 0, 0, 0, 0, 0, S], [(1, 2, 3, 3, 0)])
    sieves = build_sieves([example], 2)
    n = len(example)
    used = sieves.arc_weights[0, :, 0] > 0
    arc_pairs = sieves.pairs[0, sieves.local_weights.shape[1] :]
    pairs = sorted(divmod(int(pair), n) for pair in arc_pairs[used])
    assert pairs == [(i, j) for i in (1, 2) for j in (3, 4, 5)]
    assert sieves.arc_weights[0, used, 0] == pytest.approx(n / 6)


def test_examples_do_not_share_pairs() -> None:
    with_arc = make_example(HAND_SEGMENTS, [(1, 1, 2, 1, 0)])
    without = replace(with_arc, arcs=np.zeros((0, 5), dtype=np.int64))
    values = score(np.repeat(HAND, 2, axis=0), [without, with_arc])
    assert np.isnan(values[0, 0, ROLES.index("syntactic")])
    assert values[1, 0, ROLES.index("syntactic")] == pytest.approx(2.8)


class TestReach:
    """Layers that see a window only: rows and sieves end where the attention does."""

    @given(examples(), st.integers(1, 6))
    @settings(deadline=None, max_examples=60)
    def test_uniform_attention_within_reach_scores_one(
        self, example: EncodedExample, reach: int
    ) -> None:
        n = len(example)
        allowed = np.abs(np.subtract.outer(range(n), range(n))) <= reach
        attention = (allowed / allowed.sum(1, keepdims=True))[None, None]
        sieves = build_sieves([example], 2, reach=reach)
        tensors = SieveTensors.of(sieves, torch.device("cpu"))
        values = contract(torch.tensor(attention).float(), tensors)[0].numpy()[0, 0]
        for role, value, count in zip(ROLES, values, sieves.counts[0], strict=True):
            if count and role != "block":
                assert value == pytest.approx(1, rel=1e-5), role

    @given(examples(), st.integers(0, 2**16))
    @settings(deadline=None, max_examples=30)
    def test_a_reach_beyond_the_sequence_changes_nothing(
        self, example: EncodedExample, seed: int
    ) -> None:
        attention = random_attention(len(example), seed)
        np.testing.assert_allclose(
            score(attention, [example], reach=50), score(attention, [example]), rtol=1e-6
        )

    def test_arcs_out_of_reach_have_no_score(self) -> None:
        example = make_example([S, 0, 0, 0, 0, 0, 0, S], [(1, 1, 6, 1, 0), (1, 1, 2, 1, 0)])
        counts = build_sieves([example], 2, reach=3).counts[0]
        assert counts[ROLES.index("syntactic")] == 1
        assert counts[ROLES.index("delimiter:cls")] == 4

    def test_an_arc_may_be_partly_in_reach(self) -> None:
        """From pieces 1, 2 to pieces 4, 5 with a reach of 2: only 2 -> 4 is seen."""
        example = make_example([S, 0, 0, 0, 0, 0, S], [(1, 2, 4, 2, 0)])
        sieves = build_sieves([example], 2, reach=2)
        used = sieves.arc_weights[0, :, 0] > 0
        assert sieves.pairs[0, sieves.local_weights.shape[1] :][used].tolist() == [2 * 7 + 4]
        assert sieves.arc_weights[0, used, 0].tolist() == [5]  # keys within reach of query 2
