"""Progress bars in notebooks, where nothing else shows that a long run continues."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from headroles.passes.options import PassOptions

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
