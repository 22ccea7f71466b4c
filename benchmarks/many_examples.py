"""Role tables of many examples: time and memory of tests from blocks of scores.

python -m benchmarks.many_examples [--examples 10000 100000 1000000] [--layers 12] [--heads 12]
    [--roles 21] [--per-document 10]

Scores are drawn, block by block, the same ones in both readings. For each number of examples a row:
seconds of the tests, without those of drawing; how many scores that makes in a second; and the peak
memory of the process beyond what it held before, in MiB.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.memory import forget_peak, peak_memory
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.scoring import ScoreBlock, ScoresInBlocks
from headroles.studies import AssignOptions, assign_in_blocks

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
        drawn = Drawn(n_examples, given)
        forget_peak(CPU)
        before = peak_memory(CPU)
        start = time.perf_counter()
        table = assign_in_blocks(drawn.scores, AssignOptions())
        seconds = time.perf_counter() - start - drawn.seconds
        n_scores = n_examples * len(table)
        print(
            f"{n_examples:10} {len(table):6} {seconds:9.1f} {n_scores / seconds:12.0f} "
            f"{peak_memory(CPU) - before:6.0f}",
            flush=True,
        )


class Drawn:
    """Scores that are drawn as they are read, and the seconds that this took."""

    def __init__(self, n_examples: int, given: argparse.Namespace) -> None:
        self._n_examples, self._per_document = n_examples, given.per_document
        score = SCORES["excess"]
        chosen = choose_roles(RoleOptions(roles=["syntactic"]), RELATIONS, score)
        roles = tuple(role for role in chosen if role.baseline is None)[: given.roles]
        if len(roles) < given.roles:
            raise SystemExit(f"there are {len(roles)} roles only; pass --roles {len(roles)}")
        self.scores = ScoresInBlocks(roles, given.layers, given.heads, score, self._blocks)
        self.seconds = 0.0

    def _blocks(self) -> Iterator[ScoreBlock]:
        for first in range(0, self._n_examples, BLOCK):
            start = time.perf_counter()
            block = self._draw(first, min(BLOCK, self._n_examples - first))
            self.seconds += time.perf_counter() - start
            yield block

    def _draw(self, first: int, n: int) -> ScoreBlock:
        """Scores that are skewed, and above 0 in about half of the heads."""
        rng, scores = np.random.default_rng(first), self.scores
        shape = (n, scores.n_layers, scores.n_heads, len(scores.roles))
        shift = np.linspace(-0.2, 0.2, shape[1] * shape[2]).reshape(1, *shape[1:3], 1)
        values = np.clip(rng.random(shape, dtype=np.float32) ** 2 - 1 / 3 + shift, -0.5, 1)
        numbers = range(first, first + n)
        return ScoreBlock(
            ids=[f"s-{number}" for number in numbers],
            documents=[f"d-{number // self._per_document}" for number in numbers],
            lengths=np.full(n, 20),
            values=values.astype(np.float32),
            counts=np.ones((n, len(scores.roles)), dtype=np.int64),
            bounds=np.broadcast_to(np.float32([-0.5, 1]), (n, len(scores.roles), 2)),
        )


if __name__ == "__main__":
    main()
