"""Progress in notebooks, where nothing else shows that a long run goes on."""

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
    """``options`` with a bar for progress, if a notebook asks and nothing else is to show it."""
    if options.on_progress is not None or "ipykernel" not in sys.modules:
        yield options
        return
    from tqdm import tqdm

    # As text: widgets need a package of their own, and warn where it is missing.
    with tqdm(unit=f" {unit}", leave=False, mininterval=0.5) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield replace(options, on_progress=report)
