"""Scores of every example, layer, head and role, the input of all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
import pandas as pd
from msgspec import structs
from numpy.typing import ArrayLike, NDArray

from headroles import storage
from headroles.arrays import Float32Array, IntArray
from headroles.errors import StorageError, UsageError
from headroles.record import Record, RecordedRole, ScoresRecord
from headroles.results.shown import Grid, Shown, Warned, as_html
from headroles.results.stored import Stored
from headroles.roles import BIAS, SCORES, Role, Score, find_role, role_of
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.options import HALF
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.tables import SCORES_FILE, ScoreWriter, long_table, read_block

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, repr=False, eq=False)
class HeadScores(Stored):
    """Scores of all examples, with the record of the run that computed them.

    `score_heads` and `score_attention` make them, and `HeadScores.load` reads what `save` wrote.
    ``values`` (examples, layers, heads, roles), float32, is NaN where an example has no score for a
    role. ``counts`` (examples, roles) is the number of tokens, or of the role's unit, behind a
    score. Layers and heads count from 0. ``score`` is the kind of score, one of `SCORES`.

    ``digests`` (examples,) are those of `EncodedExample`, by which comparisons match examples;
    empty for scores made by hand. ``bounds`` (examples, roles, 2), float32, are the least and
    greatest possible scores of an example, whatever the attention; they follow from its sieves
    alone. NaN without a score or if unknown, None if none were stored.

    ``offset_shares`` (examples, roles, offsets), only with scores of first choices, are the scores
    of always looking at each of `headroles.roles.OFFSETS`, in words from the query; NaN for roles
    that are not about pairs of words. None with other scores.

    >>> values = np.array([[[[2.0], [0.5]]], [[[4.0], [np.nan]]]], dtype=np.float32)
    >>> counts = np.array([[3], [2]])
    >>> roles, lengths = (Role("local"),), np.array([5, 4])
    >>> scores = HeadScores(("a", "b"), ("d", "d"), lengths, roles, values, counts)
    >>> scores
    HeadScores(1 layers x 2 heads, 1 roles, 2 examples)
    >>> scores.of_head((0, 0), "local")
    array([2., 4.], dtype=float32)
    """

    ids: tuple[str, ...]
    documents: tuple[str, ...]
    lengths: IntArray
    roles: tuple[Role, ...]
    values: Float32Array
    counts: IntArray
    score: Score = SCORES["bias"]
    record: ScoresRecord = field(default_factory=ScoresRecord)
    digests: tuple[str, ...] = ()
    offset_shares: Float32Array | None = None
    bounds: Float32Array | None = None
    n_scores: InitVar[int | None] = None
    """Number of scores that are not missing, if it is known; they are counted otherwise."""

    kind: ClassVar[str] = "scores"
    remedy: ClassVar[str] = "name folders that score or classify wrote"

    def __post_init__(self, n_scores: int | None) -> None:
        """Make the record describe the arrays."""
        said = describe_scores(self.roles, self.score, *self.values.shape[1:3])
        count = self.block.n_scores if n_scores is None else n_scores
        record = structs.replace(self.record, **said, scores=count)
        object.__setattr__(self, "record", record)

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[ScoreBlock],
        roles: Sequence[Role],
        score: Score,
        record: ScoresRecord,
        n_scores: int | None = None,
    ) -> HeadScores:
        """Join all ``blocks`` in order; ``n_scores`` is their number of scores, if known."""
        whole = ScoreBlock.joined(blocks)
        return cls(
            score=score,
            ids=tuple(whole.ids),
            documents=tuple(whole.documents),
            lengths=whole.lengths,
            roles=tuple(roles),
            values=whole.values,
            counts=whole.counts,
            record=record,
            digests=tuple(whole.digests),
            offset_shares=whole.offset_shares,
            bounds=whole.bounds,
            n_scores=n_scores,
        )

    @classmethod
    def by_hand(
        cls,
        values: ArrayLike,
        roles: Sequence[Role | str],
        documents: Sequence[str] | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> HeadScores:
        """Make scores of numbers that were computed elsewhere.

        Args:
            values: (examples, layers, heads, roles), NaN where an example has no score.
            roles: the roles or their ids; ids of your own roles have a colon: ``mine:negation``.
            documents: the document of each example; if None, all are of one, and independent.
            bounds: the least and the greatest score possible, which certified answers need.

        Raises:
            UsageError: values of another shape, an unknown role, too few or too many documents.

        >>> HeadScores.by_hand([[[[4.0], [1.0]]], [[[5.0], [2.0]]]], ["local"])
        HeadScores(1 layers x 2 heads, 1 roles, 2 examples)
        """
        table = np.asarray(values, dtype=np.float32)
        if table.ndim != 4 or table.shape[3] != len(roles) or 0 in table.shape:
            raise UsageError(
                f"the values have the shape {table.shape}; with {len(roles)} roles they must be "
                f"(examples, layers, heads, {len(roles)})"
            )
        if documents is not None and len(documents) != len(table):
            raise UsageError(
                f"there are {len(documents)} documents for {len(table)} examples; name one for each"
            )
        has_score = np.asarray(~np.isnan(table).all(axis=(1, 2)))
        ids = tuple(f"example-{k}" for k in range(len(table)))
        made = tuple(one if isinstance(one, Role) else role_of(one, BIAS) for one in roles)
        limits = (
            None if bounds is None else np.tile(np.array(bounds, np.float32), (*has_score.shape, 1))
        )
        return cls(
            ids=ids,
            documents=tuple(["document"] * len(ids) if documents is None else map(str, documents)),
            lengths=np.ones(len(ids), dtype=np.int64),
            roles=made,
            values=table,
            counts=has_score.astype(np.int64),
            digests=ids,
            bounds=limits,
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
        """Tell whether both have the same scores of the same examples, and the same record."""
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
        """Yield a table of examples with a score and mean over all heads, for each role."""
        yield repr(self)
        rows = []
        for place, role in enumerate(self.roles):
            n = int((self.counts[:, place] > 0).sum())
            mean = f"{np.nanmean(self.values[..., place]):.3f}" if n else "-"
            rows.append((role.id, str(n), mean))
        yield Grid(("role", "examples", "mean score"), tuple(rows))
        yield from map(Warned, warnings_of_run(self.record))

    def to_frame(self) -> pd.DataFrame:
        """Return a table ``example, layer, head, role, score, count``, without missing scores."""
        frame: pd.DataFrame = long_table(self.block, self.role_ids).to_pandas()
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

    def column(self, role: str) -> Float32Array:
        """Return the scores (examples, layers * heads) of one role, named as `find_role` allows.

        Raises UsageError for a role that was not scored.
        """
        place = self.role_ids.index(find_role(role, self.role_ids))
        return self.values[..., place].reshape(self.n_examples, -1)

    def select(
        self, rows: NDArray[np.integer] | None = None, roles: Sequence[str] | None = None
    ) -> HeadScores:
        """Return the scores of the examples at ``rows``, in their order, for ``roles``, by id."""
        chosen = np.arange(self.n_examples) if rows is None else rows
        places = [self.role_ids.index(role) for role in roles or self.role_ids]
        shares, bounds = self.offset_shares, self.bounds
        return replace(
            self,
            ids=tuple(self.ids[row] for row in chosen),
            documents=tuple(self.documents[row] for row in chosen),
            lengths=self.lengths[chosen],
            roles=tuple(self.roles[place] for place in places),
            values=self.values[chosen][..., places],
            counts=self.counts[chosen][:, places],
            digests=tuple(self.digests[row] for row in chosen) if self.digests else (),
            offset_shares=None if shares is None else shares[chosen][:, places],
            bounds=None if bounds is None else bounds[chosen][:, places],
        )

    def of_head(self, head: tuple[int, int], role: str) -> Float32Array:
        """Return the scores (examples,) of one head, given as (layer, head), for a role.

        Raises UsageError for a head that does not exist, or a role that was not scored.
        """
        for axis, place, n in zip(("layer", "head"), head, self.values.shape[1:3], strict=True):
            if not 0 <= place < n:
                raise UsageError(f"the {axis} is {place}; it must be 0 to {n - 1}")
        return self.column(role)[:, head[0] * self.n_heads + head[1]]

    def write_files(self, folder: Path) -> list[str]:
        """Write ``scores.parquet``, ``examples.parquet`` and, if any, the offset shares."""
        is_half = self.record.rounded == HALF
        with ScoreWriter(folder, self.role_ids, is_half) as writer:
            writer.write(self.block)
        return writer.files

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> HeadScores:
        """Read the files back. Raises StorageError if they do not match ``run.json``."""
        said = ScoresRecord.extending(record)
        try:
            roles = tuple(map(Role.from_record, said.roles))
            ids = [role.id for role in roles]
            block = read_block(folder, ids, said.shape, SCORES[said.score], said.scores)
            _refuse_empty_heads(block.values, said.removed_heads)
            return cls.from_blocks([block], roles, SCORES[said.score], said, said.scores)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{folder / SCORES_FILE} does not match {storage.RUN_FILE} beside it ({error!r}); "
                "score again"
            ) from error


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return bool(one == other)


class ScoreFields(TypedDict):
    """Fields of a record that describe a table of scores."""

    score: str
    roles: list[RecordedRole]
    layers: int
    heads: int


def describe_scores(
    roles: Sequence[Role], score: Score, n_layers: int, n_heads: int
) -> ScoreFields:
    """Return the fields of a record that describe a table of scores."""
    return {
        "score": score.name,
        "roles": [role.to_record() for role in roles],
        "layers": n_layers,
        "heads": n_heads,
    }


def _refuse_empty_heads(values: Float32Array, removed: Sequence[tuple[int, int]]) -> None:
    """Raise ValueError for a head without a score that was not removed from the model."""
    of_roles = [np.isnan(one).all(axis=0) for one in np.moveaxis(values, -1, 0)]
    empty = map(tuple, np.argwhere(np.all(of_roles, axis=0)).tolist())
    if any(head not in removed for head in empty):
        raise ValueError("heads without any score")


def write_scores(
    folder: Path,
    blocks: Iterable[ScoreBlock],
    role_ids: Sequence[str],
    is_half: bool,
    record: Callable[[], ScoresRecord],
) -> ScoresRecord:
    """Write blocks into an existing folder as they come, then their record; return it.

    ``record`` is called when all blocks are written. Memory does not grow with their number, and
    the files are those of `HeadScores.save`.
    """
    with ScoreWriter(folder, role_ids, is_half) as writer:
        for block in blocks:
            writer.write(block)
    files = storage.digests_of(folder, writer.files)
    made = record()
    storage.write_run(folder, made, {HeadScores.kind: files})
    return made
