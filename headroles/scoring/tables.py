"""Parquet tables of scores: from the fields of `HeadScores`, and back to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headroles import storage
from headroles.arrays import Float32Array, IntArray, new_array
from headroles.record import Record, ScoreFacts
from headroles.roles import N_RULES, OFFSETS, SCORES, Role

if TYPE_CHECKING:
    import pyarrow as pa

Fields: TypeAlias = dict[str, Any]
"""A block of scores: the fields of `HeadScores` that are not None."""

SCORES_FILE = "scores.parquet"
EXAMPLES_FILE = "examples.parquet"
FILES = (SCORES_FILE, EXAMPLES_FILE)
_LISTS = ("low", "high", "offsets", "class_hits")
"""Columns of the table of examples that hold lists, role by role: of bounds of scores, of the
scores of fixed offsets, and of the hits of class rules.
"""


def write_blocks(folder: Path, blocks: Iterable[Fields], is_half: bool = False) -> list[str]:
    """Write blocks of scores to Parquet files as they come; return the names of the files.

    Within a block, rows are sorted by role, layer, head and example: index columns then compress to
    almost nothing, and a file is smaller than four bytes per score. ``is_half`` stores scores as
    float16.
    """
    with (
        closing(storage.TableWriter(folder / SCORES_FILE, ["score"])) as scores,
        closing(storage.TableWriter(folder / EXAMPLES_FILE)) as examples,
    ):
        for block in blocks:
            scores.write(long_table(block, is_half))
            examples.write(_examples_table(block))
    return list(FILES)


def read_fields(folder: Path, record: Record) -> Fields:
    """Read all scores in ``folder``: fields of `HeadScores`, as ``record`` describes them.

    Raises StorageError for unreadable files, and ValueError, KeyError or TypeError for files with
    other content.
    """
    batches = (
        batch
        for group in storage.read_row_groups(folder / SCORES_FILE)
        for batch in group.to_batches()
    )
    read = _to_fields(batches, storage.read_table(folder / EXAMPLES_FILE), record)
    if (n := read["n_scores"]) != (expected := record.facts["scores"]):
        raise ValueError(f"{n} scores instead of {expected}")
    return read


def read_row_groups(folder: Path, record: Record) -> Iterator[Fields]:
    """Yield such fields block by block, as they were written."""
    files = [storage.read_row_groups(folder / name) for name in FILES]
    for scores, examples in zip(*files, strict=True):
        yield _to_fields(scores.to_batches(), examples, record)


def _to_fields(scores: Iterable[pa.RecordBatch], of_examples: pa.Table, record: Record) -> Fields:
    """Build fields from the tables of scores and of examples."""
    facts = ScoreFacts.read(record.facts)
    roles, score = tuple(map(Role.from_record, facts.roles)), SCORES[facts.score]
    lists = [name for name in _LISTS if name in of_examples.column_names]
    examples = of_examples.drop_columns(lists).to_pydict()
    for name in ("example", "document", "digest"):
        column = of_examples.column(name)
        if len(column) and str(column.type) not in ("string", "large_string"):
            raise ValueError(f"{name}s of examples of type {column.type}, which are no texts")
    ids = examples["example"]
    if None in ids or None in examples["document"]:
        raise ValueError("examples without an id or a document")
    if of_examples.column("tokens").to_numpy().dtype.kind not in "iu":
        raise ValueError("examples whose number of tokens is no whole number")
    shape = len(ids), *record.shape
    values, counts, n_rows = _from_long(scores, ids, [role.id for role in roles], shape)
    if n_rows != sum(int(np.count_nonzero(~np.isnan(of_example))) for of_example in values):
        raise ValueError("scores that occur twice")
    low, high = (_from_lists(of_examples, name, (len(roles),)) for name in _LISTS[:2])
    is_hit = score.of_first_choice
    with_hits = is_hit and _LISTS[3] in lists  # files of earlier versions have none
    return {
        "ids": tuple(ids),
        "documents": tuple(examples["document"]),
        "lengths": np.asarray(examples["tokens"], dtype=np.int64),
        "roles": roles,
        "score": score,
        "values": values,
        "counts": counts,
        "digests": () if None in examples["digest"] else tuple(examples["digest"]),
        "offset_shares": _from_lists(of_examples, _LISTS[2], (len(roles), len(OFFSETS)))
        if is_hit
        else None,
        "class_hits": _from_lists(of_examples, _LISTS[3], (len(roles), N_RULES), np.uint16)
        if with_hits
        else None,
        "bounds": None if low is None or high is None else np.stack([low, high], axis=-1),
        "n_scores": n_rows,
    }


def _examples_table(block: Fields) -> pa.Table:
    import pyarrow as pa

    ids = list(block["ids"])
    low, high = np.moveaxis(block["bounds"], -1, 0) if "bounds" in block else (None, None)
    lists = {"low": low, "high": high}
    if "offset_shares" in block:
        lists["offsets"] = block["offset_shares"]
    if "class_hits" in block:
        lists["class_hits"] = block["class_hits"]
    return pa.table(
        {
            "example": ids,
            "document": list(block["documents"]),
            "tokens": pa.array(block["lengths"], pa.int32()),
            "digest": pa.array(list(block["digests"]) or [None] * len(ids), pa.string()),
            **{name: _lists(values, *block["counts"].shape) for name, values in lists.items()},
        }
    )


def _lists(values: NDArray[Any] | None, n: int, n_roles: int) -> pa.Array:
    """Return ``values`` (n, roles, ...) as a list for each example, all of one length."""
    import pyarrow as pa

    if values is None:
        return pa.nulls(n, pa.list_(pa.float32(), n_roles))
    kind = np.float32 if values.dtype.kind == "f" else values.dtype
    flat = np.ascontiguousarray(values, dtype=kind).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), len(flat) // n if n else n_roles)


def _from_lists(
    table: pa.Table, name: str, shape: tuple[int, ...], dtype: DTypeLike = np.float32
) -> NDArray[Any] | None:
    """Return the lists of a column as (examples, *shape); None if some are missing."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        return None
    lists: NDArray[Any] = column.flatten().to_numpy().reshape(-1, *shape).astype(dtype)
    return lists


