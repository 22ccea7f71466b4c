"""Results: what shows, saves, loads and exports itself, written once for all kinds of them."""

from __future__ import annotations

import html
import importlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.formats import export_frame
from headroles.wording import not_among

WIDE = 200
"""Characters a line of a grid may have where nothing says how wide the page is."""


@dataclass(frozen=True)
class Grid:
    """A small table for people: names of columns, and rows of text.

    Columns are aligned to the right, as numbers are, but for the first and those ``left``.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str] = frozenset()
    bold: str = ""


@dataclass(frozen=True)
class Warned:
    """What to know before relying on a result: a sentence for people."""

    text: str


Shown = str | Grid | Warned


class Stored(ABC):
    """What a result folder can hold.

    ``kind`` is what a folder calls what it holds, in words for people, and ``cure`` what to do
    about a folder that does not hold it. ``spares`` are kinds that cost more: saving one of this
    kind never replaces them. ``form`` is what ``run.json`` must say for it to be read back.
    """

    kind: ClassVar[str]
    cure: ClassVar[str]
    spares: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[type[msgspec.Struct]] = msgspec.Struct
    provenance: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """What ``run.json`` is to say of it."""
        return self.provenance

    @abstractmethod
    def write_files(self, folder: Path) -> list[str]:
        """Write the files of the result into an existing folder; their names."""

    @classmethod
    @abstractmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> Self:
        """Read back what `write_files` wrote. Raises StorageError where that is not possible."""

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the result into ``folder``, whole or not at all.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set, and
        if it holds what is not to be replaced by this.
        """
        return save_together(folder, [self], overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        folder = Path(folder)
        return cls.read_files(folder, cls.read_record(folder))

    @classmethod
    def read_record(cls, folder: Path) -> dict[str, Any]:
        """What ``run.json`` says, if all files are there as they were written.

        Raises StorageError if not, or if the folder holds no result of this kind.
        """
        storage.finish_swap(folder)
        run = storage.read_run(folder)
        if cls.kind not in run.files:
            held = ", ".join(run.files) or "nothing"
            raise StorageError(
                f"{folder} holds no {cls.kind} (it holds: {held}); {cls.cure.format(folder=folder)}"
            )
        storage.check_files(folder, run.files[cls.kind])
        storage.check_record(folder, run.provenance, cls.form)
        return run.provenance


def save_together(folder: str | Path, results: Sequence[Stored], overwrite: bool = False) -> Path:
    """Write results into a folder, each made from those before it, all of them or none.

    Raises StorageError as `new_folder` does.
    """
    with new_folder(folder, [type(one) for one in results], overwrite) as staging:
        write_together(staging, results)
    return Path(folder)


@contextmanager
def new_folder(
    folder: str | Path,
    kinds: Sequence[type[Stored]],
    overwrite: bool = False,
    resume: bool | None = None,
) -> Iterator[Path]:
    """A folder to write results of these ``kinds`` into, as `storage.result_folder`.

    To be opened before long work, which then has a place to go to. Raises StorageError as that
    does, and for a folder that holds what these ``kinds`` spare.
    """
    saved = {kind.kind for kind in kinds}
    for held in storage.kinds_in(Path(folder)):
        if held not in saved and any(held in kind.spares for kind in kinds):
            raise StorageError(
                f"{folder} holds {held}, which a {kinds[-1].kind} would replace; "
                "name another folder for it"
            )
    with storage.result_folder(folder, overwrite, resume) as staging:
        yield staging


def write_together(staging: Path, results: Sequence[Stored]) -> None:
    """Write results into an empty folder, with what they say of themselves."""
    files = {one.kind: one.write_files(staging) for one in results}
    digests = {kind: storage.digests_of(staging, names) for kind, names in files.items()}
    record = {name: value for one in results for name, value in one.record().items()}
    storage.write_run(staging, record, digests)


def put_into(folder: str | Path, result: Stored) -> None:
    """Put a result into a folder that holds what it was made from, replacing an earlier one."""
    folder = Path(folder)
    storage.finish_swap(folder)
    run = storage.read_run(folder)
    with storage.changed_folder(folder, run.files.get(result.kind, ())) as staging:
        files = storage.digests_of(staging, result.write_files(staging))
        record = {**run.provenance, **result.record()}
        storage.write_run(staging, record, {**run.files, result.kind: files})


@dataclass(frozen=True, repr=False, eq=False)
class Result(Stored):
    """A table with where it came from.

    ``frame`` has the columns of ``columns``, and is stored in files called ``stem``. The ``views``
    are other tables that follow from it, by name; the first, ``"long"``, is the frame itself.
    """

    frame: pd.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)

    spares: ClassVar[tuple[str, ...]] = ("scores",)
    stem: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    views: ClassVar[tuple[str, ...]] = ("long",)

    @abstractmethod
    def shown(self) -> Iterator[Shown]:
        """What people are shown: sentences, grids, warnings."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The same for scripts: an object that JSON can have."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on it: sentences for people."""
        return tuple(one.text for one in self.shown() if isinstance(one, Warned))

    def where(
        self,
        role: str | Sequence[str] | None = None,
        layer: int | Sequence[int] | None = None,
        only_assigned: bool = False,
    ) -> Self:
        """The same result with some of its rows: of these roles, these layers, heads with the role.

        Raises UsageError for a role or layer that the table does not have, and where it has none.
        """
        kept = np.ones(len(self.frame), dtype=bool)
        for column, asked in (("role", role), ("layer", layer)):
            if asked is not None:
                names = [asked] if isinstance(asked, str | int) else asked
                kept &= self._rows_of(column, names)
        if only_assigned:
            if "assigned" not in self.frame:
                raise UsageError(f"a {self.kind} does not say which roles are assigned")
            kept &= self.frame["assigned"].to_numpy(dtype=bool)
        return replace(self, frame=self.frame[kept].reset_index(drop=True))

    def _rows_of(self, column: str, names: Sequence[str | int]) -> NDArray[np.bool_]:
        if column not in self.frame:
            raise UsageError(f"the rows of a {self.kind} are not by {column}")
        known = list(dict.fromkeys(self.frame[column]))
        for name in names:
            if name not in known:
                raise UsageError(not_among(column, name, [str(one) for one in known]))
        return self.frame[column].isin(names).to_numpy()

    def view(self, name: str = "long", value: str | None = None) -> pd.DataFrame:
        """One of the tables of ``views``.

        ``value`` is what the cells of a ``"wide"`` one show, a column of the long one. Raises
        UsageError for another name or value.
        """
        if name not in self.views:
            raise UsageError(f"the view is {name!r}; it must be one of {', '.join(self.views)}")
        if value is not None and name != "wide":
            raise UsageError("--value is what a wide table shows; pass --view wide with it")
        if name == "long":
            return self.frame
        made: Any = getattr(self, name)
        if callable(made):
            made = made() if value is None else made(value)
        table: pd.DataFrame = made
        return table

    def export(self, fmt: str, view: str = "long", value: str | None = None) -> bytes:
        """A view as csv, parquet, json, markdown, latex or html; UTF-8 where it is text.

        Raises UsageError for another format, and for what `view` refuses.
        """
        table = self.view(view, value)
        if not isinstance(table.index, pd.RangeIndex) and table.index.name is not None:
            table = table.reset_index()
        return export_frame(table.rename(columns=str), fmt, self.provenance)

    def write_files(self, folder: Path) -> list[str]:
        """The table as CSV, to be read everywhere, and as Parquet."""
        names = [f"{self.stem}.{fmt}" for fmt in ("csv", "parquet")]
        for name in names:
            storage.write_bytes(folder / name, self.export(name.rpartition(".")[2]))
        return names

    @classmethod
    def read_files(cls, folder: Path, provenance: dict[str, Any]) -> Self:
        """The table from its Parquet file."""
        file = folder / f"{cls.stem}.parquet"
        frame = storage.read_table(file).to_pandas()
        if tuple(frame.columns) != cls.columns:
            raise StorageError(
                f"{file} has not the columns of this version; {cls.cure.format(folder=folder)}"
            )
        return cls(frame, provenance)

    def __len__(self) -> int:
        return len(self.frame)

    def __eq__(self, other: object) -> bool:
        """Whether both are of one kind, and have the same table and provenance."""
        if type(other) is not type(self):
            return NotImplemented
        return self.provenance == other.provenance and self.frame.equals(other.frame)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return as_text(self.shown())

    def _repr_html_(self) -> str:
        return drawn(self) + as_html(self.shown())


