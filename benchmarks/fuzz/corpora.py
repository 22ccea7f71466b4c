"""Damaged treebanks, read, encoded and prepared for scoring."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fuzz import Attempt, Surface, make_tokenizer, spoil_bytes, spoil_cells
from headroles.corpus import Skipped, make_examples, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.errors import HeadRolesError
from headroles.reach import EVERYTHING
from headroles.roles import (
    SCORES,
    PaddedBatch,
    RoleOptions,
    Scope,
    choose_relations,
    choose_roles,
    group_sieves,
    make_readout,
)

MAX_TOKENS, LONGEST_MESSAGE = 64, 1500
CONTROLS = {chr(code) for code in (*range(32), *range(127, 160))}
PACK: tuple[Callable[[bytes], bytes], ...] = (bytes, gzip.compress, bz2.compress, lzma.compress)


def row(number: str, form: str, head: str = "_", relation: str = "_") -> str:
    """Return a line of CoNLL-U."""
    return "\t".join([number, form, "_", "X", "_", "_", head, relation, "_", "_"])


GOOD = "\n".join(
    [
        "# newdoc id = a",
        "# sent_id = a-1",
        row("1-2", "Cats'"),
        row("1", "Cats", "3", "nmod:poss"),
        row("2", "'", "1", "case"),
        row("3", "tails", "4", "nsubj"),
        row("4", "move", "0", "root"),
        row("4.1", "gone"),
        row("5", ".", "4", "punct"),
        "",
        "# sent_id = a-2",
        row("1", "Old", "2", "amod"),
        row("2", "dogs", "3", "nsubj"),
        row("3", "eat", "0", "root"),
        row("4", "bones", "3", "obj"),
        "",
        "# newdoc",
        row("1", "Sleep", "0", "root"),
        "",
        "",
    ]
).encode()
CELLS = (
    *("", "_", "#", " ", "0", "1", "-1", "1-2", "2-1", "1.1", "01", "1e3", "\u0661", "9" * 5000),
    *("nsubj", "root", "dobj", "a b", "a  b", "x" * 3000, "\x00", "\x1b[31m", "\u202e", "\u2028"),
    *("\ufeff", "\u200b", "\U0001f600", "=1+1", "[SEP]", "##s", "\x85", "\x0b", ":", "nsubj:"),
)
LINES = (
    *("", " ", "#", "# newdoc", "# newdoc id = a", "# newdoc id =", "# sent_id = a-1"),
    *("# sent_id =", "# global.columns = ID FORM HEAD DEPREL", "# global.columns = ID"),
    *("# genre = x", "\t" * 9, "#" + "\t_" * 9, " #" + "\t_" * 9),
    *(row("1", "x", "0", "root"), row("0.1", "y")),
)


def try_corpus(file: Path, chance: random.Random) -> str:
    """Prepare a treebank with up to four changes; a compressed one may be changed again."""
    content = GOOD
    for _ in range(chance.randrange(5)):
        if chance.random() < 0.3:
            content = spoil_bytes(content, chance)
        else:
            content = spoil_cells(content, chance, CELLS, LINES)
    pack = chance.choice(PACK)
    content = pack(content)
    if pack is not bytes and chance.random() < 0.3:
        content = spoil_bytes(content, chance)
    reading = {
        "on_bad_sentence": chance.choice(("error", "skip", "skip")),
        "ids": chance.choice(("given", "place")),
        "documents": chance.choice(("newdoc", "newdoc", "sent_id", "sent_id:^.", "comment:genre")),
    }
    scoring = {
        "relations": chance.choice((None, "all", "none", "nsubj")),
        "keep_subtypes": chance.random() < 0.5,
    }
    return prepare(file, content, reading, scoring, chance.choice(("adjacent", "none")))


def prepare(
    file: Path,
    content: bytes,
    reading: dict[str, str] | None = None,
    scoring: dict[str, Any] | None = None,
    pairing: str = "adjacent",
) -> str:
    """Prepare a treebank for scoring by every score.

    Raises AssertionError for a message that a terminal would obey, or that is no line.
    """
    file.write_bytes(content)
    options = RoleOptions(**(scoring or {}))
    try:
        with prepared(read_conllu(file, **(reading or {}))) as corpus:
            relations = choose_relations(
                options, corpus.record.scheme, corpus.relations, corpus.parts
            )
            encoder = ExampleEncoder(make_tokenizer(), MAX_TOKENS)
            skipped: Skipped = Counter()
            encoded = encoder.encode(make_examples(corpus, pairing), skipped)
        for start in range(0, len(encoded), 64):
            for score in SCORES.values():
                scope = Scope(PaddedBatch(encoded[start : start + 64]), EVERYTHING, score)
                make_readout(group_sieves(choose_roles(options, relations, score)), scope)
    except HeadRolesError as error:
        message = str(error)
        if set(message) & CONTROLS or not 0 < len(message.encode()) <= LONGEST_MESSAGE:
            raise AssertionError(repr(message)) from error
        raise
    return "prepared"


def _corpora(place: Path) -> Attempt:
    return lambda chance: try_corpus(place / "t.conllu", chance)


SURFACES = {"corpora": Surface(10_000, _corpora)}
