"""Captured attention and norms equal those of transformers, for every family."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import pytest
import torch
import transformers as hf
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelError, ModelSupportError
from headroles.models.attention.interface import INTERFACE_NAME
from headroles.models.attention.reader import NormReader, open_norms, open_reader
from headroles.models.families import FAMILIES, INTERFACE, RETURNED
from headroles.models.heads.linears import weight_of
from headroles.models.heads.projections import (
    LayerProjections,
    Projection,
    ValueReader,
    find_projections,
)
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.reach import EVERYTHING, Reach
from tests.conftest import make_bert
from tests.models import families, own_code
from tests.models.families import ALONE, CONFIGS, HEADS, LAYERS, PROJECTED, make_model, make_whole
from tests.rounding import SUMS, WEIGHTS, assert_same_outputs, assert_same_sums, tolerance

LENGTHS = (12, 7)


def make_inputs() -> dict[str, Tensor]:
    """Two sequences, the second padded."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (2, LENGTHS[0]), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, LENGTHS[1] :] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def alone(inputs: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """One sequence without its padding."""
    return {name: one[row : row + 1, : LENGTHS[row]] for name, one in inputs.items()}


def capture(model: PreTrainedModel, inputs: dict[str, Tensor]) -> list[Tensor]:
    """Weights of all layers; their numbers must come in order."""
    layers: dict[int, Tensor] = {}
    with open_reader(find_stack(model)) as reader:
        reader.read(inputs, lambda layer, weights: layers.update({layer: weights.clone()}))
    assert list(layers) == list(range(LAYERS))
    return list(layers.values())


@torch.no_grad()
def expected_weights(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Sequence[Tensor]:
    """Attention weights by transformers, which returns scores in their place for some families."""
    kind, stack = model.config.model_type, find_stack(model)
    encoder = stack.base
    if kind not in ALONE:
        found = encoder(**inputs, output_attentions=True).attentions
        return [one.softmax(-1) for one in found] if stack.family.returns_scores else found
    expected = torch.zeros(LAYERS, 2, HEADS, LENGTHS[0], LENGTHS[0])
    for row, length in enumerate(LENGTHS):
        found = encoder(**alone(inputs, row), output_attentions=True).attentions
        expected[:, row, :, :length, :length] = torch.cat(found)
    return list(expected)


def assert_same_as_theirs(model: PreTrainedModel, inputs: dict[str, Tensor]) -> None:
    """The first sequence, which has no padding."""
    for ours, theirs in zip(capture(model, inputs), expected_weights(model, inputs), strict=True):
        assert_same_sums(ours[0], theirs[0])


def hooks(model: PreTrainedModel) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_every_listed_family_is_checked_here() -> None:
    assert {*CONFIGS, *families.UNKNOWN} == set(FAMILIES)


@pytest.mark.parametrize("kind", CONFIGS)
class TestEveryFamily:
    @pytest.mark.numbers
    def test_weights_are_those_of_transformers(self, kind: str) -> None:
        """In a batch, and sequence by sequence."""
        model, inputs = make_model(kind), make_inputs()
        captured, expected = capture(model, inputs), expected_weights(model, inputs)
        # Products of other shapes are added up in another order.
        of = WEIGHTS if kind in ALONE else SUMS
        for row, length in enumerate(LENGTHS):
            by_themselves = capture(model, alone(inputs, row))
            for ours, theirs, by_itself in zip(captured, expected, by_themselves, strict=True):
                assert_same_sums(ours[row, :, :length], theirs[row, :, :length], of=of)
                assert_same_sums(ours[row, :, :length, :length], by_itself[0], of=WEIGHTS)
                assert not ours[row, :, :length, length:].any()  # padding

    def test_sdpa_and_eager_models_agree_and_are_left_alone(self, kind: str) -> None:
        results = []
        for attention in ("eager", "sdpa"):
            model = make_model(kind, attention=attention)
            with torch.no_grad():
                # transformers adds hooks of its own
                find_stack(model).base(**make_inputs(), output_attentions=True)
                outputs = model(**make_inputs())[0]
            before = model.config._attn_implementation, hooks(model)
            results.append(capture(model, make_inputs()))
            assert (model.config._attn_implementation, hooks(model)) == before
            with torch.no_grad():
                assert torch.equal(model(**make_inputs())[0], outputs)
        for eager, sdpa in zip(*results, strict=True):
            assert torch.equal(eager, sdpa)

    def test_task_models_are_read_through_their_encoder(self, kind: str) -> None:
        assert_same_as_theirs(make_whole(kind, families.task_of(kind)), make_inputs())

    def test_half_precision_is_read_in_float32(self, kind: str) -> None:
        model = make_model(kind).bfloat16()
        for weights in capture(model, make_inputs()):
            assert weights.dtype == torch.float32
            assert weights[0].sum(-1) == pytest.approx(1, abs=tolerance())


WITH_OWN_CODE = ("xmod", *families.OLD_T5)
"""Families that use the attention interface, but whose own code looks at values."""


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in CONFIGS
        if FAMILIES[kind].read_through != RETURNED and kind not in WITH_OWN_CODE
    ],
)
def test_no_device_is_waited_for(kind: str) -> None:
    model, layers = make_model(kind), []
    with open_reader(find_stack(model)) as reader:
        kinds_of_layers = getattr(model.config, "layer_types", None) or ()
        is_limited = FAMILIES[kind].is_decoder or "sliding_attention" in kinds_of_layers
        assert (set(reader.reaches) == {EVERYTHING}) != is_limited
        model.to("meta")  # where nothing has a value, and asking for one fails
        inputs = {name: one.to("meta") for name, one in make_inputs().items()}
        reader.read(inputs, lambda layer, weights: layers.append(weights.shape))
    assert layers == [(2, HEADS, LENGTHS[0], LENGTHS[0])] * LAYERS


def test_scores_that_are_capped_are_read_as_such() -> None:
    part = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "head_dim": 8}
    part |= {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 60, "pad_token_id": 0}
    part |= {"num_key_value_heads": 2, "attn_logit_softcapping": 0.5, "layer_types": None}
    config = hf.T5GemmaConfig(encoder=hf.T5GemmaModuleConfig(**part), decoder=part, vocab_size=60)
    config._attn_implementation = "eager"
    model = hf.T5GemmaModel(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    assert_same_as_theirs(model, make_inputs())


def test_model_is_restored_after_an_error(bert: PreTrainedModel) -> None:
    before = bert.config._attn_implementation

    with pytest.raises(ZeroDivisionError), open_reader(find_stack(bert)) as reader:
        reader.read(make_inputs(), lambda layer, weights: 1 / 0)
    assert bert.config._attn_implementation == before != INTERFACE_NAME


def with_two_in_a_layer() -> PreTrainedModel:
    sizes = {"vocab_size": 60, "hidden_size": 8, "embedding_size": 8, "intermediate_size": 8}
    layers = {"num_hidden_layers": 3, "num_attention_heads": 2, "inner_group_num": 2}
    return hf.AlbertModel(hf.AlbertConfig(**sizes, **layers)).eval()


def with_nan() -> PreTrainedModel:
    bert = make_bert()
    nn.init.constant_(bert.encoder.layer[1].attention.self.query.weight, float("nan"))
    return bert


def of_a_language_that_it_lacks() -> PreTrainedModel:
    model = make_model("xmod")
    model.set_default_language("en_XX")
    model.config.default_language = "de_XX"
    return model


OWN_CODE = (
    ("sink", r"in layer 0, head 0, .* sum to .* sink .* divide rows by their sums; .* to 1"),
    ("ignores padding", r"in layer \d, head 0, .* sum to .* sum to 1 over the pieces that are"),
    ("neighbours", "gives other attention .* in layer 1 if another sentence is beside it"),
    ("returns none", "returns no attentions with output_attentions=True"),
)


CUT = "this is the decoder of a .* model, cut out of it; give the whole model"
UNSUPPORTED: list[tuple[Callable[[], PreTrainedModel], str]] = [
    (lambda: make_bert(layers=0), "num_hidden_layers is 0"),
    (
        with_two_in_a_layer,
        r"seen 6 times through the returned attentions of a model of 3 layers, with \[2\] head",
    ),
    (of_a_language_that_it_lacks, "cannot be run on tokens and a mask alone"),
    *((partial(own_code.own, kind), message) for kind, message in OWN_CODE),
    (lambda: make_whole("bart", decoder_layers=LAYERS, decoder_attention_heads=HEADS).decoder, CUT),
    (lambda: make_whole("t5").decoder, CUT),
]
NOT_READY = [
    (lambda: make_bert().train(), r"training mode.*eval"),
    (with_nan, "layer 1 is not finite"),
]


@pytest.mark.parametrize(
    ("error", "make", "message"),
    [
        *((ModelSupportError, *row) for row in UNSUPPORTED),
        *((ModelError, *row) for row in NOT_READY),
    ],
)
def test_attention_that_cannot_be_read_is_refused(
    error: type[ModelError], make: Callable[[], PreTrainedModel], message: str
) -> None:
    with pytest.raises(error, match=message), open_reader(find_stack(make())):
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
    with open_reader(find_stack(bert)) as reader:
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
    model, n = make_model(kind), 24
    inputs = {"input_ids": torch.arange(5, 5 + n)[None], "attention_mask": torch.ones(1, n).long()}
    with open_reader(find_stack(model)) as reader:
        reaches = reader.reaches
    assert set(reaches) == {EVERYTHING, Reach(4, 4)}
    distance = torch.arange(n) - torch.arange(n)[:, None]
    for reach, weights in zip(reaches, capture(model, inputs), strict=True):
        seen = weights[0].amax(0) > 0
        inside = reach.sees(distance)
        assert not (seen & ~inside).any()
        if kind == "modernbert":  # the other's window has one place less before than behind
            assert torch.equal(seen, inside)
        assert distance[seen].max() == (reach.ahead or n - 1)


def test_a_window_of_unknown_width_is_not_read_through_the_interface(bert: PreTrainedModel) -> None:
    module = bert.encoder.layer[0].attention.self
    module.register_forward_pre_hook(
        lambda _, given, named: (given, {**named, "sliding_window": 4}), with_kwargs=True
    )
    with open_reader(find_stack(bert)) as reader:
        assert reader.read_through == RETURNED

    bert.config.sliding_window = 4
    bert.config.layer_types = ["sliding_attention", *["full_attention"] * 2]
    with open_reader(find_stack(bert)) as reader:
        assert reader.read_through == INTERFACE


# Where layers are one module, a change shows in the first already.
LAYER = {kind: 0 if kind in families.ONE_MODULE else 1 for kind in CONFIGS}
INPUTS = {"input_ids": torch.arange(8, 20)[None], "attention_mask": torch.ones(1, 12).long()}


def projections_of(kind: str, model: PreTrainedModel) -> LayerProjections:
    return find_projections(find_stack(model))[LAYER[kind]]


def weights_of(kind: str, model: PreTrainedModel) -> Tensor:
    return capture(model, INPUTS)[LAYER[kind]][0]


@contextmanager
def inputs_of(module: nn.Module) -> Iterator[list[Tensor]]:
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    yield seen
    handle.remove()


def head_outputs(kind: str, model: PreTrainedModel) -> Tensor:
    """(tokens, heads, head size) at the output projection."""
    found = projections_of(kind, model)
    with inputs_of(found.output) as outputs, torch.no_grad():
        model(**INPUTS)
    return outputs[0][0][:, found.columns]


@pytest.mark.parametrize("kind", PROJECTED)
def test_a_head_has_queries_keys_and_values_of_its_own(kind: str) -> None:
    for part in ("query", "key", "value"):
        model = make_model(kind)
        projection = getattr(projections_of(kind, model), part)
        weights, outputs = weights_of(kind, model), head_outputs(kind, model)
        with torch.no_grad():
            weight_of(projection.linear)[projection.rows[1]] *= -1.7
        difference = (weights_of(kind, model) - weights).abs().amax((1, 2))
        changed = difference > tolerance()
        if part == "value":
            assert not difference.any()
            found = (head_outputs(kind, model) - outputs).abs().amax((0, 2))
            changed = found > tolerance(outputs)
        share = HEADS // len(projection.rows)
        assert changed.tolist() == [head // share == 1 for head in range(HEADS)]


def test_families_that_are_not_listed_are_refused() -> None:
    model = make_model("bert")
    model.config.model_type = "bert-of-tomorrow"
    with pytest.raises(ModelSupportError, match=r"bert-of-tomorrow: where it keeps its queries"):
        find_projections(find_stack(model))


@pytest.mark.parametrize("kind", families.UNPROJECTED)
def test_families_that_are_only_scored_are_refused_with_the_reason(kind: str) -> None:
    family, model = FAMILIES[kind], make_model(kind)
    assert family.why_no_paths
    message = f"norms, gates and the removal of heads are not possible for {family.name}: "
    refused = re.escape(message + family.why_no_paths)
    with pytest.raises(ModelSupportError, match=refused), open_reader(find_stack(model), "norms"):
        pass
    with pytest.raises(ModelSupportError, match=refused):
        remove_heads(model, [(0, 0)])


def norms_of(kind: str, model: nn.Module) -> Tensor:
    """(heads, query, key) of one layer."""
    layers: list[Tensor] = []
    with open_reader(find_stack(model), "norms") as reader:  # type: ignore[arg-type]
        reader.read(INPUTS, lambda layer, norms: layers.append(norms.clone()))
    return layers[LAYER[kind]][0]


def layer_norms_of(kind: str, model: nn.Module) -> Tensor:
    """(query, key) of one layer."""
    layers: list[Tensor] = []
    with open_reader(find_stack(model)) as reader, open_norms(reader) as norms:  # type: ignore[arg-type]

        def read(layer: int, weights: Tensor) -> None:
            there = weights[:, list(reader.remaining[layer])]
            layers.append(norms.layer_norms(layer, there))

        reader.read(INPUTS, read)
    return layers[LAYER[kind]][0]


@pytest.mark.numbers
@pytest.mark.parametrize("kind", PROJECTED)
def test_norms_of_every_family(kind: str) -> None:
    """The vectors of all heads and keys add up to the output; norms are their lengths."""
    model = make_model(kind)
    found = projections_of(kind, model)
    with torch.no_grad():
        for bias in (found.value.linear.bias, found.value.bias_apart, found.output.bias):
            if bias is not None:
                bias.normal_()
        with inputs_of(found.output) as inputs, inputs_of(found.value.linear) as states:
            model(**INPUTS)
        output = found.output(inputs[0])[0]
        values = torch.einsum("nd,hsd->hns", states[0][0], found.value.weight)
        values = (values + found.value.bias[:, None]).repeat_interleave(HEADS // len(values), dim=0)
        vectors = torch.einsum("hns,hds->hnd", values, found.output_weight)
        weights = weights_of(kind, model)
        given = weights[..., None] * vectors[:, None]  # (heads, query, key, hidden)
        total = given.sum((0, 2)) + (0 if found.output.bias is None else found.output.bias)
        assert_same_outputs(total, output)
        lengths = given.norm(dim=-1), given.sum(0).norm(dim=-1)
        expected, of_layer = (rows / rows.sum(-1, keepdim=True) for rows in lengths)
    assert_same_outputs(norms_of(kind, model), expected, SUMS)
    assert_same_outputs(layer_norms_of(kind, model), of_layer, SUMS)


def test_norms_by_hand() -> None:
    """Kobayashi et al. 2020: three tokens, two heads of size 1."""
    value, output = nn.Linear(2, 2), nn.Linear(2, 2)
    with torch.no_grad():
        value.weight.copy_(torch.eye(2))
        value.bias.copy_(torch.tensor([0.5, -1.0]))
        output.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    rows = torch.arange(2)[:, None]
    own = Projection(value, rows)
    layer = LayerProjections(own, own, own, output, rows, (0, 1), cast(Any, None))
    values = ValueReader([layer], {})
    reader = NormReader(values)
    states = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]])
    weights = torch.tensor(
        [
            [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]],
            [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]],
        ]
    )[None]
    with torch.no_grad():
        values.outputs[value] = value(states)
        lengths, norms = reader.lengths(0)[0], reader.norms(0, weights)[0]
        of_layer = reader.layer_norms(0, weights)[0]
    expected = torch.tensor([[1.5, 0.5, 1.5], [2.236068, 2.236068, 0.0]])
    assert_same_outputs(lengths, expected, SUMS)
    of_first = torch.tensor([[1.05, 0.1, 0.15], [0.15, 0.4, 0.15], [0.45, 0.15, 0.6]])
    assert_same_outputs(norms[0], of_first / of_first.sum(-1, keepdim=True), SUMS)
    torch.testing.assert_close(norms[1, 0], torch.tensor([0.447214, 1.118034, 0]) / 1.565248)
    expected = torch.tensor(
        [[0.680074, 1.208305, 0.15], [1.209339, 0.824621, 0.15], [0.269258, 0.364005, 0.6]]
    )
    assert_same_outputs(of_layer, expected / expected.sum(-1, keepdim=True), SUMS)


@pytest.mark.parametrize("kind", ["bert", "mpnet", "deberta", "umt5", "xlm", "luke"])
def test_a_layer_without_heads_takes_nothing(kind: str) -> None:
    model = make_model(kind)
    remove_heads(model, [(LAYER[kind], head) for head in range(HEADS)])
    assert (norms_of(kind, model) == 0).all()
    assert (layer_norms_of(kind, model) == 0).all()


def test_a_head_that_hands_on_nothing_takes_nothing() -> None:
    model = make_model("bert")
    found = projections_of("bert", model)
    with torch.no_grad():
        found.output.weight[:, found.columns[1]] = 0
    norms = norms_of("bert", model)
    assert (norms[1] == 0).all()
    torch.testing.assert_close(norms[0].sum(-1), torch.ones(12))
