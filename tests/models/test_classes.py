"""Models that heads were removed from, written and read again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load, save
from transformers import PreTrainedModel

from headroles import HeadScores, assign_roles, load_model, read_conllu, score_heads
from headroles.errors import ModelError, ModelSupportError
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.saved_models import PrunedModel
from headroles.record import ModelRecord
from tests.conftest import change_json, make_bert, make_tokenizer
from tests.models.test_surgery import A_LAYER, INPUTS, SOME
from tests.rounding import assert_same_sums, sizes_of_scores
from tests.tasks.conftest import make_task_model


def save_model(model: PreTrainedModel, tokenizer: Any, folder: Path, zeroed: Any = ()) -> Path:
    zero_heads(model, zeroed)
    record = ModelRecord()
    return PrunedModel(model, tokenizer, record).save(folder)


@pytest.fixture
def pruned_folder(tmp_path: Path) -> Path:
    model = make_task_model()
    remove_heads(model, SOME)
    return save_model(model, make_tokenizer(), tmp_path / "pruned")


def test_what_is_on_top_comes_along(pruned_folder: Path) -> None:
    model = make_task_model()
    remove_heads(model, SOME)
    with torch.no_grad():
        expected = model(**INPUTS).logits
        assert torch.equal(load_model(pruned_folder)(**INPUTS).logits, expected)
        read = load_encoder(pruned_folder, head="classification").model
        assert torch.equal(read(**INPUTS).logits, expected)
    config = json.loads((pruned_folder / "config.json").read_text())
    assert config["pruned_heads"] == {"0": [1], "1": [0, 3], "2": [2]}
    assert config["architectures"] == ["BertForSequenceClassification"]


def test_it_is_scored_by_the_old_numbers(treebank: Path, tmp_path: Path) -> None:
    model, corpus = make_bert(), read_conllu(treebank)
    full = score_heads(model, corpus, tokenizer=make_tokenizer())
    remove_heads(model, SOME + A_LAYER)
    save_model(model, make_tokenizer(), tmp_path / "pruned")
    pruned = score_heads(tmp_path / "pruned", corpus)
    for layer, head in np.ndindex(3, 4):
        is_removed = (layer, head) in SOME + A_LAYER
        assert np.isnan(pruned.values[:, layer, head]).all() == is_removed
    # Below the first removed head everything is as it was.
    there = np.s_[:, 0, [0, 2, 3]]
    assert_same_sums(pruned.values[there], full.values[there], sizes_of_scores(full)[there])
    pruned.save(tmp_path / "scores")
    table = assign_roles(HeadScores.load(tmp_path / "scores"))
    notes = table.frame.query("layer == 2 and head == 2")["note"]
    assert set(notes) == {"untestable: the head was removed from the model"}


def test_a_broken_folder_is_refused(pruned_folder: Path, tmp_path: Path) -> None:
    (pruned_folder / "run.json").unlink()
    file = pruned_folder / "model.safetensors"
    whole = file.read_bytes()  # tensors that were loaded lie in the file itself in some versions
    left_out = {k: v for k, v in load(whole).items() if "layer.1.attention.self.query" not in k}
    file.write_bytes(save(left_out, metadata={"format": "pt"}))
    for read in (load_model, lambda folder: load_encoder(folder, head="classification")):
        with pytest.raises(ModelError, match="lacks weights of its"):
            read(pruned_folder)
    file.write_bytes(whole)
    change_json(pruned_folder / "config.json", pruned_heads={"0": [], "1": [0, 3], "2": [2]})
    with pytest.raises(ModelError, match=r"cannot be loaded|another shape"):
        load_model(pruned_folder)


def test_a_class_that_nobody_knows(pruned_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(pruned_folder, tmp_path / "copy")
    (folder / "run.json").unlink()
    change_json(folder / "config.json", architectures=["BertForTea"])
    with pytest.raises(ModelSupportError, match="written by BertForTea"):
        load_model(folder)
    assert not hasattr(transformers, "BertForTea")
