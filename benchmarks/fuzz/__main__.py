"""Damaged treebanks, folders, task files, options, roles of users and names.

python -m benchmarks.fuzz [--only models,results] [--times 1000] [--seed 0] [--processes 2]

A damaged folder may give the result of a good one, or an error that names a remedy. A traceback,
more than a minute, or a changed table that is read as it stands is a finding.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from benchmarks.fuzz import FINDING
from benchmarks.fuzz.surfaces import SURFACES, go_over


def main() -> None:
    """Print a table of surfaces with their findings and seconds; exit 1 for any finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SURFACES), help="names of surfaces, with commas")
    parser.add_argument("--times", type=int, help="attempts at each; left out: as many as usual")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"  # of the processes: nobody is asked for damaged names
    os.environ["OMP_NUM_THREADS"] = "1"  # threads wait for each other on a busy machine, minutes
    findings, began = 0, time.perf_counter()
    print(f"{'surface':10} {'cases':>6} {'findings':>8} {'seconds':>8}  outcomes", flush=True)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.processes, spawn) as pool:
        jobs = [
            pool.submit(go_over, name, asked.times, asked.seed) for name in asked.only.split(",")
        ]
        for job in as_completed(jobs):
            name, times, outcomes, seconds = job.result()
            found = outcomes.pop(FINDING, 0)
            shown = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
            print(f"{name:10} {times:6} {found:8} {seconds:8.0f}  {shown}", flush=True)
            findings += found
    print(f"{findings} findings in {time.perf_counter() - began:.0f} s")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
