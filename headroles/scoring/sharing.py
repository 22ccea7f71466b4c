"""Sharing of a run: where its windows are saved, and which processes score them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headroles.corpus import Corpus, PreparedCorpus, find_prepared, prepared, prepared_in
from headroles.scoring.options import CorpusPart
from headroles.scoring.parts import KeptWindows
from headroles.scoring.team import Team
from headroles.scoring.windows import Window
from headroles.storage import Parts, read_json, write_json

_WINDOWS = "windows.json"


@dataclass(frozen=True)
class Sharing:
    """The saved parts of a run and the processes that share it, each None if absent.

    ``part`` is the part of the corpus that the run scores, None for all of it.

    All processes see the folder of the parts. The first reads the corpus and lists its windows;
    each process then claims one window after the other, those with most words first, so that a slow
    process delays the others by at most two windows, its current one and the next.
    """

    parts: Parts | None = None
    team: Team | None = None
    part: CorpusPart | None = None

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

    def keep(self, plan: Callable[[], dict[str, Any]]) -> KeptWindows:
        """Open the saved windows of a plan; without ``parts``, windows are not saved."""
        if self.parts is None:
            return KeptWindows(None)
        return KeptWindows(self.parts.open({**plan(), **self._part_of_plan}))

    def has(self, window: int) -> bool:
        """Tell whether a window, by its number, belongs to this run."""
        return self.part is None or self.part.has(window)

    def forget(self) -> None:
        """Remove the saved windows, which a later run cannot use."""
        if self.parts is not None:
            self.parts.remove()

    def share(self, plan: dict[str, Any], windows: Sequence[Window]) -> KeptWindows:
        """Open the saved windows and list all windows for the other processes."""
        kept = self.keep(lambda: plan)
        listed = {"windows": [asdict(window) for window in windows]}
        write_json(self._shared_folder / _WINDOWS, listed)
        self.wait()
        return kept

    def join(self, plan: dict[str, Any]) -> tuple[KeptWindows, list[Window]]:
        """Open what the first process shares. Raises StorageError for another plan."""
        assert self.parts is not None
        opened = self.parts.join({**plan, **self._part_of_plan})
        windows = read_json(self._shared_folder / _WINDOWS)["windows"]
        return KeptWindows(opened), [Window(**one) for one in windows]

    def unclaimed(self, kept: KeptWindows, windows: Sequence[Window]) -> Iterator[Window]:
        """Claim and yield windows for this process until none is left."""
        assert kept.parts is not None
        for window in sorted(windows, key=lambda one: -one.n_words):
            if window.number not in kept.parts and kept.parts.claim(window.number):
                yield window

    def sentences_done(self, kept: KeptWindows, windows: Sequence[Window]) -> int:
        """Count the sentences in windows that any process has scored."""
        assert kept.parts is not None
        done = kept.parts.numbers()
        return sum(window.n_sentences for window in windows if window.number in done)

    def wait(self) -> None:
        """Wait until all processes wait."""
        assert self.team is not None
        self.team.wait()

    @property
    def _part_of_plan(self) -> dict[str, Any]:
        return {} if self.part is None else {"part": vars(self.part)}

    @property
    def _shared_folder(self) -> Path:
        assert self.parts is not None
        return self.parts.place


ALONE = Sharing()
"""Sharing of a single process that saves nothing."""
