"""Examples -> attention to tokens of each kind, layer by layer: one row per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import PreparedCorpus
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
from headroles.studies.inspection.tokens import PER_TOKEN, QUANTITIES, TokenOptions

_FEWEST_WORDS = 3


class TokenValues(NamedTuple):
    """Quantities of all examples of a corpus, with documents and counts of the reading.

    ``values`` are (examples, layers + 1, quantities) of `QUANTITIES`, NaN where there is none; the
    last of the layers is the mean over layers. ``through`` describes the reading of the model.
    """

    values: Float32Array
    documents: list[str]
    skipped: Counter[str]
    pieces: dict[str, int]
    through: dict[str, str]


def read_corpus(
    encoder: LoadedEncoder, corpus: PreparedCorpus, counts: Mapping[str, int], options: TokenOptions
) -> TokenValues:
    """Read the examples of a corpus, window after window.

    ``counts`` are word frequencies, of words as `fold` gives them.
    """
    skipped, documents, rows, done = Counter(corpus.skipped), [], [], 0
    cut, budget = encoder.example_encoder(), Budget.of(encoder.device, options.batch_tokens)
    with open_reader(encoder.model) as reader, open_norms(reader) as norms:

        def read(batch: ExampleBatch) -> list[Float32Array]:
            per_token = read_tokens(encoder, reader, norms, batch)
            groups = groups_of(PaddedBatch(batch.examples)).swapaxes(0, 1)
            return [
                values_of(example, weights[..., : len(example)], group[:, : len(example)], counts)
                for example, weights, group in zip(batch.examples, per_token, groups, strict=True)
            ]

        for window in windows_of(corpus, options.pairing):
            examples = cut.encode(window.examples, skipped)
            documents += [example.document for example in examples]
            by_row = {
                row: values
                for batch, of_batch in passes_over(examples, encoder, budget).over_all(read)
                for row, values in zip(batch.indices, of_batch, strict=True)
            }
            rows += [by_row[row] for row in sorted(by_row)]
            done += window.n_sentences
            if options.on_progress is not None:
                options.on_progress(done, corpus.n_sentences)
        through = reader.description
    values = np.stack(rows) if rows else np.empty((0, 0, len(QUANTITIES)), dtype=np.float32)
    return TokenValues(values, documents, skipped, dict(cut.counts), through)


def read_tokens(
    encoder: LoadedEncoder, reader: AttentionReader, norms: NormReader, batch: ExampleBatch
) -> FloatArray:
    """Return (examples, layers, 4, tokens): the attention that each token gets, by `PER_TOKEN`.

    ``weights`` and ``norms`` are means over heads and queries, ``layer_norms`` over queries, so
    that those of an example add up to 1; ``length`` is the mean of ||f|| over heads. Layers that
    have no heads left are NaN. Raises ModelError for attention that is not finite.
    """
    is_real = batch.inputs["attention_mask"].float()
    queries = is_real / is_real.sum(dim=1, keepdim=True)
    layers: list[Tensor] = []

    def take(layer: int, weights: Tensor) -> None:
        remaining = reader.remaining[layer]
        if len(remaining) != weights.shape[1]:
            weights = weights[:, list(remaining)]
        weights = weights.float()
        of_heads = (weights, norms.norms(layer, weights))
        shares = [torch.einsum("bhqk,bq->bk", one, queries) / one.shape[1] for one in of_heads]
        shares.append(torch.einsum("bqk,bq->bk", norms.layer_norms(layer, weights), queries))
        layers.append(torch.stack([*shares, norms.lengths(layer).mean(dim=1)], dim=1))

    reader.read(batch.inputs, take)
    per_token: FloatArray = torch.stack(layers, dim=1).cpu().numpy().astype(np.float64)
    has_heads = np.array([bool(heads) for heads in reader.remaining])
    refuse_not_finite(per_token[:, has_heads], batch.examples, encoder)
    per_token[:, ~has_heads] = np.nan
    return per_token


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
    words = [word for sentence in example.sentences for word in sentence.words]
    frequency = np.array([counts.get(fold(word), 0) for word in words])[places]
    pieces = (example.words[:, None] == places) / example.sizes[places]
    of_words = per_token @ pieces  # means over the pieces of a word
    is_other = ~np.array(marks_in(example), dtype=bool)[places]
    for chosen in (np.ones_like(is_other), is_other):
        columns += [*rank_correlations(of_words[..., chosen], frequency[chosen]).T]
    layers = np.stack(columns, axis=-1)
    has_heads = ~np.isnan(per_token).any(axis=(1, 2))
    layers[~has_heads] = np.nan
    missing = np.full(layers.shape[1], np.nan)
    whole = layers[has_heads].mean(axis=0) if has_heads.any() else missing
    return np.concatenate([layers, whole[None]]).astype(np.float32)


def _of_group(per_token: FloatArray, group: BoolArray) -> list[FloatArray]:
    """Return the columns (layers,) of a group; NaN where the example has no such token."""
    n_layers = len(per_token)
    if not group.any():
        return [np.full(n_layers, np.nan)] * (len(PER_TOKEN) + 2)
    shares = per_token[:, :-1, group].sum(axis=-1)
    lengths = per_token[:, -1, group].mean(axis=-1)
    return [np.full(n_layers, group.mean()), *shares.T, lengths, shares[:, 1] - shares[:, 0]]


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
