"""Options of importance and of ablations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from headroles.errors import UsageError
from headroles.options import CIRCUMSTANCE, NO_FLAG, Convert, Options, Seed, split_names
from headroles.storage import Parts
from headroles.tasks.options import TaskOptions
from headroles.testing.options import CorrectionOptions

ABSOLUTE, SIGNED, TOKEN, TAYLOR = ESTIMATORS = ("absolute", "signed", "token", "taylor")
NONE, L2 = NORMALISATIONS = ("none", "l2")


@dataclass(frozen=True, kw_only=True)
class RankingOptions(Options):
    """Options of the order of importance."""

    title: ClassVar[str] = "Heads"

    normalisation: Literal["none", "l2"] = "none"
    """Whether importances are divided by their Euclidean length in each layer.

    Michel et al. (2019) describe l2; their released code does not do it by default.
    """


def _as_parts(given: Any) -> Parts:
    if isinstance(given, Parts):
        return given
    if not isinstance(given, str | PathLike):
        raise UsageError(f"parts is {given!r}; it must be the name of a folder")
    return Parts(Path(given))


@dataclass(frozen=True, kw_only=True)
class RunOptions(TaskOptions):
    """Options of a long study of a task, which resumes where it was interrupted."""

    parts: Annotated[Parts | None, Convert(_as_parts), NO_FLAG, CIRCUMSTANCE] = None
    """Folder for finished batches, with which the same study resumes after an interruption."""


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(RankingOptions, RunOptions):
    """Options of the estimation of importance."""

    reliability: Annotated[float, Meta(gt=0, lt=1)] = 0.9
    """Reliability of the order for which to report the needed examples."""


@dataclass(frozen=True, kw_only=True)
class RoleOptions(Options):
    """Options of the roles to use."""

    title: ClassVar[str] = "Heads"

    roles_from: Annotated[str | None, Convert(str)] = None
    """Folder that classify or assign wrote, of the model before it was fine-tuned or after."""


SETS = ("single", "others", "layers", "thirds", "roles")


@dataclass(frozen=True, kw_only=True)
class AblateOptions(RoleOptions, CorrectionOptions, RunOptions):
    """Options of removals and their tests."""

    sets: Annotated[Sequence[str], Convert(split_names)] = "single"
    """Sets of heads to remove: single, others, layers, thirds, roles; separated by commas.

    single: each head; others: all heads of a layer but one; layers: whole layers; thirds: the
    lower, middle and upper third of the layers; roles: all heads with a role (needs roles_from).
    """
    ablation: Literal["zero", "mean", "uniform"] = "zero"
    """Replacement of the output of a head.

    zero: nothing. mean: its mean output. uniform: the mean of its values, as in the released BERT
    code of Budhraja et al. (2020).
    """
    margin: Annotated[float, Meta(gt=0)] = 0.01
    """Change of the loss that would matter, in nats.

    Choose it before seeing the data; a head whose removal is shown to change the loss by less can
    be removed.
    """

    def check(self) -> None:
        """Reject unknown sets, and roles without the set that uses them."""
        super().check()
        for name in self.sets:
            if name not in SETS:
                raise UsageError(f"the set is {name!r}; it must be one of {', '.join(SETS)}")
        if "roles" in self.sets and self.roles_from is None:
            raise UsageError(
                "sets of heads by role need roles; pass their folder with `roles_from`"
            )
        if self.roles_from is not None and "roles" not in self.sets:
            raise UsageError(
                "`roles_from` does nothing without the set roles; add it to `sets`"
                ", or leave the option out"
            )


@dataclass(frozen=True, kw_only=True)
class RoleImportanceOptions(RoleOptions, CorrectionOptions, RunOptions):
    """Options of comparing heads with a role to other heads."""

    roles: Annotated[Sequence[str] | None, Convert(split_names)] = None
    """Only these roles, separated by commas; * stands for anything, as in 'syntactic*'.

    Every role takes a pass for each draw, and counts in the correction.
    """
    estimator: Literal["absolute", "signed", "token", "taylor"] = "absolute"
    """Estimator of importance that is compared."""
    permutations: Annotated[int, Meta(ge=99)] = 9999
    """Permutations of heads within layers, for each role."""
    draws: Annotated[int, Meta(ge=1)] = 999
    """Most random sets of as many heads of each layer that a role is ranked among.

    Draws end once both tails have ten. One role alone of R can be shown at alpha after correction
    with 2 R / alpha draws or more.
    """
    seed: Seed = 0
    """Seed of permutations and draws."""


@dataclass(frozen=True, kw_only=True)
class TaskDropOptions(CorrectionOptions):
    """Options of tests of losses in several tasks."""
