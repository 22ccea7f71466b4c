"""Parts of a run: processes that score together, and parts of a corpus, scored apart and merged."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from headroles import storage
from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.interrupts import signals_end_at_once
from headroles.record import Record, RecordedPart, ScoreFacts
from headroles.scoring.options import CorpusPart
from headroles.scoring.scores import HeadScores, is_rounded, write_scores
from headroles.scoring.shares import Share, deal, put_together
from headroles.scoring.tables import Fields, read_row_groups
from headroles.storage import OpenParts, Parts

if TYPE_CHECKING:
    from headroles.scoring.windows import Window

_PATIENCE = timedelta(days=30)
"""Longest wait for other processes; one of them may be reading a large corpus."""


class TeamError(HeadRolesError):
    """Error: another process of the run has ended, or cannot be reached."""


@dataclass(frozen=True)
class Team:
    """One of several processes that a launcher started, such as torchrun or accelerate launch."""

    index: int
    count: int
    _state: Any

    def wait(self) -> None:
        """Wait until all processes wait. Raises TeamError if one of them has ended.

        A thread waits, so that this process can handle signals meanwhile.
        """
        failures: list[Exception] = []

        def wait() -> None:
            try:
                self._state.wait_for_everyone()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
        if failures:
            raise TeamError(
                f"another of the {self.count} processes of this run has ended early; see its "
                "message above or in its log"
            ) from failures[0]


def find_team() -> Team | None:
    """Find the processes that this one was started with; None if it runs alone.

    Raises UsageError for several processes without accelerate installed, or without what a launcher
    sets for them.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))  # as every launcher of PyTorch sets it
    if count < 2:
        return None
    _check_launched(count)
    try:
        from accelerate import PartialState
    except ImportError as error:
        raise UsageError(
            "several processes need accelerate, which is not installed; "
            "run: pip install 'accelerate>=1.10'"
        ) from error
    import torch

    # gloo runs on the CPU: processes only wait for one another, which must not occupy a device
    with signals_end_at_once():  # PyTorch waits for the other processes, and no Python code runs
        state = PartialState(cpu=not torch.cuda.is_available(), backend="gloo", timeout=_PATIENCE)
    return Team(state.process_index, state.num_processes, state)


def _check_launched(count: int) -> None:
    """Raise UsageError for one of ``count`` processes that could not find the others."""
    rank = int(os.environ.get("RANK", "0"))
    cure = "start the processes with torchrun or accelerate launch, or unset WORLD_SIZE"
    if not 0 <= rank < count:
        raise UsageError(
            f"the environment variable RANK is {rank}, and WORLD_SIZE is {count}: processes count "
            f"from 0 to {count - 1}; {cure}"
        )
    if not os.environ.get("MASTER_ADDR"):
        raise UsageError(
            f"the environment variable WORLD_SIZE is {count}, and MASTER_ADDR, the machine of the "
            f"first process, is not set; {cure}"
        )


