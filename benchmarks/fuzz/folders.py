"""Folders from strangers: models, results, hidden folders, links, parts, digests that fit."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file, save_file

from benchmarks.fuzz import (
    Attempt,
    Surface,
    fresh_copy,
    invoke,
    read_json,
    save_model,
    spoil_file,
    spoil_json,
)
from benchmarks.fuzz.corpora import GOOD
from benchmarks.kill import differences
from headroles import HeadScores, assign_roles, compare_roles, power_analysis
from headroles.errors import HeadRolesError
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.registry import RESULTS, result_type
from headroles.report.pages import make_report
from headroles.results.result import Result
from headroles.results.stored import Stored, save_together
from headroles.roles import BIAS, Role
from headroles.storage import (
    HIDDEN,
    OpenParts,
    decode_arrays,
    digests_of,
    encode_arrays,
    encode_json,
    kinds_in,
    read_run,
    result_folder,
    write_run,
)
from headroles.storage.parts import _digest

N_SENTENCES = 12
WORDS = "sleep bad eat the cats good dogs it on".split()


def run(*arguments: object) -> None:
    """Run a command in this process. Raises HeadRolesError for one that ends in a line of error."""
    done = invoke(*arguments)
    if done.exit_code == 0:
        return
    if not isinstance(done.exception, SystemExit):
        raise done.exception or AssertionError(done.output)
    errors = [line for line in done.stderr.splitlines() if line.lower().startswith("error: ")]
    assert len(errors) == 1 or done.exit_code == 130, done.stderr
    raise HeadRolesError(errors[0] if errors else "interrupted")


def make_subjects(place: Path) -> dict[str, Path]:
    """Make two tiny classifiers, two treebanks and a task."""
    names = ("model", "other", "t.conllu", "u.conllu", "task.tsv")
    files = {name: place / name for name in names}
    sizes = {"hidden_size": 16, "num_attention_heads": 4, "max_position_embeddings": 64}
    for seed, name in enumerate(("model", "other")):
        save_model(files[name], ("bad", "good"), seed, **sizes)
    text = GOOD.decode()
    for name, start in (("t.conllu", 0), ("u.conllu", N_SENTENCES)):
        copies = (text.replace("a-", f"{k}-").replace("= a", f"= {k}") for k in range(N_SENTENCES))
        files[name].write_text("".join(copies).replace("Cats", "Cats" if start == 0 else "Dogs"))
    chance = random.Random(0)
    rows = (
        f"{' '.join(chance.choices(WORDS, k=5))}\t{chance.choice(('good', 'bad'))}\n"
        for _ in range(N_SENTENCES)
    )
    files["task.tsv"].write_text("sentence\tlabel\n" + "".join(rows))
    return files


def reseal(folder: Path) -> None:
    """Give a folder the digests of its present files."""
    record = read_run(folder)
    present = {
        kind: digests_of(folder, [name for name in own if (folder / name).is_file()])
        for kind, own in record.files.items()
    }
    write_run(folder, record.content, present)


# Results


def make_results(folder: Path) -> list[tuple[type[Stored], Path, Stored]]:
    """Make every kind of result, with its folder, and as it is read back."""
    rng = np.random.default_rng(0)
    values = rng.gamma(9, 0.35, (12, 2, 2, 2)).astype(np.float32)
    roles = (Role("local"), Role("x:beyond_offset", baseline=0.0))
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
    kinds = {
        "roles": (HeadScores, result_type("role table")),
        "comparison": (result_type("comparison"),),
        "plan": (result_type("power"),),
    }
    return [
        (kind, folder / name, kind.load(folder / name))
        for name, several in kinds.items()
        for kind in several
    ]


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
    read_through(again)
    if is_signed:
        return "read, with other words around it"
    assert again == expected, "a changed table was believed"
    return "read as it was"


# Tables whose digests fit

CELLS: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 10**18, -(2**63), 1.5, 1e308, -1e308, 1e-320),
    *(float("nan"), float("inf"), -float("inf")),
    *("", "x", "yes", "local", "\x00", "\x1b[31m", "\u202e", "a" * 3000, "<script>", "../x", "nan"),
    *([], [1.0], {"a": 1}, b"\xff"),
)


def spoil_table(table: pa.Table, chance: random.Random) -> pa.Table:
    """Change a column, type or value of a table, or repeat, remove or move rows."""
    number = chance.randrange(table.num_columns)
    name = table.column_names[number]
    changes: tuple[Callable[[], pa.Table], ...] = (
        lambda: table.drop_columns([name]),
        lambda: table.rename_columns([one + "x" * (one == name) for one in table.column_names]),
        lambda: table.append_column(chance.choice(("odd", name)), table.column(number)),
        lambda: table.take(chance.choices(range(table.num_rows), k=table.num_rows)),
        lambda: table.take(chance.sample(range(table.num_rows), k=table.num_rows)),
        lambda: pa.concat_tables([table, table.slice(0, 1 + chance.randrange(3))]),
        lambda: table.slice(chance.randrange(1 + table.num_rows)),
        lambda: table.slice(0, 0),
        *[lambda: _with_column(table, number, chance)] * 12,
    )
    try:
        return chance.choice(changes)()
    except (IndexError, pa.ArrowException):
        return table.slice(1)


def _with_column(table: pa.Table, number: int, chance: random.Random) -> pa.Table:
    """Change the values or the type of one column of a table."""
    values = table.column(number).to_pylist()
    cell, draw = chance.choice(CELLS), chance.random()
    if draw < 0.6 and values:
        values[chance.randrange(len(values))] = cell
    elif draw < 0.8:
        values = [cell] * len(values)
    elif draw < 0.9:
        values = [str(value) for value in values]
    else:
        wrong = pa.array([b"\xed\xa0\x80"] * len(values), pa.binary()).view(pa.string())
        return table.set_column(number, table.column_names[number], wrong)
    try:
        column = pa.array(values, table.schema.types[number])
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        try:
            column = pa.array(values)
        except (pa.ArrowException, TypeError, OverflowError):
            column = pa.array([str(value) for value in values])
    return table.set_column(number, table.column_names[number], column)


def make_tables(place: Path) -> list[Path]:
    """Make folders with every kind of table that commands write."""
    files = make_subjects(place)
    model, corpus, task = files["model"], files["t.conllu"], files["task.tsv"]
    roles, subjects = ("--roles-from", place / "roles"), (model, task)
    asked: dict[str, tuple[object, ...]] = {
        "roles": ("classify", model, corpus, "--threshold", "1"),
        "others": ("classify", files["other"], corpus, "--threshold", "1"),
        "again": ("classify", model, files["u.conllu"], "--threshold", "1"),
        "hits": ("classify", model, corpus, "--score", "hit"),
        "shifts": ("compare", place / "roles", place / "others"),
        "replicated": ("replicate", place / "roles", place / "again"),
        "counted": ("replicate", place / "roles", place / "others", "--over", "seeds"),
        "best": ("best", place / "hits"),
        "power": ("power", place / "roles"),
        "own": ("score", model, corpus, "--roles", "confidence,entropy,distance"),
        "described": ("describe", place / "own"),
        "tokens": ("tokens", model, corpus),
        "examples": ("examples", place / "roles", "--head", "0-1", "--role", "local"),
        "importance": ("importance", *subjects),
        "ablated": ("ablate", *subjects),
        "ablated2": ("ablate", files["other"], task),
        "by-role": ("by-role", *subjects, *roles, "--draws", "2", "--permutations", "99"),
        "by-task": ("by-task", place / "ablated", place / "ablated2"),
        "curves": ("pruning-curves", model, "--test", task, "--orders", "random,top"),
        "redundant": ("redundancy", model),
        "shared": ("collaborate", model, "--rank", "8", "--sample", corpus),
    }
    made = []
    for name, command in asked.items():
        try:
            run(*command, "--out", place / name)
        except HeadRolesError as error:
            print(f"no folder {name}: {error}")
        else:
            made.append(place / name)
    return made


def try_table(good: Path, chance: random.Random) -> str:
    """Read a folder with a changed table and digests that fit it."""
    folder = fresh_copy(good)
    file = chance.choice(sorted(folder.glob("*.parquet")))
    pq.write_table(spoil_table(pq.read_table(file), chance), file)
    reseal(folder)
    if chance.random() < 0.2:
        run_file = read_run(folder)
        spoilt = spoil_json(run_file.content, chance)
        write_run(folder, spoilt if isinstance(spoilt, dict) else {}, run_file.files)
    held = read_run(folder).files
    tables = map(result_type, RESULTS)
    kinds = [kind for kind in (HeadScores, *tables) if kind.kind in held]
    for kind in kinds:
        read_through(kind.load(folder))
    if chance.random() < 0.3:
        make_report(folder).to_html()
    return "read"


def read_through(loaded: Any) -> None:
    """Show a result in all the ways that it can be shown."""
    repr(loaded)
    loaded._repr_html_()
    if isinstance(loaded, HeadScores):
        assign_roles(loaded)
    if isinstance(loaded, Result):
        list(loaded.summarize())
        json.dumps(loaded.to_json(), default=str)
        for view in loaded.views:
            loaded.export("csv", view)


def _results(place: Path) -> Attempt:
    known = make_results(place)
    return lambda chance: try_result(chance.choice(known), chance)


def _tables(place: Path) -> Attempt:
    known = make_tables(place)
    return lambda chance: try_table(chance.choice(known), chance)


# Models


def make_models(place: Path) -> list[Path]:
    """Make a model, and a pruned, a gated and a collaborative one."""
    files = make_subjects(place)
    subjects = (files["model"], files["task.tsv"])
    run("prune", *subjects, "--keep", "5", "--order", "random", "--out", place / "pruned")
    run(
        "gate", *subjects, "--keep", "5", "--seeds", "1", "--updates", "3", "--out", place / "gated"
    )
    run("collaborate", files["model"], "--rank", "8", "--out", place / "shared")
    return [files["model"], *(place / name for name in ("pruned", "gated", "shared"))]


def try_model(good: Path, chance: random.Random) -> str:
    """Load a changed model, often with digests that fit it if it has any."""
    folder = fresh_copy(good)
    is_sealed = (folder / "run.json").exists()
    draw = chance.random()
    if draw < 0.4 or not is_sealed:
        for _ in range(chance.choice((1, 1, 2))):
            files = [file for file in folder.iterdir() if file.is_file()]
            spoil_file(chance.choice(files), chance)
    elif draw < 0.6:
        file = chance.choice(sorted(folder.glob("*.safetensors")))
        save_file(_spoil_tensors(load_file(file), chance), file, {"format": "pt"})
    else:
        texts = [file for file in sorted(folder.glob("*.json")) if file.name != "run.json"]
        file = chance.choice(texts)
        file.write_text(json.dumps(spoil_json(read_json(file), chance)))
    if is_sealed and chance.random() < 0.7 and read_json(folder / "run.json") is not None:
        reseal(folder)
    loaded = load_encoder(folder)
    inputs = loaded.tokenizer(
        ["a", "bc"], is_split_into_words=True, return_tensors="pt", return_token_type_ids=False
    )
    with open_reader(loaded.stack) as reader:
        reader.read(dict(inputs), lambda layer, weights: None)
    return "loaded"


def _spoil_tensors(tensors: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    name = chance.choice(sorted(tensors))
    value = tensors[name]
    changes: tuple[Callable[[], Mapping[str, Any]], ...] = (
        dict,
        lambda: {name: value, "odd": value.clone()},
        lambda: {name: value[:1].clone()},
        lambda: {name: torch.cat([value, value])},
        lambda: {name: value.flatten().clone()},
        lambda: {name: torch.full_like(value, chance.choice((np.nan, np.inf, 1e38, 0)))},
        lambda: {name: value.to(chance.choice((torch.int8, torch.bool, torch.float64)))},
        lambda: {name: torch.zeros(chance.choice(((0,), (1,), (3, 0, 2))))},
    )
    return {**{one: tensors[one] for one in tensors if one != name}, **chance.choice(changes)()}


def _models(place: Path) -> Attempt:
    known = make_models(place)
    return lambda chance: try_model(chance.choice(known), chance)


# Hidden folders and links

LISTED = (
    *("run.json", "roles.csv", "within", "link", "../victim/roles.csv", "..", ".", "", "/"),
    *("a//b.csv", ".headroles", "\x00", "\ud800", "a" * 300, "within/../../victim/roles.csv"),
)
INNER = ("run.json", "roles.csv", "notes.txt", "link", "within/roles.csv", "within/run.json", ".x")
ENTRIES = (
    *("lock", "swap.json", "new", "placed", "draft", "done", "added", "parts", "x"),
    *("parts/p/part-0", "parts/plan.json", "new/link"),
    *(f"{place}/{name}" for place in ("done", "added", "done") for name in INNER),
)


def try_hidden(good: Path, chance: random.Random) -> str:
    """Use a folder with a hostile hidden folder, which must not change anything outside."""
    folder, victim = fresh_copy(good), good.parent / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    (victim / "new").mkdir(parents=True)
    for name in ("roles.csv", "run.json", "lock", "part-0", "thesis.txt", "new/roles.csv"):
        (victim / name).write_text(f"my {name}")
    hidden = folder / HIDDEN
    if chance.random() < 0.1:
        hidden.symlink_to(victim)
    else:
        hidden.mkdir()
        for name in chance.sample(ENTRIES, k=chance.randrange(6)):
            _put(hidden / name, victim, chance)
    for name in chance.sample(("link", "within", "roles.csv", "run.json"), k=chance.randrange(3)):
        (folder / name).unlink(missing_ok=True)
        _put(folder / name, victim, chance)
    (folder / "notes.txt").write_text("mine")
    before = _everything(victim)
    try:
        return _use(folder, chance)
    finally:
        assert _everything(victim) == before, "something outside was changed"
        assert (folder / "notes.txt").read_text() == "mine", "a file of others was changed"


def _put(place: Path, victim: Path, chance: random.Random) -> None:
    """Put a file, a folder or a link at a place, if possible."""
    draw = chance.random()
    if os.path.lexists(place) or any(one.is_symlink() for one in place.parents):
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if draw < 0.6 and place.name == "run.json":
            listed = chance.sample(LISTED, k=chance.randrange(4))
            write_run(place.parent, {}, {"role table": dict.fromkeys(listed, "")})
        elif draw < 0.75:
            place.write_text(place.name)
        elif draw < 0.85:
            place.mkdir()
        else:
            place.symlink_to(chance.choice((victim, victim / "thesis.txt", "../nowhere")))
    except OSError:
        return


def _use(folder: Path, chance: random.Random) -> str:
    draw = chance.randrange(4)
    if draw == 3:
        resume = chance.choice((False, True))
        with result_folder(folder, overwrite=True, resume=resume) as staging:
            (staging / "roles.csv").write_text("new")
            write_run(staging, {}, {"roles": digests_of(staging, ["roles.csv"])})
        return "replaced"
    before = _everything(folder)
    try:
        if draw == 0:
            kinds_in(folder)
            return "read"
        run("export" if draw == 1 else "report", folder)
        return "exported or reported"
    finally:
        (folder / "report.html").unlink(missing_ok=True)
        assert _everything(folder) == before, "reading changed the folder"


def _everything(folder: Path) -> dict[str, bytes]:
    return {
        str(place.relative_to(folder)): place.read_bytes() if place.is_file() else b""
        for place in sorted(folder.rglob("*"))
    }


def _hidden(place: Path) -> Attempt:
    files = make_subjects(place)
    run("classify", files["model"], files["t.conllu"], "--out", place / "good")
    return lambda chance: try_hidden(place / "good", chance)


# Parts


@dataclass(frozen=True)
class Unfinished:
    """A command, its folder with all parts and no results, its results, and others' parts."""

    command: tuple[object, ...]
    folder: Path
    result: Path
    others: Path


