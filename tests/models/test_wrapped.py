"""Models inside other objects: taken out of known wrappers, named in the refusal of others.

Wrappers of packages that tests do not need have stand-ins: classes of modules of the same name.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from headroles import SavedAttention, score_heads
from headroles.errors import HeadRolesError, ModelError, ModelSupportError, UsageError
from headroles.models.loading.encoder import check_is_model, function_of, load_encoder
from headroles.models.loading.wrapped import with_plain_layers
from headroles.models.options import ModelOptions
from tests.conftest import make_bert, make_tokenizer
from tests.models.test_functions import SENTENCES

TOKENIZER = make_tokenizer()
QUERY = "encoder.layer.1.attention.self.query"
OUTPUT = "encoder.layer.1.attention.output.dense"


def of_package(name: str) -> Callable[[type], type]:
    """Make a stand-in for a class of a package."""

    def rename(kind: type) -> type:
        kind.__module__ = name
        return kind

    return rename


@of_package("peft.tuners.lora.layer")
class LowRank(nn.Module):
    """A layer with an adapter."""

    def __init__(self, base_layer: nn.Linear) -> None:
        super().__init__()
        self.base_layer, self.merged, self.disable_adapters = base_layer, False, False
        draw = torch.Generator().manual_seed(1)
        self.change = nn.Parameter(torch.randn(base_layer.weight.shape, generator=draw))

    def forward(self, states: Tensor) -> Any:
        change = 0 if self.merged or self.disable_adapters else states @ self.change.T
        return self.base_layer(states) + change

    def merge(self) -> None:
        if not self.merged:
            self.base_layer.weight.data += self.change
        self.merged = True

    def unmerge(self) -> None:
        self.base_layer.weight.data -= self.change
        self.merged = False

    def get_base_layer(self) -> nn.Module:
        return self.base_layer


@of_package("peft.utils.other")
class TrainedWhole(nn.Module):
    """A layer beside which another one was trained."""

    def __init__(self, original_module: nn.Linear) -> None:
        super().__init__()
        self.original_module, self.disable_adapters = original_module, False
        self.trained = copy.deepcopy(original_module)
        nn.init.zeros_(self.trained.weight)

    def unload_and_optionally_merge_module(
        self, merge: bool, safe_merge: bool, adapter_names: None
    ) -> nn.Module:
        return self.trained


@of_package("peft.tuners.lora.model")
class LoraModel(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


@of_package("peft.peft_model")
class PeftModel(nn.Module):
    def __init__(self, base_model: nn.Module, **config: Any) -> None:
        super().__init__()
        self.base_model = base_model
        self.peft_config = {"default": SimpleNamespace(**config)}


@of_package("sentence_transformers.models")
class Encoding(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.auto_model = model


@of_package("sentence_transformers.SentenceTransformer")
class SentenceTransformer(nn.Sequential):
    tokenizer = TOKENIZER


@of_package("sentence_transformers.cross_encoder")
class CrossEncoder:
    """As it was before it became a module."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.tokenizer = model, TOKENIZER


