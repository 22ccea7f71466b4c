"""Damaged folders, task files, options, roles of users and names: an answer or an error.

Run: python -m benchmarks.fuzz [--only models,results] [--times 1000] [--seed 0]

What comes of a damaged folder may be what comes of a good one, or an error that names a cure. A
traceback, more than a minute, or a table that was changed and is believed is a finding.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import fuzz_commands, fuzz_folders, fuzz_inputs, fuzz_sent
from benchmarks.fuzzing import FINDING, go_through

SURFACES = {
    **fuzz_folders.SURFACES,
    **fuzz_inputs.SURFACES,
    **fuzz_commands.SURFACES,
    **fuzz_sent.SURFACES,
}


def main() -> None:
    """Print a table of surfaces with their findings and seconds of this process; exit 1 for any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(SURFACES), help="names of surfaces, with commas")
    parser.add_argument("--times", type=int, help="attempts at each; left out: as many as usual")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    findings = 0
    print(f"{'surface':10} {'cases':>6} {'findings':>8} {'seconds':>8}  outcomes")
    for name in asked.only.split(","):
        times = asked.times or SURFACES[name].times
        with tempfile.TemporaryDirectory() as place:
            attempt = SURFACES[name].prepare(Path(place))
            start = time.process_time()
            outcomes = go_through(attempt, times, asked.seed, goes_on=True)
        found, seconds = outcomes.pop(FINDING, 0), time.process_time() - start
        shown = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
        print(f"{name:10} {times:6} {found:8} {seconds:8.0f}  {shown}", flush=True)
        findings += found
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
