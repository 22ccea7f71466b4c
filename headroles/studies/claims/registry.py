"""The published claims, and claims of users."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from headroles.errors import HeadRolesError, UsageError
from headroles.roles.own import load_function
from headroles.studies.claims.claim import CORPUS, Claim, Finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.published import (
    budhraja_2020,
    clark_2019,
    cordonnier_2020,
    kobayashi_2020,
    michel_2019,
    pande_2021,
    voita_2019,
)
from headroles.wording import not_among, with_type

CLAIMS: dict[str, Claim] = {
    one.id: one
    for one in (
        pande_2021.local_and_syntactic,
        pande_2021.several_roles_middle,
        pande_2021.separator_heads_late,
        pande_2021.classifier_heads_early,
        pande_2021.undecided_few,
        voita_2019.positional_heads,
        voita_2019.positional_confident,
        voita_2019.syntactic_heads,
        voita_2019.rare_word_head,
        clark_2019.single_heads,
        clark_2019.separators_middle,
        clark_2019.layers_alike,
        kobayashi_2020.special_tokens_little,
        kobayashi_2020.frequent_words_little,
        cordonnier_2020.low_rank_together,
        pande_2021.last_layers_move,
        pande_2021.separators_spread,
        voita_2019.specialised_last,
        michel_2019.many_can_go,
        michel_2019.one_head_a_layer,
        michel_2019.prunable_share,
        budhraja_2020.middle_layers_matter,
        budhraja_2020.bottom_as_top,
        michel_2019.tasks_agree,
    )
}
"""Every claim by its id, in the order of the table."""


def choose_claims(named: Sequence[str] | None) -> list[Claim]:
    """Return the claims of these ids, or all. Raises UsageError for an unknown name."""
    if named is None:
        return list(CLAIMS.values())
    if not named:
        raise UsageError("claims (--claims) names no claim; leave it out for all of them")
    return [_claim(name) for name in dict.fromkeys(named)]


def _claim(name: str) -> Claim:
    if name in CLAIMS:
        return CLAIMS[name]
    if ":" not in name:
        raise UsageError(not_among("claim", name, list(CLAIMS)))
    return own_claim(name, load_function(name, "claim"))


def own_claim(name: str, function: Callable[[Measured], Finding]) -> Claim:
    """Make a claim of a user's function; its docstring is the statement.

    Attributes of the function can add ``source``, ``published``, ``effect`` and ``rule``.
    """
    said = {key: str(getattr(function, key, "")) for key in ("source", "published", "effect")}
    return Claim(
        id=name,
        statement=inspect.getdoc(function) or name,
        needs=CORPUS,
        rule=str(getattr(function, "rule", "")),
        test=lambda measured: _checked(name, function, measured),
        **said,
    )


def _checked(name: str, function: Callable[[Measured], Finding], measured: Measured) -> Finding:
    """Call a user's function. Raises UsageError if it fails, or returns no `Finding`."""
    try:
        found = function(measured)
    except HeadRolesError:
        raise
    except Exception as error:  # any error of the user's code; the message names it
        raise UsageError(
            f"the claim {name} fails: {with_type(error)}; correct the function"
        ) from error
    if not isinstance(found, Finding):
        raise UsageError(
            f"the claim {name} returned {type(found).__name__}; return what trend, in_layers, "
            "mean_beyond, mean_within or some_head of headroles.studies.claims gives"
        )
    return found
