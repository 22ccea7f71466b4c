"""Content of folders that shows, draws and exports itself, by what its class declares."""

from __future__ import annotations

import base64
import html
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from headroles.errors import HeadRolesError, UsageError
from headroles.record import Record, RecordedRole, whole_roles
from headroles.results.columns import NAMES
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
from headroles.wording import addressed, not_among

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 60
"""Rows of a table in the full text; pages and exports have all."""


class Showing(Stored):
    """Content with a table, a summary and figures.

    ``frame`` is the table. The ``views`` are other tables that follow from it, by name; the first,
    ``"long"``, is the frame itself.
    """

    views: ClassVar[tuple[str, ...]] = ("long",)
    question: ClassVar[str] = ""
    """Title of the page: the question that the result answers."""
    figures: ClassVar[Mapping[str, str]] = {}
    """Functions that draw the result, by kind of figure; the first is the usual one.

    They are in the module of the class, or named as ``module:function``.
    """
    page: ClassVar[str] = ""
    """Function that makes the page of a result and its pictures, as ``module:function``, if it has
    more than others have."""
    go_on: ClassVar[str] = (
        "Go on with .frame (all rows), .plot(), .export('latex'), .save(FOLDER), .in_full()."
    )
    """What Python users may do next."""

    if TYPE_CHECKING:  # a field in some classes, computed in others

        @property
        def frame(self) -> pd.DataFrame:
            """The table."""

    @abstractmethod
    def summarize(self) -> Iterable[Shown]:
        """Yield the summary: sentences, grids, warnings."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return what scripts need."""

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

    def known_roles(self, names: Iterable[str]) -> list[RecordedRole]:
        """Return the roles with some ids, as the scores have them; without scores, by their ids."""
        ids, recorded = list(map(str, names)), self._recorded_roles
        unrecorded = [RecordedRole(name) for name in ids if name not in recorded]
        by_id = {role.id: role for role in whole_roles(unrecorded)}
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

    def view(self, name: str = "long", value: str | None = None) -> pd.DataFrame:
        """Return one of the tables of ``views``.

        The cells of a ``"wide"`` table show ``value``, a column of the long one. Raises UsageError
        for another name or value.
        """
        if name not in self.views:
            views = ", ".join(self.views)
            raise UsageError(f"the view is {name!r}; it must be one of {views}")
        if value is not None and name != "wide":
            raise UsageError(
                "`value` chooses the cells of a wide table; pass `view='wide'` with it"
            )
        if name == "long":
            return self.frame
        content: Any = getattr(self, name)
        if callable(content):
            content = content() if value is None else content(value)
        table: pd.DataFrame = content
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

    def __repr__(self) -> str:
        return f"{as_text(brief(self.shown))}\n{self.go_on}"

    def _repr_html_(self) -> str:
        return self._picture() + as_html([*brief(self.shown), self.go_on])

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


def figure_function(result: type[Showing], kind: str) -> Callable[..., Any]:
    """Import the function that draws a kind of figure."""
    name = result.figures[kind]
    function: Callable[..., Any] = resolve_name(
        name if ":" in name else f"{result.__module__}:{name}"
    )
    return function


def describe(function: Callable[..., Any]) -> str:
    """Describe what a function draws: the first line of its text."""
    return str(inspect.getdoc(function)).partition("\n")[0]
