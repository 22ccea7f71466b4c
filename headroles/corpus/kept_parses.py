"""Parsed text -> a CoNLL-U file, from which the same sentences can be read without a parser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from conllu.models import Metadata, Token, TokenList

from headroles import storage
from headroles.corpus.corpus import Corpus, Skipped
from headroles.corpus.schemes import CLEAR, OTHER, UD
from headroles.corpus.sentence import ANNOTATIONS, MISSING, ROOT, Sentence
from headroles.errors import CorpusError, UsageError

TREES = "headroles.trees"
"""The comment of a sentence that has several trees, as a line of text or a cell of a table may."""
SCHEME = "headroles.scheme"
"""The comment of the first sentence: the label scheme of the parser, which few labels may hide."""
SKIPPED = "headroles.skipped"
"""The comment of a sentence before or after which something was left out: counts by reason."""


def keep_parses(corpus: Corpus, file: Path | None) -> Corpus:
    """The same corpus, which writes its sentences to ``file`` while it is read, if that is given.

    The file appears when the corpus was read to its end. Raises UsageError if it exists.
    """
    if file is None:
        return corpus
    if file.exists() and not storage.is_special(file):
        raise UsageError(
            f"{file} is there already; give it as the corpus, without a parser, or name another "
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
    """Writes one sentence behind: the last one tells what was skipped after it, too.

    ``told`` is what was skipped so far and is written down, or is of other corpora.
    """

    stream: IO[str]
    scheme: str
    told: Counter[str]
    waiting: Sentence | None = None
    document: str | None = None

    def take(self, sentence: Sentence | None, skipped: Skipped) -> None:
        """Write the sentence that waits, and have another one wait."""
        if self.waiting is not None:
            comments = {SCHEME: self.scheme} if self.scheme else {}
            if more := skipped - self.told:
                comments[SKIPPED] = json.dumps(more)
            begins = self.waiting.document != self.document
            self.stream.write(to_conllu(self.waiting, comments, begins_document=begins))
            self.scheme, self.told = "", Counter(skipped)
            self.document = self.waiting.document
        self.waiting = sentence


@dataclass
class Told:
    """What files of kept parses say of the text that they were made of."""

    _schemes: dict[str, str] = field(default_factory=dict)

    def begin(self, file: object, metadata: Mapping[str, str]) -> None:
        """Note the scheme of a file, from the comments of its first sentence."""
        said = metadata.get(SCHEME, "")
        self._schemes.setdefault(said if said in (UD, CLEAR, OTHER) else "", str(file))

    def scheme(self) -> str:
        """That of all files; empty if some say none. Raises CorpusError for two of them."""
        if "" in self._schemes or not self._schemes:
            return ""
        if len(self._schemes) > 1:
            found = " and ".join(f"{file} ({name})" for name, file in self._schemes.items())
            raise CorpusError(
                f"two label schemes in one corpus: that of {found}; score corpora of different "
                "schemes in separate runs"
            )
        return next(iter(self._schemes))


def skipped_in(metadata: Mapping[str, str]) -> dict[str, int]:
    """What a sentence says was skipped; nothing where that is no count by reason."""
    if SKIPPED not in metadata:  # as of nearly every sentence
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
    """The lines of a sentence with these comments before its own, and the blank one after it."""
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
    tokens = []
    for k, (lemma, upos, xpos, feats, deps, misc) in enumerate(zip(*columns, strict=True)):
        tokens.append(
            Token(
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
        )  # in the order of the columns: they are written in the order of the keys
    return str(TokenList(tokens, metadata).serialize())
