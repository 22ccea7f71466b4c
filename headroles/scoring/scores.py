"""Scores of every example, layer, head and role, the input of all tests."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike, NDArray

from headroles import storage
from headroles.arrays import Float32Array, IntArray
from headroles.errors import StorageError, UsageError
from headroles.inference.doubled import Clusters, find_clusters
from headroles.models.options import CROSS
from headroles.record import Record, ScoreFacts
from headroles.results.showing import Showing
from headroles.results.shown import Grid, Shown, Title, Warned
from headroles.role_names import ENDS
from headroles.roles import (
    BIAS,
    N_RULES,
    OFFSETS,
    OFFSETS_ACROSS,
    SCORES,
    UPOS,
    ClassRules,
    Role,
    Score,
    contrast_of,
    find_role,
    find_roles,
    roles_of,
)
from headroles.scoring.options import HALF
from headroles.scoring.run_notes import describe_run, warnings_of_run
from headroles.scoring.tables import (
    FILES,
    SCORES_FILE,
    Fields,
    long_table,
    read_fields,
    write_blocks,
)
from headroles.wording import as_given, head_name

if TYPE_CHECKING:
    import pandas as pd


_OF_ROLES = ("offset_shares", "class_hits", "bounds")
"""Arrays (examples, roles, ...) that some scores lack."""


@dataclass(frozen=True, repr=False, eq=False)
class HeadScores(Showing):
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
    of always looking at each of the ``offsets``, in words from the query; NaN for roles
    that are not about pairs of words. ``class_hits`` (examples, roles, rules), uint16, are the
    numbers of arcs, out of the counts, that the nearest word of a class is right for, in the order
    of `class_rules`. Both are None with other scores, and hits in files that lack them.

    >>> values = np.array([[[[2.0], [0.5]]], [[[4.0], [np.nan]]]], dtype=np.float32)
    >>> counts = np.array([[3], [2]])
    >>> roles, lengths = (Role("local"),), np.array([5, 4])
    >>> scores = HeadScores(("a", "b"), ("d", "d"), lengths, roles, values, counts)
    >>> scores.n_layers, scores.n_heads, scores.n_examples
    (1, 2, 2)
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
    record: Record = field(default_factory=Record)
    digests: tuple[str, ...] = ()
    offset_shares: Float32Array | None = None
    class_hits: NDArray[np.uint16] | None = None
    bounds: Float32Array | None = None
    n_scores: InitVar[int | None] = None
    """Number of scores that are not missing, if it is known; they are counted otherwise."""

    kind: ClassVar[str] = "scores"
    question: ClassVar[str] = "How strong is each head in each role?"
    views: ClassVar[tuple[str, ...]] = ("long", "means")
    figures: ClassVar[Mapping[str, str]] = {"means": "headroles.drawing.means:draw_means"}
    go_on: ClassVar[str] = (
        "Go on with assign_roles(scores), .means(), .plot(role=...), .save(FOLDER), .in_full()."
    )
    hint: ClassVar[str] = (
        "name folders that score or classify wrote; score models with: headroles score"
    )

    def __post_init__(self, n_scores: int | None) -> None:
        """Make the record describe the arrays."""
        if n_scores is None:  # an example at a time saves memory
            n_scores = sum(int(np.count_nonzero(~np.isnan(scores))) for scores in self.values)
        layers, heads = self.values.shape[1:3]
        model = structs.replace(self.record.model, layers=layers, heads=heads)
        said = {**describe_scores(self.roles, self.score), "scores": n_scores}
        record = structs.replace(
            self.record, kind=self.kind, model=model, facts={**self.record.facts, **said}
        )
        object.__setattr__(self, "record", record)

    @cached_property
    def facts(self) -> ScoreFacts:
        """Facts of the record about the scores."""
        return ScoreFacts.read(self.record.facts)

    @cached_property
    def clusters(self) -> Clusters:
        """Clusters of the examples: documents, joined where they share texts."""
        pieces = self.record.corpus.pieces
        per_word = 1.0 if pieces is None else pieces.per_word
        return find_clusters(self.documents, self.digests, self.lengths, per_word)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The names of examples, by field."""
        return {"ids": self.ids, "documents": self.documents, "digests": self.digests}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of examples that are not None, by field."""
        names = ("lengths", "values", "counts", *_OF_ROLES)
        return {name: array for name in names if (array := getattr(self, name)) is not None}

    @property
    def as_fields(self) -> Fields:
        """The content of tables: names, arrays and roles, by field."""
        return {**self.names, **self.arrays, "roles": self.roles}

    @classmethod
    def joined(cls, parts: Sequence[HeadScores], record: Record) -> HeadScores:
        """Join scores of the same roles, without fields that a part lacks."""
        joined: dict[str, Any] = dict.fromkeys(_OF_ROLES)
        for name in parts[0].names:
            joined[name] = tuple(chain.from_iterable(part.names[name] for part in parts))
        if len(joined["digests"]) < len(joined["ids"]):
            joined["digests"] = ()
        for name in set.intersection(*(set(part.arrays) for part in parts)):
            arrays = [part.arrays[name] for part in parts]
            joined[name] = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
        n_scores = sum(part.facts.scores for part in parts)
        return replace(parts[0], **joined, record=record, n_scores=n_scores)

    @classmethod
    def without_examples(
        cls,
        shape: tuple[int, int],
        roles: Sequence[Role],
        score: Score,
        record: Record | None = None,
    ) -> HeadScores:
        """Return scores of a run, of these (layers, heads), of which no example is in memory."""
        n_roles = len(roles)
        n_scores = record.facts["scores"] if record is not None else 0
        return cls(
            ids=(),
            documents=(),
            lengths=np.zeros(0, np.int64),
            roles=tuple(roles),
            values=np.zeros((0, *shape, n_roles), np.float32),
            counts=np.zeros((0, n_roles), np.int64),
            score=score,
            record=record or Record(),
            offset_shares=_if_hit(score, np.zeros((0, n_roles, len(OFFSETS)), np.float32)),
            class_hits=_if_hit(score, np.zeros((0, n_roles, N_RULES), np.uint16)),
            bounds=np.zeros((0, n_roles, 2), np.float32),
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
            UsageError: values of another shape, an unknown role, too few or too many documents, or
                bounds below 0 of roles that are no contrasts.

        >>> HeadScores.by_hand([[[[4.0], [1.0]]], [[[5.0], [2.0]]]], ["local"]).n_heads
        2
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
        role_ids = [role for role in roles if isinstance(role, str)]
        by_id = {role.id: role for role in roles_of(role_ids, BIAS)}
        roles_made = tuple(by_id[role] if isinstance(role, str) else role for role in roles)
        limits = None if bounds is None else _bounds_by_hand(bounds, roles_made, len(table))
        return cls(
            ids=ids,
            documents=tuple(["document"] * len(ids) if documents is None else map(str, documents)),
            lengths=np.ones(len(ids), dtype=np.int64),
            roles=roles_made,
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
        names = (field.name for field in fields(self))
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def summarize(self) -> Iterator[Shown]:
        """Yield the description of the run and its warnings, which the record alone has."""
        if self.record.is_by_hand:
            yield (
                f"{self.n_layers} layers x {self.n_heads} heads, {len(self.roles)} roles, "
                f"{self.n_examples} examples"
            )
        yield describe_run(self.record)
        yield from map(Warned, warnings_of_run(self.record))

    def details(self) -> Iterator[Shown]:
        """Yield a table of roles: examples with a score, mean over all heads, strongest head."""
        if not self.n_examples:
            return
        means = self.means().groupby("role", sort=False)
        rows = []
        for role in self.roles:
            if role.control or role.id not in means.groups:
                continue
            of_role = means.get_group(role.id)
            strongest = of_role.iloc[int(of_role["mean"].to_numpy().argmax())]
            rows.append(
                (
                    role.words or role.id,
                    str(int(of_role["n"].max())),
                    f"{of_role['mean'].mean():.3f}",
                    head_name((int(strongest["layer"]), int(strongest["head"]))),
                    f"{strongest['mean']:.3f}",
                )
            )
        yield Title("Means")
        yield Grid(("Role", "Examples", "All heads", "Strongest", "Its mean"), tuple(rows))

    def to_json(self) -> dict[str, Any]:
        """Return model, corpus, options and warnings of the run, for scripts."""
        run = {name: getattr(self.record, name) for name in ("model", "corpus", "options")}
        return {**storage.plain(run), "warnings": self.warnings}

    def next_steps(self, folder: str) -> tuple[str, ...]:
        """Name the command that tests the scores; parts of a corpus are joined first."""
        if self.facts.part is not None:
            return ()
        return (f"Test:    headroles assign {folder}",)

    def clearest_role(self) -> str:
        """Return the tested role in which a head has the greatest mean."""
        means = self.means()
        tested = means[means["role"].isin([role.id for role in self.roles if role.is_tested])]
        if tested.empty:
            raise UsageError("no role has a score to draw")
        return str(tested["role"].iloc[int(tested["mean"].to_numpy().argmax())])

    @property
    def frame(self) -> pd.DataFrame:
        """A table ``example, layer, head, role, score, count``, without missing scores."""
        frame: pd.DataFrame = long_table(self.as_fields).to_pandas()
        return frame

    def means(self) -> pd.DataFrame:
        """Return a table ``role, layer, head, n, mean``: of each role that any example has."""
        import pandas as pd

        tables = []
        for place, role in enumerate(self.roles):
            values = self.values[..., place]
            present = ~np.isnan(values)
            n = present.sum(axis=0)
            total = np.where(present, values, 0).sum(axis=0, dtype=np.float64)
            layer, head = np.nonzero(n)
            columns = {"layer": layer, "head": head, "n": n[layer, head]}
            mean = total[layer, head] / n[layer, head]
            tables.append(pd.DataFrame({"role": role.id, **columns, "mean": mean}))
        return pd.concat(tables, ignore_index=True)

    def rounded(self) -> HeadScores:
        """Return the scores with values and bounds rounded to float16, stored as float32.

        Rounding is monotonic, so rounded values still lie between rounded bounds.
        """
        values, bounds = (
            None if array is None else array.astype(np.float16).astype(np.float32)
            for array in (self.values, self.bounds)
        )
        assert values is not None
        return replace(self, values=values, bounds=bounds)

    def column(self, role: str) -> Float32Array:
        """Return the scores (examples, layers * heads) of one role, named as `find_role` allows.

        Raises UsageError for a role that was not scored.
        """
        place = self.role_ids.index(find_role(role, self.roles))
        return self.values[..., place].reshape(self.n_examples, -1)

    def class_rules(self, role: str) -> ClassRules:
        """Return the rules that the first choices of a role, by id, are compared with."""
        classes = self.facts.class_rules.get(role, ()) if self.class_hits is not None else ()
        return ClassRules(tuple(classes), self.record.options.get("classes") or UPOS)

    def select(
        self, rows: NDArray[np.integer] | None = None, roles: Sequence[str] | None = None
    ) -> HeadScores:
        """Return the scores of the examples at ``rows``, in their order, for ``roles``, by id."""
        chosen = np.arange(self.n_examples) if rows is None else rows
        columns = [self.role_ids.index(role) for role in roles or self.role_ids]
        arrays = {name: array[chosen] for name, array in self.arrays.items()}
        arrays["values"] = arrays["values"][..., columns]
        for name in arrays.keys() & {"counts", *_OF_ROLES}:
            arrays[name] = arrays[name][:, columns]
        fields_of_examples: dict[str, Any] = {
            **{name: tuple(ids[row] for row in chosen if ids) for name, ids in self.names.items()},
            **arrays,
        }
        return replace(
            self, **fields_of_examples, roles=tuple(self.roles[column] for column in columns)
        )

    def where(
        self,
        role: str | Sequence[str] | None = None,
        layer: object = None,
        only_assigned: bool = False,
        beyond: str | None = None,
    ) -> HeadScores:
        """Return the scores of roles, named as `find_roles` allows.

        Raises UsageError for a role that was not scored, and for what only tables of tests have.
        """
        if layer is not None or only_assigned or beyond is not None:
            raise UsageError(
                "scores are chosen by `role` alone, as they were not tested; test them first: "
                "headroles assign"
            )
        if role is None:
            return self
        names = [role] if isinstance(role, str) else role
        found = [name for one in names for name in find_roles(one, self.roles)]
        return self.select(roles=[name for name in self.role_ids if name in found])

    def of_head(self, head: tuple[int, int], role: str) -> Float32Array:
        """Return the scores (examples,) of one head, given as (layer, head), for a role.

        The role is the one of `role_of`. Raises UsageError for a head that does not exist, or a
        role that was not scored.
        """
        place = self._place_of(head)
        return self.column(self.role_of(head, role))[:, place]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets in words that first choices are compared with; from a target to its source those
        from the same place.
        """
        return OFFSETS_ACROSS if self.record.model.attention == CROSS else OFFSETS

    def turned(self, role: str) -> str:
        """Return the id of the role of the same arcs in the other direction, empty if not scored.

        A decoder sees each arc in one of the two.
        """
        stem, _, end = role.rpartition(":")
        other = dict(zip(ENDS, ENDS[::-1], strict=True)).get(end, "")
        turned = f"{stem}:{other}"
        return turned if turned in self.role_ids else ""

    def role_of(self, head: tuple[int, int], name: str) -> str:
        """Return the id of the role that a user names, for a head given as (layer, head).

        A relation means the direction, and the part, in which the head is stronger: beyond
        distance, if contrasts were scored. Raises UsageError as `of_head`.
        """
        return self.roles_of(head, name)[0]

    def roles_of(self, head: tuple[int, int], name: str) -> list[str]:
        """Return the ids of all roles that a user names, those first in which a head is stronger.

        Raises UsageError as `of_head`.
        """
        place, matching = self._place_of(head), find_roles(name, self.roles)
        contrasts = [contrast_of(role) for role in matching]
        columns = contrasts if set(contrasts) <= set(self.role_ids) else matching
        if len(matching) == 1:
            return matching
        import pandas as pd

        means = [pd.Series(self.column(role)[:, place]).mean() for role in columns]
        order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
        return [matching[place] for place in order]

    def _place_of(self, head: tuple[int, int]) -> int:
        """Return the index of a head among all. Raises UsageError for one that does not exist."""
        try:
            numbers = tuple(map(operator.index, head))
        except TypeError:
            numbers = ()
        if len(numbers) != 2:
            raise UsageError(f"the head is {as_given(head)}; give two whole numbers: (layer, head)")
        for axis, number, n in zip(("layer", "head"), numbers, self.values.shape[1:3], strict=True):
            if not 0 <= number < n:
                raise UsageError(f"the {axis} is {number}; it must be 0 to {n - 1}")
        return numbers[0] * self.n_heads + numbers[1]

    def encoded(self) -> bytes:
        """Encode as safetensors: the arrays, and names and record as JSON."""
        return storage.encode_arrays(
            self.arrays, {**self.names, "record": storage.plain(self.record)}
        )

    def decoded(self, content: bytes) -> HeadScores:
        """Decode what `encoded` made of scores of other examples of the same run.

        Raises ValueError, KeyError or TypeError for other content.
        """
        arrays, notes = storage.decode_arrays(content), storage.decode_notes(content)
        names = {name: tuple(notes[name]) for name in self.names}
        form, needed = (
            {name: (array.dtype, array.shape[1:]) for name, array in some.items()}
            for some in (arrays, self.arrays)
        )
        sizes = {len(array) for array in (*names.values(), *arrays.values())}
        if form != needed or len(sizes) > 1:
            raise ValueError(f"it holds {form} of {sizes} examples instead of {needed}")
        of_examples: dict[str, Any] = {**names, **arrays}
        return replace(self, **of_examples, record=Record.read(notes["record"]))

    @classmethod
    def file_names(cls) -> Sequence[str]:
        """Return the names of the files of scores and of examples."""
        return FILES

    def write_files(self, folder: Path) -> list[str]:
        """Write ``scores.parquet`` and ``examples.parquet``."""
        return write_blocks(folder, [self.as_fields], is_rounded(self.record))

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> HeadScores:
        """Read the files back. Raises StorageError if they do not match ``run.json``."""
        try:
            scores = cls(**read_fields(folder, record), record=record)
            _check_heads(scores.values, record.model.removed_heads)
            return scores
        except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise StorageError(
                f"{folder / SCORES_FILE} does not match {storage.RUN_FILE} beside it ({error!r}); "
                "score again"
            ) from error


