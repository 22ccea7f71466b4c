"""Several models over one corpus -> a folder of scores for each, to be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from headroles.corpus import Corpus, prepared
from headroles.errors import UsageError
from headroles.models import load_encoder, open_reader
from headroles.roles import choose_relations
from headroles.scoring import OnProgress, ScoreOptions, ScoringRun, score_to_folder
from headroles.storage import RUN_FILE, check_result_folder, result_folder
from headroles.studies.comparison.result import RoleShifts
from headroles.studies.heads import ONE_DOCUMENT
from headroles.studies.options import CompareOptions

Progress: TypeAlias = Callable[[str], AbstractContextManager[OnProgress | None]]
"""What shows the progress of the model of a name."""


def score_checkpoints(
    models: Mapping[str, str],
    corpus: Corpus,
    folder: Path,
    options: ScoreOptions,
    compared: CompareOptions,
    progress: Progress,
    overwrite: bool = False,
) -> Iterator[Path]:
    """Score each of ``models`` over one corpus, into the folder of its name in ``folder``.

    Yields each of these folders when it is complete: what fails later leaves it as it is. The
    corpus is parsed once, and all models are loaded once before the first is scored: a wrong name
    shows at once, and so does a corpus that cannot be clustered as it will be ``compared``.

    Raises:
        UsageError: models with other numbers of layers or heads, names that no folder can have,
            or one document.
        StorageError: a folder that cannot be written, or is not empty and not to be overwritten.
        CorpusError, ModelError, TokenizerError: as `score_heads`.
    """
    for name in models:
        _check_folder_name(name)
        check_result_folder(folder / name, overwrite)
    with prepared(corpus) as ready:
        choose_relations(options, ready.scheme, ready.relations)
        if compared.clusters == "document" and ready.documents == 1:
            raise UsageError(ONE_DOCUMENT)
        _check_alike(models, options)
        for name, model in models.items():
            with result_folder(folder / name, overwrite) as staging:
                encoder = load_encoder(model, options)
                with open_reader(encoder.model) as reader, progress(name) as on_progress:
                    shown = replace(options, on_progress=on_progress)
                    score_to_folder(ScoringRun(encoder, reader, ready, shown), staging)
            yield folder / name


def _check_folder_name(name: str) -> None:
    taken = (RUN_FILE, *(f"{RoleShifts.stem}.{fmt}" for fmt in ("csv", "parquet")))
    if Path(name).name != name or name in ("", "..", *taken):
        raise UsageError(
            f"{name!r} cannot be the name of a folder for scores; pass another in names (--names)"
        )


def _check_alike(models: Mapping[str, str], options: ScoreOptions) -> None:
    shapes = {model: _shape(model, options) for model in dict.fromkeys(models.values())}
    first, *others = shapes
    for other in others:
        for what, one, another in zip(
            ("layers", "heads"), shapes[first], shapes[other], strict=True
        ):
            if one != another:
                raise UsageError(
                    f"{first} and {other} differ in their number of {what}: {one} and {another}; "
                    "only models of one architecture can be compared head by head"
                )


def _shape(model: str, options: ScoreOptions) -> tuple[int, int]:
    """Numbers of layers and heads of a model, which is loaded and checked for it."""
    with open_reader(load_encoder(model, options).model) as reader:
        return reader.n_layers, reader.n_heads
