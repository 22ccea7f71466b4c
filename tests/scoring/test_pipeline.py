"""Work done one step ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Executor

import pytest

from headroles.scoring.pipeline import one_ahead


def test_items_come_in_their_order_and_one_is_made_while_another_is_used() -> None:
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(4):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    coming = one_ahead(lambda _: items())
    assert made == []
    assert next(coming) == 0
    assert second.wait(10)
    assert len(made) == 2  # and no more than one
    assert list(coming) == [1, 2, 3]


def test_other_work_for_an_item_comes_before_the_next_item() -> None:
    done: list[str] = []

    def items(worker: Executor) -> Iterator[int]:
        for number in range(2):
            worker.submit(done.append, f"work for {number}")
            done.append(f"item {number}")
            yield number

    assert list(one_ahead(items)) == [0, 1]
    assert done == ["item 0", "work for 0", "item 1", "work for 1"]


def test_what_fails_ahead_fails_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    coming = one_ahead(lambda _: items())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="broken"):
        next(coming)


def test_no_thread_is_left_when_nobody_goes_on() -> None:
    coming = one_ahead(lambda _: iter(range(10)))
    assert next(coming) == 0
    coming.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("headroles-ahead")]
