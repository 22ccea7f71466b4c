"""Batches by length, and what becomes of them where memory runs out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headroles.errors import ModelError
from headroles.passes import Budget, Passes


@dataclass
class Rows:
    rows: list[int]


def passes_of(lengths: Sequence[int], tokens: int) -> Passes[Rows]:
    return Passes(lengths, Rows, lambda row: f"the example {row}", Budget(tokens))


def run(passes: Passes[Rows], read: Callable[[Rows], int]) -> list[list[int]]:
    return [batch.rows for batch, _ in passes.run(passes.batches(), read)]


class Scarce:
    """Memory for so many examples at once; more of them raise an error."""

    def __init__(self, most: int, error: BaseException) -> None:
        self.most, self.error, self.refused = most, error, 0

    def __call__(self, batch: Rows) -> int:
        if len(batch.rows) > self.most:
            self.refused += 1
            raise self.error
        return len(batch.rows)


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
    assert len(passes.batches()[0].rows) == 4


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory"
        ),
        RuntimeError("MPS backend out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=["cuda", "python", "cpu", "mps", "cublas"],
)
def test_lack_of_memory_on_every_device(error: BaseException) -> None:
    assert len(run(passes_of([8] * 8, 64), Scarce(3, error))) == 4


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        run(passes_of([8] * 8, 64), Scarce(3, RuntimeError("shapes cannot be multiplied")))


def test_a_single_example_too_many_is_named_with_a_cure() -> None:
    with pytest.raises(ModelError, match=r"for the example 2 alone \(9 tokens\); use a device"):
        run(passes_of([5, 7, 9], 64), Scarce(0, torch.OutOfMemoryError()))
