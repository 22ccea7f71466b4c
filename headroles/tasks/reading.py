"""Labelled text in tables, such as GLUE's files, or text without labels -> targets and batches."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headroles import storage
from headroles.arrays import FloatArray
from headroles.corpus.bitext import BETWEEN, SUFFIX
from headroles.corpus.files import CorpusFile, is_dataset, kind_of
from headroles.corpus.tables import hint_of_separator, read_columns
from headroles.encoding import check_embedded, check_known_pieces, tokenizer_failures
from headroles.errors import CorpusError, TokenizerError, UsageError
from headroles.models.loading.encoder import LoadedModel
from headroles.passes.loop import Budget, Passes
from headroles.tasks.options import (
    AUTO,
    CAUSAL_LM,
    CLASSIFICATION,
    MASKED_LM,
    REGRESSION,
    TEXT_TO_TEXT,
    UNLABELLED,
    TaskOptions,
)
from headroles.wording import it_has, listed

_TEXTS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("#1 String", "#2 String"),
    ("sentence",),
    ("text",),
)
_PAIRS = (("source", "target"), ("src", "tgt"))
_LABELS = ("label", "gold_label", "Quality", "is_duplicate", "score")
IGNORED = -100
"""Target of tokens that a model has neither to restore nor to write."""
_WRITTEN_BY = {
    "ForMaskedLM": MASKED_LM,
    "ForConditionalGeneration": TEXT_TO_TEXT,
    "MTModel": TEXT_TO_TEXT,
    "ForCausalLM": CAUSAL_LM,
    "LMHeadModel": CAUSAL_LM,
}
"""Objectives by the endings of the names of classes."""


@dataclass(frozen=True)
class Task:
    """Texts of a file with its labels, which are empty for text without labels.

    ``lines`` (examples,) are the line numbers of the texts, from 1, for messages.
    """

    file: str
    texts: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: Sequence[int]) -> Task:
        """Return the examples at these indices."""
        rows = list(zip(self.texts, self.labels, self.lines, strict=True))
        texts, labels, lines = zip(*(rows[index] for index in indices), strict=True)
        return Task(self.file, texts, labels, lines, self.digest)


def read_task(file: str | Path, options: TaskOptions, objective: str = CLASSIFICATION) -> Task:
    """Read the examples of ``file`` in its order, at most as many as ``options`` allow.

    Labelled text, and sources with their targets, are tab-separated or CSV, JSON lines, Parquet or
    a data set of Hugging Face, as `read_pairs` reads them; sources and targets may be a bitext too,
    with ``|||`` between them. Other text is one text a line, empty lines passed over.

    Raises:
        CorpusError: a file that cannot be read, lacks a column or has a line of other columns.
        UsageError: columns that are neither named nor known by their names in GLUE files.
    """
    path = Path(file)
    if not (storage.exists(path) or is_dataset(path)):
        raise CorpusError(f"there is no file {path}; name a file of the task's examples")
    table = CorpusFile(path, str(path), path.stem)
    read = {TEXT_TO_TEXT: _pairs, **dict.fromkeys((MASKED_LM, CAUSAL_LM), _plain)}
    rows = list(read.get(objective, _labelled)(table, options))
    if len(rows) < 2:
        raise CorpusError(f"{path} holds {len(rows)} examples; two are the least")
    content = path.read_bytes() if path.is_file() else repr(rows).encode()
    lines, texts, labels = zip(*rows, strict=True)
    task = Task(str(path), texts, labels, lines, hashlib.sha256(content).hexdigest())
    if options.examples is None or options.examples >= len(task):
        return task
    chosen = np.random.default_rng(0).permutation(len(task))[: options.examples]
    return task.take(sorted(chosen.tolist()))


_Row = tuple[int, tuple[str, ...], str]
"""The number of a line, its texts and its label."""


def _plain(file: CorpusFile, _: TaskOptions) -> Iterator[_Row]:
    for number, line in enumerate(file.lines(), start=1):
        if line.strip():
            yield number, (" ".join(line.split()),), ""


def _pairs(file: CorpusFile, options: TaskOptions) -> Iterator[_Row]:
    """Yield sources with their targets."""
    if kind_of(file.path) == SUFFIX:
        for number, line in enumerate(file.lines(), start=1):
            if line.strip():
                texts = line.split(BETWEEN)[:2]
                if len(texts) < 2:
                    raise CorpusError(
                        f"{file}, line {number} has no {BETWEEN} between a source and its target"
                    )
                yield number, _cleaned(texts), ""
        return

    def choose(names: Sequence[str]) -> Sequence[str | int]:
        pair_known = next((pair for pair in _PAIRS if set(pair) <= set(names)), None)
        columns = options.text_columns or pair_known
        if columns is None or len(columns) != 2:
            raise UsageError(
                f"{file} needs two columns, of sources and of targets; name both with "
                f"`text_columns`{hint_of_separator(names)}"
            )
        return columns

    rows = read_columns(file, choose, header=options.header, separator=options.separator)
    for number, texts in rows:
        yield number, _cleaned(texts), ""


def _cleaned(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in texts)


def _labelled(file: CorpusFile, options: TaskOptions) -> Iterator[_Row]:
    def choose(names: Sequence[str]) -> list[str | int]:
        texts, label = options.text_columns, options.label_column
        if texts is None:
            texts = next(
                (columns_known for columns_known in _TEXTS if set(columns_known) <= set(names)),
                None,
            )
        if label is None:
            label = next(
                (columns_known for columns_known in _LABELS if columns_known in names), None
            )
        if texts is None or label is None:
            lacking = "text; name them with `text_columns`"
            lacking = lacking if texts is None else "label; name them with `label_column`"
            present = f" ({it_has(names)})" if names else ""
            raise UsageError(
                f"no columns of {file} are known to hold the {lacking}{present}"
                f"{hint_of_separator(names)}"
            )
        return [*texts, label]

    rows = read_columns(file, choose, header=options.header, separator=options.separator)
    for number, (*texts, label) in rows:
        yield number, _cleaned(texts), label.strip()


def objective_of(option: str, config: Any) -> str:
    """Return the objective of an option, or of the model's configuration for ``auto``."""
    if option != AUTO:
        return option
    written_by = (config.architectures or [""])[0]
    for ending, objective in _WRITTEN_BY.items():
        if written_by.endswith(ending) and not written_by.endswith("WithLMHeadModel"):  # XLM's
            return objective
    kind = getattr(config, "problem_type", None)
    if kind == "multi_label_classification":
        raise UsageError("a model of several labels for one text is not supported")
    return REGRESSION if kind == REGRESSION or config.num_labels == 1 else CLASSIFICATION


