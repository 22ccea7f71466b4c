"""Scores of every example, layer, head and role: what all tests start from."""

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
from headroles.record import ScoresRecord
from headroles.results import Grid, Shown, Stored, Warned, as_html
from headroles.roles import SCORES, Role, Score, find_role
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.options import HALF
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.tables import SCORES_FILE, ScoreWriter, long_table, read_block

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    form: ClassVar[type[msgspec.Struct]] = ScoresRecord
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
        whole = ScoreBlock.joined(list(blocks))
        return cls(
            score=score,
            ids=tuple(whole.ids),
            documents=tuple(whole.documents),
            lengths=whole.lengths,
            roles=tuple(roles),
            values=whole.values,
            counts=whole.counts,
            provenance=provenance,
            digests=tuple(whole.digests),
            offset_shares=whole.offset_shares,
            bounds=whole.bounds,
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
        yield from map(Warned, warnings_of_run(self.record))

    def to_frame(self) -> pd.DataFrame:
        """Long table ``example, layer, head, role, score, count``; missing scores have no row."""
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

    def column(self, role: str) -> NDArray[np.float32]:
        """The scores (examples, layers * heads) of one role, named as `find_role` allows.

        Raises UsageError for a role that was not scored.
        """
        place = self.role_ids.index(find_role(role, self.role_ids))
        return self.values[..., place].reshape(self.n_examples, -1)

    def of_head(self, head: tuple[int, int], role: str) -> NDArray[np.float32]:
        """The scores (examples,) of one head, as (layer, head), for a role.

        Raises UsageError for a head that there is not, and a role that was not scored.
        """
        for what, place, n in zip(("layer", "head"), head, self.values.shape[1:3], strict=True):
            if not 0 <= place < n:
                raise UsageError(f"the {what} is {place}; it must be 0 to {n - 1}")
        return self.column(role)[:, head[0] * self.n_heads + head[1]]

    def said(self) -> dict[str, Any]:
        """The provenance, and what it takes to read the scores back."""
        own = describe_scores(self.roles, self.score, self.n_layers, self.n_heads)
        n_scores = int(np.count_nonzero(~np.isnan(self.values)))
        return {**self.provenance, **own, "scores": n_scores}

    def write_files(self, folder: Path) -> list[str]:
        """Write ``scores.parquet``, ``examples.parquet`` and, if there is any, what offsets hit."""
        is_half = self.record.rounded == HALF
        with ScoreWriter(folder, self.role_ids, is_half) as writer:
            writer.write(self.block)
        return writer.files

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> HeadScores:
        """Read back the files; what they hold must be what ``run.json`` says."""
        try:
            roles = tuple(map(Role.from_record, provenance["roles"]))
            record = ScoresRecord.read(provenance)
            score, heads = SCORES[record.score], (record.layers, record.heads)
            ids = [role.id for role in roles]
            block = read_block(folder, ids, heads, score, record.scores)
            _refuse_empty_heads(block.values, record.removed_heads)
            return cls.from_blocks([block], roles, score, provenance)
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


def _refuse_empty_heads(values: NDArray[np.float32], removed: Sequence[tuple[int, int]]) -> None:
    """Raise ValueError for a head without a score that was not removed from the model."""
    empty = map(tuple, np.argwhere(np.isnan(values).all(axis=(0, 3))).tolist())
    if any(head not in removed for head in empty):
        raise ValueError("heads without any score")
