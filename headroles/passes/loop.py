"""The loop over batches, and how large batches may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Generic, Protocol, TypeVar

import torch

from headroles.errors import ModelError
from headroles.memory import HeldMemory, lacks_memory
from headroles.passes.options import OnProgress
from headroles.passes.progress import Progress

_LINEAR_WIDTH = 64
_TOKENS = {"cpu": 1024, "cuda": 65536, "mps": 8192}
_MEMORY_SLACK = 64 * 2**20  # what is given back has to be asked for again


class Batch(Protocol):
    """Examples that are run together."""

    @property
    def rows(self) -> list[int]:
        """Their places among all examples."""


B = TypeVar("B", bound=Batch)
R = TypeVar("R")


@dataclass
class Budget:
    """The most ``tokens`` of a batch, padding included; fewer once memory ran out."""

    tokens: int
    held_memory: HeldMemory = field(default_factory=lambda: HeldMemory(_MEMORY_SLACK))

    @classmethod
    def of(cls, device: torch.device, asked: int | None) -> Budget:
        """As many tokens as are asked for, or what fits the device."""
        return cls(asked or _TOKENS.get(device.type, 4096))

    def most(self, width: int) -> int:
        """How many examples of ``width`` tokens a batch may have, one at least.

        Of examples longer than ``_LINEAR_WIDTH`` fewer, as attention then outweighs what is linear
        in the tokens.
        """
        return max(1, int(self.tokens / _cost(width)))

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Places of examples of these lengths in batches of about equal length, the longest first.

        With the longest first, what they needed serves all others.
        """
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        batches: list[list[int]] = []
        while order:
            n = self.most(lengths[order[0]])
            batches.append(order[:n])
            order = order[n:]
        return batches

    def halve(self, n: int, width: int) -> None:
        """Allow half of ``n`` examples of ``width`` tokens from now on, as memory ran out."""
        torch.cuda.empty_cache()
        self.tokens = min(self.tokens, max(1, ceil(n // 2 * _cost(width))))


def _cost(width: int) -> float:
    return width * max(1.0, width / _LINEAR_WIDTH)


@dataclass(frozen=True)
class Passes(Generic[B]):
    """Runs a model over batches of examples.

    ``lengths`` are those of all examples in tokens. ``make`` makes a batch of the examples at some
    rows, and ``name`` tells which one is at a row.
    """

    lengths: Sequence[int]
    make: Callable[[list[int]], B]
    name: Callable[[int], str]
    budget: Budget

    def batches(self) -> list[B]:
        """All examples, the longest first."""
        return [self.make(rows) for rows in self.budget.batches(self.lengths)]

    def over_all(
        self, read: Callable[[B], R], on_progress: OnProgress | None = None
    ) -> Iterator[tuple[B, R]]:
        """`run` over all examples; ``on_progress`` is told how many of them are done."""
        tell, done = Progress(on_progress, len(self.lengths)), 0
        for batch, found in self.run(self.batches(), read):
            done += len(batch.rows)
            tell(done)
            yield batch, found

    def run(self, batches: Iterable[B], read: Callable[[B], R]) -> Iterator[tuple[B, R]]:
        """Batches with what is ``read`` of them; where memory runs out, halves come instead.

        ``read`` must change nothing outside before it is done: it may be called again with halves.

        Raises ModelError where memory does not suffice for a single example.
        """
        for batch in batches:
            waiting = [batch]
            while waiting:
                one = waiting.pop()
                if self._is_too_large(one):
                    middle = len(one.rows) // 2
                    halves = (one.rows[middle:], one.rows[:middle])
                    waiting += [self.make(rows) for rows in halves]
                    continue
                found = self._tried(one, read)
                if found is None:
                    self._shrink(one)
                    waiting.append(one)
                    continue
                yield one, found[0]
                self.budget.held_memory.release()

    def _tried(self, batch: B, read: Callable[[B], R]) -> tuple[R] | None:
        """What is read, None where memory ran out: all that was held for it is free then."""
        try:
            return (read(batch),)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
        return None

    def _width(self, batch: B) -> int:
        return max(self.lengths[row] for row in batch.rows)

    def _is_too_large(self, batch: B) -> bool:
        return len(batch.rows) > self.budget.most(self._width(batch))

    def _shrink(self, batch: B) -> None:
        width = self._width(batch)
        if len(batch.rows) == 1:
            raise ModelError(
                f"memory ran out for {self.name(batch.rows[0])} alone ({width} tokens); use a "
                "device with more memory (--device cpu), or leave so long a text out"
            )
        self.budget.halve(len(batch.rows), width)
