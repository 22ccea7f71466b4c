"""Reading of CoNLL-U files, one sentence at a time, with errors that name the file and the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import conllu
from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value, parse_line

from headroles.corpus.documents import Documents
from headroles.corpus.files import CorpusFile, PathLike, find_files
from headroles.corpus.options import GIVEN, ConlluOptions
from headroles.corpus.saved_parses import TREES, common_scheme, scheme_of_file, skipped_in
from headroles.corpus.sentence import (
    ANNOTATIONS,
    MISSING,
    Corpus,
    CorpusSource,
    Sentence,
    Skipped,
    tree_defect,
)
from headroles.errors import CorpusError
from headroles.options import takes
from headroles.wording import listed, shortened

SUFFIXES = (".conllu", ".conllup", ".cupt")
CONLLU_COLUMNS = tuple("id form lemma upos xpos feats head deprel deps misc".split())
_NEEDED = ("id", "form", "head", "deprel")
_MOST_DIGITS = 9


@takes(ConlluOptions)
def read_conllu(paths: PathLike | Iterable[PathLike], options: ConlluOptions) -> Corpus:
    """Return the corpus of a treebank in CoNLL-U: files, or folders of ``*.conllu`` files.

    Files may be compressed (``.gz``, ``.bz2``, ``.xz``), and ``-`` is standard input. In CoNLL-U
    Plus (``.conllup``, ``.cupt``) the comment ``# global.columns`` lists the columns; id, form,
    head and deprel must be among them. Multiword-token ranges and empty nodes are not words and are
    ignored.

    A ``# newdoc`` comment with another id, or with none, starts a document; a file without one is
    one document. A sentence without ``# sent_id`` is called ``FILE-N`` after its file and its place
    in it, from 1.

    Nothing is read before the corpus is iterated. Defective sentences (columns, numbering, head out
    of range, cycle, several roots, no words, repeated id) then raise CorpusError, or are skipped
    and counted with ``on_bad_sentence="skip"``.

    Raises:
        CorpusError: a path does not exist, or a folder has no CoNLL-U file.
        UsageError: an option outside its range.

    >>> from headroles import sample_treebank
    >>> first = next(iter(read_conllu(sample_treebank())))
    >>> first.words[:4], first.governors[:4]
    (('The', 'town', 'council', 'approved'), (2, 2, 3, -1))
    """
    files, found = find_files(paths, *SUFFIXES)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        seen: set[int] = set()  # hashes of ids, which take less memory
        schemes: dict[str, str] = {}
        """The first file of each scheme that files name."""
        documents = Documents(options.documents)
        for file in files:
            documents.begin(file)
            columns = CONLLU_COLUMNS
            for count, block in enumerate(_blocks(file), start=1):
                if count == 1:
                    columns = _columns(file, block)
                    schemes.setdefault(scheme_of_file(block.metadata), str(file))
                skipped.update(skipped_in(block.metadata))
                name = _name(file, count, block, options.ids)
                document, position = documents.place(block.metadata, name)
                try:
                    if hash(name) in seen:
                        # found by reading again, and so only where the message is shown
                        is_shown = options.on_bad_sentence == "error"
                        place = _place_of(name, files, options.ids) if is_shown else ""
                        raise _Defect(
                            f"has the id of the sentence at {place}",
                            advice='correct it, name sentences by place with `ids="place"`,',
                        )
                    seen.add(hash(name))
                    sentence = _sentence(block, columns, name, document, position)
                except _Defect as defect:
                    if options.on_bad_sentence == "skip":
                        skipped["defective sentences"] += 1
                        continue
                    raise CorpusError(
                        f"{file}, line {defect.line or block.first_line}: sentence "
                        f"{shortened(name)!r} {defect}; {defect.advice} or pass "
                        '`on_bad_sentence="skip"`'
                    ) from defect
                yield sentence
        documents.check_comments()
        if scheme := common_scheme(schemes):  # known when all is read
            source["scheme"] = scheme

    source: CorpusSource = {
        "format": "conllu",
        **found,
        "documents_by": options.documents,
        "ids_by": options.ids,
    }
    return Corpus(source=source, read=read, undivided=frozenset(file.stem for file in files))


@dataclass(frozen=True)
class _Block:
    """Lines of one sentence, and the number of the first, from 1."""

    lines: list[str]
    first_line: int

    @cached_property
    def metadata(self) -> dict[str, str]:
        """The ``# key = value`` comments; a comment without a value has an empty one."""
        pairs = (line[1:].partition("=") for line in self.lines if line.startswith("#"))
        return {key.strip(): value.strip() for key, _, value in pairs}


class _Defect(Exception):
    """Defect of a sentence, its line in the file if known, and advice to the user."""

    def __init__(self, defect: str, line: int | None = None, advice: str = "correct it") -> None:
        super().__init__(defect)
        self.line = line
        self.advice = advice


