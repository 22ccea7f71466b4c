"""Claims of Cordonnier et al. (2020)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headroles.studies.claims.claim import WEIGHTS, Finding, claim, reversed_finding
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import DRAWS, ranked_among


@claim(
    source="Cordonnier et al. 2020, as others report it",
    statement="The heads of a layer together need fewer query and key dimensions than heads that "
    "share nothing.",
    published="in words only (heads alone are of full rank, together of low rank)",
    needs=WEIGHTS,
    effect="dimensions for 99 % of the energy of the sum over heads, as a share of all",
    rule="Random: the spaces of the heads, each with its own singular values; each layer is "
    "compared with nine draws of such heads (59 if there are one or two layers). Null: the spaces "
    "are independent. Contradicted if the heads need more dimensions.",
)
def low_rank_together(measured: Measured) -> Finding:
    """Test whether the sum over heads takes fewer dimensions than heads in random spaces."""
    shares = measured.dimensions
    rng = np.random.default_rng(measured.options.seed)
    chosen = rng.integers(shares.shape[1], size=(DRAWS, len(shares)))
    drawn = shares[np.arange(len(shares)), chosen].mean(axis=1)
    found = ranked_among(float(shares[:, 0].mean()), drawn, len(shares), "layers")
    note = f"heads in random spaces: {shares[:, 1:].mean():.2f}"
    return reversed_finding(replace(found, note=note))
