"""What can be asked of each study: the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.options import Option, Options, fields_of, seed_option, split_names
from headroles.passes import PassOptions
from headroles.presets import PresetOptions
from headroles.roles import SCORES
from headroles.roles.frequencies import FrequencyOptions
from headroles.scoring import PairingOptions, ScoreOptions
from headroles.testing import (
    BETTING,
    BY_T,
    FlippedOptions,
    LevelOptions,
    ResamplingOptions,
    T,
    TestOptions,
    UnitOptions,
    check_max_t,
)

PAIRED_TESTS = ("t", "sign_flip", "betting")
CORPORA, CHECKPOINTS, SEEDS = OVER = ("corpora", "checkpoints", "seeds")
POPULATIONS = CORPUS, _ = ("corpus", "text")
ON_MISMATCH = ON_ERROR, _ = ("error", "intersect")
LARGEST, MEDIAN, SMALLEST = RANKS = ("largest", "median", "smallest")


def _paths(given: Any) -> tuple[Path, ...]:
    if isinstance(given, PathLike):
        return (Path(given),)
    return tuple(map(Path, split_names(given) if isinstance(given, str) else given))


def usual(name: str) -> str:
    """The thresholds or margins of all scores, for people."""
    return ", ".join(f"{getattr(score, name):g} ({score.name})" for score in SCORES.values())


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions(Options):
    """What means are compared with."""

    title: ClassVar[str] = "Tests"

    threshold: Annotated[
        float | None,
        Option(
            f"Mean score to exceed; left out: {usual('threshold')}.",
            more="3 is the published one, three times as much attention as uniform. Contrasts are "
            "compared with 0 whatever it is.",
            words="the threshold",
        ),
    ] = None
    offset_margin: Annotated[
        float,
        Option(
            "Hits that arcs need beyond the best fixed offset, as a share.",
            more="For scores of first choices between words (hit), unless a threshold is given; "
            "0.1 is the published one (Voita et al. 2019).",
            words="the margin beyond offsets",
            least=0,
        ),
    ] = 0.1


@dataclass(frozen=True, kw_only=True)
class AssignOptions(PresetOptions, TestOptions, ThresholdOptions):
    """How roles are assigned."""

    __test__ = False
    title: ClassVar[str] = "Tests"

    def check(self) -> None:
        """Refuse what the published preset decides itself: all but threshold and alpha."""
        super().check()
        given = self.part(TestOptions).record()
        for one in fields_of(TestOptions) if self.is_published else ():
            if one.name != "alpha" and given[one.name] != one.default:
                raise UsageError(
                    f"{one.words} of the published preset is its own; leave {one.name} "
                    f"({one.flag}) out, or the preset"
                )

    @property
    def tests(self) -> TestOptions:
        """The options that the tests follow."""
        if not self.is_published:
            return self.part(TestOptions)
        return TestOptions(alpha=self.alpha, correction="none", clusters="none")


@dataclass(frozen=True, kw_only=True)
class UntilOptions(Options):
    """When scoring stops."""

    title: ClassVar[str] = "Tests"

    until: Annotated[
        float | None,
        Option(
            "Share of all heads and roles to be decided: score in random order, and stop there.",
            more="Answers are then by betting, which may be looked at as often as one likes.",
            words="the share to be decided",
            above=0,
            below=1,
        ),
    ] = None
    until_of: Annotated[
        str,
        Option(
            "What is to be decided: the means of this corpus, or of all text like it.",
            more="Of this corpus examples are drawn, of text whole documents if there are several.",
            words="what is to be decided",
            choices=POPULATIONS,
        ),
    ] = CORPUS
    shuffle_seed: Annotated[
        int,
        seed_option("Seed of the random order.", "the seed of the order"),
    ] = 0

    def check(self) -> None:
        """Refuse to be told how to stop where nothing says when."""
        super().check()
        for one in fields_of(UntilOptions):
            if self.until is None and getattr(self, one.name) != one.default:
                raise UsageError(
                    f"{one.name} ({one.flag}) says how to stop early; pass until (--until) too"
                )


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(AssignOptions, ScoreOptions, UntilOptions):
    """How heads are scored, and how roles are assigned."""

    __test__ = False

    def check(self) -> None:
        """Only betting may be looked at as often as one likes, and no interval may."""
        super().check()
        if self.until is not None and (self.is_published or self.test not in (T, BETTING)):
            raise UsageError(
                "only tests by betting hold where scoring stops when enough is decided; leave out "
                "test (--test) and preset, or until (--until)"
            )
        if self.until is not None and self.interval != BY_T:
            raise UsageError(
                f"intervals {self.interval} take a number of examples that does not depend on the "
                "scores; leave out interval (--interval), or until (--until)"
            )


@dataclass(frozen=True, kw_only=True)
class PlanOptions(FlippedOptions, LevelOptions, ThresholdOptions):
    """What is to be decided, and how surely."""

    title: ClassVar[str] = "Tests"

    power: Annotated[
        float,
        Option(
            "Chance to decide a head that is like in the pilot.",
            words="the power",
            above=0,
            below=1,
        ),
    ] = 0.8


@dataclass(frozen=True, kw_only=True)
class ReplicateOptions(LevelOptions, ThresholdOptions):
    """What is to be shown of several score sets."""

    title: ClassVar[str] = "Tests"

    over: Annotated[
        str,
        Option(
            "What the score sets are: one model over several corpora, checkpoints of one model, or "
            "models of several seeds.",
            more="Heads of models of different seeds are no counterparts: they are counted per "
            "layer.",
            words="what is replicated over",
            choices=OVER,
        ),
    ] = CORPORA


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ResamplingOptions, FlippedOptions, LevelOptions, ThresholdOptions):
    """How score sets are compared."""

    title: ClassVar[str] = "Comparison"

    names: Annotated[
        Sequence[str] | None,
        Option(
            "What to call AFTER and those that follow, separated by commas.",
            more='If left out: "after", or "1", "2", ... if there are several.',
            convert=split_names,
            recorded=False,
        ),
    ] = None
    test: Annotated[
        str,
        Option(
            "Test of the differences, and of the roles.",
            more="t: paired t-test, cluster-robust with clusters. sign_flip: by flipping the signs "
            "of all differences of a cluster, safer if clusters are few. betting: from the bounds "
            "of scores alone, whatever the distribution of differences.",
            words="the test",
            choices=PAIRED_TESTS,
        ),
    ] = "t"
    margin: Annotated[
        float | None,
        Option(
            f"Difference that would matter; left out: {usual('margin')}.",
            more="The smallest difference of mean scores that would matter, to be chosen before "
            "the data are seen. The default is a quarter of the way from uniform attention to the "
            "usual threshold.",
            words="the margin",
            above=0,
        ),
    ] = None
    on_mismatch: Annotated[
        str,
        Option(
            "What becomes of examples or roles that not all have; intersect leaves them out.",
            choices=ON_MISMATCH,
        ),
    ] = "error"

    def check(self) -> None:
        """Refuse a correction that does not come from the test."""
        super().check()
        check_max_t(self.test, self.correction)

    @property
    def tests(self) -> TestOptions:
        """The options of the tests of differences, and of roles."""
        return self.part(TestOptions)


@dataclass(frozen=True, kw_only=True)
class TokenOptions(UnitOptions, FrequencyOptions, PairingOptions, PassOptions):
    """What is read of tokens, and how."""

    title: ClassVar[str] = "Roles"


@dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """What may be imported to read results again."""

    title: ClassVar[str] = "Roles"

    roles: Annotated[
        Sequence[str] | None,
        Option(
            "Roles of one's own that may be imported again, as MODULE:FUNCTION.",
            more="Reading results imports no code unless it is named here.",
            convert=split_names,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ImportOptions):
    """Which sentences and weights a page may show."""

    model: Annotated[
        str | None,
        Option(
            "Model that was scored, for weights beside sentences; if left out, the folder that "
            "was scored, if it is still there.",
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(ImportOptions):
    """Which examples."""

    title: ClassVar[str] = "Output"

    n: Annotated[int, Option("Number of examples.", least=1)] = 5
    which: Annotated[
        str,
        Option(
            "Typical ones, with scores nearest the median, or those with the largest or smallest.",
            choices=RANKS,
        ),
    ] = MEDIAN
    example: Annotated[
        str | None, Option("The example with this id, whatever its score, and no other.")
    ] = None
    corpus: Annotated[
        Sequence[Path] | None,
        Option(
            "Treebank that was scored, files or folders, if it is not where it was then.",
            convert=_paths,
            recorded=False,
        ),
    ] = None

    def check(self) -> None:
        """One example is no choice among several."""
        super().check()
        if self.example is not None and self.which != MEDIAN:
            raise UsageError("example (--example) names the one to show; leave which (--which) out")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, ModelOptions):
    """Which examples, and the model whose attention in them is read."""

    title: ClassVar[str] = "Model"

    model: Annotated[
        Any,
        Option(
            "Model that was scored, if it is not where it was then.",
            more="A folder, a hub id or, from Python, a loaded model in evaluation mode.",
            convert=lambda given: given,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(AttentionOptions):
    """Which examples, and whether the weights of the head are shown in them."""

    title: ClassVar[str] = "Output"

    weights: Annotated[
        bool, Option("Show the weights that the head gives, for which the model is read.")
    ] = True
