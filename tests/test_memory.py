"""Freed memory is given back when there is much of it, and only then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headroles import memory
from headroles.memory import HeldMemory


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


def test_a_command_spends_no_second_on_cleaning_up() -> None:
    """In a process of its own, as it is for the whole process."""
    script = (
        "import gc, headroles.memory as memory; memory.collect_rarely();"
        "import atexit; print(gc.get_threshold()[0], gc.get_freeze_count());"
        "atexit._run_exitfuncs(); print(gc.get_freeze_count() > 1000)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert shown.stdout.split() == [b"100000", b"0", b"True"]


def test_systems_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_find_trim", lambda: None)
    monkeypatch.setattr(memory, "resident_memory", lambda: 10**12)
    HeldMemory(slack=0).release()


def test_resident_memory_is_that_of_this_process() -> None:
    before = memory.resident_memory()
    block = bytearray(64 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    assert memory.resident_memory() == 0 or memory.resident_memory() > before + 32 * 2**20
