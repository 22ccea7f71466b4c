"""Parsed text -> a CoNLL-U file, from which the same sentences can be read without a parser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from conllu.models import Metadata, Token, TokenList

from headroles import storage
from headroles.corpus.corpus import Corpus, Skipped
from headroles.corpus.sentence import ANNOTATIONS, MISSING, ROOT, Sentence
from headroles.errors import UsageError

TREES = "headroles.trees"
"""The comment of a sentence that has several trees, as a line of text or a cell of a table may."""


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
            document = None
            for sentence in corpus.read(skipped):
                stream.write(to_conllu(sentence, begins_document=sentence.document != document))
                document = sentence.document
                yield sentence

    return replace(corpus, read=read)


def to_conllu(sentence: Sentence, *, begins_document: bool) -> str:
    """The lines of a sentence, the blank one after it included."""
    comments = Metadata()
    if begins_document:
        comments["newdoc id"] = sentence.document
    comments["sent_id"] = sentence.id
    n_trees = sentence.governors.count(ROOT)
    if n_trees > 1:
        comments[TREES] = str(n_trees)
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
    return str(TokenList(tokens, comments).serialize())
