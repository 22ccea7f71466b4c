"""Options of the tests of claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headroles.options import Option, split_names
from headroles.studies.inspection.options import TokenOptions
from headroles.tasks.options import TaskOptions
from headroles.testing.options import CorrectionOptions, ResamplingOptions


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(ResamplingOptions, CorrectionOptions, TokenOptions, TaskOptions):
    """The claims to test, and the options of their tests."""

    claims: Annotated[
        Sequence[str] | None,
        Option(
            "Claims to test, separated by commas: ids, or MODULE:FUNCTION of your code.",
            more="None takes all there are. `headroles claims --list` prints them.",
            convert=split_names,
        ),
    ] = None
    probability_margin: Annotated[
        float,
        Option(
            "Smallest change of the probability of a task's right answers that matters.",
            more="If a claim says that removing heads changes nothing, its test must show that "
            "the mean change is smaller than this. Choose the margin before you see the data.",
            words="the margin of probabilities",
            above=0,
        ),
    ] = 0.05
