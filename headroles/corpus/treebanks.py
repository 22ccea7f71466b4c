"""CoNLL-U: treebanks read sentence by sentence, with the line of a defect, and parses saved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

from conllu.parser import parse_line

from headroles import storage
from headroles.corpus.defects import DefectOptions
from headroles.corpus.files import CorpusFile, PathLike, find_files
from headroles.corpus.sentence import (
    ANNOTATIONS,
    BEFORE_NUMBER,
    MISSING,
    ROOT,
    SCHEMES,
    Corpus,
    CorpusSource,
    Positions,
    Sentence,
    Skipped,
    is_label,
    tree_defect,
)
from headroles.corpus.spacing import SpacingOptions, spaces_in, with_spacing
from headroles.corpus.withheld import WithheldText
from headroles.errors import CorpusError, UsageError
from headroles.options import Convert, takes
from headroles.wording import listed, shortened

SUFFIXES = (".conllu", ".conllup", ".cupt")
CONLLU_COLUMNS = tuple("id form lemma upos xpos feats head deprel deps misc".split())
N_TREES_KEY = "headroles.trees"
"""Comment of a sentence that has several trees, as a line of text or a cell of a table may."""
SCHEME = "headroles.scheme"
"""Comment of the first sentence with the parser's label scheme, which a few labels may not show."""
NO_WORDS = "cells without words"
"""Reason to skip a cell of a table."""
EMPTY_CELLS = "headroles.empty_cells"
"""Comment with the number of cells without words that a parser skipped beside a sentence."""
_NEEDED = ("id", "form", "head", "deprel")
_AS_TEXT = dict.fromkeys(CONLLU_COLUMNS, lambda cells, place: cells[place])
"""Parsers of columns: numbers are checked here, with the line of a wrong one."""
_NO_WORD = re.compile(r"([0-9]{1,9})([-.])([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MOST_KEYS = 100
_REPETITIONS = 4
"""Most repetitions of a pattern for ids that someone else may have written."""
_NO_SPACE = "SpaceAfter=No"
_OF_SENTENCES = frozenset(("text", "sent_id", "newpar", "newpar id", "text_en"))
"""Keys of comments that name no documents."""
NEWDOC, SENT_ID, COMMENT = "newdoc", "sent_id", "comment"


def _accept_documents(value: str) -> str:
    kind, _, detail = value.partition(":") if isinstance(value, str) else ("", "", "")
    if value in (NEWDOC, SENT_ID) or (kind == COMMENT and detail.strip()):
        return str(value)
    if kind != SENT_ID or not detail:
        raise UsageError(
            f"documents is {value!r}; pass {NEWDOC}, {SENT_ID}, {SENT_ID}:PATTERN or {COMMENT}:KEY"
        )
    try:
        re.compile(detail)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"documents has the pattern {detail!r}, which is not a regular expression ({error}); "
            "correct it"
        ) from error
    return str(value)


def is_quick(documents: str) -> bool:
    """Tell whether names of documents are found quickly in any id.

    Time grows without bound for a pattern that repeats what repeats, ``(a+)+``, or repeats often. A
    user may wait for a pattern of their own; one that was sent must be quick.
    """
    kind, _, pattern = documents.partition(":")
    if kind != SENT_ID:
        return True
    bare = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "x", pattern.replace("(?", "("))
    return not re.search(r"\)[*+{]", bare) and len(re.findall(r"[*+?{]+", bare)) <= _REPETITIONS


@dataclass(frozen=True, kw_only=True)
class ConlluOptions(DefectOptions, SpacingOptions):
    """Options of reading a treebank."""

    title: ClassVar[str] = "Corpus"

    documents: Annotated[str, Convert(_accept_documents)] = NEWDOC
    """Names of documents: newdoc, sent_id, sent_id:PATTERN or comment:KEY.

    newdoc: by the comments of CoNLL-U. sent_id: by the part of a sentence id before its number;
    PATTERN is a regular expression for the part that names the document. comment: by a comment KEY
    = value, which holds until the next one. Sentences are paired within documents, and documents
    are clusters of tests.
    """
    ids: Literal["given", "place"] = "given"
    """Names of sentences: given, or place for FILE-N where ids repeat.

    given: by their sent_id, or FILE-N if they have none.
    """
    contractions: Literal["words", "surface"] = "words"
    """Whether contractions, such as im = in + dem, are the words of the tree or one word (surface).

    surface: a multiword token that its words do not spell is one word, with the arc of the word
    that is highest in the tree.
    """


