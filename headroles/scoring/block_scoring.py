"""Scoring of examples batch by batch: the encoder runs and its attention is read meanwhile.

Windows pass through two steps, so that a device need not wait: they are launched, and their scores
are fetched when the next one is launched. A thread prepares each batch while the one before runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import Float32Array, IntArray
from headroles.encoding import EncodedExample, collate
from headroles.errors import ModelError
from headroles.models.attention.reader import AttentionReader
from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.examples import as_tensors, on_device, to_host
from headroles.passes.loop import Budget, Passes
from headroles.roles import (
    OFFSETS,
    PaddedBatch,
    Readout,
    Role,
    Scope,
    Score,
    bounds_of,
    make_readout,
)
from headroles.scoring.layer import read_scores
from headroles.scoring.scores import Counts, HeadScores
from headroles.scoring.windows import one_ahead

Reach: TypeAlias = int | None


@dataclass(frozen=True)
class Known:
    """What is known of the scores of R roles for B examples before the model runs.

    ``counts`` (B, R) are those of layers with each reach; ``shares`` (B, R, offsets) and counts of
    skipped arcs and controls those of the layers with the widest; ``bounds`` (B, R, 2) hold for
    all layers. Role r is scored in the column ``columns[r]``.
    """

    examples: list[EncodedExample]
    counts: dict[Reach, IntArray]
    columns: tuple[int, ...]
    bounds: Float32Array
    shares: Float32Array | None
    skipped: Counter[str]
    controls: Counter[str]

    @classmethod
    def of(cls, examples: list[EncodedExample], readouts: Mapping[Reach, Readout]) -> Known:
        """Take what is known from the readouts of a batch."""
        counts = {reach: readout.counts for reach, readout in readouts.items()}
        widest = max(readouts.values(), key=lambda readout: int(readout.counts.sum()))
        bounds, shares = bounds_of(list(readouts.values())), widest.offset_shares
        return cls(
            examples, counts, widest.columns, bounds, shares, widest.skipped, widest.controls
        )


@dataclass(frozen=True)
class PreparedBatch:
    """Examples at some ``indices``: inputs of the model, and readouts by the reach of layers."""

    indices: list[int]
    known: Known
    inputs: dict[str, Tensor]
    readouts: dict[Reach, Readout]


Launched: TypeAlias = tuple[list[int], Known, Callable[[], Float32Array]]
"""A batch: its indices, and a function that waits for its scores and returns them."""


@dataclass(frozen=True)
class BlockScorer:
    """Scorer of examples with one encoder, in batches that the ``budget`` allows."""

    encoder: LoadedEncoder
    reader: AttentionReader
    roles: tuple[Role, ...]
    score: Score
    budget: Budget

    def prepare(self, examples: Sequence[EncodedExample], indices: list[int]) -> PreparedBatch:
        """Prepare the batch of the examples at these indices; needs no device."""
        own = [examples[index] for index in indices]
        batch = PaddedBatch(own)
        readouts = {
            reach: make_readout(self.roles, Scope(batch, reach, self.score))
            for reach in dict.fromkeys(self.reader.reaches)
        }
        inputs = collate(own, self.encoder.tokenizer.pad_token_id or 0)
        known = Known.of(own, readouts)
        return PreparedBatch(indices, known, *as_tensors((inputs, readouts), self.encoder.device))

    def launch(
        self, examples: Sequence[EncodedExample], report: Callable[[int], None]
    ) -> list[Launched]:
        """Run the encoder on all examples; devices other than the CPU may finish later.

        ``report`` is called with the number of examples done.
        """
        lengths = [len(example) for example in examples]
        make = partial(self.prepare, examples)
        passes = Passes(
            lengths, make, lambda index: f"the example {examples[index].id!r}", self.budget
        )
        launched: list[Launched] = []
        done = 0
        batches = one_ahead(map(make, self.budget.batches(lengths)))
        for batch, coming in passes.run(batches, lambda one: to_host(self.read(one))):
            launched.append((batch.indices, batch.known, coming))
            done += len(batch.indices)
            report(done)
        return launched

    def read(self, batch: PreparedBatch) -> Tensor:
        """Read values (B, layers, heads, columns), undefined where counts are 0."""
        inputs, readouts = on_device((batch.inputs, batch.readouts), self.encoder.device)
        layers: list[Tensor] = []

        def read_layer(layer: int, weights: Tensor) -> None:
            layers.append(read_scores(weights, readouts[self.reader.reaches[layer]]))

        self.reader.read(inputs, read_layer, [example.id for example in batch.known.examples])
        return torch.stack(layers, dim=1)

    def fetch(self, launched: Sequence[Launched], counts: Counts) -> HeadScores:
        """Wait for scores and return them in the order of examples.

        Numbers of skipped arcs and of controls are added to ``counts``.
        """
        n, n_roles = sum(len(indices) for indices, _, _ in launched), len(self.roles)
        examples: dict[int, EncodedExample] = {}
        values = np.empty((n, self.reader.n_layers, self.reader.n_heads, n_roles), np.float32)
        units = np.empty((n, n_roles), dtype=np.int64)
        shares = np.full((n, n_roles, len(OFFSETS)), np.nan, dtype=np.float32)
        bounds = np.empty((n, n_roles, 2), dtype=np.float32)
        for indices, known, arrived in launched:
            examples.update(zip(indices, known.examples, strict=True))
            values[indices] = self._values(known, arrived())
            units[indices] = np.max(list(known.counts.values()), axis=0)
            bounds[indices] = known.bounds
            if known.shares is not None:
                shares[indices] = known.shares
            counts.add(Counts(known.skipped, known.controls))
        ordered = [examples[index] for index in range(n)]
        return HeadScores(
            ids=tuple(example.id for example in ordered),
            documents=tuple(example.document for example in ordered),
            lengths=np.array([len(example) for example in ordered], dtype=np.int64),
            roles=self.roles,
            values=values,
            counts=units,
            score=self.score,
            digests=tuple(example.digest for example in ordered),
            offset_shares=shares if self.score.of_first_choice else None,
            bounds=bounds,
        )

    def _values(self, known: Known, read: Float32Array) -> Float32Array:
        """Return values (B, layers, heads, roles), NaN where an example or a head has none."""
        refuse_not_finite(read, known.examples, self.encoder)
        for layer, head in self.reader.removed:
            read[:, layer, head] = np.nan
        values = read[..., known.columns]
        for layer, reach in enumerate(self.reader.reaches):
            values[:, layer].swapaxes(1, 2)[known.counts[reach] == 0] = np.nan
        return values


def refuse_not_finite(
    read: NDArray[np.floating], examples: Sequence[EncodedExample], encoder: LoadedEncoder
) -> None:
    """Raise ModelError if any value of ``read`` (examples, layers, ...) is not finite."""
    if not np.isfinite(read).all():
        row, layer = np.argwhere(~np.isfinite(read))[0, :2]
        raise ModelError(
            f"attention of layer {layer} is not finite for example {examples[row].id!r}; "
            f"run the model in float32 (it ran in {encoder.network.dtype})"
        )
