"""Writing of blocks of scores to the files of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.record import Record
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.options import HALF
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import ScoreWriter


def write_scores(
    folder: Path,
    blocks: Iterable[ScoreBlock],
    role_ids: Sequence[str],
    provenance: dict[str, Any],
) -> dict[str, Any]:
    """Write blocks into an existing folder as they come, and their provenance; return it.

    ``provenance`` may still grow while the blocks are made. Memory does not grow with their number,
    and the files are those of `HeadScores.save`.
    """
    with ScoreWriter(folder, role_ids, Record.read(provenance).rounded == HALF) as writer:
        for block in blocks:
            writer.write(block)
    files = storage.digests_of(folder, writer.files)
    storage.write_run(folder, provenance, {HeadScores.kind: files})
    return provenance
