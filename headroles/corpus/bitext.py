"""Sentences and their translations, with the links of an alignment of their words.

A bitext is one file (.bitext), or a file of sources and one of translations; either of the two may
be a treebank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple
from unicodedata import category

from msgspec import Meta

from headroles.corpus.defects import DefectOptions
from headroles.corpus.files import CorpusFile, PathLike, find_files, kind_of, read_lines
from headroles.corpus.sentence import (
    MISSING,
    OTHER,
    ROOT,
    Corpus,
    Sentence,
    Skipped,
    make_examples,
)
from headroles.corpus.spacing import TEXT, SpacingOptions, spaces_by_script, with_spacing
from headroles.corpus.treebanks import SUFFIXES, read_conllu
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, path_text, takes
from headroles.wording import has_halves, shortened

BITEXT, SUFFIX = "bitext", ".bitext"
SURE, POSSIBLE = LINKS = ("Sure", "Possible")
"""Keys of MISC under which a target word lists the source words that it is linked to, from 1."""
BETWEEN = "|||"
"""Mark between a source, its translation and their links."""
_LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})")
_PARTS = 3  # source, target, links


@dataclass(frozen=True, kw_only=True)
class BitextOptions(DefectOptions, SpacingOptions):
    """Options of reading bitexts."""

    title: ClassVar[str] = "Corpus"

    translations: Annotated[str | None, Convert(path_text)] = None
    """File with the translations of the sentences of another file, in their order: text with a
    sentence in each line, or a treebank (.conllu)."""
    links: Annotated[str | None, Convert(path_text)] = None
    """File with the links of a bitext, a line for each pair, such as 0-0 1-2 1p3; left out: the
    third part of each line of a .bitext."""
    links_from: Annotated[int, Meta(ge=0, le=1)] = 0
    """Number of the first word in the links of a bitext, 0 or 1."""


@takes(BitextOptions)
def read_bitext(paths: PathLike | Iterable[PathLike], options: BitextOptions) -> Corpus:
    """Return the corpus of sentences and their translations.

    Each line of the files, ``.bitext``, is a pair, ``source ||| target ||| links``, and a document
    of its own. Blanks separate the words, and the links of the alignment: ``0-1`` is a sure one,
    from the word 0 of the source to the word 1 of the target, and ``0p1`` a possible one. Links may
    be in a file of their own, and a line ``source ||| target`` has none.

    With ``translations`` the path is that of a file of sources. Either file has a sentence in each
    line, or is a treebank (``.conllu``), whose sentences keep their trees; pairs of a treebank of
    sources are of its documents. Links are in a file, or there are none.

    Words stand in the text with a space between them, unless one of two characters that would be
    next to it is Chinese, Japanese, Thai, Lao, Khmer or Burmese.

    Nothing is read before the corpus is iterated. A defective pair then raises CorpusError with its
    place, or is skipped and counted with ``on_bad_sentence="skip"``.

    Raises:
        CorpusError: a path does not exist, or a folder has no ``.bitext`` file.
        UsageError: ``translations`` of several files.
    """
    parts_known = {
        "format": BITEXT,
        "translations": options.translations,
        "links": options.links,
        "links_from": options.links_from,
    }
    files, origin = find_files(paths, SUFFIX)
    if options.translations is not None:
        if len(files) > 1:
            raise UsageError(
                f"{options.translations} has the translations of one file, and there are "
                f"{len(files)}; join them, or give one"
            )
        kinds = {kind_of(files[0].path), kind_of(options.translations)}
        scheme = {} if kinds & {*SUFFIXES} else {"scheme": OTHER}
        corpus = Corpus(
            {**parts_known, **origin, **scheme}, partial(_of_two_files, files[0], options)
        )
        return with_spacing(corpus, options)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for file in files:
            for number, (line, links) in enumerate(_lines(file, options.links), start=1):
                if line.strip():
                    place = f"{file}, line {number}"
                    at = Place(f"{file.name}-{number}", place, options.links_from)
                    if links is not None:
                        at = at._replace(of_links=f"{options.links}, line {number}")
                    yield from _unless_defective(_pair_in(line, links, at), options, skipped)

    return with_spacing(Corpus({**parts_known, **origin, "scheme": OTHER}, read), options)


def typed_pair(text: str, links_from: int = 0, spacing: Literal["text", "words"] = TEXT) -> Corpus:
    """Return the corpus of one pair of the user's own, ``source ||| target``, perhaps with links.

    Raises CorpusError for another text.
    """
    pair = tuple(_pair_in(text, None, Place("pair", "the pair", links_from)))
    corpus = Corpus({"format": BITEXT, "scheme": OTHER}, lambda skipped: iter(pair), sentences=pair)
    return with_spacing(corpus, SpacingOptions(spacing=spacing))


class Place(NamedTuple):
    """The name of a pair, its place and that of its links in messages, and their first number."""

    name: str
    of_pair: str
    first: int
    of_links: str = ""


class BadPair(CorpusError):
    """A defect of a pair that leaves others as they are; ``reason`` names such pairs."""

    reason: str = "defective pairs"


class CountedOtherwise(BadPair):
    """Links of a pair that fit its words only if these are counted from 1, or from 0."""

    def __init__(self, text: str, first: int) -> None:
        remedy = f"pass `links_from={first}`"
        super().__init__(f"{text}; all its links fit if words are counted from {first}: {remedy}")
        self.reason = f"pairs whose links fit if words are counted from {first} ({remedy})"


def _unless_defective(
    pair: Iterator[Sentence], options: BitextOptions, skipped: Skipped
) -> tuple[Sentence, ...]:
    """Return the sentences of a pair; none of a defective one that is to be skipped."""
    try:
        return tuple(pair)
    except BadPair as defect:
        if options.on_bad_sentence == "error":
            if isinstance(defect, CountedOtherwise):
                raise
            remedy = 'correct it, or pass `on_bad_sentence="skip"`'
            raise CorpusError(f"{defect}; {remedy}") from defect
        skipped[defect.reason] += 1
        return ()


def _lines(file: CorpusFile, links: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield each line of a bitext, with its line of the file of links, if there is one."""
    if links is None:
        yield from ((line, None) for line in file.lines())
        return
    for line, own in zip_longest(file.lines(), read_lines(Path(links))):
        if line is None or own is None:
            raise CorpusError(
                f"{links} and {file} differ in the number of their lines; give a line of links for "
                "each pair, an empty one if it has none"
            )
        yield line, own


