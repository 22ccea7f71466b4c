"""Commands of studies, each made from the signature of its study, and the folders that they fill.

Subjects of the study (``model``, ``task``, ``scores``, ...) become arguments, its options flags.
A subject that is a table of results is read from the folder that holds it.
With ``on_progress`` among the options it runs a model, and its result needs a folder; others may
be printed alone. With ``parts`` it resumes; with ``out`` it writes a model into the folder itself.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from headroles.cli import console, flags
from headroles.corpus import CorpusOptions, open_corpus
from headroles.errors import UsageError
from headroles.models.options import LanguageOptions
from headroles.options import OPTIONS_FOLLOW, Options, fields_of, split_names
from headroles.passes.options import PassOptions
from headroles.registry import Command, classes_in, result_types
from headroles.results.stored import MODEL_KINDS, Claimed, new_folder, write_together
from headroles.storage import RUN_FILE, parts_beside
from headroles.studies.inspection.origin import read_head
from headroles.tasks.options import TaskOptions

_FOLDERS = Annotated[list[Path], flags.argument("DIR DIR", "Folders of results.")]
_SAMPLE = "Text to fit and to measure with; left out: the bundled treebank. Repeatable."
_TASK = "Tab-separated labelled text, or sources and targets; plain text for a language model."
_MEASURED = (
    "Examples to measure MODEL on before and after; --text-columns and --header are then about "
    "this file."
)
_TUNED = "A fine-tuned copy of MODEL, for claims about fine-tuning."
_TRAINED_FOR = (
    "Examples of the task that MODEL was trained for. Repeatable, for the claim about two tasks. "
    "--text-columns and --header are then those of these files."
)
_ROLE = "The role: its id, its words, or a relation such as nsubj."
_NAMES = "What to call them, separated by commas; left out: as their folders."
ARGUMENTS: dict[str, Any] = {
    "model": flags.Model,
    "corpus": flags.Texts,
    "sample": Annotated[list[Path], flags.option("--sample", _SAMPLE, "Corpus", "FILE")],
    "task": Annotated[Path, flags.argument("TASK", _TASK)],
    "test": Annotated[Path, flags.option("--test", "Examples to measure on.", "Task")],
    "scores": flags.Scored,
    "head": Annotated[
        str, flags.option("--head", "Layer and head, from 0: 4-0.", "Heads", "<layer-head>")
    ],
    "role": Annotated[str, flags.option("--role", _ROLE, "Roles")],
    "sets": _FOLDERS,
    "before": Annotated[Path, flags.argument("BEFORE", flags.SCORED)],
    "after": Annotated[Path, flags.argument("AFTER", flags.SCORED)],
    "later": Annotated[list[Path], flags.argument("LATER", "Folders of further checkpoints.")],
    "ablations": _FOLDERS,
    "tables": _FOLDERS,
    "names": Annotated[str, flags.option("--names", _NAMES)],
    "out": flags.Out,
}
"""Arguments of the command line by the name of a study's subject."""
BESIDE_TEXT: dict[str, dict[str, Any]] = {
    "sample": {"task": Annotated[Path, flags.option("--task", _MEASURED, "Task", "FILE")]},
    "corpus": {
        "after": Annotated[str, flags.option("--after", _TUNED, "Model")],
        "task": Annotated[list[Path], flags.option("--task", _TRAINED_FOR, "Task", "FILE")],
    },
}
"""Those that are flags beside a subject of text."""


def make_function(command: Command) -> Callable[..., None]:
    """Make the function of a command from its study, which stands under `takes`.

    Raises TypeError for a study with a subject that a command cannot read.
    """
    study = command.load()
    signature = inspect.signature(study)
    home = sys.modules[inspect.unwrap(study).__module__]
    options = {field.name for field in fields_of(study.options)}
    subjects = {
        name: subject
        for name, subject in signature.parameters.items()
        if name not in options and (name in ARGUMENTS or subject.default is subject.empty)
    }
    arguments = {name: _argument(subject, home) for name, subject in subjects.items()}
    for text in BESIDE_TEXT.keys() & subjects.keys():
        arguments |= BESIDE_TEXT[text]
    writes_model = "out" in subjects

    def run(options: Any, output: Any, **arguments_of_call: Any) -> None:
        kinds, claim = result_types(command.kind_of_result), new_folder
        if writes_model or kinds[0].kind in MODEL_KINDS:
            from headroles.models.loading.saved_models import PrunedModel, model_folder

            kinds = [PrunedModel, *kinds] if writes_model else kinds
            claim = partial(model_folder, model=arguments_of_call["model"])

        def work(running: Any, folder: Path | None) -> Any:
            bound = signature.bind_partial()
            for subject in subjects.values():
                bound.arguments[subject.name] = _value_of(subject, home, arguments_of_call, running)
            if writes_model and folder is not None:
                bound.arguments["out"] = Claimed(folder)
            return study(*bound.args, **bound.kwargs, options=running)

        cheaper = command.cheaper
        if getattr(options, "quick", False):
            cheaper = cheaper.removeprefix("`quick`, ")
        about = {"unit": command.unit, "cheaper": cheaper}
        fill(arguments_of_call["out"], kinds, output, options, work, claim=claim, **about)

    command_function: Any = run
    command_function.__signature__ = _signature(subjects, arguments, study.options)
    command_function.__doc__ = _help_of(command, study)
    return command_function  # type: ignore[no-any-return]