def make_unfinished(place: Path) -> list[Unfinished]:
    """Stop commands that saved all their parts before results took their place."""
    files = make_subjects(place)
    task = files["task.tsv"]
    small = ("--batch-tokens", "40")
    ways: dict[str, Callable[[Path], tuple[object, ...]]] = {
        "score": lambda model: ("score", model, files["t.conllu"]),
        "importance": lambda model: ("importance", model, task, *small),
        "ablate": lambda model: ("ablate", model, task, *small),
        "prune": lambda model: ("prune", model, task, "--keep", "5", *REESTIMATED, *small),
    }
    made = []
    for name, way in ways.items():
        folders = [place / f"{name}-{which}" for which in ("unfinished", "others", "result")]
        for folder, model in zip(folders, ("model", "other", "model"), strict=True):
            stopped = folder is not folders[2]
            with mock.patch("headroles.scoring.run.WINDOW_EXAMPLES", 8):
                if not stopped:
                    run(*way(files[model]), "--out", folder)
                    continue
                with (
                    mock.patch("headroles.storage.folders._prepare", side_effect=KeyboardInterrupt),
                    contextlib.suppress(HeadRolesError),
                ):
                    run(*way(files[model]), "--out", folder)
        made.append(Unfinished(way(files["model"]), folders[0], folders[2], folders[1]))
        assert _parts_of(folders[0]), name
    return made


