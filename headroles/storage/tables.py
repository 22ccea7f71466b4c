"""Parquet tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.errors import StorageError
from headroles.storage.files import missing

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 2**17
"""Rows that are read at a time."""


class TableWriter:
    """Appends tables of one schema to a Parquet file, each as a row group of its own.

    Columns ``of_measurements`` hold numbers of which hardly two are alike: the first bytes of all
    of them are stored side by side, then the second, and so on, which compresses what is alike.
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
    """Read a Parquet file. Raises StorageError if there is none or it is damaged."""
    import pyarrow.parquet as pq

    with _told_what_is_wrong(file):
        return _checked(pq.ParquetFile(file).read())


def read_batches(file: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, some at a time: quicker than all at once, and in less memory.

    Errors as of `read_table`.
    """
    import pyarrow.parquet as pq

    with _told_what_is_wrong(file):
        yield from map(_checked, pq.ParquetFile(file).iter_batches(_ROWS))


def read_row_groups(file: Path) -> Iterator[pa.Table]:
    """The tables that `TableWriter` appended to a file, one by one; errors as of `read_table`."""
    import pyarrow.parquet as pq

    with _told_what_is_wrong(file):
        stored = pq.ParquetFile(file)
    for number in range(stored.num_row_groups):
        with _told_what_is_wrong(file):
            table = _checked(stored.read_row_group(number))
        yield table


def _checked(table: Any) -> Any:
    """Return a table or batch. Raises ArrowException for texts that are no UTF-8, and the like."""
    table.validate(full=True)
    return table


@contextmanager
def _told_what_is_wrong(file: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise missing(file) from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file} cannot be read: {error}; score again") from error
