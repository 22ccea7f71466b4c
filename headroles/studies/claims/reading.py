"""Scores of several kinds, and shares of tokens, from one pass of a model over a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from headroles.arrays import Float32Array
from headroles.corpus import Corpus, Example, prepared
from headroles.encoding import EncodedExample
from headroles.errors import HeadRolesError
from headroles.models.attention import AttentionReader, open_norms, open_reader
from headroles.models.loading import Attending, LoadedEncoder, load_encoder
from headroles.models.norms import NormReader
from headroles.passes.examples import ExampleBatch, on_device, to_host
from headroles.passes.loop import Budget, Passes
from headroles.roles.frequencies import count_words
from headroles.scoring.block_scoring import LaunchedBlock, PreparedBatch
from headroles.scoring.blocks import Counts, ScoredWindow
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from headroles.scoring.scores import HeadScores
from headroles.scoring.windows import Window, windows_of
from headroles.studies.inspection.options import TokenOptions
from headroles.studies.inspection.token_reading import TokenListener, rows_of


@dataclass(frozen=True)
class Together:
    """Scores, equal to those of `score_heads`, and quantities of tokens, as of `TokenReading`.

    ``tokens`` is an array (examples, layers + 1, quantities), or the reason if the model has no
    norms.
    """

    scores: list[HeadScores]
    tokens: Float32Array | HeadRolesError


def read_together(
    model: Attending, corpus: Corpus, asked: Sequence[ScoreOptions], tokens: TokenOptions
) -> Together:
    """Run the model once over the corpus. Errors are those of `score_heads`."""
    with prepared(corpus) as ready, ExitStack() as stack:
        encoder = load_encoder(model, tokens)
        reader = stack.enter_context(open_reader(encoder.network))
        norms: NormReader | HeadRolesError
        try:
            norms = stack.enter_context(open_norms(reader))
        except HeadRolesError as error:
            norms = error
        runs = [ScoringRun(encoder, reader, ready, one) for one in asked]
        reading = _Reading(encoder, reader, norms, runs, count_words(tokens, ready))
        found = [reading.read(*one) for one in windows_of(ready, tokens.pairing)]
        scores = [
            HeadScores.from_blocks(
                list(run.blocks(scored=scored)), run.roles, run.score, run.record()
            )
            for run, scored in zip(runs, zip(*found, strict=True), strict=True)
        ]
    if isinstance(norms, HeadRolesError):
        return Together(scores, norms)
    return Together(scores, np.stack(reading.quantities))


@dataclass(frozen=True)
class _JointBatch:
    """Examples as inputs of the model, and as prepared for each kind of scores."""

    indices: list[int]
    prepared: list[PreparedBatch]
    batch: ExampleBatch


class _Reading:
    """Reader of one window after another; ``quantities`` are those of tokens so far."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        norms: NormReader | HeadRolesError,
        runs: Sequence[ScoringRun],
        frequencies: Mapping[str, int],
    ) -> None:
        self._encoder, self._reader, self._norms = encoder, reader, norms
        self._scorers = [run.scorer for run in runs]
        self._frequencies = frequencies
        self._cut = encoder.example_encoder()
        self._budget = Budget.of(encoder.device, runs[0].batch_tokens)
        self.quantities: list[Float32Array] = []

    def read(self, window: Window, examples: list[Example]) -> list[tuple[Window, ScoredWindow]]:
        """Read a window, and return its result for each kind of scores."""
        counts = [Counts() for _ in self._scorers]
        self._cut.counts.clear()
        encoded = self._cut.encode(examples, counts[0].skipped)
        counts[0].pieces.update(self._cut.counts)
        for other in counts[1:]:
            other.add(counts[0])
        if not encoded:
            return [(window, ScoredWindow(None, one)) for one in counts]
        passes = Passes(
            [len(example) for example in encoded],
            lambda indices: self._batch(encoded, indices),
            lambda index: f"the example {encoded[index].id!r}",
            self._budget,
        )
        read: list[list[Any]] = [[] for _ in self._scorers]
        found: dict[int, Float32Array] = {}
        for joint, (values, of_tokens) in passes.over_all(self._read):
            found.update(zip(joint.indices, of_tokens, strict=False))
            for own, one, coming in zip(read, joint.prepared, values, strict=True):
                own.append((one, coming))
        self.quantities += [found[index] for index in sorted(found)]
        return [
            (window, ScoredWindow(scorer.fetch(LaunchedBlock(encoded, own), count), count))
            for scorer, own, count in zip(self._scorers, read, counts, strict=True)
        ]

    def _batch(self, encoded: Sequence[EncodedExample], indices: list[int]) -> _JointBatch:
        batches = [scorer.prepare_batch(encoded, indices) for scorer in self._scorers]
        inputs = on_device(batches[0].to_read[0], self._encoder.device)
        return _JointBatch(indices, batches, ExampleBatch(indices, batches[0].examples, inputs))

    def _read(self, joint: _JointBatch) -> tuple[list[Callable[[], Any]], list[Float32Array]]:
        """Return scores of each kind, while they leave the device, and quantities of tokens."""
        batch = joint.batch
        listeners = [
            scorer.listen(one) for scorer, one in zip(self._scorers, joint.prepared, strict=True)
        ]
        of_tokens = None
        if isinstance(self._norms, NormReader):
            of_tokens = TokenListener(self._reader, self._norms, batch)

        def on_layer(layer: int, weights: Tensor) -> None:
            for one in (*listeners, *([of_tokens] if of_tokens else ())):
                one(layer, weights)

        self._reader.read(batch.inputs, on_layer, [example.id for example in batch.examples])
        coming = [to_host(one.values()) for one in listeners]
        if of_tokens is None:
            return coming, []
        return coming, rows_of(batch, of_tokens.values(self._encoder), self._frequencies)
