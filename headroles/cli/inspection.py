"""Commands of inspection: the sentences behind a number, and the attention that tokens get."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroles.cli import console
from headroles.cli.flags import (
    CorpusArgument,
    FolderOptions,
    ModelArgument,
    OptionalOut,
    Out,
    ReportedOptions,
    ScoredArgument,
    given_flags,
)
from headroles.cli.running import fill, with_progress
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.studies.inspection.examples import SentenceOptions
from headroles.studies.inspection.tokens import TokenOptions
from headroles.studies.options import read_head

if TYPE_CHECKING:
    from headroles.scoring.scores import HeadScores

_ROLE = "The role: its id, its words as in summaries, or a relation such as nsubj."


def examples(
    context: typer.Context,
    scored: ScoredArgument,
    named: Annotated[
        str, typer.Option("--head", metavar="<layer-head>", help="Layer and head, from 0: 4-0.")
    ],
    role: Annotated[str, typer.Option("--role", help=_ROLE)],
    options: SentenceOptions,
    output: FolderOptions,
    layer: Annotated[
        int | None, typer.Option("--layer", help="Layer, where --head names the head alone.")
    ] = None,
    out: OptionalOut = None,
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
    from headroles.drawing.saving import check_figure_file
    from headroles.scoring.scores import HeadScores
    from headroles.studies.inspection.examples import Examples, find_examples

    if figure is not None:
        check_figure_file(figure)
    elif not options.weights and (idle := given_flags(context, ModelOptions)):
        raise UsageError(
            f"no model is read without weights and a figure: leave out {', '.join(idle)}"
        )
    head = read_head(named if layer is None else f"{layer}-{named}")
    scores = HeadScores.load(scored)

    def work() -> Examples:
        with console.working("reading attention"):
            return find_examples(scores, head, role, options)

    fill(out, Examples, output, work)
    if figure is not None:
        _draw(scores, head, role, options, figure)
        if not output.json:
            console.say(f"figure: {figure}")


def _draw(
    scores: HeadScores, head: tuple[int, int], role: str, options: SentenceOptions, file: Path
) -> None:
    """Draw the attention in the first example, and print the warnings of the figure."""
    from dataclasses import replace

    from headroles.drawing.saving import save_figure
    from headroles.studies.inspection.attention import draw_attention, read_attention

    with console.working("reading attention"):
        attentions = read_attention(scores, head, role, replace(options, n=1))
        if not attentions:
            raise UsageError(f"no example has a score of head {head[0]}-{head[1]} for {role}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            save_figure(draw_attention(attentions[0]), file)
    for warning in caught:
        console.warn(str(warning.message))


def tokens(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: TokenOptions,
    output: ReportedOptions,
) -> None:
    """Compare weights and norms that go to each kind of token.

    Norms are weights times the lengths of the vectors that heads pass on from a token (Kobayashi et
    al. 2020).
    """
    from headroles.corpus import open_corpus
    from headroles.studies.inspection.tokens import TokenGroups, measure_token_groups

    source = open_corpus(corpus, reading)
    fill(
        out,
        TokenGroups,
        output,
        lambda: with_progress("reading", measure_token_groups, model, source, options=options),
    )
