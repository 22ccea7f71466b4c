"""Writing of blocks of scores to the files of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from headroles import storage
from headroles.record import ScoresRecord
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import ScoreWriter


def write_scores(
    folder: Path,
    blocks: Iterable[ScoreBlock],
    role_ids: Sequence[str],
    is_half: bool,
    record: Callable[[], ScoresRecord],
) -> ScoresRecord:
    """Write blocks into an existing folder as they come, then their record; return it.

    ``record`` is called when all blocks are written. Memory does not grow with their number, and
    the files are those of `HeadScores.save`.
    """
    with ScoreWriter(folder, role_ids, is_half) as writer:
        for block in blocks:
            writer.write(block)
    files = storage.digests_of(folder, writer.files)
    made = record()
    storage.write_run(folder, made, {HeadScores.kind: files})
    return made
