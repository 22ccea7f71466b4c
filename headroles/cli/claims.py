"""``headroles claims``: what papers say of attention heads, tested on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console, flags
from headroles.cli.studies import fill, fill_folder, names_of, text_beside, write_results
from headroles.corpus import CorpusOptions
from headroles.studies.claims.measured import ClaimOptions


def _list(wanted: bool) -> None:
    """Print every claim with its source and its needs, and end."""
    if not wanted:
        return
    from headroles.studies.claims.claims import CLAIMS

    for claim in CLAIMS.values():
        console.say(f"{claim.id}: {claim.statement}")
        console.say(f"    {claim.source}; published: {claim.published}; needs {claim.needs}")
    raise typer.Exit


def claims(
    model: flags.Model,
    corpus: flags.Texts,
    out: flags.Out,
    reading: CorpusOptions,
    options: ClaimOptions,
    output: flags.ReportedOptions,
    after: Annotated[
        str | None,
        typer.Option("--after", help="A fine-tuned copy of MODEL, for claims about fine-tuning."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="File with examples of the task that MODEL was trained for; two with a comma "
            "between them for the claim about two tasks. --text-columns and --header are then "
            "those of these files.",
        ),
    ] = None,
    listed: Annotated[
        bool,
        typer.Option("--list", help="Print the claims and end.", is_eager=True, callback=_list),
    ] = False,
) -> None:
    """Test what papers say of attention heads on MODEL.

    In the place of MODEL and CORPUS, three or more folders that this command wrote for models that
    were trained independently: then claims are tested over these models.
    """
    from headroles.corpus import open_corpus
    from headroles.options import split_names
    from headroles.studies.claims.claims import (
        ClaimTable,
        choose_claims,
        combine_claims,
        test_claims,
    )
    from headroles.testing.options import CorrectionOptions

    folders = [Path(model), *corpus]
    if all((folder / "run.json").is_file() for folder in folders):
        tables, level = map(ClaimTable.load, folders), options.as_group(CorrectionOptions)
        combined = combine_claims(list(tables), names_of(folders), options=level)
        fill(out, ClaimTable, output, lambda: combined)
        return
    choose_claims(options.claims)  # refused before long work
    tasks = split_names(task) if task is not None else ()
    texts = open_corpus(corpus, text_beside(task, reading))
    with fill_folder(out, [ClaimTable], output, options, "claims", "parts") as (folder, running):
        result = test_claims(model, texts, after, tasks, options=running)
        write_results(folder, result)
    console.finish(out, output, result)
