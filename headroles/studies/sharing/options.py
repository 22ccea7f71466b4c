"""How queries and keys are factorised: the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.models.options import ModelOptions
from headroles.options import Option, seed_option
from headroles.passes.options import PassOptions
from headroles.tasks.options import TaskOptions

METHODS = SHARED, PER_HEAD = ("shared", "per-head")
WEIGHTINGS = INPUTS, _ = ("inputs", "none")


@dataclass(frozen=True, kw_only=True)
class SampleOptions(PassOptions):
    """Options of the part of the text that is read, and for what."""

    title: ClassVar[str] = "Factorisation"

    sample_examples: Annotated[
        int, Option("Most examples of the sample that are read.", words="the sample", least=2)
    ] = 400
    held_out: Annotated[
        float,
        Option(
            "Share of the sample kept apart, to measure on.",
            more="Whole documents where there are several.",
            words="the share held out",
            above=0,
            below=1,
        ),
    ] = 0.25
    seed: Annotated[int, seed_option("Of the starts, and of what is held out.")] = 0


@dataclass(frozen=True, kw_only=True)
class CollaborateOptions(SampleOptions, TaskOptions):
    """Options of factorising queries and keys."""

    rank: Annotated[
        int | None,
        Option(
            "Dimensions of queries and keys that all heads of a layer have together.",
            more="As many as the model has (heads times head size) change nothing. A layer that "
            "lost heads has no more than are left, and per head as many as a whole layer has.",
            words="the rank",
            least=1,
        ),
    ] = None
    error: Annotated[
        float | None,
        Option(
            "In the place of a rank: largest error of scores, as a share; a rank for each layer.",
            more="The root mean square error on the sample, of the root mean square of scores.",
            words="the error",
            above=0,
            below=1,
        ),
    ] = None
    method: Annotated[
        str,
        Option(
            "shared: dimensions that all heads mix; per-head: fewer dimensions for each head.",
            words="the method",
            choices=METHODS,
        ),
    ] = SHARED
    weighting: Annotated[
        str,
        Option(
            "What counts: the scores of real inputs, or the weights alone.",
            words="the weighting",
            choices=WEIGHTINGS,
        ),
    ] = INPUTS
    restarts: Annotated[
        int, Option("Starts of the shared factors; the best is kept.", words="restarts", least=1)
    ] = 1


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(ModelOptions):
    """Options of the tests of what heads share."""

    title: ClassVar[str] = "Factorisation"

    draws: Annotated[
        int, Option("Layers of random heads that a layer is compared with.", least=1)
    ] = 99
    permutations: Annotated[
        int, Option("Shuffles of the heads of each layer, to test roles.", least=1)
    ] = 9999
    alpha: Annotated[float, Option("Level of the tests.", words="alpha", above=0, below=1)] = 0.05
    seed: Annotated[int, seed_option("Of all that is random.")] = 0
