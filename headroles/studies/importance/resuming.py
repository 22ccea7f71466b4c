"""Studies of removed heads that go on where they were interrupted."""

from __future__ import annotations

import hashlib
from typing import Any

from headroles.models.loading import LoadedEncoder
from headroles.passes.saved_batches import SavedBatches
from headroles.record import versions
from headroles.storage import OpenParts
from headroles.studies.importance.options import RunOptions
from headroles.tasks.running import TaskRun


def keep_parts(
    study: str, options: RunOptions, encoder: LoadedEncoder, *runs: TaskRun | None
) -> OpenParts | None:
    """Have those runs that there are keep the batches that are done, if a folder was named.

    A part is taken up again only by the same study, with the same options, of a model with the same
    weights, configuration and tokenizer, and of the same examples with the same targets, in the
    same versions. Gives the place for parts of another kind. Raises StorageError for a folder of
    other settings.
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
    """Describe the question of a run to its model, with the model's own names of labels."""
    return {
        "examples": len(run.task),
        "sha256": run.task.digest,
        "objective": run.objective,
        "targets": hashlib.blake2b(run.targets.tobytes(), digest_size=16).hexdigest(),
    }
