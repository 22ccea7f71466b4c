"""Commands as a user runs them, and the folders that they fill."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from headroles.cli import app


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_well(*arguments: object) -> Result:
    """Run a command that succeeds and prints nothing on standard error but its progress."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    progress = ("scores: ", "collaboration: ")  # after a while, if at all
    assert not [line for line in result.stderr.splitlines() if not line.startswith(progress)]
    return result


def names(folder: Path) -> set[str]:
    """Return the names of files and folders in a folder."""
    return {path.name for path in folder.iterdir()}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in a folder and its sub-folders, by path."""
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def record_in(folder: Path) -> dict[str, Any]:
    """Return the record of the results in a folder, of several kinds the last."""
    content = json.loads((folder / "run.json").read_text())
    record: dict[str, Any] = content[[*content["holds"]][-1]]
    return record


def read_terminal(terminal: int) -> bytes:
    """Return what is left to read of a terminal whose other end is closed, and close it."""
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(terminal)
    return found
