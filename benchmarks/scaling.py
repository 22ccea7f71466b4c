"""Gain of several processes over one, from their start to the end of the last one.

python -m benchmarks.scaling --model DIR --treebank FILE [FILE ...] [--processes 2] [--rounds 3]

alone      one process of one thread
started    --processes of one thread each, started at once with the environment that launchers set
torchrun   the same, started by torchrun, which imports PyTorch itself before it starts them

They take turns; a ratio compares neighbours. All must write the same bits to `scores.parquet`.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--treebank", nargs="+", required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "headroles", "score", arguments.model, *arguments.treebank]
        measure([*command, "--out", folder], arguments.processes, arguments.rounds)


def measure(command: list[str], n_processes: int, rounds: int) -> None:
    """Print the seconds of all three ways, and how many times as fast the last two are."""
    ways: dict[str, Callable[[list[str]], None]] = {
        "alone": alone,
        "started": lambda command: started(command, n_processes),
        "torchrun": lambda command: by_torchrun(command, n_processes),
    }
    scores = Path(command[-1]) / "scores.parquet"
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    written = set()
    for _ in range(rounds):
        for way, run in ways.items():
            start = time.perf_counter()
            run([*command, "--overwrite"])
            seconds[way].append(time.perf_counter() - start)
            written.add(scores.read_bytes())
    assert len(written) == 1, "the ways wrote different scores"
    for way, values in seconds.items():
        ratios = [one / other for one, other in zip(seconds["alone"], values, strict=True)]
        least, middle, most = min(ratios), statistics.median(ratios), max(ratios)
        print(f"{way:9} {statistics.median(values):7.2f} s   ", end="")
        print(f"{least:.2f} - {middle:.2f} - {most:.2f} times as fast", flush=True)


def alone(command: list[str]) -> None:
    """Time one process."""
    _run([sys.executable, *command])


def by_torchrun(command: list[str], n_processes: int) -> None:
    """Time several processes, by PyTorch's launcher."""
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={n_processes}"]
    _run([sys.executable, *launcher, f"--master-port={_free_port()}", *command])


def started(command: list[str], n_processes: int) -> None:
    """Time several processes, as the launcher of a cluster starts them."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    running = [
        subprocess.Popen(
            [sys.executable, *command],
            env={
                **ONE_THREAD,
                **common,
                "WORLD_SIZE": str(n_processes),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(n_processes)
    ]
    codes = [process.wait() for process in running]
    assert not any(codes), f"processes ended with exit codes {codes}"


def _run(command: list[str]) -> None:
    subprocess.run(command, env=ONE_THREAD, check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
