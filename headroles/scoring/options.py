"""Options that choose the scores and how they are computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from headroles.corpus import BITEXT
from headroles.errors import UsageError
from headroles.models.options import ENCODER, WEIGHTS, TargetOptions
from headroles.options import Convert, Flag, Options, split_names
from headroles.passes.options import PassOptions
from headroles.record import RecordedCorpus
from headroles.roles import BIAS, Role, RoleOptions
from headroles.storage import plain

CONTROLS = TREES, PERMUTED_WORDS, PERMUTED_WEIGHTS = ("trees", "words", "weights")
NO_CONTROLS = "none"
HALF = "float16"


def controls_of(chosen: str | Sequence[str], choices: Sequence[str] = CONTROLS) -> tuple[str, ...]:
    """Return names of controls. Raises UsageError for another name, or one not ``choices`` here."""
    control_names = split_names(chosen)
    if control_names == (NO_CONTROLS,):
        return ()
    for name in control_names:
        if name not in CONTROLS:
            raise UsageError(
                f"there is no control {name!r}; give some of {', '.join(choices)}, or none"
            )
        if name not in choices:
            raise UsageError(
                f"the control {name!r} takes a pass of its own, which only classify makes; "
                f"give {', '.join(choices)}, or none"
            )
    return tuple(name for name in CONTROLS if name in control_names)


@dataclass(frozen=True, kw_only=True)
class PairingOptions(Options):
    """Option that chooses between single sentences and pairs as examples."""

    title: ClassVar[str] = "Roles"

    pairing: Literal["adjacent", "none"] = "adjacent"
    """Whether two adjacent sentences make an example."""


def is_read_as_bitext(corpus: RecordedCorpus, attention: str, pairing: str) -> bool:
    """Tell whether examples are sources and targets.

    Raises UsageError unless there is a bitext where the decoder of an encoder-decoder is read, and
    nowhere else; and for its sentences one by one.
    """
    is_bitext = corpus.format == BITEXT
    if (attention != ENCODER) != is_bitext:
        raise UsageError(
            "a bitext has sources and targets, which cross-attention and decoders read: score it "
            "with `attention='cross'`, or 'decoder'"
            if is_bitext
            else f"{attention} attention needs sources and targets: give a bitext"
        )
    if is_bitext and pairing == "none":
        raise UsageError("a bitext is of pairs; omit `pairing`")
    return is_bitext


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(PairingOptions, RoleOptions):
    """Options that choose roles, score and measure."""

    score: Literal["bias", "excess", "hit"] = "bias"
    """bias: times uniform attention; excess: share beyond uniform; hit: share of first choices.

    bias is the published score. excess is 0 for uniform attention and 1 where all of it is in the
    sieve, for every role and length; its contrasts are differences of two shares, whose intervals
    may reach beyond 1. hit is the share of queries whose largest weight is in the sieve, read
    between words for roles of words.
    """
    measure: Literal["weights", "norms"] = "weights"
    """weights: where a head looks; norms: what it takes from there.

    Norms are weights times the length ||f(x)|| of the vector that the head takes from each token,
    each row divided by its sum (Kobayashi et al. 2020).
    """
    controls: Annotated[str | Sequence[str], Convert(partial(controls_of, choices=[TREES]))] = TREES
    """trees: score arcs of other sentences of as many words too, as a control; or none."""

    def check(self) -> None:
        """Reject scores and measures that were not published. Raises UsageError."""
        super().check()
        if self.is_published and self.score != BIAS.name:
            raise UsageError("published numbers are bias scores; pass `score='bias'`")
        if self.is_published and self.measure != WEIGHTS:
            raise UsageError("published numbers are of weights; omit `measure`")

    @property
    def scored_controls(self) -> Sequence[str]:
        """The controls that are scored: published numbers have none."""
        return () if self.is_published else self.controls

    def record(self) -> dict[str, Any]:
        """Return the options as a record has them, with the controls that are scored."""
        return {**super().record(), "controls": plain(tuple(self.scored_controls))}

    def check_roles(self, roles: Sequence[Role]) -> None:
        """Raise UsageError for roles that what follows their scoring cannot use."""


@dataclass(frozen=True)
class CorpusPart:
    """One of several parts of a corpus that are scored separately; numbers count from 1."""

    number: int
    of: int

    @classmethod
    def accept(cls, text: str | CorpusPart) -> CorpusPart:
        """Read a text such as 2/8. Raises UsageError for any other."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text).strip())
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(
                f"the part {str(text)!r} is not valid; write 2/8 for the second of eight"
            )
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, kw_only=True)
class PartOptions(Options):
    """Option that chooses the part of the corpus to score."""

    title: ClassVar[str] = "Corpus"

    corpus_part: Annotated[CorpusPart | None, Convert(CorpusPart.accept), Flag("--part")] = None
    """Score a part of the corpus, such as 2/8; headroles merge joins all of them."""


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ScoringOptions, PassOptions, TargetOptions):
    """Options of scoring, and of loading and running the model."""

    title: ClassVar[str] = "Model"

    precision: Literal["float32", "float16"] = "float32"
    """Precision of stored scores; float16 takes half the space.

    float16 rounds each score, and its bounds, before it is tested and stored, by at most one part
    in 2,048 (below 0.00006 by at most 0.00000003). Comparisons need scores of one precision.
    """
