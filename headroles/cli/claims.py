"""``headroles claims``: what papers say of attention heads, tested on a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.running import fill
from headroles.corpus import CorpusOptions
from headroles.studies.claims import ClaimOptions


def _list(asked: bool) -> None:
    """Print every claim with its source and its needs, and end."""
    if not asked:
        return
    from headroles.cli.console import out
    from headroles.studies.claims import CLAIMS

    for one in CLAIMS.values():
        out.print(f"{one.id}: {one.statement}", soft_wrap=True, highlight=False, markup=False)
        line = f"    {one.source}; published: {one.published}; needs {one.needs}"
        out.print(line, soft_wrap=True, highlight=False, markup=False)
    raise typer.Exit


@command(app)
def claims(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: ClaimOptions,
    output: ReportedOptions,
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
    """Test what papers say of attention heads on MODEL."""
    from headroles.cli import console
    from headroles.corpus import open_corpus
    from headroles.options import split_names
    from headroles.studies.claims import ClaimTable, Measured, choose_claims, claims_of

    choose_claims(options.claims)  # refused before long work
    tasks = split_names(task) if task is not None else ()
    # Columns and header are those of the task where there is one.
    columns = None if task else reading.text_columns
    header = False if reading.header is False and not task else None
    source = open_corpus(corpus, replace(reading, text_columns=columns, header=header))

    def work() -> ClaimTable:
        with console.progress_bar("testing claims", "parts") as on_progress:
            asked = replace(options, on_progress=on_progress)
            return claims_of(Measured(model, source, asked, after, tasks))

    fill(out, ClaimTable, output, work)
