"""Score sets of several corpora or checkpoints -> in how many of them a head has a role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from headroles.arrays import BoolArray
from headroles.errors import UsageError
from headroles.options import takes
from headroles.roles import BIAS, Role
from headroles.scoring.scores import HeadScores
from headroles.studies.heads import HeadColumns, general_threshold, hypotheses_of
from headroles.studies.replication.options import CHECKPOINTS, CORPORA, SEEDS, ReplicateOptions
from headroles.studies.replication.tables import (
    LayerCounts,
    Replicated,
    Replication,
    ReplicationRecord,
)
from headroles.testing.catalogue import BETTING
from headroles.testing.evidence import find_p_values, find_replicated
from headroles.testing.hypotheses import Hypotheses

_OTHER_LENGTH = 1.2
"""Ratio of mean lengths of examples above which a caution is given."""


@takes(ReplicateOptions)
def replicate_roles(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> Replication | LayerCounts:
    """Test in at least how many of k score sets each head has each role.

    Evidence comes from betting: valid for any number of examples and any distribution. The test of
    a role in at least u sets takes the evidence of the k - u + 1 sets that have the least
    (Benjamini and Heller 2008), multiplies it if the sets share no example and averages it
    otherwise, and is corrected over the family for every u by itself.

    Args:
        sets: two or more, from `score_heads`, of one kind of score: of one model over several
            corpora, of checkpoints of one model (their heads correspond), or of models of several
            seeds (their heads do not, and heads are counted per layer only).
        names: of the sets.
        options: keyword arguments, described below.

    Raises:
        UsageError: fewer than two sets, sets that do not go together, or without bounds.

    In both corpora the first head has the role, and no score can be below 0 or above 10:

    >>> import numpy as np
    >>> from headroles import HeadScores, replicate_roles
    >>> rng = np.random.default_rng(0)
    >>> news, mail = (
    ...     HeadScores.by_hand(
    ...         rng.normal([[5.0], [1.0]], 0.3, size=(20, 1, 2, 1)), ["local"], bounds=(0, 10)
    ...     )
    ...     for _ in range(2)
    ... )
    >>> replicate_roles([news, mail], ["news", "mail"]).heads()[["head", "role", "at_least"]]
       head   role  at_least
    0     0  local         2
    1     1  local         0
    """
    _check_sets(sets, names, options)
    present = [HeadColumns.of(one).roles for one in sets]
    roles, left_out = _common_roles(present)
    lacking = [[role.id for role in roles if role not in own] for own in present]
    score = sets[0].score
    asked = Replicated(
        **{**options.record(), "threshold": general_threshold(score, options.threshold)},
        score=score.name,
        names=list(names),
        independent=_are_independent(sets),
        left_out=left_out,
        lacking={name: ids for name, ids in zip(names, lacking, strict=True) if ids},
        warnings=list(_warnings(sets, names)),
    )
    record = ReplicationRecord.now(
        score=score.name,
        replication=asked,
        sets={name: one.record for name, one in zip(names, sets, strict=True)},
    )
    tested = [_of_roles(one, roles, options) for one in sets]
    if options.over == SEEDS:
        frames = [
            _layer_counts(name, *one, options) for name, one in zip(names, tested, strict=True)
        ]
        return LayerCounts(pd.concat(frames, ignore_index=True), record)
    return Replication(_frame(tested, names, asked.independent, options), record)


def _warnings(sets: Sequence[HeadScores], names: Sequence[str]) -> Iterator[str]:
    """Warn of sets that differ in what their scores depend on."""
    lengths = [float(one.lengths.mean()) for one in sets]
    if sets[0].score is BIAS and max(lengths) > _OTHER_LENGTH * min(lengths):
        means = ", ".join(f"{name} {n:.0f}" for name, n in zip(names, lengths, strict=True))
        yield (
            f"Examples differ in length (mean number of tokens: {means}), and bias scores grow "
            "with length: more heads have roles where examples are longer. Score with "
            "score='excess' (--score excess)."
        )


def _check_sets(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> None:
    if len(sets) < 2:
        raise UsageError("replication needs two score sets or more; name another folder")
    if len(set(names)) != len(sets):
        raise UsageError(f"{len(sets)} score sets are called {', '.join(names)}; name each apart")
    if with_comma := [name for name in names if "," in name]:
        raise UsageError(
            f"the name {with_comma[0]!r} has a comma, which separates names in tables; pass other "
            "names (--names)"
        )
    first, called = sets[0], names[0]
    for one, name in zip(sets[1:], names[1:], strict=True):
        if one.score != first.score:
            raise UsageError(
                f"{name} has {one.score.name} scores and {called} {first.score.name} scores; score "
                "them alike"
            )
        if options.over != SEEDS and one.values.shape[1:3] != first.values.shape[1:3]:
            raise UsageError(
                f"{name} has {one.n_layers} layers x {one.n_heads} heads and {called} "
                f"{first.n_layers} x {first.n_heads}: they are no checkpoints of one model"
            )
        if options.over == CORPORA and _weights(one) != _weights(first):
            raise UsageError(
                f"{name} and {called} are of different models; pass over={CHECKPOINTS!r} (--over "
                f"{CHECKPOINTS}) if their heads correspond, or {SEEDS!r} if they do not"
            )


def _weights(scores: HeadScores) -> str | None:
    return scores.record.model.weights_sha256


def _are_independent(sets: Sequence[HeadScores]) -> bool:
    """Tell whether no two sets share an example or a random order, as far as is known.

    Evidence about a corpus itself depends on chance only by the order of its examples.
    """
    if any(not one.digests for one in sets):
        return False
    distinct = [set(one.digests) for one in sets]
    found = [one.record for one in sets if one.record.drawn_from is not None]
    seeds = [record.stopped and record.stopped.shuffle_seed for record in found]
    return len(set(seeds)) == len(seeds) and len(set().union(*distinct)) == sum(map(len, distinct))


def _common_roles(present: Sequence[Sequence[Role]]) -> tuple[list[Role], list[str]]:
    """Return roles of at least two sets, and ids of roles that one set has or that differ."""
    found = list(dict.fromkeys(role for roles in present for role in roles))
    ids = Counter(role.id for role in found)
    common = [
        role for role in found if ids[role.id] == 1 and sum(role in roles for roles in present) > 1
    ]
    if not common:
        raise UsageError("no role is in two of the score sets; score them for the same roles")
    return common, list(dict.fromkeys(role.id for role in found if role not in common))


def _of_roles(
    scores: HeadScores, roles: list[Role], options: ReplicateOptions
) -> tuple[HeadColumns, Hypotheses]:
    columns = HeadColumns(tuple(roles), scores.n_layers, scores.n_heads)
    return columns, hypotheses_of(_completed(scores, roles), columns, options, options)


def _completed(scores: HeadScores, roles: list[Role]) -> HeadScores:
    """Return the scores, with an empty column for each role that was not scored."""
    lacking = [role for role in roles if role not in scores.roles]
    if not lacking:
        return scores

    def widened(array: Any, axis: int, value: float = np.nan) -> Any:
        if array is None:
            return None
        added = [(0, len(lacking) * (place == axis)) for place in range(array.ndim)]
        return np.pad(array, added, constant_values=value)

    return replace(
        scores,
        roles=(*scores.roles, *lacking),
        values=widened(scores.values, 3),
        counts=widened(scores.counts, 1, 0),
        offset_shares=widened(scores.offset_shares, 1),
        bounds=widened(scores.bounds, 1),
    )


def _frame(
    tested: list[tuple[HeadColumns, Hypotheses]],
    names: Sequence[str],
    independent: bool,
    options: ReplicateOptions,
) -> pd.DataFrame:
    columns = tested[0][0]
    sets = [hypotheses for _, hypotheses in tested]
    shows = np.stack([_shows(one, options) for one in sets], axis=1)
    shown_in = [", ".join(compress(names, row)) for row in shows.tolist()]
    means = -np.sort([-one.moments.mean for one in sets], axis=0)  # largest first, missing last
    n_sets = sum((~np.isnan(one.betting.test().log_e)).astype(np.intp) for one in sets)
    frames = []
    for at_least in range(1, len(tested) + 1):
        found = find_replicated(sets, at_least, independent, options)
        part = pd.DataFrame(
            {
                **columns.labels,
                "sets": n_sets,
                "shown_in": shown_in,
                "at_least": at_least,
                "mean": means[at_least - 1],
                "log_e": found.statistic,
                "p_adjusted": found.adjusted,
                "replicated": found.shows(options.alpha),
            }
        )
        frames.append(part[list(Replication.columns)])
    return pd.concat(frames, ignore_index=True)


def _layer_counts(
    name: str, columns: HeadColumns, hypotheses: Hypotheses, options: ReplicateOptions
) -> pd.DataFrame:
    frame = pd.DataFrame({**columns.labels, "with_role": _shows(hypotheses, options)})
    counts = frame.groupby(["role", "layer"], sort=False)[["with_role"]].sum().reset_index()
    return counts.assign(set=name, heads=columns.n_heads)[list(LayerCounts.columns)]


def _shows(hypotheses: Hypotheses, options: ReplicateOptions) -> BoolArray:
    """Tell which heads have which roles (T,) in one set, corrected by itself."""
    return find_p_values(hypotheses, options, "greater", BETTING).shows(options.alpha)
