"""Options of tests, and checks that they fit together."""

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
    """Option that sets the level of tests."""

    title: ClassVar[str] = "Tests"

    alpha: Annotated[
        float,
        Option(
            "Level of the tests.",
            more="Each direction has this level; confidence intervals have level 1 - alpha.",
            above=0,
            below=0.5,
        ),
    ] = 0.05


@dataclass(frozen=True, kw_only=True)
class UnitOptions(AlphaOptions):
    """Options that set the level and the units of tests."""

    clusters: Annotated[
        str,
        Option(
            "Clusters of examples; auto: documents if there are several.",
            more="none treats examples as independent.",
            choices=CLUSTERS,
        ),
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class CorrectionOptions(AlphaOptions):
    """Options that set the level and the correction for many tests, from p-values alone."""

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
    """Options as in `CorrectionOptions`, with the correction of sign-flip tests."""

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
    """Options that set the level, the units and the families of tests."""

    family: Annotated[
        str,
        Option(
            "Tests that are corrected together: all, or those of each role.",
            words="the family",
            choices=TEST_FAMILIES,
        ),
    ] = "all"


@dataclass(frozen=True, kw_only=True)
class ResamplingOptions(Options):
    """Options of resampling."""

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
    """Options of testing and estimating means."""

    __test__ = False  # keeps pytest from collecting the class because of its name
    test: Annotated[
        str,
        Option(
            "Test of each mean.",
            more="t: one-sample t-test, cluster-robust with clusters. sign_flip: by flipping signs "
            "of clusters, which assumes symmetric scores instead of normal ones. bootstrap_t: by "
            "resampling clusters. wilcoxon: signed ranks, for clusters='none' only; a test of the "
            "pseudo-median, the center of symmetric scores, not of the mean: a head with skewed "
            "scores and a mean above the threshold can get 'no'. betting: from the bounds of "
            "scores alone, valid for any number of examples and any distribution; it tests a "
            "weighted mean: clusters count equally, examples with wide bounds less.",
            words="the test",
            choices=OFFERED,
        ),
    ] = T
    interval: Annotated[
        str,
        Option(
            "Confidence interval of each mean.",
            more="simultaneous holds for all means of a family at once. fcr is for heads picked by "
            "their answer (false coverage rate), and missing for undecided heads. The others hold "
            "for each mean separately.",
            words="the interval",
            choices=tuple(INTERVALS),
        ),
    ] = BY_T

    def check(self) -> None:
        """Reject tests, corrections, clusters and intervals that do not fit together."""
        super().check()
        check_max_t(self.test, self.correction)
        if TESTS[self.test].takes_independent and self.clusters != "none":
            raise UsageError(
                f"{TESTS[self.test].words} need independent examples; pass clusters='none' "
                "(--clusters none) to treat them so, or test='sign_flip' (--test sign_flip)"
            )
        check_resamples(self.interval, self.alpha, self.resamples)


def check_max_t(test: str, correction: str) -> None:
    """Raise UsageError for a correction that this test does not provide."""
    if correction == MAX_T and test != SIGN_FLIP:
        raise UsageError(
            "the correction max_t needs sign flips; "
            "pass test='sign_flip' (--test sign_flip), or another correction (--correction)"
        )


def check_resamples(interval: str, alpha: float, resamples: int) -> None:
    """Raise UsageError for too few resamples for simultaneous intervals of level 1 - alpha."""
    # rank of the resampled maximum, from the smallest, that the level needs
    largest_rank = math.ceil((1 - alpha) * (resamples + 1))
    if interval == SIMULTANEOUS and largest_rank > resamples:
        raise UsageError(
            f"{resamples} resamples are too few for simultaneous intervals of level "
            f"{1 - alpha:g}; pass more with resamples (--resamples)"
        )


def describe_interval(interval: str, alpha: float) -> str:
    """Describe the coverage of confidence intervals."""
    return f"intervals of {100 * (1 - alpha):g} %: {INTERVALS[interval].words}"


def describe_correction(correction: str, family: str) -> str:
    """Describe the correction and its families."""
    if correction == "none":
        return "no correction"
    return f"{correction} {'over all tests' if family == 'all' else 'within each role'}"
