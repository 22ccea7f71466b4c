"""Claims about translation models, over a bitext and a task, against loops of the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headroles as hr
from headroles.models.heads.remaining import Head
from headroles.studies.claims.measured import ClaimOptions, Measured
from headroles.studies.claims.published import cross_heads_needed, special_tokens_across
from headroles.studies.removals import without_each
from headroles.tasks.options import RunOptions
from headroles.tasks.running import open_run
from tests.rounding import near
from tests.scoring.test_targets import bitext as bitext
from tests.tasks.test_writing import pairs as pairs
from tests.tasks.test_writing import translator as translator

CLAIMS = "special-tokens-across,cross-heads-needed,input-aligns"


def test_effects_are_those_of_the_studies(translator: Path, bitext: Path, pairs: Path) -> None:
    corpus = hr.read_bitext(bitext)
    table = hr.test_claims(translator, corpus, task=pairs, claims=CLAIMS)
    rows = table.frame.set_index("claim")
    assert (rows["verdict"] == "described").all()
    assert rows[["effect", "control"]].notna().all(axis=None)

    groups = hr.measure_token_groups(translator, corpus, attention="cross").frame
    of_all = groups[groups["layer"] == "all"].set_index(["group", "quantity"])["mean"]
    special = [of_all.get((group, "norms_less_weights")) for group in ("classifier", "separators")]
    assert rows.loc["special-tokens-across", "effect"] == near(-np.nansum(special), 1e-5)

    run = open_run(translator, pairs, RunOptions())
    values = np.abs(run.derivatives().by_gate)[::2].mean(0)
    kinds = {"encoder": range(3), "decoder": range(3, 5), "cross": range(5, 7)}
    sets: list[list[Head]] = [[]]
    for of_kind in kinds.values():
        heads = [head for head in run.heads if head[0] in of_kind]
        sets.append(sorted(heads, key=lambda head: values[head])[: round(0.6 * len(heads))])
    losses = run.outcomes(without_each(sets, run.shape)).losses[1::2].mean(0)
    _, encoder, decoder, cross = losses - losses[0]
    assert rows.loc["cross-heads-needed", "effect"] == near(cross - max(encoder, decoder), 1e-5)
    assert rows.loc["cross-heads-needed", "n"] == 3


def test_what_they_need_is_named(
    translator: Path, bitext: Path, sample: Path, bert_folder: Path, classifier: Path,
    labelled: Path,
) -> None:  # fmt: skip
    measured = Measured(translator, hr.read_bitext(bitext), ClaimOptions())
    with pytest.raises(hr.errors.HeadRolesError, match="pass a task of sources and targets"):
        cross_heads_needed(measured)
    encoder = Measured(bert_folder, hr.read_conllu(sample), ClaimOptions(), tasks=[labelled])
    with pytest.raises(hr.errors.HeadRolesError, match="give a translation model, and a bitext"):
        special_tokens_across(encoder)
    encoder = Measured(classifier, hr.read_conllu(sample), ClaimOptions(), tasks=[labelled])
    with pytest.raises(hr.errors.HeadRolesError, match="give a translation model, and its task"):
        cross_heads_needed(encoder)
