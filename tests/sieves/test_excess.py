"""The excess score against its definition and its fixed points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.sieves import EVENNESS, build_sieves, role_ids
from headroles.sieves.rows import row_values
from headroles.tokens import EncodedExample
from tests.sieves.examples import HAND, HAND_SEGMENTS, S, examples, make_example, random_attention
from tests.sieves.examples import score as score_of

ROLES = role_ids(["r0", "r1"], "excess")


def excess(attention: NDArray[np.float64], example: EncodedExample, **options: int) -> dict:
    values = score_of(attention, [example], score="excess", **options)[0, 0]
    return dict(zip(ROLES, values, strict=True))


def by_definition(attention: NDArray[np.float64], example: EncodedExample) -> dict[str, float]:
    """Every excess score of one head, in plain loops."""
    n, segments = len(example), example.segments.tolist()
    special = [i for i in range(n) if segments[i] == S]

    def row(query: int, sieve: list[int]) -> float:
        e = len(sieve) / n
        return (sum(attention[query, j] for j in sieve) - e) / (1 - e)

    def mean(rows: list[tuple[int, list[int]]]) -> float:
        found = [row(i, sieve) for i, sieve in rows if 0 < len(sieve) < n]
        return float(np.mean(found)) if found else float("nan")

    scores = {
        "local": mean([(i, [j for j in range(n) if abs(i - j) <= 2]) for i in range(n)]),
        "delimiter": mean([(i, special) for i in range(n)]),
        "delimiter:cls": mean([(i, special[:1]) for i in range(n)]),
        "delimiter:sep": mean([(i, special[1:]) for i in range(n)]),
        "block": float("nan"),
        EVENNESS: float("nan"),
    }
    if 1 in segments:
        own = [(i, [j for j in range(n) if segments[j] == int(i >= special[1])]) for i in range(n)]
        scores["block"] = mean(own)
        evenness = []
        for i, sieve in own:
            if len(sieve) > 1:
                p = attention[i, sieve] / attention[i, sieve].sum()
                evenness.append(-float((p * np.log(p)).sum()) / np.log(len(sieve)))
        scores[EVENNESS] = float(np.mean(evenness)) if evenness else float("nan")
    for direction, name in ((0, "to_governor"), (1, "to_dependent")):
        arcs = []
        for dep, dep_size, gov, gov_size, relation in example.arcs.tolist():
            spans = [list(range(dep, dep + dep_size)), list(range(gov, gov + gov_size))]
            queries, keys = spans[::-1] if direction else spans
            arcs.append((relation, float(np.mean([row(i, keys) for i in queries]))))
        pooled = "syntactic" + (":to_dependent" if direction else "")
        for role, chosen in [(pooled, arcs)] + [
            (f"syntactic:r{k}:{name}", [arc for arc in arcs if arc[0] == k]) for k in (0, 1)
        ]:
            scores[role] = float(np.mean([a for _, a in chosen])) if chosen else float("nan")
    return scores


@given(examples(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=60)
def test_equals_the_definition(example: EncodedExample, seed: int) -> None:
    attention = random_attention(len(example), seed, heads=1)
    expected = by_definition(attention[0, 0], example)
    found = excess(attention, example)
    np.testing.assert_allclose([found[r] for r in ROLES], [expected[r] for r in ROLES], atol=2e-5)


@given(examples(), st.integers(0, 12))
@settings(deadline=None, max_examples=60)
def test_uniform_attention_scores_zero_and_is_even(example: EncodedExample, window: int) -> None:
    n = len(example)
    for role, value in excess(np.full((1, 1, n, n), 1 / n), example, window=window).items():
        if not np.isnan(value):
            assert value == pytest.approx(float(role == EVENNESS), abs=1e-5), role


@given(examples(), st.sampled_from(ROLES[:5]), st.integers(0, 3), st.integers(0, 2**16))
@settings(deadline=None, max_examples=120)
def test_all_attention_inside_scores_one(
    example: EncodedExample, role: str, window: int, seed: int
) -> None:
    """Attention put at random on keys of the role's sieve only, whatever length and window."""
    n, rng = len(example), np.random.default_rng(seed)
    inside = sieve_of(role, example, window)
    attention = np.where(inside, rng.random((n, n)) + 0.1, 0.0)
    attention[~inside.any(1)] = 1
    attention /= attention.sum(1, keepdims=True)
    value = excess(attention[None, None], example, window=window)[role]
    assert np.isnan(value) or value == pytest.approx(1, abs=1e-5)