REESTIMATED = ("--order", "reestimated", "--steps", "3")


def _parts_of(folder: Path) -> list[Path]:
    return sorted((folder / HIDDEN / "parts").rglob("part-*"))


def try_parts(one: Unfinished, chance: random.Random) -> str:
    """Resume from forged parts; raise AssertionError if they are accepted."""
    folder = fresh_copy(one.folder)
    parts, others = _parts_of(folder), _parts_of(one.others)
    part, other = chance.choice(parts), chance.choice(parts)
    draw = chance.randrange(6)
    fits = False
    if draw == 0:
        content = part.read_bytes()
        part.write_bytes(other.read_bytes())
        other.write_bytes(content)
    elif draw == 1:
        part.rename(part.with_name(chance.choice((other.name, "part-99", "part-x"))))
    elif draw == 2:
        shutil.copy(chance.choice(others), part)
    elif draw == 3:  # another folder of parts, with a plan that is its own or ours
        shutil.rmtree(folder / HIDDEN)
        shutil.copytree(one.others / HIDDEN, folder / HIDDEN)
        if chance.random() < 0.5:
            plan = one.folder / HIDDEN / "parts" / "plan.json"
            shutil.copy(plan, folder / HIDDEN / "parts" / "plan.json")
    else:
        fits = _forge(part, chance)
    with mock.patch("headroles.scoring.run.WINDOW_EXAMPLES", 8):
        run(*one.command, "--out", folder, "--resume")
    if fits:
        return "went on with forged numbers"
    found = differences(folder, one.result)
    assert not found, f"parts of another kind were believed: {draw}, {part}, {found}"
    return "went on to the same"


