"""Batches by length, and smaller ones where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headroles.errors import ModelError
from headroles.passes.loop import Budget, Passes, gradients_of_mean


@dataclass
class Rows:
    indices: list[int]


def passes_of(lengths: Sequence[int], tokens: int) -> Passes[Rows]:
    return Passes(lengths, Rows, lambda row: f"the example {row}", Budget(tokens))


def run(passes: Passes[Rows], read: Callable[[Rows], int]) -> list[list[int]]:
    return [batch.indices for batch, _ in passes.run(passes.batches(), read)]


class Scarce:
    """Memory for so many examples at once; more of them raise an error."""

    def __init__(self, most: int, error: BaseException) -> None:
        self.most, self.error, self.refused = most, error, 0

    def __call__(self, batch: Rows) -> int:
        if len(batch.indices) > self.most:
            self.refused += 1
            raise self.error
        return len(batch.indices)


OUT_OF_MEMORY = (
    "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory",
    *("MPS backend out of memory", "could not create a primitive", "can't start new thread"),
    "unable to mmap 9 bytes from file </m>: Cannot allocate memory (12)",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
)
LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=40)


@given(LENGTHS, st.integers(1, 3000))
def test_batches_hold_all_examples_the_longest_first(lengths: list[int], tokens: int) -> None:
    batches = Budget(tokens).batches(lengths)
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths, reverse=True)
    for batch in batches:
        width = lengths[batch[0]]
        assert len(batch) == 1 or len(batch) * width * max(1, width / 64) <= tokens


@given(LENGTHS, st.integers(1, 3000), st.integers(1, 5))
def test_every_example_is_read_once_whatever_memory_there_is(
    lengths: list[int], tokens: int, most: int
) -> None:
    passes, scarce = passes_of(lengths, tokens), Scarce(most, torch.OutOfMemoryError())
    read = run(passes, scarce)
    assert max(map(len, read)) <= most
    assert [row for rows in read for row in rows] == [
        row for batch in Budget(tokens).batches(lengths) for row in batch
    ]


def test_what_did_not_fit_is_not_tried_again() -> None:
    passes, scarce = passes_of([10] * 64, 160), Scarce(4, torch.OutOfMemoryError())
    assert run(passes, scarce) == [list(range(row, row + 4)) for row in range(0, 64, 4)]
    assert scarce.refused == 2  # sixteen, then eight
    assert passes.budget.tokens == 40
    assert len(passes.batches()[0].indices) == 4


@pytest.mark.parametrize(
    "error",
    [
        *(torch.OutOfMemoryError("CUDA out of memory"), MemoryError()),
        *map(RuntimeError, OUT_OF_MEMORY),
    ],
)
def test_lack_of_memory_on_every_device(error: BaseException) -> None:
    assert len(run(passes_of([8] * 8, 64), Scarce(3, error))) == 4


def test_other_errors_stay_what_they_are_and_an_example_too_many_is_named() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        run(passes_of([8] * 8, 64), Scarce(3, RuntimeError("shapes cannot be multiplied")))
    with pytest.raises(ModelError, match=r"for the example 2 alone \(9 tokens\); use a device"):
        run(passes_of([5, 7, 9], 64), Scarce(0, torch.OutOfMemoryError()))


def test_progress_counts_examples_whatever_memory_there_is() -> None:
    reported: list[tuple[int, int]] = []
    passes = passes_of([10] * 12, 60)
    read = passes.over_all(Scarce(4, torch.OutOfMemoryError()), lambda *one: reported.append(one))
    assert sum(found for _, found in read) == 12
    assert reported == [(n, 12) for n in (3, 6, 9, 12)]


@pytest.mark.parametrize("most", [1, 2, 5, 7])
def test_gradients_over_parts_are_those_of_the_whole(most: int) -> None:
    """Seven examples in parts of several sizes: each counts by how many it has."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    weights, idle = torch.ones(5, dtype=torch.float64, requires_grad=True), torch.ones(2)
    idle.requires_grad_()

    def losses_of(batch: Rows) -> torch.Tensor:
        if len(batch.indices) > most:
            raise torch.OutOfMemoryError
        return (inputs[batch.indices] @ weights).tanh()

    passes = passes_of([10] * 7, 70)
    batches = [Rows([0, 1, 2, 3, 4]), Rows([5, 6])]
    loss, (found, none) = gradients_of_mean(passes, batches, losses_of, [weights, idle])
    expected = (inputs @ weights).tanh().mean()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(found, torch.autograd.grad(expected, weights)[0])
    assert none is None
    assert weights.grad is None
