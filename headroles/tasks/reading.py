"""Reading of labelled text in tables, such as GLUE's files, and of plain text to mask."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headroles.corpus.files import CorpusFile, is_dataset, read_lines, refuse_special
from headroles.corpus.tables import check_text_columns, hint_of_separator, read_columns
from headroles.errors import CorpusError, UsageError
from headroles.record import RecordedTaskFile
from headroles.tasks.options import TaskOptions

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

    def numbers(self) -> list[float]:
        """Return the labels as numbers. Raises CorpusError, with the line, for other labels."""
        return [
            self._number(line, label) for line, label in zip(self.lines, self.labels, strict=True)
        ]

    def _number(self, line: int, label: str) -> float:
        try:
            value = float(label)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise CorpusError(
                f"{self.file}, line {line}: the label is {label!r}; a model for regression needs "
                "numbers (name their column with `label_column`)"
            )
        return value

    def describe(self) -> RecordedTaskFile:
        """Return the record of the file."""
        return RecordedTaskFile(self.file, len(self), self.digest)


def read_task(file: str | Path, options: TaskOptions, labelled: bool = True) -> Task:
    """Read the examples of ``file`` in its order, at most as many as ``options`` allow.

    Labelled text is tab-separated or CSV, JSON lines, Parquet or a data set of Hugging Face, as
    `read_pairs` reads them; text to be masked is one text a line, empty lines passed over.

    Raises:
        CorpusError: a file that cannot be read, lacks a column or has a line of other columns.
        UsageError: columns that are neither named nor known by their names in GLUE files.
    """
    path = Path(file)
    refuse_special(path)
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
        return [*_texts(file, options, names), _label(file, options, names)]

    table = CorpusFile(file, str(file), file.stem)
    rows = read_columns(table, choose, header=options.header, separator=options.separator)
    for number, (*texts, label) in rows:
        yield number, tuple(" ".join(text.split()) for text in texts), label.strip()


def _texts(file: Path, options: TaskOptions, names: Sequence[str]) -> Sequence[str | int]:
    if options.text_columns is not None:
        check_text_columns(options.text_columns)
        return options.text_columns
    for known in _TEXTS:
        if set(known) <= set(names):
            return known
    raise UsageError(
        f"no columns of {file} are known to hold the text; name them with `text_columns`"
        f"{_listed(names)}{hint_of_separator(names)}"
    )


def _label(file: Path, options: TaskOptions, names: Sequence[str]) -> str | int:
    if options.label_column is not None:
        return options.label_column
    for known in _LABELS:
        if known in names:
            return known
    raise UsageError(
        f"no column of {file} is known to hold the label; name it with `label_column`"
        f"{_listed(names)}{hint_of_separator(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    return f" (it has: {', '.join(names)})" if names else ""