class Around(nn.Module):
    """A module of a user's own."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, pieces: Any) -> Any:
        raise RuntimeError("no attention")


def scores(model: Any, **options: Any) -> Any:
    given = {"pairing": "none", "roles": ["self", "delimiter"], **options}
    return score_heads(model, SENTENCES, **given).values


def with_adapters(model: Any, kind: type = LowRank, *paths: str) -> Any:
    for path in paths or (QUERY, OUTPUT):
        parent, _, name = path.rpartition(".")
        layer = model.get_submodule(path)
        setattr(model.get_submodule(parent), name, kind(layer))
    return model


def compiled(model: Any) -> Any:
    model.compile(backend="eager")
    return model


def piped(model: Any) -> Any:
    return hf.pipeline("feature-extraction", model=model, tokenizer=TOKENIZER)


WRAPPERS: list[tuple[Callable[[Any], Any], bool]] = [
    (nn.DataParallel, False),
    (torch.compile, False),
    (compiled, False),
    (piped, True),
    (lambda model: PeftModel(LoraModel(model)), False),
    (LoraModel, False),
    (lambda model: SentenceTransformer(Encoding(model), nn.Identity()), True),
    (CrossEncoder, True),
    (lambda model: torch.compile(nn.DataParallel(PeftModel(LoraModel(model)))), False),
    (lambda model: nn.DataParallel(SentenceTransformer(Encoding(model))), True),
]


@pytest.mark.parametrize("measure", ["weights", "norms"])
@pytest.mark.parametrize(("wrap", "knows_its_tokenizer"), WRAPPERS)
def test_models_in_wrappers_are_read_as_they_are(
    wrap: Callable[[Any], Any], knows_its_tokenizer: bool, measure: str
) -> None:
    options = {} if knows_its_tokenizer else {"tokenizer": TOKENIZER}
    wrapped = wrap(make_bert())
    found = scores(wrapped, measure=measure, **options)
    expected = scores(make_bert(), measure=measure, tokenizer=TOKENIZER)
    assert np.array_equal(found, expected, equal_nan=True)
    assert function_of(wrapped) is None
    check_is_model(wrapped)


def test_a_wrapped_classifier_comes_with_its_head() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = hf.BertConfig(**sizes, intermediate_size=8, vocab_size=128)
    model = hf.BertForSequenceClassification(config).eval()
    options = ModelOptions(tokenizer=TOKENIZER)
    assert load_encoder(nn.DataParallel(model), options, "classification").model is model
    with pytest.raises(ModelError, match="nothing trained on top"):
        load_encoder(nn.DataParallel(model.bert), options, "classification")


@pytest.mark.parametrize("measure", ["weights", "norms"])
@pytest.mark.parametrize("state", ["on", "merged", "off", "merged and off"])
def test_adapters_count_as_far_as_they_are_on(state: str, measure: str) -> None:
    expected = make_bert()
    if "off" not in state:
        for path in (QUERY, OUTPUT):
            layer: Any = expected.get_submodule(path)
            layer.weight.data += LowRank(layer).change
    model = with_adapters(make_bert())
    for path in (QUERY, OUTPUT):
        adapter = model.get_submodule(path)
        if "merged" in state:
            adapter.merge()
        adapter.disable_adapters = "off" in state
    before = {name: values.clone() for name, values in model.state_dict().items()}
    for given in (model, PeftModel(LoraModel(model))):
        found = scores(given, measure=measure, tokenizer=TOKENIZER)
        reference = scores(expected, measure=measure, tokenizer=TOKENIZER)
        # weights that were merged and are taken apart again are rounded
        np.testing.assert_allclose(found, reference, rtol=2e-5, atol=2e-5)
    assert before.keys() == model.state_dict().keys()  # the model itself is as it was
    assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())


@pytest.mark.parametrize("is_off", [False, True])
def test_layers_that_were_trained_whole_take_their_place(is_off: bool) -> None:
    model = with_adapters(make_bert(), TrainedWhole, QUERY)
    model.get_submodule(QUERY).disable_adapters = is_off
    model._hf_peft_config_loaded = True
    plain: Any = with_plain_layers(model)
    assert plain.get_submodule(QUERY).weight.any() == is_off
    assert plain.state_dict().keys() == make_bert().state_dict().keys()
    assert not getattr(plain, "_hf_peft_config_loaded", False)
    assert with_plain_layers(plain) is plain


def test_adapters_that_cannot_be_merged_are_named() -> None:
    model = with_adapters(make_bert(), LowRank, QUERY)
    model.get_submodule(QUERY).merge = None
    with pytest.raises(ModelSupportError, match=rf"the adapter {QUERY} \(LowRank\) cannot be mer"):
        scores(model, tokenizer=TOKENIZER)


def quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that quantize_dynamic moves to another package
        return torch.ao.quantization.quantize_dynamic(make_bert(), {nn.Linear}, torch.qint8)


OTHERS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: Around(encoder=make_bert()),
        r"^Around is no model of transformers; give the one inside, encoder \(BertModel\), with",
    ),
    (
        lambda: Around(inner=Around(encoder=make_bert())),
        r"the one inside, inner\.encoder \(BertModel\)",
    ),
    (
        lambda: nn.DataParallel(Around(query=make_bert(), text=make_bert())),
        r"one of those inside, query \(BertModel\), text \(BertModel\)",
    ),
    (
        lambda: SentenceTransformer(Encoding(make_bert()), Encoding(make_bert())),
        r"one of those inside, 0\.auto_model \(BertModel\), 1\.auto_model",
    ),
    (
        lambda: SentenceTransformer(nn.Identity()),
        "SentenceTransformer is no model of transformers; give a model of transformers",
    ),
    (
        lambda: SimpleNamespace(model=make_bert(), steps=3),
        r"SimpleNamespace is no model .*, model \(BertModel\)",
    ),
    (lambda: hf.BertModel, "BertModel is a class; give an object of it"),
    (lambda: TOKENIZER, "is a tokenizer; give the model first"),
    (lambda: None, "the model is of type NoneType; give a folder"),
    (lambda: make_bert().state_dict(), "the model is of type OrderedDict"),
    (
        lambda: PeftModel(make_bert(), is_prompt_learning=True),
        r"PeftModel puts vectors .* \(SimpleNamespace\), .* give model\.get_base_model\(\)",
    ),
    (quantized, r"the BertModel is quantized: .*self\.query is a torch\.ao\.nn\.quantized"),
    (Around, r"Around raised an error .*\(RuntimeError: no attention\); it must take a dict"),
]


@pytest.mark.parametrize(("make", "message"), OTHERS)
def test_what_is_no_model_is_refused_by_name(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(HeadRolesError, match=message) as refused:
        scores(make(), tokenizer=TOKENIZER)
    assert "\n" not in str(refused.value)


def test_objects_that_compute_attention_are_functions() -> None:
    class Own:
        """It may hold a model, as a function may."""

        def __init__(self) -> None:
            self.model = make_bert()

        def __call__(self, pieces: Any) -> Any:
            self.model.set_attn_implementation("eager")
            inputs = {name: torch.from_numpy(array) for name, array in pieces.items()}
            with torch.no_grad():
                return self.model(**inputs, output_attentions=True).attentions

    class OwnModule(nn.Module):
        def forward(self, pieces: Any) -> Any:
            return Own()(pieces)

    expected = scores(make_bert(), tokenizer=TOKENIZER)
    for own in (Own(), OwnModule()):
        found = scores(own, tokenizer=TOKENIZER)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    saved = SavedAttention({"a": np.ones((1, 1, 2, 2)) / 2}, {"a": [0, 1]})
    for given in (Own(), saved):
        with pytest.raises(UsageError, match="gives attention weights alone"):
            check_is_model(given)
