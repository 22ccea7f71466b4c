"""How means are tested: the options, and which of them go together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.inference import CORRECTIONS
from headroles.options import Option, Options, seed_option
from headroles.testing.catalogue import (
    BY_T,
    INTERVALS,
    OFFERED,
    SIGN_FLIP,
    SIMULTANEOUS,
    TESTS,
    T,
)

MAX_T = "max_t"
TEST_CORRECTIONS = (*CORRECTIONS, MAX_T)
TEST_FAMILIES = ("all", "role")
CLUSTERS = ("auto", "document", "none")
_NEVER_BELOW = "Adjusted p-values are never below those of the single tests."


@dataclass(frozen=True, kw_only=True)
class AlphaOptions(Options):
    """At which level."""

    title: ClassVar[str] = "Tests"

    alpha: Annotated[
        float,
        Option(
            "Level of the tests.",
            more="Of each direction; confidence intervals have level 1 - alpha.",
            above=0,
            below=0.5,
        ),
    ] = 0.05


@dataclass(frozen=True, kw_only=True)
class UnitOptions(AlphaOptions):
    """At which level, over which units."""

    title: ClassVar[str] = "Tests"

    clusters: Annotated[
        str,
        Option(
            "What examples are clustered by; auto: by document if there are several.",
            more="none takes examples as independent.",
            choices=CLUSTERS,
        ),
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class CorrectionOptions(AlphaOptions):
    """At which level, and how it is kept over many tests, from their p-values alone."""

    title: ClassVar[str] = "Tests"

    correction: Annotated[
        str,
        Option(
            "Correction for the number of tests.",
            more=_NEVER_BELOW,
            words="the correction",
            choices=CORRECTIONS,
        ),
    ] = "fdr_bh"


@dataclass(frozen=True, kw_only=True)
class FlippedOptions(CorrectionOptions):
    """The same where tests may be by sign flips, which have a correction of their own."""

    title: ClassVar[str] = "Tests"

    correction: Annotated[
        str,
        Option(
            "Correction for the number of tests.",
            more=f"max_t (step-down max-T) is for sign flips only. {_NEVER_BELOW}",
            words="the correction",
            choices=TEST_CORRECTIONS,
        ),
    ] = "fdr_bh"


@dataclass(frozen=True, kw_only=True)
class LevelOptions(CorrectionOptions, UnitOptions):
    """What is decided, at which level, over which units."""

    title: ClassVar[str] = "Tests"

    family: Annotated[
        str,
        Option(
            "Which tests are corrected together: all, or those of each role.",
            words="the family",
            choices=TEST_FAMILIES,
        ),
    ] = "all"


@dataclass(frozen=True, kw_only=True)
class ResamplingOptions(Options):
    """How often is resampled."""

    title: ClassVar[str] = "Tests"

    resamples: Annotated[
        int,
        Option(
            "Number of sign flips or bootstrap samples.", words="the number of resamples", least=1
        ),
    ] = 10_000
    seed: Annotated[
        int,
        seed_option("Seed of the resamples.", more="The same seed gives the same table."),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class TestOptions(ResamplingOptions, FlippedOptions, LevelOptions):
    """How means are tested and estimated."""

    __test__ = False  # not a test case, whatever its name says to pytest
    title: ClassVar[str] = "Tests"

    test: Annotated[
        str,
        Option(
            "Test of each mean.",
            more="t: one-sample t-test, cluster-robust with clusters. sign_flip: by flipping signs "
            "of clusters, which takes scores to be symmetric instead of normal. bootstrap_t: by "
            "resampling clusters. wilcoxon: signed ranks, for clusters='none' only; a test of the "
            "pseudo-median, the center of symmetric scores, not of the mean: a head with skewed "
            "scores and a mean above the threshold can get 'no'. betting: from the bounds of "
            "scores alone, valid for any number of examples and any distribution; it tests a "
            "weighted mean: clusters count the same each, examples of wide bounds less.",
            words="the test",
            choices=OFFERED,
        ),
    ] = T
    interval: Annotated[
        str,
        Option(
            "Confidence interval of each mean.",
            more="simultaneous holds for all means of a family at once; fcr is for those with one "
            "answer, adjusted for having been selected by it (false coverage rate), and missing "
            "for the undecided; the others hold for each mean by itself.",
            words="the interval",
            choices=tuple(INTERVALS),
        ),
    ] = BY_T

    def check(self) -> None:
        """Refuse tests, corrections, clusters and intervals that do not go together."""
        super().check()
        check_max_t(self.test, self.correction)
        if TESTS[self.test].takes_independent and self.clusters != "none":
            raise UsageError(
                f"{TESTS[self.test].words} take examples as independent; pass clusters='none' "
                "(--clusters none) to have it so, or test='sign_flip' (--test sign_flip)"
            )
        check_resamples(self.interval, self.alpha, self.resamples)


def check_max_t(test: str, correction: str) -> None:
    """Raise UsageError for a correction that does not come from this test."""
    if correction == MAX_T and test != SIGN_FLIP:
        raise UsageError(
            "the correction max_t comes from sign flips; "
            "pass test='sign_flip' (--test sign_flip), or another correction"
        )


def check_resamples(interval: str, alpha: float, resamples: int) -> None:
    """Raise UsageError for too few resamples for simultaneous intervals of level 1 - alpha."""
    # Which of the resampled maxima, counted from the smallest, the level asks for.
    largest_rank = math.ceil((1 - alpha) * (resamples + 1))
    if interval == SIMULTANEOUS and largest_rank > resamples:
        raise UsageError(
            f"{resamples} resamples are too few for simultaneous intervals of level "
            f"{1 - alpha:g}; pass more with resamples (--resamples)"
        )


def describe_interval(interval: str, alpha: float) -> str:
    """What confidence intervals hold for, for people."""
    return f"intervals of {100 * (1 - alpha):g} %: {INTERVALS[interval].words}"


def describe_correction(correction: str, family: str) -> str:
    """The correction and its families, for people."""
    if correction == "none":
        return "no correction"
    return f"{correction} {'over all tests' if family == 'all' else 'within each role'}"
