"""Studies of removed heads that go on where they were interrupted."""

from __future__ import annotations

from headroles.models import LoadedEncoder
from headroles.provenance import versions
from headroles.storage import OpenParts
from headroles.studies.removal.options import RunOptions
from headroles.tasks import KeptBatches, TaskRun

_OF_MODEL = ("model", "revision", "class", "dtype", "weights_sha256", "tokenizer")


def keep_parts(
    study: str, options: RunOptions, encoder: LoadedEncoder, *runs: TaskRun | None
) -> OpenParts | None:
    """Have those runs that there are keep the batches that are done, if a folder was named.

    A part is taken up again only by the same study, with the same options, of a model with the same
    weights and of the same examples, in the same versions. Gives the place for parts of another
    kind. Raises StorageError for a folder of another plan.
    """
    if options.parts is None:
        return None
    opened_runs = [run for run in runs if run is not None]
    opened = options.parts.open(
        {
            "study": study,
            "options": options.record(),
            "batch size": options.batch_size,
            "model": {name: encoder.description[name] for name in _OF_MODEL},
            "device": encoder.device.type,
            "tasks": [run.task.describe() for run in opened_runs],
            "versions": versions(),
        }
    )
    for run in opened_runs:
        run.kept = KeptBatches(opened)
    return opened