def _bounds_by_hand(bounds: tuple[float, float], roles: Sequence[Role], n: int) -> Float32Array:
    """Return bounds (n, roles, 2) of bias scores, which are 0 or more; contrasts may be less."""
    is_contrast = np.array([role.baseline is not None for role in roles])
    if bounds[0] < 0 and not is_contrast.any():
        raise UsageError(
            f"the bounds begin at {bounds[0]:g}, and bias scores are 0 or more; pass "
            f"bounds=(0, {bounds[1]:g})"
        )
    limits = np.tile(np.array(bounds, np.float32), (n, len(roles), 1))
    limits[:, ~is_contrast, 0] = max(0, bounds[0])
    return limits


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return bool(first == second)


def describe_scores(roles: Sequence[Role], score: Score) -> dict[str, Any]:
    """Return the facts that describe a table of scores."""
    return {"score": score.name, "roles": [storage.plain(role.to_record()) for role in roles]}


def is_rounded(record: Record) -> bool:
    """Tell whether scores were rounded to float16 before they were stored."""
    return bool(record.options.get("precision") == HALF)


def _check_heads(values: Float32Array, removed: Sequence[tuple[int, int]]) -> None:
    """Raise ValueError for a head without a score that was not removed from the model."""
    of_roles = [np.isnan(scores).all(axis=0) for scores in np.moveaxis(values, -1, 0)]
    empty = map(tuple, np.argwhere(np.all(of_roles, axis=0)).tolist())
    if any(head not in removed for head in empty):
        raise ValueError("heads without any score")


def write_scores(
    folder: Path, blocks: Iterable[HeadScores], is_half: bool, make_record: Callable[[], Record]
) -> HeadScores:
    """Write scores into an existing folder as they come, then their record.

    Memory does not grow with the number of blocks, and the files are those of `HeadScores.save`.
    ``is_half`` stores scores as float16. ``make_record`` is called once all blocks are written.
    Returns the scores without examples.
    """
    written = write_blocks(folder, (block.as_fields for block in blocks), is_half)
    files, record = storage.digests_of(folder, written), make_record()
    storage.write_run(folder, {HeadScores.kind: record}, {HeadScores.kind: files})
    facts = ScoreFacts.read(record.facts)
    roles = [*map(Role.from_record, facts.roles)]
    return HeadScores.without_examples(record.shape, roles, SCORES[facts.score], record)


def _if_hit(score: Score, array: NDArray[Any]) -> NDArray[Any] | None:
    """Return the array for scores of first choices, which alone have it."""
    return array if score.of_first_choice else None
