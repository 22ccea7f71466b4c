"""The sieves of all roles for a batch of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headroles.sieves.batch import Batch
from headroles.sieves.contrasts import ContrastWeights, contrast_weights
from headroles.sieves.controls import Controls
from headroles.sieves.key_sets import block_role, delimiter_roles, evenness_role
from headroles.sieves.pairs import arc_pairs, local_role
from headroles.sieves.rows import FloatArray
from headroles.tokens import EncodedExample, IntArray


@dataclass(frozen=True)
class Sieves:
    """The sieves of all roles for a batch of B examples, padded to N tokens.

    ``key_sets`` (B, N, K) is 1 where a token belongs to a set; ``set_weights`` (B, N*K, 3) holds
    the weight of each row's mass on each set for the three delimiter roles, and ``block_weights``
    (B, N, K) for the block roles; ``evenness_weights`` (B, N, K), which only the excess scores
    have, is 1 / (rows * ln of the segment's size) instead. ``pairs`` (B, P) holds query * N +
    key: first those of ``local``, then those of arcs. Their weights are ``local_weights``
    (B, P1, 1), and ``arc_weights`` (B, P2, R) for the syntactic roles. Weights of padding are 0.
    The contrasts of syntactic roles take away what ``contrasts`` tells.

    ``constants`` (B, roles) are to be added to what the weights give. ``counts`` (B, roles) is
    the number of query tokens (syntactic roles: of arcs) behind a score; where it is 0 the
    example has no score for the role.
    """

    key_sets: FloatArray
    set_weights: FloatArray
    block_weights: FloatArray
    evenness_weights: FloatArray | None
    pairs: IntArray
    local_weights: FloatArray
    arc_weights: FloatArray
    constants: FloatArray
    counts: IntArray
    contrasts: ContrastWeights | None

    @property
    def has_blocks(self) -> bool:
        """Whether any example has two segments."""
        return bool(self.block_weights.any())


def build_sieves(
    examples: Sequence[EncodedExample],
    n_relations: int,
    window: int = 2,
    published_edge: bool = False,
    reach: int | None = None,
    score: str = "bias",
    controls: Controls | None = None,
    lacking: IntArray | None = None,
) -> Sieves:
    """Sieves of every role of `role_ids` for ``examples``, ``n_relations`` being scored.

    ``window`` is how far the sieve of ``local`` reaches to either side. ``published_edge`` takes
    the size of that sieve from the released notebooks, one too large for the last ``window``
    tokens. ``reach`` is how far the attention of the layer can reach to either side: keys beyond
    it are no part of any row or sieve. ``score`` is that of `role_ids`; contrasts are made from
    the ``controls`` of the examples, if given, and ``lacking`` (W,) are the distances at which
    some sentence of these or other examples has none, in ascending order.
    """
    batch = Batch.of(examples, reach, score)
    local = local_role(batch, window, published_edge)
    delimiters = delimiter_roles(batch)
    block = block_role(batch)
    beside = evenness_role(batch) if score == "excess" else block
    arcs = arc_pairs(batch, examples, n_relations)
    syntax = arcs.as_roles(batch.width)
    contrasts = None
    if controls is not None and n_relations:
        none = np.zeros(0, dtype=np.int64)
        contrasts = contrast_weights(
            arcs, controls, batch.width, none if lacking is None else lacking
        )
    parts = (local, delimiters, block, beside, syntax)
    constants = [part.constants for part in parts]
    counts = [part.counts for part in parts]
    if contrasts is not None:
        # what both sides of a difference have in common falls away
        constants.append(np.zeros_like(syntax.constants))
        counts.append(syntax.counts)
    return Sieves(
        key_sets=batch.key_sets.astype(np.float32),
        set_weights=delimiters.weights.reshape(batch.size, -1, delimiters.counts.shape[1]),
        block_weights=block.weights,
        evenness_weights=beside.weights if score == "excess" else None,
        pairs=np.concatenate([local.pairs, syntax.pairs], axis=1),
        local_weights=local.weights,
        arc_weights=syntax.weights,
        constants=np.concatenate(constants, axis=1),
        counts=np.concatenate(counts, axis=1),
        contrasts=contrasts,
    )
