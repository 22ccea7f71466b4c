"""Scores too many to be in memory at once, read block by block as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.errors import StorageError
from headroles.record import Record, ScoresRecord
from headroles.roles import SCORES, Role, Score
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import SCORES_FILE, read_blocks

MOST_AT_ONCE = 2**28
"""Largest number of scores in memory: 1 GiB, and several times as much during tests."""


@dataclass(frozen=True)
class ScoresInBlocks:
    """Scores as in `HeadScores`; each call of ``blocks`` yields them some examples at a time."""

    roles: tuple[Role, ...]
    n_layers: int
    n_heads: int
    score: Score
    blocks: Callable[[], Iterator[ScoreBlock]]
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> Record:
        """The provenance by its types."""
        return Record.read(self.provenance)

    @classmethod
    def of_folder(cls, folder: Path, provenance: dict[str, Any]) -> ScoresInBlocks:
        """Open the scores stored in a folder, with the ``provenance`` of its ``run.json``."""
        roles = tuple(map(Role.from_record, provenance["roles"]))
        record = ScoresRecord.read(provenance)
        score, heads = SCORES[record.score], (record.layers, record.heads)
        ids = [role.id for role in roles]

        def blocks() -> Iterator[ScoreBlock]:
            try:
                yield from read_blocks(folder, ids, heads, score)
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise StorageError(
                    f"{folder / SCORES_FILE} does not match {storage.RUN_FILE} beside it "
                    f"({error!r}); score again"
                ) from error

        return cls(roles, *heads, score, blocks, provenance)


def open_scores(folder: str | Path) -> HeadScores | ScoresInBlocks:
    """Open the scores in a folder: all at once, or block by block if they are too many.

    Raises StorageError as `HeadScores.load`.
    """
    folder = Path(folder)
    provenance = HeadScores.read_record(folder)
    if ScoresRecord.read(provenance).scores > MOST_AT_ONCE:
        return ScoresInBlocks.of_folder(folder, provenance)
    return HeadScores.read_files(folder, provenance)
