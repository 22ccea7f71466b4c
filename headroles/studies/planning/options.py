"""Options of planning: the thresholds, the tests and the power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from headroles.options import Option
from headroles.studies.options import ThresholdOptions
from headroles.testing.options import FlippedOptions, LevelOptions


@dataclass(frozen=True, kw_only=True)
class PlanOptions(FlippedOptions, LevelOptions, ThresholdOptions):
    """Options of a plan: the tests, and their power."""

    power: Annotated[
        float,
        Option(
            "Probability to decide a head with its mean and deviation in the pilot.",
            words="the power",
            above=0,
            below=1,
        ),
    ] = 0.8
