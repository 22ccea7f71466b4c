"""Captured attention equals that of transformers, for every family, and leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    PreTrainedModel,
    T5GemmaConfig,
    T5GemmaModel,
    T5GemmaModuleConfig,
)

from headroles.errors import ModelError, ModelSupportError
from headroles.models.attention.interface import INTERFACE_NAME
from headroles.models.attention.reader import open_reader
from headroles.models.families import FAMILIES, INTERFACE, RETURNED, encoder_of
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from tests.conftest import make_bert, make_tokenizer
from tests.models.families import (
    CONFIGS,
    HALVES,
    HEADS,
    LAYERS,
    OLD_T5,
    UNKNOWN,
    make_model,
    make_whole,
)
from tests.rounding import SUMS, WEIGHTS, assert_same_sums, tolerance

LENGTHS = (12, 7)
ALONE = ("convbert", "nystromformer")
"""Families whose convolutions see the padding: each of their sequences is run by itself."""


def make_inputs() -> dict[str, Tensor]:
    """Two sequences, the second padded."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (2, LENGTHS[0]), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, LENGTHS[1] :] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def capture(model: PreTrainedModel, inputs: dict[str, Tensor]) -> list[Tensor]:
    """Weights of all layers; their numbers must come in order."""
    layers: dict[int, Tensor] = {}
    with open_reader(model) as reader:
        reader.read(inputs, lambda layer, weights: layers.update({layer: weights.clone()}))
    assert list(layers) == list(range(LAYERS))
    return list(layers.values())


