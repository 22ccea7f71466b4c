"""Commands of studies, each made from the signature of its study, and the folders that they fill.

Subjects of the study (``model``, ``task``, ``scores``, ...) become arguments, its options flags.
With ``on_progress`` among the options it runs a model, and its result needs a folder; others may
be printed alone. With ``parts`` it resumes; with ``out`` it writes a model into the folder itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from headroles.cli import console, flags
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.options import Options, fields_of, split_names
from headroles.passes.options import PassOptions
from headroles.registry import Command, classes_in, result_types
from headroles.results.stored import new_folder, put_into, write_together
from headroles.storage import RUN_FILE, parts_beside
from headroles.tasks.options import TaskOptions

ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "model": (flags.Model, None),
    "corpus": (flags.Texts, None),
    "sample": (None, flags.Sample),
    "task": (flags.Task, flags.OptionalTask),
    "test": (flags.Test, flags.OptionalTest),
    "scores": (flags.Scored, None),
    "sets": (flags.Folders, None),
    "before": (flags.Before, None),
    "after": (flags.After, None),
    "later": (None, flags.Later),
    "ablations": (flags.Folders, None),
    "names": (None, flags.Names),
    "out": (flags.Out, flags.OptionalOut),
}
"""Arguments of the command line by the name of a study's subject: required ones, optional ones."""
_FOLDERS = ("scores", "sets", "ablations", "before", "after", "later")
"""Subjects that are results, of the first class in the signature, read from folders."""
_TEXTS = ("corpus", "sample")


def make_function(command: Command) -> Callable[..., None]:
    """Make the function of a command from its study, which stands under `takes`."""
    study = resolve_name(f"headroles.{command.place}")
    options = {field.name for field in fields_of(study.options)}
    parameters = inspect.signature(study).parameters
    subjects = {
        name: name in ("names", "sample", "later") or subject.default is not subject.empty
        for name, subject in parameters.items()
        if name not in options
    }
    stored = {
        name: next(classes_in(parameters[name].annotation)) for name in subjects if name in _FOLDERS
    }
    writes_model = "out" in subjects

    def run(options: Any, output: Any, **given: Any) -> None:
        out, resuming = given.pop("out", None), given.pop("resuming", flags.ResumeOptions())
        kinds = result_types(command.kind_of_result)
        if writes_model:
            from headroles.models.loading.saved_models import PrunedModel

            kinds = [PrunedModel, *kinds]

        def work(running: Any, folder: Path | None) -> Any:
            values = dict(_values(given, stored, options))
            for name in _TEXTS:
                if name in values:
                    values[name] = console.watched(values[name], running.on_progress)
            if writes_model:
                values |= {"out": out, "folder": folder}
            first = [values.pop(name) for name in ("before", "after") if name in values]
            return study(*first, *values.pop("later", ()), **values, options=running)

        fill(
            out,
            kinds,
            output,
            options,
            work,
            unit=command.unit,
            resume=resuming.resume,
            model=given["model"] if len(kinds) > 1 else None,
        )

    def beside(scores: Path, options: Any, output: Any) -> None:
        with console.working(command.kind_of_result):
            result = study(stored["scores"].load(scores), options=options)
        put_into(scores, result)
        console.finish(result, output, scores)

    made: Any = beside if command.is_beside else run
    made.__signature__ = _signature(study.options, subjects, command.is_beside)
    made.__doc__ = command.help
    return made  # type: ignore[no-any-return]


def _signature(
    group: type[Options], subjects: dict[str, bool], is_beside: bool = False
) -> inspect.Signature:
    """Return the signature of a command: subjects, with whether they are optional, and groups."""
    options = {field.name for field in fields_of(group)}
    kinds = subjects if is_beside else {**subjects, "out": "on_progress" not in options}
    beside = {"task": (flags.Task, flags.TaskBeside)} if "sample" in kinds else {}
    groups: dict[str, Any] = {"reading": CorpusOptions} if {*_TEXTS} & {*subjects} else {}
    groups |= {"options": group}
    groups |= {"output": flags.OutputOptions if is_beside else flags.ReportedOptions}
    groups |= {"resuming": flags.ResumeOptions} if "parts" in options else {}

    def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> Any:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, kind, default=default, annotation=annotation)

    arguments = [
        parameter(
            name,
            {**ARGUMENTS, **beside}[name][is_optional],
            None if is_optional else inspect.Parameter.empty,
        )
        for name, is_optional in kinds.items()
        if name in ARGUMENTS
    ]
    return inspect.Signature([*arguments, *(parameter(*given) for given in groups.items())])


