"""What can be asked of each study: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option, split_names
from headroles.presets import PresetOptions
from headroles.scoring import ScoreOptions
from headroles.testing import LevelOptions, ResamplingOptions, TestOptions, check_max_t

PAIRED_TESTS = ("t", "sign_flip")
ON_ERROR, INTERSECT = ON_MISMATCH = ("error", "intersect")


@dataclass(frozen=True, kw_only=True)
class AssignOptions(PresetOptions, TestOptions):
    """How roles are assigned."""

    __test__ = False
    title: ClassVar[str] = "Tests"

    @property
    def tests(self) -> TestOptions:
        """The options that the tests follow: of the published preset only threshold and alpha."""
        if not self.is_published:
            return self.part(TestOptions)
        return TestOptions(
            threshold=self.threshold, alpha=self.alpha, correction="none", clusters="none"
        )


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(AssignOptions, ScoreOptions):
    """How heads are scored, and how roles are assigned."""

    __test__ = False


@dataclass(frozen=True, kw_only=True)
class PlanOptions(LevelOptions):
    """What is to be decided, and how surely."""

    title: ClassVar[str] = "Tests"

    power: Annotated[
        float,
        Option(
            "Chance to decide a head that is like in the pilot.",
            words="the power",
            above=0,
            below=1,
        ),
    ] = 0.8


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ResamplingOptions, LevelOptions):
    """How score sets are compared."""

    title: ClassVar[str] = "Comparison"

    names: Annotated[
        Sequence[str] | None,
        Option(
            "What to call AFTER and those that follow, separated by commas.",
            more='None calls it "after", or "1", "2", ... if there are several.',
            convert=split_names,
            recorded=False,
        ),
    ] = None
    test: Annotated[
        str,
        Option(
            "Test of the differences, and of the roles.",
            more="t: paired t-test, cluster-robust with clusters. sign_flip: by flipping the signs "
            "of all differences of a cluster, safer if clusters are few.",
            words="the test",
            choices=PAIRED_TESTS,
        ),
    ] = "t"
    margin: Annotated[
        float | None,
        Option(
            "Difference that would matter; left out: 0.5 (bias), 0.025 (excess).",
            more="The smallest difference of mean scores that would matter, to be chosen before "
            "the data are seen. The default is a quarter of the way from uniform attention to the "
            "usual threshold.",
            words="the margin",
            above=0,
        ),
    ] = None
    on_mismatch: Annotated[
        str,
        Option(
            "What becomes of examples or roles that not all have; intersect leaves them out.",
            choices=ON_MISMATCH,
        ),
    ] = "error"

    def check(self) -> None:
        """Refuse a correction that does not come from the test."""
        super().check()
        check_max_t(self.test, self.correction)

    @property
    def tests(self) -> TestOptions:
        """The options of the tests of differences, and of roles."""
        return self.part(TestOptions)
