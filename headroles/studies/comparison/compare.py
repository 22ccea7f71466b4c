"""compare_roles: scores before and after -> RoleShifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headroles.errors import UsageError
from headroles.options import takes
from headroles.record import ScoresRecord
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.options import AssignOptions
from headroles.studies.classification.role_table import RoleTests
from headroles.studies.comparison.joining import JoinedScores, join_scores
from headroles.studies.comparison.options import CompareOptions
from headroles.studies.comparison.result import RoleShifts, ShiftsRecord
from headroles.studies.comparison.shifts import shift_frame
from headroles.studies.heads import clusters_of, scores_of

if TYPE_CHECKING:
    from headroles.studies.classification.classify import Classification

    Scored: TypeAlias = HeadScores | Classification

BEFORE = "before"


@takes(CompareOptions)
def compare_roles(
    before: Scored, after: Scored, *later: Scored, options: CompareOptions
) -> RoleShifts:
    """Compare score sets: test for every head and role whether the mean and the role changed.

    The unit is the pair: the scores of one example before and after, clustered by documents as in
    `assign_roles`. Two questions are tested and corrected separately. Has the mean changed? A
    paired test of H0: difference = 0. Did it move by less than ``margin``? Two one-sided tests of
    H0: abs(difference) >= margin (Schuirmann 1987). `assign_roles` assigns roles before and after,
    with the same options, over the same examples.

    ``block:evenness`` is not a role and is skipped. If all differences are equal, the number of
    examples decides. ``docs/comparing.md`` explains the result.

    Args:
        before: scores from `score_heads`, or a result of `classify_heads`.
        after: scores of the same examples by the same architecture, as of another checkpoint.
        later: further checkpoints; each is compared with ``before``. The paired tests of all
            checkpoints are one family.
        options: keyword arguments, described below.

    Returns:
        The tests, with the options and the records of all sides.

    Raises:
        UsageError: an option outside its range, or scores that cannot be compared: of other
            examples, numbers of layers or heads, or scored with other options.

    The head 0-0 has a role before that it does not have after:

    >>> import numpy as np
    >>> from headroles import HeadScores, compare_roles
    >>> rng = np.random.default_rng(0)
    >>> before, after = (
    ...     HeadScores.by_hand(rng.normal(means, 1.0, size=(20, 1, 2, 1)), ["local"])
    ...     for means in ([[5.0], [1.0]], [[1.0], [1.0]])
    ... )
    >>> compare_roles(before, after).frame[["layer", "head", "change", "status"]]
       layer  head     change  status
    0      0     0    changed    lost
    1      0     1  undecided  absent
    """
    sides = [before, after, *later]
    scores = list(map(scores_of, sides))
    named = dict(zip(name_sides(len(sides), options), scores, strict=True))
    joined = join_scores(named, options.on_mismatch)
    asked = options.as_group(AssignOptions)
    tables = {name: assign_roles(scores, asked) for name, scores in joined.sets.items()}
    margin = scores[0].score.margin if options.margin is None else options.margin
    frame, warnings = shift_frame(
        joined.sets,
        {name: table.frame for name, table in tables.items()},
        clusters_of(joined.sets[BEFORE], options),
        options.tests,
        margin,
    )
    of_tables = {name: table.tests.warnings for name, table in tables.items()}
    cautions = [
        *_same_weights({name: scores.record for name, scores in joined.sets.items()}),
        *_name_warnings({**of_tables, "differences": warnings}),
    ]
    return RoleShifts(
        frame[list(RoleShifts.columns)],
        _record(joined, tables[BEFORE].tests, options, margin, cautions),
    )


def name_sides(n: int, options: CompareOptions) -> tuple[str, ...]:
    """Name ``n`` score sets. Raises UsageError for names that do not fit."""
    names = options.names
    if names is None:
        names = ["after"] if n == 2 else [str(place) for place in range(1, n)]
    if len(names) != n - 1 or len({BEFORE, *names}) != n:
        raise UsageError(
            f"names are {list(names)} for {n - 1} score sets; "
            f"give each a different name, other than {BEFORE!r}"
        )
    return (BEFORE, *names)


def _record(
    joined: JoinedScores,
    first: RoleTests,
    options: CompareOptions,
    margin: float,
    warnings: list[str],
) -> ShiftsRecord:
    """Return the record of a comparison; ``first`` is how roles before were tested."""
    limits = {
        "threshold": first.threshold,
        "distance_margin": first.distance_margin,
        "margin": margin,
    }
    return ShiftsRecord.now(
        options={**options.record(), **limits},
        score=joined.sets[BEFORE].score.name,
        examples=joined.sets[BEFORE].n_examples,
        clustered_by=first.clustered_by,
        n_clusters=first.n_clusters,
        dropped_examples=joined.dropped_examples,
        dropped_roles=joined.dropped_roles,
        sets={name: scores.record for name, scores in joined.sets.items()},
        warnings=warnings,
    )


def _same_weights(sets: Mapping[str, ScoresRecord]) -> list[str]:
    """Warn of sets that come from one and the same model."""
    before = sets[BEFORE]
    digest = before.model.weights_sha256
    same = [
        name
        for name, other in sets.items()
        if name != BEFORE
        and digest is not None
        and other.model.weights_sha256 == digest
        and other.measure == before.measure
    ]
    return [f"{name} has the very weights of {BEFORE}: check the paths" for name in same]


def _name_warnings(warnings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each warning once, after the names of the sets that it is about."""
    named: dict[str, list[str]] = {}
    for name, texts in warnings.items():
        for text in texts:
            named.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in named.items()]
