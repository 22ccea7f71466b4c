"""``headroles tokens``: weights and norms that go to tokens of each kind."""

from __future__ import annotations

from headroles.cli.app import app
from headroles.cli.arguments import CorpusArgument, ModelArgument, Out
from headroles.cli.flags import ReportedOptions, command
from headroles.cli.keeping import fill, with_progress
from headroles.corpus import CorpusOptions
from headroles.studies.inspection.options import TokenOptions


@command(app)
def tokens(
    model: ModelArgument,
    corpus: CorpusArgument,
    out: Out,
    reading: CorpusOptions,
    options: TokenOptions,
    output: ReportedOptions,
) -> None:
    """Compare weights and norms that go to each kind of token.

    Norms are weights times the lengths of what heads hand on from a token (Kobayashi et al. 2020).
    """
    from headroles.corpus import open_corpus
    from headroles.studies.inspection.token_groups import TokenGroups, measure_token_groups

    source = open_corpus(corpus, reading)
    fill(
        out,
        TokenGroups,
        output,
        lambda: with_progress("reading", measure_token_groups, model, source, options=options),
    )
