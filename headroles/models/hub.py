"""Calls of transformers without its reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as transformers_logging


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars and load reports; their relevant content is checked and raised."""
    bars, level = (
        transformers_logging.is_progress_bar_enabled(),
        transformers_logging.get_verbosity(),
    )
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
