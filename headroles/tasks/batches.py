"""Batches of the examples of a task: word pieces, masks and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import FloatArray
from headroles.encoding import check_known_pieces
from headroles.errors import CorpusError, ModelError, TokenizerError
from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.loop import Budget, Passes
from headroles.tasks.options import MASKED_LM, REGRESSION, TaskOptions
from headroles.tasks.reading import Task

IGNORED = -100
"""Target of tokens that are not masked."""


@dataclass(frozen=True)
class TaskBatch:
    """Examples that run together: their places in the task, and the inputs of the model."""

    indices: list[int]
    inputs: dict[str, Tensor]
    targets: Tensor


@dataclass(frozen=True)
class Batches:
    """Batches of the examples of a task for a model.

    ``targets`` (examples,) are classes or numbers, unused if tokens are masked.
    """

    encoder: LoadedEncoder
    task: Task
    objective: str
    targets: FloatArray
    options: TaskOptions

    def passes(self) -> tuple[Passes[TaskBatch], int]:
        """Return the passes over the examples, and the number of truncated examples."""
        tokenizer = self.encoder.tokenizer
        self._refuse_lacking("pad_token")
        if self.objective == MASKED_LM:
            self._refuse_lacking("mask_token")
        limit = min(self.options.max_tokens or self.encoder.max_tokens, self.encoder.max_tokens)
        columns = [list(texts) for texts in zip(*self.task.texts, strict=True)]
        encoded = tokenizer(*columns, truncation=False, return_special_tokens_mask=True)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        n_cut = sum(length > limit for length in lengths)
        if n_cut:
            encoded = tokenizer(
                *columns, truncation=True, max_length=limit, return_special_tokens_mask=True
            )
        self._check_words(encoded)
        passes = Passes(
            [min(length, limit) for length in lengths],
            partial(self._batch, encoded),
            lambda index: f"line {self.task.lines[index]} of {self.task.file}",
            Budget.of(self.encoder.device, self.options.batch_tokens),
        )
        return passes, n_cut

    def _refuse_lacking(self, kind: str) -> None:
        tokenizer = self.encoder.tokenizer
        if getattr(tokenizer, kind) is None:
            raise TokenizerError(
                f"the tokenizer {tokenizer.name_or_path} has no {kind}, which this task needs; "
                "name one in tokenizer_config.json"
            )

    def _check_words(self, encoded: Any) -> None:
        """Raise CorpusError for an example with special tokens alone.

        Raise TokenizerError if most word pieces are unknown.
        """
        n_pieces = n_unknown = 0
        columns = (encoded["input_ids"], encoded["special_tokens_mask"], self.task.lines)
        for ids, special, line in zip(*columns, strict=True):
            is_unknown = np.asarray(ids) == self.encoder.tokenizer.unk_token_id
            n_words = int(((np.asarray(special) == 0) | is_unknown).sum())
            if not n_words:
                raise CorpusError(
                    f"{self.task.file}, line {line}: the text has no word piece; give it one that "
                    "the tokenizer can read, or remove the line"
                )
            n_pieces += n_words
            n_unknown += int(is_unknown.sum())
        check_known_pieces(n_unknown, n_pieces, str(self.task.file))

    def _batch(self, encoded: Any, indices: list[int]) -> TaskBatch:
        rows = {name: [values[index] for index in indices] for name, values in encoded.items()}
        special = rows.pop("special_tokens_mask")
        padded = self.encoder.tokenizer.pad(rows, padding=True, return_tensors="pt")
        inputs = {name: values.to(self.encoder.device) for name, values in padded.items()}
        if self.objective == MASKED_LM:
            return TaskBatch(indices, *self._mask(indices, inputs, special))
        kind = torch.float32 if self.objective == REGRESSION else torch.long
        targets = torch.tensor(self.targets[indices], dtype=kind, device=self.encoder.device)
        return TaskBatch(indices, inputs, targets)

    def _mask(
        self, indices: Sequence[int], inputs: dict[str, Tensor], special: Sequence[Sequence[int]]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return masked inputs, and the masked tokens; masks depend on the example alone."""
        ids = inputs["input_ids"].clone()
        targets = torch.full_like(ids, IGNORED)
        for place, (index, marks) in enumerate(zip(indices, special, strict=True)):
            words = np.flatnonzero(np.asarray(marks) == 0)
            line = self.task.lines[index]
            if not len(words):
                raise ModelError(
                    f"{self.task.file}, line {line} has no token to mask; remove the line"
                )
            drawn = np.random.default_rng([line, self.options.mask_seed]).random(len(words))
            chosen = drawn < self.options.masked_share
            chosen[drawn.argmin()] = True
            where = torch.from_numpy(words[chosen]).to(ids.device)
            targets[place, where] = ids[place, where]
            ids[place, where] = self.encoder.tokenizer.mask_token_id
        return {**inputs, "input_ids": ids}, targets
