"""Roles as sieves: for every query token of a role, the keys that a head with it would look at.

For one example of n tokens and one head, ``A[i, j]`` is the attention from query i to key j. A
role names query tokens Q and, for each, a sieve of keys S_i, and scores the head by

    mean over i in Q of  n / |S_i| * sum of A[i, j] over j in S_i   =   sum_ij W[i, j] * A[i, j]

W is fixed before the model runs, so scoring is a contraction of attention with it. That is the
``bias`` score; ``excess`` scores a row by (mass - e) / (1 - e), with the mass of attention in its
sieve and e = |S_i| / n the mass there of uniform attention: other weights, and a constant. Two
kinds of sieves keep W small, and both are exact:

* sieves that many queries share (all separators, the words of a segment) are *key sets*: the
  attention mass of each row on each set, then weights over the rows;
* sieves of a few keys of their own (a window, the pieces of the governor) are lists of *pairs*
  (query, key) with weights.

This module knows arrays only: no model, no corpus.
"""

from headroles.sieves.build import Sieves, build_sieves
from headroles.sieves.contrasts import BorrowedWeights, ContrastWeights
from headroles.sieves.controls import Controls, find_controls
from headroles.sieves.names import (
    BEYOND_OFFSET,
    EVENNESS,
    POSITIONAL_ROLES,
    SCORES,
    TO_DEPENDENT,
    TO_GOVERNOR,
    role_ids,
)

__all__ = [
    "BEYOND_OFFSET",
    "EVENNESS",
    "POSITIONAL_ROLES",
    "SCORES",
    "TO_DEPENDENT",
    "TO_GOVERNOR",
    "BorrowedWeights",
    "ContrastWeights",
    "Controls",
    "Sieves",
    "build_sieves",
    "find_controls",
    "role_ids",
]
