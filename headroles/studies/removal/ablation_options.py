"""What can be asked of ablations, and of heads with a role in a task: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.models.ablations import ABLATIONS, ZERO
from headroles.options import Option, split_names
from headroles.studies.removal.options import (
    ABSOLUTE,
    ESTIMATORS,
    RoleOptions,
    RunOptions,
    check_no_sign_flips,
)
from headroles.testing import LevelOptions, TestOptions

SETS = ("single", "others", "layers", "thirds", "roles")


@dataclass(frozen=True, kw_only=True)
class AblateOptions(RoleOptions, TestOptions, RunOptions):
    """What is removed, and how its loss is tested."""

    __test__ = False
    title: ClassVar[str] = "Heads"

    sets: Annotated[
        Sequence[str],
        Option(
            "What is removed: " + ", ".join(SETS) + "; separated by commas.",
            more="single: each head; others: all heads of a layer but one; layers: whole layers; "
            "thirds: the lower, middle and upper third of the layers; roles: all heads with a "
            "role (needs roles_from).",
            convert=split_names,
        ),
    ] = "single"
    ablation: Annotated[
        str,
        Option(
            "What takes the place of a head.",
            more="zero: nothing. mean: its mean output. uniform: the mean of its values, which is "
            "what the released BERT code of Budhraja et al. (2020) does.",
            words="the ablation",
            choices=ABLATIONS,
        ),
    ] = ZERO
    margin: Annotated[
        float,
        Option(
            "Change of the loss that would matter, in nats.",
            more="To be chosen before the data are seen; a head whose removal is shown to change "
            "the loss by less can go.",
            words="the margin",
            above=0,
        ),
    ] = 0.01

    def check(self) -> None:
        """Sets that there are."""
        super().check()
        for name in self.sets:
            if name not in SETS:
                raise UsageError(f"the set is {name!r}; it must be one of {', '.join(SETS)}")
        if "roles" in self.sets and self.roles_from is None:
            raise UsageError(
                "sets of heads by role need roles; pass their folder with --roles-from"
            )


@dataclass(frozen=True, kw_only=True)
class RoleImportanceOptions(RoleOptions, LevelOptions, RunOptions):
    """How heads with a role are compared with others."""

    title: ClassVar[str] = "Heads"

    estimator: Annotated[
        str, Option("Estimator of importance that is compared.", choices=ESTIMATORS)
    ] = ABSOLUTE
    permutations: Annotated[
        int, Option("Permutations of heads within layers, for each role.", least=99)
    ] = 9999
    draws: Annotated[
        int, Option("Draws of as many other heads of the same layers, for each role.", least=1)
    ] = 20
    seed: Annotated[int, Option("Seed of permutations and draws.", words="the seed", least=0)] = 0

    def check(self) -> None:
        """Without roles there is nothing to compare."""
        super().check()
        check_no_sign_flips(self.correction)


@dataclass(frozen=True, kw_only=True)
class TaskDropOptions(LevelOptions):
    """How what is lost in several tasks is tested."""

    title: ClassVar[str] = "Tests"

    def check(self) -> None:
        """Nothing here is found by sign flips."""
        super().check()
        check_no_sign_flips(self.correction)
