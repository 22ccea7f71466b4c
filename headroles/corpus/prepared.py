"""Prepared corpora: read once from end to end, and quick to re-read."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import IO

from headroles.corpus.documents import prefix_of
from headroles.corpus.places import Places
from headroles.corpus.schemes import distinctive_labels, fold_subtype, recognise_scheme
from headroles.corpus.sentence import ROOT, Corpus, CorpusSource, Sentence, Skipped
from headroles.corpus.spool import flush, from_line, temporary_spool, to_line, write_to
from headroles.errors import CorpusError, StorageError
from headroles.record import RecordedCorpus
from headroles.storage import read_json, write_json
from headroles.wording import listed


@dataclass(frozen=True)
class PreparedCorpus:
    """A corpus that was read once from end to end: free of errors, counted, and quick to re-read.

    ``relations`` counts the arcs by full label (with subtypes, without root arcs); ``digest`` is a
    SHA-256 over ids, words, trees and document boundaries. ``n_multiword`` is the number of
    multiword tokens, whose words are among the ``n_words``. ``frequent_share`` is the share of
    words that are frequent in the language of the parser, None without one. Of treebanks,
    ``undivided`` is the number of sentences in files that name no documents, and
    ``documents_by_id`` the number of documents that their ids would name, 0 if some ids name none.
    ``order`` lists the places in the spool at which sentences are read, None for their original
    order.
    """

    source: CorpusSource
    scheme: str
    digest: str
    n_sentences: int
    n_words: int
    n_multiword: int
    frequent_share: float | None
    documents: int
    undivided: int
    documents_by_id: int
    relations: Counter[str]
    skipped: Skipped
    spool: IO[str] = field(repr=False)
    order: tuple[int, ...] | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Sentence]:
        return self.span(0, 0, self.n_sentences)

    def with_places(self) -> Iterator[tuple[int, Sentence]]:
        """Yield each sentence with its place in the spool, in reading order."""
        if self.order is not None:
            yield from ((place, from_line(self._line(place))) for place in self.order)
            return
        place = 0
        while line := self._line(place):
            yield place, from_line(line)
            place += len(line)  # lines are ASCII: a character is a byte

    def _line(self, place: int) -> str:
        self.spool.seek(place)  # each read seeks, so that several readers can alternate
        return self.spool.readline()

    def span(self, first: int, place: int, n_sentences: int) -> Iterator[Sentence]:
        """Yield sentences after ``first`` others; ``place`` is that of the first in the spool."""
        if self.order is not None:
            lines: Iterable[str] = map(self._line, self.order[first : first + n_sentences])
        else:
            self.spool.seek(place)
            lines = islice(self.spool, n_sentences)
        yield from map(from_line, lines)

    def content_digest(self) -> str:
        """Digest all sentences in reading order, with annotations and documents."""
        content = hashlib.blake2b(digest_size=16)
        self.spool.seek(0)
        for line in self.spool:
            content.update(line.encode())
        for place in self.order or ():
            content.update(place.to_bytes(8, "little"))
        return content.hexdigest()

    def describe(self) -> RecordedCorpus:
        """Return the record that identifies the corpus."""
        return RecordedCorpus.read(
            {
                **self.source,
                "scheme": self.scheme,
                "digest": self.digest,
                "sentences": self.n_sentences,
                "words": self.n_words,
                "multiword_tokens": self.n_multiword,
                "frequent_share": self.frequent_share,
                "documents": self.documents,
                "undivided": self.undivided,
                "documents_by_id": self.documents_by_id,
            }
        )


@contextmanager
def prepared(corpus: Corpus) -> Iterator[PreparedCorpus]:
    """Read ``corpus`` from end to end once, so that every defect shows before any long work.

    Parsed sentences are stored in a temporary file: a parser runs once, and memory does not grow
    with the corpus. Raises CorpusError for defective input, for a corpus without sentences, and for
    labels of two schemes.
    """
    with temporary_spool() as spool:
        yield read_through(corpus, spool)


def read_through(corpus: Corpus, spool: IO[str]) -> PreparedCorpus:
    """Run `prepared` with a given file for the sentences."""
    skipped: Skipped = Counter()
    relations: Counter[str] = Counter()
    digest = hashlib.sha256()
    schemes = _SchemeWatch()
    documents = _DocumentCount(corpus)
    n_sentences = n_words = n_multiword = n_frequent = 0
    for sentence in corpus.read(skipped):
        document = documents.see(sentence)
        write_to(sentence, spool)
        relations.update(
            relation
            for relation, governor in zip(sentence.relations, sentence.governors, strict=True)
            if governor != ROOT
        )
        schemes.see(sentence)
        n_sentences += 1
        n_words += len(sentence.words)
        n_multiword += sentence.n_multiword
        if corpus.frequent:
            n_frequent += sum(word.lower() in corpus.frequent for word in sentence.words)
        # documents are digested by number, so that a renamed file has the same digest
        digest.update(to_line(sentence, document).encode())
    if not n_sentences:
        where = listed(corpus.source.get("files", [])) or (
            f"the {corpus.source.get('format', 'sentences')} given"
        )
        reasons = "; ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise CorpusError(f"no sentences in {where}; {reasons or 'check the paths given'}")
    flush(spool)
    return PreparedCorpus(
        source=corpus.source,
        scheme=corpus.source.get("scheme") or recognise_scheme(relations),
        digest=digest.hexdigest(),
        n_sentences=n_sentences,
        n_words=n_words,
        n_multiword=n_multiword,
        frequent_share=n_frequent / max(n_words, 1) if corpus.frequent else None,
        documents=len(documents.numbers),
        undivided=documents.undivided,
        documents_by_id=documents.by_id,
        relations=relations,
        skipped=skipped,
        spool=spool,
    )


class _DocumentCount:
    """Counter of documents, and of the documents that ids would name where files name none."""

    def __init__(self, corpus: Corpus) -> None:
        self.numbers = Places()
        self.undivided = 0
        self._files = corpus.undivided
        self._prefixes = Places()
        self._have_prefixes = True

    def see(self, sentence: Sentence) -> int:
        """Return the number of a sentence's document, from 1."""
        if sentence.document in self._files:
            self.undivided += 1
            prefix = prefix_of(sentence.id)
            self._have_prefixes &= prefix != ""
            self._prefixes.setdefault(prefix, 0)
        return self.numbers.setdefault(sentence.document, len(self.numbers) + 1)

    @property
    def by_id(self) -> int:
        return len(self._prefixes) if self._have_prefixes else 0


