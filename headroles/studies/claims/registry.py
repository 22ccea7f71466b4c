"""The claims that there are, and claims of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from headroles.errors import HeadRolesError, UsageError
from headroles.roles.own import load_function
from headroles.studies.claims.claim import CORPUS, Claim, Finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.published import (
    bottom_as_top,
    classifier_heads_early,
    frequent_words_little,
    last_layers_move,
    layers_alike,
    local_and_syntactic,
    low_rank_together,
    many_can_go,
    middle_layers_matter,
    one_head_a_layer,
    positional_confident,
    positional_heads,
    prunable_share,
    rare_word_head,
    separator_heads_late,
    separators_middle,
    separators_spread,
    several_roles_middle,
    single_heads,
    special_tokens_little,
    specialised_last,
    syntactic_heads,
    tasks_agree,
    undecided_few,
)
from headroles.wording import not_among, with_type

CLAIMS: dict[str, Claim] = {
    one.CLAIM.id: one.CLAIM
    for one in (
        local_and_syntactic,
        several_roles_middle,
        separator_heads_late,
        classifier_heads_early,
        undecided_few,
        positional_heads,
        positional_confident,
        syntactic_heads,
        rare_word_head,
        single_heads,
        separators_middle,
        layers_alike,
        special_tokens_little,
        frequent_words_little,
        low_rank_together,
        last_layers_move,
        separators_spread,
        specialised_last,
        many_can_go,
        one_head_a_layer,
        prunable_share,
        middle_layers_matter,
        bottom_as_top,
        tasks_agree,
    )
}
"""Every claim by its id, in the order of the table."""


def choose_claims(named: Sequence[str] | None) -> list[Claim]:
    """The claims of these ids, or all. Raises UsageError for a name of none."""
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
    """The claim of a user's function; its docstring is the statement.

    Attributes of the function may say more: ``source``, ``published``, ``effect`` and ``rule``.
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
    """What a user's function finds. Raises UsageError if it fails, or finds something else."""
    try:
        found = function(measured)
    except HeadRolesError:
        raise
    except Exception as error:  # whatever is wrong in it, the user is to know where
        raise UsageError(
            f"the claim {name} fails: {with_type(error)}; correct the function"
        ) from error
    if not isinstance(found, Finding):
        raise UsageError(
            f"the claim {name} returned {type(found).__name__}; return what trend, in_layers, "
            "mean_beyond, mean_within or some_head of headroles.studies.claims gives"
        )
    return found
