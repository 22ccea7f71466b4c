"""Labelled text in tables, such as GLUE's files, or text to mask -> texts and their targets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headroles.arrays import FloatArray
from headroles.corpus.files import CorpusFile, check_not_special, is_dataset, read_lines
from headroles.corpus.tables import check_text_columns, hint_of_separator, read_columns
from headroles.errors import CorpusError, UsageError
from headroles.tasks.options import AUTO, CLASSIFICATION, MASKED_LM, REGRESSION, TaskOptions
from headroles.wording import listed

_TEXTS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("#1 String", "#2 String"),
    ("sentence",),
    ("text",),
)
_LABELS = ("label", "gold_label", "Quality", "is_duplicate", "score")


@dataclass(frozen=True)
class Task:
    """Texts of a file with its labels; texts to be masked have no labels.

    ``lines`` (examples,) are the line numbers of the texts, from 1, for messages.
    """

    file: str
    texts: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    digest: str

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, places: Sequence[int]) -> Task:
        """Return the examples at these places."""
        return Task(
            self.file,
            tuple(self.texts[place] for place in places),
            tuple(self.labels[place] for place in places) if self.labels else (),
            tuple(self.lines[place] for place in places),
            self.digest,
        )


def read_task(file: str | Path, options: TaskOptions, labelled: bool = True) -> Task:
    """Read the examples of ``file`` in its order, at most as many as ``options`` allow.

    Labelled text is tab-separated or CSV, JSON lines, Parquet or a data set of Hugging Face, as
    `read_pairs` reads them; text to be masked is one text a line, empty lines passed over.

    Raises:
        CorpusError: a file that cannot be read, lacks a column or has a line of other columns.
        UsageError: columns that are neither named nor known by their names in GLUE files.
    """
    path = Path(file)
    check_not_special(path)
    if not (path.is_file() or is_dataset(path)):
        raise CorpusError(f"there is no file {path}; name a file of the task's examples")
    rows = list(_labelled(path, options) if labelled else _plain(path))
    if len(rows) < 2:
        raise CorpusError(f"{path} holds {len(rows)} examples; two are the least")
    task = Task(
        str(path),
        tuple(texts for _, texts, _ in rows),
        tuple(label for _, _, label in rows) if labelled else (),
        tuple(line for line, _, _ in rows),
        hashlib.sha256(path.read_bytes() if path.is_file() else repr(rows).encode()).hexdigest(),
    )
    if options.examples is None or options.examples >= len(task):
        return task
    chosen = np.random.default_rng(0).permutation(len(task))[: options.examples]
    return task.take(sorted(chosen.tolist()))


def _plain(file: Path) -> Iterator[tuple[int, tuple[str, ...], str]]:
    for number, line in enumerate(read_lines(file), start=1):
        if line.strip():
            yield number, (" ".join(line.split()),), ""


def _labelled(file: Path, options: TaskOptions) -> Iterator[tuple[int, tuple[str, ...], str]]:
    def choose(names: Sequence[str]) -> list[str | int]:
        texts, label = options.text_columns, options.label_column
        if texts is None:
            texts = next((known for known in _TEXTS if set(known) <= set(names)), None)
        if label is None:
            label = next((known for known in _LABELS if known in names), None)
        if texts is None or label is None:
            content, option = (
                ("text", "text_columns") if texts is None else ("label", "label_column")
            )
            present = f" (it has: {', '.join(names)})" if names else ""
            raise UsageError(
                f"no columns of {file} are known to hold the {content}; name them with `{option}`"
                f"{present}{hint_of_separator(names)}"
            )
        check_text_columns(texts)
        return [*texts, label]

    table = CorpusFile(file, str(file), file.stem)
    rows = read_columns(table, choose, header=options.header, separator=options.separator)
    for number, (*texts, label) in rows:
        yield number, tuple(" ".join(text.split()) for text in texts), label.strip()


def objective_of(option: str, config: Any) -> str:
    """Return the objective of an option, or of the model's configuration for ``auto``."""
    if option != AUTO:
        return option
    if (config.architectures or [""])[0].endswith("ForMaskedLM"):
        return MASKED_LM
    kind = getattr(config, "problem_type", None)
    if kind == "multi_label_classification":
        raise UsageError("a model of several labels for one text is not supported")
    return REGRESSION if kind == REGRESSION or config.num_labels == 1 else CLASSIFICATION


def find_targets(task: Task, objective: str, config: Any, labels: Sequence[str] = ()) -> FloatArray:
    """Return the class or number of each example (examples,), NaN if tokens are masked.

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
    if objective == MASKED_LM:
        return np.full(len(task), np.nan)
    if objective == REGRESSION:
        pairs = zip(task.lines, task.labels, strict=True)
        return np.array([_number(task.file, line, label) for line, label in pairs])
    numbered = config.label2id or {name: number for number, name in (config.id2label or {}).items()}
    names = {str(name).lower(): number for name, number in numbered.items()}
    known = {str(number): number for number in range(config.num_labels)} | names
    known |= _classes_given(labels, config.num_labels)
    for line, label in zip(task.lines, task.labels, strict=True):
        if label.lower() not in known:
            raise CorpusError(
                f"{task.file}, line {line}: the model does not know the label {label!r}; it knows "
                f"{listed(sorted(known), 8)}. Name the column of labels with `label_column`"
                f", or give labels their classes: `labels='{label}=0,...'`"
            )
    targets = np.array([known[label.lower()] for label in task.labels], dtype=np.float64)
    if len(np.unique(targets)) < 2:
        raise CorpusError(
            f"all {len(task)} examples of {task.file} have the label {task.labels[0]!r}; give "
            "examples of two classes at least"
        )
    return targets


def _classes_given(labels: Sequence[str], n_classes: int) -> dict[str, int]:
    """Return the class of each label, which may be written in any case."""
    given = {}
    for pair in labels:
        label, _, number = pair.rpartition("=")
        if not 0 <= int(number) < n_classes:
            raise UsageError(f"labels {pair}: the model has the classes 0 to {n_classes - 1}")
        given[label.strip().lower()] = int(number)
    return given


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
