"""Hits of fixed offsets, the baseline of syntactic roles with first choices.

Most arcs are short, so a head that always looks one word back finds many governors. A claim that a
head knows syntax has to state how much better it does than the best fixed offset (Voita et al.
2019; Clark et al. 2019).
"""

from __future__ import annotations

import numpy as np

from headroles.encoding import IntArray
from headroles.roles.arrays import BoolArray, FloatArray
from headroles.roles.batch import Batch

FARTHEST = 5
OFFSETS = tuple(k for k in range(-FARTHEST, FARTHEST + 1) if k)
"""Offsets in words that are tried."""


def find_offset_shares(
    batch: Batch, owners: IntArray, queries: IntArray, keys: IntArray, counted: BoolArray
) -> FloatArray:
    """Return, as (B, r, offsets), the share of links whose other end is at each of `OFFSETS`.

    The L links are given by ``owners`` (their examples), ``queries`` and ``keys`` (one piece of
    each end), all (L,); ``counted`` (L, r) tells for which roles each link counts. The share is NaN
    without links.
    """
    n_roles = counted.shape[1]
    link, role = np.nonzero(counted)
    totals = np.zeros((batch.size, n_roles))
    np.add.at(totals, (owners[link], role), 1)
    hits = np.zeros((batch.size, n_roles, 2 * FARTHEST + 1))
    offsets = (batch.words[owners, keys] - batch.words[owners, queries])[link]
    near = np.abs(offsets) <= FARTHEST
    np.add.at(hits, (owners[link[near]], role[near], offsets[near] + FARTHEST), 1)
    with np.errstate(invalid="ignore"):  # 0 / 0 gives the NaN that is wanted
        shares = hits[:, :, [k + FARTHEST for k in OFFSETS]] / totals[:, :, None]
    return shares.astype(np.float32)