def drawn(result: Result) -> str:
    """The figure of a result as HTML; nothing for kinds that have none."""
    # By name: figures are made from results, and no result knows of them.
    picture: str = importlib.import_module("headroles.report.displays").display(result)
    return picture


def as_text(shown: Iterator[Shown], width: int = WIDE) -> str:
    """What a result shows as plain text."""
    from rich.console import Console

    page = io.StringIO()
    console = Console(
        file=page,
        width=width,
        force_jupyter=False,  # in a notebook rich would display it, and leave the page empty
        force_terminal=False,  # and notebooks ask for colours
        markup=False,
        emoji=False,
        highlight=False,
    )
    print_on(console, shown)
    return page.getvalue().rstrip("\n")


def print_on(console: Any, shown: Iterator[Shown]) -> None:
    """Print what a result shows on a console of rich."""
    for one in shown:
        if isinstance(one, Grid):
            console.print(_rich_table(one))
            console.print()
        else:
            text = f"warning: {one.text}" if isinstance(one, Warned) else one
            console.print(text, soft_wrap=True)


def _rich_table(grid: Grid) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    for place, name in enumerate(grid.columns):
        if place == 0:
            table.add_column(name, overflow="fold")
        else:
            justify: Any = "left" if name in grid.left else "right"
            style = "bold" if name == grid.bold else ""
            table.add_column(name, justify=justify, style=style, no_wrap=True)
    for row in grid.rows:
        table.add_row(*row)
    return table


def as_html(shown: Iterator[Shown]) -> str:
    """What a result shows as HTML, everything in it escaped."""
    return "\n".join(_html(one) for one in shown)


def _html(one: Shown) -> str:
    if isinstance(one, Warned):
        return f"<p><b>warning:</b> {html.escape(one.text)}</p>"
    if isinstance(one, str):
        return f"<p>{html.escape(one.strip()).replace(chr(10), '<br>')}</p>"
    frame = pd.DataFrame(list(one.rows), columns=list(one.columns))
    return str(frame.to_html(index=False, border=0))
