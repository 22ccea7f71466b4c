"""Commands as a user runs them, and the folders that they fill."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
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


def follow(transcript: str, places: Mapping[str, object]) -> None:
    """Run the commands of a transcript, with places in capital letters.

    Each line is a command and, after ``=>``, phrases of its output in their order, with dots
    between them. A command that fails has its exit code in front, and leaves everything unchanged;
    ``ls`` lists the files of a folder.
    """
    for line in transcript.strip().splitlines():
        for name, place in places.items():
            line = re.sub(rf"\b{name}\b", str(place), line)
        command, _, expected = line.partition("=>")
        code, *words = shlex.split(command if command[0].isdigit() else f"0 {command}")
        if words[0] == "ls":
            assert names(Path(words[1])) == {*expected.split()}, line
            continue
        there = contents(Path(str(places["OUT"])))
        done = run(*words) if code != "0" else run_well(*words)
        assert done.exit_code == int(code), done.output
        assert code == "0" or contents(Path(str(places["OUT"]))) == there, line
        phrases = (re.escape(" ".join(phrase.split())) for phrase in expected.split("..."))
        assert re.search(".*".join(phrases), " ".join(done.output.split())), (line, done.output)


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
