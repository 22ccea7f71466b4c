"""Pipeline from windows to results, in which the device need not wait for other work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

from headroles.corpus import Example
from headroles.encoding import ExampleEncoder
from headroles.scoring.block_scoring import BlockScorer, LaunchedBlock, PreparedBlock
from headroles.scoring.blocks import Counts, SavedWindows, ScoredWindow
from headroles.scoring.windows import Window

T = TypeVar("T")


def one_ahead(items_by: Callable[[Executor], Iterator[T]]) -> Iterator[T]:
    """Yield the items of an iterator, making the next one while the caller uses the current one.

    ``items_by`` makes the iterator. It is given the only thread in which items are made, which does
    other work for an item before it makes the next one. An error that the iterator raises is raised
    at the place of that item.
    """
    end = object()
    with ThreadPoolExecutor(1, "headroles-ahead") as worker:
        items = items_by(worker)
        coming = worker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, items, end)
            yield cast(T, item)


@dataclass(frozen=True)
class PreparedWindow:
    """A window with its block, if any example is left, or its saved result if ``known``."""

    window: Window
    counts: Counts
    block: PreparedBlock | None
    known: ScoredWindow | None = None


@dataclass(frozen=True)
class WindowScorer:
    """Scorer of one window after the other; ``report`` is called with the sentences done."""

    pieces: ExampleEncoder
    scorer: BlockScorer
    is_rounded: bool
    report: Callable[[int], None]

    def score(
        self,
        windows: Iterable[tuple[Window, list[Example]]],
        saved: SavedWindows,
        done: Callable[[], int] = lambda: 0,
    ) -> Iterator[tuple[Window, ScoredWindow]]:
        """Yield each window with its result, and save the result.

        While one batch is computed, the next ones of its window are prepared, and then the next
        window is prepared; a window is fetched once the next is launched. ``done`` returns how many
        sentences all processes have done, if there are several.
        """
        waiting: tuple[PreparedWindow, LaunchedBlock | None] | None = None
        n_launched = 0
        for prepared in one_ahead(partial(self._prepared, windows, saved)):
            launched = self._launched(prepared, max(n_launched, done()))
            n_launched += prepared.window.n_sentences
            if waiting is not None:
                yield self._fetched(*waiting, saved)
            waiting = prepared, launched
        if waiting is not None:
            yield self._fetched(*waiting, saved)

    def _prepared(
        self,
        windows: Iterable[tuple[Window, list[Example]]],
        saved: SavedWindows,
        worker: Executor,
    ) -> Iterator[PreparedWindow]:
        for window, examples in windows:
            if (known := saved.find(window.number)) is not None:
                yield PreparedWindow(window, Counts(), None, known)
            else:
                yield self.prepare(window, examples, worker)

    def prepare(
        self, window: Window, examples: list[Example], worker: Executor | None = None
    ) -> PreparedWindow:
        """Cut examples into word pieces and prepare their batches; a ``worker`` does so later."""
        counts = Counts()
        self.pieces.counts.clear()
        encoded = self.pieces.encode(examples, counts.skipped)
        counts.pieces.update(self.pieces.counts)
        block = self.scorer.prepare(encoded, worker) if encoded else None
        return PreparedWindow(window, counts, block)

    def _launched(self, prepared: PreparedWindow, before: int) -> LaunchedBlock | None:
        window, block = prepared.window, prepared.block
        if block is None:
            return None
        n_examples = len(block.examples)
        return self.scorer.launch(
            block, lambda done: self.report(before + window.n_sentences * done // n_examples)
        )

    def _fetched(
        self, prepared: PreparedWindow, launched: LaunchedBlock | None, saved: SavedWindows
    ) -> tuple[Window, ScoredWindow]:
        if prepared.known is not None:
            return prepared.window, prepared.known
        scored = self.fetch(prepared, launched)
        saved.write(prepared.window.number, scored)
        return prepared.window, scored

    def fetch(self, prepared: PreparedWindow, launched: LaunchedBlock | None) -> ScoredWindow:
        """Wait for the scores of a window and return its result."""
        block = None if launched is None else self.scorer.fetch(launched, prepared.counts)
        if block is not None and self.is_rounded:
            block = block.rounded()
        return ScoredWindow(block, prepared.counts)
