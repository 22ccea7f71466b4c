"""A quick end of commands, and large pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headroles.memory import ask_for_large_pages


def test_large_pages_unless_the_user_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    ask_for_large_pages()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    os.environ["THP_MEM_ALLOC_ENABLE"] = "0"
    ask_for_large_pages()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"


AT_THE_END = """
import atexit, ctypes, gc, os, sys, threading
import headroles.__main__ as start
from tests.commands import run

class Bound:  # as objects of extensions may be: alone, in a cycle
    def __init__(self):
        self.me = self

    def __del__(self, end=os._exit):
        end(0)

# as an extension looks, at the very end, whether all of its objects are gone
ctypes.pythonapi.Py_AtExit(ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p))
gc.disable()  # until the end
Bound()
atexit.register(print, "at exit")
threading.Thread(target=lambda: threading.main_thread().join(1) or print("thread")).start()
sys.argv = ["headroles", *sys.argv[1:]]
start.main()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs the C library")
@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--no-such", 2)])
def test_a_command_ends_at_once_and_leaks_nothing(option: str, code: int) -> None:
    """In processes of their own, as it is the whole process that ends."""
    command = [sys.executable, "-c", AT_THE_END, option]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert {"thread", "at exit"} <= set(done.stdout.splitlines())
    assert ("Usage" in done.stdout) == (code == 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_cannot_be_written_is_an_error() -> None:
    command = [sys.executable, "-m", "headroles", "--version"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0
    assert done.stderr
