"""Access to the hub: finds out within seconds whether it can be reached."""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

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
    return _is_reachable(place.hostname or "", port)


@functools.cache
def _is_reachable(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True
