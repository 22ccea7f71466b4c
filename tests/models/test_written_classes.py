"""Every class of every family: written by headroles, read by transformers alone."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from transformers import PreTrainedModel

from headroles.models.families import encoder_of
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.models.loading.encoder import load_model
from headroles.models.loading.saved_models import PrunedModel
from headroles.models.loading.weights import ENCODER, read_model
from headroles.models.options import ModelOptions
from headroles.record import Record
from tests.conftest import make_tokenizer
from tests.models.families import CONFIGS, HALVES, PROJECTED, make_whole
from tests.models.test_surgery import A_LAYER, SOME, of_family
from tests.rounding import assert_same_outputs

TOKENIZER = make_tokenizer()
WITHOUT_ENCODER = ("Decoder", "ForCausalLM")
OTHERS = (
    *("Entity", "MultipleChoice", "PreTraining", "Pretrained"),
    *("QuestionAnswering", "TokenClassification", "NextSentence"),  # heads as of sequences
)


def classes_of(kind: str) -> list[str]:
    """Classes of a family that have an encoder and can be run on tokens."""
    name = CONFIGS[kind][0]
    module = sys.modules[
        getattr(hf, f"{name}Model", getattr(hf, f"{name}Encoder", None)).__module__
    ]
    found = []
    for public in module.__all__:
        made = getattr(module, public)
        is_model = isinstance(made, type) and issubclass(made, PreTrainedModel)
        if not is_model or made.__name__.endswith("PreTrainedModel"):
            continue
        if made.config_class.__name__ != f"{name}Config":
            continue
        if not any(word in public for word in (*WITHOUT_ENCODER, *OTHERS)):
            found.append(public.removeprefix(name))
    return found


CLASSES = [(kind, task) for kind in PROJECTED for task in classes_of(kind)]


def outputs(model: PreTrainedModel) -> torch.Tensor:
    """First outputs of a model on two sequences, the second one with padding."""
    ids = torch.arange(8, 32).view(2, 12)
    if "ForSequenceClassification" in type(model).__name__ and model.config.is_encoder_decoder:
        ids[:, -1] = model.config.eos_token_id
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        given["decoder_input_ids"] = ids
    with torch.no_grad():
        return model(**given)[0]


@pytest.mark.parametrize(("kind", "task"), CLASSES)
def test_every_class_is_read_as_it_was_written(kind: str, task: str, tmp_path: Path) -> None:
    zeroed, heads = make_whole(kind, task), of_family(kind, SOME + A_LAYER)
    zero_heads(zeroed, heads)
    PrunedModel(zeroed, TOKENIZER, Record()).write_files(tmp_path / "zeroed")
    read, report = type(zeroed).from_pretrained(tmp_path / "zeroed", output_loading_info=True)
    assert not any(report[found] for found in ("missing_keys", "unexpected_keys"))
    assert not report["mismatched_keys"]
    assert_same_outputs(outputs(read), outputs(zeroed))
    if task != classes_of(kind)[0]:
        return
    removed = make_whole(kind, task)
    remove_heads(removed, heads)
    PrunedModel(removed, TOKENIZER, Record()).write_files(tmp_path / "removed")
    smaller = load_model(tmp_path / "removed")
    assert type(smaller) is type(zeroed)
    assert_same_outputs(outputs(smaller), outputs(removed))
    encoder = read_model(str(tmp_path / "removed"), ModelOptions(), ENCODER)[0]
    assert encoder_of(encoder) is encoder or kind not in HALVES
