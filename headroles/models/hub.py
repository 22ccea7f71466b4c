"""Where models are looked for: whether the hub can be reached is found out in seconds."""

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
    """What the libraries are told of where to look; without a connection, only among copies."""
    is_offline = not Path(source).exists() and not hub_answers()
    return {"revision": options.revision, "local_files_only": is_offline}


def hub_answers() -> bool:
    """Whether the hub can be asked for a model.

    The libraries that ask it try again for half a minute, with a message each time. Behind a
    proxy only they know the way, and are left to try.
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
