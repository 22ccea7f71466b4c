"""Tokens and arcs without a tree, from JSON lines: proteins and contacts, code, coreference, ..."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from headroles.corpus.files import PathLike, find_files
from headroles.corpus.sentence import MISSING, OTHER, ROOT, Corpus, Positions, Sentence, Skipped
from headroles.corpus.spacing import SpacingOptions, with_spacing
from headroles.corpus.tables import read_json_lines
from headroles.errors import CorpusError, UsageError
from headroles.options import takes
from headroles.wording import has_halves, shortened

KEY = "arcs"
"""Key of MISC under which a sentence lists its arcs, as 4:label,7:label."""


@dataclass(frozen=True, kw_only=True)
class ArcsOptions(SpacingOptions):
    """Options of reading tokens and arcs."""

    title: ClassVar[str] = "Corpus"

    least_distance: Annotated[int, Meta(ge=1)] = 1
    """Least distance of the arcs of .jsonl files, in tokens; shorter ones are left out."""


@takes(ArcsOptions)
def read_arcs(paths: PathLike | Iterable[PathLike], options: ArcsOptions) -> Corpus:
    """Return the corpus of sequences of tokens with arcs between them, from JSON lines.

    A line is an object with ``tokens``, a list of texts, and ``arcs``, a list of ``[from, to,
    label]``: indices of tokens from 0, with any number of arcs for each token. ``id`` (else FILE-N)
    and ``document`` (else one for each line) name the sequence. An arc counts as one from a
    dependent to its governor: roles have both directions, and contrasts with other tokens at the
    same distance that no such arc joins. ``spaces`` tells of each token whether a space follows it
    in the text, or of all of them: false for residues. Without it a space precedes every token.

    Files may be compressed, and ``-`` is standard input. Nothing is read before the corpus is
    iterated. A defective line then raises CorpusError with its place.

    Raises:
        CorpusError: a path does not exist, or a folder has no ``.jsonl`` file.
    """
    files, origin = find_files(paths, ".jsonl")

    def read(skipped: Skipped) -> Iterator[Sentence]:
        positions, seen = Positions(), set[str]()
        for file in files:
            for count, (line, record) in enumerate(read_json_lines(file), start=1):
                name = f"{file.name}-{count}"
                named_record = {"id": name, "document": name, **record}
                sentence = sequence_of(named_record, f"{file}, line {line}", options.least_distance)
                if sentence.id in seen:
                    raise CorpusError(f"{file}, line {line}: the id {sentence.id!r} repeats")
                seen.add(sentence.id)
                yield replace(sentence, position=positions.next(sentence.document))

    reading = {"scheme": OTHER, "least_distance": options.least_distance}
    return with_spacing(Corpus({"format": KEY, **origin, **reading}, read), options)


def words_alone(words: Iterable[str], spaces: Iterable[bool] | None = None) -> Sentence:
    """Return the sentence of these words, without arcs, with ``spaces`` after them if known.

    Raises UsageError for no words, or a text in their place, CorpusError for a word that is none,
    and for ``spaces`` that are not one truth value for each word.
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise UsageError(f"the sentence is {shortened(repr(words))}; give its words, in a list")
    if not (tokens := list(words)):
        raise UsageError("the sentence has no words; give another")
    names = dict.fromkeys(("id", "document"), "tokens")
    record: dict[str, Any] = {**names, "tokens": tokens, "arcs": []}
    if spaces is not None and (flags := [*spaces]):
        record["spaces"] = flags
    return sequence_of(record, "the sentence", 1)


def sequence_of(record: Mapping[str, Any], place: str, least_distance: int) -> Sentence:
    """Return the tokens and arcs of an object; arcs shorter than ``least_distance`` are ignored.

    Raises CorpusError that names ``place`` for an object that is no such sequence.
    """
    tokens, arcs = record.get("tokens"), record.get("arcs")
    names = [record.get(key) for key in ("id", "document")]
    if not isinstance(tokens, list | tuple) or not tokens or not isinstance(arcs, list | tuple):
        raise CorpusError(
            f"{place}: give tokens, a list of texts, and arcs, a list of [from, to, label]; to "
            "read text, name a `parser` and `text_columns`"
        )
    for text in (*names, *tokens):
        if not isinstance(text, str) or not text.strip() or has_halves(text):
            raise CorpusError(f"{place}: {shortened(repr(text))} is no text; correct it")
    listed: list[list[str]] = [[] for _ in tokens]
    for number, arc in enumerate(arcs):
        match arc:
            case [int(first), int(second), str(label)] if _is_label(label):
                if not 0 <= min(first, second) <= max(first, second) < len(tokens):
                    cause = f"joins tokens of 0 to {len(tokens) - 1} only"
                elif first == second:
                    cause = "joins two tokens"
                else:
                    if abs(first - second) >= least_distance:
                        listed[first].append(f"{second + 1}:{label}")
                    continue
            case _:
                cause = "is [from, to, label], with a label without commas, bars and blanks"
        raise CorpusError(
            f"{place}: arc {number} is {shortened(repr(arc))}, but an arc {cause}; correct it"
        )
    cells = tuple(f"{KEY}={','.join(dict.fromkeys(ends))}" if ends else MISSING for ends in listed)
    n = len(tokens)
    tree = tuple(tokens), (ROOT,) * n, (MISSING,) * n
    spaces = checked_spaces(record.get("spaces"), n, place)
    return Sentence(str(names[0]), str(names[1]), 0, *tree, {"misc": cells}, spaces=spaces)


def checked_spaces(value: Any, n: int, place: str) -> tuple[bool, ...]:
    """Return whether a space follows each of ``n`` tokens; empty if that is not known.

    Raises CorpusError that names ``place`` for other values than truth values.
    """
    if value is None:
        return ()
    spaces = [value] * n if isinstance(value, bool) else value
    if (
        not isinstance(spaces, list | tuple)
        or len(spaces) != n
        or not all(isinstance(space, bool) for space in spaces)
    ):
        raise CorpusError(
            f"{place}: spaces is {shortened(repr(value))}; give true or false for each of the {n} "
            "tokens, or one for all"
        )
    return tuple(spaces)


def _is_label(label: str) -> bool:
    return label.isprintable() and label.strip(":") != "" and not set(label) & set(",| ")
