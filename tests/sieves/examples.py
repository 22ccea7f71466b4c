"""Examples and attention to try sieves on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.contraction import SieveTensors, contract
from headroles.sieves import build_sieves, role_ids
from headroles.tokens import SPECIAL, EncodedExample

ROLES = role_ids(["r0", "r1"])
S = SPECIAL


def make_example(segments: list[int], arcs: list[tuple[int, ...]] = ()) -> EncodedExample:
    n = len(segments)
    return EncodedExample(
        id="x",
        document="d",
        input_ids=np.arange(n),
        token_type_ids=None,
        segments=np.array(segments),
        arcs=np.array(arcs, dtype=np.int64).reshape(-1, 5),
        words=np.where(np.array(segments) == S, -1, np.cumsum(np.array(segments) != S) - 1),
        governors=np.full(n, -1),
    )


def make_parsed(
    segments: list[int], words: list[int], governors: list[int], scored: dict[int, int]
) -> EncodedExample:
    """An example whose tokens belong to ``words`` (-1: special) with these ``governors``.

    ``scored`` gives the relation, 0 or 1, of the dependents whose arcs are scored.
    """
    table = np.array(words)
    starts = {word: int(np.argmax(table == word)) for word in set(words)}
    sizes = {word: words.count(word) for word in set(words)}
    arcs = [
        (starts[d], sizes[d], starts[governors[d]], sizes[governors[d]], relation)
        for d, relation in scored.items()
    ]
    return replace(make_example(segments, arcs), words=table, governors=np.array(governors))


def controls_at(example: EncodedExample, segment: int, offset: int) -> list[tuple[int, int, float]]:
    """Query, key and weight of the pairs of pieces at the offset whose words no arc joins."""
    words, segments = example.words.tolist(), example.segments.tolist()
    governors = example.governors.tolist()
    found = []
    for i in range(max(0, -offset), min(len(words), len(words) - offset)):
        x, y = words[i], words[i + offset]
        joined = x == y or governors[x] == y or governors[y] == x
        if segments[i] == segments[i + offset] == segment and not joined:
            found.append((i, i + offset, 1 / (words.count(x) * words.count(y))))
    return found


def score(
    attention: NDArray[np.float64], examples: list[EncodedExample], **options: object
) -> NDArray[np.float64]:
    """(batch, heads, roles) of attention (batch, heads, n, n), NaN where there is no score."""
    sieves = build_sieves(examples, 2, **options)  # type: ignore[arg-type]
    tensors = SieveTensors.of(sieves, torch.device("cpu"))
    scores, _ = contract(torch.tensor(attention, dtype=torch.float32), tensors)
    values = scores.numpy().astype(float)
    values[np.broadcast_to((sieves.counts == 0)[:, None], values.shape)] = np.nan
    return values


HAND = (
    np.array(
        [
            [4, 2, 1, 1, 1, 1, 0],
            [1, 2, 4, 1, 1, 1, 0],
            [1, 4, 2, 2, 0, 0, 1],
            [2, 0, 0, 4, 0, 0, 4],
            [0, 1, 1, 2, 2, 2, 2],
            [1, 0, 0, 2, 4, 2, 1],
            [1, 1, 1, 3, 1, 1, 2],
        ]
    )
    / 10
)[None, None]
# [CLS] a1 a2 [SEP] b1 b2 [SEP]
HAND_SEGMENTS = [S, 0, 0, S, 1, 1, S]


@st.composite
def examples(draw: st.DrawFn) -> EncodedExample:
    first, second = draw(st.integers(1, 8)), draw(st.integers(0, 8))
    segments = [S] + [0] * first + [S] + ([1] * second + [S] if second else [])
    words = [i for i, segment in enumerate(segments) if segment != S]
    arcs = []
    for _ in range(draw(st.integers(0, 6))):
        a, b = draw(st.sampled_from(words)), draw(st.sampled_from(words))
        sizes = [1 + (i + 1 in words and draw(st.booleans())) for i in (a, b)]
        arcs.append((a, sizes[0], b, sizes[1], draw(st.integers(0, 1))))
    return make_example(segments, arcs)


def random_attention(n: int, seed: int, heads: int = 2) -> NDArray[np.float64]:
    logits = np.random.default_rng(seed).normal(scale=3, size=(1, heads, n, n))
    weights = np.exp(logits)
    attention: NDArray[np.float64] = weights / weights.sum(-1, keepdims=True)
    return attention
