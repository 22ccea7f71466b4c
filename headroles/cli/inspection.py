"""``headroles examples``: the sentences behind a number."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from headroles.cli import console, flags
from headroles.cli.studies import fill
from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.studies.inspection.examples import SentenceOptions
from headroles.studies.options import read_head


def examples(
    scored: flags.Scored,
    named: Annotated[
        str, typer.Option("--head", metavar="<layer-head>", help="Layer and head, from 0: 4-0.")
    ],
    role: Annotated[
        str,
        typer.Option(
            "--role",
            help="The role: its id, its words as in summaries, or a relation such as nsubj.",
        ),
    ],
    options: SentenceOptions,
    output: flags.FolderOptions,
    layer: Annotated[
        int | None, typer.Option("--layer", help="Layer, where --head names the head alone.")
    ] = None,
    out: flags.OptionalOut = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw the attention in the first of them into this .svg, .pdf or .png.",
            rich_help_panel="Output",
        ),
    ] = None,
) -> None:
    """Show the sentences behind a head's scores, and its weights."""
    from headroles.drawing.saving import check_figure_file, save_figure
    from headroles.scoring.scores import HeadScores
    from headroles.studies.inspection.attention import read_attention
    from headroles.studies.inspection.examples import Examples, find_examples
    from headroles.studies.inspection.figures import draw_attention

    if figure is not None:
        check_figure_file(figure)
    elif not options.weights and (idle := flags.given(options, ModelOptions)):
        raise UsageError(
            f"no model is read without weights and a figure: leave out {', '.join(idle)}"
        )
    head = read_head(named if layer is None else f"{layer}-{named}")
    scores = HeadScores.load(scored)
    fill(out, Examples, output, partial(find_examples, scores, head, role, options))
    if figure is not None:
        attentions = read_attention(scores, head, role, replace(options, n=1))
        if not attentions:
            raise UsageError(f"no example has a score of head {head[0]}-{head[1]} for {role}")
        with console.shown_warnings():
            save_figure(draw_attention(attentions[0]), figure)