def _pair_in(line: str, links: str | None, place: Place) -> Iterator[Sentence]:
    """Yield the source and the target of a line, with the links of its third part or others."""
    parts = [part.split() for part in line.split(BETWEEN)]
    if links is not None or len(parts) == _PARTS - 1:
        parts.append((links or "").split())
    is_whole = len(parts) == _PARTS and parts[0] and parts[1]
    if not is_whole or has_halves(line):
        form = f"source {BETWEEN} target"
        form += f", or {form} {BETWEEN} links" if links is None else ", without links"
        raise BadPair(f"{place.of_pair}: {shortened(repr(line))} is no line of the form {form}")
    source, target = (sentence_of_words(words) for words in parts[:2])
    yield from as_pair(source, target, parts[2], place)


def as_pair(
    source: Sentence, target: Sentence, links: Iterable[str], place: Place
) -> tuple[Sentence, Sentence]:
    """Return a source and a target with their links, in a document of their own."""
    source = replace(source, id=f"{place.name}.source", document=place.name, position=0)
    target = replace(target, id=f"{place.name}.target", document=place.name, position=1)
    return source, _linked(target, links, len(source.words), place)


# Two files


def _of_two_files(file: CorpusFile, options: BitextOptions, skipped: Skipped) -> Iterator[Sentence]:
    """Yield sources and targets of two files, in turn. Raises CorpusError where they differ."""
    path = Path(options.translations or "")
    targets = CorpusFile(path, str(path), path.stem)
    undivided, sources = _side(file, skipped)
    links = None if options.links is None else read_lines(Path(options.links))
    pairs = zip_longest(sources, _side(targets, skipped)[1])
    for number, (source, target) in enumerate(pairs, start=1):
        if source is None or target is None:
            raise CorpusError(
                f"{file} and {targets} differ in the number of their sentences; each needs its "
                "translation"
            )
        own = "" if links is None else next(links, None)
        if own is None:
            raise CorpusError(
                f"{options.links} has {number - 1} lines, and {file} more sentences; give a line "
                "for each, an empty one if it has no links"
            )
        if not source.words and not target.words:
            continue
        place = Place(
            f"{file.name}-{number}",
            f"{file}, sentence {number}",
            options.links_from,
            f"{options.links}, line {number}",
        )
        in_document = source.document and source.document not in undivided
        document = source.document if in_document else place.name
        position = 2 * source.position if in_document else 0
        name = source.id or place.name
        source = replace(source, id=f"{name}.source", document=document, position=position)
        target = replace(target, id=f"{name}.target", document=document, position=position + 1)
        pair = _of_sides((file, source), (targets, target), own.split(), place)
        yield from _unless_defective(pair, options, skipped)
    if links is not None and next(links, None) is not None:
        raise CorpusError(
            f"{options.links} has more lines than {file} has sentences; give a line for each"
        )


