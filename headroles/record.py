"""The record of a run: what its results were made from and how, as ``run.json`` has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from headroles.storage import Count

_MEANINGLESS = ("model", "checkpoint", "best", "final", "latest", "last")
_MOST_HEADS = 100_000
"""More than any encoder has; room for more is not to be asked for because a file says so."""


class Piece(msgspec.Struct, frozen=True):
    """A piece of a record."""

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Read what was said. Raises msgspec.ValidationError, naming what does not fit."""
        return msgspec.convert(said, cls)


class RecordedRole(Piece, frozen=True, forbid_unknown_fields=True):
    """A role, as `headroles.roles.Role.to_record` writes it."""

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


class Folder(Piece, frozen=True):
    """What was taken from a folder of a corpus, and what was left."""

    folder: str
    taken: Count
    left: list[str]
    n_left: Count


class RecordedCorpus(Piece, frozen=True):
    """Which corpus it was, as far as that is known."""

    format: str = ""
    files: list[str] = []
    folders: list[Folder] = []
    documents_by: str | None = None
    ids_by: str | None = None
    scheme: str = ""
    digest: str = ""
    sentences: Count = 0
    documents: Count = 0
    multiword_tokens: Count = 0
    undivided: Count = 0
    documents_by_id: Count = 0
    words: Count = 0
    language: str = ""
    frequent_share: float | None = None


class RecordedModel(Piece, frozen=True):
    """Which model it was, and how its attention was read."""

    model: str | None = None
    revision: str | None = None
    family: str = ""
    weights_sha256: str | None = None
    read_through: str = ""
    languages: list[str] = []
    warnings: list[str] = []

    @property
    def name(self) -> str:
        """The last part of the path of the model, or the last two where that says nothing."""
        if not self.model:
            return "a model"
        parts = Path(self.model).parts
        return "/".join(
            parts[-2:] if parts[-1:] in [(one,) for one in _MEANINGLESS] else parts[-1:]
        )


class Pieces(Piece, frozen=True):
    """What the tokenizer made of the corpus."""

    pieces: Count
    unknown_pieces: Count
    words: Count
    words_without_known_piece: Count
    words_without_pieces: Count = 0

    @property
    def unknown_shares(self) -> tuple[float, float]:
        """The share of unknown pieces, and of words whose pieces are all unknown."""
        n_unknown = self.words_without_known_piece - self.words_without_pieces
        return self.unknown_pieces / max(self.pieces, 1), n_unknown / max(self.words, 1)

    @property
    def pieceless_share(self) -> float:
        """The share of words of which the tokenizer makes no piece."""
        return self.words_without_pieces / max(self.words, 1)


class Stopped(Piece, frozen=True):
    """Where scoring in random order stopped."""

    until_of: str
    unit: Literal["document", "example"]
    units: int
    sentences: int
    of_sentences: int
    decided: float
    shuffle_seed: int | None = None


class HalfPrecision(Piece, frozen=True):
    """How far scores of the first examples in half precision lie from those in float32.

    ``means`` are the largest differences of means, for each role over all heads.
    """

    dtype: str
    examples: Count
    scores: float
    means: dict[str, float]


class PartCounts(Piece, frozen=True):
    """What was left out of a part of a corpus, and what the tokenizer made of it."""

    skipped: dict[str, Count]
    controls: dict[str, Count]
    pieces: dict[str, Count]


class RecordedPart(Piece, frozen=True):
    """Which part of a corpus was scored: of each of its windows how many examples."""

    number: Count
    of: Count
    sizes: list[Count]
    counts: PartCounts
    plan: dict[str, Any]

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"part {self.number} of {self.of}")


class Record(Piece, frozen=True, kw_only=True):
    """What a run read, and what it became; empty where nothing is known, as of scores by hand."""

    model: RecordedModel = msgspec.field(default_factory=RecordedModel)
    corpus: RecordedCorpus = msgspec.field(default_factory=RecordedCorpus)
    options: dict[str, Any] = {}
    score: str = "bias"
    roles: list[RecordedRole] = []
    layers: Count = 0
    heads: Count = 0
    examples: Count = 0
    reaches: list[int | None] = []
    removed_heads: list[tuple[int, int]] = []
    absent_relations: list[str] = []
    skipped: dict[str, Count] = {}
    controls: dict[str, Count] = {}
    pieces: Pieces | None = None
    stopped: Stopped | None = None
    rounded: str = ""
    half_precision: HalfPrecision | None = None
    part: RecordedPart | None = None

    @property
    def is_by_hand(self) -> bool:
        """Whether nothing is known of a model or of a corpus."""
        return not (self.model.model and self.corpus.sentences)

    @property
    def pairing(self) -> str | None:
        """How sentences were paired, if that is known."""
        return self.options.get("pairing")

    @property
    def measure(self) -> str | None:
        """What was measured, weights or norms, if that is known."""
        return self.options.get("measure")

    @property
    def mean_length(self) -> float:
        """Mean number of word pieces of an example, special tokens aside; 0 if not known."""
        return 0.0 if self.pieces is None else self.pieces.pieces / max(1, self.examples)

    @property
    def stopped_early(self) -> bool:
        """Whether scoring stopped before the end of the corpus."""
        return self.stopped is not None and self.stopped.sentences < self.stopped.of_sentences

    @property
    def drawn_from(self) -> int | None:
        """The number of units of a corpus that is decided about itself; None for all text."""
        decided = self.stopped is not None and self.stopped.until_of == "corpus"
        return self.stopped.units if self.stopped is not None and decided else None


class ScoresRecord(Record, frozen=True, kw_only=True):
    """The record of scores: what it takes to read them back is required."""

    score: Literal["bias", "excess", "hit"]
    roles: list[RecordedRole]
    layers: Count
    heads: Count
    scores: Count

    def __post_init__(self) -> None:
        if self.layers * self.heads > _MOST_HEADS:
            raise ValueError(f"{self.layers} layers of {self.heads} heads")
        ids = [role.id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("two roles of one id")
