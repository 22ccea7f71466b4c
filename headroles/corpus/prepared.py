"""Prepared corpora: read once from end to end, and quick to re-read."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedRandom
from itertools import chain
from typing import Self, TypeAlias

import msgspec

from headroles.corpus.sentence import (
    MISSING,
    ROOT,
    Corpus,
    Sentence,
    Skipped,
    distinctive_labels,
    fold_subtype,
    part_of,
    prefix_of,
    recognise_scheme,
)
from headroles.corpus.spacing import AS_WORDS, TEXT
from headroles.errors import CorpusError, StorageError
from headroles.record import RecordedCorpus
from headroles.wording import listed

_SENTENCES = msgspec.json.Decoder(Sentence)


@dataclass(frozen=True)
class PreparedCorpus:
    """A corpus that was read once from end to end: free of errors, counted, and quick to re-read.

    ``record`` identifies and counts the corpus. Its ``digest`` is a SHA-256 over ids, words, trees
    and document boundaries. ``relations`` counts the arcs by full label (with subtypes, without
    root arcs), ``parts`` by label and class of the dependent.
    """

    record: RecordedCorpus
    relations: Counter[str]
    parts: Counter[str]
    skipped: Skipped
    spool: BufferedRandom = field(repr=False)

    def __iter__(self) -> Iterator[Sentence]:
        place = 0
        while True:
            self.spool.seek(place)  # each read seeks, so that several readers can alternate
            line = self.spool.readline()
            if not line:
                return
            yield _SENTENCES.decode(line)
            place += len(line)

    def content_digest(self) -> str:
        """Digest all sentences in reading order, with annotations and documents."""
        self.spool.seek(0)
        return hashlib.file_digest(self.spool, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextmanager
def prepared(corpus: Corpus) -> Iterator[PreparedCorpus]:
    """Read ``corpus`` from end to end once, so that every defect shows before any long work.

    Parsed sentences are stored in a temporary file: a parser runs once, and memory does not grow
    with the corpus. Raises CorpusError for defective input, for a corpus without sentences, and for
    labels of two schemes.
    """
    with _full_disk_reported():
        spool = tempfile.TemporaryFile()  # noqa: SIM115
    with spool:
        yield _read_through(corpus, spool)


def _read_through(corpus: Corpus, spool: BufferedRandom) -> PreparedCorpus:
    skipped: Skipped = Counter()
    words: Counter[WordInTree] = Counter()
    labels: set[str] = set()
    digest = hashlib.sha256()
    schemes: dict[str, tuple[str, str]] = {}
    documents: dict[str, int] = {}
    prefixes: Counter[str] = Counter()
    n_sentences = n_words = n_multiword = n_frequent = n_spaced = 0
    for sentence in corpus.read(skipped):
        with _full_disk_reported():
            spool.write(msgspec.json.encode(sentence) + b"\n")
        if sentence.document in corpus.undivided:
            prefixes[prefix_of(sentence.id)] += 1
        _check_schemes(sentence, labels, schemes)
        labels.update(sentence.relations)
        words.update(words_in(sentence))
        n_sentences += 1
        n_words += len(sentence.words)
        n_multiword += sentence.n_multiword
        n_spaced += bool(sentence.spaces)
        n_frequent += sum(word.lower() in corpus.frequent for word in sentence.words)
        # documents are digested by number, so that a renamed file has the same digest
        number = documents.setdefault(sentence.document, len(documents) + 1)
        names = [sentence.id, number, sentence.position]
        content = [*names, sentence.words, sentence.governors, sentence.relations]
        digest.update((json.dumps(content, separators=(",", ":")) + "\n").encode())
    with _full_disk_reported():
        spool.flush()
    arcs = ArcCounts.from_words(words)
    if not n_sentences:
        files = listed(corpus.source.get("files", []))
        where = files or f"the {corpus.source.get('format', 'sentences')} given"
        reasons = "; ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise CorpusError(f"no sentences in {where}; {reasons or 'check the paths given'}")
    record = {
        "scheme": recognise_scheme(arcs.relations),
        **corpus.source,
        "digest": digest.hexdigest(),
        "sentences": n_sentences,
        "words": n_words,
        "multiword_tokens": n_multiword,
        "spacing": TEXT if n_spaced else AS_WORDS,
        "frequent_share": n_frequent / max(n_words, 1) if corpus.frequent else None,
        "documents": len(documents),
        "undivided": prefixes.total(),
        "documents_by_id": 0 if "" in prefixes else len(prefixes),
        "relations": arcs.by_dependents(),
    }
    return PreparedCorpus(RecordedCorpus.read(record), arcs.relations, arcs.parts, skipped, spool)


WordInTree: TypeAlias = tuple[str, str, str, bool]
"""Label, part of speech and form of a word, and whether it is a root."""


def words_in(sentence: Sentence) -> Iterable[WordInTree]:
    """Yield the words of a sentence as they are counted."""
    are_roots = map(ROOT.__eq__, sentence.governors)
    return zip(sentence.relations, sentence.upos, sentence.words, are_roots, strict=True)


def count_arcs(sentences: Iterable[Sentence]) -> ArcCounts:
    """Count the arcs of sentences."""
    return ArcCounts.from_words(Counter(chain.from_iterable(map(words_in, sentences))))


@dataclass(frozen=True)
class ArcCounts:
    """Counts of arcs, without those to the root.

    ``relations`` are by full label, ``parts`` by label and class of the dependent, ``dependents``
    by relation without subtype, or part of it, and form of the dependent without case.
    """

    relations: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    dependents: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def from_words(cls, words: Counter[WordInTree]) -> Self:
        """Count the arcs of counted words."""
        counts = cls()
        for (label, upos, word, is_root), n in words.items():
            if is_root:
                continue
            relation, form = fold_subtype(label), word.casefold()
            counts.relations[label] += n
            counts.dependents[relation, form] += n
            if upos != MISSING:
                counts.parts[part_of(label, upos)] += n
                counts.dependents[part_of(relation, upos), form] += n
        return counts

    def by_dependents(self) -> dict[str, dict[str, float]]:
        """Count the arcs of each relation, and its different dependents: `RecordedRelation`."""
        by_relation: dict[str, list[int]] = {}
        for (relation, _), n in sorted(self.dependents.items()):
            by_relation.setdefault(relation, []).append(n)
        return {
            relation: {
                "arcs": sum(counts),
                "dependents": len(counts),
                "effective_dependents": round(sum(counts) ** 2 / sum(n * n for n in counts), 1),
            }
            for relation, counts in by_relation.items()
        }


def _check_schemes(
    sentence: Sentence, seen: Container[str], shown: dict[str, tuple[str, str]]
) -> None:
    """Raise CorpusError as soon as labels belong to two schemes.

    ``shown`` has a label of each scheme, and the sentence with it; labels ``seen`` are known.
    """
    new = [label for label in sentence.relations if label not in seen]
    for scheme, label in distinctive_labels(new).items():
        shown.setdefault(scheme, (label, sentence.id))
    if len(shown) > 1:
        labels = " and ".join(f"{label!r} (sentence {where!r})" for label, where in shown.values())
        raise CorpusError(
            f"two label schemes in one corpus: {labels} belong to UD and to CLEAR; "
            "score corpora of different schemes in separate runs"
        )


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
