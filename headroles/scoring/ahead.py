"""Work that a thread does one step ahead."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield ``items`` unchanged, making the next one while the caller uses the current one.

    An error raised by ``items`` is raised at the place of that item.
    """
    end = object()
    with ThreadPoolExecutor(1, "headroles-ahead") as worker:
        coming = worker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, items, end)
            yield cast(T, item)
