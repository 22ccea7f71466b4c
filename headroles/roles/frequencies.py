"""Word frequencies, from the corpus or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from headroles.corpus import Sentence, read_lines
from headroles.errors import CorpusError
from headroles.options import Option, Options, whole_number
from headroles.wording import shortened


@dataclass(frozen=True, kw_only=True)
class FrequencyOptions(Options):
    """Options that choose the source of word frequencies."""

    title: ClassVar[str] = "Roles"

    frequencies: Annotated[
        str | None,
        Option(
            "File of word frequencies, for rare words: a word, a tab and its count in each line.",
            more="By default the words of the corpus are counted. Words that are not in the file "
            "count as the rarest; upper and lower case are the same.",
            convert=str,
        ),
    ] = None


def count_words(options: FrequencyOptions, sentences: Iterable[Sentence]) -> Counter[str]:
    """Count words, folded by `fold`: read the file of the options, or count the sentences.

    Raises CorpusError for a file that cannot be read.
    """
    if options.frequencies is not None:
        return read_frequencies(Path(options.frequencies))
    return Counter(fold(word) for sentence in sentences for word in sentence.words)


def fold(word: str) -> str:
    """Return the word in the form in which frequencies list it, without case."""
    return word.casefold()


def read_frequencies(file: Path) -> Counter[str]:
    """Read counts by word from a file. Raises CorpusError that names the file and the line."""
    counts: Counter[str] = Counter()
    for number, line in enumerate(read_lines(file), start=1):
        word, _, count = line.rpartition("\t")
        times = whole_number(count.strip())
        if not word or times is None:
            raise CorpusError(
                f"{file}, line {number}: {shortened(line)!r} is not a word, a tab and a count; "
                "correct the line"
            )
        counts[fold(word)] += times
    return counts
