"""Options that choose the scores and how they are computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from headroles.corpus import PAIRINGS
from headroles.errors import UsageError
from headroles.models.options import DTYPES, FLOAT32, MEASURES, WEIGHTS
from headroles.options import Option, Options
from headroles.passes.options import PassOptions
from headroles.roles import BIAS, SCORES, RoleOptions

PRECISIONS = _, HALF = ("float32", "float16")
AUTO = "auto"
"""The dtype that a run chooses when it has scored its first examples in both precisions."""


@dataclass(frozen=True, kw_only=True)
class PairingOptions(Options):
    """Option that chooses between single sentences and pairs as examples."""

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
    """Options that choose roles, score and measure."""

    score: Annotated[
        str,
        Option(
            "; ".join(f"{score.name}: {score.words}" for score in SCORES.values()) + ".",
            more="bias is the published score. excess is 0 for uniform attention and 1 where all "
            "of it is in the sieve, for every role and length; its contrasts are differences of "
            "two shares, whose intervals may reach beyond 1. hit is the share of queries whose "
            "largest weight is in the sieve, read between words for roles of words.",
            words="the score",
            choices=tuple(SCORES),
        ),
    ] = BIAS.name
    measure: Annotated[
        str,
        Option(
            "weights: where a head looks; norms: what it takes from there.",
            more="Norms are weights times the length ||f(x)|| of the vector that the head takes "
            "from each token, each row divided by its sum (Kobayashi et al. 2020).",
            words="the measure",
            choices=MEASURES,
        ),
    ] = WEIGHTS

    def check(self) -> None:
        """Reject scores and measures that were not published. Raises UsageError."""
        super().check()
        if self.is_published and self.score != BIAS.name:
            raise UsageError("published numbers are bias scores; pass score='bias' (--score bias)")
        if self.is_published and self.measure != WEIGHTS:
            raise UsageError("published numbers are of weights; omit measure (--measure)")


@dataclass(frozen=True)
class CorpusPart:
    """One of several parts of a corpus that are scored separately; numbers count from 1."""

    number: int
    of: int

    @classmethod
    def accept(cls, given: Any) -> CorpusPart:
        """Read a text such as 2/8. Raises UsageError for any other."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(given).strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(
                f"the part {str(given)!r} is not valid; write 2/8 for the second of eight"
            )
        return cls(int(found[1]), int(found[2]))

    def has(self, window: int) -> bool:
        """Tell whether the part has a window (from 0); windows are dealt out in turn."""
        return window % self.of == self.number - 1

    def refuse_empty(self, windows: Sequence[int]) -> None:
        """Raise UsageError if the part has no windows."""
        if not windows:
            raise UsageError(
                f"part {self.number} of {self.of} is empty because the corpus is too small; divide "
                "the corpus into fewer parts"
            )


@dataclass(frozen=True, kw_only=True)
class PartOptions(Options):
    """Option that chooses the part of the corpus to score."""

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
    """Options of scoring, and of loading and running the model."""

    title: ClassVar[str] = "Model"

    dtype: Annotated[
        str,
        Option(
            "Precision of the model; scores are float32 throughout. auto: bfloat16 if faster.",
            more="auto scores the first 64 examples in float32 and in bfloat16, where the device "
            "multiplies bfloat16 itself, and takes the faster one. After bfloat16, classify scores "
            "again in float32 what may change an answer, and assign names these answers.",
            words="the dtype",
            choices=(*DTYPES, AUTO),
            recorded=False,
        ),
    ] = FLOAT32
    precision: Annotated[
        str,
        Option(
            "Precision of stored scores; float16 takes half the space.",
            more="float16 rounds each score, and its bounds, before it is tested and stored, by at "
            "most one part in 2,048 (below 0.00006 by at most 0.00000003). Comparisons need scores "
            "of one precision.",
            words="the precision of scores",
            choices=PRECISIONS,
        ),
    ] = PRECISIONS[0]