def _help_of(command: Command, study: Callable[..., Any]) -> str:
    """Return the help of a command; of a study of another package what its function says of it."""
    if not command.package:
        return command.help
    return str(inspect.getdoc(study)).partition(OPTIONS_FOLLOW)[0].strip()


def _argument(subject: inspect.Parameter, home: ModuleType) -> Any:
    """Return the argument of the command line for a subject of a study in the module ``home``.

    Raises TypeError if there is none.
    """
    if subject.name in ARGUMENTS:
        return ARGUMENTS[subject.name]
    if stored := next(classes_in(subject.annotation, home), None):
        folder = flags.argument(subject.name.upper(), f"Folder of results: {stored.kind}.")
        return Annotated[Path, folder]
    raise TypeError(
        f"no command can read `{subject.name}`, a subject of a study in {home.__name__}: give it a "
        f"name of headroles.cli.studies.ARGUMENTS, the type of a result, or a default"
    )


def _signature(
    subjects: dict[str, inspect.Parameter], arguments: dict[str, Any], group: type[Options]
) -> inspect.Signature:
    """Return the signature of a command: subjects of its study, the folder, groups of options."""
    options = {field.name for field in fields_of(group)}
    keyword = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    parameters = [
        keyword(name, annotation=arguments[name], default=_default(subject))
        for name, subject in subjects.items()
        if name != "out"
    ]
    if "on_progress" in options:
        parameters.append(keyword("out", annotation=flags.Out))
    else:
        parameters.append(keyword("out", annotation=flags.OptionalOut, default=None))
    is_of_text = any("Corpus" in subject.annotation for subject in subjects.values())
    groups: dict[str, Any] = {"reading": CorpusOptions} if is_of_text else {}
    groups["options"] = group
    groups["output"] = flags.LongRunOptions if "parts" in options else flags.ReportedOptions
    parameters += [keyword(name, annotation=group) for name, group in groups.items()]
    return inspect.Signature(parameters)


def _default(subject: inspect.Parameter) -> Any:
    """Return the default of an argument: None if a command can do without it."""
    may_lack = subject.kind is subject.VAR_POSITIONAL or "None" in subject.annotation
    return None if may_lack or subject.name == "names" else subject.empty


def _value_of(
    subject: inspect.Parameter, home: ModuleType, arguments: dict[str, Any], options: Any
) -> Any:
    """Return a subject of a study, of the arguments of its command."""
    value = arguments[subject.name]
    if "Corpus" in subject.annotation:
        return _opened(value, arguments, options)
    if subject.name == "names":
        folders = next(place for place in arguments.values() if isinstance(place, list))
        return names_of(folders) if value is None else split_names(value)
    if subject.name == "head":
        return value if value is None else read_head(value)
    if stored := next(classes_in(subject.annotation, home), None):
        return stored.load(value) if isinstance(value, Path) else [*map(stored.load, value or ())]
    return value


def _opened(files: list[Path] | None, arguments: dict[str, Any], options: Any) -> Any:
    """Open a corpus. Raises UsageError for options of a corpus or a task that is not given."""
    reading = arguments["reading"]
    if "task" in arguments:
        reading = text_beside(arguments["task"], reading)
        of_others = {
            *flags.given(options, PassOptions),
            *flags.given(options, LanguageOptions),
            *("--text-columns", "--header"),
        }
        flagged = flags.given(options, TaskOptions)
        idle = ", ".join(flag for flag in flagged if flag not in of_others)
        if not arguments["task"] and idle:
            raise UsageError(f"{idle} without a task: name its file with --task, or leave them out")
    if files:
        corpus = open_corpus(files, reading)
        runs = isinstance(options, PassOptions)
        return console.watched(corpus, options.on_progress) if runs else corpus
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
    output: flags.FolderOptions,
    options: Any,
    work: Callable[[Any, Path | None], Any],
    *,
    unit: str = "sentences",
    cheaper: str = "",
    claim: Callable[..., Any] = new_folder,
    roles: Sequence[str] = (),
) -> None:
    """Do the work of a command; its result is printed, and goes into a folder if there is one.

    The folder is claimed before, for results of these ``kinds``. ``work`` takes the options, which
    show its progress and save its parts, and the claimed folder, which it may fill itself; it
    returns a result, or several made from each other. The page may import the user's own ``roles``.
    ``cheaper`` says what makes long work shorter.
    Raises UsageError for options of a folder that is not given.
    """
    doing, resume = kinds[-1].kind, getattr(output, "resume", None)
    if out is None and (output.overwrite or getattr(output, "report", False)):
        flag = "--overwrite" if output.overwrite else "--report"
        raise UsageError(f"{flag} needs a folder: name one for the {doing} with --out")
    runs_model = hasattr(options, "on_progress")
    claimed = {"kinds": kinds, "overwrite": output.overwrite, "resume": resume}
    with claim(out, **claimed) if out else nullcontext() as folder:
        watch: Any = (
            console.progress_bar(doing, unit, cheaper) if runs_model else console.working(doing)
        )
        with watch as on_progress:
            running = {"on_progress": on_progress, "parts": folder and parts_beside(folder)}
            circumstances = {
                name: value for name, value in running.items() if hasattr(options, name)
            }
            work_done = work(replace(options, **circumstances), folder)
        results = work_done if isinstance(work_done, tuple) else (work_done,)
        if folder is not None and not (folder / RUN_FILE).exists():
            write_together(folder, results)
    console.finish(results[-1], output, out, roles)


def names_of(folders: list[Path]) -> list[str]:
    """Return the last parts of paths, or whole paths where these are not different."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
