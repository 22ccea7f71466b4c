"""Where a run keeps what is done, and how several processes share out what is not."""

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
    """The parts that a run keeps, if it keeps any, and the processes it is shared by, if several.

    ``part`` is what it scores of the corpus, if not all of it.

    All processes see the folder of the parts. The first reads the corpus and lists its windows;
    each then claims one after the other, those of most words first, so that a slow process holds
    up the others by no more than the windows that it has in hand: one, and the next.
    """

    parts: Parts | None = None
    team: Team | None = None
    part: CorpusPart | None = None

    @property
    def assists(self) -> bool:
        """Whether this process only scores for another one."""
        return self.team is not None and not self.team.is_first

    def prepared(self, corpus: Corpus) -> AbstractContextManager[PreparedCorpus]:
        """The corpus, where the other processes find it."""
        if self.team is None:
            return prepared(corpus)
        return prepared_in(self._shared_folder, corpus)

    @contextmanager
    def find_prepared(self) -> Iterator[PreparedCorpus]:
        """The corpus that the first process reads, as soon as all windows of it are listed."""
        self.wait()
        with find_prepared(self._shared_folder) as corpus:
            yield corpus

    def keep(self, plan: Callable[[], dict[str, Any]]) -> KeptWindows:
        """The windows that are kept under a plan; nothing is if there is no place for it."""
        if self.parts is None:
            return KeptWindows(None)
        return KeptWindows(self.parts.open({**plan(), **self._part_of_plan}))

    def has(self, window: int) -> bool:
        """Whether a window, by its number, is to be scored here."""
        return self.part is None or self.part.has(window)

    def forget(self) -> None:
        """Remove what is kept: it is of no use to a later run."""
        if self.parts is not None:
            self.parts.remove()

    def share(self, plan: dict[str, Any], windows: Sequence[Window]) -> KeptWindows:
        """`keep`, for the first of several processes: the others learn what there is to do."""
        kept = self.keep(lambda: plan)
        listed = {"windows": [asdict(window) for window in windows]}
        write_json(self._shared_folder / _WINDOWS, listed)
        self.wait()
        return kept

    def join(self, plan: dict[str, Any]) -> tuple[KeptWindows, list[Window]]:
        """What the first process shares. Raises StorageError if this one has another plan."""
        assert self.parts is not None
        opened = self.parts.join({**plan, **self._part_of_plan})
        windows = read_json(self._shared_folder / _WINDOWS)["windows"]
        return KeptWindows(opened), [Window(**one) for one in windows]

    def unclaimed(self, kept: KeptWindows, windows: Sequence[Window]) -> Iterator[Window]:
        """Windows that this process is to score, until none is left."""
        assert kept.parts is not None
        for window in sorted(windows, key=lambda one: -one.n_words):
            if window.number not in kept.parts and kept.parts.claim(window.number):
                yield window

    def sentences_done(self, kept: KeptWindows, windows: Sequence[Window]) -> int:
        """How many sentences are in windows that any process has scored."""
        assert kept.parts is not None
        done = kept.parts.numbers()
        return sum(window.n_sentences for window in windows if window.number in done)

    def wait(self) -> None:
        """Until all processes wait."""
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
"""One process that keeps nothing."""
