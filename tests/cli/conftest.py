"""A folder to write to, and what several tests of commands are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from headroles import HeadScores
from tests.conftest import make_bert, make_scores
from tests.tasks.conftest import save


@pytest.fixture(scope="session")
def tuned_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of ``bert_folder`` with other weights in its last layers."""
    model = make_bert()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "layer.1" in name or "layer.2" in name:
                weights += 0.3 * torch.randn_like(weights)
    return save(model, tmp_path_factory.mktemp("tuned") / "tiny-bert")


def some_scores(seed: int = 0) -> HeadScores:
    """Scores of two roles, made by hand: each example is a document."""
    values = np.random.default_rng(seed).normal([2.0, 4.0], 0.5, (30, 2, 3, 2))
    scores = make_scores(values, ["local", "block"], [f"d{k}" for k in range(30)])
    return replace(scores, digests=scores.ids)


def copies_of(sample: Path, times: int, folder: Path) -> Path:
    """Write the sample many times, each sentence with an id of its own."""
    text, file = sample.read_text(encoding="utf-8"), folder / "large.conllu"
    copies = (text.replace("# sent_id = ", f"# sent_id = {copy}-") for copy in range(times))
    file.write_text("".join(copies), encoding="utf-8")
    return file


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
