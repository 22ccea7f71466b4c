"""Scores in half precision say how far they lie from those in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headroles import assign_roles, read_conllu, score_heads
from headroles.models.loading import load_encoder
from headroles.models.options import ModelOptions
from headroles.scoring.run_notes import describe_run


def test_differences_are_measured_and_told(bert_folder: Path, treebank: Path) -> None:
    corpus = read_conllu(treebank)
    full, half = (
        score_heads(bert_folder, corpus, score="excess", dtype=dtype, device="cpu")
        for dtype in ("float32", "bfloat16")
    )
    assert full.record.half_precision is None
    told = half.record.half_precision
    assert told is not None
    apart = np.abs(half.values - full.values)
    assert told.scores == pytest.approx(float(np.nanmax(apart)))
    assert told.examples == full.n_examples
    tables = [assign_roles(scores) for scores in (full, half)]
    means = tables[0].frame["mean"] - tables[1].frame["mean"]
    by_role = means.abs().groupby(tables[0].frame["role"]).max()
    assert {role: told.means[role] for role in by_role.index} == pytest.approx(
        by_role.to_dict(), rel=1e-4, abs=1e-7
    )
    near = tables[1].frame["role"].map(told.means)
    n_near = ((tables[1].frame["mean"] - tables[1].frame["threshold"]).abs() <= near).sum()
    [warning] = [one for one in tables[1].warnings if "bfloat16" in one]
    assert f", and {n_near} of {len(means)} answers lie that near to" in warning
    assert not any("float32" in one for one in tables[0].warnings)
    assert "scores  in bfloat16: up to " in describe_run(half.record)


def test_a_model_that_was_loaded_before_is_taken_as_it_is(
    bert_folder: Path, treebank: Path
) -> None:
    encoder = load_encoder(bert_folder, ModelOptions(dtype="bfloat16"))
    scores = score_heads(
        encoder.model, read_conllu(treebank), tokenizer=encoder.tokenizer, dtype="bfloat16"
    )
    assert scores.record.half_precision is None
