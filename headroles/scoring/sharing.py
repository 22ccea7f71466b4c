"""Sharing of a run: where its windows are saved, and which processes score them together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headroles.errors import HeadRolesError, UsageError
from headroles.scoring.options import CorpusPart
from headroles.storage import OpenParts, Parts

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
