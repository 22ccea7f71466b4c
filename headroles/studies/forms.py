"""What ``run.json`` must say of tables of results for them to be read back."""

from __future__ import annotations

from typing import Any

import msgspec

from headroles.roles import SCORES
from headroles.scoring import StoppedForm
from headroles.testing import INTERVALS, TEST_NAMES


class OfScores(msgspec.Struct):
    """What is said of every table that was made from scores."""

    score: str

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"unknown score {self.score!r}")


class LevelForm(msgspec.Struct):
    """How was tested."""

    alpha: float
    correction: str
    family: str
    threshold: float

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha {self.alpha}")


class TestForm(LevelForm):
    """How was tested, and by which test."""

    test: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test not in TEST_NAMES:
            raise ValueError(f"unknown test {self.test!r}")


class TestsForm(TestForm):
    """The tests of a role table."""

    interval: str
    clustered_by: str
    n_clusters: int
    effective_clusters: float
    left_out: list[str]
    warnings: list[str]
    why_left_out: dict[str, str] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval not in INTERVALS:
            raise ValueError(f"unknown interval {self.interval!r}")


class RoleTableForm(OfScores):
    """As a role table says it."""

    tests: TestsForm
    stopped: StoppedForm | None = None


class ReplicatedForm(LevelForm):
    """What was asked of several score sets."""

    over: str
    score: str
    names: list[str]
    independent: bool
    left_out: list[str]


class ReplicationForm(OfScores):
    """As both tables of replication say it."""

    replication: ReplicatedForm


class MarginForm(TestForm):
    """The tests of a comparison."""

    margin: float


class SetForm(msgspec.Struct):
    """Where a score set of a comparison came from."""

    model: dict[str, Any] = {}
    layers: int | None = None
    heads: int | None = None


class ShiftsForm(OfScores):
    """As a comparison says it."""

    options: MarginForm
    sets: dict[str, SetForm]
    examples: int
    clustered_by: str
    n_clusters: int
    warnings: list[str]
    dropped_examples: dict[str, int]
    dropped_roles: dict[str, list[str]]
    corpus: dict[str, Any] = {}


class PlannedForm(LevelForm):
    """What a plan was asked for."""

    power: float
    examples: int
    clustered_by: str
    n_clusters: int


class PlanForm(msgspec.Struct):
    """As a plan says it."""

    plan: PlannedForm
