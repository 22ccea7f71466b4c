"""What always looking a fixed number of words back or ahead would hit: the baseline of links.

Most arcs are short, so a head that only looks a word back finds many governors. Whoever says that a
head knows of syntax has to say how much better it does than the best of such rules (Voita et al.
2019; Clark et al. 2019).
"""

from __future__ import annotations

import numpy as np

from headroles.encoding import IntArray
from headroles.roles.batch import Batch
from headroles.roles.rows import BoolArray, FloatArray

FARTHEST = 5
OFFSETS = tuple(k for k in range(-FARTHEST, FARTHEST + 1) if k)
"""The offsets in words that are tried."""


def find_offset_shares(
    batch: Batch, owners: IntArray, queries: IntArray, keys: IntArray, counted: BoolArray
) -> FloatArray:
    """(B, r, offsets): share of links whose other end is at each of `OFFSETS`; NaN without links.

    Of the links (L,) their examples, and a piece of the word that looks and of the other one;
    ``counted`` (L, r) says for which roles they count.
    """
    n_roles = counted.shape[1]
    link, role = np.nonzero(counted)
    totals = np.zeros((batch.size, n_roles))
    np.add.at(totals, (owners[link], role), 1)
    hits = np.zeros((batch.size, n_roles, 2 * FARTHEST + 1))
    offsets = (batch.words[owners, keys] - batch.words[owners, queries])[link]
    near = np.abs(offsets) <= FARTHEST
    np.add.at(hits, (owners[link[near]], role[near], offsets[near] + FARTHEST), 1)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, as it is to be
        shares = hits[:, :, [k + FARTHEST for k in OFFSETS]] / totals[:, :, None]
    return shares.astype(np.float32)
