"""``headroles compare``: what changed in the heads, from stored scores or from models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from headroles.cli import console, flags
from headroles.corpus import CorpusOptions
from headroles.errors import StorageError, UsageError
from headroles.results.stored import new_folder, write_together
from headroles.scoring.options import ScoreOptions
from headroles.storage import RUN_FILE, committed, parts_beside
from headroles.studies.comparison.options import CompareOptions


def compare(
    sides: Annotated[
        list[str],
        flags.argument(
            "BEFORE AFTER",
            "Folders that score or classify wrote; with --models, hub ids or model folders.",
        ),
    ],
    out: flags.Out,
    options: CompareOptions,
    reading: CorpusOptions,
    scoring: ScoreOptions,
    output: flags.ReportedOptions,
    resuming: flags.ResumeOptions,
    models: Annotated[
        bool,
        flags.option("--models", "BEFORE, AFTER, ... are models: score them first.", "Comparison"),
    ] = False,
    corpus: Annotated[
        list[Path] | None,
        flags.option(
            "--corpus", "To score models over; repeat it for each file.", "Corpus", "FILE"
        ),
    ] = None,
) -> None:
    """Test what changed in the heads, as by fine-tuning. Each AFTER is compared with BEFORE.

    Of stored scores: headroles compare BEFORE AFTER... --out DIR

    Of models: headroles compare --models BEFORE AFTER... --corpus FILE --out DIR

    Models are scored first, into the folders DIR/before and DIR/after (of several DIR/1, DIR/2,
    or as --names says). The options under Corpus, Roles and Model are for models only, and hold for
    all of them.
    """
    from headroles.corpus import open_corpus
    from headroles.scoring.scores import HeadScores
    from headroles.studies.comparison.checkpoints import check_places, score_checkpoints
    from headroles.studies.comparison.compare import RoleComparison, compare_roles, name_sides

    if len(sides) < 2:
        raise UsageError(f"only {sides[0]} is given; name two or more to compare")
    if models:
        _check_models(sides, corpus)
    else:
        idle = [flag for group in (reading, scoring, resuming) for flag in flags.given(group)]
        if idle := ["--corpus"] * bool(corpus) + idle:
            raise UsageError(
                "without --models stored scores are compared, as they are: leave out "
                f"{', '.join(idle)}; or pass --models, with models in the place of folders"
            )
    with new_folder(out, [RoleComparison], output.overwrite, resuming.resume) as staging:
        folders = [Path(side) for side in sides]
        if models:
            named = dict(zip(name_sides(len(sides), options), sides, strict=True))
            check_places(named, out)
            folders = score_checkpoints(
                named,
                open_corpus(corpus or [], reading),
                staging,
                scoring,
                options,
                lambda name: console.progress_bar(f"scoring {name}"),
                parts_beside(staging),
            )
        sets = [HeadScores.load(_scored(folder)) for folder in folders]
        with console.working("testing"):
            shifts = compare_roles(*sets, options=options)
        write_together(staging, [shifts])
    console.finish(shifts, output, out)


compare.without = ("preset",)  # type: ignore[attr-defined]  # no comparison was published


def _check_models(sides: list[str], corpus: list[Path] | None) -> None:
    if not corpus:
        raise UsageError("name what the models are to be scored over: --corpus FILE")
    for side in sides:
        if Path(side).is_file():
            raise UsageError(
                f"{side} is a file and no model; give each file of the corpus its own --corpus"
            )
        if (Path(side) / RUN_FILE).is_file() and not (Path(side) / "config.json").is_file():
            raise UsageError(
                f"{side} holds results and no model; to compare stored scores leave --models out, "
                "and score models first with: headroles score"
            )


def _scored(folder: Path) -> Path:
    if not (committed(folder) / RUN_FILE).is_file():
        raise StorageError(
            f"there are no scores in {folder}; name folders that score or classify wrote, "
            "or pass --models to score models first"
        )
    return folder
