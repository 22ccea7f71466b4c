"""The best fixed offset of a role, found on one half of the documents for the other half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.roles import OFFSETS
from headroles.scoring.scores import HeadScores


@dataclass(frozen=True)
class Rival:
    """The rule that a head has to beat: always look at the word at a fixed offset.

    ``hits`` (examples,) is the share of links of each example that the rule hits, NaN where there
    are none. ``offsets`` are the rules for the first and for the second half of the documents:
    each is the best of the other half, so that no example chooses its own rule, and every example
    is tested.
    """

    hits: FloatArray
    offsets: tuple[int, int]


def rival_of(scores: HeadScores, role: str) -> Rival | None:
    """Return the rule that a role has to beat; None for one without offsets.

    The best offset of a half is the one with the largest mean over examples, the first in the
    order of `OFFSETS` of several. A half without any link takes that of all examples.
    """
    if scores.offset_shares is None:
        return None
    shares = scores.offset_shares[:, scores.role_ids.index(role)].astype(np.float64)
    if np.isnan(shares).all():
        return None
    in_second = second_half(scores)
    best = tuple(_best(shares, half) for half in (in_second, ~in_second))
    hits = np.where(in_second, shares[:, best[1]], shares[:, best[0]])
    return Rival(hits, (OFFSETS[best[0]], OFFSETS[best[1]]))


def dealt_by(n_documents: int) -> str:
    """Return the unit dealt to the halves of a corpus: documents, or examples of one."""
    return "examples" if n_documents == 1 else "documents"


def second_half(scores: HeadScores) -> BoolArray:
    """Return (examples,): whether an example is of the second half of the corpus.

    Documents belong to the halves by turns, in their order: both halves are from everywhere.
    Where there is only one document, examples do.
    """
    numbers = {name: k for k, name in enumerate(dict.fromkeys(scores.documents))}
    if dealt_by(len(numbers)) == "examples":
        return np.asarray(np.arange(scores.n_examples) % 2 == 1)
    return np.array([numbers[name] % 2 == 1 for name in scores.documents])


def _best(shares: FloatArray, half: BoolArray) -> int:
    """Return the place of the best offset of a half."""
    known = ~np.isnan(shares[:, 0])
    chosen = known & half if (known & half).any() else known
    return int(shares[chosen].mean(axis=0).argmax())
