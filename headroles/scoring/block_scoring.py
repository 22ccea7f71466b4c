"""Scoring of examples batch by batch: the encoder runs and its attention is read meanwhile.

Blocks pass through three steps, so that a device need not wait: batches are prepared, which needs
no device and can run while another block is computed; they are launched; their results are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import Float32Array
from headroles.encoding import EncodedExample
from headroles.errors import ModelError
from headroles.models.attention import AttentionReader
from headroles.models.loading import LoadedEncoder
from headroles.passes.examples import as_tensors, collate, on_device, to_host
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
from headroles.scoring.blocks import Counts, ScoreBlock
from headroles.scoring.layer import read_scores


@dataclass(frozen=True)
class PreparedBatch:
    """Examples (B,) at some ``indices`` of a block, with readouts of their attention.

    ``readouts`` are keyed by the reach of layers; ``to_read`` holds the inputs of the model and the
    same readouts as tensors.
    """

    indices: list[int]
    examples: list[EncodedExample]
    readouts: dict[int | None, Readout]
    to_read: tuple[dict[str, Tensor], dict[int | None, Readout]]

    @property
    def widest(self) -> Readout:
        """Readout of the widest-reaching layers; batch statistics come from it."""
        return max(self.readouts.values(), key=lambda readout: int(readout.counts.sum()))


@dataclass(frozen=True)
class PreparedBlock:
    """Examples that are scored together, in batches, some of which may still be unprepared."""

    examples: list[EncodedExample]
    passes: Passes[PreparedBatch]
    batches: Iterable[PreparedBatch]


Launched: TypeAlias = tuple[PreparedBatch, Callable[[], Float32Array]]
"""A batch, and a function that waits for its scores and returns them."""


@dataclass(frozen=True)
class LaunchedBlock:
    """Examples whose scores (B, layers, heads, columns) are on their way from the device.

    ``read`` holds the batches.
    """

    examples: list[EncodedExample]
    read: list[Launched]


@dataclass(frozen=True)
class ScoreListener:
    """Reader of the scores of a batch, called with the weights of each layer in turn."""

    readouts: list[Readout]
    layers: list[Tensor] = field(default_factory=list)

    def __call__(self, layer: int, weights: Tensor) -> None:
        """Read the scores of a layer."""
        self.layers.append(read_scores(weights, self.readouts[layer]))

    def values(self) -> Tensor:
        """Return values (B, layers, heads, columns), undefined where the readout's counts are 0."""
        return torch.stack(self.layers, dim=1)


class BlockScorer:
    """Scorer of examples with one encoder, in batches that the ``budget`` allows."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        roles: Sequence[Role],
        score: Score,
        budget: Budget,
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._roles = roles
        self._score = score
        self._budget = budget

    def prepare(
        self, examples: list[EncodedExample], worker: Executor | None = None
    ) -> PreparedBlock:
        """Divide examples into batches; may run in another thread than the other steps.

        A ``worker`` prepares the batches after the return, one after the other.
        """
        passes = Passes(
            [len(example) for example in examples],
            partial(self.prepare_batch, examples),
            lambda index: f"the example {examples[index].id!r}",
            self._budget,
        )
        if worker is None:
            return PreparedBlock(examples, passes, passes.batches())
        indices = self._budget.batches(passes.lengths)
        return PreparedBlock(examples, passes, worker.map(passes.make, indices))

    def prepare_batch(
        self, examples: Sequence[EncodedExample], indices: list[int]
    ) -> PreparedBatch:
        """Prepare the examples at these indices."""
        own = [examples[index] for index in indices]
        batch = PaddedBatch(own)
        readouts = {
            reach: make_readout(self._roles, Scope(batch, reach, self._score))
            for reach in dict.fromkeys(self._reader.reaches)
        }
        inputs = collate(own, self._encoder.tokenizer.pad_token_id or 0)
        return PreparedBatch(
            indices, own, readouts, as_tensors((inputs, readouts), self._encoder.device)
        )

    def launch(self, block: PreparedBlock, report: Callable[[int], None]) -> LaunchedBlock:
        """Run the encoder on the batches; devices other than the CPU may finish after the return.

        ``report`` is called with the number of examples done.
        """
        read: list[Launched] = []
        done = 0
        for batch, coming in self.run(block):
            read.append((batch, coming))
            done += len(batch.indices)
            report(done)
        return LaunchedBlock(block.examples, read)

    def run(self, block: PreparedBlock) -> Iterator[Launched]:
        """Run the encoder on one batch after the other, each when it is asked for."""
        return block.passes.run(block.batches, lambda one: to_host(self.read(one)))

    def read(self, batch: PreparedBatch) -> Tensor:
        """Read values (B, layers, heads, columns), undefined where the readout's counts are 0."""
        inputs, _ = batch.to_read
        listener = self.listen(batch)
        names = [example.id for example in batch.examples]
        self._reader.read(on_device(inputs, self._encoder.device), listener, names)
        return listener.values()

    def listen(self, batch: PreparedBatch) -> ScoreListener:
        """Return what reads the scores of a batch from the weights of each layer."""
        readouts = on_device(batch.to_read[1], self._encoder.device)
        return ScoreListener([readouts[reach] for reach in self._reader.reaches])

    def fetch(self, launched: LaunchedBlock, counts: Counts) -> ScoreBlock:
        """Wait for the scores and return them in example order; add skipped arcs to ``counts``.

        Counts, offset shares and skipped arcs are those of the layers with the widest reach; bounds
        hold for all layers.
        """
        examples, n_roles = launched.examples, len(self._roles)
        shape = (len(examples), self._reader.n_layers, self._reader.n_heads, n_roles)
        values = np.empty(shape, dtype=np.float32)
        units = np.empty((len(examples), n_roles), dtype=np.int64)
        shares = np.full((*units.shape, len(OFFSETS)), np.nan, dtype=np.float32)
        bounds = np.empty((*units.shape, 2), dtype=np.float32)
        for batch, arrived in launched.read:
            indices, readouts = batch.indices, list(batch.readouts.values())
            values[indices] = self._values(batch, arrived())
            units[indices] = np.max([readout.counts for readout in readouts], axis=0)
            bounds[indices] = bounds_of(readouts)
            widest = batch.widest
            if widest.offset_shares is not None:
                shares[indices] = widest.offset_shares
            counts.skipped += widest.skipped
            counts.controls += widest.controls
        return ScoreBlock(
            ids=[example.id for example in examples],
            documents=[example.document for example in examples],
            lengths=np.array([len(example) for example in examples]),
            values=values,
            counts=units,
            digests=[example.digest for example in examples],
            offset_shares=shares if self._score.of_first_choice else None,
            bounds=bounds,
        )

    def _values(self, batch: PreparedBatch, read: Float32Array) -> Float32Array:
        """Return values (B, layers, heads, roles), NaN where an example or a head has none."""
        refuse_not_finite(read, batch.examples, self._encoder)
        for layer, head in self._reader.removed:
            read[:, layer, head] = np.nan
        columns = next(iter(batch.readouts.values())).columns
        values = read if columns == tuple(range(len(columns))) else read[..., columns]
        for layer, reach in enumerate(self._reader.reaches):
            values[:, layer].swapaxes(1, 2)[batch.readouts[reach].counts == 0] = np.nan
        return np.asarray(values)


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
