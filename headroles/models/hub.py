"""Whether the hub can be reached, found out in seconds instead of by repeated attempts."""

from __future__ import annotations

import functools
import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

_SECONDS = 3.0


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
