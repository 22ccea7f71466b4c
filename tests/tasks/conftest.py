"""Tiny models with heads for tasks, and tasks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertForMaskedLM, BertForSequenceClassification, PreTrainedModel

from tests.conftest import save

SENTENCES = [
    ("the cat sat on the mat", "good"),
    ("it is for that", "bad"),
    ("a dog was in the house at night", "good"),
    ("this is as it was", "bad"),
    ("to be of it", "bad"),
    ("you and me and a tree", "good"),
    ("on that and this", "bad"),
    ("it was with the king", "good"),
]


HEADS = [(layer, head) for layer in range(3) for head in range(4)]
"""The heads of `make_task_model`."""


def make_task_model(kind: type[PreTrainedModel] = BertForSequenceClassification, **config: object):
    torch.manual_seed(3)
    settings = {
        "id2label": {0: "bad", 1: "good"},
        "vocab_size": 128,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 32,
        "initializer_range": 0.5,
    }
    return kind(kind.config_class(**settings | config)).eval()


def write_labelled(file: Path, rows: list[tuple[str, str]], label: str = "label") -> Path:
    """A file of the task of these texts and labels."""
    lines = [f"sentence\t{label}", *("\t".join(row) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_task_model(), tmp_path_factory.mktemp("models") / "classifier")


@pytest.fixture(scope="session")
def regressor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = make_task_model(id2label={0: "LABEL_0"}, label2id={"LABEL_0": 0})
    return save(model, tmp_path_factory.mktemp("models") / "regressor")


@pytest.fixture(scope="session")
def masked_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_task_model(BertForMaskedLM), tmp_path_factory.mktemp("models") / "masked")


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("tasks") / "labelled.tsv", SENTENCES)


@pytest.fixture(scope="session")
def labelled_twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many examples as the draws of pruning curves need."""
    return write_labelled(tmp_path_factory.mktemp("tasks") / "labelled-twice.tsv", SENTENCES * 2)


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tasks") / "numbered.tsv"
    return write_labelled(file, [(text, str(len(text) / 10)) for text, _ in SENTENCES], "score")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tasks") / "plain.txt"
    file.write_text("\n\n".join(text for text, _ in SENTENCES) + "\n", encoding="utf-8")
    return file
