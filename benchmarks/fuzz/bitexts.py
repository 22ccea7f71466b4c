"""Damaged bitexts, pairs of the user's own, saved attention across, and translation models."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BartConfig, BartModel

from benchmarks.fuzz import (
    ODD,
    Attempt,
    Surface,
    fresh_copy,
    make_tokenizer,
    spoil_bytes,
    spoil_file,
)
from benchmarks.fuzz.attention import FORMS
from benchmarks.fuzz.corpora import CONTROLS, LONGEST_MESSAGE
from benchmarks.fuzz.folders import run
from headroles import make_corpus, read_bitext, score_attention, score_heads
from headroles.errors import HeadRolesError

PAIRS = (
    ("old dogs bark .", "the old dogs bark !", "0-1 1-2 2p0 2-3 3-4"),
    ("cats sleep", "cats sleep", "0-0 1-1"),
    ("a bone , a cat", "bones and cats", "1-0 2p1 4-2"),
    ("dogs see", "they see it", "0-0 1-1"),
)
CELLS = (
    *(
        "",
        " ",
        "|||",
        "||| |||",
        "|||| a",
        "0-0",
        "0p0",
        "9-9",
        "1-1 1p1 1-1",
        "0-",
        "-1-0",
        "\u0660-0",
    ),
    *("0-0\t1-1", "p", "x" * 3000, "999999-0", "9999999-0", "\x00", "\x1b[2J", "\u2028", "\ufeff"),
    *(
        "科学家 。 一",
        "\ud800",
        "a\x85b",
        "[SEP] [PAD]",
        "dogs " * 40,
        "\u200b",
        "\u3000",
        "<s> </s>",
    ),
)


def save_translator(folder: Path) -> Path:
    """Save a tiny BART with its tokenizer."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=8,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=32,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        forced_eos_token_id=3,
    )
    BartModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# Files


def _spoil_lines(text: str, chance: random.Random) -> bytes:
    """Change parts of lines, repeat or remove lines, or damage bytes."""
    rows = text.split("\n")
    for _ in range(chance.randrange(4)):
        number, draw = chance.randrange(len(rows)), chance.random()
        if draw < 0.1 and len(rows) > 1:
            del rows[number]
        elif draw < 0.2:
            rows[number:number] = rows[number : number + 2] * chance.choice((1, 50))
        elif draw < 0.3:
            rows.insert(number, chance.choice(CELLS))
        else:
            parts = rows[number].split(" ||| ")
            parts[chance.randrange(len(parts))] = chance.choice(CELLS)
            rows[number] = " ||| ".join(parts)
    data = "\n".join(rows).encode("utf-8", "surrogatepass")
    return spoil_bytes(data, chance) if chance.random() < 0.2 else data


def _bitexts(place: Path) -> Attempt:
    """Prepare attempts to score and to align the words of spoilt files."""
    model = save_translator(place / "model")
    sides = tuple("\n".join(pair[side] for pair in PAIRS) for side in range(3))
    files = [place / name for name in ("sources.txt", "targets.txt", "links.txt")]

    def write(chance: random.Random) -> list[Any]:
        if chance.random() < 0.6:
            (place / "pairs.bitext").write_bytes(
                _spoil_lines("\n".join(map(" ||| ".join, PAIRS)), chance)
            )
            links = ["--links", files[2]] if chance.random() < 0.2 else []
            words = [place / "pairs.bitext", *links]
        else:
            words = [files[0], "--translations", files[1], "--links", files[2]]
        for file, side in zip(files, sides, strict=True):
            file.write_bytes(_spoil_lines(side, chance) if chance.random() < 0.5 else side.encode())
        flags = (["--links-from", chance.choice("0112x")], ["--on-bad-sentence", "skip"])
        return [*words, *(word for own in flags if chance.random() < 0.4 for word in own)]

    def attempt(chance: random.Random) -> str:
        corpus, is_aligned = write(chance), chance.random() < 0.4
        own = ["--out", place / ("alignment" if is_aligned else "roles"), "--overwrite"]
        if is_aligned:
            links = place / chance.choice(("written.links", "pairs.bitext", "no/folder"))
            drawn = ["--write-links", links] if chance.random() < 0.4 else []
            run("align", model, *corpus, *own, *drawn)
            return "aligned"
        attention = chance.choice(("cross", "cross", "decoder"))
        score = chance.choice(("bias", "excess", "hit"))
        asked = ("--attention", attention, "--score", score)
        run("classify", model, *corpus, *own, *asked, "--no-resume")
        return "classified"

    return _speaking_plainly(attempt)


