"""Options of comparison: before and after fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option, split_names
from headroles.studies.options import ThresholdOptions, usual
from headroles.testing.options import (
    FlippedOptions,
    LevelOptions,
    ResamplingOptions,
    TestOptions,
    check_max_t,
)

PAIRED_TESTS = ("t", "sign_flip", "betting")
ON_MISMATCH = ON_ERROR, _ = ("error", "intersect")


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ResamplingOptions, FlippedOptions, LevelOptions, ThresholdOptions):
    """Options of a comparison of score sets."""

    title: ClassVar[str] = "Comparison"

    names: Annotated[
        Sequence[str] | None,
        Option(
            "Names of AFTER and of further score sets, separated by commas.",
            more='If left out: "after", or "1", "2", ... if there are several.',
            convert=split_names,
            recorded=False,
        ),
    ] = None
    test: Annotated[
        str,
        Option(
            "Test of the differences, and of the roles.",
            more="t: paired t-test, cluster-robust with clusters. sign_flip: by flipping the signs "
            "of all differences of a cluster, safer if clusters are few. betting: from the bounds "
            "of scores alone, for any distribution of differences.",
            words="the test",
            choices=PAIRED_TESTS,
        ),
    ] = "t"
    margin: Annotated[
        float | None,
        Option(
            f"Difference that would matter; left out: {usual('margin')}.",
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
            "Treatment of examples or roles that not all have; intersect skips them.",
            choices=ON_MISMATCH,
        ),
    ] = "error"

    def check(self) -> None:
        """Reject a correction that does not fit the test."""
        super().check()
        check_max_t(self.test, self.correction)

    @property
    def tests(self) -> TestOptions:
        """The options of the tests of differences, and of roles."""
        return self.as_group(TestOptions)
