"""Odd options; commands over damaged task files, functions of users that return anything, names."""

from __future__ import annotations

import itertools
import os
import random
import sys
import types
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.fuzz import (
    ODD,
    Attempt,
    Surface,
    invoke,
    save_model,
    spoil_bytes,
    spoil_cells,
)
from benchmarks.fuzz.corpora import row
from headroles import attention_of, classify_heads, encode, make_corpus
from headroles.cli.results import ExportOptions
from headroles.corpus import CorpusOptions
from headroles.errors import HeadRolesError
from headroles.options import Options, fields_of
from headroles.scoring.options import ScoreOptions
from headroles.studies.classification.role_table import AssignOptions
from headroles.studies.comparison.compare import CompareOptions
from headroles.studies.power import PowerOptions
from headroles.wording import printable_lines

GROUPS: tuple[type[Options], ...] = (
    ScoreOptions,
    AssignOptions,
    CompareOptions,
    PowerOptions,
    CorpusOptions,
    ExportOptions,
)

NASTY = (
    *("\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\x85", "\u202e", "\u2066", "\u2028", "\x7f", "\x00"),
    *("a" * 10_000, "\U0001f600", "\u05e9\u05dc", "<script>", "&lt;", "$x$", "%", "{}", "{0}"),
    *("\\", "_", "|", "`", "=1+1", "[red]", ":cop:", "*", "-", "--out", ",", ";", '"', "'"),
    *("\ud800", "\udcff", "\n", "\r\n", "\t", "\x0b", "\ufeff", "\u200b", "#", "e\u0301" * 9, ""),
)
TASK = "\n".join(
    ["sentence\tlabel", *(f"a dog {'runs' * (k % 3)} off\t{'xy'[k % 2]}" for k in range(9)), ""]
).encode()


def try_options(chance: random.Random) -> str:
    """Make a group of options with some odd values."""
    group = chance.choice(GROUPS)
    chosen = chance.sample(fields_of(group), k=chance.choice((1, 2)))
    group(**{one.name: chance.choice([*ODD, *one.choices]) for one in chosen})
    return "accepted"


