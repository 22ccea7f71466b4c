"""Encoders that are read by the attentions that they return, code of their own included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BigBirdConfig,
    BigBirdModel,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutput

from headroles.errors import ModelError, ModelSupportError
from headroles.models.attention.reader import open_reader
from headroles.models.families import encoder_of
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from tests.conftest import change_json, make_tokenizer
from tests.models import families
from tests.models.families import make_model
from tests.models.test_attention import LENGTHS, capture, hooks, make_inputs
from tests.rounding import WEIGHTS, assert_same_sums

LAYERS, HEADS, WIDTH = 3, 2, 8


class OwnConfig(PreTrainedConfig):
    """A configuration with names of its own."""

    model_type = "own"


class Attending(nn.Module):
    """Self-attention that returns its weights if it is asked for them."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.projection, self.kind = nn.Linear(WIDTH, 3 * WIDTH), kind

    def forward(self, states: Tensor, mask: Tensor, asked: bool) -> Any:
        parts = self.projection(states).view(*states.shape[:2], 3, HEADS, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.mT * 4
        if self.kind != "ignores padding":
            scores = scores.masked_fill(~mask[:, None, None].bool(), -torch.inf)
        weights = scores.softmax(-1)
        if self.kind == "sink":
            weights = weights / (1 + weights.amax(-1, keepdim=True))
        mixed = (weights @ value).transpose(1, 2).flatten(2)
        if self.kind == "neighbours":
            mixed = mixed + states.mean(1, keepdim=True)
        return (mixed, weights) if asked else (mixed,)


class OwnModel(PreTrainedModel):
    """An encoder whose code transformers does not know."""

    config_class = OwnConfig

    def __init__(self, config: OwnConfig, kind: str = "") -> None:
        super().__init__(config)
        self.kind, self.embeddings = kind, nn.Embedding(128, WIDTH)
        self.layers = nn.ModuleList(Attending(kind) for _ in range(LAYERS))
        self.post_init()
        torch.manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, output_attentions: bool = False
    ) -> BaseModelOutput:
        states, returned = self.embeddings(input_ids), []
        for layer in self.layers:
            mixed, *weights = layer(states, attention_mask, output_attentions)
            states = torch.tanh(states + mixed)
            returned += weights
        if self.kind == "returns none":
            return BaseModelOutput(last_hidden_state=states)
        return BaseModelOutput(
            last_hidden_state=states, attentions=tuple(returned) if output_attentions else None
        )


def own(kind: str = "") -> PreTrainedModel:
    return OwnModel(OwnConfig(), kind).eval()


def test_own_code_is_read_as_it_says() -> None:
    model, layers = own(), []
    before = hooks(model)
    with open_reader(model) as reader:
        for _ in range(2):
            layers.clear()
            reader.read(make_inputs(), lambda layer, weights: layers.append((layer, weights)))
        assert reader.read_through == "returned attentions"
        assert (reader.n_layers, reader.n_heads) == (LAYERS, HEADS)
    assert hooks(model) == before
    expected = model(**make_inputs(), output_attentions=True).attentions
    assert [layer for layer, _ in layers] == list(range(LAYERS))
    for (_, ours), theirs in zip(layers, expected, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("kind", "query", "key"),
    [
        ("xlm", "attentions.{}.q_lin", "attentions.{}.k_lin"),
        ("flaubert", "attentions.{}.q_lin", "attentions.{}.k_lin"),
        ("fsmt", "encoder.layers.{}.self_attn.q_proj", "encoder.layers.{}.self_attn.k_proj"),
        ("prophetnet", "layers.{}.self_attn.query_proj", "layers.{}.self_attn.key_proj"),
    ],
)
def test_weights_are_the_softmax_of_products_of_queries_and_keys(
    kind: str, query: str, key: str
) -> None:
    """Computed anew from the hidden states and the projections of each layer."""
    model, inputs, states = encoder_of(make_model(kind)), make_inputs(), []
    projections = [
        [model.get_submodule(path.format(layer)) for path in (query, key)]
        for layer in range(families.LAYERS)
    ]
    for queries, _ in projections:
        queries.register_forward_pre_hook(lambda _, given: states.append(given[0]))
    with torch.no_grad():
        model(**inputs)
    for layer, weights in enumerate(capture(model, inputs)):
        hidden = states[layer].transpose(0, 1) if kind == "fsmt" else states[layer]
        products = [
            (hidden @ linear.weight.T + linear.bias).view(2, -1, families.HEADS, 8).transpose(1, 2)
            for linear in projections[layer]
        ]
        scores = products[0] @ products[1].mT / 8**0.5
        padding = inputs["attention_mask"][:, None, None] == 0
        expected = scores.masked_fill(padding, -torch.inf).softmax(-1)
        for row, length in enumerate(LENGTHS):
            assert_same_sums(weights[row, :, :length], expected[row, :, :length], of=WEIGHTS)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("sink", r"in layer 0, head 0, .* sum to .* sink .* divide rows by their sums; .* to 1"),
        ("ignores padding", r"in layer \d, head 0, .* sum to .* sum to 1 over the pieces that are"),
        ("neighbours", "gives other attention .* in layer 1 if another sentence is beside it"),
        ("returns none", "returns no attentions with output_attentions=True"),
    ],
)
def test_unreadable_attention_is_refused(kind: str, reason: str) -> None:
    with pytest.raises(ModelSupportError, match=reason), open_reader(own(kind)):
        pass


def test_a_model_that_needs_more_than_tokens_is_refused() -> None:
    model = make_model("xmod")
    model.set_default_language("en_XX")
    model.config.default_language = "de_XX"  # which the model does not have
    refused = pytest.raises(ModelSupportError, match="cannot be run on tokens and a mask alone")
    with refused, open_reader(model):
        pass


def test_big_bird_with_full_attention_is_read() -> None:
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
    config = BigBirdConfig(vocab_size=60, attention_type="original_full", **sizes)
    with open_reader(BigBirdModel(config).eval()) as reader:
        assert reader.n_heads == 2


def test_code_that_comes_with_a_model_is_run_when_it_is_asked_for(tmp_path: Path) -> None:
    """A folder with a configuration and a model of its own, which nothing else knows."""
    source = Path(__file__).read_text(encoding="utf-8")
    code = source[: source.index("def own(")].split("\nfrom headroles", 1)
    imports, rest = code[0], code[1].split("\n\nLAYERS", 1)[1]
    (tmp_path / "theirs.py").write_text(f"{imports}\n\nLAYERS{rest}".replace("import pytest\n", ""))
    model = own()
    model.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    mapped = {"AutoConfig": "theirs.OwnConfig", "AutoModel": "theirs.OwnModel"}
    change_json(tmp_path / "config.json", auto_map=mapped)
    with pytest.raises(ModelError, match="give trust_remote_code=True") as refused:
        load_encoder(tmp_path)
    assert "\n" not in str(refused.value)
    loaded = load_encoder(tmp_path, ModelOptions(trust_remote_code=True))
    assert type(loaded.model).__module__.startswith("transformers_modules.")
    with open_reader(loaded.model) as reader:
        assert (reader.read_through, reader.n_layers) == ("returned attentions", LAYERS)
    found, expected = (capture(one, make_inputs()) for one in (loaded.model, model))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
