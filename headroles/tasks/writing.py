"""Texts that a model has to write: targets of sources, or each next piece of a text -> batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headroles.arrays import FloatArray, IntArray
from headroles.encoding import DECODER_INPUTS, check_embedded, pad, tokenizer_failures
from headroles.errors import CorpusError
from headroles.models.loading.encoder import LoadedModel
from headroles.passes.loop import Budget, Passes
from headroles.tasks.options import TaskOptions
from headroles.tasks.reading import IGNORED, Task, TaskBatch, check_words


@dataclass(frozen=True)
class TextPieces:
    """The pieces of the examples of a task that a model reads and writes.

    ``inputs`` are those of the source, or of a whole text; ``of_decoder``, empty for a whole text,
    those that the decoder reads. ``targets`` are the pieces to write at each place, of the decoder
    or of the text, `IGNORED` where there are none. ``start`` are the pieces that the decoder reads
    before it writes the first one that is not special.
    """

    encoder: LoadedModel
    task: Task
    inputs: Sequence[IntArray]
    of_decoder: Sequence[IntArray]
    targets: Sequence[IntArray]
    n_cut: int
    start: list[int] = field(default_factory=list)

    @property
    def n_targets(self) -> FloatArray:
        """Numbers (examples,) of the pieces to write."""
        return np.array([(target != IGNORED).sum() for target in self.targets], dtype=np.float64)

    def passes(self, options: TaskOptions) -> Passes[TaskBatch]:
        """Return the passes over all examples."""
        lengths = [len(ids) for ids in self.inputs]
        for example, ids in enumerate(self.of_decoder):
            lengths[example] += len(ids)
        lines, file = self.task.lines, self.task.file
        return Passes(
            lengths,
            self._make,
            lambda index: f"line {lines[index]} of {file}",
            Budget.for_device(self.encoder.device, options.batch_tokens),
        )

    def _make(self, indices: list[int]) -> TaskBatch:
        filler, device = self.encoder.tokenizer.pad_token_id or 0, self.encoder.device
        arrays = {}
        for prefix, rows in (("", self.inputs), (DECODER_INPUTS, self.of_decoder)):
            if rows:
                chosen = [rows[index] for index in indices]
                arrays[f"{prefix}input_ids"] = pad(chosen, filler)
                arrays[f"{prefix}attention_mask"] = pad([np.ones_like(ids) for ids in chosen], 0)
        inputs = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
        targets = pad([self.targets[index] for index in indices], IGNORED)
        return TaskBatch(indices, inputs, torch.from_numpy(targets).to(device))


def cut_texts(encoder: LoadedModel, task: Task, options: TaskOptions) -> TextPieces:
    """Cut the texts of a task into pieces, those of targets by the tokenizer of targets.

    Texts that are too long are cut short, and counted.

    Raises:
        TokenizerError: most word pieces are unknown, or a piece without an embedding.
        CorpusError: a text of special tokens alone, or of one piece, after which none comes.
    """
    limit = min(options.max_tokens or encoder.max_tokens, encoder.max_tokens)
    cut = partial(_cut, encoder, task, limit)
    inputs, _, n_cut = cut([texts[0] for texts in task.texts], encoder.tokenizer)
    if encoder.target is None:
        for line, ids in zip(task.lines, inputs, strict=True):
            if len(ids) < 2:
                raise CorpusError(
                    f"{task.file}, line {line}: the text has one word piece, and none to predict; "
                    "remove the line"
                )
        targets = [np.append(ids[1:], IGNORED) for ids in inputs]
        return TextPieces(encoder, task, inputs, (), targets, int(n_cut.sum()))
    targets, n_first, n_cut_too = cut([texts[1] for texts in task.texts], encoder.target.tokenizer)
    first = encoder.target.targets.start
    of_decoder = [
        np.concatenate([[ids[-1] if first is None else first], ids[:-1]]) for ids in targets
    ]
    n_cut_pairs, start = int((n_cut | n_cut_too).sum()), of_decoder[0][: 1 + n_first].tolist()
    return TextPieces(encoder, task, inputs, of_decoder, targets, n_cut_pairs, start)


def _cut(
    encoder: LoadedModel,
    task: Task,
    limit: int,
    texts: list[str],
    tokenizer: Any,
) -> tuple[list[IntArray], int, NDArray[np.bool_]]:
    """Return the pieces of each text, the special ones that begin a text, and which were long."""
    settings = {"return_special_tokens_mask": True, "verbose": False}
    with tokenizer_failures(
        f"the tokenizer {tokenizer.name_or_path} cannot encode the text of {task.file}"
    ):
        encoded = tokenizer(texts, truncation=False, **settings)
        is_long = np.array([len(ids) > limit for ids in encoded["input_ids"]])
        if is_long.any():
            encoded = tokenizer(texts, truncation=True, max_length=limit, **settings)
    check_words(task, encoded, tokenizer.unk_token_id)
    for line, ids in zip(task.lines, encoded["input_ids"], strict=True):
        check_embedded(ids, encoder.n_embeddings, tokenizer, f"line {line} of {task.file}")
    marks = zip(encoded["input_ids"][0], encoded["special_tokens_mask"][0], strict=True)
    is_special = [mark and number != tokenizer.unk_token_id for number, mark in marks]
    n_first = is_special.index(False)  # no text is of special pieces alone
    return [np.array(ids, dtype=np.int64) for ids in encoded["input_ids"]], n_first, is_long