def _blocks(file: CorpusFile) -> Iterator[_Block]:
    for is_text, block in groupby(
        enumerate(file.lines(), start=1), lambda one: one[1].strip() != ""
    ):
        if is_text:
            numbers, lines = zip(*block, strict=True)
            yield _Block(list(lines), numbers[0])


def _name(file: CorpusFile, count: int, block: _Block, ids: str) -> str:
    given = block.metadata.get("sent_id") if ids == GIVEN else None
    return given or f"{file.stem}-{count}"


def _place_of(name: str, files: Iterable[CorpusFile], ids: str) -> str:
    """Return the file and the line of the first sentence with an id."""
    blocks = ((file, *one) for file in files for one in enumerate(_blocks(file), start=1))
    return next(
        f"{file}, line {block.first_line}"
        for file, count, block in blocks
        if _name(file, count, block, ids) == name
    )


def _columns(file: CorpusFile, first: _Block) -> tuple[str, ...]:
    """Return the columns of a file, as its CoNLL-U Plus comment lists them, if it has one."""
    named = tuple(first.metadata.get("global.columns", "").lower().split())
    if not named:
        return CONLLU_COLUMNS
    if lacking := [name for name in _NEEDED if named.count(name) != 1]:
        raise CorpusError(
            f"{file}: its global.columns must name {listed(lacking, 4).upper()} once; "
            "add the missing columns, without which there are no trees"
        )
    return named


def _sentence(
    block: _Block, columns: tuple[str, ...], name: str, document: str, position: int
) -> Sentence:
    words: list[str] = []
    governors: list[int] = []
    relations: list[str] = []
    rest: list[list[str]] = []
    n_multiword = 0
    for number, token in _tokens(block, columns):
        if isinstance(token["id"], tuple):  # a multiword range or an empty node
            n_multiword += token["id"][1] == "-"
            continue
        if token["id"] is None:
            raise _Defect(f"does not number its word {len(words) + 1}", number)
        if token["id"] != len(words) + 1:
            raise _Defect(f"numbers its word {len(words) + 1} as {token['id']}", number)
        relation = token["deprel"]
        if token["head"] is None or relation in ("", "_"):
            raise _Defect(f"has no head or no relation for word {token['id']}", number)
        if not relation.isprintable():
            raise _Defect(f"has control characters in the relation of word {token['id']}", number)
        words.append(token["form"])
        governors.append(token["head"] - 1)
        relations.append(relation)
        rest.append([token.get(name) or MISSING for name in ANNOTATIONS])
    if not words:
        raise _Defect("has no words")
    if defect := tree_defect(tuple(governors), _n_trees(block)):
        raise _Defect(defect)
    annotations = dict(zip(ANNOTATIONS, zip(*rest, strict=True), strict=True))
    return Sentence(
        name,
        document,
        position,
        tuple(words),
        tuple(governors),
        tuple(relations),
        annotations,
        n_multiword,
    )


def _n_trees(block: _Block) -> int:
    """Return the number of trees of a sentence: one, unless a parser found more in it."""
    declared = block.metadata.get(TREES, "")
    return int(declared) if re.fullmatch("[1-9][0-9]{0,8}", declared) else 1


def _tokens(block: _Block, columns: tuple[str, ...]) -> Iterator[tuple[int, conllu.Token]]:
    """Yield every token line as (line number in the file, token)."""
    for number, line in enumerate(block.lines, start=block.first_line):
        if line.startswith("#"):
            continue
        if line.count("\t") + 1 != len(columns):
            raise _Defect(_wrong_columns(line, len(columns)), number)
        if "  " in line:  # the conllu parser splits columns at two spaces
            raise _Defect("has two spaces in a row inside a column", number)
        try:
            yield number, parse_line(line, columns, _FIELD_PARSERS)
        except ParseException as error:
            cause = shortened(error, 120)
            raise _Defect(f"cannot be parsed: {cause}", number) from error


def _wrong_columns(line: str, n_needed: int) -> str:
    """Describe a line with another number of columns, and say why if it has no tabs."""
    n_columns = line.count("\t") + 1
    described = f"has {n_columns} tab-separated columns instead of {n_needed}"
    if n_columns > 1:
        return described
    if len(line.split()) == n_needed:
        return f"{described}, and spaces between them"
    return f"{described}; a file of plain text must be called .txt"


def _number(parse: Callable[[str], Any]) -> Callable[[list[str], int], Any]:
    """Make a parser of a column of numbers that rejects impossibly large ones unread."""

    def parsed(columns: list[str], place: int) -> Any:
        if max(map(len, re.split(r"\D", columns[place]))) > _MOST_DIGITS:
            raise ParseException(f"the number {shortened(columns[place], 40)!r} is too large")
        return parse(columns[place])

    return parsed


# Only id, form, head and deprel are used; all other columns stay text.
_FIELD_PARSERS = {"id": _number(parse_id_value), "head": _number(parse_int_value)}
