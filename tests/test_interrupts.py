"""Signals that end a process, also one that does not want to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headroles.interrupts import INTERRUPTED, NOTHING, TERMINATED, signals_wait

SWALLOWS = """
import time
from headroles import interrupts
interrupts.handle_signals()
with interrupts.described_when_interrupted(lambda: "two parts are kept"):
    ready = False
    while True:
        try:
            if not ready:
                ready = not print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
HEEDS = """
import time
from headroles import interrupts
interrupts.handle_signals()
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt as stop:
    interrupts.say_interrupted("all is kept")
    interrupts.end("never said")
"""


def end(script: str, number: signal.Signals) -> tuple[int, str, float]:
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        start = time.perf_counter()
        process.send_signal(number)
        message = process.communicate()[1]
        return process.returncode, message, time.perf_counter() - start


AFTER_THE_END = """
import sys, time
from headroles import interrupts, storage
from headroles.cli.console import reports_errors
interrupts.handle_signals()
@reports_errors
def command():
    with storage.result_folder(sys.argv[1]) as staging:
        storage.write_run(staging, {}, {})
    print("ready", flush=True)
    time.sleep(60)
command()
"""


def test_results_in_their_place_are_reported(tmp_path: Path) -> None:
    script = f"import sys; sys.argv = ['', {str(tmp_path / 'out')!r}]\n{AFTER_THE_END}"
    message = end(script, signal.SIGTERM)[1]
    assert message.startswith(
        f"interrupted: the results in {tmp_path / 'out'} are the new ones, and "
    )


CLEANS_UP_FOR_LONG = """
import time
from headroles import interrupts
interrupts.handle_signals()
try:
    with interrupts.described_when_interrupted(lambda: "a part is kept"):
        print("ready", flush=True)
        time.sleep(60)
finally:
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (SWALLOWS, "two parts are kept"),
        (HEEDS, "all is"),
        (CLEANS_UP_FOR_LONG, "a part is kept"),
    ],
)
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, INTERRUPTED),
        (signal.SIGTERM, TERMINATED),
        (signal.SIGHUP, TERMINATED),
    ],
)
def test_one_line_and_the_end(script: str, message: str, number: signal.Signals, code: int) -> None:
    found, said, seconds = end(script, number)
    assert found == code
    assert said.startswith(f"interrupted: {message}")
    assert said.count("\n") == 1
    assert seconds < 10  # 0.6 on a machine with nothing else to do


def test_ignored_signals_stay_ignored() -> None:
    script = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + HEEDS.replace(
        'print("ready", flush=True)', 'signal.raise_signal(signal.SIGHUP); print("ready", flush=1)'
    )
    assert end(script, signal.SIGINT)[0] == INTERRUPTED


def test_before_anything_is_imported() -> None:
    """The command is stopped on its way into headroles.cli."""
    script = """
import sys, headroles.__main__ as start
class Stops:
    def find_spec(self, name, path=None, target=None):
        if name == "headroles.cli":
            print("ready", flush=True)
            import time; time.sleep(60)
sys.meta_path.insert(0, Stops())
start.main()
"""
    code, said, _ = end(script, signal.SIGTERM)
    assert (code, said) == (TERMINATED, f"interrupted: {NOTHING}\n")


def test_signals_wait_for_the_end_of_the_block() -> None:
    done = []

    def work() -> None:
        with signals_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
