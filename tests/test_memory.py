"""Freed memory is given back when there is much of it, and only then."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headroles import memory
from headroles.memory import HeldMemory, lacks_memory
from tests.commands import run


@pytest.fixture
def resident(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Resident memory as the test wants it, and how often holes were given back."""
    state = {"bytes": 100, "trims": 0}

    def trim(pad: int) -> int:
        state["trims"] += 1
        state["bytes"] = 110
        return 1

    monkeypatch.setattr(memory, "resident_memory", lambda: state["bytes"])
    monkeypatch.setattr(memory, "_find_trim", lambda: trim)
    return state


def test_little_growth_is_left_alone(resident: dict[str, int]) -> None:
    held = HeldMemory(slack=50)
    resident["bytes"] = 150
    held.release()
    assert resident["trims"] == 0


def test_much_growth_is_given_back_once(resident: dict[str, int]) -> None:
    held = HeldMemory(slack=50)
    resident["bytes"] = 151
    held.release()
    held.release()
    assert resident["trims"] == 1
    resident["bytes"] = 161  # the new base is what was left: 110
    held.release()
    assert resident["trims"] == 2


def test_large_pages_unless_the_user_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    memory.ask_for_large_pages()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "1"
    os.environ["THP_MEM_ALLOC_ENABLE"] = "0"
    memory.ask_for_large_pages()
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


def test_garbage_of_commands_is_looked_for_rarely() -> None:
    script = "import gc, headroles.memory as memory; memory.collect_rarely();"
    script += "print(gc.get_threshold()[0])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"100000\n"


def test_systems_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_find_trim", lambda: None)
    monkeypatch.setattr(memory, "resident_memory", lambda: 10**12)
    HeldMemory(slack=0).release()


def test_resident_memory_is_that_of_this_process() -> None:
    before = memory.resident_memory()
    block = mmap.mmap(-1, 64 * 2**20)  # new pages, whatever the allocator has at hand
    block.write(b"x" * len(block))
    assert memory.resident_memory() == 0 or memory.resident_memory() > before + 32 * 2**20


@pytest.mark.parametrize(
    "message",
    [
        "unable to mmap 69568832 bytes from file </m>: Cannot allocate memory (12)",
        "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory",
        "could not create a primitive",
        "can't start new thread",
    ],
)
def test_words_for_a_lack_of_memory(message: str) -> None:
    assert lacks_memory(RuntimeError(message))
    assert lacks_memory(ImportError("libtorch_cpu.so: failed to map segment from shared object"))
    assert not lacks_memory(RuntimeError("shapes do not fit"))


def test_a_limit_below_the_libraries_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they fail in many ways, and one of them never returns."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    done = run("score", "model", "t.conllu", "--out", "scores")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: memory of this process is limited to 1024 MiB, and the")
    assert len(done.stderr.splitlines()) == 1
