"""Values of single examples, saved beside the table that is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.arrays import FloatArray
from headroles.errors import StorageError
from headroles.record import Record
from headroles.results.result import Result
from headroles.tasks.outcomes import Outcomes

_OUTCOMES = {"loss": (-1,), "prediction": (-1,), "target": ()}


def write_examples(file: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays (examples, ...) as columns of a Parquet file; further axes become lists."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        flat = pa.array(np.ascontiguousarray(values).ravel())
        size = int(np.prod(values.shape[1:]))
        arrays[name] = (
            flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, list_size=size)
        )
    writer = storage.TableWriter(file)
    writer.write(pa.table(arrays))
    writer.close()


def read_examples(file: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Read arrays that `write_examples` wrote; ``shapes`` are the shapes for each example.

    An unknown length is -1. Raises StorageError for anything else.
    """
    table = storage.read_table(file)
    try:
        return {name: _read_column(table.column(name), shape) for name, shape in shapes.items()}
    except (KeyError, ValueError) as error:
        raise StorageError(
            f"{file} does not hold the examples of this version ({error}); make the results again"
        ) from error


def _read_column(column: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    from pyarrow import types

    values = column.combine_chunks()
    is_list = types.is_fixed_size_list(values.type)
    if values.null_count or is_list != bool(shape):
        raise ValueError(f"a column of {values.type}, with {values.null_count} missing values")
    flat = values.flatten() if is_list else values
    if flat.null_count or not (types.is_floating(flat.type) or types.is_integer(flat.type)):
        raise ValueError(f"a column of {values.type}")
    return np.asarray(flat.to_numpy()).reshape(len(column), *shape)


@dataclass(frozen=True, repr=False, eq=False)
class OutcomesResult(Result):
    """A table with the outcomes of every example in all settings.

    ``outcomes`` are losses and predictions (examples, settings), ``targets`` (examples,) the right
    labels or numbers; both None for tables made by hand.
    """

    outcomes: Outcomes | None = None
    targets: FloatArray | None = None

    examples_file: ClassVar[str]

    def write_files(self, folder: Path) -> list[str]:
        """Write the table, and the outcomes of every example."""
        names = super().write_files(folder)
        if self.outcomes is None or self.targets is None:
            return names
        columns = (self.outcomes.losses, self.outcomes.predictions, self.targets)
        write_examples(folder / self.examples_file, dict(zip(_OUTCOMES, columns, strict=True)))
        return [*names, self.examples_file]

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the table and the outcomes."""
        table, file = super().read_files(folder, record), folder / cls.examples_file
        losses, predictions, targets = read_examples(file, _OUTCOMES).values()
        if losses.shape != predictions.shape:
            raise StorageError(f"{file} has more losses or more predictions; {cls.remedy}")
        return replace(table, outcomes=Outcomes(losses, predictions), targets=targets)
