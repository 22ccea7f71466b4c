"""Damaged model folders, result folders and options: whatever they are, an answer or an error.

Run: python -m benchmarks.fuzz [--models 1000] [--results 3000] [--options 1000] [--seed 0]

What comes of a damaged folder may be what comes of a good one, or an error that names a cure. A
traceback, more than a minute, or a table that was changed and is believed is a finding.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel

from benchmarks.fuzz_corpora import SECONDS, _at_most, _tokenizer
from headroles import HeadScores, RoleTable, assign_roles, compare_roles, plan_examples
from headroles.cli.export import ExportOptions
from headroles.corpus import CorpusOptions
from headroles.errors import HeadRolesError
from headroles.models import load_encoder, open_reader
from headroles.options import Options, fields_of
from headroles.results import Stored, save_together
from headroles.roles import BIAS, Role
from headroles.scoring import ScoreOptions
from headroles.storage import read_run, write_run
from headroles.studies import AssignOptions, CompareOptions, PlanOptions, PowerPlan, RoleShifts

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3.5, 10**9, 10**400, float("nan"), float("inf")),
    *("", "x", "1", "\x00", "\x1b[31m", "\ud800", "a" * 3000, "bert", "../../etc"),
    *([], {}, [1], ["x"], {"a": 1}, [[]], {"": None}, [None] * 3),
)


def spoil_json(content: Any, chance: random.Random) -> Any:
    """One value somewhere in ``content`` changed, left out or put in."""
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
    """Some bits turned, or a part left out or put in."""
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


def spoil_file(file: Path, chance: random.Random) -> None:
    """A file removed, made a folder, or of other content."""
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
    """What a file holds, None if that is no JSON any more."""
    try:
        return json.loads(file.read_text())
    except ValueError:
        return None


def make_model(folder: Path) -> None:
    """A tiny encoder with its tokenizer."""
    torch.manual_seed(0)
    tokenizer = _tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def try_model(good: Path, chance: random.Random) -> str:
    """What becomes of a spoilt model folder."""
    folder = good.with_name("spoilt")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    for _ in range(chance.choice((1, 1, 2))):
        files = [file for file in folder.iterdir() if file.is_file()]
        spoil_file(chance.choice(files), chance)
    loaded = load_encoder(folder)
    words = ["a", "bc", "def"]
    inputs = loaded.tokenizer(
        words, is_split_into_words=True, return_tensors="pt", return_token_type_ids=False
    )
    with open_reader(loaded.model) as reader:
        reader.read(dict(inputs), lambda layer, weights: None)
    return "loaded"


def make_results(folder: Path) -> list[tuple[type[Stored], Path, Stored]]:
    """Every kind of result, where it is, and as it is read back."""
    rng = np.random.default_rng(0)
    values = rng.gamma(9, 0.35, (12, 2, 2, 2)).astype(np.float32)
    roles = (Role("local", words="near"), Role("x:beyond_offset", baseline=0.0))
    scores = HeadScores(
        ids=tuple(f"e{k}" for k in range(12)),
        documents=tuple(f"d{k // 2}" for k in range(12)),
        lengths=np.full(12, 9),
        roles=roles,
        values=values,
        counts=np.full((12, 2), 9),
        score=BIAS,
        provenance={"model": {}, "options": {}},
        digests=tuple(f"{k:016x}" for k in range(12)),
    )
    save_together(folder / "roles", [scores, assign_roles(scores)])
    compare_roles(scores, scores).save(folder / "shifts")
    plan_examples(scores).save(folder / "plan")
    places: tuple[tuple[type[Stored], str], ...] = (
        (HeadScores, "roles"),
        (RoleTable, "roles"),
        (RoleShifts, "shifts"),
        (PowerPlan, "plan"),
    )
    return [(kind, folder / name, kind.load(folder / name)) for kind, name in places]


def try_result(known: tuple[type[Stored], Path, Any], chance: random.Random) -> str:
    """What becomes of a spoilt result folder; raises AssertionError for one that is believed."""
    kind, good, expected = known
    folder = good.with_name("spoilt")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    is_signed = chance.random() < 0.4
    if is_signed:  # as another version, or a hand, may have written it
        run = read_run(folder)
        spoilt = spoil_json(run.provenance, chance)
        write_run(folder, spoilt if isinstance(spoilt, dict) else {"odd": spoilt}, run.files)
    else:
        spoil_file(
            chance.choice(sorted(file for file in folder.iterdir() if file.is_file())), chance
        )
    again: Any = kind.load(folder)
    repr(again)
    again._repr_html_()
    list(again.shown())
    if isinstance(again, HeadScores):
        assign_roles(again)
    else:
        again.facts()
        for view in again.views:
            again.export("csv", view)
    if is_signed:
        return "read, with other words around it"
    assert again == expected, "a changed table was believed"
    return "read as it was"


GROUPS: tuple[type[Options], ...] = (
    ScoreOptions,
    AssignOptions,
    CompareOptions,
    PlanOptions,
    CorpusOptions,
    ExportOptions,
)


def try_options(chance: random.Random) -> str:
    """What becomes of options with some odd values."""
    group = chance.choice(GROUPS)
    chosen = chance.sample(fields_of(group), k=chance.choice((1, 2)))
    group(**{one.name: chance.choice([*ODD, *one.option.choices]) for one in chosen})
    return "accepted"


def go_through(what: Callable[[random.Random], str], times: int, seed: int) -> Counter[str]:
    """What became of so many; raises what is a finding, after naming the seed that led to it."""
    outcomes: Counter[str] = Counter()
    for number in range(times):
        chance = random.Random(f"{seed}-{number}")
        try:
            with _at_most(SECONDS):
                outcomes[what(chance)] += 1
        except HeadRolesError as error:
            if "\n" in str(error):
                raise AssertionError(f"an error of several lines: {error}") from error
            outcomes[type(error).__name__] += 1
        except BaseException:
            print(f"number {number} of seed {seed} is a finding")
            raise
    return outcomes


def main() -> None:
    """Print what became of folders and options."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("models", 1000), ("results", 3000), ("options", 1000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        make_model(place / "model")
        results = make_results(place)
        for title, what, times in (
            ("models", lambda chance: try_model(place / "model", chance), asked.models),
            ("results", lambda chance: try_result(chance.choice(results), chance), asked.results),
            ("options", try_options, asked.options),
        ):
            start = time.perf_counter()
            outcomes = go_through(what, times, asked.seed)
            shown = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
            print(f"{times} {title} in {time.perf_counter() - start:.0f} s: {shown}")


if __name__ == "__main__":
    main()
