"""Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.storage.files import check_regular, read_from

if TYPE_CHECKING:
    import pyarrow as pa


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
    import pyarrow as pa
    import pyarrow.parquet as pq

    with read_from(file, pa.ArrowException):
        check_regular(file)
        table = pq.ParquetFile(file).read()
        table.validate(full=True)  # text that is not UTF-8, for one
    return table


def read_row_groups(file: Path) -> Iterator[pa.Table]:
    """Yield the tables that `TableWriter` appended to a file; raises errors as `read_table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with read_from(file, pa.ArrowException):
        check_regular(file)
        stored = pq.ParquetFile(file)
        for number in range(stored.num_row_groups):
            table = stored.read_row_group(number)
            table.validate(full=True)
            yield table
