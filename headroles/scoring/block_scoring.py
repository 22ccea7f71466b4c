"""Examples -> their scores: batch by batch through the encoder, its attention read on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.encoding import EncodedExample
from headroles.errors import ModelError
from headroles.memory import HeldMemory
from headroles.models import AttentionReader, LoadedEncoder
from headroles.roles import OFFSETS, Batch, Plan, Role, Scope, Score, bounds_of, plan_roles
from headroles.scoring.batches import batches_by_length, collate
from headroles.scoring.blocks import Counts, ScoreBlock
from headroles.scoring.layer import on_device, read_scores

_MEMORY_SLACK = 64 * 2**20  # what is given back has to be asked for again


class BlockScorer:
    """Scores examples with one encoder. ``batch_tokens`` shrinks where memory runs out."""

    def __init__(
        self,
        encoder: LoadedEncoder,
        reader: AttentionReader,
        roles: Sequence[Role],
        score: Score,
        batch_tokens: int,
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._roles = roles
        self._score = score
        self._held_memory = HeldMemory(_MEMORY_SLACK)
        self.batch_tokens = batch_tokens

    def score(
        self, examples: list[EncodedExample], counts: Counts, report: Callable[[int], None]
    ) -> ScoreBlock:
        """Their scores, in their order; what is left out of them is added to ``counts``.

        ``report`` is called with the number of examples that are done.
        """
        shape = (len(examples), self._reader.n_layers, self._reader.n_heads, len(self._roles))
        values = np.empty(shape, dtype=np.float32)
        units = np.empty((len(examples), len(self._roles)), dtype=np.int64)
        shares = np.full((len(examples), len(self._roles), len(OFFSETS)), np.nan, dtype=np.float32)
        bounds = np.empty((*units.shape, 2), dtype=np.float32)
        waiting = batches_by_length(examples, self.batch_tokens)[::-1]
        done = 0
        while waiting:
            rows = waiting.pop()
            batch = [examples[row] for row in rows]
            try:
                values[rows], units[rows], bounds[rows], of_offsets = self._score_batch(
                    batch, counts
                )
            except torch.OutOfMemoryError:
                self._refuse_single(batch)
                waiting += self._halve(rows)
                continue
            if of_offsets is not None:
                shares[rows] = of_offsets
            done += len(rows)
            report(done)
            self._held_memory.release()
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

    def _score_batch(
        self, examples: list[EncodedExample], counts: Counts
    ) -> tuple[
        NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32] | None
    ]:
        """Values (B, layers, heads, roles), what is behind them, their bounds, hits of offsets.

        How much is behind them (B, roles), what offsets would hit (B, roles, offsets), and what is
        told to be left out, are those of the layers with the widest reach; values lie between
        bounds (B, roles, 2) in all layers.
        """
        batch, reaches = Batch(examples), self._reader.reaches
        plans = {
            reach: plan_roles(self._roles, Scope(batch, reach, self._score))
            for reach in dict.fromkeys(reaches)
        }
        values = self._read(examples, plans)
        for layer, reach in enumerate(reaches):
            values[:, layer].swapaxes(1, 2)[plans[reach].counts == 0] = np.nan
        widest = max(plans.values(), key=lambda plan: int(plan.counts.sum()))
        counts.skipped += widest.skipped
        counts.controls += widest.controls
        units = np.max([plan.counts for plan in plans.values()], axis=0)
        return values, units, bounds_of(list(plans.values())), widest.offset_shares

    def _read(
        self, examples: Sequence[EncodedExample], plans: dict[int | None, Plan]
    ) -> NDArray[np.float32]:
        """Values (B, layers, heads, roles), meaningless where plans count nothing."""
        device, reaches = self._encoder.device, self._reader.reaches
        moved = {reach: on_device(plan, device) for reach, plan in plans.items()}
        layers: list[Tensor] = []
        self._reader.read(
            collate(examples, device, self._encoder.tokenizer.pad_token_id or 0),
            lambda layer, weights: layers.append(read_scores(weights, moved[reaches[layer]])),
        )
        read = torch.stack(layers, dim=1).cpu().numpy()
        if not np.isfinite(read).all():
            row, layer = np.argwhere(~np.isfinite(read))[0, :2]
            raise ModelError(
                f"attention of layer {layer} is not finite for example {examples[row].id!r}; "
                f"run the model in float32 (it ran in {self._encoder.model.dtype})"
            )
        for layer, head in self._reader.removed:
            read[:, layer, head] = np.nan
        columns = next(iter(plans.values())).columns
        return np.asarray(read if columns == tuple(range(len(columns))) else read[..., columns])

    def _refuse_single(self, examples: list[EncodedExample]) -> None:
        if len(examples) == 1:
            (example,) = examples
            raise ModelError(
                f"memory ran out for the single example {example.id!r} of {len(example)} tokens; "
                "use a device with more memory"
            )

    def _halve(self, rows: list[int]) -> list[list[int]]:
        torch.cuda.empty_cache()
        self.batch_tokens = max(1, self.batch_tokens // 2)
        middle = len(rows) // 2
        return [rows[middle:], rows[:middle]]
