"""Damaged treebanks read, encoded and prepared for scoring: an answer or an error.

python -m benchmarks.fuzz_corpora [--corpora 10000] [--seed 0]

A corpus is a good treebank with a few of its bytes, columns, lines or blocks changed. The result
may be sieves or an error that names a remedy; a traceback, or more than a minute, is a finding.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerFast

from headroles.corpus import Skipped, make_examples, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.errors import HeadRolesError
from headroles.roles import (
    SCORES,
    PaddedBatch,
    RoleOptions,
    Scope,
    choose_relations,
    choose_roles,
    make_readout,
)

SECONDS = 60
"""What takes longer is a hang."""
MAX_TOKENS = 64
_PACK: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: data,
    gzip.compress,
    bz2.compress,
    lzma.compress,
)


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
    *(
        "",
        " ",
        "#",
        "# newdoc",
        "# newdoc id = a",
        "# newdoc id =",
        "# sent_id = a-1",
        "# sent_id =",
    ),
    *("# global.columns = ID FORM HEAD DEPREL", "# global.columns = ID", "# genre = x", "\t" * 9),
    *("#" + "\t_" * 9, " #" + "\t_" * 9, row("1", "x", "0", "root"), row("0.1", "y")),
)


@dataclass(frozen=True)
class Change:
    """One change of a file: its kind, its place (a share of the length), and the new text."""

    kind: str
    place: float
    what: Any

    def apply(self, data: bytes) -> bytes:
        """Return the changed file."""
        if self.kind == "bytes":
            start = int(self.place * len(data))
            return data[:start] + self.what[1] + data[start + self.what[0] :]
        lines = data.split(b"\n")
        number = int(self.place * len(lines))
        if self.kind == "cell":
            cells = lines[number].split(b"\t")
            cells[self.what[0] % len(cells)] = self.what[1].encode()
            lines[number] = b"\t".join(cells)
        elif self.kind == "line":
            lines.insert(number, self.what.encode())
        elif self.kind == "again":  # as often as that, to make large sentences and files too
            lines[number:number] = lines[number : number + 1 + self.what % 9] * (1 + self.what)
        else:
            del lines[number : number + 1 + self.what % 9]
        return b"\n".join(lines)


_PLACES = st.floats(0, 1, exclude_max=True)
CHANGES = st.one_of(
    st.builds(
        Change, st.just("bytes"), _PLACES, st.tuples(st.integers(0, 9), st.binary(max_size=9))
    ),
    st.builds(
        Change,
        st.just("cell"),
        _PLACES,
        st.tuples(st.integers(0, 9), st.one_of(st.sampled_from(CELLS), st.text(max_size=5))),
    ),
    st.builds(Change, st.just("line"), _PLACES, st.sampled_from(LINES)),
    st.builds(Change, st.sampled_from(("again", "gone")), _PLACES, st.integers(0, 200)),
)


@dataclass(frozen=True)
class Case:
    """The bytes of a file, and how it is read."""

    content: bytes
    reading: dict[str, str]
    scoring: dict[str, Any]
    pairing: str


@st.composite
def corpora(draw: st.DrawFn) -> Case:
    """Draw changed treebanks; some are compressed, some changed again after that."""
    content = GOOD
    for change in draw(st.lists(CHANGES, max_size=4)):
        content = change.apply(content)
    pack = draw(st.sampled_from(_PACK))
    content = pack(content)
    for change in draw(st.lists(CHANGES, max_size=1)) if pack is not _PACK[0] else ():
        content = change.apply(content)
    reading = {
        "on_bad_sentence": draw(st.sampled_from(("error", "skip", "skip"))),
        "ids": draw(st.sampled_from(("given", "place"))),
        "documents": draw(
            st.sampled_from(("newdoc", "newdoc", "sent_id", "sent_id:^.", "comment:genre"))
        ),
    }
    scoring = {
        "relations": draw(st.sampled_from((None, "all", "none", "nsubj"))),
        "keep_subtypes": draw(st.booleans()),
    }
    return Case(content, reading, scoring, draw(st.sampled_from(("adjacent", "none"))))


@cache
def make_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer that spells words out."""
    specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    letters = "abcdefghijklmnopqrstuvwxyz.,'"
    entries = (*specials, *letters, *(f"##{letter}" for letter in letters))
    backend = Tokenizer(
        WordPiece({name: place for place, name in enumerate(entries)}, unk_token="[UNK]")
    )
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def go_through(case: Case, folder: Path) -> str:
    """Prepare a corpus for scoring; return ``prepared``, or the name of the error.

    Raises all errors that are not headroles' own, and AssertionError for a message that a terminal
    would obey, or that is no line.
    """
    file = folder / "t.conllu"
    file.write_bytes(case.content)
    try:
        _prepare(case, file)
    except HeadRolesError as error:
        message = str(error)
        assert message.isascii() or message.encode()
        assert not set(message) & {chr(code) for code in (*range(32), *range(127, 160))}
        assert len(message) <= 1500
        return type(error).__name__
    return "prepared"


def _prepare(case: Case, file: Path) -> None:
    options = RoleOptions(**case.scoring)
    with prepared(read_conllu(file, **case.reading)) as corpus:
        relations = choose_relations(options, corpus.record.scheme, corpus.relations)
        encoder = ExampleEncoder(make_tokenizer(), MAX_TOKENS)
        skipped: Skipped = Counter()
        encoded = encoder.encode(make_examples(corpus, case.pairing), skipped)
    for start in range(0, len(encoded), 64):
        for score in SCORES.values():
            scope = Scope(PaddedBatch(encoded[start : start + 64]), None, score)
            make_readout(choose_roles(options, relations, score), scope)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(n_corpora: int, first: int) -> tuple[Counter[str], float]:
    """Count outcomes of so many corpora, with the seconds of the slowest; raise findings."""
    outcomes: Counter[str] = Counter()
    slowest = 0.0

    @seed(first)
    @settings(
        max_examples=n_corpora,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(corpora())
    def check(case: Case) -> None:
        nonlocal slowest
        start = time.perf_counter()
        with at_most(SECONDS):
            outcomes[go_through(case, folder)] += 1
        slowest = max(slowest, time.perf_counter() - start)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check()
    return outcomes, slowest


def main() -> None:
    """Print what became of the corpora."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start = time.perf_counter()
    outcomes, slowest = run(asked.corpora, asked.seed)
    for outcome, count in outcomes.most_common():
        print(f"{count:7} {outcome}")
    print(f"{sum(outcomes.values()):7} corpora in {time.perf_counter() - start:.0f} s", end="; ")
    print(f"the slowest took {slowest:.2f} s; no traceback")


if __name__ == "__main__":
    main()
