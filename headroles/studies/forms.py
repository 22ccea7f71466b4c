"""What ``run.json`` must say of tables of results for them to be read back."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from headroles.record import Record, Stopped
from headroles.roles import SCORES
from headroles.storage import Count
from headroles.testing import INTERVALS, TESTS


class OfScores(msgspec.Struct):
    """What is said of every table that was made from scores."""

    score: str

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"unknown score {self.score!r}")


Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
"""A level of tests, or another share between 0 and 1."""


class LevelForm(msgspec.Struct):
    """How was tested."""

    alpha: Share
    correction: str
    family: str
    threshold: float


class TestForm(LevelForm):
    """How was tested, and by which test."""

    test: str

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise ValueError(f"unknown test {self.test!r}")


class TestsForm(TestForm):
    """The tests of a role table."""

    interval: str
    clustered_by: str
    n_clusters: Count
    effective_clusters: float
    left_out: list[str]
    warnings: list[str]
    why_left_out: dict[str, str] = {}
    offset_margin: float = 0
    offsets: dict[str, tuple[int, int]] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval not in INTERVALS:
            raise ValueError(f"unknown interval {self.interval!r}")


class RoleTableForm(OfScores):
    """As a role table says it."""

    tests: TestsForm
    stopped: Stopped | None = None


class ReplicatedForm(LevelForm):
    """What was asked of several score sets."""

    over: str
    score: str
    names: list[str]
    independent: bool
    left_out: list[str]
    lacking: dict[str, list[str]] = {}
    warnings: list[str] = []


class ReplicationForm(OfScores):
    """As both tables of replication say it."""

    replication: ReplicatedForm


class MarginForm(TestForm):
    """The tests of a comparison."""

    margin: float


class ShiftsForm(OfScores):
    """As a comparison says it."""

    options: MarginForm
    sets: Annotated[dict[str, Record], msgspec.Meta(min_length=2)]
    examples: Count
    clustered_by: str
    n_clusters: Count
    warnings: list[str]
    dropped_examples: dict[str, Count]
    dropped_roles: dict[str, list[str]]
    corpus: dict[str, Any] = {}


class PassForm(msgspec.Struct):
    """What passes over sequences of one length take."""

    tokens: int
    multiplications: float
    time: float


class TaskChangeForm(msgspec.Struct):
    """What a changed model loses on a task."""

    file: str
    examples: int
    metrics: list[str]
    before: dict[str, float]
    after: dict[str, float]
    loss_change: float
    ci_low: float
    ci_high: float
    p_value: float


class WholeForm(msgspec.Struct):
    """What is said of a model with queries and keys of low rank as a whole."""

    tokens: int
    parameters_before: int
    parameters_after: int
    passes: list[PassForm]
    task: TaskChangeForm | None = None


class SampleForm(msgspec.Struct):
    """The text that a model was fitted to."""

    bundled: bool
    examples: int
    examples_held_out: int
    files: list[str]


class FactorForm(msgspec.Struct):
    """How queries and keys were factorised."""

    method: str
    weighting: str


class CollaborationForm(msgspec.Struct):
    """As a table of queries and keys of low rank says it."""

    collaboration: WholeForm
    corpus: SampleForm
    options: FactorForm


class CommonForm(msgspec.Struct):
    """What heads have in common, beside the table of pairs."""

    layers: list[dict[str, Any]]
    roles: list[dict[str, Any]] | None
    chance: float


class AlphaForm(msgspec.Struct):
    """The level of tests."""

    alpha: Share


class RedundancyForm(msgspec.Struct):
    """As a report of what heads have in common says it."""

    redundancy: CommonForm
    options: AlphaForm


class PlannedForm(LevelForm):
    """What a plan was asked for."""

    power: float
    examples: Count
    clustered_by: str
    n_clusters: Count


class PlanForm(msgspec.Struct):
    """As a plan says it."""

    plan: PlannedForm


class UnitForm(msgspec.Struct):
    """At which level was estimated."""

    alpha: Share


class BestForm(OfScores):
    """As a table of best heads says it."""

    best: UnitForm


class QuantitiesForm(OfScores):
    """As a table of quantities says it."""

    described: UnitForm


class TokenGroupForm(UnitForm):
    """What token groups are of."""

    clustered_by: str
    n_clusters: Count


class TokensForm(msgspec.Struct):
    """As a table of token groups says it."""

    token_groups: TokenGroupForm
    examples: Count


class TaskFileForm(msgspec.Struct):
    """Which file of examples it was."""

    file: str
    sha256: str
    examples: Count


class TaskForm(msgspec.Struct):
    """A task, and how many of its examples were cut."""

    objective: str
    metrics: list[str]
    examples: Count
    cut: Count


class RemovalForm(msgspec.Struct):
    """What every study of removed heads says."""

    corpus: TaskFileForm
    task: TaskForm
    layers: Count
    heads: Count


class RemovalTestsForm(msgspec.Struct):
    """How a study of removed heads tested."""

    alpha: Share
    correction: str
    warnings: list[str]


def _check_measured(measured: dict[str, float], metrics: list[str]) -> None:
    if lacking := {"loss", *metrics}.difference(measured):
        raise ValueError(f"the whole model has no {', '.join(sorted(lacking))}")


class AblatedForm(RemovalTestsForm):
    """How heads were ablated."""

    ablation: str
    margin: float
    measured: dict[str, float]


class AblationsForm(RemovalForm):
    """As ablations say it."""

    ablated: AblatedForm

    def __post_init__(self) -> None:
        _check_measured(self.ablated.measured, self.task.metrics)


class ComparedRolesForm(RemovalTestsForm):
    """How the importance of roles was compared."""

    estimator: str


class RoleImportanceForm(RemovalForm):
    """As a table of the importance of roles says it."""

    compared: ComparedRolesForm


class CurvesOfForm(RemovalTestsForm):
    """How curves were found."""

    orders: list[str]
    shares: list[float]
    draws: Count
    against: str
    whole: dict[str, float]
    points: list[dict[str, Any]]
    task: TaskFileForm | None


class CurvesForm(RemovalForm):
    """As pruning curves say it."""

    curves: CurvesOfForm

    def __post_init__(self) -> None:
        _check_measured(self.curves.whole, self.task.metrics)


class MeasuredTaskForm(TaskForm):
    """A task, and what the whole model reaches on it."""

    measured: dict[str, float]

    def __post_init__(self) -> None:
        _check_measured(self.measured, self.metrics)


class ReliabilityForm(msgspec.Struct):
    """How far the order of one estimator can be relied on."""

    split_half: float | None
    full: float | None
    examples_needed: float | None


class AskedReliabilityForm(msgspec.Struct):
    """The reliability that was asked for."""

    reliability: float


class ImportanceForm(RemovalForm):
    """As a table of importance says it."""

    task: MeasuredTaskForm
    options: AskedReliabilityForm
    reliability: dict[str, ReliabilityForm]


class TaskOfDropsForm(TaskFileForm):
    """One of several tasks."""

    name: str
    whole: dict[str, float]


class DropsForm(RemovalTestsForm):
    """How tasks were compared."""

    tasks: list[TaskOfDropsForm]


class TaskDropsForm(msgspec.Struct):
    """As a table of what tasks lose says it."""

    by_task: DropsForm


class HeadForm(msgspec.Struct):
    """What examples are of."""

    layer: int
    head: int
    role: str
    n: int
    which: str
    example: str | None = None
    no_weights: str = ""


class ExamplesForm(OfScores):
    """As examples say it."""

    examples_of: HeadForm


class ClaimsAsked(msgspec.Struct):
    """How claims were tested."""

    model: str
    alpha: float
    correction: str
    warnings: list[str] = []


class ClaimsForm(msgspec.Struct):
    """As a table of claims says it."""

    claims: ClaimsAsked
