"""Options of tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.options import Options

KEEP = "keep"
"""Value of the option that leaves documents apart which share texts."""


@dataclass(frozen=True, kw_only=True)
class AlphaOptions(Options):
    """Option that sets the level of tests."""

    title: ClassVar[str] = "Tests"

    alpha: Annotated[float, Meta(gt=0, lt=0.5)] = 0.05
    """Level of the tests.

    Each direction has this level; confidence intervals have level 1 - alpha.
    """


@dataclass(frozen=True, kw_only=True)
class UnitOptions(AlphaOptions):
    """Options that set the level and the units of tests."""

    clusters: Literal["auto", "document", "none"] = "auto"
    """Clusters of examples; auto: documents if there are several.

    none treats examples as independent.
    """
    duplicates: Literal["cluster", "keep"] = "cluster"
    """Documents that share most of their text: cluster makes one cluster of them.

    keep leaves each document a cluster of its own.
    """


@dataclass(frozen=True, kw_only=True)
class CorrectionOptions(AlphaOptions):
    """Options that set the level and the correction for many tests, from p-values alone."""

    correction: Literal["fdr_bh", "holm", "bonferroni", "fdr_by", "hochberg", "none"] = "fdr_bh"
    """Correction for the number of tests.

    All tests of a table are corrected together.
    """


@dataclass(frozen=True, kw_only=True)
class LevelOptions(CorrectionOptions, UnitOptions):
    """Options that set the level, the correction and the units of tests."""


@dataclass(frozen=True, kw_only=True)
class TestOptions(LevelOptions):
    """Options of testing means."""

    __test__ = False  # keeps pytest from collecting the class because of its name
    test: Literal["t", "betting"] = "t"
    """Test of each mean.

    t: t-test, cluster-robust with clusters. betting: from the bounds of scores alone, valid for
    any number of examples and any distribution; it tests a weighted mean: clusters count equally,
    examples with wide bounds less.
    """


def describe_test(test: str) -> str:
    """Name the tests."""
    return {"t": "t-tests", "betting": "tests by betting"}[test]