def find_targets(task: Task, objective: str, config: Any, labels: Sequence[str] = ()) -> FloatArray:
    """Return the class or number of each example (examples,), NaN for text without labels.

    A label is the name or the number of a class, or one of ``labels``, which are
    ``"label=class"``.

    Raises CorpusError for labels that the model does not know, for labels of a regression that are
    no numbers, and for a single class; UsageError for ``labels`` of classes that the model lacks,
    or of an objective without classes.
    """
    if labels and objective != CLASSIFICATION:
        raise UsageError(
            f"`labels` are for classification, and the objective is {objective}; leave them out"
        )
    if objective in UNLABELLED:
        return np.full(len(task), np.nan)
    if objective == REGRESSION:
        pairs = zip(task.lines, task.labels, strict=True)
        return np.array([_number(task.file, line, label) for line, label in pairs])
    numbered = config.label2id or {name: number for number, name in (config.id2label or {}).items()}
    names = {str(name).lower(): number for name, number in numbered.items()}
    n_classes = config.num_labels
    classes = {str(number): number for number in range(n_classes)} | names
    for pair in labels:  # which may be written in any case
        label, _, number = pair.rpartition("=")
        if not 0 <= int(number) < n_classes:
            raise UsageError(f"labels {pair}: the model has the classes 0 to {n_classes - 1}")
        classes[label.strip().lower()] = int(number)
    for line, label in zip(task.lines, task.labels, strict=True):
        if label.lower() not in classes:
            raise CorpusError(
                f"{task.file}, line {line}: the model does not know the label {label!r}; it knows "
                f"{listed(sorted(classes), 8)}. Name the column of labels with `label_column`"
                f", or give labels their classes: `labels='{label}=0,...'`"
            )
    targets = np.array([classes[label.lower()] for label in task.labels], dtype=np.float64)
    if len(np.unique(targets)) < 2:
        raise CorpusError(
            f"all {len(task)} examples of {task.file} have the label {task.labels[0]!r}; give "
            "examples of two classes at least"
        )
    return targets


