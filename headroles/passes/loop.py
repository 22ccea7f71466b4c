"""The loop over batches of examples, the choice of their size, and their way to the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.encoding import EncodedExample, collate
from headroles.errors import ModelError, lacks_memory
from headroles.models.loading.encoder import LoadedModel
from headroles.passes.options import OnProgress, Progress

_LINEAR_WIDTH = 64
_TOKENS = {"cpu": 1024, "cuda": 65536, "mps": 8192}


class HasIndices(Protocol):
    """Examples that run together."""

    @property
    def indices(self) -> list[int]:
        """Their indices among all examples."""


B = TypeVar("B", bound=HasIndices)
R = TypeVar("R")


@dataclass
class Budget:
    """Largest number of ``tokens`` of a batch, padding included; reduced when memory runs out."""

    tokens: int

    @classmethod
    def for_device(cls, device: torch.device, tokens: int | None) -> Budget:
        """Allow that many tokens, by default as many as fit the device."""
        return cls(tokens or _TOKENS.get(device.type, 4096))

    def most(self, width: int) -> int:
        """Return how many examples of ``width`` tokens a batch may have, at least one.

        Beyond ``_LINEAR_WIDTH`` tokens the number falls faster than 1 / width, as the quadratic
        cost of attention then dominates.
        """
        return max(1, int(self.tokens / _cost(width)))

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Group examples of these lengths into batches of similar length, the longest first.

        The longest come first because the memory that they allocate serves all others.
        """
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        batches: list[list[int]] = []
        while order:
            n = self.most(lengths[order[0]])
            batches.append(order[:n])
            order = order[n:]
        return batches

    def halve(self, n: int, width: int) -> None:
        """Halve the limit from now on: memory ran out for ``n`` examples of ``width`` tokens."""
        torch.cuda.empty_cache()
        self.tokens = min(self.tokens, max(1, ceil(n // 2 * _cost(width))))


def _cost(width: int) -> float:
    return width * max(1.0, width / _LINEAR_WIDTH)


@dataclass(frozen=True)
class Passes(Generic[B]):
    """Runner of a model over batches of examples.

    ``lengths`` are those of all examples in tokens. ``make`` makes a batch of the examples at some
    indices, and ``name`` returns the name of the example at an index.
    """

    lengths: Sequence[int]
    make: Callable[[list[int]], B]
    name: Callable[[int], str]
    budget: Budget

    def batches(self) -> list[B]:
        """Return batches of all examples, the longest first."""
        return [self.make(indices) for indices in self.budget.batches(self.lengths)]

    def over_all(
        self, read: Callable[[B], R], on_progress: OnProgress | None = None
    ) -> Iterator[tuple[B, R]]:
        """Run over all examples; ``on_progress`` is called with the number of examples done."""
        report, done = Progress(on_progress, len(self.lengths)), 0
        for batch, result in self.run(self.batches(), read):
            done += len(batch.indices)
            report(done)
            yield batch, result

    def run(self, batches: Iterable[B], read: Callable[[B], R]) -> Iterator[tuple[B, R]]:
        """Yield batches with the results of ``read``; if memory runs out, yield halves instead.

        ``read`` must have no side effects before it returns: it may be called again with halves.

        Raises ModelError if memory does not suffice for a single example.
        """
        for whole in batches:
            waiting = [whole]
            while waiting:
                batch = waiting.pop()
                n, width = len(batch.indices), max(self.lengths[index] for index in batch.indices)
                if n > self.budget.most(width):
                    waiting += map(self.make, (batch.indices[n // 2 :], batch.indices[: n // 2]))
                elif (tried := self._tried(batch, read)) is not None:
                    yield batch, tried[0]
                elif n == 1:
                    raise ModelError(
                        f"memory ran out for {self.name(batch.indices[0])} alone ({width} tokens); "
                        "use a device with more memory (`device='cpu'`), or remove the long text"
                    )
                else:
                    self.budget.halve(n, width)
                    waiting.append(batch)

    def _tried(self, batch: B, read: Callable[[B], R]) -> tuple[R] | None:
        """Return the result of ``read``, None if memory ran out; its memory is then free again."""
        try:
            return (read(batch),)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error):
                raise
        return None


@dataclass(frozen=True)
class ExampleBatch:
    """Examples that run together: their indices among all, and the inputs of the model."""

    indices: list[int]
    examples: list[EncodedExample]
    inputs: dict[str, Tensor]


def passes_over(
    examples: Sequence[EncodedExample], encoder: LoadedModel, budget: Budget
) -> Passes[ExampleBatch]:
    """Return the passes that run the encoder over these examples."""

    def make(indices: list[int]) -> ExampleBatch:
        of_batch = [examples[index] for index in indices]
        arrays = collate(of_batch, encoder.tokenizer.pad_token_id or 0)
        inputs = as_tensors(arrays, encoder.device)
        return ExampleBatch(indices, of_batch, on_device(inputs, encoder.device))

    return Passes(
        [len(example) for example in examples],
        make,
        lambda index: f"the example {examples[index].id!r}",
        budget,
    )


def gradients_of_mean(
    passes: Passes[B],
    batches: Sequence[B],
    losses_of: Callable[[B], Tensor],
    leaves: Sequence[Tensor],
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the mean loss of all examples, and its gradient by each of ``leaves``.

    Each batch counts by its number of examples: up to rounding, the result is that of one large
    batch. The gradient is None for a leaf that the losses do not depend on. Raises ModelError as
    `Passes.run`.
    """
    n_examples = sum(len(batch.indices) for batch in batches)

    def read(batch: B) -> tuple[Tensor, Sequence[Tensor | None]]:
        loss = losses_of(batch).mean() * (len(batch.indices) / n_examples)
        return loss.detach(), torch.autograd.grad(loss, leaves, allow_unused=True)

    total: Any = 0
    sums: list[Tensor | None] = [None] * len(leaves)
    for _, (loss, gradients) in passes.run(batches, read):
        total = total + loss
        sums = [
            added if summed is None else summed if added is None else summed + added
            for summed, added in zip(sums, gradients, strict=True)
        ]
    return total, sums


def as_tensors(value: Any, device: torch.device) -> Any:
    """Convert every array in ``value`` to a tensor on the CPU, pinned for fast transfer."""

    def convert(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            item = torch.from_numpy(np.ascontiguousarray(item))
        return item.pin_memory() if device.type == "cuda" and isinstance(item, Tensor) else item

    return _changed(value, convert)


def on_device(value: Any, device: torch.device) -> Any:
    """Move every tensor in ``value`` to ``device``; the copies may finish after the return."""
    if device.type == "cpu":
        return value  # where tensors are made
    return _changed(
        value, lambda item: item.to(device, non_blocking=True) if isinstance(item, Tensor) else item
    )


def to_host(value: Tensor) -> Callable[[], NDArray[Any]]:
    """Start copying ``value`` to the CPU; the returned function waits for this copy alone."""
    if value.device.type != "cuda":
        return lambda: value.cpu().numpy()
    copy = value.to("cpu", non_blocking=True)  # such copies go to pinned memory
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    arrived.record(torch.cuda.current_stream(value.device))

    def wait() -> NDArray[Any]:
        # a plain copy would also wait for all work given to the device since
        arrived.synchronize()
        return copy.numpy()

    return wait


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply ``change`` to everything in the dataclasses, tuples and mappings of ``value``."""
    if isinstance(value, tuple):
        return tuple(_changed(item, change) for item in value)
    if isinstance(value, dict):
        return {name: _changed(item, change) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        content = {field.name: getattr(value, field.name) for field in fields(value)}
        return replace(value, **_changed(content, change))
    return change(value)