def run(*words: object) -> str:
    """Run a command; raise AssertionError for an outcome that is never allowed."""
    done = invoke(*words)
    shown = (words, done.exit_code, done.output[-500:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(shown) from done.exception
    assert done.exit_code in (0, 1, 2), shown
    for stream in (done.stdout, done.stderr):
        assert printable_lines(stream) == stream, shown
    return f"{words[0]} {done.exit_code}"


def make_nasty(chance: random.Random) -> str:
    """Join some nasty pieces."""
    return "".join(chance.choice((*NASTY, "x", "dog")) for _ in range(chance.choice((1, 1, 2, 4))))


def try_task(model: Path, chance: random.Random) -> str:
    """Read a spoilt task file."""
    file = model.with_name("task.tsv")
    data = TASK
    for _ in range(chance.choice((1, 1, 2, 3))):
        cells = [make_nasty(chance), str(chance.choice(ODD[:12])), "x", "1", ""]
        spoilt = spoil_bytes(data, chance), spoil_cells(data, chance, cells)
        data = spoilt[chance.random() < 0.6]
    file.write_bytes(data)
    options = chance.choice(
        [
            *([], [], ["--no-header"], ["--objective", "regression"], ["--max-tokens", "4"]),
            *(["--text-columns", make_nasty(chance)], ["--label-column", chance.choice("0123x")]),
            *(["--text-columns", "0"], ["--text-columns", "0,1"], ["--examples", "2"]),
        ]
    )
    out = ["--out", model.with_name("out"), "--overwrite"]
    return run("importance", model, file, *out, *options)


class Odd:
    """An object whose methods all fail."""

    def _fail(self, *_: object) -> Any:
        raise ValueError("\x1b[2J odd\n\u202e")

    __iter__ = __index__ = __int__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = _fail
    __eq__ = __lt__ = __next__ = _fail  # type: ignore[assignment]


class OddError(Exception):
    """An error without a message."""

    def __str__(self) -> str:
        raise RuntimeError


def _raise(error: BaseException) -> Any:
    raise error


MADE: tuple[Callable[[random.Random], Any], ...] = (
    lambda chance: chance.choice(ODD),
    lambda chance: chance.randrange(-2, 6),
    lambda chance: (chance.randrange(-1, 5), chance.randrange(-1, 5)),
    lambda chance: np.int64(chance.randrange(4)),
    lambda chance: np.arange(chance.randrange(4)),
    lambda chance: np.zeros((2, 2), dtype=int),
    lambda chance: torch.arange(chance.randrange(3)),
    lambda chance: Odd(),
    lambda chance: make_nasty(chance),
    lambda chance: itertools.count(),
    lambda chance: itertools.cycle([(0, 1)]),
    lambda chance: (k // 0 for k in range(2)),
    lambda chance: {chance.randrange(3): 1},
    lambda chance: {(0, 1), (1, 0)},
    lambda chance: {0, 1},
    lambda chance: [Odd(), 1],
    lambda chance: iter(Odd, 1),
    lambda chance: _raise(OddError()),
    lambda chance: _raise(
        chance.choice(
            (
                *(SystemExit(), SystemExit(0), SystemExit("\x1b[2J"), GeneratorExit(), OSError()),
                *(StopIteration(), RecursionError(), MemoryError(), AssertionError("\x9b")),
                *(BrokenPipeError(), UnicodeError("\ud800"), HeadRolesError("\x1b[2J\n\u202e")),
            )
        )
    ),
)


def _make_odd(chance: random.Random) -> Any:
    """Make one odd object, or several in a list, a tuple or a generator."""
    draw = chance.random()
    if draw < 0.5:
        return chance.choice(MADE)(chance)
    several = [chance.choice(MADE[:7])(chance) for _ in range(chance.choice((1, 1, 2, 5)))]
    return several if draw < 0.7 else tuple(several) if draw < 0.85 else iter(several)


def try_user_role(place: Path, chance: random.Random) -> str:
    """Score with a function of ``--roles`` that returns anything."""
    module = types.ModuleType("fuzz_roles")
    drawn = chance.random()
    usual: Any = {0} if drawn < 0.2 else [(0, 1)] if drawn < 0.4 else None

    def find(sentence: Any) -> Any:
        return _make_odd(chance) if usual is None or chance.random() < 0.02 else usual

    def find_across(first: Any, second: Any) -> Any:
        return find(first)

    usable = chance.choice((find, find, find_across))
    module.__dict__["find"] = usable if drawn < 0.9 else chance.choice((Odd(), None, Odd, 3, int))
    sys.modules["fuzz_roles"] = module
    odd = ("fuzz_roles:find:find", "fuzz_roles:", ":find", "sys:exit", "json:loads", "os:x.y")
    name = "fuzz_roles:find" if chance.random() < 0.9 else chance.choice(odd)
    roles = chance.choice((name, f"local,{name}", f"{name},{name}"))
    out = place / "out"
    done = run("score", place / "model", _write(place), "--roles", roles, "--out", out, *_ANEW)
    if done.endswith("0"):
        sees = chance.choice((["--roles", name], []))
        run("assign", out)
        run("examples", out, "--head", "0-0", "--role", name, *sees)
        run("best", out, "--top", "1", *sees)
    return done


_ANEW = ("--overwrite", "--no-resume")


def _write(place: Path, words: Sequence[str] = ("a", "dog", "runs"), names: Any = None) -> Path:
    """Write a treebank of six sentences with these words, ids and documents."""
    lines = []
    for k in range(6):
        named = names or ("s", "d", "nsubj")
        lines += [f"# newdoc id = {named[1]}{k // 2}"] if k % 2 == 0 else []
        lines += [f"# sent_id = {named[0]}{k}"]
        for number, word in enumerate(words, start=1):
            is_root = number == 1 + k % len(words)
            arc = ("0", "root") if is_root else (str(1 + k % len(words)), named[2])
            lines += [row(str(number), word, *arc)]
        lines += [""]
    file = place / "t.conllu"
    file.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))
    return file


def try_names(place: Path, chance: random.Random) -> str:
    """Show nasty names in the report, exported tables, sentences and summaries."""
    out = place / "out"
    words = ["a", make_nasty(chance), "dog"]
    names = [make_nasty(chance), make_nasty(chance), "nsubj"]
    if chance.random() < 0.5:
        names[2] = chance.choice(("", "nsubj:")) + make_nasty(chance)
    try:
        if chance.random() < 0.5:
            _classify_in_memory(place / "model", words, names).save(out, overwrite=True)
        else:
            done = _classify_a_file(place, words, names, out, chance)
            if not done.endswith("0"):
                return done
    except HeadRolesError as error:
        if printable_lines(error) != str(error):
            raise AssertionError(repr(error)) from error
        return f"refused: {type(error).__name__}"
    return run(*_reading(out, place, chance, names))


def _classify_a_file(
    place: Path, words: list[str], names: list[str], out: Path, chance: random.Random
) -> str:
    clean = [[one.translate(_LINES) or "x" for one in kind] for kind in (words, names)]
    if chance.random() < 0.9:  # else not UTF-8
        clean = [[one.translate(_HALVES) for one in kind] for kind in clean]
    corpus = _write(place, *clean).rename(place / _file_name(chance))
    flags = ("--threshold", "0.5", "--on-bad-sentence", "skip", "--relations", "all")
    roles = ("--roles", ",".join(ROLES), *chance.choice(((), ("--keep-subtypes",))))
    return run("classify", place / "model", corpus, "--out", out, *flags, *roles, *_ANEW)


ROLES = ("local", "syntactic")
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "x")
_LINES = {ord(one): " " for one in "\n\r\t"}