@takes(ConlluOptions)
def read_conllu(paths: PathLike | Iterable[PathLike], options: ConlluOptions) -> Corpus:
    """Return the corpus of a treebank in CoNLL-U: files, or folders of ``*.conllu`` files.

    Files may be compressed (``.gz``, ``.bz2``, ``.xz``), and ``-`` is standard input. In CoNLL-U
    Plus (``.conllup``, ``.cupt``) the comment ``# global.columns`` lists the columns; id, form,
    head and deprel must be among them. Empty nodes are ignored, and multiword-token ranges are not
    words, unless ``contractions="surface"`` asks for them.

    A space follows each word in the text unless MISC has ``SpaceAfter=No``; if it has none in a
    sentence, ``# text`` tells, where it consists of the words. The line of a multiword token tells
    of its last word; the others have no space after them if the words spell the token (do + n't),
    and one if they do not (in + dem for im).

    A ``# newdoc`` comment with another id, or with none, starts a document; a file without one is
    one document. A sentence without ``# sent_id`` is called ``FILE-N`` after its file and its place
    in it, from 1.

    Nothing is read before the corpus is iterated. Defective sentences (columns, numbering, head out
    of range, cycle, several roots, no words, repeated id) then raise CorpusError, or are skipped
    and counted with ``on_bad_sentence="skip"``. A file whose text is withheld, with ``_`` for most
    words, raises CorpusError at its end.

    Raises:
        CorpusError: a path does not exist, or a folder has no CoNLL-U file.
        UsageError: an option outside its range.

    >>> from headroles import sample_treebank
    >>> first = next(iter(read_conllu(sample_treebank())))
    >>> first.words[:4], first.governors[:4]
    (('The', 'town', 'council', 'approved'), (2, 2, 3, -1))
    """
    files, origin = find_files(paths, *SUFFIXES)

    def read(skipped: Skipped) -> Iterator[Sentence]:
        seen: dict[int, tuple[CorpusFile, int]] = {}  # by hashes of ids, which are smaller
        schemes: set[str] = set()
        documents = _Documents(options.documents)
        for file in files:
            columns, text = CONLLU_COLUMNS, WithheldText(file)
            for count, block in enumerate(_blocks(file), start=1):
                if count == 1:
                    columns = _columns(file, block)
                    schemes.add(block.metadata.get(SCHEME, ""))
                sent_id = block.metadata.get("sent_id") if options.ids == "given" else None
                name = sent_id or f"{file.name}-{count}"
                place = documents.place(file, block.metadata, name)
                try:
                    here = file, block.first_line
                    if (first := seen.setdefault(hash(name), here)) != here:
                        raise _Defect(
                            f"has the id of the sentence at {first[0]}, line {first[1]}",
                            advice='correct it, name sentences by place with `ids="place"`,',
                        )
                    sentence = _sentence(
                        block, columns, name, *place, options.contractions == "surface"
                    )
                except _Defect as defect:
                    if options.on_bad_sentence == "error":
                        raise CorpusError(
                            f"{file}, line {defect.line or block.first_line}: sentence "
                            f"{shortened(name)!r} {defect}; {defect.advice} or pass "
                            '`on_bad_sentence="skip"`'
                        ) from defect
                    skipped["defective sentences"] += 1
                else:
                    skipped += Counter({NO_WORDS: block.number(EMPTY_CELLS)})
                    text.count(sentence.words)
                    yield sentence
            text.check()
        documents.check_comments()
        if scheme := _common_scheme(schemes):  # known when all is read
            source["scheme"] = scheme

    source: CorpusSource = {
        "format": "conllu",
        **origin,
        "documents_by": options.documents,
        "ids_by": options.ids,
        "contractions": options.contractions,
    }
    corpus = Corpus(source, read, undivided=frozenset(file.name for file in files))
    return with_spacing(corpus, options)


# Blocks of lines