def _values(
    given: dict[str, Any], stored: dict[str, Any], options: Options
) -> Iterator[tuple[str, Any]]:
    """Yield the subjects of a study from the arguments of its command."""
    for name, value in given.items():
        if name in _TEXTS:
            yield name, _opened(value, given, options)
        elif name == "names":
            (folders,) = (given[subject] for subject in stored)
            yield name, names_of(folders) if value is None else split_names(value)
        elif name in stored:
            load = stored[name].load
            yield name, load(value) if isinstance(value, Path) else list(map(load, value or ()))
        elif name != "reading":
            yield name, value


def _opened(files: list[Path] | None, given: dict[str, Any], options: Options) -> Any:
    """Open a corpus. Raises UsageError for options of a corpus or a task that is not given."""
    from headroles.corpus import open_corpus

    reading = given["reading"]
    if "task" in given:
        reading = text_beside(given["task"], reading)
        of_others = {*flags.given(options, PassOptions), "--text-columns", "--header"}
        flagged = flags.given(options, TaskOptions)
        idle = ", ".join(flag for flag in flagged if flag not in of_others)
        if given["task"] is None and idle:
            raise UsageError(f"{idle} without a task: name its file with --task, or leave them out")
    if files:
        return open_corpus(files, reading)
    if reading != CorpusOptions():
        raise UsageError("options of reading text are given without text; name it with --sample")
    return None


def text_beside(task: Any, reading: CorpusOptions) -> CorpusOptions:
    """Return options of reading text, whose columns and header are of the task if there is one."""
    columns = None if task else reading.text_columns
    header = False if reading.header is False and not task else None
    return replace(reading, text_columns=columns, header=header)


def fill(
    out: Path | None,
    kinds: Sequence[Any],
    output: flags.OutputOptions,
    options: Any,
    work: Callable[[Any, Path | None], Any],
    *,
    doing: str = "",
    unit: str = "sentences",
    resume: bool | None = None,
    model: Any = None,
    roles: Sequence[str] = (),
) -> None:
    """Do the work of a command; its result is printed, and goes into a folder if there is one.

    The folder is claimed before, for results of these ``kinds``, or a change of ``model``. ``work``
    takes the options, which show its progress and save its parts, and the claimed folder, which it
    may fill itself; it returns a result, or several made from each other.
    """
    doing = doing or kinds[-1].kind
    runs_model = hasattr(options, "on_progress")
    with _claimed(out, kinds, output, resume, model) as folder:
        watch: Any = console.progress_bar(doing, unit) if runs_model else console.working(doing)
        with watch as on_progress:
            running = {"on_progress": on_progress, "parts": folder and parts_beside(folder)}
            known = {name: value for name, value in running.items() if hasattr(options, name)}
            made = work(replace(options, **known), folder)
        results = made if isinstance(made, tuple) else (made,)
        if folder is not None and not (folder / RUN_FILE).exists():
            write_together(folder, results)
    console.finish(results[-1], output, out, roles)


def _claimed(
    out: Path | None,
    kinds: Sequence[Any],
    output: flags.OutputOptions,
    resume: bool | None,
    model: Any,
) -> AbstractContextManager[Path | None]:
    """Claim a folder. Raises UsageError for options of a folder that is not given."""
    overwrite = getattr(output, "overwrite", False)
    if out is None:
        if overwrite or getattr(output, "report", False):
            flag = "--overwrite" if overwrite else "--report"
            raise UsageError(f"{flag} needs a folder: name one for the {kinds[-1].kind} with --out")
        return nullcontext()
    if model is None:
        return new_folder(out, kinds, overwrite, resume)
    from headroles.models.loading.saved_models import model_folder

    return model_folder(out, model, kinds, overwrite, resume)


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