class _SchemeWatch:
    """Check that raises as soon as labels belong to two schemes."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._shown: dict[str, tuple[str, str]] = {}

    def see(self, sentence: Sentence) -> None:
        new = {fold_subtype(relation) for relation in sentence.relations} - self._seen
        if not new:
            return
        self._seen |= new
        for scheme, label in distinctive_labels(new).items():
            self._shown.setdefault(scheme, (label, sentence.id))
        if len(self._shown) > 1:
            found = " and ".join(
                f"{label!r} (sentence {where!r})" for label, where in self._shown.values()
            )
            raise CorpusError(
                f"two label schemes in one corpus: {found} belong to UD and to CLEAR; "
                "score corpora of different schemes in separate runs"
            )


_SENTENCES, _RECORD = "sentences.jsonl", "corpus.json"


@contextmanager
def prepared_in(folder: Path, corpus: Corpus) -> Iterator[PreparedCorpus]:
    """Run `prepared` in ``folder``, where other processes `find_prepared` the sentences."""
    with _opened(folder / _SENTENCES, "w+") as spool:
        ready = read_through(corpus, spool)
        os.fsync(spool.fileno())
        known = {
            one.name: getattr(ready, one.name)
            for one in fields(PreparedCorpus)
            if one.name not in ("spool", "order")
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
