"""Scores of every example, layer, head and role: the table that all tests start from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.results import Grid, Shown, Stored, Warned, as_html
from headroles.roles import OFFSETS, SCORES, Role, Score
from headroles.scoring.forms import ScoresForm
from headroles.scoring.run_notes import describe_folders, describe_pieces, warnings_of_run
from headroles.wording import listed, not_among

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

SCORES_FILE = "scores.parquet"
EXAMPLES_FILE = "examples.parquet"
OFFSETS_FILE = "offsets.parquet"
_BOUNDS = ("low", "high")
"""Columns of the examples: a list each, of what scores lie between, role by role."""


@dataclass(frozen=True)
class ScoreBlock:
    """Scores of E examples.

    ``values`` (E, layers, heads, roles) is NaN where an example has no score for a role;
    ``counts`` (E, roles) is the number of tokens (syntactic roles: arcs) behind a score.
    ``lengths`` (E,) is the number of tokens of each example. ``digests`` tell what each example
    was, or are empty where that is not known. ``offset_shares`` are those of `HeadScores`.
    ``bounds`` (E, roles, 2) are the least and the most that a score could have been, whatever the
    attention.
    """

    ids: list[str]
    documents: list[str]
    lengths: NDArray[np.int64]
    values: NDArray[np.float32]
    counts: NDArray[np.int64]
    digests: list[str] = field(default_factory=list)
    offset_shares: NDArray[np.float32] | None = None
    bounds: NDArray[np.float32] | None = None


@dataclass(frozen=True, repr=False, eq=False)
class HeadScores(Stored):
    """Scores of all examples, with what they were computed from.

    ``values`` (examples, layers, heads, roles), float32, is NaN where an example has no score
    for a role. ``counts`` (examples, roles) is the number of tokens, or of the role's unit, behind
    a score. Layers and heads count from 0. ``score`` is the kind of score, one of `SCORES`.

    ``digests`` (examples,) are those of `EncodedExample`: a comparison joins examples by them.
    They are empty for scores made by hand. ``bounds`` (examples, roles, 2), float32, are what the
    scores of an example lie between, whatever the attention: they follow from its sieves alone.
    NaN where there is no score or nothing is known, None where nothing was kept.

    ``offset_shares`` (examples, roles, offsets) is, beside scores of first choices, what always
    looking at each of `headroles.roles.OFFSETS` would score, in words from the query; NaN for roles
    that are not made of pairs of words. None beside other scores.
    """

    ids: tuple[str, ...]
    documents: tuple[str, ...]
    lengths: NDArray[np.int64]
    roles: tuple[Role, ...]
    values: NDArray[np.float32]
    counts: NDArray[np.int64]
    score: Score = SCORES["bias"]
    provenance: dict[str, Any] = field(default_factory=dict)
    digests: tuple[str, ...] = ()
    offset_shares: NDArray[np.float32] | None = None
    bounds: NDArray[np.float32] | None = None

    kind: ClassVar[str] = "scores"
    form: ClassVar[type[msgspec.Struct]] = ScoresForm
    cure: ClassVar[str] = "name folders that score or classify wrote"

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[ScoreBlock],
        roles: Sequence[Role],
        score: Score,
        provenance: dict[str, Any],
    ) -> HeadScores:
        """All of ``blocks`` in their order. ``provenance`` may still grow while they come."""
        parts = list(blocks)
        known = all(part.digests for part in parts)
        shares = [part.offset_shares for part in parts if part.offset_shares is not None]
        bounds = [part.bounds for part in parts if part.bounds is not None]
        return cls(
            score=score,
            ids=tuple(name for part in parts for name in part.ids),
            documents=tuple(name for part in parts for name in part.documents),
            lengths=np.concatenate([part.lengths for part in parts]),
            roles=tuple(roles),
            values=np.concatenate([part.values for part in parts]),
            counts=np.concatenate([part.counts for part in parts]),
            provenance=provenance,
            digests=tuple(name for part in parts for name in part.digests) if known else (),
            offset_shares=np.concatenate(shares) if shares else None,
            bounds=np.concatenate(bounds) if len(bounds) == len(parts) else None,
        )

    @property
    def role_ids(self) -> tuple[str, ...]:
        """Ids of the roles, in the order of the table."""
        return tuple(role.id for role in self.roles)

    @property
    def n_examples(self) -> int:
        """Number of examples; some may have no score for any role."""
        return len(self.values)

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return int(self.values.shape[1])

    @property
    def n_heads(self) -> int:
        """Number of heads in each layer."""
        return int(self.values.shape[2])

    def __eq__(self, other: object) -> bool:
        """Whether both have the same scores of the same examples, and the same provenance."""
        if not isinstance(other, HeadScores):
            return NotImplemented
        return all(
            _is_same(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"HeadScores({self.n_layers} layers x {self.n_heads} heads, "
            f"{len(self.roles)} roles, {self.n_examples} examples)"
        )

    def _repr_html_(self) -> str:
        return as_html(self.shown())

    def shown(self) -> Iterator[Shown]:
        """How many examples have a score for each role, and the mean over all heads."""
        yield repr(self)
        rows = []
        for place, role in enumerate(self.roles):
            n = int((self.counts[:, place] > 0).sum())
            mean = f"{np.nanmean(self.values[..., place]):.3f}" if n else "-"
            rows.append((role.id, str(n), mean))
        yield Grid(("role", "examples", "mean score"), tuple(rows))
        yield from map(Warned, warnings_of_run(self.provenance))

    def to_frame(self) -> pd.DataFrame:
        """Long table ``example, layer, head, role, score, count``; missing scores have no row."""
        frame: pd.DataFrame = _long_table(self.block, self.role_ids).to_pandas()
        return frame

    @property
    def block(self) -> ScoreBlock:
        """The same scores as one block."""
        return ScoreBlock(
            list(self.ids),
            list(self.documents),
            self.lengths,
            self.values,
            self.counts,
            list(self.digests),
            self.offset_shares,
            self.bounds,
        )

    def column(self, role: str) -> NDArray[np.float32]:
        """The scores (examples, layers * heads) of one role, by its id.

        Raises UsageError for a role that was not scored.
        """
        if role not in self.role_ids:
            raise UsageError(not_among("role", role, self.role_ids))
        return self.values[..., self.role_ids.index(role)].reshape(self.n_examples, -1)

    def record(self) -> dict[str, Any]:
        """The provenance, and what it takes to read the scores back."""
        own = describe_scores(self.roles, self.score, self.n_layers, self.n_heads)
        n_scores = int(np.count_nonzero(~np.isnan(self.values)))
        return {**self.provenance, **own, "scores": n_scores}

    def write_files(self, folder: Path) -> list[str]:
        """Write ``scores.parquet``, ``examples.parquet`` and, if there is any, what offsets hit."""
        with ScoreWriter(folder, self.role_ids) as writer:
            writer.write(self.block)
        return writer.files

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> HeadScores:
        """Read back the files; what they hold must be what ``run.json`` says."""
        of_examples = storage.read_table(folder / EXAMPLES_FILE)
        table = storage.read_table(folder / SCORES_FILE)
        try:
            examples = of_examples.drop_columns(list(_BOUNDS)).to_pydict()
            roles = tuple(map(Role.from_record, provenance["roles"]))
            shape = (len(examples["example"]), provenance["layers"], provenance["heads"])
            if table.num_rows != provenance["scores"]:
                raise ValueError(f"{table.num_rows} scores instead of {provenance['scores']}")
            ids = [role.id for role in roles]
            score = SCORES[provenance["score"]]
            values, counts = _from_long(table, examples["example"], ids, shape)
            _refuse_empty_heads(values, provenance.get("removed_heads", ()))
            return cls(
                ids=tuple(examples["example"]),
                documents=tuple(examples["document"]),
                lengths=np.asarray(examples["tokens"], dtype=np.int64),
                roles=roles,
                values=values,
                counts=counts,
                score=score,
                provenance=provenance,
                digests=_known_digests(examples),
                offset_shares=_read_shares(folder, examples["example"], ids, score),
                bounds=_known_bounds(of_examples, len(ids)),
            )
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{folder / SCORES_FILE} does not match {storage.RUN_FILE} beside it ({error!r}); "
                "score again"
            ) from error


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return bool(one == other)


def describe_scores(
    roles: Sequence[Role], score: Score, n_layers: int, n_heads: int
) -> dict[str, Any]:
    """What provenance says of the axes of a table of scores."""
    return {
        "score": score.name,
        "roles": [role.to_record() for role in roles],
        "layers": n_layers,
        "heads": n_heads,
    }


def describe_run(provenance: dict[str, Any]) -> str:
    """What was scored, and what was skipped and why, for people."""
    model, corpus = provenance.get("model"), provenance.get("corpus")
    if not model or not corpus:
        return "scores made by hand\n"
    lines = [
        f"model   {model['model']} ({model['family']}, {provenance['layers']} layers x "
        f"{provenance['heads']} heads)",
        f"corpus  {listed(corpus['files']) or 'sentences in memory'}",
        *(f"        {line}" for line in describe_folders(corpus)),
        f"        {corpus['sentences']} sentences, {corpus['documents']} documents, "
        f"{provenance['examples']} examples scored ({corpus['scheme']} relations)",
    ]
    if absent := provenance["absent_relations"]:
        lines.append(f"        no arcs of the default relations {', '.join(absent)}")
    skipped = [f"{reason}: {count}" for reason, count in provenance["skipped"].items()]
    lines += [f"pieces  {line}" for line in describe_pieces(provenance)]
    lines.append(f"skipped {', '.join(skipped) if skipped else 'nothing'}\n")
    return "\n".join(lines)


def facts_of_run(provenance: dict[str, Any]) -> dict[str, Any]:
    """The same for scripts."""
    kept = ("model", "corpus", "layers", "heads", "examples", "skipped", "pieces", "options")
    return {key: provenance.get(key) for key in kept}


class ScoreWriter:
    """Writes blocks of scores to Parquet files as they come.

    Rows are sorted by role, layer, head and example within a block: the index columns then
    shrink to almost nothing, and a file costs little more than the four bytes of each score.
    """

    def __init__(self, folder: Path, roles: Sequence[str]) -> None:
        """``roles`` are ids."""
        self._roles = tuple(roles)
        self._scores = storage.TableWriter(folder / SCORES_FILE)
        self._examples = storage.TableWriter(folder / EXAMPLES_FILE)
        self._offsets = storage.TableWriter(folder / OFFSETS_FILE)
        self.files = [SCORES_FILE, EXAMPLES_FILE]

    def __enter__(self) -> ScoreWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._scores.close()
        self._examples.close()
        self._offsets.close()

    def write(self, block: ScoreBlock) -> None:
        """Append one block."""
        self._scores.write(_long_table(block, self._roles))
        self._examples.write(_examples_table(block))
        if block.offset_shares is not None:
            self._offsets.write(_shares_table(block.ids, self._roles, block.offset_shares))
            self.files = [SCORES_FILE, EXAMPLES_FILE, OFFSETS_FILE]


def _examples_table(block: ScoreBlock) -> pa.Table:
    import pyarrow as pa

    unknown = [None] * len(block.ids)
    return pa.table(
        {
            "example": block.ids,
            "document": block.documents,
            "tokens": pa.array(block.lengths, pa.int32()),
            "digest": pa.array(block.digests or unknown, pa.string()),
            **{name: _bounds_column(block, side) for side, name in enumerate(_BOUNDS)},
        }
    )


def _shares_table(
    ids: Sequence[str], roles: Sequence[str], shares: NDArray[np.float32]
) -> pa.Table:
    """A row per example and role that has any, a column per offset."""
    import pyarrow as pa

    example, role = np.nonzero(~np.isnan(shares[..., 0]))
    found = shares[example, role].T
    columns = {_named(offset): own for offset, own in zip(OFFSETS, found, strict=True)}
    index = {
        "example": pa.DictionaryArray.from_arrays(example.astype(np.int32), list(ids)),
        "role": pa.DictionaryArray.from_arrays(role.astype(np.int16), list(roles)),
    }
    return pa.table({**index, **columns})


def _named(offset: int) -> str:
    return f"{offset:+d}"


def _read_shares(
    folder: Path, ids: Sequence[str], roles: Sequence[str], score: Score
) -> NDArray[np.float32] | None:
    if not score.of_first_choice:
        return None
    table = storage.read_table(folder / OFFSETS_FILE)
    shares = np.full((len(ids), len(roles), len(OFFSETS)), np.nan, dtype=np.float32)
    examples, places = ({name: k for k, name in enumerate(names)} for names in (ids, roles))
    for batch in table.to_batches():
        example = _decode(batch.column("example"), examples)
        role = _decode(batch.column("role"), places)
        for place, offset in enumerate(OFFSETS):
            shares[example, role, place] = batch.column(_named(offset)).to_numpy()
    return shares


def _bounds_column(block: ScoreBlock, side: int) -> pa.Array:
    """For each example a list of one number per role."""
    import pyarrow as pa

    n_roles = block.counts.shape[1]
    if block.bounds is None:
        return pa.nulls(len(block.ids), pa.list_(pa.float32(), n_roles))
    flat = pa.array(np.ascontiguousarray(block.bounds[..., side], dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, n_roles)


def _known_bounds(examples: pa.Table, n_roles: int) -> NDArray[np.float32] | None:
    """The bounds of all examples; None where some are missing."""
    columns = [examples.column(name).combine_chunks() for name in _BOUNDS]
    if any(column.null_count for column in columns):
        return None
    sides = [column.flatten().to_numpy().reshape(-1, n_roles) for column in columns]
    return np.stack(sides, axis=-1).astype(np.float32)


def _known_digests(examples: dict[str, list[Any]]) -> tuple[str, ...]:
    """The digests of all examples; none where some are missing."""
    digests = examples["digest"]
    return () if None in digests else tuple(digests)


def _long_table(block: ScoreBlock, roles: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("e", "l", "h", "r", "s", "n")}
    for role in range(len(roles)):  # one at a time: the indices of all would take much memory
        values = np.moveaxis(block.values[..., role], 0, -1)
        present = ~np.isnan(values)
        layer, head, example = np.nonzero(present)
        columns["e"].append(example.astype(np.int32))
        columns["l"].append(layer.astype(np.int16))
        columns["h"].append(head.astype(np.int16))
        columns["r"].append(np.full(len(example), role, dtype=np.int16))
        columns["s"].append(values[present])
        columns["n"].append(block.counts[example, role].astype(np.int32))
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return pa.table(
        {
            "example": pa.DictionaryArray.from_arrays(joined["e"], block.ids),
            "layer": joined["l"],
            "head": joined["h"],
            "role": pa.DictionaryArray.from_arrays(joined["r"], list(roles)),
            "score": joined["s"],
            "count": joined["n"],
        }
    )


def _from_long(
    table: pa.Table, ids: Sequence[str], roles: Sequence[str], shape: tuple[int, int, int]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    values = np.full((*shape, len(roles)), np.nan, dtype=np.float32)
    counts = np.zeros((shape[0], len(roles)), dtype=np.int64)
    places = {name: place for place, name in enumerate(ids)}
    for batch in table.to_batches():
        example = _decode(batch.column("example"), places)
        role = _decode(batch.column("role"), {name: k for k, name in enumerate(roles)})
        layer, head = (batch.column(name).to_numpy() for name in ("layer", "head"))
        values[example, layer, head, role] = batch.column("score").to_numpy()
        counts[example, role] = batch.column("count").to_numpy()
    if table.num_rows != int((~np.isnan(values)).sum()):
        raise ValueError("scores that stand there twice")
    return values, counts


def _refuse_empty_heads(values: NDArray[np.float32], removed: Sequence[Sequence[int]]) -> None:
    """Raise ValueError for a head without a score that was not removed from the model."""
    empty = map(list, np.argwhere(np.isnan(values).all(axis=(0, 3))).tolist())
    if any(head not in removed for head in empty):
        raise ValueError("heads without any score")


def _decode(column: Any, places: dict[str, int]) -> NDArray[np.int64]:
    """Places of the values of a dictionary column, looked up once per distinct value."""
    table = np.array([places[name] for name in column.dictionary.to_pylist()], dtype=np.int64)
    decoded: NDArray[np.int64] = table[column.indices.to_numpy()]
    return decoded
