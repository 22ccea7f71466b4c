"""Commands of studies, each made from the signature of its study.

Subjects of the study (``model``, ``task``, ``scores``, ...) become arguments, its options flags.
With ``on_progress`` among the options it runs a model, and its result needs a folder; others may
be printed alone. With ``parts`` it resumes; with ``out`` it writes a model into the folder itself.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from headroles.cli import console, flags
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.options import Options, fields_of, split_names
from headroles.registry import Command, result_type

if TYPE_CHECKING:
    from headroles.results.result import Result

ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "model": (flags.Model, None),
    "corpus": (flags.Texts, None),
    "task": (flags.Task, flags.OptionalTask),
    "test": (flags.Test, flags.OptionalTest),
    "scores": (flags.Scored, None),
    "sets": (flags.Folders, None),
    "ablations": (flags.Folders, None),
    "names": (None, flags.Names),
    "out": (flags.Out, flags.OptionalOut),
}
"""Arguments of the command line by the name of a study's subject: required ones, optional ones."""
_FOLDERS = ("scores", "sets", "ablations")
"""Subjects that are results, of the class in the signature, read from a folder or from several."""


def make_function(command: Command) -> Callable[..., None]:
    """Make the function of a command from its study, which stands under `takes`."""
    study, kind = resolve_name(f"headroles.{command.place}"), result_type(command.kind_of_result)
    options = {field.name for field in fields_of(study.options)}
    subjects = {
        name: name == "names" or subject.default is not subject.empty
        for name, subject in inspect.signature(study).parameters.items()
        if name not in options
    }
    stored = {name: _class_in(study, name) for name in subjects if name in _FOLDERS}
    writes_model, runs_model = "out" in subjects, "on_progress" in options

    def over_results(out: Path | None, options: Any, output: Any, **given: Any) -> None:
        fill(out, kind, output, lambda: study(**dict(_values(given, stored)), options=options))

    def beside(scores: Path, options: Any, output: Any) -> None:
        from headroles.results.stored import put_into

        given = stored["scores"].load(scores)
        with console.working(kind.kind):
            result = study(given, options=options)
        put_into(scores, result)
        console.finish(scores, output, result)

    def over_model(out: Path, options: Any, output: Any, **given: Any) -> None:
        resuming = given.pop("resuming", flags.ResumeOptions())
        values = dict(_values(given, stored))
        unit = "steps" if writes_model else "sentences" if "corpus" in values else "passes"
        model = values["model"] if writes_model else None
        kinds = [*_models(writes_model), kind]
        filled = fill_folder(out, kinds, output, options, kind.kind, unit, resuming.resume, model)
        with filled as (folder, running):
            if "corpus" in values:
                values["corpus"] = console.watched(values["corpus"], running.on_progress)
            if writes_model:
                result = study(**values, out=out, folder=folder, options=running)
            else:
                result = study(**values, options=running)
                write_results(folder, result)
        console.finish(out, output, result)

    run: Any = beside if command.is_beside else over_model if runs_model else over_results
    signature = _signature(study.options, subjects, command.is_beside)
    run.__signature__, run.__doc__ = signature, command.help
    return run  # type: ignore[no-any-return]


def _models(are_written: bool) -> Iterator[type[Any]]:
    """Yield the kind of the models that a study writes, if it writes any."""
    if are_written:
        from headroles.models.loading.saved_models import PrunedModel

        yield PrunedModel


def _signature(
    group: type[Options], subjects: dict[str, bool], is_beside: bool = False
) -> inspect.Signature:
    """Return the signature of a command: subjects, with whether they are optional, and groups."""
    options = {field.name for field in fields_of(group)}
    runs_model = "on_progress" in options
    kinds = subjects if is_beside else {**subjects, "out": not runs_model}
    shown = flags.OutputOptions if is_beside else flags.ReportedOptions
    groups: dict[str, Any] = {"options": group, "output": shown}
    if "corpus" in subjects:
        groups = {"reading": CorpusOptions, **groups}
    if "parts" in options:
        groups["resuming"] = flags.ResumeOptions
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            *(
                inspect.Parameter(
                    name,
                    keyword,
                    default=None if is_optional else inspect.Parameter.empty,
                    annotation=ARGUMENTS[name][is_optional],
                )
                for name, is_optional in kinds.items()
                if name in ARGUMENTS
            ),
            *(inspect.Parameter(name, keyword, annotation=one) for name, one in groups.items()),
        ]
    )


def _class_in(study: Any, name: str) -> Any:
    """Return the class of results that a study takes, as its signature says."""
    annotation = str(inspect.signature(study).parameters[name].annotation)
    return getattr(sys.modules[study.__module__], re.findall(r"\w+", annotation)[-1])


def _values(given: dict[str, Any], stored: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the subjects of a study from the arguments of its command."""
    reading = given.pop("reading", None)
    for name, value in given.items():
        if name == "corpus":
            from headroles.corpus import open_corpus

            yield name, open_corpus(value, reading)
        elif name == "names":
            (folders,) = (given[one] for one in stored)
            yield name, names_of(folders) if value is None else split_names(value)
        elif name in stored:
            load = stored[name].load
            yield name, list(map(load, value)) if isinstance(value, list) else load(value)
        else:
            yield name, value


def fill(
    out: Path | None,
    kind: type[Result],
    output: flags.FolderOptions,
    work: Callable[[], Result],
) -> None:
    """Do work whose result, of this ``kind``, is printed, and goes into a folder if there is one.

    The folder is claimed before the work begins.
    """
    if out is None:
        if output.overwrite or getattr(output, "report", False):
            flag = "--overwrite" if output.overwrite else "--report"
            raise UsageError(f"{flag} needs a folder: name one for the {kind.kind} with --out")
        with console.working(kind.kind):
            result = work()
        console.show(result, output)
        return
    from headroles.results.stored import new_folder

    with new_folder(out, [kind], output.overwrite) as folder, console.working(kind.kind):
        result = work()
        write_results(folder, result)
    console.finish(out, output, result)


@contextmanager
def fill_folder(
    out: Path,
    kinds: Sequence[type[Any]],
    output: flags.FolderOptions,
    options: Any,
    work: str,
    unit: str = "sentences",
    resume: bool | None = None,
    model: str | None = None,
) -> Iterator[tuple[Path, Any]]:
    """Claim a folder for results, and yield it with the options of the study that makes them.

    They show its progress, and keep finished parts in the folder. If it changes a ``model``, the
    folder is for that too.
    """
    from headroles.results.stored import new_folder
    from headroles.storage import parts_beside

    if model is None:
        opened = new_folder(out, kinds, output.overwrite, resume)
    else:
        from headroles.models.loading.saved_models import model_folder

        opened = model_folder(out, model, kinds, output.overwrite, resume)
    with opened as folder, console.progress_bar(work, unit) as on_progress:
        running = {"on_progress": on_progress, "parts": parts_beside(folder)}
        known = {name: value for name, value in running.items() if hasattr(options, name)}
        yield folder, replace(options, **known)


def text_beside(task: Any, reading: CorpusOptions) -> CorpusOptions:
    """Return options of reading text, whose columns and header are of the task if there is one."""
    columns = None if task else reading.text_columns
    header = False if reading.header is False and not task else None
    return replace(reading, text_columns=columns, header=header)


def write_results(folder: Path, *results: Any) -> None:
    """Write results into a claimed folder."""
    from headroles.results.stored import write_together

    write_together(folder, results)


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
