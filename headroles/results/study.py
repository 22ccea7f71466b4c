"""Studies: each is declared once, in `headroles.registry`, and found here.

The command line, exports, reports and notebooks ask here. Nothing heavy is imported before the
result, function, page or figure of a study is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

SCORES, TASK, FOLDERS = "scores", "task", "folders"
"""Subjects of studies whose command is made from their declaration."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study, known without loading it.

    Its pieces are named as ``module:name``; a name that begins with a dot is in the package of the
    study, ``headroles.studies.PACKAGE``.

    Attributes:
        package: the package in ``headroles.studies`` that the study is in.
        kind: the name of the result in its folder.
        result: the class of the result, a `Result`.
        function: the function under `takes` that makes the result.
        options: the group of options of the function, in a module that loads nothing heavy.
        commands: names of its commands. Those that are not made from this declaration are in the
            module ``headroles.cli.PACKAGE``.
        over: ``SCORES``, ``TASK`` or ``FOLDERS`` if the first command is made from this
            declaration: the function then takes stored scores, or a model and the file of a task,
            or several results and their names.
        of: the class of the results in these folders.
        written_by: the commands that write these folders, for the help.
        help: the help of a command that is made from this declaration.
        figures: functions that draw the result, by kind of figure; the first is drawn where no kind
            is asked for.
        caption: one sentence on the first figure, for readers who cannot see it; without a caption
            a notebook shows no figure of the result.
        page: a function from the result to its `Page`; without one, the page has
            the sentences and tables of the result.
        page_has_sentences: whether the page also takes the folder, the roles of users that it may
            import, and the model.
    """

    package: str
    kind: str
    result: str
    function: str
    options: str
    commands: tuple[str, ...] = ()
    over: str = ""
    of: str = ""
    written_by: str = ""
    help: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    page: str = ""
    page_has_sentences: bool = False

    def load(self, piece: str) -> Any:
        """Import a piece by the name of its attribute: ``result``, ``function``, ``page``."""
        return self._resolve(getattr(self, piece))

    def load_figure(self, kind: str | None = None) -> Any:
        """Import the function that draws a kind of figure, by default the first."""
        return self._resolve(self.figures[kind or next(iter(self.figures))])

    def _resolve(self, name: str) -> Any:
        is_relative = name.startswith(".")
        return resolve_name(f"headroles.studies.{self.package}{name}" if is_relative else name)


_STUDIES: dict[str, Study] = {}


def declare(**pieces: Any) -> None:
    """Make a study known by the attributes of `Study`; its commands follow those known before."""
    study = Study(**pieces)
    _STUDIES[study.kind] = study


def studies() -> tuple[Study, ...]:
    """Return all studies, in the order in which they were declared."""
    return tuple(_STUDIES.values())


def study_of(kind: str) -> Study | None:
    """Return the study whose result folders call ``kind``, if there is one."""
    return _STUDIES.get(kind)
