"""Role tables of many examples: time and memory of tests of stored scores.

python -m benchmarks.many_examples [--examples 10000 100000 1000000] [--layers 12] [--heads 12]
    [--roles 21] [--per-document 10]

Scores are drawn and saved block by block. For each number of examples a row: seconds of reading and
testing them; how many scores that makes in a second; and the peak memory of the process beyond what
it held before, in MiB, with pages of files that the system may take back.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.memory import forget_peak, peak_memory
from headroles.record import ScoresRecord
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.scoring.scores import HeadScores, describe_scores, write_scores
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.options import AssignOptions

BLOCK = 192
RELATIONS = tuple("nsubj obj iobj obl advmod amod nmod det case mark conj".split())
CPU = torch.device("cpu")


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--roles", type=int, default=21)
    parser.add_argument("--per-document", type=int, default=10)
    given = parser.parse_args()
    print(f"{'examples':>10} {'tests':>6} {'seconds':>9} {'scores/s':>12} {'MiB':>6}")
    for n_examples in given.examples:
        with tempfile.TemporaryDirectory() as folder:
            Drawn(n_examples, given).save(Path(folder))
            forget_peak(CPU)
            before = peak_memory(CPU)
            start = time.perf_counter()
            table = assign_roles(HeadScores.load(folder), AssignOptions())
            seconds = time.perf_counter() - start
        n_scores = n_examples * len(table)
        print(
            f"{n_examples:10} {len(table):6} {seconds:9.1f} {n_scores / seconds:12.0f} "
            f"{peak_memory(CPU) - before:6.0f}",
            flush=True,
        )


class Drawn:
    """Scores that are drawn as they are saved."""

    def __init__(self, n_examples: int, given: argparse.Namespace) -> None:
        self._n_examples, self._per_document = n_examples, given.per_document
        self._score = SCORES["excess"]
        chosen = choose_roles(RoleOptions(roles=["syntactic"]), RELATIONS, self._score)
        self._roles = [role for role in chosen if role.baseline is None][: given.roles]
        if len(self._roles) < given.roles:
            raise SystemExit(f"there are {len(self._roles)} roles only; pass --roles fewer")
        self._shape = (given.layers, given.heads)

    def save(self, folder: Path) -> None:
        """Write the scores into an existing folder."""
        n, n_roles = self._n_examples, len(self._roles)
        record = ScoresRecord.now(
            **describe_scores(self._roles, self._score, *self._shape),
            examples=n,
            scores=n * n_roles * self._shape[0] * self._shape[1],
        )
        blocks = (self._draw(first, min(BLOCK, n - first)) for first in range(0, n, BLOCK))
        write_scores(folder, blocks, is_half=False, record=lambda: record)

    def _draw(self, first: int, n: int) -> HeadScores:
        """Draw scores that are skewed, and above 0 in about half of the heads."""
        rng, shape = np.random.default_rng(first), (n, *self._shape, len(self._roles))
        shift = np.linspace(-0.2, 0.2, shape[1] * shape[2]).reshape(1, *shape[1:3], 1)
        values = np.clip(rng.random(shape, dtype=np.float32) ** 2 - 1 / 3 + shift, -0.5, 1)
        numbers = range(first, first + n)
        return HeadScores(
            ids=tuple(f"s-{number}" for number in numbers),
            documents=tuple(f"d-{number // self._per_document}" for number in numbers),
            roles=tuple(self._roles),
            score=self._score,
            lengths=np.full(n, 20),
            values=values.astype(np.float32),
            counts=np.ones((n, len(self._roles)), dtype=np.int64),
            bounds=np.broadcast_to(np.float32([-0.5, 1]), (n, len(self._roles), 2)),
        )


if __name__ == "__main__":
    main()
