"""Values of single examples, kept beside the table that was made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.errors import StorageError
from headroles.tasks import Outcomes
from headroles.tasks.outcomes import FloatArray

_SHAPES = b"shapes"


def write_examples(file: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays (examples, ...) as columns of a Parquet file, lists where they are more."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).ravel())
        size = int(np.prod(values.shape[1:]))
        arrays[name] = (
            flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, list_size=size)
        )
    shapes = {name: list(values.shape) for name, values in columns.items()}
    table = pa.table(arrays).replace_schema_metadata({_SHAPES: json.dumps(shapes).encode()})
    writer = storage.TableWriter(file)
    writer.write(table)
    writer.close()


def read_examples(file: Path) -> dict[str, NDArray[Any]]:
    """Read back what `write_examples` wrote. Raises StorageError where that is not possible."""
    table = storage.read_table(file)
    try:
        shapes = json.loads(table.schema.metadata[_SHAPES])
        columns = {}
        for name, shape in shapes.items():
            column = table.column(name).combine_chunks()
            flat = column if len(shape) == 1 else column.flatten()
            columns[name] = flat.to_numpy(zero_copy_only=False).reshape(shape)
        return columns
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"{file} is not what headroles wrote ({error!r})") from error


def write_outcomes(file: Path, outcomes: Outcomes, targets: FloatArray) -> None:
    """Write what came of examples, and what was to be said of each."""
    columns = {"loss": outcomes.losses, "prediction": outcomes.predictions, "target": targets}
    write_examples(file, columns)


def read_outcomes(file: Path) -> tuple[Outcomes, FloatArray]:
    """Read back what `write_outcomes` wrote. Raises StorageError where that is not possible."""
    found = read_examples(file)
    if missing := {"loss", "prediction", "target"} - set(found):
        raise StorageError(
            f"{file} lacks {', '.join(sorted(missing))}, which this version writes; make the "
            "results again"
        )
    return Outcomes(found["loss"], found["prediction"]), found["target"]
