"""A temporary file that sentences wait in: one line of JSON each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from headroles.corpus.sentence import Sentence
from headroles.errors import StorageError


@contextmanager
def temporary_spool() -> Iterator[IO[str]]:
    """An empty file that is gone in the end. Raises StorageError where there is no room for it."""
    with ExitStack() as stack:
        try:
            spool = stack.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")
            )
        except OSError as error:
            raise _no_room(error) from error
        yield spool


def _no_room(error: OSError) -> StorageError:
    return StorageError(
        "parsed sentences wait in a temporary file, and it cannot be written "
        f"({error.strerror or error}); make room in {tempfile.gettempdir()}, or name another "
        "folder in the environment variable TMPDIR"
    )


def write_to(sentence: Sentence, spool: IO[str]) -> None:
    """Write a sentence at the end. Raises StorageError where there is no room for it."""
    try:
        spool.write(to_line(sentence, sentence.document, sentence.annotations))
    except OSError as error:
        raise _no_room(error) from error


def flush(spool: IO[str]) -> None:
    """Write out what waits. Raises StorageError where there is no room for it."""
    try:
        spool.flush()
    except OSError as error:
        raise _no_room(error) from error


def to_line(sentence: Sentence, document: str | int, *more: Any) -> str:
    """A sentence as a line of ASCII, of what it is named, its words and its tree."""
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
    """The sentence of a line that `write_to` wrote."""
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
