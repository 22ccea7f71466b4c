"""Sharing of a run: where its windows are saved, and which processes score them together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from headroles.corpus import Corpus, PreparedCorpus, find_prepared, prepared, prepared_in
from headroles.errors import HeadRolesError, UsageError
from headroles.scoring.blocks import SavedWindows
from headroles.scoring.options import CorpusPart
from headroles.scoring.windows import Window
from headroles.storage import Parts, read_json, write_json

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


_WINDOWS = "windows.json"


@dataclass(frozen=True)
class Sharing:
    """The saved parts of a run and the processes that share it, each None if absent.

    ``corpus_part`` is the part of the corpus that the run scores, None for all of it.

    All processes see the folder of the parts. The first reads the corpus and lists its windows;
    each process then claims one window after the other, those with most words first, so that a slow
    process delays the others by at most two windows, its current one and the next.
    """

    parts: Parts | None = None
    team: Team | None = None
    corpus_part: CorpusPart | None = None

    @property
    def assists(self) -> bool:
        """Whether this process only scores for another one."""
        return self.team is not None and not self.team.is_first

    def prepared(self, corpus: Corpus) -> AbstractContextManager[PreparedCorpus]:
        """Prepare the corpus where the other processes find it."""
        if self.team is None:
            return prepared(corpus)
        return prepared_in(self._shared_folder, corpus)

    @contextmanager
    def find_prepared(self) -> Iterator[PreparedCorpus]:
        """Open the corpus that the first process reads, as soon as it has listed all windows."""
        self.wait()
        with find_prepared(self._shared_folder) as corpus:
            yield corpus

    def keep(self, settings: Callable[[], dict[str, Any]]) -> SavedWindows:
        """Open the saved windows of a run; without ``parts``, windows are not saved."""
        if self.parts is None:
            return SavedWindows(None)
        return SavedWindows(self.parts.open({**settings(), **self._of_part}))

    def known_dtype(self) -> str | None:
        """Return the dtype of the run that goes on here, or that another process began.

        None if no run has begun.
        """
        if self.parts is None or not (self.parts.count or self.assists):
            return None
        dtype: str | None = self.parts.settings().get("model", {}).get("dtype")
        return dtype

    def has(self, window: int) -> bool:
        """Tell whether a window, by its number, belongs to this run."""
        return self.corpus_part is None or self.corpus_part.has(window)

    def forget(self) -> None:
        """Remove the saved windows, which a later run cannot use."""
        if self.parts is not None:
            self.parts.remove()

    def share(self, settings: dict[str, Any], windows: Sequence[Window]) -> SavedWindows:
        """Open the saved windows and list all windows for the other processes."""
        saved = self.keep(lambda: settings)
        listed = {"windows": [asdict(window) for window in windows]}
        write_json(self._shared_folder / _WINDOWS, listed)
        self.wait()
        return saved

    def join(self, settings: dict[str, Any]) -> tuple[SavedWindows, list[Window]]:
        """Open what the first process shares. Raises StorageError for other settings."""
        assert self.parts is not None
        opened = self.parts.join({**settings, **self._of_part})
        windows = read_json(self._shared_folder / _WINDOWS)["windows"]
        return SavedWindows(opened), [Window(**one) for one in windows]

    def unclaimed(self, saved: SavedWindows, windows: Sequence[Window]) -> Iterator[Window]:
        """Claim and yield windows for this process until none is left."""
        assert saved.parts is not None
        for window in sorted(windows, key=lambda one: -one.n_words):
            if window.number not in saved.parts and saved.parts.claim(window.number):
                yield window

    def sentences_done(self, saved: SavedWindows, windows: Sequence[Window]) -> int:
        """Count the sentences in windows that any process has scored."""
        assert saved.parts is not None
        done = saved.parts.numbers()
        return sum(window.n_sentences for window in windows if window.number in done)

    def wait(self) -> None:
        """Wait until all processes wait."""
        assert self.team is not None
        self.team.wait()

    @property
    def _of_part(self) -> dict[str, Any]:
        return {} if self.corpus_part is None else {"part": vars(self.corpus_part)}

    @property
    def _shared_folder(self) -> Path:
        assert self.parts is not None
        return self.parts.place


ALONE = Sharing()
"""Sharing of a single process that saves nothing."""
