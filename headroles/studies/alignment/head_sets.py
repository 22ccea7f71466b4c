"""Heads that align words together, and what stands for a word without a link. Cheap to import."""

from __future__ import annotations

from typing import NamedTuple

from headroles.models.heads.remaining import Head

NO_LINK = -1


class HeadSet(NamedTuple):
    """Heads whose attention is averaged, by weights or by norms."""

    measure: str
    heads: tuple[Head, ...]
