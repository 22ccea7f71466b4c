"""Links of words: what a bitext says of them, and what heads choose. Attention -> counts.

A target word is linked to the source word that it attends to most. Attention to a word is the sum
over its pieces, attention from a word the mean over its pieces. Each special token of the source is
a choice of its own: a target word that chooses one has no link (Kobayashi et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray, new_array
from headroles.encoding import PAIR_MASK, EncodedExample, pad
from headroles.models.attention.reader import AttentionReader, NormReader
from headroles.models.options import MEASURES, NORMS, WEIGHTS
from headroles.passes.loop import ExampleBatch
from headroles.roles.aligned import Alignment
from headroles.scoring.layer import first_largest
from headroles.studies.alignment.head_sets import NO_LINK, HeadSet

KINDS = LINKS, IN_SURE, IN_POSSIBLE = range(3)
"""Counts of a pair: links, those that are sure, and those that are sure or possible."""


@dataclass(frozen=True)
class WordMaps:
    """What a batch of B pairs has in words: V of the target, W of the source, K and Q tokens.

    ``from_words`` (B, V, Q) are shares of the tokens of a target word, all 0 for a word without
    pieces, and ``to_places`` (B, K, U) the tokens of the places that a word may choose: the words
    of the source, then its special tokens. ``n_words`` (B, 2) are numbers of words. ``sure`` and
    ``possible`` (B, V, W) are the links of the bitext; sure ones are possible, too.
    """

    from_words: Float32Array
    to_places: Float32Array
    n_words: IntArray
    sure: BoolArray
    possible: BoolArray

    @classmethod
    def from_examples(cls, examples: Sequence[EncodedExample]) -> WordMaps:
        """Map the words of encoded pairs."""
        n_words = np.array([[len(one.words) for one in pair.sentences] for pair in examples])
        n_source, n_target = n_words.max(axis=0)
        sources = pad([pair.words[: pair.n_source] for pair in examples], -2)
        targets = pad([pair.words[pair.n_source :] for pair in examples], -1)
        special = np.cumsum(sources == -1, axis=1) - 1 + n_source
        places = np.where(sources == -1, special, sources)
        to_places = places[..., None] == np.arange(max(n_source, places.max() + 1))
        numbers = n_words[:, :1] + np.arange(n_target)
        from_words = targets[:, None] == numbers[..., None]
        from_words &= (np.arange(n_target) < n_words[:, 1:])[..., None]
        shares = from_words / np.maximum(from_words.sum(axis=-1, keepdims=True), 1)
        sure, possible = np.zeros((2, len(examples), n_target, n_source), dtype=bool)
        for row, pair in enumerate(examples):
            for source, target, label in Alignment().of_pair(*pair.sentences):
                sure[row, target, source] |= label == 0
                possible[row, target, source] = True
        return cls(shares.astype(np.float32), to_places.astype(np.float32), n_words, sure, possible)

    @property
    def is_read(self) -> BoolArray:
        """(B, V): whether there is such a word of the target, which has pieces."""
        return np.asarray(self.from_words.any(axis=-1))

    @property
    def n_sure(self) -> IntArray:
        """(B,): numbers of sure links."""
        return np.asarray(self.sure.sum(axis=(1, 2)))

    @property
    def has_links(self) -> BoolArray:
        """(B,): whether the bitext says how the words of a pair are aligned."""
        return np.asarray(self.possible.any(axis=(1, 2)))

    def diagonal(self) -> IntArray:
        """Return (B, 1, V): the source word at the same part of the sentence as a target word."""
        n_source, n_target = self.n_words.T[..., None]
        place = np.arange(self.from_words.shape[1])
        chosen = (2 * place + 1) * n_source // (2 * n_target)
        return np.where(self.is_read, chosen, NO_LINK)[:, None]

    def count(self, chosen: IntArray) -> IntArray:
        """Count the links ``chosen`` (B, C, V) by each of C aligners, as (B, C, `KINDS`)."""
        row, word = np.arange(len(chosen))[:, None, None], np.arange(chosen.shape[2])
        is_link, at = chosen != NO_LINK, (row, word, np.maximum(chosen, 0))
        kinds = (is_link, is_link & self.sure[at], is_link & self.possible[at])
        return np.stack([kind.sum(axis=-1) for kind in kinds], axis=-1)


class Choices(NamedTuple):
    """The places (B, C, V) that target words choose, `NO_LINK` for none, and the largest attention
    (B, C) to a source word, a mean over target words.
    """

    chosen: IntArray
    confidence: FloatArray


@dataclass(frozen=True)
class LinkReader:
    """Reader of the choices of heads, of whole layers, and of sets of heads."""

    reader: AttentionReader
    norms: NormReader

    def by_heads(self, batch: ExampleBatch, maps: WordMaps) -> Choices:
        """Return the choices of C = `MEASURES` * layers * (heads + 1), the last head for a layer.

        Of a whole layer, weights are averaged, and norms are those of the sum over its heads.
        """
        between = _Between(batch, maps)
        layers: list[list[Choices]] = [[] for _ in MEASURES]

        def take(layer: int, weights: Tensor) -> None:
            weights, left = weights.float(), list(self.reader.remaining[layer])
            whole = weights.sum(dim=1, keepdim=True) / max(1, len(left))
            by_weights = torch.cat([weights, whole], dim=1)
            whole = self.norms.layer_norms(layer, weights[:, left])[:, None]
            by_norms = torch.cat([self._norms(layer, weights), whole], dim=1)
            for place, taken in enumerate((by_weights, by_norms)):
                layers[place].append(between.choose(between.words(taken)))

        self.reader.read(between.inputs, take, [example.id for example in batch.examples])
        chosen, confidence = zip(*(one for of_measure in layers for one in of_measure), strict=True)
        return Choices(np.concatenate(chosen, axis=1), np.concatenate(confidence, axis=1))

    def by_sets(self, batch: ExampleBatch, maps: WordMaps, sets: Sequence[HeadSet]) -> Choices:
        """Return the choices of C sets of heads, by their average attention."""
        between = _Between(batch, maps)
        sums: dict[int, Tensor] = {}

        def take(layer: int, weights: Tensor) -> None:
            weights = weights.float()
            wanted = {WEIGHTS: weights}
            if any(one.measure == NORMS for one in sets):
                wanted[NORMS] = self._norms(layer, weights)
            for place, one in enumerate(sets):
                if heads := [head for number, head in one.heads if number == layer]:
                    added = wanted[one.measure][:, heads].sum(dim=1, keepdim=True)
                    added = between.words(added) / len(one.heads)
                    sums[place] = sums[place] + added if place in sums else added

        self.reader.read(between.inputs, take, [example.id for example in batch.examples])
        return between.choose(torch.cat([sums[place] for place in range(len(sets))], dim=1))

    def _norms(self, layer: int, weights: Tensor) -> Tensor:
        """Return norms (B, heads, Q, K), 0 for heads that were removed from the model."""
        left = list(self.reader.remaining[layer])
        norms = torch.zeros_like(weights)
        norms[:, left] = self.norms.norms(layer, weights[:, left])
        return norms


class _Between:
    """Attention between the words of a batch, from that between its tokens."""

    def __init__(self, batch: ExampleBatch, maps: WordMaps) -> None:
        device = batch.inputs["input_ids"].device
        # without this mask the reader leaves source and target apart
        self.inputs = {name: value for name, value in batch.inputs.items() if name != PAIR_MASK}
        self._from_words = torch.from_numpy(maps.from_words).to(device)[:, None]
        self._to_places = torch.from_numpy(maps.to_places).to(device)[:, None]
        self._is_read, self._n_source = maps.is_read, maps.sure.shape[2]

    def words(self, weights: Tensor) -> Tensor:
        """Return attention (B, C, V, U) of target words to places, from (B, C, Q, K)."""
        return self._from_words @ (weights @ self._to_places)

    def choose(self, words: Tensor) -> Choices:
        """Find the place with most attention, the first of several, unless it is no word."""
        most = words[..., : self._n_source].amax(dim=-1).cpu().numpy().astype(np.float64)
        chosen, is_read = first_largest(words).cpu().numpy(), self._is_read[:, None]
        is_link = is_read & (chosen < self._n_source) & (most > 0)
        confidence = np.where(is_read, most, 0).sum(axis=-1) / np.maximum(is_read.sum(axis=-1), 1)
        return Choices(np.where(is_link, chosen, NO_LINK), confidence)


@dataclass
class LinkCounts:
    """Counts of n pairs for C aligners, and for the diagonal.

    ``found`` (n, C, `KINDS`) and ``diagonal`` (n, 1, `KINDS`) count links; ``sure`` (n,) is the
    number of sure links of the bitext, ``words`` (n,) that of target words, ``has_links`` (n,)
    whether the bitext aligns the pair. ``confidence`` (C,) is the sum over pairs of that of all
    target words, and their mean once all pairs are counted (`of_first`).
    """

    found: IntArray
    diagonal: IntArray
    sure: IntArray
    words: IntArray
    has_links: BoolArray
    confidence: FloatArray

    @classmethod
    def empty(cls, n_pairs: int, n_aligners: int) -> LinkCounts:
        """Make counts to be filled."""
        return cls(
            found=new_array((n_pairs, n_aligners, len(KINDS)), np.uint16),
            diagonal=np.zeros((n_pairs, 1, len(KINDS)), dtype=np.int64),
            sure=np.zeros(n_pairs, dtype=np.int64),
            words=np.zeros(n_pairs, dtype=np.int64),
            has_links=np.zeros(n_pairs, dtype=bool),
            confidence=np.zeros(n_aligners),
        )

    def put(self, rows: IntArray, maps: WordMaps, choices: Choices) -> None:
        """Set the counts of the pairs of a batch."""
        self.found[rows] = maps.count(choices.chosen)
        self.diagonal[rows] = maps.count(maps.diagonal())
        self.sure[rows], self.has_links[rows] = maps.n_sure, maps.has_links
        self.words[rows] = maps.is_read.sum(axis=1)
        self.confidence += self.words[rows] @ choices.confidence

    def of_first(self, n_pairs: int) -> LinkCounts:
        """Return the counts of the first pairs, the only ones that were set."""
        return LinkCounts(
            found=self.found[:n_pairs],
            diagonal=self.diagonal[:n_pairs],
            sure=self.sure[:n_pairs],
            words=self.words[:n_pairs],
            has_links=self.has_links[:n_pairs],
            confidence=self.confidence / max(1, self.words.sum()),
        )
