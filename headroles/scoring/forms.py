"""What ``run.json`` must say of scores for them to be read back."""

from __future__ import annotations

from typing import Any

import msgspec

from headroles.roles import SCORES
from headroles.storage import Count

_MOST_HEADS = 100_000
"""More than any encoder has; room for more is not to be asked for because a file says so."""


class RoleForm(msgspec.Struct, forbid_unknown_fields=True):
    """As `Role.to_record` writes it."""

    id: str
    words: str = ""
    unit: str = ""
    thresholds: dict[str, float] = {}
    baseline: float | None = None
    meaning: dict[str, Any] = {}
    measure_of: str = ""
    is_described: bool = False
    in_window: str = ""
    needs: str = ""


class FolderForm(msgspec.Struct):
    """What was taken from a folder of a corpus."""

    folder: str
    taken: Count
    left: list[str]
    n_left: Count


class CorpusForm(msgspec.Struct):
    """Which corpus it was, as far as that is told."""

    files: list[str] = []
    folders: list[FolderForm] = []
    sentences: Count = 0
    documents: Count = 0
    multiword_tokens: Count = 0
    undivided: Count = 0
    documents_by_id: Count = 0


class PiecesForm(msgspec.Struct):
    """What the tokenizer made of the corpus."""

    pieces: Count
    unknown_pieces: Count
    words: Count
    words_without_known_piece: Count
    words_without_pieces: Count = 0


class StoppedForm(msgspec.Struct):
    """Where scoring stopped early."""

    until_of: str
    unit: str
    units: int
    sentences: int
    of_sentences: int
    decided: float

    def __post_init__(self) -> None:
        if self.unit not in ("document", "example"):
            raise ValueError(f"unknown unit {self.unit!r}")


class CountsForm(msgspec.Struct):
    """What was left out of a part of a corpus, and what the tokenizer made of it."""

    skipped: dict[str, Count]
    controls: dict[str, Count]
    pieces: dict[str, Count]


class PartForm(msgspec.Struct):
    """Which part of a corpus was scored: of each of its windows how many examples."""

    number: Count
    of: Count
    sizes: list[Count]
    counts: CountsForm
    plan: dict[str, Any]

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"part {self.number} of {self.of}")


class ScoresForm(msgspec.Struct):
    """As `HeadScores.record` writes it; provenance beyond that may be missing, if made by hand."""

    score: str
    roles: list[RoleForm]
    layers: Count
    heads: Count
    scores: Count
    model: dict[str, Any] = {}
    corpus: CorpusForm = msgspec.field(default_factory=CorpusForm)
    pieces: PiecesForm | None = None
    options: dict[str, Any] = {}
    reaches: list[int | None] = []
    absent_relations: list[str] = []
    removed_heads: list[tuple[int, int]] = []
    skipped: dict[str, Count] = {}
    controls: dict[str, Count] = {}
    stopped: StoppedForm | None = None
    rounded: str = ""
    part: PartForm | None = None

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"unknown score {self.score!r}")
        if self.layers * self.heads > _MOST_HEADS:
            raise ValueError(f"{self.layers} layers of {self.heads} heads")
        ids = [role.id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("two roles of one id")
