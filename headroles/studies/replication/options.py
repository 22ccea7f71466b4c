"""Options of replication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from headroles.options import Option
from headroles.studies.options import ThresholdOptions
from headroles.testing.options import LevelOptions

CORPORA, CHECKPOINTS, SEEDS = OVER = ("corpora", "checkpoints", "seeds")


@dataclass(frozen=True, kw_only=True)
class ReplicateOptions(LevelOptions, ThresholdOptions):
    """Options of tests over several score sets."""

    over: Annotated[
        str,
        Option(
            "Kind of score sets: one model over several corpora, checkpoints of one model, or "
            "models of several seeds.",
            more="Heads of models of different seeds do not correspond: they are counted per "
            "layer.",
            words="what is replicated over",
            choices=OVER,
        ),
    ] = CORPORA