def sieve_of(role: str, example: EncodedExample, window: int) -> NDArray[np.bool_]:
    """(n, n): the keys of every query."""
    n, segments = len(example), example.segments
    inside = np.zeros((n, n), dtype=bool)
    special = np.flatnonzero(segments == S)
    match role.split(":"):
        case ["local"]:
            inside |= np.abs(np.subtract.outer(range(n), range(n))) <= window
        case ["delimiter"]:
            inside[:, special] = True
        case ["delimiter", "cls"]:
            inside[:, special[:1]] = True
        case ["delimiter", "sep"]:
            inside[:, special[1:]] = True
        case ["block"]:
            for i in range(n):
                inside[i] = segments == int(i >= special[1])
    return inside


@pytest.mark.parametrize("direction", ["to_governor", "to_dependent"])
def test_all_attention_along_an_arc_scores_one(direction: str) -> None:
    example = make_example([S, 0, 0, 0, 0, S], [(1, 2, 3, 2, 0)])
    queries, keys = ((1, 2), (3, 4)) if direction == "to_governor" else ((3, 4), (1, 2))
    attention = np.full((6, 6), 1 / 6)
    attention[list(queries)] = 0
    for query in queries:
        attention[query, list(keys)] = 0.7, 0.3
    assert excess(attention[None, None], example)[f"syntactic:r0:{direction}"] == pytest.approx(1)


def test_by_hand() -> None:
    """Sieves of the classifier token (e = 1/7) and of the words of the own segment (e = 2/7)."""
    found = excess(HAND, make_example(HAND_SEGMENTS))
    assert found["delimiter:cls"] == pytest.approx((1 / 7 - 1 / 7) / (6 / 7), abs=1e-6)
    masses = np.array([3, 6, 6, 2 + 2 - 4, 4, 6, 2]) / 10
    assert found["block"] == pytest.approx(float(np.mean((masses - 2 / 7) / (5 / 7))), abs=1e-6)


def test_no_attention_inside_the_segment_is_not_even() -> None:
    attention = np.zeros((1, 1, 7, 7))
    attention[..., 0] = 1
    found = excess(attention, make_example(HAND_SEGMENTS))
    assert found["block"] == pytest.approx(-2 / 5)
    assert found[EVENNESS] == 0


def test_a_segment_of_one_word_has_no_evenness() -> None:
    found = excess(np.full((1, 1, 5, 5), 0.2), make_example([S, 0, S, 1, S]))
    assert np.isnan(found[EVENNESS])
    assert found["block"] == pytest.approx(0, abs=1e-6)


def test_rows_that_see_nothing_else_leave() -> None:
    """A window as wide as the sequence says nothing about any row."""
    example = make_example([S, 0, 0, S])
    assert build_sieves([example], 0, window=3, score="excess").counts[0, 0] == 0
    assert build_sieves([example], 0, window=2, score="excess").counts[0, 0] == 2
    assert build_sieves([example], 0, window=3, score="bias").counts[0, 0] == 4


@given(st.integers(1, 30), st.integers(0, 30), st.floats(0, 1))
def test_row_values(length: int, size: int, mass: float) -> None:
    size = min(size, length)
    lengths, sizes = np.array([length]), np.array([size])
    bias, excess_ = (row_values(kind, lengths, sizes) for kind in ("bias", "excess"))
    assert bias.scored[0] == (size > 0)
    assert excess_.scored[0] == (0 < size < length)
    if size:
        assert bias.slopes[0] * mass + bias.offsets[0] == pytest.approx(mass * length / size)
    if 0 < size < length:
        e = size / length
        value = excess_.slopes[0] * mass + excess_.offsets[0]
        assert value == pytest.approx((mass - e) / (1 - e))
