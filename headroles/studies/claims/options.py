"""Options of the tests of claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from headroles.options import Convert, Seed, split_names
from headroles.studies.inspection.tokens import TokenOptions
from headroles.tasks.options import TaskOptions
from headroles.testing.options import CorrectionOptions


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(CorrectionOptions, TokenOptions, TaskOptions):
    """The claims to test, and the options of their tests."""

    claims: Annotated[Sequence[str] | None, Convert(split_names)] = None
    """Claims to test, separated by commas: ids, or MODULE:FUNCTION of your code.

    None takes all there are. `headroles claims --list` prints them.
    """
    seed: Seed = 0
    """Seed of the controls."""
    probability_margin: Annotated[float, Meta(gt=0)] = 0.05
    """Smallest change of the probability of a task's right answers that matters.

    A model must lose more than this without any head, and a claim that heads can go is contradicted
    by a larger loss. Choose the margin before you see the data.
    """
