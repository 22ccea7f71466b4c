"""Tables that show, save, load and export themselves, written once for all kinds of them."""

from __future__ import annotations

import base64
import html
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
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
from headroles.errors import HeadRolesError, StorageError, UsageError
from headroles.options import Options
from headroles.record import Record, RecordedRole, whole_roles
from headroles.registry import all_kinds, command_of, result_type
from headroles.results.columns import NAMES, Axes, Column, check_rows, check_table
from headroles.results.consistency import Rule, check_consistency
from headroles.results.formats import (
    export_frame,
    for_paper,
    latex_table,
    readable,
    strongest_first,
    with_head_names,
    with_units,
)
from headroles.results.shown import (
    WIDE,
    Grid,
    Shown,
    Title,
    Warned,
    as_html,
    as_text,
    brief,
    without_pointers,
)
from headroles.results.stored import Stored
from headroles.role_names import GROUP, find_roles
from headroles.wording import addressed, in_one_line, not_among

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Stored)
_GO_ON = "Go on with .frame (all rows), .plot(), .export('latex'), .save(FOLDER), .in_full()."
_MOST_ROWS = 60
"""Rows of a table in the full text; pages and exports have all."""
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
class Result(Stored, Generic[OptionsOf, FactsOf]):
    """A table with the record of its origin.

    A kind of results names the options of its study, and the facts that the study finds beside the
    table, most often a TypedDict: ``class Ranges(Result[RangeOptions, NoFacts])``. Its record has
    both, and loading makes and checks both again.

    ``frame`` has the columns of ``columns``, and is stored in files called ``filename``, by default
    as its kind. The ``views`` are other tables that follow from it, by name; the first, ``"long"``,
    is the frame itself.

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
    views: ClassVar[tuple[str, ...]] = ("long",)
    options_type: ClassVar[type[Options] | None] = None
    facts_type: ClassVar[Any] = dict[str, Any]
    question: ClassVar[str] = ""
    """Title of the page: the question that the result answers."""
    figures: ClassVar[Mapping[str, str]] = {}
    """Functions that draw the result, by kind of figure; the first is the usual one.

    They are in the module of the class, or named as ``module:function``.
    """
    page: ClassVar[str] = ""
    """Function that makes the page of a result and its pictures, as ``module:function``, if it has
    more than others have."""

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
        cls, frame: pd.DataFrame, options: Options, facts: FactsOf | None = None, **others: Any
    ) -> Self:
        """Make the result of a study that ends now, with its columns in their order.

        ``others`` are further fields of its record, such as ``sources``.
        """
        record = Record.now(facts, kind=cls.kind, options=options.record(), **others)
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

    @abstractmethod
    def summarize(self) -> Iterable[Shown]:
        """Yield the summary: sentences, grids, warnings."""

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        """The summary, made once."""
        return tuple(self.summarize())

    def whole(self) -> Iterable[Shown]:
        """Yield summary and details, of long views the first rows; no sentence points to these."""
        for part in without_pointers((*self.shown, *self.details())):
            if not isinstance(part, Grid) or not part.view or len(part.rows) <= _MOST_ROWS:
                yield part
                continue
            yield replace(part, rows=part.rows[:_MOST_ROWS])
            left = len(part.rows) - _MOST_ROWS
            yield f"{left} more rows; see headroles export DIR --view {part.view}.\n"

    def in_full(self) -> str:
        """Return the summary with whole warnings, and all details, as text."""
        return as_text(self.whole())

    def next_steps(self, folder: str) -> Iterable[str]:
        """Name commands that show more of the results in ``folder``, quoted as for a shell."""
        return (f"See:     headroles report {folder}  (all tables and pictures, in one HTML file)",)

    def details(self) -> Iterable[Shown]:
        """Yield the method, and the tables of `views`: the shortest first, the long one last.

        Tables without a cell beside names and numbers of heads are left out.
        """
        if sentences := self.method()[0]:
            yield " ".join(sentences)
        tables = {name: _flat(self.view(name)) for name in self.views}
        names = sorted(self.views[1:], key=lambda name: len(tables[name]))
        for name in (*names, self.views[0]):
            table = tables[name]
            shown = table.apply(readable).astype(str)
            names = [*NAMES, "heads", "undecided"]
            if shown.drop(columns=names, errors="ignore").isin([""]).all(axis=None):
                continue
            if is_wide := _width(shown) > WIDE:
                shown = for_paper(table).apply(readable).astype(str)
            title = name.replace("_", " ").capitalize()
            if _width(shown) > WIDE:
                yield f"{title}: {table.shape[1]} columns; see headroles export DIR --view {name}."
                continue
            yield Title(title)
            if is_wide:
                yield f"These columns tell most; the whole table has {table.shape[1]}."
            rows = shown.itertuples(index=False, name=None)
            yield Grid(tuple(shown.columns), tuple(rows), view=name)

    def to_json(self) -> dict[str, Any]:
        """Return options, facts and rows for scripts; null for missing and infinite numbers."""
        made: dict[str, Any] = storage.plain(
            {
                "options": self.record.options,
                "facts": self.record.facts,
                "rows": self.frame.to_dict("records"),
                "warnings": self.warnings,
            }
        )
        return made

    def known_roles(self, names: Iterable[str]) -> list[RecordedRole]:
        """Return the roles with some ids, as the scores have them; without scores, by their ids."""
        ids, recorded = list(map(str, names)), self._recorded_roles
        others = [RecordedRole(name) for name in ids if name not in recorded]
        by_id = {role.id: role for role in whole_roles(others)}
        return [recorded[name] if name in recorded else by_id[name] for name in ids]

    def in_words(self, role: object) -> str:
        """Return a role for people: ``subject -> its verb`` for ``syntactic:nsubj:to_governor``.

        The arrow goes from the attending word to the attended word. The name of a user's role is
        its id.
        """
        return self.known_roles([str(role)])[0].words

    @cached_property
    def _recorded_roles(self) -> dict[str, RecordedRole]:
        return self.record.roles

    @property
    def figure_kinds(self) -> tuple[str, ...]:
        """Kinds of figures that this result has; the first is the usual one."""
        return tuple(self.figures)

    def plot(self, kind: str | None = None, **options: Any) -> Any:
        """Draw a kind of figure, by default the usual one; ``options`` are those of its function.

        Raises UsageError for results without such a figure.
        """
        kinds = self.figure_kinds
        if not kinds or kind not in (None, *kinds):
            raise UsageError(not_among(f"figure of the {self.kind} called", kind, [*kinds]))
        draw = figure_function(type(self), kind or kinds[0])
        role = inspect.signature(draw).parameters.get("role")
        if role is not None and role.default is role.empty:
            options.setdefault("role", self.clearest_role())
        return draw(self, **options)

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return sentences on the method, for a paper, and the keys of the works to cite for it."""
        return (), ()

    def finding(self) -> str:
        """Return the result in sentences, for a paper; empty if a table says it better."""
        return ""

    def clearest_role(self) -> str:
        """Return the role that is drawn by default: the first of the table."""
        return str(self.frame["role"].iloc[0])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Cautions about the result, a sentence each."""
        return tuple(addressed(part.text) for part in self.shown if isinstance(part, Warned))

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
        known = {str(value): value for value in self.frame[column].unique()}
        chosen = []
        for name in map(str, names):
            matching = [value for text, value in known.items() if fnmatchcase(text, name)]
            if not matching and column == "role" and "*" in name:  # parts have names of the whole
                matching = [
                    known[role.id]
                    for role in self.known_roles(known)
                    if any(fnmatchcase(f"{GROUP}:{other}", name) for other in role.names)
                ]
            if not matching and column == "role":
                matching = [known[role] for role in find_roles(name, self.known_roles(known))]
            if not matching:
                raise UsageError(not_among(column, name, list(known)))
            chosen += matching
        return self.frame[column].isin(chosen).to_numpy()

    def view(self, name: str = "long", value: str | None = None) -> pd.DataFrame:
        """Return one of the tables of ``views``.

        The cells of a ``"wide"`` table show ``value``, a column of the long one. Raises UsageError
        for another name or value.
        """
        if name not in self.views:
            known = ", ".join(self.views)
            raise UsageError(f"the view is {name!r}; it must be one of {known}")
        if value is not None and name != "wide":
            raise UsageError(
                "`value` chooses the cells of a wide table; pass `view='wide'` with it"
            )
        if name == "long":
            return self.frame
        made: Any = getattr(self, name)
        if callable(made):
            made = made() if value is None else made(value)
        table: pd.DataFrame = made
        return table

    def export(
        self,
        fmt: str,
        view: str = "long",
        value: str | None = None,
        columns: Sequence[str] | None = None,
        caption: str | None = None,
        label: str | None = None,
    ) -> bytes:
        """Return a view as csv, parquet, json, markdown, latex or html; UTF-8 where it is text.

        The table has the ``columns`` in that order; by default all, and in LaTeX those that papers
        print. LaTeX has roles in words, a ``caption`` and a ``label``. Raises UsageError for an
        unknown format or column, and as `view`.
        """
        table = _flat(self.view(view, value))
        if fmt == "latex":
            table = strongest_first(table)
        for name in columns or ():
            if name not in table.columns:
                raise UsageError(not_among("column", name, list(table.columns)))
        if columns is not None:
            if "layer" not in columns:  # without which the number of a head names none
                table = with_head_names(table)
            table = table[[*columns]]
        elif fmt == "latex" and (view == "long" or "head" in table):
            table = for_paper(table)
        if fmt != "latex":
            return export_frame(table, fmt, self.record)
        label = label or f"tab:{self.kind.replace(' ', '-')}"
        units = with_units(table, score_of(self.record), self.in_words)
        return latex_table(units, caption or self.caption(), label).encode()

    def caption(self) -> str:
        """Return a caption with the kind of table, the model, the corpus, and a single role."""
        names = [model.name for model in self.record.models.values() if model.model]
        of = f" of {names[0]}" if len(names) == 1 else ""
        over = ", ".join(Path(name).name for name in self.record.files[:3])
        roles = list(self.frame["role"].unique()) if "role" in self.frame else []
        role = f": {self.in_words(roles[0])}" if len(roles) == 1 else ""
        return f"{self.kind.capitalize()}{of}{f' over {over}' if over else ''}{role}."

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
        if tuple(stored.column_names) != cls.columns:
            raise StorageError(f"{file} does not have the columns of this version; {hint}")
        try:
            if not (len(stored) or cls.may_be_empty):
                raise ValueError("it has no rows")
            check_table(stored, cls.schema, record.shape)
            made = cls(stored.to_pandas(ignore_metadata=True), record)
            check_rows(made.frame, made.axes())
        except ValueError as error:
            raise StorageError(f"{file}: {error}; {hint}") from error
        try:
            for name in ("facts", "shown", *(["options"] if cls.options_type is not None else [])):
                getattr(made, name)  # which are made of the record
        except (UsageError, *_UNFIT) as error:
            raise StorageError(
                f"run.json in {folder} does not fit {file.name} ({in_one_line(error)}); {hint}"
            ) from error
        try:
            made.check_layers()
            check_consistency(made.frame, cls.rules, made.options if cls.options_type else None)
        except _UNFIT as error:
            raise StorageError(f"{file}: {in_one_line(error)}; {hint}") from error
        copy = file.with_suffix(".csv")
        if copy.exists() and storage.read_whole(copy) != made.export("csv"):
            raise StorageError(f"{copy.name} and {file.name} in {folder} differ; {hint}")
        return made

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

    def __repr__(self) -> str:
        return f"{as_text(brief(self.shown))}\n{_GO_ON}"

    def _repr_html_(self) -> str:
        return self._picture() + as_html([*brief(self.shown), _GO_ON])

    def _picture(self) -> str:
        """Return the usual figure as an HTML element; empty for a result without one.

        The element holds a PNG: drawings of large models would take megabytes.
        """
        try:
            figure = self.plot().get_figure(root=True)
        except HeadRolesError:  # such as a table without rows
            return ""
        data = base64.b64encode(figure._repr_png_()).decode()
        text = html.escape(describe(figure_function(type(self), self.figure_kinds[0])))
        return f'<img alt="{text}" src="data:image/png;base64,{data}">'


AnyResult: TypeAlias = Result[Any, Any]
"""Results of any study."""


def _width(table: pd.DataFrame) -> int:
    """Return the width of columns of texts, with a blank beside each."""
    return sum(1 + max(len(str(name)), *table[name].str.len()) for name in table)


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Return a view with the names of its rows in a column."""
    if table.index.name is not None:
        table = table.reset_index()
    return table.rename(columns=str)


def score_of(record: Record) -> str:
    """Return the score that a result is about, or its first source; empty if none."""
    of_sources = (score_of(source) for source in record.sources.values())
    return str(record.facts.get("score", "")) or next(filter(None, of_sources), "")


def figure_function(result: type[AnyResult], kind: str) -> Callable[..., Any]:
    """Import the function that draws a kind of figure."""
    name = result.figures[kind]
    function: Callable[..., Any] = resolve_name(
        name if ":" in name else f"{result.__module__}:{name}"
    )
    return function


def describe(function: Callable[..., Any]) -> str:
    """Describe what a function draws: the first line of its text."""
    return str(inspect.getdoc(function)).partition("\n")[0]


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
