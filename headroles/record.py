"""The record of a run: model, corpus, options and circumstances, as in ``run.json``.

A run makes its record once, when it ends. Results have it as ``.record``, and write and read it
unchanged. The record of a study is a `Record`: its options, facts and warnings, and the records
of the results that it read.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from msgspec import field, structs

from headroles.storage import Count
from headroles.wording import printable

_MEANINGLESS = ("model", "checkpoint", "best", "final", "latest", "last")
_MOST_HEADS = 100_000
"""More than any encoder has; a damaged file must not make us allocate memory for more."""
_PACKAGES = ("headroles", "torch", "transformers", "tokenizers", "numpy", "scipy", "statsmodels")


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of records and of their parts."""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read a piece from a mapping. Raises msgspec.ValidationError for invalid values."""
        return msgspec.convert(content, cls)

    @classmethod
    def extending(cls, other: Recorded, /, **own: Any) -> Self:
        """Make a piece from the fields that it shares with ``other``, and from ``own``."""
        known = {name: getattr(other, name) for name in other.__struct_fields__}
        shared = {name: known[name] for name in cls.__struct_fields__ if name in known}
        return cls(**{**shared, **own})

    def without_warnings(self) -> Self:
        """Return a copy without warnings, here and in its pieces."""
        return structs.replace(
            self,
            **{
                name: [] if name == "warnings" else _without_warnings(getattr(self, name))
                for name in self.__struct_fields__
            },
        )


def _without_warnings(value: Any) -> Any:
    if isinstance(value, Recorded):
        return value.without_warnings()
    if isinstance(value, dict):
        return {name: _without_warnings(one) for name, one in value.items()}
    return value


class RecordedRole(Recorded, frozen=True, omit_defaults=True):
    """A role, as `headroles.roles.Role.to_record` makes it."""

    id: str
    unit: str = ""
    thresholds: dict[str, float] = {}
    baseline: float | None = None
    meaning: dict[str, Any] = {}
    measure_of: str = ""
    is_described: bool = False
    in_window: str = ""
    needs: str = ""


class Folder(Recorded, frozen=True):
    """Files of a folder of a corpus that were read, and those that were ignored."""

    folder: str
    taken: Count
    left: list[str]
    n_left: Count


class RecordedCorpus(Recorded, frozen=True):
    """Identity of a corpus, as far as it is known."""

    format: str = ""
    files: list[str] = []
    folders: list[Folder] = []
    documents_by: str | None = None
    ids_by: str | None = None
    parser: str | None = None
    lines: bool | None = None
    least_distance: int | None = None
    text_columns: list[str | int] = []
    scheme: str = ""
    digest: str = ""
    sentences: Count = 0
    words: Count = 0
    documents: Count = 0
    multiword_tokens: Count = 0
    undivided: Count = 0
    documents_by_id: Count = 0
    language: str = ""
    frequent_share: float | None = None


class RecordedTaskFile(Recorded, frozen=True):
    """Identity of a file of labelled examples."""

    file: str
    examples: Count
    sha256: str


class RecordedTask(Recorded, frozen=True):
    """A task, and how many of its examples were cut."""

    objective: str
    metrics: list[str]
    examples: Count
    cut: Count


class RecordedModel(Recorded, frozen=True):
    """Identity of a model, and the way its attention was read."""

    model: str | None = None
    revision: str | None = None
    class_: str = field(default="", name="class")
    model_type: str = ""
    dtype: str = ""
    weights_sha256: str | None = None
    config_sha256: str | None = None
    tokenizer: str = ""
    tokenizer_class: str = ""
    languages: list[str] = []
    warnings: list[str] = []
    family: str = ""
    read_through: str = ""

    @property
    def name(self) -> str:
        """The last part of the path of the model, or the last two if that is a word like "best"."""
        if not self.model:
            return "a model"
        parts = Path(self.model).parts
        return "/".join(parts[-2 if parts[-1:] and parts[-1] in _MEANINGLESS else -1 :])


class PieceCounts(Recorded, frozen=True):
    """Counts of the word pieces that the tokenizer made of a corpus."""

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


class RecordedPart(Recorded, frozen=True):
    """Part of a corpus that was scored, with the number of examples of each window.

    ``skipped`` counts what was skipped in reading the whole corpus, as every part does.
    """

    number: Count
    of: Count
    sizes: list[Count]
    skipped: dict[str, Count]
    plan: dict[str, Any]

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"part {self.number} of {self.of}")


class Record(Recorded, frozen=True, kw_only=True):
    """When, by which command and versions, with which options and from what results were made.

    ``facts`` are what a study found beside its table. ``sources`` are the records of the results
    that it read, by name.
    """

    kind: str = ""
    created: str = ""
    command: list[str] = []
    versions: dict[str, str] = {}
    options: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    warnings: list[str] = []
    sources: dict[str, Any] = {}

    def __post_init__(self) -> None:
        structs.force_setattr(
            self, "sources", {name: _as_record(one) for name, one in self.sources.items()}
        )

    @classmethod
    def now(cls, **own: Any) -> Self:
        """Make the record of a run that ends now, from its circumstances and ``own``."""
        return cls(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=[printable(word) for word in sys.argv],
            versions=versions(),
            **own,
        )

    @classmethod
    def of_scores(
        cls,
        kind: str,
        scores: ScoresRecord,
        options: Any,
        warnings: Sequence[str] = (),
        **facts: Any,
    ) -> Record:
        """Make the record of a study of one set of scores, with its group of options."""
        return Record.now(
            kind=kind,
            options=options.record(),
            facts=facts,
            warnings=list(warnings),
            sources={"scores": scores},
        )

    @property
    def models(self) -> dict[str, RecordedModel]:
        """The models of the run, or of its sources, by name."""
        if len(self.sources) == 1:
            (source,) = self.sources.values()
            found: dict[str, RecordedModel] = source.models
            return found
        return {
            name: model for name, source in self.sources.items() for model in source.models.values()
        }

    @property
    def files(self) -> list[str]:
        """The files of the corpus, if it is one of files."""
        return list(dict.fromkeys(file for one in self.sources.values() for file in one.files))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers, and of heads in each; 0 where they are not known or not the same."""
        shapes = {one.shape for one in self.sources.values()}
        return shapes.pop() if len(shapes) == 1 else (0, 0)


