"""Options of classification: how heads are scored, tested and assigned roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.errors import UsageError
from headroles.options import Option, Options, fields_of, seed_option
from headroles.presets import PresetOptions
from headroles.scoring.options import ScoreOptions
from headroles.studies.options import CORPUS, POPULATIONS, ThresholdOptions
from headroles.testing.catalogue import BETTING, BY_T, T
from headroles.testing.options import TestOptions


@dataclass(frozen=True, kw_only=True)
class AssignOptions(PresetOptions, TestOptions, ThresholdOptions):
    """Options of the assignment of roles."""

    __test__ = False

    def check(self) -> None:
        """Reject options that the published preset sets itself: all but threshold and alpha."""
        super().check()
        given = self.as_group(TestOptions).record()
        for one in fields_of(TestOptions) if self.is_published else ():
            if one.name != "alpha" and given[one.name] != one.default:
                raise UsageError(
                    f"{one.words} of the published preset is fixed; leave {one.name} "
                    f"({one.flag}) out, or the preset"
                )

    @property
    def tests(self) -> TestOptions:
        """The options that the tests follow."""
        if not self.is_published:
            return self.as_group(TestOptions)
        return TestOptions(alpha=self.alpha, correction="none", clusters="none")


@dataclass(frozen=True, kw_only=True)
class UntilOptions(Options):
    """Options of scoring that stops early."""

    title: ClassVar[str] = "Tests"

    until: Annotated[
        float | None,
        Option(
            "Score in random order, and stop when this share of heads and roles is decided.",
            more="Answers are then by betting, which stays valid however often one looks.",
            words="the share to decide",
            above=0,
            below=1,
        ),
    ] = None
    until_of: Annotated[
        str,
        Option(
            "Means to decide: those of this corpus, or of all text like it.",
            more="For text, whole documents are drawn if there are several; else examples are.",
            words="the text that answers are about",
            choices=POPULATIONS,
        ),
    ] = CORPUS
    shuffle_seed: Annotated[
        int,
        seed_option("Seed of the random order.", "the seed of the order"),
    ] = 0

    def check(self) -> None:
        """Reject stopping options given without `until`."""
        super().check()
        for one in fields_of(UntilOptions):
            if self.until is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"{one.name} ({one.flag}) says how to stop early; pass until (--until) too"
                )


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(AssignOptions, ScoreOptions, UntilOptions):
    """Options of scoring, testing and stopping."""

    __test__ = False

    def check(self) -> None:
        """Reject tests and intervals that early stopping does not allow."""
        super().check()
        if self.until is not None and (self.is_published or self.test not in (T, BETTING)):
            raise UsageError(
                "only tests by betting are valid if scoring stops when enough is decided; leave "
                "out test (--test) and preset, or until (--until)"
            )
        if self.until is not None and self.interval != BY_T:
            raise UsageError(
                f"intervals {self.interval} take a number of examples that does not depend on the "
                "scores; leave out interval (--interval), or until (--until)"
            )