class _Block(NamedTuple):
    """Lines of one sentence, the number of the first, from 1, and the comments ``# key = value``.

    A comment without a value has an empty one.
    """

    lines: tuple[str, ...]
    first_line: int
    metadata: dict[str, str]

    def number(self, key: str) -> int:
        """Return the number in a comment of headroles, 0 without one."""
        text = self.metadata.get(key, "")
        return int(text) if _NUMBER.fullmatch(text) else 0


def _blocks(file: CorpusFile) -> Iterator[_Block]:
    for is_text, block in groupby(
        enumerate(file.lines(), start=1), lambda numbered: numbered[1].strip() != ""
    ):
        if is_text:
            numbers, lines = zip(*block, strict=True)
            pairs = (line[1:].partition("=") for line in lines if line.startswith("#"))
            metadata = {key.strip(): value.strip() for key, _, value in pairs}
            yield _Block(lines, numbers[0], metadata)


def _common_scheme(declared: set[str]) -> str:
    """Return the scheme of all files; empty if one declares none. Raises CorpusError for two."""
    schemes = declared & SCHEMES
    if len(schemes) > 1:
        raise CorpusError(
            f"the label schemes {' and '.join(sorted(schemes))} stand in one corpus; score corpora "
            "of different schemes in separate runs"
        )
    return "" if declared != schemes else "".join(schemes)


# Documents


class _Documents:
    """Documents of a treebank, by a rule (`ConlluOptions.documents`), sentence by sentence.

    Documents are named after the stem of the file, like sentences, so that a moved corpus has the
    same documents. Sentences before the first name in a file are a document too.
    """

    def __init__(self, rule: str) -> None:
        self._kind, _, self._detail = rule.partition(":")
        self._positions = Positions()
        self._comments: set[str] = set()
        self._has_comment = False
        self._file: CorpusFile | None = None

    def place(
        self, file: CorpusFile, metadata: Mapping[str, str], sentence_id: str
    ) -> tuple[str, int]:
        """Return the document of the next sentence, and its position there.

        Raises CorpusError for an id without a document name, if ids name the documents.
        """
        if file is not self._file:
            self._file, self._n_newdoc = file, 0
            self._current: str | None = None
        if self._kind == SENT_ID:
            self._current = self._from_id(sentence_id)
        elif self._kind == COMMENT:
            key = self._detail.strip()
            self._current = metadata.get(key, self._current)
            self._has_comment |= key in metadata
            if len(self._comments) < _MOST_KEYS:
                self._comments.update(metadata)
        elif "newdoc" in metadata or "newdoc id" in metadata:
            self._n_newdoc += 1
            self._current = metadata.get("newdoc id") or str(self._n_newdoc)
        document = file.name if self._current is None else f"{file.name}#{self._current}"
        return document, self._positions.next(document)

    def _from_id(self, sentence_id: str) -> str:
        match = re.search(self._detail or BEFORE_NUMBER, sentence_id)
        if match and (name := match[1 if match.re.groups else 0]):
            return name
        pattern = f"the pattern {self._detail!r}"
        lacking = pattern if self._detail else "a number after -, _, ., : or /"
        raise CorpusError(
            f"{self._file}: the id of sentence {sentence_id!r} names no document: it lacks "
            f"{lacking}; pass a regular expression for the part that names the document, as in "
            "`documents='sent_id:^.{6}'`"
        )

    def check_comments(self) -> None:
        """Raise CorpusError if no sentence had the comment that names documents."""
        if self._kind == COMMENT and not self._has_comment:
            keys = sorted(self._comments - _OF_SENTENCES)
            has = f"use one of: {listed(keys, 10)}" if keys else "the corpus has no other"
            raise CorpusError(
                f"no sentence has a comment {self._detail.strip()!r} to tell `documents` by; {has}"
            )


# Sentences


class _Defect(Exception):
    """Defect of a sentence, its line in the file if known, and advice to the user."""

    def __init__(self, defect: str, line: int | None = None, advice: str = "correct it") -> None:
        super().__init__(defect)
        self.line = line
        self.advice = advice


