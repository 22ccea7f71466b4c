"""Calls of transformers and the hub: without their reports, and without long waits."""

from __future__ import annotations

import functools
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from transformers.utils import logging as transformers_logging

from headroles.models.options import ModelOptions

_SECONDS = 3.0


def where_to_look(source: str | Path, options: ModelOptions) -> dict[str, Any]:
    """Return loading options of the libraries; without a connection, only local copies are used."""
    is_offline = not Path(source).exists() and not hub_answers()
    return {"revision": options.revision, "local_files_only": is_offline}


def hub_answers() -> bool:
    """Tell whether the hub can be asked for a model.

    The libraries themselves retry for half a minute, with a message each time. Behind a proxy only
    the libraries know the way, so the answer is yes.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    place = urlsplit(constants.ENDPOINT)
    port = place.port or (80 if place.scheme == "http" else 443)
    return is_reachable(place.hostname or "", port)


@functools.cache
def is_reachable(host: str, port: int) -> bool:
    """Tell whether a host answers; it is asked once."""
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True


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
