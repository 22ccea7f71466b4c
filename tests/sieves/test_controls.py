"""Contrasts with pairs at the same offset: a slow reference, planted heads, gaps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.contraction import SieveTensors, contract
from headroles.sieves import BEYOND_OFFSET, Sieves, build_sieves, find_controls, role_ids
from headroles.sieves.contrasts import RUN
from headroles.tokens import EncodedExample
from tests.sieves.examples import S, controls_at, make_parsed, random_attention

ROLES = role_ids(["r0", "r1"], beyond_offset=True)
CONTRASTS = [role for role in ROLES if role.endswith(BEYOND_OFFSET)]


def contrasts_of(
    attention: NDArray[np.float64], batch: list[EncodedExample], score: str = "bias"
) -> tuple[NDArray[np.float64], Sieves]:
    """(batch, heads, contrasts) and the sieves."""
    sieves = build_sieves(batch, 2, score=score, controls=find_controls(batch))
    tensors = SieveTensors.of(sieves, torch.device("cpu"))
    values, _ = contract(torch.tensor(attention, dtype=torch.float32), tensors)
    return values.numpy()[..., -len(CONTRASTS) :].astype(float), sieves


@st.composite
def parsed(draw: st.DrawFn, min_words: int = 2) -> EncodedExample:
    """One or two sentences with random trees, words of one to three pieces."""
    segments, words, governors = [S], [-1], []
    for segment in range(draw(st.integers(1, 2))):
        first = len(governors)
        n_words = draw(st.integers(min_words, 7))
        order = draw(st.permutations(range(n_words)))
        parents = {order[0]: -1}
        for k in range(1, n_words):
            parents[order[k]] = first + order[draw(st.integers(0, k - 1))]
        governors += [parents[k] for k in range(n_words)]
        for k in range(n_words):
            size = draw(st.sampled_from([1, 1, 1, 2, 3]))
            segments += [segment] * size
            words += [first + k] * size
        segments.append(S)
        words.append(-1)
    dependents = [k for k, governor in enumerate(governors) if governor >= 0]
    scored = {k: draw(st.integers(0, 1)) for k in dependents if draw(st.booleans())}
    return make_parsed(segments, words, governors, scored)


def lacks_controls(example: EncodedExample) -> bool:
    return bool((find_controls([example]).totals == 0).any())


def control_mean(
    attention: NDArray[np.float64], example: EncodedExample, segment: int, offset: int
) -> float:
    """Mean attention at the offset between words of the sentence that no arc joins."""
    found = controls_at(example, segment, offset)
    if not found:
        return float("nan")
    values = [attention[i, j] for i, j, _ in found]
    return float(np.average(values, weights=[weight for *_, weight in found]))


def by_definition(attention: NDArray[np.float64], example: EncodedExample) -> list[float]:
    n = len(example)
    values = []
    for direction in (0, 1):
        arcs = []
        for dep, dep_size, gov, gov_size, relation in example.arcs.tolist():
            spans = [range(dep, dep + dep_size), range(gov, gov + gov_size)]
            queries, keys = spans[::-1] if direction else spans
            cells = [
                attention[i, j] - control_mean(attention, example, int(example.segments[i]), j - i)
                for i in queries
                for j in keys
            ]
            arcs.append((relation, n * float(np.mean(cells))))
        chosen = [arcs] + [[arc for arc in arcs if arc[0] == k] for k in (0, 1)]
        values.append([float(np.mean([a for _, a in c])) if c else np.nan for c in chosen])
    (pooled_up, up_0, up_1), (pooled_down, down_0, down_1) = values
    return [pooled_up, pooled_down, up_0, down_0, up_1, down_1]


@given(parsed(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=80)
def test_equals_the_definition(example: EncodedExample, seed: int) -> None:
    attention = random_attention(len(example), seed)
    values, sieves = contrasts_of(attention, [example])
    for head in range(2):
        expected = np.array(by_definition(attention[0, head], example))
        whole = ~np.isnan(expected)  # missing: no arc, or no control for one of its pairs
        np.testing.assert_allclose(values[0, head, whole], expected[whole], atol=2e-4)
    arcs_of_role = sieves.counts[0, -len(CONTRASTS) :] > 0
    assert lacks_controls(example) or (whole == arcs_of_role).all()


@pytest.mark.parametrize("n_words", [RUN + 2, RUN + 3, 4 * RUN])
def test_more_controls_than_a_run_holds(n_words: int) -> None:
    """Every control at distance 1 but that of the one arc, one word to the left."""
    segments = [S, *[0] * n_words, S]
    words = [-1, *range(n_words), -1]
    example = make_parsed(segments, words, [-1, 0, *[-1] * (n_words - 2)], {1: 0})
    assert find_controls([example]).totals.tolist() == [n_words - 2]
    attention = random_attention(len(example), n_words)
    values, _ = contrasts_of(attention, [example])
    expected = by_definition(attention[0, 1], example)
    np.testing.assert_allclose(values[0, 1, :4], expected[:4], rtol=1e-4, atol=1e-4)


@given(parsed(), st.integers(0, 2**16))
@settings(deadline=None, max_examples=60)
def test_attention_by_offset_alone_scores_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at positions and not at words has no contrast, arcs short or long."""
    n = len(example)
    profile = np.random.default_rng(seed).random(2 * n)
    attention = profile[np.subtract.outer(range(n), range(n)) + n] / n
    if not lacks_controls(example):
        values, _ = contrasts_of(attention[None, None], [example])
        np.testing.assert_allclose(values, 0, atol=1e-5)