def _columns(file: CorpusFile, first: _Block) -> tuple[str, ...]:
    """Return the columns of a file, as its CoNLL-U Plus comment lists them, if it has one."""
    names = tuple(first.metadata.get("global.columns", "").lower().split())
    if not names:
        return CONLLU_COLUMNS
    if lacking := [name for name in _NEEDED if names.count(name) != 1]:
        raise CorpusError(
            f"{file}: its global.columns must name {listed(lacking, 4).upper()} once; "
            "add the missing columns, without which there are no trees"
        )
    return names


class _Multiword(NamedTuple):
    """A multiword token: places of its first word and after its last, its form, its MISC."""

    first: int
    end: int
    form: str
    misc: str

    def is_spelled(self, words: Sequence[str]) -> bool:
        """Tell whether the words of the sentence spell the token, as do + n't."""
        return "".join(words[self.first : self.end]).casefold() == self.form.casefold()


def _sentence(
    block: _Block,
    columns: tuple[str, ...],
    name: str,
    document: str,
    position: int,
    by_surface: bool,
) -> Sentence:
    rows, tokens, n_multiword = _words(block, columns)
    governors = tuple(int(row["head"]) - 1 for row in rows)
    if defect := tree_defect(governors, block.number(N_TREES_KEY) or 1):
        raise _Defect(defect)
    spaces = _spaces(rows, tokens, block.metadata.get("text", ""))
    words, relations = (tuple(row[column] for row in rows) for column in ("form", "deprel"))
    annotations = {name: tuple(row.get(name) or MISSING for row in rows) for name in ANNOTATIONS}
    sentence = Sentence(
        name, document, position, words, governors, relations, annotations, n_multiword, spaces
    )
    return _with_contractions(sentence, tokens) if by_surface else sentence


def _words(
    block: _Block, columns: tuple[str, ...]
) -> tuple[list[dict[str, str]], list[_Multiword], int]:
    """Return the cells of words by column, the multiword tokens, and the number of their lines.

    Tokens do not overlap; lines that are not before the first of their words make none.
    """
    rows: list[dict[str, str]] = []
    tokens: list[_Multiword] = []
    n_multiword = 0
    for line, text in enumerate(block.lines, start=block.first_line):
        if text.startswith("#"):
            continue
        if text.count("\t") + 1 != len(columns):
            raise _Defect(_wrong_columns(text, len(columns)), line)
        if "  " in text:  # conllu splits columns at two spaces
            raise _Defect("has two spaces in a row inside a column", line)
        row = parse_line(text, columns, _AS_TEXT)
        if no_word := _NO_WORD.fullmatch(row["id"]):  # a multiword range or an empty node
            first, mark, last = no_word.groups()
            if mark == "-" and int(last) <= int(first):
                raise _Defect(f"has the range {row['id']} of words", line)
            n_multiword += mark == "-"
            is_new = not tokens or tokens[-1].end <= len(rows)
            if mark == "-" and is_new and int(first) == len(rows) + 1:
                misc = row.get("misc") or MISSING
                tokens.append(_Multiword(len(rows), int(last), row["form"], misc))
        else:
            rows.append(row)
            if defect := _word_defect(row, len(rows)):
                raise _Defect(defect, line)
    if not rows:
        raise _Defect("has no words")
    return rows, [token for token in tokens if token.end <= len(rows)], n_multiword


def _spaces(
    rows: Sequence[Mapping[str, str]], tokens: Iterable[_Multiword], text: str
) -> tuple[bool, ...]:
    """Tell of each word whether a space follows it, by MISC or else by the text."""
    words = [row["form"] for row in rows]
    surface = {  # forms and MISC of what the text consists of, by the place of its last word
        place: (row["form"], row.get("misc") or MISSING) for place, row in enumerate(rows)
    }
    spaces = [True] * len(rows)
    for token in tokens:
        for place in range(token.first, token.end - 1):
            del surface[place]
            spaces[place] = not token.is_spelled(words)
        surface[token.end - 1] = token.form, token.misc
    forms, miscs = zip(*surface.values(), strict=True)
    found: list[bool] | None = [_NO_SPACE not in misc.split("|") for misc in miscs]
    if all(found or ()):
        found = spaces_in(text, forms)
    for place, space in zip(surface, found or (), strict=False):
        spaces[place] = space
    return tuple(spaces)


