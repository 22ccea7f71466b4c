"""A folder to write to, and a model to compare with that of the other tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conftest import make_bert
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


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(scope="session")
def small(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 24 sentences of the sample: enough for tests to have some power."""
    file = tmp_path_factory.mktemp("corpora") / "small.conllu"
    blocks = sample.read_text(encoding="utf-8").split("\n\n")[:24]
    file.write_text("\n\n".join([*blocks, ""]), encoding="utf-8")
    return file
