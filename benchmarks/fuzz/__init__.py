"""Damaged input of every kind: an answer or an error of one line, never a traceback.

Ways to damage input, and the definition of a finding. `python -m benchmarks.fuzz` runs them.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import typer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)
from typer.testing import CliRunner

from headroles.cli import app
from headroles.errors import HeadRolesError

SECONDS, PATIENCE = 60, 10
"""What takes more seconds of the processor is a hang, and what waits so many times as long."""
FINDING = "finding"
"""What became of an attempt that ended in what no command may do."""
Attempt = Callable[[random.Random], str]
"""Damages something anew and tries it; returns in a word or two what came of it."""


@dataclass(frozen=True)
class Surface:
    """One kind of input: how often to damage it, and what prepares the attempts in a folder."""

    times: int
    prepare: Callable[[Path], Attempt]


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3.5, 10**9, 10**400, float("nan"), float("inf")),
    *("", "x", "1", "\x00", "\x1b[31m", "\ud800", "a" * 3000, "bert", "../../etc"),
    *([], {}, [1], ["x"], {"a": 1}, [[]], {"": None}, [None] * 3),
)


def spoil_json(content: Any, chance: random.Random) -> Any:
    """Change, remove or add one value somewhere in ``content``."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        key = chance.choice(list(content))
        changed = dict(content)
        draw = chance.random()
        if draw < 0.15:
            del changed[key]
        elif draw < 0.3:
            changed[chance.choice([*content, "odd"])] = chance.choice(ODD)
        else:
            changed[key] = spoil_json(content[key], chance)
        return changed
    if isinstance(content, list) and content and chance.random() < 0.7:
        place = chance.randrange(len(content))
        return [*content[:place], spoil_json(content[place], chance), *content[place + 1 :]]
    return chance.choice(ODD)


def spoil_bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip some bits, or remove or add a part."""
    if not data:
        return b"x"
    place = chance.randrange(len(data))
    draw = chance.random()
    if draw < 0.5:
        return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
    if draw < 0.7:
        return data[:place]
    if draw < 0.85:
        return data[:place] + data[place + chance.randrange(1, 99) :]
    return data[:place] + chance.randbytes(chance.randrange(1, 99)) + data[place:]


def spoil_cells(
    data: bytes, chance: random.Random, cells: Sequence[str], lines: Sequence[str] = ("",)
) -> bytes:
    """Change a cell of tab-separated text, or add, repeat or remove lines."""
    rows = data.split(b"\n")
    number, several, draw = chance.randrange(len(rows)), 1 + chance.randrange(9), chance.random()
    if draw < 0.1:
        del rows[number : number + several]
    elif draw < 0.2:  # often, to make large sentences and files too
        rows[number:number] = rows[number : number + several] * chance.choice((1, 50))
    elif draw < 0.3:
        rows.insert(number, chance.choice(lines).encode())
    else:
        own = rows[number].split(b"\t")
        own[chance.randrange(len(own))] = chance.choice(cells).encode("utf-8", "surrogatepass")
        rows[number] = b"\t".join(own)
    return b"\n".join(rows)


def spoil_file(file: Path, chance: random.Random) -> None:
    """Remove a file, turn it into a folder, or change its content."""
    draw = chance.random()
    if draw < 0.05:
        file.unlink()
    elif draw < 0.08:
        file.unlink()
        file.mkdir()
    elif file.suffix == ".json" and draw < 0.8 and (content := read_json(file)) is not None:
        file.write_text(json.dumps(spoil_json(content, chance)))
    else:
        file.write_bytes(spoil_bytes(file.read_bytes(), chance))


def read_json(file: Path) -> Any:
    """Return the content of a file, None if it is no JSON any more, or no file."""
    try:
        return json.loads(file.read_text())
    except (ValueError, OSError):
        return None


@cache
def make_tokenizer(
    letters: str = "abcdefghijklmnopqrstuvwxyz.,'", **more: Any
) -> PreTrainedTokenizerFast:
    """Make a tokenizer that spells words out; ``more`` are arguments of its class."""
    specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    entries = (*specials, *letters, *(f"##{letter}" for letter in letters))
    vocabulary = {name: place for place, name in enumerate(entries)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    named = {f"{name[1:-1].lower()}_token": name for name in specials}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **named, **more)


def save_model(folder: Path, labels: Sequence[str] = (), seed: int = 0, **sizes: int) -> Path:
    """Save a tiny BERT with its tokenizer: an encoder, or a classifier of ``labels``."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer()
    usual = {"hidden_size": 8, "num_attention_heads": 2, "max_position_embeddings": 32}
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=2,
        intermediate_size=8,
        **named,
        **{**usual, **sizes},
    )
    made = BertForSequenceClassification if labels else BertModel
    made(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def fresh_copy(good: Path) -> Path:
    """Copy a folder to spoil, in the place of an earlier copy."""
    folder = good.with_name("spoilt")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder, symlinks=True)
    return folder


@cache
def _command_line() -> Any:
    """Make the whole command line, once: making it takes as long as a short command."""
    return typer.main.get_command(app)


def invoke(*words: object) -> Any:
    """Run a command of headroles in this process."""
    with mock.patch("typer.testing._get_command", return_value=_command_line()):
        return CliRunner().invoke(app, [str(word) for word in words])


class Hang(BaseException):
    """An attempt took too long: no Exception, which a command makes a line of error of."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise Hang if the block takes longer, whatever it does with the alarm.

    It may take so many seconds of the processor, and a multiple of them on a busy machine. An alarm
    that is swallowed may lead to other numbers: a model whose trial fails runs otherwise.
    """
    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    is_late = False

    def stop(*_: object) -> None:
        nonlocal is_late
        is_late = True
        raise Hang(f"more than {seconds} s")

    before = {number: signal.signal(number, stop) for number in timers}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        if is_late:
            raise Hang(f"more than {seconds} s")


def go_through(
    what: Callable[[random.Random], str], times: int, seed: int, goes_on: bool = False
) -> Counter[str]:
    """Count what became of so many attempts.

    Raises findings, after naming their seed; counts them if it ``goes_on``.
    """
    outcomes: Counter[str] = Counter()
    for number in range(times):
        chance = random.Random(f"{seed}-{number}")
        try:
            with at_most(SECONDS):
                outcomes[what(chance)] += 1
        except HeadRolesError as error:
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error}") from error
            outcomes[type(error).__name__] += 1
        except BaseException as error:
            print(f"number {number} of seed {seed} is a finding", flush=True)
            if not goes_on or isinstance(error, KeyboardInterrupt):
                raise
            traceback.print_exc()
            outcomes[FINDING] += 1
    return outcomes
