"""Examples and attention to try roles on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray

from headroles.corpus import Sentence
from headroles.encoding import SPECIAL, EncodedExample
from headroles.passes.loop import as_tensors
from headroles.reach import EVERYTHING, Reach, window_to_either_side
from headroles.roles import (
    SCORES,
    PaddedBatch,
    Readout,
    Role,
    RoleOptions,
    Scope,
    bounds_of,
    choose_roles,
    group_sieves,
    make_readout,
)
from headroles.scoring.layer import read_scores
from tests.noise import with_noise
from tests.reference import Asked, Tokens
from tests.rounding import sizes_of

Array: TypeAlias = NDArray[np.floating]
Batch: TypeAlias = list[EncodedExample]
RELATIONS = ("r0", "r1")
S = SPECIAL


def roles_of(
    score: str = "bias",
    relations: tuple[str, ...] = RELATIONS,
    is_causal: bool = False,
    **options: Any,
) -> tuple[Role, ...]:
    """All roles, of two relations by default; `is_causal` with those of decoders."""
    return choose_roles(RoleOptions(**options), relations, SCORES[score], is_causal=is_causal)


ROLES = [role.id for role in roles_of()]


def make_example(
    segments: list[int],
    words: list[int] | None = None,
    governors: list[int] | None = None,
    relations: dict[int, str] | None = None,
    classes: list[str] | None = None,
) -> EncodedExample:
    """An example whose tokens belong to ``words`` (-1: special), each one of its own if not given.

    ``relations`` label the arcs of dependents; all others are labelled ``other``. ``classes`` are
    parts of speech; all words have the same one if they are not given.
    """
    of_token = np.array(segments) != S
    table = np.where(of_token, np.cumsum(of_token) - 1, -1) if words is None else np.array(words)
    n_words = int(table.max(initial=-1)) + 1
    pieces = [np.flatnonzero(table == word) for word in range(n_words)]
    labels = relations or {}
    of_words = [segments[own[0]] if len(own) else 0 for own in pieces]
    heads = [-1] * n_words if governors is None else governors
    if any(head >= 0 and of_words[word] != of_words[head] for word, head in enumerate(heads)):
        of_words = [0] * n_words  # arcs between sentences: they are one sentence of two segments
    sentences, before = [], 0
    for position in sorted(set(of_words)):
        n = of_words.count(position)
        own_heads = tuple(head - before if head >= 0 else -1 for head in heads[before : before + n])
        own_labels = tuple(labels.get(word, "other") for word in range(before, before + n))
        upos = ("X",) * n if classes is None else tuple(classes[before : before + n])
        sentences.append(
            Sentence("s", "d", position, ("w",) * n, own_heads, own_labels, {"upos": upos})
        )
        before += n
    return EncodedExample(
        id="x",
        document="d",
        input_ids=np.arange(len(segments)),
        token_type_ids=None,
        segments=np.array(segments),
        words=table,
        starts=np.array([own[0] if len(own) else 0 for own in pieces], dtype=np.int64),
        sizes=np.array([len(own) for own in pieces], dtype=np.int64),
        governors=np.array(heads, dtype=np.int64),
        relations=tuple(labels.get(word, "other") for word in range(n_words)),
        sentences=tuple(sentences),
    )


def tokens_of(example: EncodedExample) -> Tokens:
    """The same for the reference."""
    columns = (example.segments, example.words, example.governors)
    return Tokens(
        *(column.tolist() for column in columns),
        list(example.relations),
        [upos for sentence in example.sentences for upos in sentence.upos],
        [k for k, sentence in enumerate(example.sentences) for _ in sentence.words],
    )


def readout_of(
    batch: Batch, score: str = "bias", reach: Reach = EVERYTHING, **options: Any
) -> Readout:
    """The readout of all roles."""
    scope = Scope(PaddedBatch(batch), reach, SCORES[score])
    return read_from(roles_of(score, **options), scope)


def read_from(roles: Sequence[Role], scope: Scope) -> Readout:
    """The readout of some roles."""
    return make_readout(group_sieves(roles), scope)


def sizes_in(
    values: Array, batch: Batch, score: str = "bias", reach: Reach = EVERYTHING, **options: Any
) -> NDArray[np.float64]:
    """The sizes (batch, heads, roles) of the sums behind what `score_of` gives."""
    readout, roles = readout_of(batch, score, reach, **options), roles_of(score, **options)
    return sizes_of(
        values, [role.id for role in roles], readout.counts, bounds_of([readout])[..., 0]
    )


def score_of(
    attention: Array, batch: Batch, score: str = "bias", reach: Reach = EVERYTHING, **options: Any
) -> NDArray[np.float64]:
    """(batch, heads, roles) of attention (batch, heads, n, n), NaN where there is no score."""
    return values_of(attention, readout_of(batch, score, reach, **options), score != "hit")


def scores_by_role(
    attention: Array,
    example: EncodedExample,
    score: str = "bias",
    noisy: bool = False,
    **given: Any,
) -> dict[str, float]:
    """Scores of the first head; `noisy` if also first choices are."""
    values = values_of(attention, readout_of([example], score, **given), noisy or score != "hit")
    roles = [role.id for role in roles_of(score, **given)]
    return dict(zip(roles, values[0, 0].tolist(), strict=True))


def values_of(
    attention: NDArray[np.floating], readout: Readout, noisy: bool = True
) -> NDArray[np.float64]:
    """The same by a readout; noise would break ties of first choices."""
    weights = torch.tensor(attention, dtype=torch.float32)
    moved = as_tensors(readout, torch.device("cpu"))
    read = read_scores(with_noise(weights) if noisy else weights, moved).numpy().astype(float)
    values: NDArray[np.float64] = read[..., readout.columns]
    values[np.broadcast_to((readout.counts == 0)[:, None], values.shape)] = np.nan
    return values


def tenths(rows: str) -> NDArray[np.float64]:
    """(1, 1, n, n): attention of which each digit is a tenth."""
    return np.array([[int(digit) for digit in row] for row in rows.split()])[None, None] / 10


HAND = tenths("4211110 1241110 1422001 2004004 0112222 1002421 1113112")
# [CLS] a1 a2 [SEP] b1 b2 [SEP]
HAND_SEGMENTS = [S, 0, 0, S, 1, 1, S]


@st.composite
def examples(draw: st.DrawFn, min_words: int = 1) -> EncodedExample:
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
    labels = st.sampled_from([*RELATIONS, "other"])
    classes = [draw(st.sampled_from(["NOUN", "VERB", "PRON"])) for _ in governors]
    return make_example(segments, words, governors, {k: draw(labels) for k in dependents}, classes)


def reaches() -> st.SearchStrategy[Reach]:
    """Of encoders without and with windows, of decoders, and windows of two widths."""
    limits = st.one_of(st.none(), st.integers(0, 6))
    windows = st.integers(1, 6).map(window_to_either_side)
    of_decoders = st.tuples(limits, limits).map(lambda both: Reach(*both))
    return st.one_of(st.just(EVERYTHING), windows, of_decoders)


def random_attention(n: int, seed: int, reach: Reach = EVERYTHING) -> NDArray[np.float64]:
    """(1, 2, n, n): two heads, of which rows sum to 1 over the keys within reach."""
    weights = np.exp(np.random.default_rng(seed).normal(scale=3, size=(1, 2, n, n)))
    weights *= Asked(reach=reach).visible(n)
    return weights / weights.sum(-1, keepdims=True)
