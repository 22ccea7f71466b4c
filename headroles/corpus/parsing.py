"""spaCy pipelines, and the sentences that they parse."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headroles.corpus.sentence import MISSING, ROOT, CorpusSource, Sentence, recognise_scheme
from headroles.errors import ParserError, UsageError
from headroles.wording import in_one_line

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

T = TypeVar("T")
# Pipes that a dependency parse does not need; all others run as the pipeline's author intended.
_UNNEEDED_PIPES = ("ner", "entity_linker", "lemmatizer", "textcat", "textcat_multilabel")


@dataclass(frozen=True)
class Pipeline:
    """A pipeline with a dependency parser; ``name`` includes its language and version."""

    nlp: Language
    name: str
    scheme: str

    def source(self, kind: str, found: CorpusSource) -> CorpusSource:
        """Return the origin of a corpus of this kind that the pipeline parses."""
        return {
            "format": kind,
            **found,
            "parser": self.name,
            "language": self.nlp.lang,
            "scheme": self.scheme,
        }

    @property
    def frequent(self) -> frozenset[str]:
        """Frequent words of the language; none where the list is too short to tell languages."""
        words = frozenset(self.nlp.Defaults.stop_words)
        return words if len(words) >= 100 else frozenset()


def load_pipeline(parser: str | PathLike[str] | Language) -> Pipeline:
    """Load a pipeline by the name of an installed one or by path, or take a loaded one.

    Raises ParserError if it cannot be loaded or does not parse, UsageError for another object.
    """
    nlp = _load(parser) if isinstance(parser, str | PathLike) else parser
    if not is_from_spacy(nlp, "language", "Language"):
        raise UsageError(
            f"the parser is a {type(parser).__name__}; give a spaCy pipeline, or the name or path "
            "of one"
        )
    full_name = f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"
    labels = [
        str(label)
        for pipe in nlp.pipe_names
        if "parser" in nlp.get_pipe_meta(pipe).factory
        for label in getattr(nlp.get_pipe(pipe), "labels", ())
    ]
    if not labels:
        shown = parser if isinstance(parser, str) else full_name
        raise ParserError(
            f"the spaCy pipeline {shown!r} has no "
            f"dependency parser (it has: {', '.join(nlp.pipe_names) or 'nothing'}); give a "
            "pipeline that parses"
        )
    return Pipeline(nlp, full_name, recognise_scheme(labels))


def is_from_spacy(given: object, module: str, name: str) -> bool:
    """Tell whether ``given`` is an instance of a spaCy class, without importing spaCy."""
    loaded = sys.modules.get(f"spacy.{module}")
    return isinstance(given, getattr(loaded, name, ()))


def _load(name: str | PathLike[str]) -> Language:
    is_of_spacy = re.fullmatch(r"[a-z]{2,3}_[a-z]+_[a-z]+_(sm|md|lg|trf)", str(name))
    try:
        import spacy
    except ImportError as error:
        asked = str(name) if is_of_spacy else "en_core_web_sm"
        raise ParserError(
            'parsing text needs spaCy and a pipeline; install them: pip install "spacy>=3.8" '
            f"&& python -m spacy download {asked}"
        ) from error
    try:
        return spacy.load(
            Path(name) if isinstance(name, PathLike) else name, exclude=list(_UNNEEDED_PIPES)
        )
    except Exception as error:  # a package of that name may be anything, spaCy itself for one
        own = str(name) if is_of_spacy else "NAME, such as en_core_web_sm"
        raise ParserError(
            f"the spaCy pipeline {str(name)!r} cannot be loaded ({in_one_line(error)}); name an "
            f"installed pipeline or the path of one. spaCy's own: python -m spacy download {own}"
        ) from error


def spans(
    pipeline: Pipeline, texts: Iterable[tuple[str, T]], *, whole: bool, n_processes: int = 1
) -> Iterator[tuple[Span | Doc, T]]:
    """Parse texts; yield their sentences, or each text as one, with what came beside the text."""
    for doc, beside in pipeline.nlp.pipe(texts, as_tuples=True, n_process=n_processes):
        yield from ((span, beside) for span in ([doc] if whole else doc.sents))


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines between blank ones with single spaces."""
    for is_text, together in groupby(lines, lambda line: bool(line.strip())):
        if is_text:
            yield " ".join(" ".join(together).split())


def sentence_of(
    span: Span | Doc, name: str, document: str = "", position: int = 0
) -> Sentence | None:
    """Convert ``span`` to a sentence without spaCy's white-space tokens; None if none is left."""
    tokens = [token for token in span if not token.is_space]
    if not tokens:
        return None
    index = {token.i: k for k, token in enumerate(tokens)}
    columns = {
        "lemma": (token.lemma_ for token in tokens),
        "upos": (token.pos_ for token in tokens),
        "xpos": (token.tag_ for token in tokens),
        "feats": (str(token.morph) for token in tokens),
    }
    return Sentence(
        id=name,
        document=document,
        position=position,
        words=tuple(token.text for token in tokens),
        governors=tuple(index.get(_governor(token), ROOT) for token in tokens),
        relations=tuple(token.dep_ for token in tokens),
        annotations={name: tuple(x or MISSING for x in texts) for name, texts in columns.items()},
    )


def _governor(token: Token) -> int:
    """Return the document index of the first governor that is a word, -1 for a root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return int(token.i)
    return -1
