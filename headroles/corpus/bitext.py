"""Sentences and their translations, with the links of an alignment of their words (.bitext)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, ClassVar
from unicodedata import category

from msgspec import Meta

from headroles.corpus.files import CorpusFile, PathLike, find_files, read_lines
from headroles.corpus.sentence import MISSING, OTHER, ROOT, Corpus, Sentence, Skipped
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, Options, takes
from headroles.record import RecordedCorpus
from headroles.wording import has_halves, shortened

BITEXT, SUFFIX = "bitext", ".bitext"
SURE, POSSIBLE = LINKS = ("Sure", "Possible")
"""Keys of MISC under which a target word lists the source words that it is linked to, from 1."""
_LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})")
_PARTS = 3  # source, target, links


def _path(given: PathLike) -> str:
    return str(given)


@dataclass(frozen=True, kw_only=True)
class BitextOptions(Options):
    """Options of reading bitexts."""

    title: ClassVar[str] = "Corpus"

    links: Annotated[str | None, Convert(_path)] = None
    """File with the links of a bitext (.bitext), a line for each of its lines, such as 0-0 1-2 1p3;
    left out: the third part of each line of the bitext."""
    links_from: Annotated[int, Meta(ge=0, le=1)] = 0
    """Number of the first word in the links of a bitext, 0 or 1."""


@takes(BitextOptions)
def read_bitext(paths: PathLike | Iterable[PathLike], options: BitextOptions) -> Corpus:
    """Return the corpus of sentences and their translations, ``source ||| target ||| links``.

    Each line of the files, ``.bitext``, is a pair, and a document of its own. Blanks separate the
    words, and the links of the alignment: ``0-1`` is a sure one, from the word 0 of the source to
    the word 1 of the target, and ``0p1`` a possible one. Links may be in a file of their own.

    Nothing is read before the corpus is iterated. A defective line then raises CorpusError with its
    place.

    Raises:
        CorpusError: a path does not exist, or a folder has no ``.bitext`` file.
    """
    files, origin = find_files(paths, SUFFIX)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            for number, (pair, links) in enumerate(_lines(file, options.links), start=1):
                if pair.strip():
                    yield from _pair(pair, links, file, number, options)

    known = {"scheme": OTHER, "links": options.links, "links_from": options.links_from}
    return Corpus({"format": BITEXT, **origin, **known}, read)


def refuse_bitext(record: RecordedCorpus) -> None:
    """Raise UsageError for a bitext, where a model reads sentences of one language."""
    if record.format == BITEXT:
        raise UsageError("a bitext has sources and targets; give sentences, as in a treebank")


def _lines(file: CorpusFile, links: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield each line of a bitext, with its line of the file of links, if there is one."""
    if links is None:
        yield from ((line, None) for line in file.lines())
        return
    for line, own in zip_longest(file.lines(), read_lines(Path(links))):
        if line is None or own is None:
            raise CorpusError(f"{links} and {file} differ in the number of their lines")
        yield line, own


def _pair(
    line: str, links: str | None, file: CorpusFile, number: int, options: BitextOptions
) -> Iterator[Sentence]:
    """Yield the source and the target of a line."""
    place = f"{file}, line {number}"
    parts = [part.split() for part in line.split("|||")]
    if links is not None:
        place = f"{options.links}, line {number}" if len(parts) == _PARTS - 1 else place
        parts.append(links.split())
    if len(parts) != _PARTS or not parts[0] or not parts[1] or has_halves(line):
        form = "source ||| target" + " ||| links" * (links is None)
        raise CorpusError(f"{place}: {shortened(repr(line))} is no line of the form {form}")
    source, target, listed = parts
    linked = _linked(listed, len(source), len(target), place, options.links_from)
    name = f"{file.name}-{number}"
    yield _sentence(f"{name}.source", name, 0, source, {})
    yield _sentence(f"{name}.target", name, 1, target, linked)


def _linked(
    links: Iterable[str], n_source: int, n_target: int, place: str, first: int
) -> dict[int, dict[str, list[int]]]:
    """Return the source words that each target word is linked to, from 1, by the kind of link."""
    linked: dict[int, dict[str, list[int]]] = {}
    for link in links:
        match = _LINK.fullmatch(link)
        source, target = (int(match[k]) - first for k in (1, 3)) if match else (-1, -1)
        if match is None or not (0 <= source < n_source and 0 <= target < n_target):
            raise CorpusError(
                f"{place}: {shortened(repr(link))} is no link of a word of the source, "
                f"{first} to {n_source - 1 + first}, with one of the target, {first} to "
                f"{n_target - 1 + first}; write 0-1, or 0p1 for a possible one"
            )
        kinds = linked.setdefault(target, {})
        kinds.setdefault(SURE if match[2] == "-" else POSSIBLE, []).append(source + 1)
    return linked


def _sentence(
    name: str,
    document: str,
    position: int,
    words: list[str],
    linked: dict[int, dict[str, list[int]]],
) -> Sentence:
    """Make a sentence without a tree; punctuation is told by its characters."""
    cells = [
        "|".join(f"{kind}={','.join(map(str, sorted(set(ends))))}" for kind, ends in kinds.items())
        for kinds in (linked.get(place, {}) for place in range(len(words)))
    ]
    marks = ("PUNCT" if _is_mark(word) else "X" for word in words)
    columns = {"upos": tuple(marks), "misc": tuple(cell or MISSING for cell in cells)}
    n = len(words)
    return Sentence(name, document, position, tuple(words), (ROOT,) * n, (MISSING,) * n, columns)


def _is_mark(word: str) -> bool:
    return all(category(character).startswith("P") for character in word)
