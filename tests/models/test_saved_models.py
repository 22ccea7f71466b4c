"""Folders of models that headroles made: written, read again, damaged, and as hostile input."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load, load_file, save, save_file

from headroles import HeadScores, assign_roles, read_conllu, score_heads
from headroles.errors import ModelError, ModelSupportError, StorageError
from headroles.models.heads.surgery import remove_heads
from headroles.models.loading.encoder import load_encoder, load_model
from headroles.models.loading.saved_models import PrunedModel, model_folder
from headroles.record import Record
from headroles.results.stored import new_folder
from headroles.storage import HIDDEN
from headroles.studies.importance.importance import Importance
from headroles.studies.sharing.collaborate import CollaborativeModel
from headroles.studies.sharing.study import collaborate_heads
from tests.conftest import change_json, make_bert, make_tokenizer
from tests.models.test_surgery import A_LAYER, INPUTS, SOME
from tests.rounding import assert_same_sums, sizes_of_scores
from tests.tasks.conftest import make_task_model


@pytest.fixture
def pruned(tmp_path: Path) -> Path:
    """A saved classifier without some of its heads."""
    model = make_task_model()
    remove_heads(model, SOME)
    return PrunedModel(model, make_tokenizer(), Record()).save(tmp_path / "pruned")


@pytest.fixture(scope="module")
def low_rank(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("low") / "rank"
    return collaborate_heads(bert_folder, None, rank=16)[0].save(folder)


@pytest.fixture
def copied(low_rank: Path, tmp_path: Path) -> Path:
    """A folder of a model of low rank that a test may spoil."""
    return shutil.copytree(low_rank, tmp_path / "copy")


def test_what_is_on_top_comes_along(pruned: Path) -> None:
    model = make_task_model()
    remove_heads(model, SOME)
    with torch.no_grad():
        expected = model(**INPUTS).logits
        assert torch.equal(load_model(pruned)(**INPUTS).logits, expected)
        read = load_encoder(pruned, head="classification").model
        assert torch.equal(read(**INPUTS).logits, expected)
    config = json.loads((pruned / "config.json").read_text())
    assert config["pruned_heads"] == {"0": [1], "1": [0, 3], "2": [2]}
    assert config["architectures"] == ["BertForSequenceClassification"]


def test_it_is_scored_by_the_old_numbers(treebank: Path, tmp_path: Path) -> None:
    model, corpus = make_bert(), read_conllu(treebank)
    full = score_heads(model, corpus, tokenizer=make_tokenizer())
    remove_heads(model, SOME + A_LAYER)
    PrunedModel(model, make_tokenizer(), Record()).save(tmp_path / "pruned")
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


def test_weights_that_do_not_fit_are_refused(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    file = pruned / "model.safetensors"
    whole = file.read_bytes()  # tensors that were loaded lie in the file itself in some versions
    left_out = {k: v for k, v in load(whole).items() if "layer.1.attention.self.query" not in k}
    file.write_bytes(save(left_out, metadata={"format": "pt"}))
    for read in (load_model, lambda folder: load_encoder(folder, head="classification")):
        with pytest.raises(ModelError, match="lacks weights of its"):
            read(pruned)
    file.write_bytes(whole)
    change_json(pruned / "config.json", pruned_heads={"0": [], "1": [0, 3], "2": [2]})
    with pytest.raises(ModelError, match=r"cannot be loaded|another shape"):
        load_model(pruned)


def test_a_class_that_nobody_knows(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    change_json(pruned / "config.json", architectures=["BertForTea"])
    with pytest.raises(ModelSupportError, match="written by BertForTea"):
        load_model(pruned)
    assert not hasattr(transformers, "BertForTea")


def test_an_exchanged_head_is_found(pruned: Path) -> None:
    change_json(pruned / "config.json", pruned_heads={"0": [2], "1": [2]})
    with pytest.raises(StorageError, match=r"config\.json was changed after headroles wrote it"):
        load_encoder(pruned)


def test_a_missing_record_is_warned_of(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    warnings = load_encoder(pruned).description.warnings
    assert any("has no run record" in one for one in warnings)


@pytest.mark.parametrize(
    "heads",
    [
        *({"0": [1.5]}, {"0": [1, 1]}, {"0": [True]}, {"0": ["1"]}, {"0": "12"}, {"x": [1]}, [1]),
        {"0": [float("inf")]},
    ],
)
def test_heads_that_are_no_numbers(pruned: Path, heads: Any) -> None:
    (pruned / "run.json").unlink()
    change_json(pruned / "config.json", pruned_heads=heads)
    with pytest.raises(ModelError, match="it must name heads by layer"):
        load_encoder(pruned)


def test_integers_are_no_weights(pruned: Path) -> None:
    (pruned / "run.json").unlink()
    weights = load_file(pruned / "model.safetensors")
    name = next(name for name in weights if "query.weight" in name)
    weights[name] = weights[name].to(torch.int8)
    save_file(weights, pruned / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"query\.weight in .* is of type I8; weights must be"):
        load_encoder(pruned)


def test_weights_of_another_model_beside(pruned: Path, copied: Path) -> None:
    shutil.copy(pruned / "model.safetensors", copied)
    with pytest.raises(StorageError, match=r"holds model\.safetensors, which run\.json does not"):
        load_encoder(copied)


def test_weights_that_headroles_did_not_write_are_not_written_beside(
    bert_folder: Path, low_rank: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bert_folder, tmp_path / "theirs")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(StorageError, match=r"holds model\.safetensors, which headroles did not"):
        CollaborativeModel.load(low_rank).save(folder, overwrite=True)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_model_is_not_written_over_itself(pruned: Path) -> None:
    with (
        pytest.raises(StorageError, match="is the folder of the model itself"),
        model_folder(pruned, str(pruned), [PrunedModel], overwrite=True),
    ):
        pytest.fail("the block must not run")


def test_a_table_does_not_replace_a_model(pruned: Path) -> None:
    with (
        pytest.raises(StorageError, match="holds pruned model, which a importance would replace"),
        new_folder(pruned, [Importance], overwrite=True),
    ):
        pytest.fail("the block must not run")


def test_a_model_that_a_killed_run_committed_is_read_where_it_lies(
    pruned: Path, tmp_path: Path
) -> None:
    names, out = sorted(file.name for file in pruned.iterdir()), tmp_path / "out"
    (out / HIDDEN).mkdir(parents=True)
    shutil.copytree(pruned, out / HIDDEN / "done")
    assert load_encoder(out).identity == load_encoder(pruned).identity
    assert sorted(file.name for file in out.iterdir()) == [HIDDEN]
    shutil.copy(pruned / "model.safetensors", out)  # the run was killed later
    with model_folder(out, None, [PrunedModel], overwrite=True):
        assert sorted(file.name for file in out.iterdir()) == [HIDDEN, *names]


def test_ranks_that_the_weights_do_not_have(copied: Path) -> None:
    (copied / "run.json").unlink()
    modules = json.loads((copied / "low_rank.json").read_text())["modules"]
    path, own = next(iter(modules.items()))
    for rank in (50_000_000_000, 17, -1, 1.5, "x", None):
        changed = {**modules, path: {**own, "rank": rank}}
        change_json(copied / "low_rank.json", modules=changed)
        found = r"asks for \d+.* weights" if rank == 50_000_000_000 else "make it again with"
        with pytest.raises(ModelError, match=found):
            load_model(copied)


def test_sizes_that_no_weights_bear_out(copied: Path) -> None:
    """Without weights to compare with, no memory is taken for what config.json asks for."""
    (copied / "run.json").unlink()
    change_json(copied / "config.json", vocab_size=10**8)
    next(copied.glob("*.safetensors")).unlink()
    with pytest.raises(ModelError, match=r"asks for \d+.* weights"):
        load_model(copied)


@pytest.mark.parametrize(
    "changed", [{"pad_token_id": 10**9}, {"vocab_size": 0}, {"hidden_size": 0}]
)
def test_a_configuration_that_no_model_can_have(changed: dict[str, int], copied: Path) -> None:
    (copied / "run.json").unlink()
    change_json(copied / "config.json", **changed)
    with pytest.raises(ModelError, match=r"cannot be loaded .*; make it again with"):
        load_model(copied)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_reported(low_rank: Path, tmp_path: Path) -> None:
    whole = PrunedModel(make_bert(), make_tokenizer(), Record())
    models = (whole, CollaborativeModel.load(low_rank))
    for number, made in enumerate(models):
        with (
            files_of_at_most(20_000),
            pytest.raises(StorageError, match=r"cannot be written: .*File too large"),
        ):
            made.save(tmp_path / str(number))
        assert not (tmp_path / str(number)).exists()


def test_overwriting_leaves_no_weights_of_another_kind(pruned: Path, low_rank: Path) -> None:
    made = CollaborativeModel.load(low_rank)
    made.save(pruned, overwrite=True)
    names = {file.name for file in pruned.iterdir()}
    assert "low_rank.safetensors" in names
    assert "model.safetensors" not in names
