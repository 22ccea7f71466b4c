"""Values of single examples, kept beside the table that was made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from headroles import storage
from headroles.errors import StorageError
from headroles.results import Result
from headroles.tasks import Outcomes
from headroles.tasks.outcomes import FloatArray

_SHAPES = b"shapes"
_OUTCOMES = ("loss", "prediction", "target")


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


@dataclass(frozen=True, repr=False, eq=False)
class OutcomesResult(Result):
    """A table, and what came of every example in all settings that it was made of.

    ``outcomes`` are losses and predictions (examples, settings), ``targets`` (examples,) what was
    to be said of each; both None for tables that are made by hand.
    """

    outcomes: Outcomes | None = None
    targets: FloatArray | None = None

    examples_file: ClassVar[str]

    def write_files(self, folder: Path) -> list[str]:
        """The table, and what came of every example."""
        names = super().write_files(folder)
        if self.outcomes is None or self.targets is None:
            return names
        columns = (self.outcomes.losses, self.outcomes.predictions, self.targets)
        write_examples(folder / self.examples_file, dict(zip(_OUTCOMES, columns, strict=True)))
        return [*names, self.examples_file]

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> Self:
        """The table and the outcomes."""
        table, file = super().read_files(folder, provenance), folder / cls.examples_file
        found = read_examples(file)
        if missing := set(_OUTCOMES) - set(found):
            raise StorageError(
                f"{file} lacks {', '.join(sorted(missing))}, which this version writes; make the "
                "results again"
            )
        losses, predictions, targets = (found[name] for name in _OUTCOMES)
        return cls(table.frame, provenance, Outcomes(losses, predictions), targets)
