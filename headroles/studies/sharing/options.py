"""Options of the studies of sharing, which import neither torch nor the studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.options import Convert, Seed
from headroles.tasks.options import TaskOptions


@dataclass(frozen=True, kw_only=True)
class CollaborateOptions(TaskOptions):
    """Options of factorising queries and keys."""

    title: ClassVar[str] = "Factorisation"

    sample_examples: Annotated[int, Meta(ge=2)] = 400
    """Most examples of the sample."""
    held_out: Annotated[float, Meta(gt=0, lt=1)] = 0.25
    """Share of the sample held out, to measure on.

    Whole documents where there are several.
    """
    seed: Seed = 0
    """Seed of the starts, and of the examples held out."""
    rank: Annotated[int | None, Meta(ge=1)] = None
    """Dimensions of queries and keys that all heads of a layer have together.

    The full rank of the model (heads times head size) changes nothing. A layer that lost heads has
    its full rank at most, and per head the dimensions of a whole layer.
    """
    error: Annotated[float | None, Meta(gt=0, lt=1)] = None
    """Instead of a rank: largest error of scores, as a share; layers get their least rank.

    The root mean square error on the sample, of the root mean square of scores.
    """
    method: Literal["shared", "per-head"] = "shared"
    """shared: dimensions that all heads mix; per-head: fewer dimensions for each head."""
    weighting: Literal["inputs", "none"] = "inputs"
    """Errors to minimise: of scores of real inputs, or of the weights alone."""
    restarts: Annotated[int, Meta(ge=1)] = 1
    """Starts of the shared factors; the best is kept."""

    def check(self) -> None:
        """Reject neither a rank nor an error, and both."""
        super().check()
        if (self.rank is None) == (self.error is None):
            raise UsageError("give exactly one of `rank` and `error`")


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(ModelOptions):
    """Options of the tests of overlaps."""

    title: ClassVar[str] = "Tests"

    roles_from: Annotated[str | None, Convert(str)] = None
    """Folder that classify or assign wrote, to test the heads of each role."""
    draws: Annotated[int, Meta(ge=1)] = 99
    """Layers of random heads to compare each layer with."""
    permutations: Annotated[int, Meta(ge=1)] = 9999
    """Shuffles of the heads of each layer, to test roles."""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Level of the tests."""
    seed: Seed = 0
    """Seed of draws and shuffles."""