def _of_sides(
    of_source: tuple[CorpusFile, Sentence],
    of_target: tuple[CorpusFile, Sentence],
    links: list[str],
    place: Place,
) -> Iterator[Sentence]:
    """Yield a source and a target with their links, each of its file."""
    for side, sentence in (of_source, of_target):
        if not sentence.words:
            raise BadPair(
                f"{side}, line {place.name.rpartition('-')[2]} is empty, and its translation is "
                "not; give both"
            )
    yield of_source[1]
    yield _linked(of_target[1], links, len(of_source[1].words), place)


def _side(file: CorpusFile, skipped: Skipped) -> tuple[frozenset[str], Iterator[Sentence]]:
    """Return documents that the file does not divide, and the sentences of one side of a bitext."""
    if kind_of(file.path) in SUFFIXES:
        treebank = read_conllu(file.path)
        return treebank.undivided, treebank.read(skipped)
    return frozenset(), (sentence_of_words(line.split()) for line in file.lines())


# Sentences


def links_in(n_source: int, target: Sentence) -> list[tuple[int, int, int]]:
    """Return source word, target word, and 0 or 1 for a possible one, of the links of a target."""
    return [
        (int(number) - 1, place, label)
        for place, misc in enumerate(target.misc)
        for label, kind in enumerate(LINKS)
        for number in misc.get(kind, "").split(",")
        # not so in a target of another pair, or in MISC of a treebank
        if number.isascii() and number.isdecimal() and 0 < int(number[:9]) <= n_source
    ]


def read_backwards(corpus: Corpus) -> Corpus:
    """Return a bitext the other way round: its targets as sources, with the same links."""

    def read(skipped: Skipped) -> Iterator[Sentence]:
        for example in make_examples(corpus.read(skipped), "adjacent"):
            yield from _backwards(*example.sentences)

    return replace(corpus, read=read, sentences=None)


def _backwards(source: Sentence, target: Sentence | None = None) -> tuple[Sentence, ...]:
    """Return a pair with its sides exchanged, in the places and under the names of one another."""
    if target is None:
        return (source,)
    links = [f"{t}{'-p'[label]}{s}" for s, t, label in links_in(len(source.words), target)]
    place = Place(source.document, source.document, 0)
    first = replace(target, id=source.id, position=source.position)
    second = replace(source, id=target.id, position=target.position)
    return first, _linked(second, links, len(target.words), place)


def _linked(target: Sentence, links: Iterable[str], n_source: int, place: Place) -> Sentence:
    """Return a target whose words list the source words that they are linked to, in MISC."""
    links, lengths = list(links), (n_source, len(target.words))
    linked: dict[int, dict[str, set[int]]] = {}
    for link in links:
        ends = ends_of_link(link, place.first, lengths)
        if ends is None:
            raise _no_link(link, links, lengths, place)
        source, kind, word = ends
        linked.setdefault(word, {}).setdefault(kind, set()).add(source + 1)
    cells = list(target.column("misc"))
    for word, kinds in linked.items():
        entries = [f"{kind}={','.join(map(str, sorted(ends)))}" for kind, ends in kinds.items()]
        if cells[word] != MISSING:
            entries.insert(0, cells[word])
        cells[word] = "|".join(entries)
    return replace(target, annotations={**target.annotations, "misc": tuple(cells)})


def ends_of_link(link: str, first: int, lengths: tuple[int, int]) -> tuple[int, str, int] | None:
    """Return source word, kind and target word of a link, from 0; None if there are no such words.

    ``lengths`` are the numbers of words of source and target, which are counted from ``first``.
    """
    match = _LINK.fullmatch(link)
    if match is None:
        return None
    source, word = (int(match[k]) - first for k in (1, 3))
    fits = 0 <= source < lengths[0] and 0 <= word < lengths[1]
    return (source, SURE if match[2] == "-" else POSSIBLE, word) if fits else None


def _no_link(link: str, links: Sequence[str], lengths: tuple[int, int], place: Place) -> BadPair:
    """Make the error for a link of words that a pair does not have."""
    first, (last_source, last_target) = place.first, (n - 1 + place.first for n in lengths)
    text = (
        f"{place.of_links or place.of_pair}: {shortened(repr(link))} is no link of a word of the "
        f"source, {first} to {last_source}, with one of the target, {first} to {last_target}"
    )
    if all(ends_of_link(each, 1 - first, lengths) for each in links):
        return CountedOtherwise(text, 1 - first)
    return BadPair(f"{text}; write 0-1, or 0p1 for a possible one")


def sentence_of_words(words: Sequence[str]) -> Sentence:
    """Make a sentence without a tree or a name; its characters tell punctuation and spaces."""
    marks = tuple("PUNCT" if _is_mark(word) else "X" for word in words)
    n, spaces = len(words), spaces_by_script(words)
    tree = (ROOT,) * n, (MISSING,) * n
    return Sentence("", "", 0, tuple(words), *tree, {"upos": marks}, spaces=spaces)


def _is_mark(word: str) -> bool:
    return all(category(character).startswith("P") for character in word)
