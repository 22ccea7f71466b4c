"""Studies of removed heads that go on where they were interrupted."""

from __future__ import annotations

from headroles.studies.removal.options import ResumableOptions
from headroles.tasks import KeptBatches, TaskRun

_OF_MODEL = ("model", "revision", "class", "dtype", "weights_sha256", "tokenizer")


def keep_parts(study: str, options: ResumableOptions, *runs: TaskRun) -> None:
    """Have runs keep the batches that are done, if a folder for them was named.

    A batch is taken up again only by the same study, with the same options, of a model with the
    same weights and of the same examples, in the same versions. Raises StorageError for a folder of
    another one.
    """
    if options.parts is None:
        return
    records = [run.provenance(run.options) for run in runs]
    opened = options.parts.open(
        {
            "study": study,
            "options": options.record(),
            "batch size": options.batch_size,
            "model": {name: records[0]["model"][name] for name in _OF_MODEL},
            "device": records[0]["options"]["device"],
            "tasks": [run.task.describe() for run in runs],
            "versions": records[0]["versions"],
        }
    )
    for run in runs:
        run.kept = KeptBatches(opened)
