"""A corpus that one process reads, for others that share a folder with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import IO

from headroles.corpus.corpus import Corpus
from headroles.corpus.prepared import PreparedCorpus, read_through
from headroles.errors import StorageError
from headroles.storage import read_json, write_json

_SENTENCES, _RECORD = "sentences.jsonl", "corpus.json"
_NOT_RECORDED = ("spool", "order")


@contextmanager
def prepared_in(folder: Path, corpus: Corpus) -> Iterator[PreparedCorpus]:
    """Run `prepared` in ``folder``, where other processes `find_prepared` the sentences."""
    with _opened(folder / _SENTENCES, "w+") as spool:
        ready = read_through(corpus, spool)
        os.fsync(spool.fileno())
        known = {
            one.name: getattr(ready, one.name)
            for one in fields(PreparedCorpus)
            if one.name not in _NOT_RECORDED
        }
        write_json(folder / _RECORD, known)
        yield ready


@contextmanager
def find_prepared(folder: Path) -> Iterator[PreparedCorpus]:
    """Open the corpus that another process prepared in ``folder``."""
    known = read_json(folder / _RECORD)
    known |= {name: Counter(known[name]) for name in ("relations", "skipped")}
    with _opened(folder / _SENTENCES, "r") as spool:
        yield PreparedCorpus(**known, spool=spool)


@contextmanager
def _opened(file: Path, mode: str) -> Iterator[IO[str]]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        spool = file.open(mode, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError(f"{file} cannot be opened: {error.strerror or error}") from error
    with spool:
        yield spool