def expected_weights(model: PreTrainedModel, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Attention weights by transformers, which returns scores in their place for some families."""
    kind, encoder = model.config.model_type, encoder_of(model)
    if kind in ALONE:
        return _expected_one_by_one(encoder, inputs)
    found = encoder(**inputs, output_attentions=True).attentions
    is_scores = kind in ("squeezebert", "prophetnet")
    return tuple(one.softmax(-1) for one in found) if is_scores else found


def _expected_one_by_one(encoder: PreTrainedModel, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    longest = max(LENGTHS)
    expected = tuple(torch.zeros(2, HEADS, longest, longest) for _ in range(LAYERS))
    for row, length in enumerate(LENGTHS):
        alone = {name: one[row : row + 1, :length] for name, one in inputs.items()}
        found = encoder(**alone, output_attentions=True).attentions
        for full, own in zip(expected, found, strict=True):
            full[row, :, :length, :length] = own[0]
    return expected


def hooks(model: PreTrainedModel) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_every_listed_family_is_checked_here() -> None:
    assert {*CONFIGS, *UNKNOWN} == set(FAMILIES)


@pytest.mark.parametrize("kind", CONFIGS)
class TestEveryFamily:
    @pytest.mark.numbers
    def test_weights_are_those_of_transformers(self, kind: str) -> None:
        model, inputs = make_model(kind), make_inputs()
        captured = capture(model, inputs)
        with torch.no_grad():
            expected = expected_weights(model, inputs)
        # Products of other shapes are added up in another order.
        of = WEIGHTS if kind in ALONE else SUMS
        for ours, theirs in zip(captured, expected, strict=True):
            for row, length in enumerate(LENGTHS):
                assert_same_sums(ours[row, :, :length], theirs[row, :, :length], of=of)
                assert not ours[row, :, :length, length:].any()  # padding

    def test_no_device_is_waited_for(self, kind: str) -> None:
        if FAMILIES[kind].read_through == RETURNED or kind in ("xmod", *OLD_T5):
            pytest.skip("its own code may look at values")  # none of them has windows
        model, layers = make_model(kind), []
        with open_reader(model) as reader:
            has_windows = kind in ("modernbert", "neomme", "t5gemma2")
            assert (set(reader.reaches) == {None}) != has_windows
            model.to("meta")  # where nothing has a value, and asking for one fails
            inputs = {name: one.to("meta") for name, one in make_inputs().items()}
            reader.read(inputs, lambda layer, weights: layers.append(weights.shape))
        assert layers == [(2, HEADS, LENGTHS[0], LENGTHS[0])] * LAYERS

    def test_batch_equals_sequences_one_by_one(self, kind: str) -> None:
        model, inputs = make_model(kind), make_inputs()
        together = capture(model, inputs)
        for row, length in enumerate(LENGTHS):
            alone = capture(
                model, {name: values[row : row + 1, :length] for name, values in inputs.items()}
            )
            for ours, theirs in zip(together, alone, strict=True):
                assert_same_sums(ours[row, :, :length, :length], theirs[0], of=WEIGHTS)

    def test_sdpa_and_eager_models_agree_and_are_left_alone(self, kind: str) -> None:
        results = []
        for attention in ("eager", "sdpa"):
            model = make_model(kind, attention=attention)
            with torch.no_grad():
                encoder_of(model)(**make_inputs(), output_attentions=True)  # adds transformers' own
                outputs = model(**make_inputs())[0]
            before = model.config._attn_implementation, hooks(model)
            results.append(capture(model, make_inputs()))
            assert (model.config._attn_implementation, hooks(model)) == before
            with torch.no_grad():
                assert torch.equal(model(**make_inputs())[0], outputs)
        for eager, sdpa in zip(*results, strict=True):
            assert torch.equal(eager, sdpa)

    def test_task_models_are_read_through_their_encoder(self, kind: str) -> None:
        task = "ForQuestionAnswering"
        if kind in ("eurobert", "nomic_bert"):
            task = "ForTokenClassification"
        if kind == "neomme":
            task = "ForMaskedLM"
        model = make_whole(kind, "Model" if kind in HALVES else task)
        with torch.no_grad():
            expected = expected_weights(model, make_inputs())
        for ours, theirs in zip(capture(model, make_inputs()), expected, strict=True):
            assert_same_sums(ours[0], theirs[0])

    def test_half_precision_is_read_in_float32(self, kind: str) -> None:
        model = make_model(kind).bfloat16()
        for weights in capture(model, make_inputs()):
            assert weights.dtype == torch.float32
            assert weights[0].sum(-1) == pytest.approx(1, abs=tolerance())


def test_scores_that_are_capped_are_read_as_such() -> None:
    part = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "head_dim": 8}
    part |= {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 60, "pad_token_id": 0}
    part |= {"num_key_value_heads": 2, "attn_logit_softcapping": 0.5, "layer_types": None}
    config = T5GemmaConfig(encoder=T5GemmaModuleConfig(**part), decoder=part, vocab_size=60)
    config._attn_implementation = "eager"
    model = T5GemmaModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        expected = expected_weights(model, make_inputs())
    for ours, theirs in zip(capture(model, make_inputs()), expected, strict=True):
        assert_same_sums(ours[0], theirs[0])


def test_training_mode_is_refused(bert: PreTrainedModel) -> None:
    with pytest.raises(ModelError, match=r"training mode.*eval"), open_reader(bert.train()):
        pass


def test_model_is_restored_after_an_error(bert: PreTrainedModel) -> None:
    before = bert.config._attn_implementation

    def fail(layer: int, weights: Tensor) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), open_reader(bert) as reader:
        reader.read(make_inputs(), fail)
    assert bert.config._attn_implementation == before != INTERFACE_NAME


def test_nan_in_attention_is_found(bert: PreTrainedModel) -> None:
    torch.nn.init.constant_(bert.encoder.layer[1].attention.self.query.weight, float("nan"))
    with pytest.raises(ModelError, match="layer 1 is not finite"), open_reader(bert):
        pass


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(ModelSupportError, match="the bert model has no layers"):
        load_encoder(make_bert(layers=0), ModelOptions(tokenizer=make_tokenizer()))
    no_layers = pytest.raises(ModelSupportError, match="num_hidden_layers is 0")
    with no_layers, open_reader(make_bert(layers=0)):
        pass


def test_layers_with_several_attentions_are_refused() -> None:
    sizes = {"vocab_size": 60, "hidden_size": 8, "embedding_size": 8, "intermediate_size": 8}
    layers = {"num_hidden_layers": 3, "num_attention_heads": 2, "inner_group_num": 2}
    config = AlbertConfig(**sizes, **layers)
    message = (
        r"seen 6 times through the returned attentions of a model of 3 layers, with \[2\] heads"
    )
    with pytest.raises(ModelSupportError, match=message), open_reader(AlbertModel(config).eval()):
        pass


def test_attention_of_its_own_kind_is_read_by_what_the_model_returns(
    bert: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A family whose own code computes something else must not be read as if it did not."""
    from transformers.models.bert import modeling_bert

    usual = modeling_bert.eager_attention_forward

    def sharper(module: nn.Module, query: Tensor, *given: Any, **named: Any) -> Any:
        return usual(module, 2 * query, *given, **named)

    before = capture(bert, make_inputs())
    monkeypatch.setattr(modeling_bert, "eager_attention_forward", sharper)
    with open_reader(bert) as reader:
        assert reader.read_through == "returned attentions"
    bert.set_attn_implementation("eager")
    with torch.no_grad():
        expected = bert(**make_inputs(), output_attentions=True).attentions
    for ours, theirs, usually in zip(capture(bert, make_inputs()), expected, before, strict=True):
        assert torch.equal(ours[0], theirs[0])
        assert not torch.allclose(ours[0], usually[0], atol=1e-3)


@pytest.mark.parametrize("kind", ["modernbert", "t5gemma2"])
def test_reaches_are_where_the_attention_ends(kind: str) -> None:
    """A window in two layers of three, none in the other."""
    model = make_model(kind)
    n = 24
    inputs = {"input_ids": torch.arange(5, 5 + n)[None], "attention_mask": torch.ones(1, n).long()}
    with open_reader(model) as reader:
        reaches = reader.reaches
    assert set(reaches) == {None, 4}
    distance = torch.arange(n)[:, None].sub(torch.arange(n)).abs()
    for reach, weights in zip(reaches, capture(model, inputs), strict=True):
        seen = weights[0].amax(0) > 0
        inside = distance <= (n if reach is None else reach)
        assert not (seen & ~inside).any()
        if kind == "modernbert":  # the other's window has one place less before than behind
            assert torch.equal(seen, inside)
        assert distance[seen].max() == (n - 1 if reach is None else reach)


def test_a_window_of_unknown_width_is_not_read_through_the_interface(bert: PreTrainedModel) -> None:
    module = bert.encoder.layer[0].attention.self
    module.register_forward_pre_hook(
        lambda _, given, named: (given, {**named, "sliding_window": 4}), with_kwargs=True
    )
    with open_reader(bert) as reader:
        assert reader.read_through == RETURNED

    bert.config.sliding_window = 4
    bert.config.layer_types = ["sliding_attention", *["full_attention"] * 2]
    with open_reader(bert) as reader:
        assert reader.read_through == INTERFACE