def _forge(part: Path, chance: random.Random) -> bool:
    """Write other arrays under a digest that fits; returns whether their shapes and types do."""
    plan = read_json(part.parent.parent / "plan.json")
    opened = OpenParts(part.parent, _digest(encode_json(plan)))
    name = part.name.removeprefix("part-")
    arrays: dict[str, Any] = dict(opened.read(name, decode_arrays))
    key = chance.choice(sorted(arrays))
    value = arrays[key]
    fits = chance.random() < 0.3
    if fits:
        odd = chance.choice((np.nan, np.inf, 1e38, -1, 0))
        with np.errstate(invalid="ignore"):
            arrays[key] = np.full_like(value, odd if value.dtype.kind == "f" else 0)
    else:
        changes: tuple[Callable[[], Any], ...] = (
            lambda: value[:-1],
            lambda: np.concatenate([value, value]),
            lambda: value.reshape(-1, 1, 1),
            lambda: value.astype(np.int8 if value.dtype.kind == "f" else np.float16),
            lambda: np.zeros(chance.choice(((0,), (1,), (3, 2, 2)))),
            lambda: None,
        )
        changed = chance.choice(changes)()
        if changed is None:
            del arrays[key]
        elif changed.shape == value.shape and changed.dtype == value.dtype:
            fits = True
        else:
            arrays[key] = np.ascontiguousarray(changed)
    opened.write(name, encode_arrays(arrays))
    return fits


def _of_parts(place: Path) -> Attempt:
    known = make_unfinished(place)
    return lambda chance: try_parts(chance.choice(known), chance)


SURFACES = {
    "hidden": Surface(1000, _hidden),
    "parts": Surface(1000, _of_parts),
    "tables": Surface(1000, _tables),
    "models": Surface(2000, _models),
    "results": Surface(3000, _results),
}
