"""Studies of removed heads that resume after an interruption."""

from __future__ import annotations

import hashlib
from typing import Any

from headroles.models.loading.encoder import LoadedEncoder
from headroles.passes.saved_batches import SavedBatches
from headroles.record import versions
from headroles.storage import OpenParts
from headroles.studies.importance.options import RunOptions
from headroles.tasks.running import TaskRun


def keep_parts(
    study: str, options: RunOptions, encoder: LoadedEncoder, *runs: TaskRun | None
) -> OpenParts | None:
    """Let ``runs`` save finished batches, if ``options`` name a folder; return the open folder.

    Saved batches serve only the same study, with the same options, weights, configuration,
    tokenizer, examples, targets and versions. Raises StorageError for a folder of other settings.
    """
    if options.parts is None:
        return None
    opened_runs = [run for run in runs if run is not None]
    opened = options.parts.open(
        {
            "study": study,
            "options": options.record(),
            **encoder.identity,
            "device": encoder.device.type,
            **{f"task {n}": _described(run) for n, run in enumerate(opened_runs, start=1)},
            "versions": versions(),
        }
    )
    for run in opened_runs:
        run.saved = SavedBatches(opened)
    return opened


def _described(run: TaskRun) -> dict[str, Any]:
    """Identify the examples and targets of a run, by the model's names of labels."""
    return {
        "examples": len(run.task),
        "sha256": run.task.digest,
        "objective": run.objective,
        "targets": hashlib.blake2b(run.targets.tobytes(), digest_size=16).hexdigest(),
    }
