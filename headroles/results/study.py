"""Studies: each is declared once, in `headroles.registry`, and found here.

The command line, exports, reports and notebooks ask here. Nothing heavy is imported before the
result, function, page or figure of a study is needed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

SCORES, TASK, FOLDERS = "scores", "task", "folders"
"""Subjects of studies whose command is made from their declaration."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study, known without loading it.

    Its pieces are named as ``module:name``, in ``headroles.studies``; a name that begins with a dot
    is in the package of the study, ``headroles.studies.PACKAGE``. A study in one file needs no more
    than ``kind``, ``function``, ``over`` and ``help``.

    Attributes:
        package: the package in ``headroles.studies`` that the study is in.
        kind: the name of the result in its folder.
        function: the function under `takes` that makes the result.
        result: the class of the result, a `Result`; by default what the function returns.
        options: the group of options of the function; by default those that it takes.
        commands: its commands and their help. Those that are not made from this declaration are
            functions in the module ``headroles.cli.PACKAGE``, whose docstring begins with the help.
        over: ``SCORES``, ``TASK`` or ``FOLDERS`` if the first command is made from this
            declaration: the function then takes stored scores, or a model and the file of a task,
            or several results and their names.
        of: the class of the results in these folders.
        written_by: the commands that write these folders, for the help.
        figures: functions that draw the result, by kind of figure; the first is drawn where no kind
            is asked for. Without any, those that the class of the result names.
        caption: one sentence on the first figure, for readers who cannot see it; without one, the
            first line of the text of its function.
        page: a function from the result to its `Page`; without one, the page has the sentences,
            figures and tables of the result.
        page_has_sentences: whether the page also takes the folder, the roles of users that it may
            import, and the model.
    """

    kind: str
    function: str
    package: str = ""
    result: str = ""
    options: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    over: str = ""
    of: str = ""
    written_by: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    page: str = ""
    page_has_sentences: bool = False

    def load(self, piece: str) -> Any:
        """Import a piece by the name of its attribute: ``result``, ``function``, ``page``."""
        if name := getattr(self, piece):
            return self._resolve(name)
        function = self.load("function")
        if piece == "options":
            return function.options
        returned = inspect.signature(function).return_annotation
        return getattr(sys.modules[function.__module__], returned)

    def kinds_of_figures(self) -> tuple[str, ...]:
        """Return the kinds of figures of the result; the first is drawn by default."""
        return tuple(self.figures or self.load("result").figures)

    def load_figure(self, kind: str | None = None) -> Any:
        """Import the function that draws a kind of figure, by default the first."""
        kind = kind or self.kinds_of_figures()[0]
        if self.figures:
            return self._resolve(self.figures[kind])
        result = self.load("result")
        return resolve_name(f"{result.__module__}:{result.figures[kind]}")

    def describe_figure(self, kind: str | None = None) -> str:
        """Describe a kind of figure in a sentence, by default the first."""
        if self.caption and kind in (None, next(iter(self.figures))):
            return self.caption
        return str(inspect.getdoc(self.load_figure(kind))).partition("\n")[0]

    def _resolve(self, name: str) -> Any:
        if name.startswith("."):
            name = f"headroles.studies.{self.package}{name}"
        return resolve_name(name if name.startswith("headroles.") else f"headroles.studies.{name}")


_STUDIES: dict[str, Study] = {}


def declare(**pieces: Any) -> None:
    """Make a study known by the attributes of `Study`; its commands follow those known before.

    With ``help``, its one command has the name of its kind.
    """
    if "help" in pieces:
        pieces["commands"] = {pieces["kind"]: pieces.pop("help")}
    study = Study(**pieces)
    _STUDIES[study.kind] = study


def studies() -> tuple[Study, ...]:
    """Return all studies, in the order in which they were declared."""
    return tuple(_STUDIES.values())


def study_of(kind: str) -> Study | None:
    """Return the study whose result folders call ``kind``, if there is one."""
    return _STUDIES.get(kind)
