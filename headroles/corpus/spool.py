"""Temporary files of sentences, one line of JSON each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from headroles.corpus.sentence import Sentence
from headroles.errors import StorageError


@contextmanager
def temporary_spool() -> Iterator[IO[str]]:
    """Open an empty temporary file. Raises StorageError if the disk is full."""
    with _full_disk_reported():
        spool = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")  # noqa: SIM115
    with spool:
        yield spool


@contextmanager
def _full_disk_reported() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            "parsed sentences are stored in a temporary file, which cannot be written "
            f"({error.strerror or error}); free space in {tempfile.gettempdir()}, or name another "
            "folder in the environment variable TMPDIR"
        ) from error


def write_to(sentence: Sentence, spool: IO[str]) -> None:
    """Append a sentence. Raises StorageError if the disk is full."""
    with _full_disk_reported():
        spool.write(to_line(sentence, sentence.document, sentence.annotations))


def flush(spool: IO[str]) -> None:
    """Flush the file. Raises StorageError if the disk is full."""
    with _full_disk_reported():
        spool.flush()


def to_line(sentence: Sentence, document: str | int, *more: Any) -> str:
    """Encode a sentence as a line of ASCII: its names, its words and its tree."""
    record = [
        sentence.id,
        document,
        sentence.position,
        sentence.words,
        sentence.governors,
        sentence.relations,
        *more,
    ]
    return json.dumps(record, separators=(",", ":")) + "\n"


def from_line(line: str) -> Sentence:
    """Decode the sentence of a line that `write_to` wrote."""
    name, document, position, words, governors, relations, annotations = json.loads(line)
    return Sentence(
        name,
        document,
        position,
        tuple(words),
        tuple(governors),
        tuple(relations),
        {column: tuple(texts) for column, texts in annotations.items()},
    )
