"""Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.storage.files import cannot_be_read, check_regular, missing

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 2**17
"""Number of rows read at a time."""


class TableWriter:
    """Writer that appends tables of one schema to a Parquet file, each as a row group.

    Columns ``of_measurements`` hold numbers that hardly ever repeat. Their first bytes are stored
    side by side, then their second bytes, and so on, which compresses well because they are
    similar.
    """

    def __init__(self, file: Path, of_measurements: Sequence[str] = ()) -> None:
        self._file = file
        self._of_measurements = of_measurements
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append ``table``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            others = [name for name in table.schema.names if name not in self._of_measurements]
            self._writer = pq.ParquetWriter(
                self._file,
                table.schema,
                compression="zstd",
                use_dictionary=others if self._of_measurements else True,
                column_encoding=dict.fromkeys(self._of_measurements, "BYTE_STREAM_SPLIT") or None,
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


def read_table(file: Path) -> pa.Table:
    """Read a Parquet file. Raises StorageError if it is missing or damaged."""
    import pyarrow.parquet as pq

    with _reported_defects(file):
        return _checked(pq.ParquetFile(file).read())


def read_batches(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in batches: faster and in less memory than all at once.

    Raises errors as `read_table`.
    """
    import pyarrow.parquet as pq

    with _reported_defects(file):
        yield from map(_checked, pq.ParquetFile(file).iter_batches(_ROWS))


def read_row_groups(file: Path) -> Iterator[pa.Table]:
    """Yield the tables that `TableWriter` appended to a file; raises errors as `read_table`."""
    import pyarrow.parquet as pq

    with _reported_defects(file):
        stored = pq.ParquetFile(file)
    for number in range(stored.num_row_groups):
        with _reported_defects(file):
            table = _checked(stored.read_row_group(number))
        yield table


def _checked(table: Any) -> Any:
    """Return a table or batch. Raises ArrowException for invalid content, such as text not in
    UTF-8.
    """
    table.validate(full=True)
    return table


@contextmanager
def _reported_defects(file: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        check_regular(file)
        yield
    except FileNotFoundError as error:
        raise missing(file) from error
    except (OSError, pa.ArrowException) as error:
        raise cannot_be_read(file, error) from error
