"""Storage: files and folders that appear whole or not at all, and their records."""

from headroles.storage.arrays import decode_arrays, encode_arrays
from headroles.storage.files import (
    encode_json,
    is_special,
    parse_json,
    read_json,
    whole_file,
    write_bytes,
    write_json,
)
from headroles.storage.folders import (
    changed_folder,
    check_result_folder,
    finish_swap,
    parts_beside,
    parts_in,
    result_folder,
)
from headroles.storage.names import HIDDEN
from headroles.storage.parts import OpenParts, Parts, differences
from headroles.storage.run import (
    FORMAT,
    REPORT_FILE,
    RUN_FILE,
    Count,
    Run,
    check_files,
    check_record,
    digests_of,
    has_old_report,
    kinds_in,
    read_run,
    result_files,
    write_run,
)
from headroles.storage.tables import TableWriter, read_batches, read_row_groups, read_table

__all__ = [
    "FORMAT",
    "Count",
    "HIDDEN",
    "OpenParts",
    "Parts",
    "REPORT_FILE",
    "RUN_FILE",
    "Run",
    "TableWriter",
    "changed_folder",
    "check_files",
    "check_record",
    "check_result_folder",
    "decode_arrays",
    "differences",
    "digests_of",
    "encode_arrays",
    "encode_json",
    "finish_swap",
    "has_old_report",
    "is_special",
    "kinds_in",
    "parse_json",
    "parts_beside",
    "parts_in",
    "read_batches",
    "read_json",
    "read_row_groups",
    "read_run",
    "read_table",
    "result_files",
    "result_folder",
    "whole_file",
    "write_bytes",
    "write_json",
    "write_run",
]
