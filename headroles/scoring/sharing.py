"""Sharing of a run: how its windows are saved, and which processes score them together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.record import PartCounts
from headroles.scoring.options import CorpusPart
from headroles.scoring.scores import Counts, HeadScores, ScoredWindow
from headroles.storage import OpenParts, Parts, decode_arrays, decode_notes, encode_arrays, plain

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

    Raises UsageError for several processes without accelerate installed.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:  # as every launcher of PyTorch sets it
        return None
    try:
        from accelerate import PartialState
    except ImportError as error:
        raise UsageError(
            "several processes need accelerate, which is not installed; "
            "run: pip install 'accelerate>=1.10'"
        ) from error
    import torch

    # gloo runs on the CPU: processes only wait for one another, which must not occupy a device
    is_cpu = not torch.cuda.is_available()
    state = PartialState(cpu=is_cpu, backend="gloo", timeout=_PATIENCE)
    return Team(state.process_index, state.num_processes, state)


@dataclass(frozen=True)
class Sharing:
    """The saved parts of a run and the processes that share it, each None if absent.

    Windows are dealt out in turn: to the parts of a corpus that are scored apart (``corpus_part``
    is that of this run), and to the processes of a ``team``, which all see the folder of the parts.
    The first process joins the saved windows of all.
    """

    parts: Parts | None = None
    team: Team | None = None
    corpus_part: CorpusPart | None = None

    @property
    def assists(self) -> bool:
        """Whether this process only scores for another one."""
        return self.team is not None and self.team.index > 0

    def has(self, window: int) -> bool:
        """Tell whether a window, by its number, belongs to this run."""
        return self.corpus_part is None or self.corpus_part.has(window)

    def scores_here(self, window: int) -> bool:
        """Tell whether this process scores a window of the run."""
        return self.team is None or window % self.team.count == self.team.index

    def open(self, settings: Callable[[], dict[str, Any]], of: HeadScores) -> SavedWindows:
        """Open the saved windows of a run; without ``parts``, windows are not saved.

        ``of`` is one of its windows, with any examples or none.

        Raises StorageError for windows of other settings, or a process with other settings.
        """
        if self.parts is None:
            return SavedWindows(None, of)
        of_part = {} if self.corpus_part is None else {"part": vars(self.corpus_part)}
        if self.assists:
            self.wait()
            return SavedWindows(self.parts.join({**settings(), **of_part}), of)
        opened = self.parts.open({**settings(), **of_part})
        self.wait()
        return SavedWindows(opened, of)

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


@dataclass(frozen=True)
class SavedWindows:
    """Saved results of windows, by their numbers; without ``parts`` nothing is saved.

    ``like`` has the roles, the layers and the heads of all windows, and no examples.
    """

    parts: OpenParts | None
    like: HeadScores

    def __contains__(self, number: int) -> bool:
        return self.parts is not None and number in self.parts

    def write(self, number: int, scored: ScoredWindow) -> None:
        """Save the result of a window."""
        if self.parts is not None:
            self.parts.write(number, pack(scored))

    def read(self, number: int) -> ScoredWindow:
        """Return the result of a window. Raises StorageError if none is saved."""
        if self.parts is None:
            raise StorageError("this run saves no windows; score again")
        return self.parts.read(number, lambda content: unpack(content, self.like))


def pack(scored: ScoredWindow) -> bytes:
    """Encode a result as safetensors: the arrays of its scores, and the rest as JSON."""
    scores, counts = scored
    return encode_arrays(scores.arrays, {**scores.names, "counts": plain(counts.record())})


def unpack(content: bytes, like: HeadScores) -> ScoredWindow:
    """Decode the result that `pack` made. Raises ValueError, KeyError or TypeError otherwise.

    ``like`` is as in `SavedWindows`.
    """
    arrays, notes = decode_arrays(content), decode_notes(content)
    names = {name: tuple(notes[name]) for name in like.names}
    form, needed = (
        {name: (one.dtype, one.shape[1:]) for name, one in found.items()}
        for found in (arrays, like.arrays)
    )
    sizes = {len(one) for one in (*names.values(), *arrays.values())}
    if form != needed or len(sizes) > 1:
        raise ValueError(f"it holds {form} of {sizes} examples instead of {needed}")
    fields: dict[str, Any] = {**names, **arrays}
    return ScoredWindow(replace(like, **fields), Counts.of(PartCounts.read(notes["counts"])))
