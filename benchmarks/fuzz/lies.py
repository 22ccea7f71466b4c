"""Lies in single cells of tables whose digests fit: which of them does a reader believe?

python -m benchmarks.fuzz.lies [--folder DIR] [--seed 0]

Makes every kind of table, tells a lie in a cell of each column, a row at random, removes a row, and
changes the CSV file beside the table; prints the lies that were believed. Names of examples, texts
and notes are no lies that numbers could contradict.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fuzz import Attempt, Surface, fresh_copy
from benchmarks.fuzz.folders import make_tables, reseal
from headroles.errors import StorageError
from headroles.record import Record
from headroles.registry import RESULTS, result_type
from headroles.results.columns import FLAG, TEXT, WHOLE, Column, declared
from headroles.results.formats import export_frame
from headroles.results.result import Result
from headroles.storage import read_run

ROW, COPY = "a missing row", "the CSV file"


def tables_in(folder: Path) -> Iterator[type[Result]]:
    """Yield the kinds of tables in a folder."""
    held = read_run(folder).files
    for kind in RESULTS:
        if kind in held and (folder / f"{result_type(kind).filename}.parquet").exists():
            yield result_type(kind)


def lies_about(kind: type[Result]) -> list[str]:
    """Return the columns in which a lie can be told, and the lies about rows and files."""
    columns = {name: kind.schema.get(name) or declared(name) for name in kind.columns}
    plain = [name for name, column in columns.items() if column.kind != TEXT or column.texts]
    return [*plain, ROW, COPY]


def lie(value: Any, column: Column, chance: random.Random) -> Any:
    """Return another value that a column may hold."""
    if column.texts:
        return chance.choice([text for text in column.texts if text != value])
    if column.kind == FLAG:
        return not value
    if column.kind == WHOLE:
        return 0 if value and column.least <= 0 else int(value) + 1
    if (column.least, column.most) == (0, 1):
        return 0.0 if value > 0.01 else 0.9
    return chance.choice([2 * float(value) + 1, max(column.least, float(value) - 10)])


def tell(kind: type[Result], folder: Path, what: str, chance: random.Random) -> bool:
    """Write a lie into a copy of a folder, with digests that fit; False where none can be told."""
    file = folder / f"{kind.filename}.parquet"
    table = pq.read_table(file)
    if what == ROW:
        gone = chance.randrange(len(table))
        rows = [k for k in range(len(table)) if k != gone]
        _write(table.take(rows), file)
    elif what == COPY:
        copy = file.with_suffix(".csv")
        copy.write_bytes(copy.read_bytes().replace(b"1", b"2", 1))
    else:
        column = kind.schema.get(what) or declared(what)
        values = table.column(what).to_pylist()
        places = [k for k, value in enumerate(values) if value is not None and value == value]
        if not places:
            return False
        place = chance.choice(places)
        values[place] = lie(values[place], column, chance)
        number = table.column_names.index(what)
        changed = pa.array(values, table.schema.types[number])
        _write(table.set_column(number, what, changed), file)
    reseal(folder)
    return True


def _write(table: pa.Table, file: Path) -> None:
    """Write a table, and the CSV file that belongs to it."""
    pq.write_table(table, file)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    file.with_suffix(".csv").write_bytes(export_frame(frame, "csv", Record()))


def try_lie(good: Path, kind: type[Result], what: str, chance: random.Random) -> str:
    """Tell a lie; say whether it is believed."""
    folder = fresh_copy(good)
    if not tell(kind, folder, what, chance):
        return "nothing to lie about"
    try:
        kind.load(folder)
    except StorageError:
        return "refused"
    return "believed"


def _prepare(place: Path) -> Attempt:
    known = [(folder, kind) for folder in make_tables(place) for kind in tables_in(folder)]

    def attempt(chance: random.Random) -> str:
        folder, kind = chance.choice(known)
        return try_lie(folder, kind, chance.choice(lies_about(kind)), chance)

    return attempt


SURFACES = {"lies": Surface(1000, _prepare)}


def main() -> None:
    """Print the share of lies that are believed, and the believed ones by kind of table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="tables that make_tables made there")
    parser.add_argument("--seed", type=int, default=0, help="seed of the rows that are chosen")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = asked.folder or Path(temporary)
        folders = [*place.iterdir()] if asked.folder else make_tables(place)
        outcomes: Counter[str] = Counter()
        for folder in sorted(folders):
            if not (folder / "run.json").exists():
                continue
            for kind in tables_in(folder):
                believed = []
                for what in lies_about(kind):
                    chance = random.Random(f"{asked.seed} {folder.name} {what}")
                    outcome = try_lie(folder, kind, what, chance)
                    outcomes[outcome] += 1
                    if outcome == "believed":
                        believed.append(what)
                print(f"{folder.name:12} {kind.kind:24} {len(believed):2}  {', '.join(believed)}")
    told = outcomes["believed"] + outcomes["refused"]
    print(f"{outcomes['believed']} of {told} lies were believed")


if __name__ == "__main__":
    sys.exit(main())
