"""What is scored, and how: the options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from headroles.corpus import PAIRINGS
from headroles.errors import UsageError
from headroles.models.measures import MEASURES, WEIGHTS
from headroles.options import Option, Options
from headroles.passes import PassOptions
from headroles.roles import BIAS, SCORES, RoleOptions

PRECISIONS = _, HALF = ("float32", "float16")


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


@dataclass(frozen=True)
class CorpusPart:
    """One of several parts of a corpus that are scored on their own; numbers count from 1."""

    number: int
    of: int

    @classmethod
    def accept(cls, given: Any) -> CorpusPart:
        """From a text such as 2/8. Raises UsageError for any other."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(given).strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(
                f"the part is {str(given)!r}; it must be like 2/8, the second of eight"
            )
        return cls(int(found[1]), int(found[2]))

    def has(self, window: int) -> bool:
        """Whether a window, by its number from 0, is of this part: they are dealt out in turn."""
        return window % self.of == self.number - 1

    def refuse_empty(self, windows: Sequence[int]) -> None:
        """Raise UsageError where no window is of this part."""
        if not windows:
            raise UsageError(
                f"part {self.number} of {self.of} is empty: the corpus is too small for so many "
                "parts; divide it into fewer"
            )


@dataclass(frozen=True, kw_only=True)
class PartOptions(Options):
    """Which part of the corpus is scored."""

    title: ClassVar[str] = "Corpus"

    corpus_part: Annotated[
        CorpusPart | None,
        Option(
            "Score a part of the corpus, such as 2/8; headroles merge joins all of them.",
            convert=CorpusPart.accept,
            flag="--part",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ScoringOptions, PassOptions):
    """What is scored, and how the model is loaded and run."""

    title: ClassVar[str] = "Model"

    precision: Annotated[
        str,
        Option(
            "What scores are rounded to; float16 takes half the room.",
            more="float16 rounds each score, before it is tested and kept, by at most one part in "
            "2,048 (below 0.00006 by at most 0.00000003), and what it lies between in the same "
            "way. Comparisons need scores of one precision.",
            words="the precision of scores",
            choices=PRECISIONS,
        ),
    ] = PRECISIONS[0]
