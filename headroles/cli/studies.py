"""Commands of studies, in the order of work.

Most are made from the declaration of the study in `headroles.registry`; the others have a file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out, ScoredArgument, TaskArgument
from headroles.cli.flags import FolderOptions, ReportedOptions, ResumeOptions, command
from headroles.cli.keeping import OptionalOut, fill_resumably, keep_or_show, refuse_idle_overwrite
from headroles.results.study import SCORES, Study, studies


def add_commands() -> None:
    """Register the commands of all studies."""
    for study in studies():
        for name in study.commands:
            if study.over and name == study.commands[0]:
                _add(study)
            else:
                import_module(f"headroles.cli.{name.replace('-', '_')}")


def _add(study: Study) -> None:
    made = _over_scores(study) if study.over == SCORES else _over_task(study)
    made.__name__ = study.commands[0].replace("-", "_")
    made.__doc__ = study.help
    made.__annotations__ |= {
        "options": study.load("options"),
        "output": ReportedOptions if study.page else FolderOptions,
    }
    command(app)(made)


def _over_scores(study: Study) -> Callable[..., None]:
    def run(
        scored: ScoredArgument, options: Any, output: FolderOptions, out: OptionalOut = None
    ) -> None:
        from headroles.scoring.scores import HeadScores

        refuse_idle_overwrite(out, output, study.kind)
        keep_or_show(study.load("function")(HeadScores.load(scored), options), out, output)

    return run


def _over_task(study: Study) -> Callable[..., None]:
    def run(
        model: ModelArgument,
        task: TaskArgument,
        out: Out,
        options: Any,
        output: FolderOptions,
        resuming: ResumeOptions,
    ) -> None:
        made = (study.load("result"), output, resuming, study.kind, study.load("function"))
        fill_resumably(out, *made, model, task, options=options)

    return run
