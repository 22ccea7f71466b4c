"""The record of a run: model, corpus, options and circumstances, as in ``run.json``.

A run makes its record once, when it ends. Results have it as ``.record``, and write and read it
unchanged.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from msgspec import field, structs

from headroles.head_rows import HeadRows
from headroles.old_roles import facts_of_old_id
from headroles.reach import Reach
from headroles.role_names import Kind, kind_of
from headroles.storage import Count, plain
from headroles.wording import printable

NO_MODEL = "own"
"""Model type of attention that no transformers model computes, and that no folder holds."""
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


class Folder(Recorded, frozen=True):
    """Files of a folder of a corpus that were read, and those that were ignored."""

    folder: str
    taken: Count
    left: list[str]
    n_left: Count


class PieceCounts(Recorded, frozen=True):
    """Counts of the word pieces that the tokenizer made of a corpus."""

    pieces: Count
    unknown_pieces: Count
    words: Count
    words_without_known_piece: Count
    words_without_pieces: Count = 0
    lone_spaces: Count = 0

    @property
    def per_word(self) -> float:
        """Mean number of pieces of a word, spaces alone aside."""
        return (self.pieces - self.lone_spaces) / max(self.words, 1)

    @property
    def unknown_shares(self) -> tuple[float, float]:
        """The share of unknown pieces, and of words whose pieces are all unknown."""
        n_unknown = self.words_without_known_piece - self.words_without_pieces
        return self.unknown_pieces / max(self.pieces, 1), n_unknown / max(self.words, 1)

    @property
    def pieceless_share(self) -> float:
        """The share of words of which the tokenizer makes no piece."""
        return self.words_without_pieces / max(self.words, 1)


class RecordedRelation(Recorded, frozen=True):
    """Arcs of a relation, and different words, without case, that are their dependents.

    ``effective_dependents`` are the number of words that would be as different if each was the
    dependent of as many arcs: (sum n)^2 / sum n^2 of the arcs n of each word.
    """

    arcs: Count
    dependents: Count
    effective_dependents: float


class RecordedCorpus(Recorded, frozen=True):
    """Identity of a corpus, as far as it is known, and the examples that a run read of it."""

    format: str = ""
    files: list[str] = []
    folders: list[Folder] = []
    documents_by: str | None = None
    ids_by: str | None = None
    parser: str | None = None
    lines: bool | None = None
    least_distance: int | None = None
    translations: str | None = None
    links: str | None = None
    links_from: int = 0
    spacing: Literal["text", "words"] = "words"
    join_spaces: str | None = None
    contractions: Literal["words", "surface"] = "words"
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
    examples: Count = 0
    skipped: dict[str, Count] = {}
    pieces: PieceCounts | None = None
    relations: dict[str, RecordedRelation] = {}

    @property
    def mean_length(self) -> float:
        """Mean number of word pieces of an example, special tokens aside; 0 if not known."""
        return 0.0 if self.pieces is None else self.pieces.pieces / max(1, self.examples)


class RecordedTask(Recorded, frozen=True):
    """A task: its file of labelled examples, and how many of them were cut."""

    file: str = ""
    sha256: str = ""
    examples: Count = 0
    objective: str = ""
    metrics: list[str] = []
    cut: Count = 0


class RecordedModel(Recorded, frozen=True):
    """Identity of a model, its heads, and the way its attention was read."""

    model: str | None = None
    revision: str | None = None
    class_: str = field(default="", name="class")
    model_type: str = ""
    dtype: str = ""
    weights_sha256: str | None = None
    config_sha256: str | None = None
    tokenizer: str = ""
    tokenizer_class: str = ""
    target_tokenizer: str = ""
    languages: list[str] = []
    warnings: list[str] = []
    family: str = ""
    read_through: str = ""
    layers: Count = 0
    heads: Count = 0
    reaches: list[int | Reach | None] = []
    removed_heads: list[tuple[int, int]] = []
    attention: Literal["encoder", "decoder", "cross"] = "encoder"
    stacks: dict[str, Count] = {}
    """Layers of each kind of attention, where heads of several kinds were looked at."""
    stack_heads: dict[str, Count] = {}
    """Heads of each layer of a kind, or before some were removed."""

    def __post_init__(self) -> None:
        if self.layers * self.heads > _MOST_HEADS:
            raise ValueError(f"{self.layers} layers of {self.heads} heads")
        if self.stacks and sum(self.stacks.values()) != self.layers:
            raise ValueError(f"{self.layers} layers, of which {self.stacks}")
        if set(self.stacks) != set(self.stack_heads):
            raise ValueError(f"heads of {self.stack_heads}, and layers of {self.stacks}")

    @property
    def reaches_of_layers(self) -> tuple[Reach, ...]:
        """For each layer, how far its attention reaches."""
        return tuple(map(Reach.from_record, self.reaches))

    @property
    def rows(self) -> HeadRows:
        """The kinds of attention of its layers, of which ``layers`` counts all."""
        return HeadRows(self.stacks)

    @property
    def layout(self) -> str:
        """The attention that was read and its size, in words."""
        if self.stacks:
            counts = ", ".join(f"{n_layers} {kind}" for kind, n_layers in self.stacks.items())
            return f"{counts} layers x {self.heads} heads"
        kind = {"cross": "cross-attention of ", "decoder": "decoder of "}.get(self.attention, "")
        return f"{kind}{self.layers} layers x {self.heads} heads"

    @property
    def is_causal(self) -> bool:
        """Whether tokens of some layer see no later ones, so that rows differ in length."""
        return any(reach.is_causal for reach in self.reaches_of_layers)

    @property
    def sight(self) -> str:
        """Which tokens each token sees, in words, if these are not all; empty otherwise."""
        if self.attention == "cross":
            return "each token of the target sees all of the source"
        causal = [reach.is_causal for reach in self.reaches_of_layers]
        if not any(causal):
            return ""
        where = "" if all(causal) else f"in {sum(causal)} of {len(causal)} layers "
        token = "token of the target" if self.attention == "decoder" else "token"
        return f"{where}each {token} sees itself and earlier ones"

    @property
    def name(self) -> str:
        """The last part of the path of the model, or the last two if that is a word like "best"."""
        if not self.model:
            return "a model"
        parts = Path(self.model).parts
        return "/".join(parts[-2 if parts[-1:] and parts[-1] in _MEANINGLESS else -1 :])


class RecordedRole(Recorded, frozen=True, omit_defaults=True):
    """A role, as `Role.to_record` makes it."""

    id: str
    unit: str = ""
    thresholds: dict[str, float] = {}
    baseline: float | None = None
    meaning: dict[str, Any] = {}
    parent: str = ""
    contrast: str = ""
    control: str = ""
    measure_of: str = ""
    is_described: bool = False
    words: str = ""
    relation: str = ""
    names: list[str] = []
    function: str = ""
    in_window: str = ""
    needs: str = ""

    @property
    def kind(self) -> Kind:
        """Whether the role is of tokens, of pairs of words, or of arcs, which have a relation."""
        return kind_of(self.unit, self.relation)


def whole_roles(roles: Iterable[RecordedRole]) -> list[RecordedRole]:
    """Return roles as they are recorded today; those of 0.2.0 lack what follows from their ids.

    Roles that nothing but a table names are completed in the same way.
    """
    recorded = list(roles)
    ids = {role.id for role in recorded}
    return [
        role if role.words else structs.replace(role, **facts_of_old_id(role.id, ids))
        for role in recorded
    ]


class RecordedPart(Recorded, frozen=True):
    """Part of a corpus that was scored.

    ``sizes`` are the numbers of examples of its windows; ``divided`` are, for each of the last
    windows, which all parts share, the places of its examples there. ``skipped`` counts what was
    skipped in reading the whole corpus, as every part does.
    """

    number: Count
    of: Count
    sizes: list[Count]
    skipped: dict[str, Count]
    plan: dict[str, Any]
    divided: list[list[Count]] = []

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"part {self.number} of {self.of}")


class ScoreFacts(Recorded, frozen=True):
    """Facts of a record of scores.

    ``controls`` count arcs of controls and contrasts, ``without_other_tree`` sentences to which no
    other sentence lends its tree for the control ``trees``. ``class_rules`` are, for roles of pairs
    under first choices, the classes whose nearest word may be a better rule than a fixed offset.
    """

    score: Literal["bias", "excess", "hit"]
    roles: list[RecordedRole]
    scores: Count
    absent_relations: list[str] = []
    controls: dict[str, Count] = {}
    without_other_tree: Count = 0
    class_rules: dict[str, list[str]] = {}
    part: RecordedPart | None = None

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Self:
        """Read facts; roles that version 0.2.0 recorded are completed."""
        facts = super().read(content)
        return structs.replace(facts, roles=whole_roles(facts.roles))

    def __post_init__(self) -> None:
        ids = [role.id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("two roles of one id")


class Record(Recorded, frozen=True, kw_only=True, omit_defaults=True):
    """When, by which command and versions, with which options and from what results were made.

    ``facts`` are what the run found beside its table. ``sources`` are the records of the results
    that it read, by name.
    """

    kind: str = ""
    created: str = ""
    command: list[str] = []
    versions: dict[str, str] = {}
    model: RecordedModel = RecordedModel()
    corpus: RecordedCorpus = RecordedCorpus()
    task: RecordedTask = RecordedTask()
    options: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    warnings: list[str] = []
    sources: dict[str, Record] = {}

    @classmethod
    def now(cls, facts: Any = None, **fields: Any) -> Record:
        """Make the record of a run that ends now, from its circumstances and further ``fields``."""
        return cls(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=[printable(word) for word in sys.argv],
            versions=versions(),
            facts=plain(facts or {}),
            **fields,
        )

    @property
    def models(self) -> dict[str, RecordedModel]:
        """The model of the run, or those of its sources by name."""
        if self.model != RecordedModel():
            return {"model": self.model}
        if len(self.sources) == 1:
            (source,) = self.sources.values()
            return source.models
        return {
            name: model for name, source in self.sources.items() for model in source.models.values()
        }

    @property
    def attention(self) -> str:
        """The kind of attention that the run, or its sources, read; encoder if they differ."""
        kinds = {model.attention for model in self.models.values()}
        return kinds.pop() if len(kinds) == 1 else "encoder"

    @property
    def files(self) -> list[str]:
        """The files of the corpus, if it is one of files."""
        of_sources = (file for source in self.sources.values() for file in source.files)
        return list(dict.fromkeys([*self.corpus.files, *of_sources]))

    @property
    def roles(self) -> dict[str, RecordedRole]:
        """The roles of the scores that the run made or read, by id; empty if they are not known."""
        if "roles" in self.facts and self.kind == "scores":
            with suppress(msgspec.ValidationError, ValueError):  # of a file that was changed
                return {role.id: role for role in ScoreFacts.read(self.facts).roles}
        of_sources = [source.roles for source in reversed(self.sources.values())]
        return {name: role for roles in of_sources for name, role in roles.items()}

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of layers, and of heads in each; 0 where they are not known or not the same."""
        shapes = {source.shape for source in self.sources.values()}
        of_sources = shapes.pop() if len(shapes) == 1 else (0, 0)
        return (self.model.layers, self.model.heads) if self.model.layers else of_sources

    def plus(self, *records: Record) -> Record:
        """Return the record with the counts of ``others`` added, which are of other examples."""
        every = (self, *records)
        pieces = [structs.asdict(record.corpus.pieces) for record in every if record.corpus.pieces]
        corpus = structs.replace(
            self.corpus,
            examples=sum(record.corpus.examples for record in every),
            skipped=_summed(record.corpus.skipped for record in every),
            pieces=PieceCounts(**_summed(pieces)) if pieces else None,
        )
        counted = {
            "scores": sum(record.facts.get("scores", 0) for record in every),
            "controls": _summed(record.facts.get("controls", {}) for record in every),
        }
        return structs.replace(self, corpus=corpus, facts={**self.facts, **counted})

    @property
    def is_by_hand(self) -> bool:
        """Whether nothing is known of a model or of a corpus."""
        return not (self.model.model and self.corpus.sentences)


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add counts by name."""
    total: Counter[str] = Counter()
    for by_name in counts:
        total.update(by_name)
    return dict(total)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