def _with_contractions(sentence: Sentence, tokens: Iterable[_Multiword]) -> Sentence:
    """Return the sentence with each multiword token that its words do not spell as one word."""
    contracted = [token for token in tokens if not token.is_spelled(sentence.words)]
    forms = dict(enumerate(sentence.words))
    kept = {place: place for place in forms}  # the word that stands for each
    for token in contracted:
        places = range(token.first, token.end)
        top = min(places, key=partial(_depth, sentence.governors))
        kept |= dict.fromkeys(places, top)
        forms[top] = token.form
    order = sorted(set(kept.values()))
    new = {place: order.index(top) for place, top in kept.items()} | {ROOT: ROOT}
    last = {top: place for place, top in kept.items()}
    return replace(
        sentence,
        words=tuple(forms[top] for top in order),
        governors=tuple(new[sentence.governors[top]] for top in order),
        relations=tuple(sentence.relations[top] for top in order),
        annotations={
            name: tuple(texts[top] for top in order) for name, texts in sentence.annotations.items()
        },
        spaces=tuple(sentence.spaces[last[top]] for top in order),
    )


def _depth(governors: Sequence[int], word: int) -> int:
    """Return the number of arcs between a word and the root."""
    depth = 0
    while (word := governors[word]) != ROOT:
        depth += 1
    return depth


def _word_defect(row: Mapping[str, str], number: int) -> str | None:
    word, head, relation = row["id"], row["head"], row["deprel"]
    if word != str(number):
        return f"numbers its word {number} as {shortened(word)!r}"
    if not _NUMBER.fullmatch(head):
        return f"has the head {shortened(head)!r} for word {word}"
    if not is_label(relation):
        return f"has the relation {shortened(relation)!r} for word {word}"
    return None


def _wrong_columns(line: str, n_needed: int) -> str:
    """Describe a line with another number of columns, and say why if it has no tabs."""
    n_columns = line.count("\t") + 1
    described = f"has {n_columns} tab-separated columns instead of {n_needed}"
    if n_columns > 1:
        return described
    if len(line.split()) == n_needed:
        return f"{described}, and spaces between them, which must be tabs"
    return f"{described}; a file of plain text must be called .txt"


# Parses saved


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
            document, scheme, n_saved = "", corpus.source.get("scheme", ""), skipped[NO_WORDS]
            end = Sentence("", "", 0, (), (), ())
            # in pairs: when the next one is read, the skipped cells between them are known
            for sentence, _ in pairwise(chain(corpus.read(skipped), [end])):
                is_new, n_empty = sentence.document != document, skipped[NO_WORDS] - n_saved
                document = sentence.document
                comments = {SCHEME: scheme, "newdoc id": document * is_new}
                comments[EMPTY_CELLS] = str(n_empty or "")
                stream.write(to_conllu(sentence, comments))
                scheme, n_saved = "", skipped[NO_WORDS]
                yield sentence

    return replace(corpus, read=read)


def to_conllu(sentence: Sentence, comments: Mapping[str, str]) -> str:
    """Format a sentence as CoNLL-U, with these comments before its own, and a blank line."""
    n_trees = sentence.governors.count(ROOT)
    of_sentence = {"sent_id": sentence.id, N_TREES_KEY: str(n_trees) if n_trees > 1 else None}
    lines = [f"# {key} = {value}" for key, value in {**comments, **of_sentence}.items() if value]
    lemma, upos, xpos, feats, deps, misc = map(sentence.column, ANNOTATIONS)
    if sentence.spaces:
        misc = tuple(map(_with_space, misc, sentence.spaces))
    heads = [str(governor + 1) for governor in sentence.governors]
    numbers = map(str, range(1, len(sentence.words) + 1))
    columns = [numbers, sentence.words, lemma, upos, xpos, feats, heads, sentence.relations]
    lines += map("\t".join, zip(*columns, deps, misc, strict=True))
    return "\n".join(lines) + "\n\n"


def _with_space(misc: str, space: bool) -> str:
    """Return a cell of MISC that tells whether a space follows."""
    entries = [entry for entry in misc.split("|") if entry not in (MISSING, _NO_SPACE)]
    return "|".join(entries if space else [*entries, _NO_SPACE]) or MISSING
