"""Damaged model folders and result folders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzzing import (
    Attempt,
    Surface,
    fresh_copy,
    save_model,
    spoil_file,
    spoil_json,
)
from headroles import HeadScores, RoleTable, assign_roles, compare_roles, power_analysis
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.results.stored import Stored, save_together
from headroles.roles import BIAS, Role
from headroles.storage import read_run, write_run
from headroles.studies.comparison.compare import RoleComparison
from headroles.studies.power import PowerAnalysis


def try_model(good: Path, chance: random.Random) -> str:
    """Load a spoilt model folder."""
    folder = fresh_copy(good)
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
    """Make every kind of result, with its folder, and as it is read back."""
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
        digests=tuple(f"{k:016x}" for k in range(12)),
    )
    save_together(folder / "roles", [scores, assign_roles(scores)])
    compare_roles(scores, scores).save(folder / "comparison")
    power_analysis(scores).save(folder / "plan")
    places: tuple[tuple[type[Stored], str], ...] = (
        (HeadScores, "roles"),
        (RoleTable, "roles"),
        (RoleComparison, "comparison"),
        (PowerAnalysis, "plan"),
    )
    return [(kind, folder / name, kind.load(folder / name)) for kind, name in places]


def try_result(known: tuple[type[Stored], Path, Any], chance: random.Random) -> str:
    """Read a spoilt result folder; raise AssertionError for a changed table that is accepted."""
    kind, good, expected = known
    folder = fresh_copy(good)
    is_signed = chance.random() < 0.4
    if is_signed:  # as another version, or a hand, may have written it
        run = read_run(folder)
        spoilt = spoil_json(run.content, chance)
        write_run(folder, spoilt if isinstance(spoilt, dict) else {"odd": spoilt}, run.files)
    else:
        spoil_file(
            chance.choice(sorted(file for file in folder.iterdir() if file.is_file())), chance
        )
    again: Any = kind.load(folder)
    repr(again)
    again._repr_html_()
    list(again.summarize())
    if isinstance(again, HeadScores):
        assign_roles(again)
    else:
        again.to_json()
        for view in again.views:
            again.export("csv", view)
    if is_signed:
        return "read, with other words around it"
    assert again == expected, "a changed table was believed"
    return "read as it was"


def _models(place: Path) -> Attempt:
    save_model(place / "model")
    return lambda chance: try_model(place / "model", chance)


def _results(place: Path) -> Attempt:
    known = make_results(place)
    return lambda chance: try_result(chance.choice(known), chance)


SURFACES = {"models": Surface(1000, _models), "results": Surface(3000, _results)}
