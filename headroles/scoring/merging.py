"""Merging of the scores of separately scored parts of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.record import Record, RecordedPart, ScoreFacts
from headroles.scoring.scores import HeadScores, is_rounded, read_blocks, write_scores


class _Run(NamedTuple):
    """A folder of scores of a part, with its record."""

    folder: Path
    record: Record
    part: RecordedPart


def merge_scores(folders: Sequence[str | Path], staging: Path) -> Record:
    """Write the scores of a corpus into ``staging``, from the folders of all its parts.

    Scores and record equal those of one run over the whole corpus, to the bit, except for the date
    and the command. Memory does not grow with the number of examples. Returns the record.

    Raises:
        UsageError: folders of different runs, or a part that is missing or given twice.
        StorageError: a folder that cannot be read, or that headroles did not write.
    """
    runs = _in_order([_open(storage.committed(Path(folder))) for folder in folders])
    merged = _merged(runs)
    return write_scores(staging, _interleaved(runs), is_rounded(merged), lambda: merged)


def _open(folder: Path) -> _Run:
    """Read the record of a folder of scores of a part. Raises UsageError for other scores."""
    record = HeadScores.read_record(folder)
    try:
        part = ScoreFacts.read(record.facts).part
    except msgspec.ValidationError as error:
        raise StorageError(f"{folder} cannot be merged: its record: {error}") from error
    if part is None:
        raise UsageError(
            f"{folder} holds scores of a whole corpus; give folders made with: "
            "headroles score --part 1/N"
        )
    return _Run(folder, record, part)


def _in_order(runs: list[_Run]) -> list[_Run]:
    """Order runs by the numbers of their parts. Raises UsageError unless they fit together."""
    first, by_number = runs[0], dict[int, _Run]()
    for run in runs:
        if found := storage.differences(_settings(first), _settings(run)):
            raise UsageError(
                f"{first.folder} and {run.folder} are not parts of one run: {found}; give parts of "
                "one run"
            )
        number = run.part.number
        if number in by_number:
            raise UsageError(f"{by_number[number].folder} and {run.folder} both hold part {number}")
        by_number[number] = run
    missing = [str(number) for number in range(1, first.part.of + 1) if number not in by_number]
    if missing:
        raise UsageError(
            f"of {first.part.of} parts of the corpus {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    return [run for _, run in sorted(by_number.items())]


def _settings(run: _Run) -> dict[str, Any]:
    shape = {"layers": run.record.model.layers, "heads": run.record.model.heads}
    return {**run.part.plan, "parts": run.part.of, **shape}


def _interleaved(runs: list[_Run]) -> Iterator[HeadScores]:
    """Yield scores in corpus order; the windows were dealt out to the parts in turn."""
    readers = [read_blocks(run.folder, run.record) for run in runs]
    for sizes in zip_longest(*(run.part.sizes for run in runs), fillvalue=0):
        for run, reader, size in zip(runs, readers, sizes, strict=True):
            if not size:
                continue
            block = next(reader, None)
            if block is None or block.n_examples != size:
                raise StorageError(
                    f"{run.folder} does not hold its windows one by one; score that part again"
                )
            yield block


def _merged(runs: list[_Run]) -> Record:
    """Return the record of a run over the whole corpus."""
    first, now = runs[0].record, Record.now()
    others = []
    for run in runs[1:]:
        # what was skipped in reading the corpus counts once
        skipped = Counter(run.record.corpus.skipped) - Counter(run.part.skipped)
        corpus = structs.replace(run.record.corpus, skipped=dict(skipped))
        others.append(structs.replace(run.record, corpus=corpus))
    facts = {name: fact for name, fact in first.facts.items() if name != "part"}
    whole = structs.replace(first, created=now.created, command=now.command, facts=facts)
    return whole.plus(*others)
