"""All kinds of input that are damaged, each tried in a process of its own."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzz import (
    attention,
    bitexts,
    commands,
    corpora,
    folders,
    go_through,
    lies,
    spacing,
)

MODULES = (corpora, spacing, commands, folders, lies, attention, bitexts)
SURFACES = {name: surface for each in MODULES for name, surface in each.SURFACES.items()}


def go_over(name: str, times: int | None, seed: int) -> tuple[str, int, Counter[str], float]:
    """Try a surface: return it, its attempts, what became of them, and the processor seconds."""
    times = times or SURFACES[name].times
    start = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        attempt = SURFACES[name].prepare(Path(place))
        outcomes = go_through(attempt, times, seed, goes_on=True)
    return name, times, outcomes, time.process_time() - start
