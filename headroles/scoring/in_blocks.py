"""Scores that are too many to be held at once: block by block, as often as asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headroles.roles import Role, Score
from headroles.scoring.blocks import ScoreBlock


@dataclass(frozen=True)
class ScoresInBlocks:
    """Scores as `HeadScores` has them; ``blocks`` gives those of some examples at a time."""

    roles: tuple[Role, ...]
    n_layers: int
    n_heads: int
    score: Score
    blocks: Callable[[], Iterator[ScoreBlock]]
    provenance: dict[str, Any] = field(default_factory=dict)
