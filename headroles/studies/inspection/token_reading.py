"""Examples -> attention to tokens of each kind, layer by layer: one row per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import PreparedCorpus, Sentence
from headroles.encoding import EncodedExample
from headroles.models.attention.norms import NormReader
from headroles.models.attention.reader import AttentionReader, open_norms, open_reader
from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.examples import ExampleBatch, passes_over
from headroles.passes.loop import Budget
from headroles.roles import PaddedBatch
from headroles.roles.catalogue import fold, marks_in
from headroles.scoring.block_scoring import refuse_not_finite
from headroles.scoring.windows import windows_of
from headroles.studies.inspection.options import TokenOptions

CLASSIFIER, SEPARATORS, PUNCTUATION, OTHER = GROUPS = (
    "classifier",
    "separators",
    "punctuation",
    "other",
)
"""Kinds of tokens: every token is of one."""
WORDS = "words"
"""Punctuation and other tokens together."""
WEIGHTS, NORMS, LAYER_NORMS, LENGTH = PER_TOKEN = ("weights", "norms", "layer_norms", "length")
"""Quantities of every token."""
TOKENS, DIFFERENCE, WITH_FREQUENCY = "tokens", "norms_less_weights", "_by_frequency"
QUANTITIES = (
    *((group, name) for group in GROUPS for name in (TOKENS, *PER_TOKEN, DIFFERENCE)),
    *((group, f"{name}{WITH_FREQUENCY}") for group in (WORDS, OTHER) for name in PER_TOKEN),
)
"""Groups of tokens and their quantities, for an example and a layer."""
_FEWEST_WORDS = 3


@dataclass
class TokenReading:
    """Reader of examples, window after window; counts skipped examples.

    ``counts`` are word frequencies, of words as `fold` gives them.
    """

    encoder: LoadedEncoder
    corpus: PreparedCorpus
    counts: Mapping[str, int]
    options: TokenOptions

    def __post_init__(self) -> None:
        self.skipped: Counter[str] = Counter(self.corpus.skipped)
        self.documents: list[str] = []
        self.pieces: dict[str, int] = {}
        self.described: dict[str, str] = {}
        self._budget = Budget.of(self.encoder.device, self.options.batch_tokens)

    def values(self) -> Float32Array:
        """Return (examples, layers + 1, quantities) of `QUANTITIES`, NaN where there is none.

        The last are means over layers.
        """
        with open_reader(self.encoder.model) as reader, open_norms(reader) as norms:
            self.described = reader.description
            rows = [row for window in self._windows() for row in self._of(window, reader, norms)]
        if not rows:
            return np.empty((0, 0, len(QUANTITIES)), dtype=np.float32)
        return np.stack(rows)

    def _windows(self) -> Iterator[list[EncodedExample]]:
        encoder, done = self.encoder, 0
        cut = encoder.example_encoder()
        for window in windows_of(self.corpus, self.options.pairing):
            encoded = cut.encode(window.examples, self.skipped)
            self.documents += [example.document for example in encoded]
            yield encoded
            done += window.n_sentences
            if self.options.on_progress is not None:
                self.options.on_progress(done, self.corpus.n_sentences)
        self.pieces = dict(cut.counts)

    def _of(
        self, examples: list[EncodedExample], reader: AttentionReader, norms: NormReader
    ) -> list[Float32Array]:
        """Return rows of the examples, in their order."""

        def read(batch: ExampleBatch) -> list[Float32Array]:
            return rows_of(batch, read_tokens(self.encoder, reader, norms, batch), self.counts)

        passes = passes_over(examples, self.encoder, self._budget)
        found = [
            (row, values)
            for batch, own in passes.over_all(read)
            for row, values in zip(batch.indices, own, strict=True)
        ]
        return [values for _, values in sorted(found, key=lambda one: one[0])]


def read_tokens(
    encoder: LoadedEncoder, reader: AttentionReader, norms: NormReader, batch: ExampleBatch
) -> FloatArray:
    """Return (examples, layers, 4, tokens): the attention that each token gets, by `PER_TOKEN`.

    ``weights`` and ``norms`` are means over heads and queries, ``layer_norms`` over queries, so
    that those of an example add up to 1; ``length`` is the mean of ||f|| over heads. Layers that
    have no heads left are NaN. Raises ModelError for attention that is not finite.
    """
    listener = TokenListener(reader, norms, batch)
    reader.read(batch.inputs, listener)
    return listener.values(encoder)


class TokenListener:
    """Reader of the attention that tokens get, called with the weights of each layer in turn."""

    def __init__(self, reader: AttentionReader, norms: NormReader, batch: ExampleBatch) -> None:
        self._reader, self._norms, self._batch = reader, norms, batch
        real = batch.inputs["attention_mask"].float()
        self._queries = real / real.sum(dim=1, keepdim=True)
        self._layers: list[Tensor] = []

    def __call__(self, layer: int, weights: Tensor) -> None:
        """Read a layer."""
        remaining, norms, queries = self._reader.remaining[layer], self._norms, self._queries
        if len(remaining) != weights.shape[1]:
            weights = weights[:, list(remaining)]
        there = weights.float()
        of_heads = (there, norms.norms(layer, there))
        shares = [torch.einsum("bhqk,bq->bk", one, queries) / one.shape[1] for one in of_heads]
        shares.append(torch.einsum("bqk,bq->bk", norms.layer_norms(layer, there), queries))
        self._layers.append(torch.stack([*shares, norms.lengths(layer).mean(dim=1)], dim=1))

    def values(self, encoder: LoadedEncoder) -> FloatArray:
        """Return (examples, layers, 4, tokens). Raises ModelError for infinite attention or NaN."""
        found: FloatArray = torch.stack(self._layers, dim=1).cpu().numpy().astype(np.float64)
        there = np.array([bool(heads) for heads in self._reader.remaining])
        refuse_not_finite(found[:, there], self._batch.examples, encoder)
        found[:, ~there] = np.nan
        return found


def rows_of(
    batch: ExampleBatch, per_token: FloatArray, counts: Mapping[str, int]
) -> list[Float32Array]:
    """Return for each example (layers + 1, quantities), from the attention of its tokens."""
    groups = groups_of(PaddedBatch(batch.examples)).swapaxes(0, 1)
    return [
        values_of(one, own[..., : len(one)], group[:, : len(one)], counts)
        for one, own, group in zip(batch.examples, per_token, groups, strict=True)
    ]


def groups_of(batch: PaddedBatch) -> BoolArray:
    """Return (4, examples, tokens): whether a token is of each of `GROUPS`."""
    marks = np.stack(
        [
            np.isin(batch.words[row], [k for k, mark in enumerate(marks_in(example)) if mark])
            for row, example in enumerate(batch.examples)
        ]
    )
    words = batch.in_words
    return np.stack([batch.classifier, batch.separators, words & marks, words & ~marks])


def values_of(
    example: EncodedExample,
    per_token: FloatArray,
    groups: BoolArray,
    counts: Mapping[str, int],
) -> Float32Array:
    """Return (layers + 1, quantities) from (layers, 4, n) per token and groups (4, n)."""
    columns = [column for group in groups for column in _of_group(per_token, group)]
    places = np.flatnonzero(example.sizes)
    frequency = np.array([counts.get(fold(word), 0) for word in _words(example.sentences)])[places]
    pieces = (example.words[:, None] == places) / example.sizes[places]
    of_words = per_token @ pieces  # means over the pieces of a word
    is_other = ~np.array(marks_in(example), dtype=bool)[places]
    for chosen in (np.ones_like(is_other), is_other):
        columns += [*rank_correlations(of_words[..., chosen], frequency[chosen]).T]
    layers = np.stack(columns, axis=-1)
    there = ~np.isnan(per_token).any(axis=(1, 2))
    layers[~there] = np.nan
    # The mean of all layers is over layers with heads.
    whole = layers[there].mean(axis=0) if there.any() else np.full(layers.shape[1], np.nan)
    return np.concatenate([layers, whole[None]]).astype(np.float32)


def _of_group(per_token: FloatArray, group: BoolArray) -> list[FloatArray]:
    """Return the columns (layers,) of a group; NaN where the example has no such token."""
    n_layers = len(per_token)
    if not group.any():
        return [np.full(n_layers, np.nan)] * (len(PER_TOKEN) + 2)
    shares = per_token[:, :-1, group].sum(axis=-1)
    lengths = per_token[:, -1, group].mean(axis=-1)
    return [np.full(n_layers, group.mean()), *shares.T, lengths, shares[:, 1] - shares[:, 0]]


def _words(sentences: Sequence[Sentence]) -> list[str]:
    return [word for sentence in sentences for word in sentence.words]


def rank_correlations(values: FloatArray, counts: IntArray) -> FloatArray:
    """Return Spearman's rank correlations of ``values`` (..., words) with ``counts``.

    NaN for fewer than three words, and where either is the same for all words.
    """
    if values.shape[-1] < _FEWEST_WORDS:
        return np.full(values.shape[:-1], np.nan)
    ranks, of_counts = rankdata(values, axis=-1), rankdata(counts)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    of_counts -= of_counts.mean()
    scale = np.sqrt((ranks**2).sum(axis=-1) * (of_counts**2).sum())
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, for constant values
        return np.asarray(ranks @ of_counts / scale)
