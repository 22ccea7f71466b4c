"""compare_roles: scores before and after -> RoleShifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from headroles.comparison.joining import JoinedScores, check_on_mismatch, join_scores
from headroles.comparison.result import RoleShifts
from headroles.comparison.shifts import DEFAULT_MARGINS, ShiftOptions, shift_frame
from headroles.errors import UsageError
from headroles.hypotheses import TestOptions, kind_of
from headroles.provenance import new_provenance
from headroles.roles import RoleTable, assign_roles
from headroles.scores import HeadScores

if TYPE_CHECKING:
    from headroles.classification import Classification

    Scored: TypeAlias = HeadScores | Classification

BEFORE = "before"


def compare_roles(
    before: Scored,
    after: Scored,
    *later: Scored,
    names: Sequence[str] | None = None,
    threshold: float | None = None,
    margin: float | None = None,
    alpha: float = 0.05,
    test: str = "t",
    correction: str = "fdr_bh",
    family: str = "all",
    groups: str = "auto",
    resamples: int = 10_000,
    seed: int = 0,
    on_mismatch: str = "error",
) -> RoleShifts:
    """Test for every head and role whether its mean score changed, and what became of the role.

    The unit is the pair: the scores of one and the same example before and after, clustered by
    documents as in `assign_roles`. Two questions are asked, each corrected by itself. Has the mean
    changed: paired test of H0: difference = 0. Did it move by less than ``margin``: two one-sided
    tests of H0: abs(difference) >= margin (Schuirmann 1987). Roles are assigned before and after
    by `assign_roles`, with the same options, over the same examples.

    ``block:evenness`` is a measure and no role, and is left out. Where all differences are alike
    their mean decides. How to read the result is in ``docs/comparing.md``.

    Args:
        before: scores from `score_heads`, or what `classify_heads` made of them.
        after: scores of the same examples by the same architecture, as of another checkpoint.
        later: further checkpoints; each is compared with ``before``.
        names: what to call ``after`` and ``later``; ``"after"``, or ``"1"``, ``"2"``, ... if there
            are several.
        threshold: of the roles, as in `assign_roles`.
        margin: the smallest difference of mean scores that would matter, to be chosen before the
            data are seen. None takes 0.5 for bias scores and 0.025 for excess scores: a quarter of
            the way from uniform attention to the usual threshold.
        alpha: level of the tests, below 0.5; intervals have level ``1 - alpha``, each for itself.
        test: ``"t"``, paired t-test, cluster-robust with clusters; or ``"sign_flip"``, by flipping
            the signs of all differences of a cluster, safer if clusters are few.
        correction: as in `assign_roles`; ``max_t`` for sign flips only.
        family: ``"all"`` tests of all checkpoints are one family, or those of each ``"role"`` are.
        groups: as in `assign_roles`; documents are those of ``before``.
        resamples: number of sign flips.
        seed: of these.
        on_mismatch: ``"error"``; or ``"intersect"`` to compare the examples and roles that all
            have, where corpora, tokenizers, relations or contrasts differ.

    Returns:
        The tests, with the options and the provenance of all sides.

    Raises:
        UsageError: an option outside its range, or scores that cannot be compared: of other
            examples, numbers of layers or heads, or scored with other options.
    """
    named = _name([before, after, *later], names)
    tests = TestOptions(
        threshold=threshold,
        alpha=alpha,
        test=test,
        correction=correction,
        family=family,
        groups=groups,
        resamples=resamples,
        seed=seed,
    )
    options = _shift_options(kind_of(named[BEFORE]), margin, tests)
    joined = join_scores(named, on_mismatch)
    tables = {name: _assign(scores, tests) for name, scores in joined.sets.items()}
    answers = {name: table.frame for name, table in tables.items()}
    frame = shift_frame(joined.sets, answers, options)
    return RoleShifts(frame, _provenance(joined, tables, options, on_mismatch))


def name_sides(
    n: int,
    *,
    names: Sequence[str] | None = None,
    score: str = "bias",
    margin: float | None = None,
    on_mismatch: str = "error",
    **tests: Any,
) -> tuple[str, ...]:
    """What `compare_roles` would call ``n`` score sets, to be asked before there are any.

    Raises UsageError for options that it would refuse whatever the scores; ``score`` is their
    kind, and ``tests`` are fields of `TestOptions`.
    """
    check_on_mismatch(on_mismatch)
    _shift_options(score, margin, TestOptions(**tests))
    return (BEFORE, *_name_checkpoints(n - 1, names))


def _shift_options(score: str, margin: float | None, tests: TestOptions) -> ShiftOptions:
    return ShiftOptions(DEFAULT_MARGINS[score] if margin is None else margin, tests)


def _name_checkpoints(n: int, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        names = ["after"] if n == 1 else [str(place + 1) for place in range(n)]
    if len(names) != n or len({BEFORE, *names}) != n + 1:
        raise UsageError(
            f"names are {list(names)} for {n} score sets; "
            f"give each one of its own, other than {BEFORE!r}"
        )
    return tuple(names)


def _name(sets: Sequence[Scored], names: Sequence[str] | None) -> dict[str, HeadScores]:
    """The score sets by name, the first as ``BEFORE``."""
    scores = (one if isinstance(one, HeadScores) else one.scores for one in sets)
    return dict(zip((BEFORE, *_name_checkpoints(len(sets) - 1, names)), scores, strict=True))


def _assign(scores: HeadScores, tests: TestOptions) -> RoleTable:
    return assign_roles(
        scores,
        threshold=tests.threshold,
        alpha=tests.alpha,
        test=tests.test,
        correction=tests.correction,
        family=tests.family,
        groups=tests.groups,
        resamples=tests.resamples,
        seed=tests.seed,
    )


def _provenance(
    joined: JoinedScores, tables: dict[str, RoleTable], options: ShiftOptions, on_mismatch: str
) -> dict[str, Any]:
    """Where the comparison came from; ``sets`` has the provenance of every score set."""
    sets = {name: scores.provenance for name, scores in joined.sets.items()}
    first = tables[BEFORE].provenance["tests"]
    record = new_provenance(
        model={name: provenance.get("model", {}) for name, provenance in sets.items()},
        corpus=sets[BEFORE].get("corpus", {}),
        options={
            **asdict(options.tests),
            "threshold": first["threshold"],
            "margin": options.margin,
            "on_mismatch": on_mismatch,
        },
    )
    warnings = [text for table in tables.values() for text in table.provenance["tests"]["warnings"]]
    return record | {
        "examples": joined.sets[BEFORE].n_examples,
        "clustered_by": first["clustered_by"],
        "n_clusters": first["n_clusters"],
        "dropped_examples": joined.dropped_examples,
        "dropped_roles": joined.dropped_roles,
        "warnings": list(dict.fromkeys(warnings)),
        "sets": sets,
    }
