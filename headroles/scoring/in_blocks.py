"""Scores that are too many to be held at once: block by block, as often as asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.errors import StorageError
from headroles.roles import SCORES, Role, Score
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import read_blocks

MOST_AT_ONCE = 2**28
"""Scores that are held at once: 1 GiB, and several times as much while they are tested."""


@dataclass(frozen=True)
class ScoresInBlocks:
    """Scores as `HeadScores` has them; ``blocks`` gives those of some examples at a time."""

    roles: tuple[Role, ...]
    n_layers: int
    n_heads: int
    score: Score
    blocks: Callable[[], Iterator[ScoreBlock]]
    provenance: dict[str, Any] = field(default_factory=dict)