def _speaking_plainly(attempt: Attempt) -> Attempt:
    """Return an attempt that fails for a message that a terminal would obey, or that is long."""

    def checked(chance: random.Random) -> str:
        try:
            return attempt(chance)
        except HeadRolesError as error:
            message = str(error)
            if set(message) & CONTROLS or not 0 < len(message.encode()) <= LONGEST_MESSAGE:
                raise AssertionError(repr(message)) from error
            raise

    return checked


# Pairs in memory


def _as_mapping(pair: tuple[str, str, str], chance: random.Random) -> dict[str, Any]:
    """Return a pair as people have it in lists and data sets."""
    source, target, links = pair
    return {
        "source": chance.choice((source, source.split(), tuple(source.split()))),
        "target": chance.choice((target, target.split())),
        "links": chance.choice((links, links.split())),
    }


def _spoil_pair(whole: dict[str, Any], chance: random.Random) -> Any:
    """Change, remove or add a part of a pair, or give it in another form."""
    draw = chance.random()
    if draw < 0.5:
        return {**whole, chance.choice([*whole, "odd"]): chance.choice(ODD)}
    if draw < 0.7:
        missing = chance.choice([*whole])
        return {name: part for name, part in whole.items() if name != missing}
    if draw < 0.8:
        return {**whole, "links": chance.choice((None, "", [], iter(["0-0"]), "0-0 9-9"))}
    return chance.choice(([*whole.values()], tuple(whole.values()), *ODD))


def _pairs(place: Path) -> Attempt:
    """Prepare attempts to score odd pairs."""
    model = BartModel.from_pretrained(save_translator(place / "model")).eval()
    tokenizer = make_tokenizer()

    def attempt(chance: random.Random) -> str:
        pairs: Any = [_as_mapping(pair, chance) for pair in PAIRS]
        if chance.random() < 0.6:
            number = chance.randrange(len(pairs))
            pairs[number] = _spoil_pair(pairs[number], chance)
        if chance.random() < 0.1:
            pairs = chance.choice((tuple(pairs), iter(pairs), dict(enumerate(pairs)), *ODD))
        options = {"attention": chance.choice(("cross", "cross", "cross", "decoder", "encoder"))}
        if chance.random() < 0.1:
            options[chance.choice(("target_rows", "source_language", "target_tokenizer"))] = (
                chance.choice(ODD)
            )
        corpus = make_corpus(pairs, links_from=chance.choice((0, 0, 0, 1)))
        scores = score_heads(model, corpus, tokenizer=tokenizer, **options)
        assert not np.isinf(scores.values).any()
        return "scored"

    return _speaking_plainly(attempt)


# Saved attention


def _crossing(place: Path) -> Attempt:
    """Prepare attempts to score spoilt arrays of targets and sources."""
    corpus = read_bitext(_good(place))
    tokenizer = make_tokenizer()

    def attempt(chance: random.Random) -> str:
        kind, draws = (
            chance.choice(("cross", "decoder")),
            np.random.default_rng(chance.randrange(10**9)),
        )
        arrays = []
        for source, target, _ in PAIRS:
            n_source, n_target = (
                len(tokenizer(text.split(), is_split_into_words=True)["input_ids"])
                for text in (source, target)
            )
            shape = (2, 2, n_target, n_source if kind == "cross" else n_target)
            weights = draws.random(shape, "f4") + np.float32(0.01)
            weights = np.tril(weights) if kind == "decoder" else weights
            arrays.append(weights / weights.sum(-1, keepdims=True))
        form = chance.choice(FORMS)
        arrays = [form(one, chance) if chance.random() < 0.5 else one for one in arrays]
        known = tokenizer if chance.random() < 0.9 else chance.choice(ODD)
        score_attention(arrays, corpus, known, attention=kind)
        return "scored"

    return attempt


def _good(place: Path) -> Path:
    """Write the bitext as it is."""
    file = place / "pairs.bitext"
    file.write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS))
    return file


# Models


def _translators(place: Path) -> Attempt:
    """Prepare attempts to load a spoilt translation model."""
    good = save_translator(place / "model")
    corpus = read_bitext(_good(place))

    def attempt(chance: random.Random) -> str:
        folder = fresh_copy(good)
        for _ in range(1 + chance.randrange(2)):
            files = sorted(file for file in folder.iterdir() if file.is_file())
            if files:
                spoil_file(chance.choice(files), chance)
        score_heads(folder, corpus, attention=chance.choice(("cross", "decoder")))
        return "scored"

    return _speaking_plainly(attempt)


SURFACES = {
    "bitexts": Surface(1000, _bitexts),
    "pairs": Surface(1000, _pairs),
    "crossing": Surface(1000, _crossing),
    "translators": Surface(1000, _translators),
}
