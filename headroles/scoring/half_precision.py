"""Precision of a run: how far half precision moves scores of the first examples, and its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from headroles.arrays import FloatArray
from headroles.corpus import PreparedCorpus
from headroles.models.attention import open_reader
from headroles.models.loading import Attending, LoadedEncoder, choose_device, load_encoder
from headroles.models.options import BFLOAT16, FLOAT32
from headroles.models.own_attention import OwnAttention
from headroles.models.processors import multiplies_bfloat16
from headroles.passes.loop import Budget
from headroles.passes.timing import clock_of
from headroles.record import ChosenDtype, HalfPrecision, ScoresRecord
from headroles.roles import Role, Score, refuse_too_far
from headroles.scoring.block_scoring import BlockScorer
from headroles.scoring.blocks import ScoreBlock
from headroles.scoring.options import AUTO, HALF, ScoreOptions
from headroles.scoring.pipeline import WindowScorer
from headroles.scoring.scores import HeadScores
from headroles.scoring.turns import score_in_turns
from headroles.scoring.windows import windows_of

TRIAL_EXAMPLES = 64
"""Number of the first examples that both precisions score.

With 192 there are a sixth fewer near answers, and over 300 examples half precision takes longer
than float32.
"""
ERRORS = 3.0
"""Standard errors of a mean difference by which means over all examples may differ more."""

Asked: TypeAlias = tuple[Sequence[Role], Score]
SecondPass: TypeAlias = Callable[[HeadScores], float]
"""Function from the scores of the first examples in half precision to the share of the layers that
would have to run again in float32.
"""


@dataclass(frozen=True)
class EncoderInDtype:
    """Encoder of a run in the dtype of the options or of ``auto``, and how the dtype was chosen."""

    encoder: LoadedEncoder
    half: HalfPrecision | None = None
    chosen: ChosenDtype | None = None


def choose_dtype(
    model: Attending,
    corpus: PreparedCorpus,
    options: ScoreOptions,
    asked: Asked,
    known: str | None = None,
    second_pass: SecondPass = lambda _: 0.0,
) -> EncoderInDtype:
    """Load an encoder in the dtype of the options, which ``auto`` chooses now.

    For a dtype other than float32, score the first `TRIAL_EXAMPLES` in float32 too, and say how far
    scores lie apart. ``auto`` takes bfloat16 if the device multiplies it, and if its time
    and that of the expected ``second_pass`` are together less than that of float32. It takes the
    ``known`` dtype of a resumed run. A model that was loaded before keeps its precision.
    """
    if not isinstance(model, str | Path) or options.dtype == FLOAT32:
        return EncoderInDtype(load_encoder(model, options))
    is_auto = options.dtype == AUTO
    full = load_encoder(model, replace(options, dtype=FLOAT32))
    if isinstance(full.network, OwnAttention):
        return EncoderInDtype(full)
    is_native = multiplies_bfloat16(choose_device(options.device))
    known = known if known in (FLOAT32, BFLOAT16) else None
    if is_auto and (known == FLOAT32 or not (known or is_native)):
        return EncoderInDtype(full, chosen=ChosenDtype(FLOAT32, is_native))
    half = load_encoder(model, replace(options, dtype=BFLOAT16 if is_auto else options.dtype))
    refuse_too_far((role.id for role in asked[0]), full.max_tokens)
    trial = _try_both(full, half, corpus, options, asked)
    if trial is None:
        return EncoderInDtype(full if is_auto else half)
    if not is_auto:
        return EncoderInDtype(half, trial.apart)
    return _choose(trial, asked, known, second_pass)


@dataclass(frozen=True)
class _Trial:
    """The first examples in both precisions; ``time`` is that of half by that of float32."""

    full: LoadedEncoder
    half: LoadedEncoder
    in_half: ScoreBlock
    apart: HalfPrecision
    time: float


def _try_both(
    full: LoadedEncoder,
    half: LoadedEncoder,
    corpus: PreparedCorpus,
    options: ScoreOptions,
    asked: Asked,
) -> _Trial | None:
    """Score the first examples in both precisions; None if none of them can be scored."""
    first = next(windows_of(corpus, options.pairing, TRIAL_EXAMPLES), None)
    if first is None:
        return None
    with ExitStack() as stack:
        scorers = []
        for encoder in (full, half):
            reader = stack.enter_context(open_reader(encoder.network, options.measure))
            budget = Budget.of(encoder.device, options.batch_tokens)
            scorer = BlockScorer(encoder, reader, *asked, budget)
            pieces, is_rounded = encoder.example_encoder(), options.precision == HALF
            scorers.append(WindowScorer(pieces, scorer, is_rounded, lambda _: None))
        (in_full, time), (in_half, time_of_half) = score_in_turns(
            scorers, *first, clock_of(full.device)
        )
    if in_full is None or in_half is None:
        return None
    apart = compare_precisions(in_half, in_full, half.description.dtype, asked[0])
    return _Trial(full, half, in_half, apart, time_of_half / time)


def _choose(
    trial: _Trial, asked: Asked, known: str | None, second_pass: SecondPass
) -> EncoderInDtype:
    """Settle on the dtype that was ``known``, else on the faster one."""
    roles, score = asked
    again = 0.0
    if known is None and trial.time < 1:
        record = ScoresRecord(half_precision=trial.apart)
        scores = HeadScores.from_blocks([trial.in_half], roles, score, record)
        again = second_pass(scores)
    is_half = known is not None or trial.time + again < 1
    dtype = trial.apart.dtype if is_half else FLOAT32
    chosen = ChosenDtype(dtype, True, trial.apart.examples, trial.time, again)
    if is_half:
        return EncoderInDtype(trial.half, trial.apart, chosen)
    return EncoderInDtype(trial.full, None, chosen)


def compare_precisions(
    half: ScoreBlock, full: ScoreBlock, dtype: str, roles: Sequence[Role]
) -> HalfPrecision:
    """Return how far scores of the same examples in half precision lie from those in float32.

    A mean over the whole corpus may differ by more than that over the first examples: by `ERRORS`
    of the standard error of the mean difference, of examples that are taken to be independent.
    """
    apart = half.values.astype(np.float64) - full.values
    n = (~np.isnan(apart)).sum(axis=0)
    means = np.nansum(apart, axis=0) / np.maximum(n, 1)
    variances = np.nansum((apart - means) ** 2, axis=0) / np.maximum(n - 1, 1)
    moves = np.abs(means) + ERRORS * np.sqrt(variances / np.maximum(n, 1))
    moves[n < 2] = np.nan
    ids = [role.id for role in roles]
    return HalfPrecision(
        dtype,
        len(apart),
        scores=float(np.nanmax(np.abs(apart), initial=0)),
        means=dict(zip(ids, np.abs(means).max(axis=(0, 1)).tolist(), strict=True)),
        errors=ERRORS,
        moves=dict(zip(ids, map(_readable, np.moveaxis(moves, -1, 0)), strict=True)),
    )


def _readable(of_heads: FloatArray) -> list[list[float | None]]:
    """Return numbers (layers, heads) of three digits as a record has them, None for NaN."""
    return [[None if np.isnan(one) else float(f"{one:.3g}") for one in layer] for layer in of_heads]
