"""Differences between machines: scores and answers by instruction sets and threads.

python -m benchmarks.processors MODEL TREEBANK [--out DIR]

Scores the treebank in a process of its own for every setting, which stands in for another
processor, and prints a Markdown table that compares each with the first: the largest differences of
scores, of contrasts, and of both relative to the sums behind them; how many answers differ; and how
near to the threshold the heads of these are, in standard errors of their means. With --out it only
scores the treebank into a folder, as each of these processes does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from headroles import HeadScores, assign_roles, read_conllu, score_heads
from tests.rounding import sizes_of_scores

SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "ATen default": {"ATEN_CPU_CAPABILITY": "default"},
    "ATen AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "oneDNN SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "oneDNN AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "MKL SSE4.2": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "MKL AVX2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "all three at their oldest, 2 threads": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OMP_NUM_THREADS": "2",
    },
}
"""Variables of the environment; where nothing else is said, one thread."""


def compare(first: HeadScores, other: HeadScores) -> str:
    """Return the cells of the table's row of ``other``."""
    difference = np.abs(first.values.astype(np.float64) - other.values)
    contrasts = np.array([role.endswith(":beyond_offset") for role in first.role_ids])
    relative = difference / np.maximum(sizes_of_scores(first), np.finfo(np.float32).tiny)
    tables = [assign_roles(scores).frame for scores in (first, other)]
    differ = (tables[0]["answer"] != tables[1]["answer"]).to_numpy()
    errors = tables[0]["sd"] / np.sqrt(tables[0]["n"])
    distances = (np.abs(tables[0]["mean"] - tables[0]["threshold"]) / errors)[differ]
    means = np.abs(tables[0]["mean"] - tables[1]["mean"]).max()
    cells = [
        f"{np.nanmax(difference[..., ~contrasts]):.1e}",
        f"{np.nanmax(difference[..., contrasts]):.1e}",
        f"{np.nanmax(relative):.1e}",
        f"{means:.1e}",
        f"{differ.sum()} of {len(differ)}",
        ", ".join(f"{one:.2f}" for one in distances) or "-",
    ]
    return " | ".join(cells)


def main() -> None:
    """Score in processes of their own, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--out", type=Path, help="score into this folder, and end")
    given = parser.parse_args()
    if given.out:
        score_heads(given.model, read_conllu(given.treebank), device="cpu").save(given.out)
        return
    print("| setting | scores | contrasts | relative | means | answers | standard errors away |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    first: HeadScores | None = None
    with tempfile.TemporaryDirectory() as work:
        for place, (name, variables) in enumerate(SETTINGS.items()):
            out = Path(work) / str(place)
            command = [sys.executable, "-m", "benchmarks.processors", given.model, given.treebank]
            environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
            subprocess.run([*map(str, command), "--out", out], env=environment, check=True)
            scores = HeadScores.load(out)
            first = first or scores
            print(f"| {name} | {compare(first, scores)} |", flush=True)


if __name__ == "__main__":
    main()
