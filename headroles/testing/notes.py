"""Notes on single tests, and warnings about all of them, to read before relying on tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.arrays import BoolArray, IndexArray
from headroles.inference import ENOUGH_DRAWS, UNTESTABLE
from headroles.testing.catalogue import BY_T, FCR, SIGN_FLIP, SIMULTANEOUS, TESTS, T
from headroles.testing.evidence import PValues
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import MAX_T, CorrectionOptions, TestOptions
from headroles.wording import listed

FEW = 20
"""Number of clusters (or of independent examples) below which a warning calls tests unreliable.
Clusters of different sizes count as the number of equal clusters with the same "df".
"""
FEWEST_TO_FLIP = 6
"""Number of clusters below which sign flips can hardly reject any hypothesis."""
ENOUGH_FOR_SKEWNESS = 25
"""Factor of the squared skewness: with fewer examples t is not near its distribution (Cochran's
rule; docs/calibration.md has the results for real scores).
"""
FAMILY_WISE = ("bonferroni", "holm", "hochberg", MAX_T)
"""Corrections that promise no error at all in a family."""
SKEWED_FOR_FAMILIES = 1
"""Skewness beyond which claims about families get a warning. Most real scores are that skewed
(docs/calibration.md); the others, with lower skewness, do not keep the claim with a thousand
examples either.
"""
SKEWED = f"skewed: fewer than {ENOUGH_FOR_SKEWNESS} times skewness squared examples"


def is_skewed(hypotheses: Hypotheses) -> BoolArray:
    """Tell which tests (T,) have too few examples for the skewness of their values."""
    enough = ENOUGH_FOR_SKEWNESS * hypotheses.sample.skewness**2
    return np.asarray(hypotheses.is_tested & (hypotheses.moments.n < enough))


def find_notes(
    hypotheses: Hypotheses, own: NDArray[np.object_] | None = None, test: str = T
) -> NDArray[np.object_]:
    """Return a note on each test (T,), empty if there is none.

    The reason why a test was not made goes before the study's ``own`` notes, and these before
    skewness. Tests by betting need neither variance nor a distribution.
    """
    by_betting = TESTS[test].takes_bounds
    moments = hypotheses.moments
    untestable = moments.status == UNTESTABLE
    by = f"the number of {hypotheses.units} decides"
    if hypotheses.bounds is not None:
        by = "the bounds of the scores decide"
    own = np.full(hypotheses.n_tests, "", dtype=object) if own is None else own
    cases: list[tuple[BoolArray, Any]] = [
        (untestable & (moments.n < 2), "untestable: fewer than two examples"),
        (untestable & (moments.n_clusters < 2), "untestable: fewer than two clusters"),
        (untestable, "untestable: the clusters cancel"),
        (
            hypotheses.is_alike & (not by_betting),
            f"degenerate: no variance beyond rounding, so only {by}",
        ),
        (own != "", own),
        (is_skewed(hypotheses) & (not by_betting), SKEWED),
    ]
    notes: NDArray[np.object_] = np.full(hypotheses.n_tests, "", dtype=object)
    for which, note in cases[::-1]:
        notes = np.where(which, note, notes)
    return notes


def warn_of_differences(hypotheses: Hypotheses, options: CorrectionOptions) -> list[str]:
    """Return `find_warnings` for two-sided t-tests of independent examples."""
    asked = TestOptions(alpha=options.alpha, correction=options.correction, clusters="none")
    return find_warnings(hypotheses, asked, sides=2)


def warn_of_shared(samples: Mapping[str, str]) -> list[str]:
    """Warn of samples that are tested against each other but share their examples.

    ``samples`` has a digest of the examples of each, by name.
    """
    names: dict[str, list[str]] = {}
    for name, digest in samples.items():
        names.setdefault(digest, []).append(name)
    return [
        f"{', '.join(own)} share their examples, but tests between tasks assume independent ones"
        for own in names.values()
        if len(own) > 1
    ]


def find_warnings(
    hypotheses: Hypotheses,
    options: TestOptions,
    tested: PValues | None = None,
    sides: int = 1,
) -> list[str]:
    """List warnings about the tests, in sentences.

    ``tested`` are those of one direction, or two-sided ones if ``sides`` is 2; only resampled tests
    need them.
    """
    found = _family_wise(hypotheses, options, sides)
    if not TESTS[options.test].takes_bounds:
        found += [_few(hypotheses, options), _few_draws(hypotheses), _skewed(hypotheses)]
        if tested is not None and TESTS[options.test].is_resampled:
            found.append(_out_of_reach(hypotheses, options, tested, sides))
    return [warning for warning in found if warning]


def _family_wise(hypotheses: Hypotheses, options: TestOptions, sides: int) -> list[str]:
    """Warn of claims about whole families, which need the far tail of skewed means.

    Two-sided tests are of differences; they give no answers by which intervals could be selected.
    """
    claims = []
    if options.correction in FAMILY_WISE and not TESTS[options.test].takes_bounds:
        advice = "Pass correction='fdr_bh' (--correction fdr_bh), which promises less."
        if hypotheses.bounds is not None:
            command = "assign" if sides == 1 else "compare"
            advice = f"Run headroles {command} --test betting, which keeps it."
        claims.append((f"the correction {options.correction} promises", options.test, advice))
    if options.interval == SIMULTANEOUS:
        other = FCR if sides == 1 else BY_T
        advice = f"Pass interval={other!r} (--interval {other}), which promises less."
        claims.append(("simultaneous intervals promise", "sign flips", advice))
    skewed = hypotheses.is_tested & (np.abs(hypotheses.sample.skewness) > SKEWED_FOR_FAMILIES)
    if not skewed.any():
        return []
    return [
        f"{claim} no error in a whole family, which {by} cannot keep for skewed scores. "
        f"{int(skewed.sum())} tests have a skewness beyond {SKEWED_FOR_FAMILIES}. {advice}"
        for claim, by, advice in claims
    ]


def _few_draws(hypotheses: Hypotheses) -> str:
    """Warn of few draws: one draw says nothing about others, two to four say little."""
    if hypotheses.n_draws is None or hypotheses.n_draws >= ENOUGH_DRAWS:
        return ""
    if hypotheses.n_draws == 1:
        return (
            "with one draw, answers hold for this draw only, not for the method that drew it; "
            f"to generalise, make at least {ENOUGH_DRAWS} draws (--draws)"
        )
    return (
        f"with {hypotheses.n_draws} draws intervals are wide and tests weak; make at least "
        f"{ENOUGH_DRAWS} (--draws)"
    )


def _few(hypotheses: Hypotheses, options: TestOptions) -> str:
    moments = hypotheses.moments
    n_units = _most_by_label(hypotheses, moments.n_clusters)
    effective = n_units
    if hypotheses.n_draws is None:  # few draws have a warning of their own
        effective = _most_by_label(hypotheses, np.nan_to_num(moments.effective_clusters))
    few = np.flatnonzero(effective < FEW)
    if not len(few):
        return ""
    units = f"fewer than {FEW} {hypotheses.units}"
    if (n_units[few] >= FEW).any():  # the number suffices, but sizes differ
        units = f"few {hypotheses.units} (effective number {effective[few].min():.0f}, below {FEW})"
    return (
        f"{hypotheses.called or f'the scores of {_named(hypotheses.names, few)}'} come from "
        f"{units}: tests are unreliable. "
        f"{_advice_on_few(hypotheses, options, int(n_units[few].min()))}"
    )


def _most_by_label(hypotheses: Hypotheses, of_tests: NDArray[Any]) -> NDArray[Any]:
    """Return the largest of ``of_tests`` (T,) among the tests of each label."""
    labels = range(len(hypotheses.names))
    return np.array([of_tests[hypotheses.labels == label].max() for label in labels])


def _named(names: tuple[str, ...], few: IndexArray) -> str:
    if len(few) == len(names):
        return "all roles"
    return f"{len(few)} of {len(names)} roles ({listed([names[label] for label in few])})"


def _advice_on_few(hypotheses: Hypotheses, options: TestOptions, n_units: int) -> str:
    more = f"Add {hypotheses.units}"
    if not hypotheses.is_clustered:
        return f"{more}."
    if hypotheses.n_clusters < FEWEST_TO_FLIP:
        return (
            f"{more}, or pass clusters='none' (--clusters none) if examples are "
            "independent of one another."
        )
    if n_units < FEWEST_TO_FLIP or options.test == SIGN_FLIP:
        return f"{more}."
    return (
        f"{more}, or pass test='sign_flip' (--test sign_flip), which is safer "
        "unless scores are skewed."
    )


def _skewed(hypotheses: Hypotheses) -> str:
    n_skewed, n_made = int(is_skewed(hypotheses).sum()), int(hypotheses.is_tested.sum())
    if not n_skewed:
        return ""
    return (
        f"{n_skewed} of {n_made} tests have too few examples for such skewed scores: p-values "
        'are rough. With a long upper tail "no" is found too often, with a long lower tail "yes". '
        "The column note names these tests. Add examples."
    )


def _out_of_reach(hypotheses: Hypotheses, options: TestOptions, tested: PValues, sides: int) -> str:
    """Warn if the smallest possible p-value of a resampled test is too large for any rejection."""
    made = ~np.isnan(tested.single)
    sizes = [int(made[columns].sum()) for columns in hypotheses.columns_by_family]
    if not any(sizes):
        return ""
    flips = 2 ** int(hypotheses.moments.n_clusters.max())
    # with few clusters all flips are used, including the one that changes nothing
    exhausted = options.test == SIGN_FLIP and flips <= options.resamples
    # the opposite of a flip is as extreme on the other side
    smallest = sides / flips if exhausted else 1 / (options.resamples + 1)
    counts_all = options.correction in ("bonferroni", "holm")
    n_tests = min(size for size in sizes if size) if counts_all else 1
    if smallest * n_tests <= options.alpha:
        return ""
    remedies = [f"more {hypotheses.units}"] if exhausted else ["more resamples (--resamples)"]
    if smallest <= options.alpha:  # the correction puts rejection out of reach
        other = MAX_T if options.test == SIGN_FLIP else "fdr_bh"
        remedies.append(f"correction={other!r} (--correction {other})")
    return (
        f"no hypothesis can be rejected: the smallest p-value that {options.test} can give here "
        f"is {smallest:.2g}, too large {'' if n_tests == 1 else f'for {n_tests} tests '}"
        f"at alpha {options.alpha:g}. Try {' or '.join(remedies)}."
    )
