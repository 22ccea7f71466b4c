"""Documents of treebanks: the option that says how to tell them apart, and its use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headroles.corpus.files import CorpusFile
from headroles.errors import CorpusError, UsageError
from headroles.wording import listed

NEWDOC, SENT_ID, COMMENT = "newdoc", "sent_id", "comment"
# The number of a sentence at the end of its id, as in weblog-0001, b101.1, dev-s12, -p2s1.
_NUMBER = re.compile(r"(.+?)[-_.:/](?:p\d+)?s?\d+")
_LACKING = "a number after -, _, ., : or /"
_MOST_KEYS = 100
_OF_SENTENCES = frozenset(("text", "sent_id", "newpar", "newpar id", "text_en"))


def accept_documents(given: Any) -> str:
    """Return the value of the option, checked. Raises UsageError for another."""
    if not isinstance(given, str):
        raise UsageError(f"documents is {given!r}; pass a text")
    kind, colon, detail = given.partition(":")
    if given in (NEWDOC, SENT_ID) or (kind == COMMENT and detail.strip()):
        return given
    if kind != SENT_ID or not (colon and detail):
        raise UsageError(
            f"documents is {given!r}; pass {NEWDOC}, {SENT_ID}, {SENT_ID}:PATTERN or {COMMENT}:KEY"
        )
    try:
        re.compile(detail)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"documents has the pattern {detail!r}, which is not a regular expression ({error}); "
            "correct it"
        ) from error
    return given


def prefix_of(sentence_id: str) -> str:
    """Return the part of an id before the number of the sentence; empty without a number."""
    found = _NUMBER.fullmatch(sentence_id)
    return found[1] if found else ""


class Documents:
    """Documents of a treebank, found sentence by sentence; `begin` says that a file begins.

    Sentences of a file with one document name belong to one document. If a document resumes after
    another, it is still the same document, but its sentences before and after the break are not
    adjacent. Documents are named after the stem of the file, like sentences, so that a moved corpus
    has the same documents.
    """

    def __init__(self, rule: str) -> None:
        self._kind, _, self._detail = rule.partition(":")
        self._has_comment = False
        self._comments: set[str] = set()

    def begin(self, file: CorpusFile) -> None:
        """Begin with the documents of another file."""
        self._file = file
        self._current: str | None = None  # None before the first named document
        self._last: dict[str | None, int] = {}
        self._unnamed = 0

    def place(self, metadata: Mapping[str, str], sentence_id: str) -> tuple[str, int]:
        """Return the document of the next sentence, and its position there.

        Raises CorpusError for an id without a document name, if ids name the documents.
        """
        name = self._name(metadata, sentence_id)
        position = self._last.get(name, -1) + 1
        if name != self._current and position:  # the document resumes: leave a gap of one
            position += 1
        self._last[name] = position
        self._current = name
        stem = self._file.stem
        return stem if name is None else f"{stem}#{name}", position

    def _name(self, metadata: Mapping[str, str], sentence_id: str) -> str | None:
        if self._kind == SENT_ID:
            return self._from_id(sentence_id)
        if self._kind == COMMENT:
            key = self._detail.strip()
            self._has_comment |= key in metadata
            if len(self._comments) < _MOST_KEYS:
                self._comments.update(metadata)
            return metadata.get(key, self._current)
        if not ("newdoc" in metadata or "newdoc id" in metadata):
            return self._current
        self._unnamed += 1
        return metadata.get("newdoc id") or str(self._unnamed)

    def _from_id(self, sentence_id: str) -> str:
        if not self._detail:
            name = prefix_of(sentence_id)
        else:
            found = re.search(self._detail, sentence_id)
            name = (found[1 if found.re.groups else 0] or "") if found else ""
        if name:
            return name
        lacking = f"the pattern {self._detail!r}" if self._detail else _LACKING
        raise CorpusError(
            f"{self._file}: the id of sentence {sentence_id!r} names no document: it lacks "
            f"{lacking}; pass a regular expression for the part that names the document, as in "
            "`documents='sent_id:^.{6}'`"
        )

    def check_comments(self) -> None:
        """Raise CorpusError if no sentence had the comment that names documents."""
        if self._kind == COMMENT and not self._has_comment:
            others = sorted(self._comments - _OF_SENTENCES)
            has = (
                f"use one of: {listed(others, 10)}" if others else "the corpus has none that could"
            )
            raise CorpusError(
                f"no sentence has a comment {self._detail.strip()!r} to tell `documents` by; {has}"
            )
