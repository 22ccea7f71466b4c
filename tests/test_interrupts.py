"""Signals that end a command, wherever it is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headroles.interrupts import INTERRUPTED, TERMINATED

STOPS_IN = """
import sys
class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("ready", flush=True)
            import time; time.sleep(60)
sys.meta_path.insert(0, Stops())
from headroles.__main__ import main
sys.argv = ["headroles", *{arguments!r}]
main()
"""


def test_a_signal_while_the_process_leaves() -> None:
    script = """
import atexit, sys, time
from headroles.__main__ import main
atexit.register(lambda: print("ready", flush=True) or time.sleep(60))
sys.argv = ["headroles", "--version"]
main()
"""
    code, said = ended_by(script, signal.SIGTERM)
    assert (code, said) == (-signal.SIGTERM, "")


def test_standard_output_that_is_closed() -> None:
    command = f"exec {sys.executable} -m headroles export nowhere >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: standard output is closed; let it go to a file or /dev/null\n"


def ended_by(script: str, number: signal.Signals) -> tuple[int, str]:
    """Return the exit code and the words of a process that gets a signal once it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    return process.returncode, said


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, INTERRUPTED),
        (signal.SIGTERM, TERMINATED),
        (signal.SIGHUP, TERMINATED),
    ],
)
@pytest.mark.parametrize(
    "module", ["headroles.cli", "headroles.cli.flags", "headroles.scoring.run"]
)
def test_a_command_ends(
    number: signal.Signals, code: int, module: str, sample: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["score", "nowhere", str(sample), "--out", str(out)]
    found, said = ended_by(STOPS_IN.format(module=module, arguments=arguments), number)
    assert found == code
    assert said.startswith("interrupted")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_command_ends_while_an_idle_pool_is_still_open() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor; from headroles import memory; "
        "pool = ThreadPoolExecutor(1); pool.submit(int).result(); memory.leave(3)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 3
