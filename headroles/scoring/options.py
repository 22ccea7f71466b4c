"""What is scored, and how: the options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from headroles.corpus import PAIRINGS
from headroles.errors import UsageError
from headroles.models.measures import MEASURES, WEIGHTS
from headroles.models.options import ModelOptions
from headroles.options import Option, Options
from headroles.roles import BIAS, SCORES, RoleOptions

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of sentences done and the number of all sentences."""


@dataclass(frozen=True, kw_only=True)
class PairingOptions(Options):
    """What an example is."""

    title: ClassVar[str] = "Roles"

    pairing: Annotated[
        str,
        Option(
            "Whether two adjacent sentences make an example.",
            words="the pairing",
            choices=PAIRINGS,
        ),
    ] = PAIRINGS[0]


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(PairingOptions, RoleOptions):
    """What is scored."""

    title: ClassVar[str] = "Roles"

    score: Annotated[
        str,
        Option(
            "; ".join(f"{score.name}: {score.words}" for score in SCORES.values()) + ".",
            more="bias is the published one; excess is 0 for uniform attention and 1 where all of "
            "it is in the sieve, for every role and length; contrasts are differences of two such "
            "shares, and ends of intervals may lie beyond 1. hit is the share of queries whose "
            "largest weight is in the sieve, between words for roles that speak of words.",
            words="the score",
            choices=tuple(SCORES),
        ),
    ] = BIAS.name
    measure: Annotated[
        str,
        Option(
            "weights: where a head looks; norms: what it takes from there.",
            more="Norms are weights times the lengths of what the head hands on from each token, "
            "||f(x)||, each row divided by its sum (Kobayashi et al. 2020).",
            words="the measure",
            choices=MEASURES,
        ),
    ] = WEIGHTS

    def check(self) -> None:
        """Published numbers are bias scores."""
        super().check()
        if self.is_published and self.score != BIAS.name:
            raise UsageError("published numbers are bias scores; pass score='bias' (--score bias)")
        if self.is_published and self.measure != WEIGHTS:
            raise UsageError("published numbers are of weights; leave measure (--measure) out")


@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """How the model is loaded and run."""

    title: ClassVar[str] = "Model"

    batch_tokens: Annotated[
        int | None,
        Option(
            "Most tokens of a batch, padding included.",
            more="None fits it to the device.",
            least=1,
        ),
    ] = None
    on_progress: Annotated[
        OnProgress | None,
        Option(
            "Called with the number of sentences done and of all.",
            more="None shows a bar in notebooks.",
            has_flag=False,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ScoringOptions, RunOptions):
    """What is scored, and how the model is loaded and run."""

    title: ClassVar[str] = "Model"