@given(parsed(min_words=5), st.integers(0, 2**16))
@settings(deadline=None, max_examples=60)
def test_attention_along_arcs_scores_above_zero(example: EncodedExample, seed: int) -> None:
    """A head that looks at governors, and else by offset, is told from one that does not."""
    n = len(example)
    profile = np.random.default_rng(seed).random(2 * n)
    attention = profile[np.subtract.outer(range(n), range(n)) + n] / n
    for dep, dep_size, gov, gov_size, _ in example.arcs.tolist():
        attention[dep : dep + dep_size, gov : gov + gov_size] += 0.5
    values, sieves = contrasts_of(attention[None, None], [example])
    present = sieves.counts[0, -len(CONTRASTS) :] > 0
    up = np.array([not role.split(":")[-2].startswith("to_dep") for role in CONTRASTS])
    assert (values[0, 0, present & up] > 0.4 * n).all()
    if not lacks_controls(example):
        np.testing.assert_allclose(values[0, 0, present & up], 0.5 * n, rtol=1e-4)
        np.testing.assert_allclose(values[0, 0, ~up], 0, atol=1e-4)


@given(st.lists(parsed(), min_size=2, max_size=4), st.integers(0, 2**16))
@settings(deadline=None, max_examples=40)
def test_padding_changes_nothing(batch: list[EncodedExample], seed: int) -> None:
    width = max(len(example) for example in batch)
    attention = np.random.default_rng(seed).random((len(batch), 2, width, width))
    alone = []
    for k, example in enumerate(batch):
        own = random_attention(len(example), seed + k)
        attention[k, :, : len(example), : len(example)] = own[0]
        alone.append(contrasts_of(own, [example])[0][0])
    np.testing.assert_allclose(contrasts_of(attention, batch)[0], alone, rtol=1e-4, atol=1e-5)


def test_excess_is_in_shares_of_attention() -> None:
    """Both sides of the difference have the same sieve size, so their constants cancel."""
    # w0 <- w1, w3 -> w2; controls at +1: (1, 2); at -1: (2, 1)
    example = make_parsed([S, 0, 0, 0, 0, S], [-1, 0, 1, 2, 3, -1], [1, -1, 3, -1], {0: 0})
    attention = np.full((1, 1, 6, 6), 0.1)
    attention[0, 0, 1, 2] = 0.5
    values, _ = contrasts_of(attention, [example], score="excess")
    assert values[0, 0, CONTRASTS.index("syntactic:beyond_offset")] == pytest.approx(
        (0.5 - 0.1) / (1 - 1 / 6), rel=1e-5
    )


def test_arcs_of_other_relations_are_no_controls() -> None:
    """Only the pair (3, 4) joins no words: (0, 1), (1, 2) and (2, 3) are arcs."""
    example = make_parsed(
        [S, 0, 0, 0, 0, 0, S], [-1, 0, 1, 2, 3, 4, -1], [1, 2, -1, 2, 2], {0: 0, 3: 0}
    )
    controls = find_controls([example])
    (cell,) = np.flatnonzero(controls.distances == 1)
    assert controls.firsts[controls.cells == cell].tolist() == [4]
    assert controls.seconds[controls.cells == cell].tolist() == [5]


def test_pieces_of_long_words_do_not_outvote_short_ones() -> None:
    """Words 1 (three pieces) and 2, 3 (one each), none joined, all at piece offsets of 1."""
    example = make_parsed([S, *[0] * 6, S], [-1, 0, 1, 1, 1, 2, 3, -1], [-1, 3, 0, 0], {2: 0, 1: 0})
    controls = find_controls([example])
    (cell,) = np.flatnonzero(controls.distances == 2)
    # word pairs (0, 1) by pieces (1, 3) and (1, 2) by pieces (3, 5): a third each; (2, 3) is at 1
    found = controls.weights[controls.cells == cell]
    assert found.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert controls.totals[cell] == pytest.approx(2 / 3)


def test_no_relations_no_controls() -> None:
    example = make_parsed([S, 0, 0, S], [-1, 0, 1, -1], [1, -1], {})
    controls = find_controls([example])
    assert len(controls.distances) == len(controls.firsts) == 0
    assert build_sieves([example], 0, controls=controls).contrasts is None


def test_examples_together_have_the_controls_of_each_alone() -> None:
    one = make_parsed([S, 0, 0, 0, S], [-1, 0, 1, 2, -1], [1, -1, 1], {0: 0})
    other = make_parsed(
        [S, 0, 0, 0, 0, 0, S], [-1, 0, 1, 2, 3, 4, -1], [1, 2, -1, 2, 2], {0: 0, 3: 0}
    )
    together = find_controls([one, other])
    alone = [find_controls([one]), find_controls([other])]
    for name in ("lengths", "boundaries", "distances", "totals", "firsts", "seconds", "weights"):
        expected = np.concatenate([getattr(controls, name) for controls in alone])
        np.testing.assert_array_equal(getattr(together, name), expected)
    assert together.owners.tolist() == [0] * len(alone[0].owners) + [1] * len(alone[1].owners)
