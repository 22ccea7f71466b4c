"""Time of `headroles classify` as a whole process, beside a script of the forward pass.

python -m benchmarks.process --model DIR --treebank FILE [--rounds 3]

The script is `benchmarks.forward`. Both take turns; a ratio compares two neighbours.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Parse the command line and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    measure_processes(arguments.model, arguments.treebank, arguments.rounds)


def measure_processes(model: str, treebank: Path, rounds: int = 3) -> None:
    """Print the seconds of both processes and their ratio: least, median and most."""
    forward, classify = [], []
    with tempfile.TemporaryDirectory() as folder:
        scoring = ["headroles", "classify", model, str(treebank), "--out", f"{folder}/out"]
        for _ in range(rounds):
            forward.append(seconds_of(["benchmarks.forward", model, str(treebank)]))
            classify.append(seconds_of([*scoring, "--overwrite"]))
    ratios = [one / other for one, other in zip(classify, forward, strict=True)]
    for name, values in (("forward, s", forward), ("classify, s", classify), ("ratio", ratios)):
        print(f"{name:12} {min(values):.2f} - {statistics.median(values):.2f} - {max(values):.2f}")


def seconds_of(module: list[str]) -> float:
    """Return the wall time of ``python -m`` with these arguments."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", *module], check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
