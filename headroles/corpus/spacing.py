"""Spaces between words, as the text has them or one before each, and inside words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Annotated, ClassVar, Final, Literal

from headroles.corpus.sentence import Corpus, Sentence, Skipped
from headroles.errors import UsageError
from headroles.options import Convert, Options

TEXT: Final = "text"
AS_WORDS: Final = "words"


def _accept_joint(text: str) -> str:
    if not isinstance(text, str) or not text.isprintable() or not text or " " in text:
        raise UsageError(f"join_spaces is {text!r}; pass a text without spaces, such as _")
    return text


@dataclass(frozen=True, kw_only=True)
class SpacingOptions(Options):
    """Options of spaces between and in words."""

    title: ClassVar[str] = "Corpus"

    spacing: Literal["text", "words"] = TEXT
    """Whether words have spaces before them as in the text, or always one (words).

    text: as SpaceAfter=No, # text, spaCy or a field tells; in bitexts none beside characters of
    Chinese, Japanese, Thai, Lao, Khmer or Burmese. Tokenizers of WordPiece see no spaces.
    words: as versions up to 0.2 gave words to the tokenizer, for comparison with their numbers.
    """
    join_spaces: Annotated[str | None, Convert(_accept_joint)] = None
    """Text in place of spaces inside words, such as _ for PhoBERT, which reads sinh_viên."""


def with_spacing(corpus: Corpus, options: SpacingOptions) -> Corpus:
    """Return a corpus whose sentences have words and spaces as the options say."""
    if options.spacing == TEXT and options.join_spaces is None:
        return corpus
    corpus.source["join_spaces"] = options.join_spaces

    def respaced(sentence: Sentence) -> Sentence:
        if options.spacing == AS_WORDS:
            sentence = replace(sentence, spaces=())
        if (joint := options.join_spaces) is not None:
            words = tuple(joint.join(word.split()) or word for word in sentence.words)
            sentence = replace(sentence, words=words)
        return sentence

    def read(skipped: Skipped) -> Iterator[Sentence]:
        return map(respaced, corpus.read(skipped))

    sentences = None if corpus.sentences is None else tuple(map(respaced, corpus.sentences))
    return replace(corpus, read=read, sentences=sentences)


_NO_SPACES = re.compile(
    "[\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u2e80-\u312f\u31a0-\u31bf\u31f0-\u9fff"  # Chinese and Japanese, with their punctuation
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff9f"  # compatibility, fullwidth and halfwidth forms
    "\U00020000-\U0003ffff]"
)
"""Characters of scripts that are written without spaces between words."""


def spaces_by_script(words: Sequence[str]) -> tuple[bool, ...]:
    """Tell of each word whether a space would follow it in a text; empty if one follows all.

    None is written beside characters of scripts without spaces.

    >>> spaces_by_script(["我", "看", "NBA", "games"])
    (False, False, True, True)
    """
    is_apart = [
        _NO_SPACES.match(word[-1]) is None and _NO_SPACES.match(after[0]) is None
        for word, after in pairwise(words)
    ]
    return () if all(is_apart) else (*is_apart, True)


def spaces_in(text: str, words: Sequence[str]) -> list[bool] | None:
    """Tell of each word whether a space follows it in ``text``; None if it has other words."""
    parts, solid = text.split(), ["".join(word.split()) for word in words]
    if "".join(parts) != "".join(solid):
        return None
    ends = set(accumulate(map(len, parts)))
    return [end in ends for end in accumulate(map(len, solid))]
