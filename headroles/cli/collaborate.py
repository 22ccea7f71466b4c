"""``headroles collaborate``: queries and keys that heads share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.arguments import ModelArgument, Out
from headroles.cli.flags import FolderOptions, command
from headroles.corpus import CorpusOptions
from headroles.errors import UsageError
from headroles.studies import CollaborateOptions

if TYPE_CHECKING:
    from headroles.corpus import Corpus

Sample = Annotated[
    list[Path] | None,
    typer.Option(
        "--sample",
        metavar="FILE",
        help="Text to fit and to measure with; the bundled treebank if left out. Repeatable.",
        rich_help_panel="Corpus",
    ),
]


@command(app)
def collaborate(
    model: ModelArgument,
    out: Out,
    reading: CorpusOptions,
    options: CollaborateOptions,
    output: FolderOptions,
    sample: Sample = None,
) -> None:
    """Make a model whose heads share queries and keys. DIR can be used wherever MODEL can.

    By rank: headroles collaborate MODEL --rank 192 --out DIR

    By error: headroles collaborate MODEL --error 0.1 --out DIR
    """
    from headroles.results import check_place, save_together
    from headroles.studies import Collaboration, CollaborativeModel
    from headroles.studies import collaborate as make

    check_place(out, [CollaborativeModel, Collaboration], output.overwrite)
    made, table = make(model, _open(sample, reading), options)
    save_together(out, [made, table], output.overwrite)
    console.finish(out, output.json, table.facts(), table.shown())


def _open(sample: list[Path] | None, reading: CorpusOptions) -> Corpus | None:
    """The sample; None for the bundled one."""
    from headroles.corpus import open_corpus

    if not sample:
        if reading != CorpusOptions():
            raise UsageError("how text is read is said, but not which: name it with --sample")
        return None
    return open_corpus(sample, reading)
