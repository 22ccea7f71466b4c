"""Options of planning: what is to be decided, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from headroles.options import Option
from headroles.studies.options import ThresholdOptions
from headroles.testing.options import (
    FlippedOptions,
    LevelOptions,
)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(FlippedOptions, LevelOptions, ThresholdOptions):
    """Options of a plan: the share to decide, and the power."""

    power: Annotated[
        float,
        Option(
            "Chance to decide a head that is like in the pilot.",
            words="the power",
            above=0,
            below=1,
        ),
    ] = 0.8
