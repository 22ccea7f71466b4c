"""Tables that show, save, load and export themselves, written once for all kinds of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    get_args,
    overload,
)

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from headroles import storage
from headroles.arrays import BoolArray
from headroles.errors import StorageError, UsageError
from headroles.options import Options
from headroles.record import Record
from headroles.registry import all_kinds, command_of, result_type
from headroles.results.columns import Axes, Column, check_rows, check_table
from headroles.results.consistency import Rule, check_consistency
from headroles.results.showing import Showing
from headroles.results.stored import Stored
from headroles.role_names import GROUP, find_roles
from headroles.wording import in_one_line, not_among

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Stored)
_FOR_USERS = frozenset(
    "facts frame export in_full load options plot record save view warnings where".split()
)
"""Names of every result that users need; tab completion hides others."""

OptionsOf = TypeVar("OptionsOf", bound=Options)
FactsOf = TypeVar("FactsOf")


class NoFacts(TypedDict):
    """Facts of a result that has none beside its table."""


_UNFIT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Errors of a record that does not fit its table."""


@dataclass(frozen=True, repr=False, eq=False)
class Result(Showing, Generic[OptionsOf, FactsOf]):
    """A table with the record of its origin.

    A kind of results names the options of its study, and the facts that the study finds beside the
    table, most often a TypedDict: ``class Ranges(Result[RangeOptions, NoFacts])``. Its record has
    both, and loading makes and checks both again.

    ``frame`` has the columns of ``columns``, and is stored in files called ``filename``, by default
    as its kind.

    A table is read back only if it has rows, among them those of `axes`, if its columns are as
    `results.columns` declares by name, or as ``schema`` does for columns that differ, and if no row
    contradicts itself: ``rules`` are those that `results.consistency` does not know by name.
    """

    frame: pd.DataFrame
    record: Record = field(default_factory=Record)

    filename: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    schema: ClassVar[Mapping[str, Column]] = {}
    rules: ClassVar[tuple[Rule, ...]] = ()
    may_be_empty: ClassVar[bool] = False
    options_type: ClassVar[type[Options] | None] = None
    facts_type: ClassVar[Any] = dict[str, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in vars(cls).get("__orig_bases__", ()):
            arguments = get_args(base)
            if len(arguments) == 2 and not any(isinstance(one, TypeVar) for one in arguments):
                cls.options_type, cls.facts_type = arguments
        if kind := vars(cls).get("kind"):
            cls.filename = vars(cls).get("filename", kind.replace(" ", "_"))
            name = command_of(kind)
            usual = f"make one with headroles {name}; for its arguments: headroles {name} --help"
            cls.hint = vars(cls).get("hint", usual)

    @classmethod
    def made(
        cls, frame: pd.DataFrame, options: Options, facts: FactsOf | None = None, **fields: Any
    ) -> Self:
        """Make the result of a study that ends now, with its columns in their order.

        ``fields`` are further fields of its record, such as ``sources``.
        """
        record = Record.now(facts, kind=cls.kind, options=options.record(), **fields)
        return cls(frame[[*cls.columns]], record)

    @property
    def options(self) -> OptionsOf:
        """The options of the study, as a group that was checked."""
        assert self.options_type is not None
        options: Any = self.options_type(**self.record.options)
        return options  # type: ignore[no-any-return]

    @cached_property
    def facts(self) -> FactsOf:
        """Facts that the study found beside the table."""
        facts: FactsOf = msgspec.convert(self.record.facts, self.facts_type)
        return facts

    def to_json(self) -> dict[str, Any]:
        """Return options, facts and rows for scripts; null for missing and infinite numbers."""
        content: dict[str, Any] = storage.plain(
            {
                "options": self.record.options,
                "facts": self.record.facts,
                "rows": self.frame.to_dict("records"),
                "warnings": self.warnings,
            }
        )
        return content

    def where(
        self,
        role: str | Sequence[str] | None = None,
        layer: int | str | Sequence[int | str] | None = None,
        only_assigned: bool = False,
        beyond: str | None = None,
    ) -> Self:
        """Return the rows of these roles, these layers, or heads with the role.

        With ``beyond`` the evidence has to reach this step, ``"class"`` or ``"attractors"``.

        Roles are named by id, in words (``subject -> its verb``) or by their relation (``nsubj``),
        which means both directions. Layers may be texts: some tables have rows for ``all``. In
        names ``*`` stands for anything: ``syntactic*`` are all roles of arcs. Warnings about the
        whole run are dropped. Raises UsageError for a role or layer that the table lacks.
        """
        is_chosen = np.ones(len(self.frame), dtype=bool)
        for column, names in (("role", role), ("layer", layer)):
            if names is not None:
                is_chosen &= self._rows_of(column, np.atleast_1d(np.asarray(names, dtype=object)))
        if only_assigned:
            if "assigned" not in self.frame:
                raise UsageError(f"the {self.kind} does not say which roles are assigned")
            is_chosen &= self.frame["assigned"].to_numpy(dtype=bool)
        if beyond is not None:
            is_chosen &= self._reaching(beyond)
        if is_chosen.all():
            return self
        rows = self.frame[is_chosen].reset_index(drop=True)
        return replace(self, frame=rows, record=structs.replace(self.record, warnings=[]))

    def _reaching(self, step: str) -> BoolArray:
        """Tell which rows have evidence up to a step. Raises UsageError for results without."""
        raise UsageError(f"the {self.kind} has no steps of evidence")

    def __dir__(self) -> list[str]:
        """Return the names for tab completion: of all results those for users, and its own."""
        hidden = {"columns", "filename", "hint", "kind", *dir(Result)} - _FOR_USERS
        return [name for name in super().__dir__() if name not in hidden]

    def _rows_of(self, column: str, names: NDArray[np.object_]) -> BoolArray:
        if column not in self.frame:
            raise UsageError(f"the rows of the {self.kind} are not by {column}")
        values = {str(value): value for value in self.frame[column].unique()}
        chosen = []
        for name in map(str, names):
            matching = [value for text, value in values.items() if fnmatchcase(text, name)]
            if not matching and column == "role" and "*" in name:  # parts have names of the whole
                matching = [
                    values[role.id]
                    for role in self.known_roles(values)
                    if any(fnmatchcase(f"{GROUP}:{other}", name) for other in role.names)
                ]
            if not matching and column == "role":
                matching = [values[role] for role in find_roles(name, self.known_roles(values))]
            if not matching:
                raise UsageError(not_among(column, name, list(values)))
            chosen += matching
        return self.frame[column].isin(chosen).to_numpy()

    @classmethod
    def file_names(cls) -> Sequence[str]:
        """Return the names of the table, as CSV and as Parquet."""
        return [f"{cls.filename}.csv", f"{cls.filename}.parquet"]

    def write_files(self, folder: Path) -> list[str]:
        """Write the table as CSV, which every program reads, and as Parquet."""
        names = [f"{self.filename}.{fmt}" for fmt in ("csv", "parquet")]
        for name in names:
            storage.write_bytes(folder / name, self.export(name.rpartition(".")[2]))
        return names

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the table from its Parquet file."""
        file = folder / f"{cls.filename}.parquet"
        hint = cls.hint.format(folder=folder)
        stored = storage.read_table(file)
        if tuple(stored.column_names) != record.model.rows.with_column(cls.columns):
            raise StorageError(f"{file} does not have the columns of this version; {hint}")
        try:
            if not (len(stored) or cls.may_be_empty):
                raise ValueError("it has no rows")
            check_table(stored, cls.schema, record.shape)
            result = cls(stored.to_pandas(ignore_metadata=True), record)
            check_rows(result.frame, result.axes())
        except ValueError as error:
            raise StorageError(f"{file}: {error}; {hint}") from error
        try:
            for name in ("facts", "shown"):
                getattr(result, name)  # which are made of the record
            if cls.options_type is not None:
                _ = result.options
        except (UsageError, *_UNFIT) as error:
            raise StorageError(
                f"run.json in {folder} does not fit {file.name} ({in_one_line(error)}); {hint}"
            ) from error
        try:
            result.check_layers()
            check_consistency(result.frame, cls.rules, result.options if cls.options_type else None)
        except _UNFIT as error:
            raise StorageError(f"{file}: {in_one_line(error)}; {hint}") from error
        copy = file.with_suffix(".csv")
        if copy.exists() and storage.read_whole(copy) != result.export("csv"):
            raise StorageError(f"{copy.name} and {file.name} in {folder} differ; {hint}")
        return result

    def axes(self) -> Axes:
        """Return the columns of whose values the table has every combination."""
        return {}

    def check_layers(self) -> None:
        """Raise ValueError if a layer of the table lacks rows, where no `axes` tell."""

    def __getitem__(self, role: str) -> pd.DataFrame:
        """Return the rows of a role, or of both directions of a relation, as `where` finds them."""
        return self.where(role).frame

    __iter__ = None  # which would otherwise ask for a role 0

    def __len__(self) -> int:
        return len(self.frame)

    def __eq__(self, other: object) -> bool:
        """Tell whether both are of one kind, and have the same table and record."""
        if type(other) is not type(self):
            return NotImplemented
        return self.record == other.record and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]


AnyResult: TypeAlias = Result[Any, Any]
"""Results of any study."""


def kind_in(folder: Path) -> str:
    """Return the kind of the table of results that ``folder`` holds, the first of several.

    Raises StorageError if there is none, or ``run.json`` cannot be read.
    """
    held = storage.read_run(folder).files
    for kind in all_kinds():
        if kind in held:
            return kind
    if "scores" in held:
        raise StorageError(
            f"{folder} holds scores that were not tested yet; run: headroles assign {folder}"
        )
    raise StorageError(f"{folder} holds no table of results that this version knows")


@overload
def load(folder: str | Path) -> AnyResult: ...
@overload
def load(folder: str | Path, kind: type[R]) -> R: ...
def load(folder: str | Path, kind: type[Stored] | None = None) -> Stored:
    """Load the table of results in a folder, of any study, or of a class such as `RoleTable`.

    Raises StorageError if there is none, or it cannot be read.
    """
    folder = Path(folder)
    found: Stored = (kind or result_type(kind_in(folder))).load(folder)
    return found
