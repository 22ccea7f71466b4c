"""Options of importance and of ablations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headroles.errors import UsageError
from headroles.models.options import ABLATIONS, ZERO
from headroles.options import Option, Options, seed_option, split_names
from headroles.storage import Parts
from headroles.tasks.options import TaskOptions
from headroles.testing.catalogue import BOOTSTRAP_T, BY_T, FCR, INTERVALS, SIGN_FLIP, WILCOXON, T
from headroles.testing.options import (
    CorrectionOptions,
    FlippedOptions,
    ResamplingOptions,
    TestOptions,
    check_max_t,
    check_resamples,
)

ABSOLUTE, SIGNED, TOKEN, TAYLOR = ESTIMATORS = ("absolute", "signed", "token", "taylor")
NONE, L2 = NORMALISATIONS = ("none", "l2")


@dataclass(frozen=True, kw_only=True)
class RankingOptions(Options):
    """Options of the order of importance."""

    title: ClassVar[str] = "Heads"

    normalisation: Annotated[
        str,
        Option(
            "Whether importances are divided by their Euclidean length in each layer.",
            more="Michel et al. (2019) describe l2; their released code does not do it by default.",
            words="the normalisation",
            choices=NORMALISATIONS,
        ),
    ] = NONE


def _as_parts(given: Any) -> Parts:
    if isinstance(given, Parts):
        return given
    if not isinstance(given, str | PathLike):
        raise UsageError(f"parts is {given!r}; it must be the name of a folder")
    return Parts(Path(given))


@dataclass(frozen=True, kw_only=True)
class RunOptions(TaskOptions):
    """Options of a long study of a task, which resumes where it was interrupted."""

    parts: Annotated[
        Parts | None,
        Option(
            "Folder for finished batches, with which the same study resumes after an interruption.",
            has_flag=False,
            recorded=False,
            convert=_as_parts,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(RankingOptions, RunOptions):
    """Options of the estimation of importance."""

    reliability: Annotated[
        float,
        Option(
            "Reliability of the order for which to report the needed examples.", above=0, below=1
        ),
    ] = 0.9


@dataclass(frozen=True, kw_only=True)
class RoleOptions(Options):
    """Options of the roles to use."""

    title: ClassVar[str] = "Heads"

    roles_from: Annotated[
        str | None,
        Option(
            "Folder that classify or assign wrote, of the model before it was fine-tuned or after.",
            words="the folder of roles",
            convert=str,
        ),
    ] = None


CHANGE_TESTS = (T, WILCOXON, SIGN_FLIP, BOOTSTRAP_T)
"""Tests of values without bounds, such as changes of a loss."""
CHANGE_INTERVALS = tuple(name for name in INTERVALS if name != FCR)
"""Intervals that need no answers of tests."""
SETS = ("single", "others", "layers", "thirds", "roles")


@dataclass(frozen=True, kw_only=True)
class ChangeTestOptions(ResamplingOptions, FlippedOptions):
    """Options of tests of changes of the loss; examples of a task have no documents."""

    test: Annotated[
        str,
        Option(
            "Test of each change of the loss.",
            more="t: paired t-test. sign_flip: by flipping the signs of changes, which takes them "
            "to be symmetric instead of normal. bootstrap_t: by resampling examples. wilcoxon: "
            "signed ranks, a test of the pseudo-median of changes, not of their mean.",
            words="the test",
            choices=CHANGE_TESTS,
        ),
    ] = T
    interval: Annotated[
        str,
        Option(
            "Confidence interval of each change.",
            more="simultaneous holds for all removals at once; the others hold for each by itself.",
            words="the interval",
            choices=CHANGE_INTERVALS,
        ),
    ] = BY_T

    @property
    def tests(self) -> TestOptions:
        """The options that the tests follow."""
        return self.as_group(TestOptions, clusters="none")

    def check(self) -> None:
        """Reject a correction and intervals that do not fit the test and its resamples."""
        super().check()
        check_max_t(self.test, self.correction)
        check_resamples(self.interval, self.alpha, self.resamples)


@dataclass(frozen=True, kw_only=True)
class AblateOptions(RoleOptions, ChangeTestOptions, RunOptions):
    """Options of removals and their tests."""

    sets: Annotated[
        Sequence[str],
        Option(
            "Sets of heads to remove: " + ", ".join(SETS) + "; separated by commas.",
            more="single: each head; others: all heads of a layer but one; layers: whole layers; "
            "thirds: the lower, middle and upper third of the layers; roles: all heads with a "
            "role (needs roles_from).",
            convert=split_names,
        ),
    ] = "single"
    ablation: Annotated[
        str,
        Option(
            "Replacement of the output of a head.",
            more="zero: nothing. mean: its mean output. uniform: the mean of its values, as in the "
            "released BERT code of Budhraja et al. (2020).",
            words="the ablation",
            choices=ABLATIONS,
        ),
    ] = ZERO
    margin: Annotated[
        float,
        Option(
            "Change of the loss that would matter, in nats.",
            more="Choose it before seeing the data; a head whose removal is shown to change the "
            "loss by less can be removed.",
            words="the margin",
            above=0,
        ),
    ] = 0.01

    def check(self) -> None:
        """Reject unknown sets, and roles without the set that uses them."""
        super().check()
        for name in self.sets:
            if name not in SETS:
                raise UsageError(f"the set is {name!r}; it must be one of {', '.join(SETS)}")
        if "roles" in self.sets and self.roles_from is None:
            raise UsageError(
                "sets of heads by role need roles; pass their folder with roles_from (--roles-from)"
            )
        if self.roles_from is not None and "roles" not in self.sets:
            raise UsageError(
                "roles_from (--roles-from) does nothing without the set roles; add it to sets "
                "(--sets single,roles), or leave the option out"
            )


@dataclass(frozen=True, kw_only=True)
class RoleImportanceOptions(RoleOptions, CorrectionOptions, RunOptions):
    """Options of comparing heads with a role to other heads."""

    roles: Annotated[
        Sequence[str] | None,
        Option(
            "Only these roles, separated by commas; * stands for anything, as in 'syntactic*'.",
            more="Every role takes a pass for each draw, and counts in the correction.",
            convert=split_names,
        ),
    ] = None
    estimator: Annotated[
        str, Option("Estimator of importance that is compared.", choices=ESTIMATORS)
    ] = ABSOLUTE
    permutations: Annotated[
        int, Option("Permutations of heads within layers, for each role.", least=99)
    ] = 9999
    draws: Annotated[
        int,
        Option(
            "Most random sets of as many heads of each layer that a role is ranked among.",
            more="Draws end once both tails have ten. One role alone of R can be "
            "shown at alpha after correction with 2 R / alpha draws or more.",
            words="the number of draws",
            least=1,
        ),
    ] = 999
    seed: Annotated[int, seed_option("Seed of permutations and draws.")] = 0


@dataclass(frozen=True, kw_only=True)
class TaskDropOptions(CorrectionOptions):
    """Options of tests of losses in several tasks."""