def _number(file: str, line: int, label: str) -> float:
    try:
        value = float(label)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CorpusError(
            f"{file}, line {line}: the label is {label!r}; a model for regression needs "
            "numbers (name their column with `label_column`)"
        )
    return value


@dataclass(frozen=True)
class TaskBatch:
    """Examples that run together: their indices in the task, and the inputs of the model."""

    indices: list[int]
    inputs: dict[str, Tensor]
    targets: Tensor


def passes_over(
    encoder: LoadedModel, task: Task, objective: str, targets: FloatArray, options: TaskOptions
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
    settings = {"return_special_tokens_mask": True}
    with tokenizer_failures(
        f"the tokenizer {tokenizer.name_or_path} cannot encode the text of {task.file}"
    ):
        encoded = tokenizer(*columns, truncation=False, **settings)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        n_cut = sum(length > limit for length in lengths)
        if n_cut:
            encoded = tokenizer(*columns, truncation=True, max_length=limit, **settings)
    check_words(task, encoded, tokenizer.unk_token_id, objective == MASKED_LM)
    fillers = [tokenizer.mask_token_id] if objective == MASKED_LM else []
    for line, ids in zip(task.lines, encoded["input_ids"], strict=True):
        text = f"line {line} of {task.file}"
        check_embedded([*ids, *fillers], encoder.n_embeddings, tokenizer, text)

    def make(indices: list[int]) -> TaskBatch:
        rows = {name: [values[index] for index in indices] for name, values in encoded.items()}
        special = rows.pop("special_tokens_mask")
        padded = tokenizer.pad(rows, padding=True, return_tensors="pt")
        inputs = {name: values.to(encoder.device) for name, values in padded.items()}
        if objective == MASKED_LM:
            lines = [task.lines[index] for index in indices]
            masked = _masked(inputs, lines, special, options, tokenizer.mask_token_id)
            return TaskBatch(indices, *masked)
        kind = torch.float32 if objective == REGRESSION else torch.long
        of_batch = torch.tensor(targets[indices], dtype=kind, device=encoder.device)
        return TaskBatch(indices, inputs, of_batch)

    passes = Passes(
        [min(length, limit) for length in lengths],
        make,
        lambda index: f"line {task.lines[index]} of {task.file}",
        Budget.for_device(encoder.device, options.batch_tokens),
    )
    return passes, n_cut


def check_words(task: Task, encoded: Any, unknown: int | None, masks: bool = False) -> None:
    """Raise CorpusError for a text without word pieces, TokenizerError if most are unknown.

    With ``masks`` an unknown piece is none.
    """
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


def _masked(
    inputs: dict[str, Tensor],
    lines: Sequence[int],
    special: Sequence[Sequence[int]],
    options: TaskOptions,
    mask_id: int,
) -> tuple[dict[str, Tensor], Tensor]:
    """Return inputs with masked tokens, which depend on each example alone, and these tokens."""
    ids = inputs["input_ids"].clone()
    targets = torch.full_like(ids, IGNORED)
    for row, (line, marks) in enumerate(zip(lines, special, strict=True)):
        words = np.flatnonzero(np.asarray(marks) == 0)
        drawn = np.random.default_rng([line, options.mask_seed]).random(len(words))
        chosen = drawn < options.masked_share
        chosen[drawn.argmin()] = True
        where = torch.from_numpy(words[chosen]).to(ids.device)
        targets[row, where] = ids[row, where]
        ids[row, where] = mask_id
    return {**inputs, "input_ids": ids}, targets
