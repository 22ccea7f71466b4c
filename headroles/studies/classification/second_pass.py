"""Scores in the dtype that was chosen, with those behind near answers in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from headroles.corpus import Corpus
from headroles.models.attention import open_reader
from headroles.models.loading import Attending, load_encoder
from headroles.models.options import FLOAT32
from headroles.scoring.run import ScoringRun, open_scoring
from headroles.scoring.scores import HeadScores
from headroles.scoring.sharing import Sharing
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.options import AssignOptions, ClassifyOptions
from headroles.studies.heads import HeadColumns


def score_with_second_pass(
    model: Attending, corpus: Corpus, options: ClassifyOptions, sharing: Sharing
) -> HeadScores:
    """Score in the faster dtype; score heads and roles whose answers are near again in float32."""

    def second_pass(first: HeadScores) -> float:
        return expected_layers(first, options) / first.n_layers

    with open_scoring(model, corpus, options, sharing=sharing, second_pass=second_pass) as run:
        scores = run.scores()
        before = assign_roles(scores, options.as_group(AssignOptions))
        if not before.tests.near:
            return scores
        scores = _rescore(model, run, scores, before.tests.near)
    after = assign_roles(scores, options.as_group(AssignOptions))
    changed = int((before.frame["answer"] != after.frame["answer"]).sum())
    half = scores.record.half_precision
    assert half is not None  # there were near answers
    record = structs.replace(scores.record, half_precision=structs.replace(half, changed=changed))
    return replace(scores, record=record)


def _rescore(
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


def expected_layers(first: HeadScores, options: ClassifyOptions) -> int:
    """Return how many layers a second pass would run through, were these scores all.

    By t-tests of examples, which are quick. The number of near answers is taken not to depend on
    the number of examples: with more, fewer means lie near the limit of significance, and the same
    difference is a larger part of a standard error.
    """
    if not HeadColumns.of(first).roles:
        return first.n_layers
    asked = options.as_group(AssignOptions)
    if not options.is_published:
        asked = AssignOptions(
            threshold=options.threshold,
            offset_margin=options.offset_margin,
            alpha=options.alpha,
            family=options.family,
            clusters="none",
        )
    near = assign_roles(first, asked).tests.near
    return max((layer + 1 for layer, _, _ in near), default=0)
