"""Folders of models of low rank: every way of loading gives the model that was written."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, PreTrainedModel, Trainer, TrainingArguments

from headroles.errors import ModelError
from headroles.models.heads.low_rank import (
    RECORD_FILE,
    WEIGHTS_FILE,
)
from headroles.models.loading.encoder import load_encoder, load_model
from headroles.models.options import FACTOR_METHODS, PER_HEAD, SHARED
from tests.conftest import make_tokenizer
from tests.models.families import HEADS
from tests.models.test_attention import make_inputs
from tests.models.test_low_rank import (
    PLAIN,
    low_rank,
    outputs,
    with_biases,
    with_vocabulary,
)


def save(model: PreTrainedModel, folder: Path) -> Path:
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def make_and_save(task: str, folder: Path) -> PreTrainedModel:
    """A BERT of low rank with embeddings for the tokenizer, which is saved in a folder with it."""
    model = low_rank(with_vocabulary(with_biases("bert", task)), FACTOR_METHODS[0], 8)
    save(model, folder)
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_and_save("Model", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("kind", "method"), [*((kind, SHARED) for kind in PLAIN), ("bert", PER_HEAD)]
)
def test_what_was_written_is_loaded(kind: str, method: str, tmp_path: Path) -> None:
    model = low_rank(with_biases(kind), method, 2 * HEADS)
    folder = save(model, tmp_path / "model")
    loaded = load_model(folder)
    assert not loaded.training
    assert torch.equal(outputs(loaded), outputs(model))
    state, again = model.state_dict(), loaded.state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(values, again[name]) for name, values in state.items())


def test_a_task_head_stays(tmp_path: Path) -> None:
    model = make_and_save("ForSequenceClassification", tmp_path)
    whole = load_encoder(tmp_path, head=None)
    loaded = whole.model
    assert type(loaded) is type(model)
    assert whole.tokenizer.get_vocab() == make_tokenizer().get_vocab()
    with torch.no_grad():
        assert torch.equal(loaded(**make_inputs()).logits, model(**make_inputs()).logits)


def test_shared_weights_of_a_language_model_stay_shared(tmp_path: Path) -> None:
    model = low_rank(with_biases("bert", "ForMaskedLM"), FACTOR_METHODS[0], 8)
    folder = save(model, tmp_path / "model")
    with pytest.raises(ModelError, match=r"it is a BertForMaskedLM"):
        load_encoder(folder, head="classification")
    loaded = load_model(folder)
    with torch.no_grad():
        assert torch.equal(loaded(**make_inputs()).logits, model(**make_inputs()).logits)
    embeddings = loaded.get_input_embeddings().weight
    assert loaded.get_output_embeddings().weight is embeddings


def test_what_is_trained_is_saved_by_the_trainer(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    make_and_save("ForSequenceClassification", tmp_path / "model")
    network = load_model(tmp_path / "model")
    before = {name: values.clone() for name, values in network.named_parameters()}
    settings = TrainingArguments(
        output_dir=str(tmp_path / "trained"),
        max_steps=2,
        learning_rate=1e-2,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    examples = [{"input_ids": [1, 9, 8 + label, 2], "labels": label} for label in (0, 1)]
    trainer = Trainer(network, settings, train_dataset=examples, processing_class=make_tokenizer())
    trainer.train()
    trainer.save_model()
    state = load_model(tmp_path / "trained").state_dict()
    for name, values in network.eval().named_parameters():
        assert torch.equal(state[name], values)
        assert ".scores." not in name or not torch.equal(before[name], values)
    assert load_encoder(tmp_path / "trained", head="classification").max_tokens > 4


def test_parts_of_a_state_are_not_written(folder: Path, tmp_path: Path) -> None:
    model = load_model(folder)
    with pytest.raises(ModelError, match="written whole"):
        model.save_pretrained(tmp_path / "part", state_dict={})


def test_it_is_written_whole_through_its_class(folder: Path, tmp_path: Path) -> None:
    model = load_model(folder)
    type(model).save_pretrained(model, tmp_path / "again")
    assert torch.equal(outputs(load_model(tmp_path / "again")), outputs(model))


def test_its_memory_is_free_when_nothing_refers_to_it(folder: Path) -> None:
    model = load_model(folder)
    known = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert known() is None
    finally:
        gc.enable()


def test_transformers_does_not_load_it_with_weights_made_up(folder: Path) -> None:
    with pytest.raises(OSError, match="no file named"):
        AutoModel.from_pretrained(folder)


def test_broken_folders(folder: Path) -> None:
    changes: tuple[tuple[str, Callable[[bytes], bytes], str], ...] = (
        (WEIGHTS_FILE, lambda content: b"", ""),
        (WEIGHTS_FILE, lambda content: content[: len(content) // 2], ""),
        (RECORD_FILE, lambda content: content.replace(b'"rank": 8', b'"rank": 9'), ""),
        (RECORD_FILE, lambda content: b"{}", "missing required field .?modules"),
        (RECORD_FILE, lambda content: b'{"modules": 3}', r"got int - at .\$\.modules"),
        (RECORD_FILE, lambda content: content.replace(b'"rank": 8', b'"rank": -1'), r"\.rank"),
        (
            RECORD_FILE,
            lambda content: content.replace(b'"method": "', b'"method": "x'),
            r"at .\$\.modules\[\.\.\.\]\.method",
        ),
    )
    for name, change, found in changes:
        before = (folder / name).read_bytes()
        assert change(before) != before
        (folder / name).write_bytes(change(before))
        message = f"low rank in .*cannot be loaded.*{found}.*collaborate"
        with pytest.raises(ModelError, match=message):
            load_encoder(folder)
        (folder / name).write_bytes(before)
    (folder / WEIGHTS_FILE).unlink()
    with pytest.raises(ModelError, match=r"low rank in .*cannot be loaded.*collaborate"):
        load_encoder(folder)
