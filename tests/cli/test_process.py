"""Commands in processes of their own: their streams, signals that end them, how they end."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headroles.cli import main
from headroles.interrupts import INTERRUPTED, TERMINATED
from tests.cli.conftest import copies_of, some_scores
from tests.commands import names, read_terminal, run

OUT = "Ergebnisse für später"


def test_success(bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headroles", "classify", str(bert_folder), str(treebank)]
    command += ["--out", str(tmp_path / OUT)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"written to " in done.stdout
    assert r"Ergebnisse f\xfcr sp\xe4ter" in done.stdout
    assert {"scores.parquet", "roles.csv"} < names(tmp_path / OUT)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("export nowhere >&-", "standard output is closed; let it go to a file or /dev/null"),
        ("--version >/dev/full", "no space is left: on the disk of the results, of standard"),
    ],
)
def test_output_that_cannot_be_written_is_an_error(words: str, message: str) -> None:
    command = f"exec {sys.executable} -m headroles {words}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ("WORLD_SIZE=x", "WORLD_SIZE"),
        ("WORLD_SIZE=2 RANK=x", "RANK"),
        ("WORLD_SIZE=2 RANK=0 LOCAL_RANK=x MASTER_ADDR=localhost MASTER_PORT=29499", "LOCAL_RANK"),
        ("WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 MASTER_ADDR=localhost MASTER_PORT=x", "MASTER_PORT"),
        ("TQDM_MININTERVAL=x", "TQDM_MININTERVAL"),
        ("HF_HUB_DOWNLOAD_TIMEOUT=x", "HF_HUB_DOWNLOAD_TIMEOUT"),
    ],
)
def test_a_variable_that_is_no_number_is_named(
    variables: str, name: str, bert_folder: Path, treebank: Path, tmp_path: Path
) -> None:
    if name.endswith(("RANK", "PORT")):
        pytest.importorskip("accelerate")
    command = [sys.executable, "-m", "headroles", "score", str(bert_folder), str(treebank)]
    environment = {**os.environ, **dict(entry.split("=") for entry in variables.split())}
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"error: the environment variable {name} is 'x', and a library needs a number there; "
        "correct it, or unset it\n",
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ("WORLD_SIZE=2", "WORLD_SIZE is 2, and MASTER_ADDR, the machine of the first process,"),
        ("WORLD_SIZE=2 RANK=1 MASTER_ADDR=", "WORLD_SIZE is 2, and MASTER_ADDR, the machine of"),
        ("WORLD_SIZE=2 RANK=2 MASTER_ADDR=localhost", "RANK is 2, and WORLD_SIZE is 2: processes"),
    ],
)
def test_processes_without_a_launcher(
    variables: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (entry.split("=") for entry in variables.split()):
        monkeypatch.setenv(name, value)
    done = run("score", "no-model", tmp_path, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert f"error: the environment variable {message}" in done.stderr
    assert done.stderr.endswith("with torchrun or accelerate launch, or unset WORLD_SIZE\n")
    assert done.stderr.count("\n") == 1


def test_a_process_that_waits_for_the_first_one_ends_at_a_signal(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    with socket.create_server(("localhost", 0)) as first:
        first.settimeout(120)
        variables = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost"}
        waiting = subprocess.Popen(
            [sys.executable, "-m", "headroles", "score", "no-model", tmp_path, "--out", tmp_path],
            env={**os.environ, **variables, "MASTER_PORT": str(first.getsockname()[1])},
            stderr=subprocess.PIPE,
        )
        try:
            first.accept()
            waiting.send_signal(signal.SIGTERM)
            assert waiting.wait(20) == -signal.SIGTERM
        finally:
            waiting.kill()


def test_the_date_of_figures_that_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_scores().save(tmp_path / "scores")
    assert run("assign", tmp_path / "scores").exit_code == 0
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "x")
    done = run("figure", tmp_path / "scores", "--out", tmp_path / "x.svg")
    assert done.stderr.startswith("error: the environment variable SOURCE_DATE_EPOCH is 'x', and")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)


def test_python_without_docstrings(bert_folder: Path, treebank: Path) -> None:
    """Help works, and a library that cannot do without them is named."""
    command = [sys.executable, "-OO", "-m", "headroles", "score"]
    helped = subprocess.run([*command, "--help-all"], capture_output=True, text=True, check=True)
    assert "Replace results in the folder." in helped.stdout
    command += [str(bert_folder), str(treebank), "--out", "unwritten"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: Python removes docstrings (PYTHONOPTIMIZE=2, or python ")
    assert done.stderr.count("\n") == 1


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


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED), (signal.SIGHUP, TERMINATED)],
)
@pytest.mark.parametrize(
    "module", ["headroles.cli", "headroles.cli.flags", "headroles.scoring.run", "torch._utils"]
)
def test_a_signal_while_modules_load(
    number: signal.Signals, code: int, module: str, sample: Path, tmp_path: Path
) -> None:
    arguments = ["score", "nowhere", str(sample), "--out", str(tmp_path / OUT)]
    found, said = ended_by(STOPS_IN.format(module=module, arguments=arguments), number)
    assert found == code
    assert re.fullmatch(r"interrupted.*\n", said)
    assert names(tmp_path) == set()


def test_a_signal_while_scoring(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    """Ctrl-C, sent when the bar shows that examples were scored."""
    corpus = copies_of(sample, 20, tmp_path)
    command = [sys.executable, "-m", "headroles", "classify", str(bert_folder), str(corpus)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / OUT)], stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        shown = b""
        while not re.search(rb"[1-9]\d*/2800", shown):
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        stdout = process.communicate()[0]
    shown += read_terminal(ours)
    assert (process.returncode, stdout) == (130, "")
    assert re.search(rb"interrupted: (\d+ parts? of the work .* --resume|nothing was)", shown)
    assert b"Traceback" not in shown


def test_a_signal_while_the_process_leaves() -> None:
    script = """
import atexit, sys, time
from headroles.__main__ import main
atexit.register(lambda: print("ready", flush=True) or time.sleep(60))
sys.argv = ["headroles", "--version"]
main()
"""
    assert ended_by(script, signal.SIGTERM) == (-signal.SIGTERM, "")


def test_a_command_ends_while_an_idle_pool_is_still_open() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor; from headroles import interrupts; "
        "pool = ThreadPoolExecutor(1); pool.submit(int).result(); interrupts.leave(3)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 3


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
    command = [sys.executable, "-c", AT_THE_END, option]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert {"thread", "at exit"} <= set(done.stdout.splitlines())
    assert ("Usage" in done.stdout) == (code == 0)


@pytest.mark.parametrize("wanted", [{}, {"THP_MEM_ALLOC_ENABLE": "0"}])
def test_large_pages_unless_the_user_decided(
    wanted: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(wanted))
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)
    monkeypatch.setitem(main.__globals__, "app", lambda: None)
    main()
    assert os.environ == {"THP_MEM_ALLOC_ENABLE": "1", **wanted}