class ModelRecord(Record, frozen=True, kw_only=True):
    """Record of a run that read a model."""

    model: RecordedModel = field(default_factory=RecordedModel)
    layers: Count = 0
    heads: Count = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers * self.heads > _MOST_HEADS:
            raise ValueError(f"{self.layers} layers of {self.heads} heads")

    @property
    def models(self) -> dict[str, RecordedModel]:
        """The model."""
        return {"model": self.model}

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers, and of heads in each; 0 where they are not known."""
        return self.layers, self.heads


class CorpusRecord(ModelRecord, frozen=True, kw_only=True):
    """Record of a run over a corpus: which examples were read, scored and skipped."""

    corpus: RecordedCorpus = field(default_factory=RecordedCorpus)
    examples: Count = 0
    skipped: dict[str, Count] = {}
    pieces: PieceCounts | None = None
    part: RecordedPart | None = None

    @property
    def files(self) -> list[str]:
        """The files of the corpus, if it is one of files."""
        return self.corpus.files

    @property
    def is_by_hand(self) -> bool:
        """Whether nothing is known of a model or of a corpus."""
        return not (self.model.model and self.corpus.sentences)

    @property
    def pairing(self) -> str | None:
        """The pairing of sentences, if it is known."""
        return self.options.get("pairing")

    @property
    def measure(self) -> str | None:
        """The measure, weights or norms, if it is known."""
        return self.options.get("measure")

    @property
    def mean_length(self) -> float:
        """Mean number of word pieces of an example, special tokens aside; 0 if not known."""
        return 0.0 if self.pieces is None else self.pieces.pieces / max(1, self.examples)


class ScoresRecord(CorpusRecord, frozen=True, kw_only=True):
    """Record of the run that made scores; empty for scores made by hand."""

    score: Literal["bias", "excess", "hit"] = "bias"
    roles: list[RecordedRole] = []
    scores: Count = 0
    reaches: list[int | None] = []
    removed_heads: list[tuple[int, int]] = []
    rounded: str = ""
    absent_relations: list[str] = []
    controls: dict[str, Count] = {}
    without_other_tree: Count = 0
    """Sentences to which no other sentence lends its tree for the control ``trees``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        ids = [role.id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("two roles of one id")

    def plus(self, *others: ScoresRecord) -> ScoresRecord:
        """Return the record with the counts of ``others`` added, which are of other examples."""
        every = (self, *others)
        pieces = [structs.asdict(one.pieces) for one in every if one.pieces is not None]
        return structs.replace(
            self,
            examples=sum(one.examples for one in every),
            scores=sum(one.scores for one in every),
            skipped=_summed(one.skipped for one in every),
            controls=_summed(one.controls for one in every),
            pieces=PieceCounts(**_summed(pieces)) if pieces else None,
        )


class TaskRecord(ModelRecord, frozen=True, kw_only=True):
    """Record of a run of a model on a task."""

    corpus: RecordedTaskFile
    task: RecordedTask


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add counts by name."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _as_record(content: Any) -> Record:
    """Read the record of a source by the first type that has all of its fields."""
    if isinstance(content, Record):
        return content
    for form in (Record, ModelRecord, CorpusRecord, TaskRecord, ScoresRecord):
        if isinstance(content, Mapping) and set(content) <= set(form.__struct_encode_fields__):
            return form.read(content)
    raise ValueError("a source that is no record of this version")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
