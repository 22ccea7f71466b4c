"""Work that is done one step ahead, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; while one is used, the next one is made.

    What making an item raises is raised where that item would come.
    """
    end = object()
    with ThreadPoolExecutor(1, "headroles-ahead") as worker:
        coming = worker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, items, end)
            yield cast(T, item)
