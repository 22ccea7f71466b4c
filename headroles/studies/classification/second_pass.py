"""Scores in the dtype that was chosen, with those behind near answers in float32."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from headroles.corpus import Corpus
from headroles.models.loading import Attending
from headroles.scoring.run import open_scoring
from headroles.scoring.scores import HeadScores
from headroles.scoring.second_pass import rescore
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
        scores = rescore(model, run, scores, before.tests.near)
    after = assign_roles(scores, options.as_group(AssignOptions))
    changed = int((before.frame["answer"] != after.frame["answer"]).sum())
    half = scores.record.half_precision
    assert half is not None  # there were near answers
    record = structs.replace(scores.record, half_precision=structs.replace(half, changed=changed))
    return replace(scores, record=record)


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
