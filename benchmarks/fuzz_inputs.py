"""Odd options."""

from __future__ import annotations

import random

from benchmarks.fuzzing import ODD, Surface
from headroles.cli.results import ExportOptions
from headroles.corpus import CorpusOptions
from headroles.options import Options, fields_of
from headroles.scoring.options import ScoreOptions
from headroles.studies.classification.options import AssignOptions
from headroles.studies.comparison.options import CompareOptions
from headroles.studies.power import PowerOptions

GROUPS: tuple[type[Options], ...] = (
    ScoreOptions,
    AssignOptions,
    CompareOptions,
    PowerOptions,
    CorpusOptions,
    ExportOptions,
)


def try_options(chance: random.Random) -> str:
    """Make a group of options with some odd values."""
    group = chance.choice(GROUPS)
    chosen = chance.sample(fields_of(group), k=chance.choice((1, 2)))
    group(**{one.name: chance.choice([*ODD, *one.choices]) for one in chosen})
    return "accepted"


SURFACES = {"options": Surface(1000, lambda place: try_options)}
