"""Jensen-Shannon divergence of the attention of two heads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headroles.arrays import Float32Array
from headroles.corpus import Corpus, Skipped, prepared
from headroles.encoding import EncodedExample
from headroles.models.attention import AttentionReader, open_reader
from headroles.models.loading import Attending, LoadedEncoder, load_encoder
from headroles.passes.examples import passes_over
from headroles.passes.loop import Budget
from headroles.scoring.windows import windows_of
from headroles.studies.claims.claim import NotTestable
from headroles.studies.claims.options import ClaimOptions

MOST_EXAMPLES, MOST_TOKENS = 30, 64
"""Examples that are read, evenly over the corpus: each costs the square of the number of heads."""


def divergences_of(
    model: Attending, corpus: Corpus, options: ClaimOptions
) -> dict[str, NDArray[Any]]:
    """Return ``values`` (examples, heads, heads) in nats, and the ``shape`` layers, heads.

    Means over rows of JS = H((p + q) / 2) - (H(p) + H(q)) / 2 (Clark et al. 2019), of
    some examples that are evenly spread over the corpus.
    """
    encoder = load_encoder(model, options)
    skipped: Skipped = Skipped()
    with prepared(corpus) as ready, open_reader(encoder.network) as reader:
        cut = encoder.example_encoder()
        windows = windows_of(ready, options.pairing)
        every = [one for _, some in windows for one in cut.encode(some, skipped)]
        chosen = evenly([one for one in every if len(one) <= MOST_TOKENS])
        if not chosen:
            raise NotTestable(f"no example has {MOST_TOKENS} tokens or fewer")
        values = np.stack([divergences(one) for one in read_rows(chosen, encoder, reader)])
    return {"values": values, "shape": np.array([reader.n_layers, reader.n_heads])}


def evenly(examples: list[EncodedExample]) -> list[EncodedExample]:
    """Return at most ``MOST_EXAMPLES`` examples, evenly spread over all."""
    places = np.linspace(0, len(examples) - 1, min(MOST_EXAMPLES, len(examples)))
    return [examples[place] for place in dict.fromkeys(places.round().astype(int).tolist())]


def read_rows(
    examples: list[EncodedExample], encoder: LoadedEncoder, reader: AttentionReader
) -> Iterable[Tensor]:
    """Yield the attention (heads of all layers, tokens, tokens) of each example."""
    for example in examples:
        found: list[Tensor] = []

        def keep(layer: int, weights: Tensor, found: list[Tensor] = found) -> None:
            found.append(weights[0].float().cpu().clone())

        passes = passes_over([example], encoder, Budget.of(encoder.device, None))
        for batch in passes.batches():
            reader.read(batch.inputs, keep, [example.id])
        yield torch.cat(found)


def divergences(rows: Tensor) -> Float32Array:
    """Return divergences (heads, heads) of attention (heads, tokens, tokens)."""
    own = _entropy(rows)
    found = torch.zeros(len(rows), len(rows))
    for head in range(len(rows)):
        mixed = _entropy((rows[head] + rows[head:]) / 2)
        found[head, head:] = (mixed - (own[head] + own[head:]) / 2).mean(-1)
    return (found + found.triu(1).T).clamp(min=0).numpy()


def _entropy(rows: Tensor) -> Tensor:
    found: Tensor = torch.special.entr(rows).sum(-1)
    return found