@dataclass(frozen=True)
class Sharing:
    """The saved parts of a run and the processes that share it, each None if absent.

    Windows are dealt out (`deal`): to the parts of a corpus that are scored apart (``corpus_part``
    is that of this run), and those of a part to the processes of a ``team``, which all see the
    folder of the saved parts. The first process joins the saved shares of all.
    """

    parts: Parts | None = None
    team: Team | None = None
    corpus_part: CorpusPart | None = None

    @property
    def assists(self) -> bool:
        """Whether this process only scores for another one."""
        return self.team is not None and self.team.index > 0

    def of_run(self, windows: Iterator[Window]) -> Iterator[Share]:
        """Yield the shares of windows that belong to this run, window after window."""
        whole = map(Share, windows)
        part = self.corpus_part
        if part is None:
            return whole
        return filter(None, (taken[part.number - 1] for _, taken in deal(whole, part.of)))

    def of_processes(self, shares: Iterator[Share]) -> Iterator[tuple[Share, list[Share | None]]]:
        """Yield each share of the run with what each of its processes scores of it."""
        return deal(shares, 1 if self.team is None else self.team.count)

    @property
    def index(self) -> int:
        """The place of this process among those of the run."""
        return 0 if self.team is None else self.team.index

    def open(self, settings: Callable[[], dict[str, Any]]) -> OpenParts | None:
        """Open the saved windows of a run; None without ``parts``: windows are not saved.

        Raises StorageError for windows of other settings, or a process with other settings.
        """
        if self.parts is None:
            return None
        of_part = {} if self.corpus_part is None else {"part": vars(self.corpus_part)}
        if self.assists:
            self.wait()
            return self.parts.open({**settings(), **of_part}, is_first=False)
        opened = self.parts.open({**settings(), **of_part})
        self.wait()
        return opened

    def wait(self) -> None:
        """Wait until all processes wait, if there are several."""
        if self.team is not None:
            self.team.wait()

    def forget(self) -> None:
        """Remove the saved windows, which a later run cannot use."""
        if self.parts is not None:
            self.parts.remove()


ALONE = Sharing()
"""Sharing of a single process that saves nothing."""


# Merging


class _Run(NamedTuple):
    """A folder of scores of a part, with its record."""

    folder: Path
    record: Record
    part: RecordedPart


def merge_scores(folders: Sequence[str | Path], staging: Path) -> HeadScores:
    """Write the scores of a corpus into ``staging``, from the folders of all its parts.

    Scores and record equal those of one run over the whole corpus, to the bit, except for the date
    and the command. Memory does not grow with the number of examples. Returns the scores without
    examples.

    Raises:
        UsageError: folders of different runs, or a part that is missing or given twice.
        StorageError: a folder that cannot be read, or that headroles did not write.
    """
    runs = _in_order([_open(storage.committed(Path(folder))) for folder in folders])
    is_half = is_rounded(runs[0].record)
    return write_scores(staging, _interleaved(runs), is_half, partial(_merged, runs))


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
        if differing := storage.differences(_settings(first), _settings(run)):
            raise UsageError(
                f"{first.folder} and {run.folder} are not parts of one run: {differing}; "
                "give parts of one run"
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
    """Yield scores in corpus order; windows were dealt out in turn, and the last ones divided."""
    readers = [read_row_groups(run.folder, run.record) for run in runs]
    for sizes in zip_longest(*(run.part.sizes for run in runs), fillvalue=0):
        for run, reader, size in zip(runs, readers, sizes, strict=True):
            if size:
                yield _next_block(run, reader, size)
    for places in zip_longest(*(run.part.divided for run in runs), fillvalue=[]):
        shares = [share for share in zip(runs, readers, places, strict=True) if share[2]]
        blocks = [_next_block(run, reader, len(rows)) for run, reader, rows in shares]
        if blocks:
            yield put_together(blocks, [rows for _, _, rows in shares])


def _next_block(run: _Run, reader: Iterator[Fields], size: int) -> HeadScores:
    """Read the next block of a part. Raises StorageError unless it has ``size`` examples."""
    block = next(reader, None)
    if block is None or len(block["ids"]) != size:
        raise StorageError(
            f"{run.folder} does not hold its windows one by one; score that part again"
        )
    return HeadScores(**block)


def _merged(runs: list[_Run]) -> Record:
    """Return the record of a run over the whole corpus."""
    first, now = runs[0].record, Record.now()
    others = []
    for run in runs[1:]:
        # every part has read the whole corpus: sentences that it skipped count once
        skipped = Counter(run.record.corpus.skipped) - Counter(run.part.skipped)
        corpus = structs.replace(run.record.corpus, skipped=dict(skipped))
        others.append(structs.replace(run.record, corpus=corpus))
    facts = {name: fact for name, fact in first.facts.items() if name != "part"}
    whole = structs.replace(first, created=now.created, command=now.command, facts=facts)
    return whole.plus(*others)
