"""Batches of the examples of a task: word pieces, masks and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headroles.arrays import FloatArray, IndexArray
from headroles.encoding import check_known_pieces
from headroles.errors import CorpusError, TokenizerError
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


def passes_over(
    encoder: LoadedEncoder, task: Task, objective: str, targets: FloatArray, options: TaskOptions
) -> tuple[Passes[TaskBatch], int]:
    """Return the passes over the examples of a task, and the number of truncated examples.

    ``targets`` (examples,) are classes or numbers, unused if tokens are masked.

    Raises:
        TokenizerError: no special token that the task needs, or most word pieces are unknown.
        CorpusError: an example of special tokens alone.
    """
    tokenizer = encoder.tokenizer
    for kind in ("pad_token", *(("mask_token",) if objective == MASKED_LM else ())):
        if getattr(tokenizer, kind) is None:
            raise TokenizerError(
                f"the tokenizer {tokenizer.name_or_path} has no {kind}, which this task needs; "
                "name one in tokenizer_config.json"
            )
    limit = min(options.max_tokens or encoder.max_tokens, encoder.max_tokens)
    columns = [list(texts) for texts in zip(*task.texts, strict=True)]
    asked = {"return_special_tokens_mask": True}
    encoded = tokenizer(*columns, truncation=False, **asked)
    lengths = [len(ids) for ids in encoded["input_ids"]]
    n_cut = sum(length > limit for length in lengths)
    if n_cut:
        encoded = tokenizer(*columns, truncation=True, max_length=limit, **asked)
    _check_words(task, encoded, tokenizer.unk_token_id, objective == MASKED_LM)

    def make(indices: list[int]) -> TaskBatch:
        rows = {name: [values[index] for index in indices] for name, values in encoded.items()}
        special = rows.pop("special_tokens_mask")
        padded = tokenizer.pad(rows, padding=True, return_tensors="pt")
        inputs = {name: values.to(encoder.device) for name, values in padded.items()}
        if objective == MASKED_LM:
            places = [
                _masked_places(task.lines[index], marks, options)
                for index, marks in zip(indices, special, strict=True)
            ]
            return TaskBatch(indices, *_masked(inputs, places, tokenizer.mask_token_id))
        kind = torch.float32 if objective == REGRESSION else torch.long
        own = torch.tensor(targets[indices], dtype=kind, device=encoder.device)
        return TaskBatch(indices, inputs, own)

    passes = Passes(
        [min(length, limit) for length in lengths],
        make,
        lambda index: f"line {task.lines[index]} of {task.file}",
        Budget.of(encoder.device, options.batch_tokens),
    )
    return passes, n_cut


def _check_words(task: Task, encoded: Any, unknown: int | None, masks: bool) -> None:
    n_pieces = n_unknown = 0
    columns = (encoded["input_ids"], encoded["special_tokens_mask"], task.lines)
    for ids, special, line in zip(*columns, strict=True):
        is_unknown, is_plain = np.asarray(ids) == unknown, np.asarray(special) == 0
        n_words = int((is_plain | is_unknown).sum())
        if not n_words or (masks and not is_plain.any()):
            raise CorpusError(
                f"{task.file}, line {line}: the text has no word piece; give it one that "
                "the tokenizer can read, or remove the line"
            )
        n_pieces += n_words
        n_unknown += int(is_unknown.sum())
    check_known_pieces(n_unknown, n_pieces, str(task.file))


def _masked_places(line: int, special: Sequence[int], options: TaskOptions) -> IndexArray:
    """Return the places of the tokens to mask, which depend on the example alone."""
    words = np.flatnonzero(np.asarray(special) == 0)
    drawn = np.random.default_rng([line, options.mask_seed]).random(len(words))
    chosen = drawn < options.masked_share
    chosen[drawn.argmin()] = True
    return words[chosen]


def _masked(
    inputs: dict[str, Tensor], places: Sequence[IndexArray], mask_id: int
) -> tuple[dict[str, Tensor], Tensor]:
    """Return inputs with masked tokens, and these tokens."""
    ids = inputs["input_ids"].clone()
    targets = torch.full_like(ids, IGNORED)
    for row, of_row in enumerate(places):
        where = torch.from_numpy(of_row).to(ids.device)
        targets[row, where] = ids[row, where]
        ids[row, where] = mask_id
    return {**inputs, "input_ids": ids}, targets
