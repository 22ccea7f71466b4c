"""The method behind a role table, in sentences for a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headroles.roles import BIAS, EXCESS, HIT
from headroles.studies.classification.controls import about_controls
from headroles.studies.classification.summary import describe_units
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction

if TYPE_CHECKING:
    from headroles.studies.classification.role_table import RoleTable

_SCORES = {
    BIAS.name: (
        "The sieve bias score of a head for a role is the attention that it gives to the words of "
        "the role, over what uniform attention would give them (Pande et al., 2021).",
        "pande",
    ),
    EXCESS.name: (
        "The excess score of a head for a role is its attention to the words of the role beyond "
        "uniform attention, over the largest possible excess.",
        "pande",
    ),
    HIT.name: (
        "The score of a head for a role is the share of words whose largest attention goes where "
        "the role looks (Clark et al., 2019).",
        "clark",
    ),
}


def method_of(table: RoleTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences on score and tests, and the key of the work that defines the score."""
    sentence, work = _SCORES[table.record.score]
    tests = table.tests
    correction = describe_correction(tests.correction)
    tested = (
        f"{TESTS[tests.test].words} over {describe_units(tests)}, alpha {tests.alpha:g}, "
        f"{correction.replace('fdr_bh', 'Benjamini-Hochberg')}"
    )
    beyond = ""
    if table.rivals:
        beyond = f", and of arcs {tests.offset_margin:g} above that of the best fixed offset"
    said = [
        sentence,
        f"A head has a role if its mean score is above {tests.threshold:g}{beyond} ({tested}).",
    ]
    if tests.distance_margin:
        said.append(
            "Of roles of arcs, its score on arcs also has to exceed that on other words at the "
            f"same distance by more than {tests.distance_margin:g} (intersection-union test)."
        )
    said += about_controls(table)
    return tuple(said), (work,)
