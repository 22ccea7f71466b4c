"""Options of a comparison, which its command reads before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.options import CIRCUMSTANCE, Convert, split_names
from headroles.studies.options import ThresholdOptions
from headroles.testing.options import TestOptions


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TestOptions, ThresholdOptions):
    """Options of a comparison of score sets."""

    title: ClassVar[str] = "Comparison"

    names: Annotated[Sequence[str] | None, Convert(split_names), CIRCUMSTANCE] = None
    """Names of AFTER and of further score sets, separated by commas.

    If left out: "after", or "1", "2", ... if there are several.
    """
    margin: Annotated[float | None, Meta(gt=0)] = None
    """Difference that would matter; left out: 0.5 (bias), 0.025 (excess), 0.125 (hit).

    The smallest difference of mean scores that would matter, to be chosen before the data are
    seen. The default is a quarter of the way from uniform attention to the usual threshold.
    """
    on_mismatch: Literal["error", "intersect"] = "error"
    """Treatment of examples or roles that not all have; intersect skips them."""
