"""Saving of parsed text as CoNLL-U, from which its sentences can be read without a parser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from headroles import storage
from headroles.corpus.sentence import (
    ANNOTATIONS,
    CLEAR,
    MISSING,
    OTHER,
    ROOT,
    UD,
    Corpus,
    Sentence,
    Skipped,
)
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
    if file.exists():
        raise UsageError(
            f"{file} already exists; give it as the corpus, without a parser, or name another "
            "file for the parses"
        )

    def read(skipped: Skipped) -> Iterator[Sentence]:
        with storage.whole_file(file) as draft, draft.open("w", encoding="utf-8") as stream:
            scheme, recorded = corpus.source.get("scheme", ""), Counter(skipped)
            before: Sentence | None = None
            document: str | None = None
            # one sentence behind, so that a sentence has the text that was skipped after it
            for sentence in chain(corpus.read(skipped), [None]):
                if before is not None:
                    comments = {SCHEME: scheme} if scheme else {}
                    if more := skipped - recorded:
                        comments[SKIPPED] = json.dumps(more)
                    begins = before.document != document
                    stream.write(to_conllu(before, comments, begins_document=begins))
                    scheme, recorded, document = "", Counter(skipped), before.document
                if sentence is not None:
                    yield sentence
                before = sentence

    return replace(corpus, read=read)


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
    metadata = dict(comments or {})
    if begins_document:
        metadata["newdoc id"] = sentence.document
    metadata["sent_id"] = sentence.id
    if (n_trees := sentence.governors.count(ROOT)) > 1:
        metadata[TREES] = str(n_trees)
    lines = [f"# {key} = {value}" for key, value in metadata.items()]
    empty = (MISSING,) * len(sentence.words)
    columns = [sentence.annotations.get(name) or empty for name in ANNOTATIONS]
    for k, (lemma, upos, xpos, feats, deps, misc) in enumerate(zip(*columns, strict=True)):
        tree = [str(sentence.governors[k] + 1), sentence.relations[k]]
        cells = [str(k + 1), sentence.words[k], lemma, upos, xpos, feats, *tree, deps, misc]
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n\n"
