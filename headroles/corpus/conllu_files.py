"""CoNLL-U files -> sentences, one at a time, with errors that name the file and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import conllu
from conllu.exceptions import ParseException

from headroles.corpus.corpus import Corpus, Skipped
from headroles.corpus.files import PathLike, find_files, read_lines
from headroles.corpus.options import ConlluOptions
from headroles.corpus.sentence import Sentence, tree_defect
from headroles.errors import CorpusError
from headroles.options import takes

N_COLUMNS = 10
# Only id, form, head and deprel are used: parsing the others would cost a third of the time.
_COLUMNS_LEFT_AS_TEXT = ("xpos", "feats", "deps", "misc")


@takes(ConlluOptions)
def read_conllu(paths: PathLike | Iterable[PathLike], options: ConlluOptions) -> Corpus:
    """A treebank in CoNLL-U: one file, several, or folders of ``*.conllu`` files.

    Multiword-token ranges and empty nodes are not words and are passed over. A ``# newdoc``
    comment starts a document; a file without one is one document. A sentence without
    ``# sent_id`` is called ``FILE-N`` after its file and its place in it, from 1.

    Nothing is read before the corpus is iterated. Defective sentences (columns, numbering, head
    out of range, cycle, several roots, no words, repeated id) raise CorpusError then, or are
    left out and counted with ``on_bad_sentence="skip"``.

    Raises:
        CorpusError: a path does not exist, or a folder has no CoNLL-U file.
        UsageError: an option outside its range.
    """
    files = find_files(paths, suffix=".conllu")

    def read(skipped: Skipped) -> Iterator[Sentence]:
        seen: dict[str, str] = {}
        for file in files:
            for outcome in _read_file(file, seen):
                if isinstance(outcome, Sentence):
                    yield outcome
                elif options.on_bad_sentence == "skip":
                    skipped["defective sentences"] += 1
                else:
                    raise outcome

    return Corpus(source={"format": "conllu", "files": [str(file) for file in files]}, read=read)


@dataclass(frozen=True)
class _Block:
    """The lines of one sentence and the number of the first, from 1."""

    lines: list[str]
    first_line: int


def _read_file(file: Path, seen: dict[str, str]) -> Iterator[Sentence | CorpusError]:
    document, position = str(file), 0
    documents = 0
    for count, block in enumerate(_blocks(file), start=1):
        metadata = _metadata(block)
        if "newdoc" in metadata or "newdoc id" in metadata:
            documents += 1
            name = metadata.get("newdoc id") or str(documents)
            document, position = f"{file}#{name}", 0
        sentence_id = metadata.get("sent_id") or f"{file.stem}-{count}"
        try:
            if sentence_id in seen:
                raise _Defect(f"has the id of the sentence at {seen[sentence_id]}")
            seen[sentence_id] = f"{file}, line {block.first_line}"
            yield _sentence(block, sentence_id, document, position)
        except _Defect as defect:
            line = f"line {defect.line or block.first_line}"
            yield CorpusError(
                f"{file}, {line}: sentence {sentence_id!r} {defect}; "
                'correct it or pass on_bad_sentence="skip" (--on-bad-sentence skip)'
            )
        position += 1


class _Defect(Exception):
    """What is wrong with a sentence, and at which line of the file if that is known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def _blocks(file: Path) -> Iterator[_Block]:
    lines: list[str] = []
    first = 1
    for number, line in enumerate(read_lines(file), start=1):
        if line.strip():
            if not lines:
                first = number
            lines.append(line)
        elif lines:
            yield _Block(lines, first)
            lines = []
    if lines:
        yield _Block(lines, first)


def _metadata(block: _Block) -> dict[str, str]:
    """The ``# key = value`` comments; a comment without a value has an empty one."""
    pairs = (line[1:].partition("=") for line in block.lines if line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _sentence(block: _Block, name: str, document: str, position: int) -> Sentence:
    words: list[str] = []
    governors: list[int] = []
    relations: list[str] = []
    for number, token in _tokens(block):
        if isinstance(token["id"], tuple):  # a multiword range or an empty node
            continue
        if token["id"] is None:
            raise _Defect(f"does not number its word {len(words) + 1}", number)
        if token["id"] != len(words) + 1:
            raise _Defect(f"numbers its word {len(words) + 1} as {token['id']}", number)
        # The parser leaves out empty columns at the end of a line.
        if token.get("head") is None or token.get("deprel", "_") in ("", "_"):
            raise _Defect(f"has no head or no relation for word {token['id']}", number)
        words.append(token["form"])
        governors.append(token["head"] - 1)
        relations.append(token["deprel"])
    if not words:
        raise _Defect("has no words")
    if defect := tree_defect(tuple(governors)):
        raise _Defect(defect)
    return Sentence(name, document, position, tuple(words), tuple(governors), tuple(relations))


def _tokens(block: _Block) -> Iterator[tuple[int, conllu.Token]]:
    """Every token line as (line number in the file, token)."""
    numbered = [
        (number, line)
        for number, line in enumerate(block.lines, start=block.first_line)
        if not line.startswith("#")
    ]
    for number, line in numbered:
        columns = line.count("\t") + 1
        if columns != N_COLUMNS:
            raise _Defect(f"has {columns} tab-separated columns instead of {N_COLUMNS}", number)
        if "  " in line:  # the parser takes two spaces for a column border
            raise _Defect("has two spaces in a row inside a column", number)
    numbers = [number for number, _ in numbered]
    yield from zip(numbers, _parse(numbered), strict=True)


def _parse(numbered: list[tuple[int, str]]) -> list[conllu.Token]:
    try:
        return _parse_lines([line for _, line in numbered])
    except ParseException:
        for number, line in numbered:  # once more, line by line, to find the one at fault
            try:
                _parse_lines([line])
            except ParseException as error:
                raise _Defect(f"cannot be parsed: {error}", number) from error
        raise


def _parse_lines(lines: list[str]) -> list[conllu.Token]:
    sentences = conllu.parse("\n".join(lines), field_parsers=_FIELD_PARSERS)
    return list(sentences[0]) if sentences else []


def _as_text(columns: list[str], index: int) -> str:
    return columns[index]


_FIELD_PARSERS: dict[str, Callable[[list[str], int], Any]] = dict.fromkeys(
    _COLUMNS_LEFT_AS_TEXT, _as_text
)
