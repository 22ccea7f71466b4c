"""``headroles examples``: the sentences behind a number."""

from __future__ import annotations

from typing import Annotated

import typer

from headroles.cli.app import app
from headroles.cli.arguments import ScoredArgument
from headroles.cli.flags import OutputOptions, command
from headroles.cli.keeping import show
from headroles.studies import ExampleOptions


@command(app)
def examples(
    scored: ScoredArgument,
    layer: Annotated[int, typer.Option("--layer", help="Layer, from 0.")],
    head: Annotated[int, typer.Option("--head", help="Head, from 0.")],
    role: Annotated[str, typer.Option("--role", help="Id of the role.")],
    options: ExampleOptions,
    output: OutputOptions,
) -> None:
    """Show the sentences behind the scores of a head."""
    from headroles.scoring import HeadScores
    from headroles.studies import examples as examples_of

    show(examples_of(HeadScores.load(scored), (layer, head), role, options), output)
