"""Options of running a model over examples, and reports of progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Annotated, TypeAlias, TypeVar

from msgspec import Meta

from headroles.models.options import ModelOptions
from headroles.options import CIRCUMSTANCE, NO_FLAG

OnProgress: TypeAlias = Callable[[int, int], None]
"""Function called with the amount of work done and the total amount."""


@dataclass(frozen=True, kw_only=True)
class PassOptions(ModelOptions):
    """Options of loading and running the model."""

    batch_tokens: Annotated[int | None, Meta(ge=1)] = None
    """Most tokens of a batch, padding included; left out: as many as fit the device.

    Batches get smaller where memory runs out.
    """
    on_progress: Annotated[OnProgress | None, NO_FLAG, CIRCUMSTANCE] = None
    """Called with the amount done and the total: sentences of a corpus; of a task, passes over a
    batch, or updates. The total of some studies changes as they go on.

    If left out, notebooks show a bar.
    """


Given = TypeVar("Given", bound=PassOptions)


@contextmanager
def shown_in_notebooks(options: Given, unit: str = "sentences") -> Iterator[Given]:
    """Yield ``options`` with a progress bar, in a notebook without ``on_progress``."""
    if options.on_progress is not None or "ipykernel" not in sys.modules:
        yield options
        return
    from tqdm import tqdm

    # a text bar: widgets need another package, and warn if it is missing
    with tqdm(unit=f" {unit}", leave=False, mininterval=0.5) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield replace(options, on_progress=report)


class Progress:
    """Report of work in one round or several, whose expected total may change.

    Work that is repeated for lack of memory counts once.
    """

    def __init__(self, on_progress: OnProgress | None, total: float = 0) -> None:
        self._on_progress = on_progress
        self._before, self._round, self._total, self._done = 0.0, float(total), float(total), 0

    def expect(self, amount: float) -> None:
        """Expect that much work after the present round."""
        self._total = self._before + self._round + amount

    def start(self, amount: float) -> Progress:
        """Begin the next round, which has that much work."""
        self._before, self._round, self._done = self._before + self._round, amount, 0
        self._total = max(self._total, self._before + amount)
        return self

    def share(self, amount: float) -> OnProgress:
        """Begin the next round, with that much work, and return its report in another unit."""
        self.start(amount)
        return lambda done, total: self(amount * done / total)

    def __call__(self, done: float) -> None:
        """Report ``done`` of this round, unless as much was reported before."""
        self._done = max(self._done, int(done))
        if self._on_progress is not None:
            self._on_progress(int(self._before + self._done), ceil(self._total))
