"""Work done one step ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator

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

    coming = one_ahead(items())
    assert made == []
    assert next(coming) == 0
    assert second.wait(10)
    assert len(made) == 2  # and no more than one
    assert list(coming) == [1, 2, 3]


def test_what_fails_ahead_fails_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    coming = one_ahead(items())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="broken"):
        next(coming)


def test_no_thread_is_left_when_nobody_goes_on() -> None:
    coming = one_ahead(iter(range(10)))
    assert next(coming) == 0
    coming.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("headroles-ahead")]
