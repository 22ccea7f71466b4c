"""Notes on single tests, and warnings about all of them, to read before relying on tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray
from headroles.inference import UNTESTABLE
from headroles.testing.evidence import BETTING, NO, YES, T
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions, TestOptions
from headroles.wording import listed

FEW = 20
"""Number of clusters (or of independent examples) below which a warning calls tests unreliable.
Clusters of different sizes count as the number of equal clusters with the same "df".
"""
FEWEST = 6
"""Number of clusters below which a warning names the alternative, to test without clusters."""
ENOUGH_FOR_SKEWNESS = 25
"""Factor of the squared skewness: with fewer examples, or clusters of examples, t is not near its
distribution (Cochran's rule; docs/evidence/tests.md has the results for real scores).
"""
FAMILY_WISE = ("bonferroni", "holm", "hochberg")
"""Corrections that promise no error at all in a family."""
SKEWED_FOR_FAMILIES = 1
"""Skewness beyond which claims about families get a warning. Most real scores are that skewed
(docs/evidence/tests.md); the others, with lower skewness, do not keep the claim with a thousand
examples either.
"""
SKEWED = "skewed: with so few examples t finds this mean {} what it is compared with too often"
"""Note on tests whose mean lies on the side away from the long tail of their values."""


def is_skewed(hypotheses: Hypotheses, certain: BoolArray | bool = False) -> BoolArray:
    """Tell which tests (T,) err too often, as values that skewed take more examples or clusters.

    Their mean lies on the side away from the long tail; on the other side t errs less often. Tests
    are ``certain`` if betting, which assumes no distribution, has the same answer.
    """
    skewness = hypotheses.sample.skewness
    lacks_examples = hypotheses.moments.n_clusters < ENOUGH_FOR_SKEWNESS * skewness**2
    is_away = np.sign(skewness) == -hypotheses.direction
    return np.asarray(hypotheses.is_tested & lacks_examples & is_away & ~np.asarray(certain))


def find_notes(
    hypotheses: Hypotheses,
    of_study: NDArray[np.object_] | None = None,
    test: str = T,
    certain: BoolArray | bool = False,
) -> NDArray[np.object_]:
    """Return a note on each test (T,), empty if there is none.

    The reason why a test was not made goes before the notes ``of_study``, and these before
    skewness, which `is_skewed` tells. Tests by betting need neither variance nor a distribution.
    """
    by_betting, skewed = test == BETTING, is_skewed(hypotheses, certain)
    moments = hypotheses.moments
    untestable = moments.status == UNTESTABLE
    of_study = np.full(hypotheses.n_tests, "", dtype=object) if of_study is None else of_study
    cases: list[tuple[BoolArray, Any]] = [
        (untestable & (moments.n < 2), "untestable: fewer than two examples"),
        (untestable & (moments.n_clusters < 2), "untestable: fewer than two clusters"),
        (untestable, "untestable: the clusters cancel"),
        (
            hypotheses.is_alike & (not by_betting),
            f"degenerate: no variance beyond rounding, so only the number of {hypotheses.units} "
            "decides",
        ),
        (of_study != "", of_study),
        *(
            (skewed & (hypotheses.direction == side) & (not by_betting), note)
            for side, note in ((1, SKEWED.format("above")), (-1, SKEWED.format("below")))
        ),
    ]
    notes: NDArray[np.object_] = np.full(hypotheses.n_tests, "", dtype=object)
    for which, note in cases[::-1]:
        notes = np.where(which, note, notes)
    return notes


def warn_of_differences(hypotheses: Hypotheses, options: CorrectionOptions) -> list[str]:
    """Return `find_warnings` for two-sided t-tests of independent examples."""
    two_sided = TestOptions(alpha=options.alpha, correction=options.correction, clusters="none")
    return find_warnings(hypotheses, two_sided, sides=2)


def warn_of_shared(samples: Mapping[str, str]) -> list[str]:
    """Warn of samples that are tested against each other but share their examples.

    ``samples`` has a digest of the examples of each, by name.
    """
    names: dict[str, list[str]] = {}
    for name, digest in samples.items():
        names.setdefault(digest, []).append(name)
    return [
        f"{', '.join(alike)} share their examples, but tests between tasks assume independent ones"
        for alike in names.values()
        if len(alike) > 1
    ]


def find_warnings(
    hypotheses: Hypotheses,
    options: TestOptions,
    sides: int = 1,
    certain: BoolArray | bool = False,
) -> list[str]:
    """List warnings about tests of one side or of both ``sides`` together, in sentences.

    Skewness is no reason to warn of ``certain`` tests, as `is_skewed` says.
    """
    if options.test == BETTING:
        return []
    every = [
        _family_wise(hypotheses, options, sides),
        _few(hypotheses),
        _skewed(hypotheses, sides, certain),
    ]
    return [warning for warning in every if warning]


def _family_wise(hypotheses: Hypotheses, options: TestOptions, sides: int) -> str:
    """Warn of claims about whole families, which need the far tail of skewed means."""
    skewed = hypotheses.is_tested & (np.abs(hypotheses.sample.skewness) > SKEWED_FOR_FAMILIES)
    if options.correction not in FAMILY_WISE or not skewed.any():
        return ""
    advice = "Pass `correction='fdr_bh'`, which promises less."
    if hypotheses.bounds is not None:
        command = "assign" if sides == 1 else "compare"
        advice = f"Run headroles {command} --test betting, which keeps it."
    return (
        f"{options.correction} promises no error in a whole family, which t cannot keep for skewed "
        f"scores. {int(skewed.sum())} tests have a skewness beyond "
        f"{SKEWED_FOR_FAMILIES}. {advice}"
    )


def _few(hypotheses: Hypotheses) -> str:
    moments = hypotheses.moments
    n_units = _most_by_label(hypotheses, moments.n_clusters)
    effective = n_units
    if hypotheses.n_draws is None:
        effective = _most_by_label(hypotheses, np.nan_to_num(moments.effective_clusters))
    few = np.flatnonzero(effective < FEW)
    if not len(few):
        return ""
    units = f"fewer than {FEW} {hypotheses.units}"
    if (uneven := few[n_units[few] >= FEW]).size:  # the number suffices, but sizes differ
        least = f"effective number {effective[uneven].min():.0f}, below {FEW}"
        units = f"few {hypotheses.units} ({least})"
    names, which = hypotheses.names, ""
    called = f"{hypotheses.called} come from " if hypotheses.called else ""
    if len(few) < len(names) and not hypotheses.called:
        called = f"scores of {len(few)} of {len(names)} roles come from "
        which = f"These are {listed([names[label] for label in few])}. "
    advice = f"Add {hypotheses.units}"
    if hypotheses.is_clustered and hypotheses.n_clusters < FEWEST:
        advice += ", or pass `clusters='none'` if examples are independent of one another"
    return f"{called}{units}: tests are unreliable. {which}{advice}."


def _most_by_label(hypotheses: Hypotheses, of_tests: NDArray[Any]) -> NDArray[Any]:
    """Return the largest of ``of_tests`` (T,) among the tests of each label."""
    labels = range(len(hypotheses.names))
    return np.array([of_tests[hypotheses.labels == label].max() for label in labels])


def _skewed(hypotheses: Hypotheses, sides: int, certain: BoolArray | bool) -> str:
    """Warn of tests that find a mean above, or below, too often, or of both ``sides`` alike."""
    skewed, direction = is_skewed(hypotheses, certain), hypotheses.direction
    above, below = int((skewed & (direction > 0)).sum()), int((skewed & (direction < 0)).sum())
    if not above + below:
        return ""
    n_tests = int(hypotheses.is_tested.sum())
    counts = {f"*{YES}*": above, f"*{NO}*": below}
    if sides == 2:
        counts = {"a change": above + below}
    (first, n), *rest = ((answer, n) for answer, n in counts.items() if n)
    found = f"{first} may come too easily in {n} of {n_tests} tests"
    for answer, n in rest:
        found += f", and {answer} in {n}"
    return (
        f"Because scores are skewed, {found}. The column note names them. Add {hypotheses.units}."
    )
