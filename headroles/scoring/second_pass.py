"""Second pass over a corpus, in float32, for some heads and roles of a run in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from headroles.models.attention import open_reader
from headroles.models.loading import Attending, load_encoder
from headroles.models.options import FLOAT32
from headroles.scoring.run import ScoringRun
from headroles.scoring.scores import HeadScores


def rescore(
    model: Attending,
    run: ScoringRun,
    scores: HeadScores,
    columns: Sequence[tuple[int, int, str]],
) -> HeadScores:
    """Return the ``scores`` of a finished run with those of ``columns`` in float32.

    Columns are layers, heads and roles. Only their roles are scored, and the model runs up to the
    last of their layers; nothing of it is saved for a run that resumes this one.
    """
    n_layers = 1 + max(layer for layer, _, _ in columns)
    ids = {role for _, _, role in columns}
    roles = tuple(role for role in run.roles if role.id in ids)
    n_sentences, on_progress = run.corpus.n_sentences, run.options.on_progress

    def report(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(n_sentences + done, 2 * total)

    options = replace(run.options, dtype=FLOAT32, on_progress=report)
    encoder = load_encoder(model, options)
    with open_reader(encoder.network, options.measure) as reader:
        again = ScoringRun(
            encoder, reader.first(n_layers), run.corpus, options, chosen=(run.relations, roles)
        ).scores()
    values = scores.values.copy()
    for layer, head, role in columns:
        place, own = scores.role_ids.index(role), again.role_ids.index(role)
        values[:, layer, head, place] = again.values[:, layer, head, own]
    half = scores.record.half_precision
    assert half is not None  # the run was in half precision
    half = structs.replace(half, rescored=list(columns))
    return replace(
        scores, values=values, record=structs.replace(scores.record, half_precision=half)
    )
