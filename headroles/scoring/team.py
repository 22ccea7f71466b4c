"""Processes that score one corpus together through a folder that all of them see."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headroles.errors import HeadRolesError, UsageError

_LOOKS_PER_SECOND = 10
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

    @property
    def is_first(self) -> bool:
        """Whether this process reads the corpus, merges the results and prints."""
        return self.index == 0

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
            thread.join(1 / _LOOKS_PER_SECOND)
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
