"""Roles that a head may have, each with a sieve, and the scores that read attention through it.

Each file here defines one role or a group of them in a function ``roles``, which
`headroles.roles.choice` lists. The package knows only arrays and the labels of arcs; it knows no
model and nothing else of a corpus.
"""

from headroles.role_names import contrast_of, find_role, in_words, is_contrast
from headroles.roles.batch import Batch, Scope
from headroles.roles.candidates import EVERY, WORDS, Candidates
from headroles.roles.choice import RoleOptions, choose_roles, is_own
from headroles.roles.fixed_offsets import OFFSETS
from headroles.roles.marking import marked_words, sieve_cells
from headroles.roles.plan import Plan, bounds_of, plan_roles
from headroles.roles.position import refuse_too_far
from headroles.roles.relations import absent_defaults, choose_relations
from headroles.roles.role import ARCS, PAIRS, TOKENS, Role
from headroles.roles.scores import BIAS, EXCESS, HIT, SCORES, Score

__all__ = [
    "ARCS",
    "BIAS",
    "EVERY",
    "EXCESS",
    "HIT",
    "OFFSETS",
    "PAIRS",
    "SCORES",
    "TOKENS",
    "WORDS",
    "Batch",
    "Candidates",
    "Plan",
    "Role",
    "RoleOptions",
    "Scope",
    "Score",
    "absent_defaults",
    "bounds_of",
    "choose_relations",
    "choose_roles",
    "contrast_of",
    "find_role",
    "in_words",
    "is_contrast",
    "is_own",
    "marked_words",
    "plan_roles",
    "refuse_too_far",
    "sieve_cells",
]
