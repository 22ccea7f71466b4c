"""Roles that a head may have, each with a sieve, and the scores that read attention through it.

Each file here defines one role or a group of them in a function ``roles``, which
`headroles.roles.choice` lists. The package knows only arrays and the labels of arcs; it knows no
model and nothing else of a corpus.
"""

from headroles.role_names import contrast_of as contrast_of
from headroles.role_names import find_role as find_role
from headroles.role_names import find_roles as find_roles
from headroles.roles.batch import EVERY as EVERY
from headroles.roles.batch import OFFSETS as OFFSETS
from headroles.roles.batch import OFFSETS_ACROSS as OFFSETS_ACROSS
from headroles.roles.batch import WORDS as WORDS
from headroles.roles.batch import Candidates as Candidates
from headroles.roles.batch import PaddedBatch as PaddedBatch
from headroles.roles.batch import Scope as Scope
from headroles.roles.catalogue import EVENNESS as EVENNESS
from headroles.roles.catalogue import check_offsets as check_offsets
from headroles.roles.catalogue import is_position as is_position
from headroles.roles.choice import RoleOptions as RoleOptions
from headroles.roles.choice import choose_roles as choose_roles
from headroles.roles.choice import classes_of_rules as classes_of_rules
from headroles.roles.choice import is_own as is_own
from headroles.roles.choice import role_of as role_of
from headroles.roles.choice import roles_of as roles_of
from headroles.roles.choice import with_class_rules as with_class_rules
from headroles.roles.contrasts import with_other_trees as with_other_trees
from headroles.roles.readout import Readout as Readout
from headroles.roles.readout import SievesByKind as SievesByKind
from headroles.roles.readout import bounds_of as bounds_of
from headroles.roles.readout import group_sieves as group_sieves
from headroles.roles.readout import make_readout as make_readout
from headroles.roles.role import ARCS as ARCS
from headroles.roles.role import SENTENCE_PAIRS as SENTENCE_PAIRS
from headroles.roles.role import TOKENS as TOKENS
from headroles.roles.role import Role as Role
from headroles.roles.rules import N_RULES as N_RULES
from headroles.roles.rules import ClassRules as ClassRules
from headroles.roles.rules import Nearest as Nearest
from headroles.roles.rules import find_homes as find_homes
from headroles.roles.rules import nearest_words as nearest_words
from headroles.roles.score import BIAS as BIAS
from headroles.roles.score import EXCESS as EXCESS
from headroles.roles.score import HIT as HIT
from headroles.roles.score import SCORES as SCORES
from headroles.roles.score import Score as Score
from headroles.roles.syntactic import BASIC as BASIC
from headroles.roles.syntactic import LISTED as LISTED
from headroles.roles.syntactic import absent_defaults as absent_defaults
from headroles.roles.syntactic import choose_relations as choose_relations
from headroles.roles.syntactic import has_contrast as has_contrast
from headroles.roles.word_classes import UPOS as UPOS