def _file_name(chance: random.Random) -> str:
    """Make a file name that the system accepts, of bytes that need not be UTF-8."""
    name = make_nasty(chance).replace("/", "").replace("\x00", "").replace("\ud800", "\udc80")
    return os.fsdecode(os.fsencode(name)[:100]) + ".conllu"


def _classify_in_memory(model: Path, words: list[str], names: list[str]) -> Any:
    arcs = ([-1, *(0 for _ in words[1:])], ["root", *(names[2] for _ in words[1:])])
    corpus = make_corpus([(words, *arcs)] * 6, documents=[f"{names[0]}{k // 2}" for k in range(6)])
    return classify_heads(model, corpus, roles=ROLES, relations="all", threshold=0.5)


def _reading(out: Path, place: Path, chance: random.Random, names: list[str]) -> list[Any]:
    """Choose a command that reads results."""
    head = ["--head", "0-0", "--role", chance.choice([*ROLES, *ROLES, *names])]
    table = place / ("table." + chance.choice("csv parquet json md tex html".split()))
    return chance.choice(
        [
            ["report", out, *chance.choice(([], ["--out", place / "page.html"]))],
            ["export", out, "--out", table, *chance.choice(([], ["--view", "wide"]))],
            ["export", out, "--format", chance.choice(("markdown", "latex", "html"))],
            ["export", out, "--role", names[2], "--out", table],
            ["export", out, "--view", "heads", *chance.choice(([], ["--format", "csv"]))],
            ["best", out, *chance.choice(([], ["--top", chance.choice("012x")], ["--json"]))],
            [
                "examples",
                out,
                *head,
                "--tokens",
                chance.choice(("a dog", names[0], make_nasty(chance))),
            ],
            ["examples", out, *head, "--text", "a dog", "--parser", make_nasty(chance)],
            ["examples", out, *head, *chance.choice(([], ["--json"], ["--example", names[0]]))],
            ["examples", out, *head, "--corpus", place / f"{names[1]}.conllu".replace("\x00", "")],
            ["assign", out, *chance.choice(([], ["--full"], ["--json"]))],
            ["power", out, *chance.choice(([], ["--full"], ["--json"]))],
        ]
    )


def try_attention(place: Path, chance: random.Random) -> str:
    """Read the attention in odd words of odd heads, or cut such words into pieces."""
    words: Any = [
        chance.choice(("dog", make_nasty(chance))) for _ in range(chance.choice((0, 1, 3)))
    ]
    n_words = len(words)
    if (draw := chance.random()) < 0.2:
        words = [*words, chance.choice(ODD)]
    elif draw < 0.4:
        words = chance.choice((*ODD, tuple(words), iter(words), " ".join(words)))
    n_words = len(words) if isinstance(words, Sized) else n_words
    if chance.random() < 0.3:
        pieces, alignment = encode(place / "model", words)
        assert pieces["input_ids"].shape == (1, len(alignment))
        assert (own := [k for k in alignment if k is not None]) == sorted(own), words
        return "cut"
    heads: Any = [(chance.randrange(2), chance.randrange(2)) for _ in range(chance.choice((1, 3)))]
    if (draw := chance.random()) < 0.3:
        heads = [*heads, (chance.choice(ODD), chance.choice(ODD))]
    elif draw < 0.4:
        heads = chance.choice((*ODD, [chance.choice(ODD)]))
    odd = {"measure": chance.choice(ODD), "parser": chance.choice(ODD)}
    names = chance.sample(sorted(odd), k=chance.choice((0, 0, 0, 1)))
    read = attention_of(place / "model", words, heads, **{name: odd[name] for name in names})
    assert read.shape == (n_words, n_words), words
    assert (read >= 0).all(), words
    assert (read.sum(axis=1) <= 1.001).all(), words
    return "read"


def _with_model(what: Callable[[Path, random.Random], str]) -> Callable[[Path], Attempt]:
    def prepare(place: Path) -> Attempt:
        save_model(place / "model", "xy")
        return lambda chance: what(place, chance)

    return prepare


SURFACES = {
    "options": Surface(1000, lambda place: try_options),
    "tasks": Surface(1000, _with_model(lambda place, chance: try_task(place / "model", chance))),
    "roles": Surface(1000, _with_model(try_user_role)),
    "names": Surface(1000, _with_model(try_names)),
    "attention": Surface(1000, _with_model(try_attention)),
}
