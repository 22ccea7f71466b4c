"""Merging of the scores of separately scored parts of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.record import RecordedPart, ScoresRecord
from headroles.scoring.scores import Counts, HeadScores, read_blocks, write_scores


class _Run(NamedTuple):
    """A folder of scores of a part, with its record."""

    folder: Path
    record: ScoresRecord
    part: RecordedPart


def merge_scores(folders: Sequence[str | Path], staging: Path) -> ScoresRecord:
    """Write the scores of a corpus into ``staging``, from the folders of all its parts.

    Scores and record equal those of one run over the whole corpus, to the bit, except for the date
    and the command. Memory does not grow with the number of examples. Returns the record.

    Raises:
        UsageError: folders of different runs, or a part that is missing or given twice.
        StorageError: a folder that cannot be read, or that headroles did not write.
    """
    runs = _in_order([_open(storage.committed(Path(folder))) for folder in folders])
    merged = _merged(runs)
    return write_scores(staging, _interleaved(runs), bool(merged.rounded), lambda: merged)


def _open(folder: Path) -> _Run:
    """Read the record of a folder of scores of a part. Raises UsageError for other scores."""
    record = ScoresRecord.extending(HeadScores.read_record(folder))
    if record.part is None:
        raise UsageError(
            f"{folder} holds scores of a whole corpus; give folders made with: "
            "headroles score --part 1/N"
        )
    return _Run(folder, record, record.part)


def _in_order(runs: list[_Run]) -> list[_Run]:
    """Order runs by the numbers of their parts. Raises UsageError unless they fit together."""
    first = runs[0]
    for run in runs[1:]:
        if found := storage.differences(_settings(first), _settings(run)):
            raise UsageError(
                f"{first.folder} and {run.folder} are not parts of one run: {found}; give parts of "
                "one run"
            )
    known: dict[int, Path] = {}
    for run in runs:
        number = run.part.number
        if number in known:
            raise UsageError(f"{known[number]} and {run.folder} both hold part {number}")
        known[number] = run.folder
    missing = [str(number) for number in range(1, first.part.of + 1) if number not in known]
    if missing:
        raise UsageError(
            f"of {first.part.of} parts of the corpus {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    return sorted(runs, key=lambda run: run.part.number)


def _settings(run: _Run) -> dict[str, Any]:
    shape = {"layers": run.record.layers, "heads": run.record.heads}
    return {**run.part.plan, "parts": run.part.of, **shape}


def _interleaved(runs: list[_Run]) -> Iterator[HeadScores]:
    """Yield scores in corpus order; the windows were dealt out to the parts in turn."""
    readers = [read_blocks(run.folder, run.record) for run in runs]
    n_windows = sum(len(run.part.sizes) for run in runs)
    for window in range(n_windows):
        turn, place = window % len(runs), window // len(runs)
        run = runs[turn]
        if not run.part.sizes[place]:
            continue
        block = next(readers[turn], None)
        if block is None or block.n_examples != run.part.sizes[place]:
            raise StorageError(
                f"{run.folder} does not hold its windows one by one; score that part again"
            )
        yield block


def _merged(runs: list[_Run]) -> ScoresRecord:
    """Return the record of a run over the whole corpus."""
    first = runs[0].record
    pieces = {} if first.pieces is None else structs.asdict(first.pieces)
    counts = Counts(Counter(first.skipped), Counter(first.controls), Counter(pieces))
    for run in runs[1:]:
        counts.add(Counts.of(run.part.counts))
    now = ScoresRecord.now()
    return counts.put_into(
        structs.replace(first, created=now.created, command=now.command),
        sum(run.record.examples for run in runs),
        sum(run.record.scores for run in runs),
        part=None,
    )
