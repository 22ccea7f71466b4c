"""Options of factorising queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.models.options import FACTOR_METHODS, SHARED, ModelOptions
from headroles.options import Option, seed_option
from headroles.passes.options import PassOptions
from headroles.tasks.options import TaskOptions

WEIGHTINGS = INPUTS, _ = ("inputs", "none")


@dataclass(frozen=True, kw_only=True)
class SampleOptions(PassOptions):
    """Options of the sample, and of its part held out."""

    title: ClassVar[str] = "Factorisation"

    sample_examples: Annotated[
        int, Option("Most examples of the sample.", words="the sample", least=2)
    ] = 400
    held_out: Annotated[
        float,
        Option(
            "Share of the sample held out, to measure on.",
            more="Whole documents where there are several.",
            words="the share held out",
            above=0,
            below=1,
        ),
    ] = 0.25
    seed: Annotated[int, seed_option("Seed of the starts, and of the examples held out.")] = 0


@dataclass(frozen=True, kw_only=True)
class CollaborateOptions(SampleOptions, TaskOptions):
    """Options of factorising queries and keys."""

    rank: Annotated[
        int | None,
        Option(
            "Dimensions of queries and keys that all heads of a layer have together.",
            more="The full rank of the model (heads times head size) changes nothing. A layer that "
            "lost heads has its full rank at most, and per head the dimensions of a whole layer.",
            words="the rank",
            least=1,
        ),
    ] = None
    error: Annotated[
        float | None,
        Option(
            "Instead of a rank: largest error of scores, as a share; layers get their least rank.",
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
            choices=FACTOR_METHODS,
        ),
    ] = SHARED
    weighting: Annotated[
        str,
        Option(
            "Errors to minimise: of scores of real inputs, or of the weights alone.",
            words="the weighting",
            choices=WEIGHTINGS,
        ),
    ] = INPUTS
    restarts: Annotated[
        int, Option("Starts of the shared factors; the best is kept.", words="restarts", least=1)
    ] = 1


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(ModelOptions):
    """Options of the tests of overlaps."""

    title: ClassVar[str] = "Factorisation"

    draws: Annotated[int, Option("Layers of random heads to compare each layer with.", least=1)] = (
        99
    )
    permutations: Annotated[
        int, Option("Shuffles of the heads of each layer, to test roles.", least=1)
    ] = 9999
    alpha: Annotated[float, Option("Level of the tests.", words="alpha", above=0, below=1)] = 0.05
    seed: Annotated[int, seed_option("Seed of draws and shuffles.")] = 0
