"""Saving of parsed text as CoNLL-U, from which its sentences can be read without a parser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from conllu.models import Metadata, Token, TokenList

from headroles import storage
from headroles.corpus.schemes import CLEAR, OTHER, UD
from headroles.corpus.sentence import ANNOTATIONS, MISSING, ROOT, Corpus, Sentence, Skipped
from headroles.errors import CorpusError, UsageError

TREES = "headroles.trees"
"""Comment of a sentence that has several trees, as a line of text or a cell of a table may."""
SCHEME = "headroles.scheme"
"""Comment of the first sentence with the parser's label scheme, which a few labels may not show."""
SKIPPED = "headroles.skipped"
"""Comment of a sentence next to skipped text: counts by reason."""


def save_parses(corpus: Corpus, file: Path | None) -> Corpus:
    """Return the corpus; if ``file`` is given, reading it to the end also writes it to ``file``.

    The file appears once the corpus has been read to its end. Raises UsageError if it exists.
    """
    if file is None:
        return corpus
    if file.exists() and not storage.is_special(file):
        raise UsageError(
            f"{file} already exists; give it as the corpus, without a parser, or name another "
            "file for the parses"
        )

    def read(skipped: Skipped) -> Iterator[Sentence]:
        with storage.whole_file(file) as draft, draft.open("w", encoding="utf-8") as stream:
            writer = _Writer(stream, corpus.source.get("scheme", ""), Counter(skipped))
            for sentence in corpus.read(skipped):
                writer.take(sentence, skipped)
                yield sentence
            writer.take(None, skipped)

    return replace(corpus, read=read)


@dataclass
class _Writer:
    """Writer that lags one sentence behind, so that it can record text skipped after a sentence.

    ``recorded`` are the counts of skipped text recorded so far, or from other corpora.
    """

    stream: IO[str]
    scheme: str
    recorded: Counter[str]
    waiting: Sentence | None = None
    document: str | None = None

    def take(self, sentence: Sentence | None, skipped: Skipped) -> None:
        """Write the waiting sentence, and make ``sentence`` wait."""
        if self.waiting is not None:
            comments = {SCHEME: self.scheme} if self.scheme else {}
            if more := skipped - self.recorded:
                comments[SKIPPED] = json.dumps(more)
            begins = self.waiting.document != self.document
            self.stream.write(to_conllu(self.waiting, comments, begins_document=begins))
            self.scheme, self.recorded = "", Counter(skipped)
            self.document = self.waiting.document
        self.waiting = sentence


def scheme_of_file(metadata: Mapping[str, str]) -> str:
    """Return the scheme that the comments of a file's first sentence name; empty if none."""
    named = metadata.get(SCHEME, "")
    return named if named in (UD, CLEAR, OTHER) else ""


def common_scheme(schemes: Mapping[str, str]) -> str:
    """Return the scheme of all files, of the first file of each scheme; empty if one is unknown.

    Raises CorpusError for two schemes.
    """
    if "" in schemes:
        return ""
    if len(schemes) > 1:
        found = " and ".join(f"{file} ({name})" for name, file in schemes.items())
        raise CorpusError(
            f"two label schemes in one corpus: {found}; score corpora of different schemes in "
            "separate runs"
        )
    return next(iter(schemes), "")


def skipped_in(metadata: Mapping[str, str]) -> dict[str, int]:
    """Return the counts of skipped text that a sentence records, by reason; empty if invalid."""
    if SKIPPED not in metadata:  # true of nearly every sentence
        return {}
    try:
        counts = json.loads(metadata[SKIPPED])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(counts, dict) or not all(type(one) is int for one in counts.values()):
        return {}
    return {reason: count for reason, count in counts.items() if count > 0}


def to_conllu(
    sentence: Sentence, comments: Mapping[str, str] | None = None, *, begins_document: bool
) -> str:
    """Format a sentence as CoNLL-U, with these comments before its own, and a blank line."""
    metadata = Metadata()
    metadata.update(comments or {})
    if begins_document:
        metadata["newdoc id"] = sentence.document
    metadata["sent_id"] = sentence.id
    n_trees = sentence.governors.count(ROOT)
    if n_trees > 1:
        metadata[TREES] = str(n_trees)
    columns = [
        sentence.annotations.get(name) or (MISSING,) * len(sentence.words) for name in ANNOTATIONS
    ]
    tokens = [
        Token(  # keys are written in order, which is that of the columns
            id=k + 1,
            form=sentence.words[k],
            lemma=lemma,
            upos=upos,
            xpos=xpos,
            feats=feats,
            head=sentence.governors[k] + 1,
            deprel=sentence.relations[k],
            deps=deps,
            misc=misc,
        )
        for k, (lemma, upos, xpos, feats, deps, misc) in enumerate(zip(*columns, strict=True))
    ]
    return str(TokenList(tokens, metadata).serialize())