def long_table(block: Fields, is_half: bool = False) -> pa.Table:
    """Return a table ``example, layer, head, role, score, count``, without missing scores."""
    import pyarrow as pa

    columns = zip(*(_columns_of(block, role) for role in range(len(block["roles"]))), strict=True)
    example, layer, head, role, score, count = map(np.concatenate, columns)
    return pa.table(
        {
            "example": pa.DictionaryArray.from_arrays(example, list(block["ids"])),
            "layer": layer,
            "head": head,
            "role": pa.DictionaryArray.from_arrays(role, [role.id for role in block["roles"]]),
            "score": score.astype(np.float16) if is_half else score,
            "count": count,
        }
    )


def _columns_of(block: Fields, role: int) -> tuple[NDArray[Any], ...]:
    """Return the columns of one role; several at once would take memory for their indices."""
    values = np.moveaxis(block["values"][..., role], 0, -1)
    present = ~np.isnan(values)
    layer, head, example = np.nonzero(present)
    return (
        example.astype(np.int32),
        layer.astype(np.int16),
        head.astype(np.int16),
        np.full(len(example), role, dtype=np.int16),
        values[present],
        block["counts"][example, role].astype(np.int32),
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
    examples, columns = ({name: k for k, name in enumerate(names)} for names in (ids, roles))
    n_rows = 0
    for batch in batches:
        n_rows += batch.num_rows
        example = _decode(batch.column("example"), examples)
        role = _decode(batch.column("role"), columns)
        layer, head = (batch.column(name).to_numpy() for name in ("layer", "head"))
        score, count = (batch.column(name).to_numpy() for name in ("score", "count"))
        whole = (layer, head, count)
        if any(numbers.dtype.kind not in "iu" for numbers in whole):
            raise ValueError("layers, heads or counts that are no whole numbers")
        if not np.isfinite(score).all() or any((numbers < 0).any() for numbers in whole):
            raise ValueError("scores that are not finite, or negative layers, heads or counts")
        values[example, layer, head, role] = score
        counts[example, role] = count
    return values, counts, n_rows


def _decode(column: Any, numbers: dict[str, int]) -> IntArray:
    """Map a dictionary column to numbers; each distinct value is looked up once."""
    table = np.array([numbers[name] for name in column.dictionary.to_pylist()], dtype=np.int64)
    decoded: IntArray = table[column.indices.to_numpy()]
    return decoded
