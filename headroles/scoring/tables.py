"""Parquet tables of scores: from `HeadScores`, and back to its fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.arrays import Float32Array, IntArray
from headroles.memory import new_array
from headroles.record import ScoresRecord
from headroles.roles import OFFSETS, SCORES

if TYPE_CHECKING:
    import pyarrow as pa

    from headroles.scoring.scores import HeadScores

SCORES_FILE = "scores.parquet"
EXAMPLES_FILE = "examples.parquet"
OFFSETS_FILE = "offsets.parquet"
_BOUNDS = ("low", "high")
"""Columns of the table of examples that hold, as lists, the bounds of scores role by role."""


def write_blocks(folder: Path, blocks: Iterable[HeadScores], is_half: bool = False) -> list[str]:
    """Write blocks of scores to Parquet files as they come; return the names of the files.

    Within a block, rows are sorted by role, layer, head and example: index columns then compress to
    almost nothing, and a file is smaller than four bytes per score. ``is_half`` stores scores as
    float16.
    """
    of_measurements = {SCORES_FILE: ["score"], EXAMPLES_FILE: [], OFFSETS_FILE: []}
    tables: dict[str, pa.Table] = {}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(closing(storage.TableWriter(folder / name, columns)))
            for name, columns in of_measurements.items()
        }
        for block in blocks:
            tables = {
                SCORES_FILE: long_table(block, is_half),
                EXAMPLES_FILE: _examples_table(block),
            }
            if block.offset_shares is not None:
                tables[OFFSETS_FILE] = _shares_table(block, block.offset_shares)
            for name, table in tables.items():
                writers[name].write(table)
    return list(tables)


def read_fields(folder: Path, record: ScoresRecord) -> dict[str, Any]:
    """Read all scores in ``folder``: fields of `HeadScores`, as ``record`` describes them.

    Raises StorageError for unreadable files, and ValueError, KeyError or TypeError for files with
    other content.
    """
    scores, *others = [folder / name for name in files_of(record)]
    tables = map(storage.read_table, others)
    batches = (batch for one in storage.read_row_groups(scores) for batch in one.to_batches())
    read = _to_fields(batches, *tables, record=record)
    if (found := read["n_scores"]) != record.scores:
        raise ValueError(f"{found} scores instead of {record.scores}")
    return read


def read_row_groups(folder: Path, record: ScoresRecord) -> Iterator[dict[str, Any]]:
    """Yield such fields block by block, as they were written."""
    files = [storage.read_row_groups(folder / name) for name in files_of(record)]
    for scores, *others in zip(*files, strict=True):
        yield _to_fields(scores.to_batches(), *others, record=record)


def files_of(record: ScoresRecord) -> tuple[str, ...]:
    """Return the names of the files in which scores are stored."""
    has_offsets = SCORES[record.score].of_first_choice
    return (SCORES_FILE, EXAMPLES_FILE, *([OFFSETS_FILE] if has_offsets else []))


def _to_fields(
    scores: Iterable[pa.RecordBatch],
    of_examples: pa.Table,
    *of_offsets: pa.Table,
    record: ScoresRecord,
) -> dict[str, Any]:
    """Build fields from the tables of the files that `files_of` names."""
    roles = [role.id for role in record.roles]
    examples = of_examples.drop_columns(list(_BOUNDS)).to_pydict()
    ids = examples["example"]
    if None in ids or None in examples["document"]:
        raise ValueError("examples without an id or a document")
    values, counts, n_rows = _from_long(scores, ids, roles, (len(ids), *record.shape))
    if n_rows != sum(int(np.count_nonzero(~np.isnan(one))) for one in values):
        raise ValueError("scores that occur twice")
    return {
        "ids": tuple(ids),
        "documents": tuple(examples["document"]),
        "lengths": np.asarray(examples["tokens"], dtype=np.int64),
        "values": values,
        "counts": counts,
        "digests": () if None in examples["digest"] else tuple(examples["digest"]),
        "offset_shares": _from_shares(of_offsets[0], ids, roles) if of_offsets else None,
        "bounds": _known_bounds(of_examples, len(roles)),
        "n_scores": n_rows,
    }


def _examples_table(block: HeadScores) -> pa.Table:
    import pyarrow as pa

    unknown = [None] * len(block.ids)
    return pa.table(
        {
            "example": list(block.ids),
            "document": list(block.documents),
            "tokens": pa.array(block.lengths, pa.int32()),
            "digest": pa.array(list(block.digests) or unknown, pa.string()),
            **{name: _bounds_column(block, side) for side, name in enumerate(_BOUNDS)},
        }
    )


def _shares_table(block: HeadScores, shares: Float32Array) -> pa.Table:
    """Return a row per example and role with shares, a column per offset."""
    import pyarrow as pa

    example, role = np.nonzero(~np.isnan(shares[..., 0]))
    found = shares[example, role].T
    columns = {f"{offset:+d}": own for offset, own in zip(OFFSETS, found, strict=True)}
    index = {
        "example": pa.DictionaryArray.from_arrays(example.astype(np.int32), list(block.ids)),
        "role": pa.DictionaryArray.from_arrays(role.astype(np.int16), list(block.role_ids)),
    }
    return pa.table({**index, **columns})


def _from_shares(table: pa.Table, ids: Sequence[str], roles: Sequence[str]) -> Float32Array:
    shares = np.full((len(ids), len(roles), len(OFFSETS)), np.nan, dtype=np.float32)
    examples, places = ({name: k for k, name in enumerate(names)} for names in (ids, roles))
    for batch in table.to_batches():
        example = _decode(batch.column("example"), examples)
        role = _decode(batch.column("role"), places)
        for place, offset in enumerate(OFFSETS):
            shares[example, role, place] = batch.column(f"{offset:+d}").to_numpy()
    return shares


def _bounds_column(block: HeadScores, side: int) -> pa.Array:
    """Return, for each example, a list of one bound per role."""
    import pyarrow as pa

    n_roles = block.counts.shape[1]
    if block.bounds is None:
        return pa.nulls(len(block.ids), pa.list_(pa.float32(), n_roles))
    flat = pa.array(np.ascontiguousarray(block.bounds[..., side], dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, n_roles)


def _known_bounds(examples: pa.Table, n_roles: int) -> Float32Array | None:
    """Return the bounds of all examples; None if some are missing."""
    columns = [examples.column(name).combine_chunks() for name in _BOUNDS]
    if any(column.null_count for column in columns):
        return None
    sides = [column.flatten().to_numpy().reshape(-1, n_roles) for column in columns]
    return np.stack(sides, axis=-1).astype(np.float32)


def long_table(block: HeadScores, is_half: bool = False) -> pa.Table:
    """Return a table ``example, layer, head, role, score, count``, without missing scores."""
    import pyarrow as pa

    columns = zip(*(_columns_of(block, role) for role in range(len(block.roles))), strict=True)
    example, layer, head, role, score, count = map(np.concatenate, columns)
    return pa.table(
        {
            "example": pa.DictionaryArray.from_arrays(example, list(block.ids)),
            "layer": layer,
            "head": head,
            "role": pa.DictionaryArray.from_arrays(role, list(block.role_ids)),
            "score": score.astype(np.float16) if is_half else score,
            "count": count,
        }
    )


def _columns_of(block: HeadScores, role: int) -> tuple[NDArray[Any], ...]:
    """Return the columns of one role; several at once would take memory for their indices."""
    values = np.moveaxis(block.values[..., role], 0, -1)
    present = ~np.isnan(values)
    layer, head, example = np.nonzero(present)
    return (
        example.astype(np.int32),
        layer.astype(np.int16),
        head.astype(np.int16),
        np.full(len(example), role, dtype=np.int16),
        values[present],
        block.counts[example, role].astype(np.int32),
    )


def _from_long(
    batches: Iterable[pa.RecordBatch],
    ids: Sequence[str],
    roles: Sequence[str],
    shape: tuple[int, int, int],
) -> tuple[Float32Array, IntArray, int]:
    """Return values, counts, and the number of rows of a table that `long_table` made."""
    values = new_array((*shape, len(roles)), np.float32)
    values[...] = np.nan
    counts = np.zeros((shape[0], len(roles)), dtype=np.int64)
    examples, places = ({name: k for k, name in enumerate(names)} for names in (ids, roles))
    n_rows = 0
    for batch in batches:
        n_rows += batch.num_rows
        example = _decode(batch.column("example"), examples)
        role = _decode(batch.column("role"), places)
        layer, head = (batch.column(name).to_numpy() for name in ("layer", "head"))
        score, count = (batch.column(name).to_numpy() for name in ("score", "count"))
        if not np.isfinite(score).all() or any((one < 0).any() for one in (layer, head, count)):
            raise ValueError("scores that are not finite, or negative layers, heads or counts")
        values[example, layer, head, role] = score
        counts[example, role] = count
    return values, counts, n_rows


def _decode(column: Any, places: dict[str, int]) -> IntArray:
    """Map a dictionary column to places; each distinct value is looked up once."""
    table = np.array([places[name] for name in column.dictionary.to_pylist()], dtype=np.int64)
    decoded: IntArray = table[column.indices.to_numpy()]
    return decoded
