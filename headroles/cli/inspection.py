"""``headroles examples``: the sentences behind a number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from headroles.cli import console, flags
from headroles.cli.studies import fill
from headroles.drawing.saving import check_figure_file, save_figure
from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.scoring.scores import HeadScores
from headroles.studies.inspection.again import read_head
from headroles.studies.inspection.attention import draw_attention, read_attention
from headroles.studies.inspection.examples import Examples, SentenceOptions, find_examples

_HELP_OF_ROLE = "The role: its id, its words as in summaries, or a relation such as nsubj."
_HELP_OF_FIGURE = "Draw the attention in the first of them into this .svg, .pdf or .png."


def examples(
    scored: flags.Scored,
    named: Annotated[
        str, flags.option("--head", "Layer and head, from 0: 4-0.", "Options", "<layer-head>")
    ],
    role: Annotated[str, flags.option("--role", _HELP_OF_ROLE, "Options")],
    options: SentenceOptions,
    output: flags.FolderOptions,
    layer: Annotated[
        int | None, flags.option("--layer", "Layer, where --head names the head alone.", "Options")
    ] = None,
    out: flags.OptionalOut = None,
    figure: Annotated[
        Path | None, flags.option("--figure", _HELP_OF_FIGURE, metavar="FILE")
    ] = None,
) -> None:
    """Show the sentences behind a head's scores, and its weights."""
    if figure is not None:
        check_figure_file(figure)
    elif not options.weights and (idle := flags.given(options, ModelOptions)):
        raise UsageError(
            f"no model is read without weights and a figure: leave out {', '.join(idle)}"
        )
    head = read_head(named if layer is None else f"{layer}-{named}")
    scores = HeadScores.load(scored)

    def work(running: Any, _: Any) -> Examples:
        return find_examples(scores, head, role, options=running)

    fill(out, [Examples], output, options, work)
    if figure is not None:
        attentions = read_attention(scores, head, role, options=replace(options, n=1))
        if not attentions:
            raise UsageError(f"no example has a score of head {head[0]}-{head[1]} for {role}")
        with console.shown_warnings():
            save_figure(draw_attention(attentions[0]), figure)
