"""Distance of the scores of a model in half precision from those in float32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headroles.corpus import Example, PreparedCorpus
from headroles.models.attention import AttentionReader, open_reader
from headroles.models.loading import Attending, LoadedEncoder, load_encoder
from headroles.passes.loop import Budget
from headroles.record import HalfPrecision
from headroles.roles import Role, Score
from headroles.scoring.block_scoring import BlockScorer
from headroles.scoring.blocks import Counts
from headroles.scoring.options import ScoreOptions
from headroles.scoring.windows import windows_of

_FULL = "float32"


def compare_with_float32(
    model: Attending,
    corpus: PreparedCorpus,
    options: ScoreOptions,
    of_half: tuple[LoadedEncoder, AttentionReader],
    asked: tuple[Sequence[Role], Score],
) -> HalfPrecision | None:
    """Score the first window of a corpus in both precisions; return how far they lie apart.

    None for a model in float32, and for one that was loaded before, whose precision is its own.
    """
    if options.dtype == _FULL or not isinstance(model, str | Path):
        return None
    _, examples = next(windows_of(corpus, options.pairing), (None, []))
    half = _scores(*of_half, examples, options, asked)
    full = load_encoder(model, replace(options, dtype=_FULL))
    with open_reader(full.network, options.measure) as reader:
        apart = half - _scores(full, reader, examples, options, asked)
    n = (~np.isnan(apart)).sum(axis=0)
    means = np.abs(np.nansum(apart, axis=0) / np.maximum(n, 1)).max(axis=(0, 1))
    found = {role.id: float(mean) for role, mean in zip(asked[0], means, strict=True)}
    largest = float(np.nanmax(np.abs(apart), initial=0))
    return HalfPrecision(options.dtype, len(apart), largest, found)


def _scores(
    encoder: LoadedEncoder,
    reader: AttentionReader,
    examples: list[Example],
    options: ScoreOptions,
    asked: tuple[Sequence[Role], Score],
) -> NDArray[np.float64]:
    """Return scores (examples, layers, heads, roles), NaN where there is none."""
    budget = Budget.of(encoder.device, options.batch_tokens)
    scorer = BlockScorer(encoder, reader, *asked, budget)
    encoded = encoder.example_encoder().encode(examples, Counter())
    if not encoded:
        return np.zeros((0, reader.n_layers, reader.n_heads, len(asked[0])))
    launched = scorer.launch(scorer.plan(encoded), lambda _: None)
    return scorer.fetch(launched, Counts()).values.astype(np.float64)
