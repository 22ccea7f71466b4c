"""Projections and norms, against the outputs of the encoder itself, and a hand-checked example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.attention.reader import NormReader, open_norms, open_reader
from headroles.models.families import FAMILIES
from headroles.models.heads.projections import (
    LayerProjections,
    Projection,
    ValueReader,
    find_projections,
)
from headroles.models.heads.surgery import remove_heads
from tests.models.families import CONFIGS, HEADS, PROJECTED, UNPROJECTED, make_model
from tests.models.test_attention import capture
from tests.rounding import SUMS, assert_same_outputs, tolerance

# ALBERT's layers are one module, so a change shows in the first layer already.
LAYER = {kind: 0 if kind == "albert" else 1 for kind in CONFIGS}
INPUTS = {"input_ids": torch.arange(8, 20)[None], "attention_mask": torch.ones(1, 12).long()}


def projections_of(kind: str, model: PreTrainedModel) -> LayerProjections:
    return find_projections(model)[LAYER[kind]]


def weights_of(kind: str, model: PreTrainedModel) -> Tensor:
    return capture(model, INPUTS)[LAYER[kind]][0]


@contextmanager
def inputs_of(module: nn.Module) -> Iterator[list[Tensor]]:
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    yield seen
    handle.remove()


def head_outputs(kind: str, model: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """(tokens, heads, head size) at the output projection, and what the value projection takes."""
    found = projections_of(kind, model)
    with (
        inputs_of(found.output) as outputs,
        inputs_of(found.value.linear) as states,
        torch.no_grad(),
    ):
        model(**INPUTS)
    return outputs[0][0][:, found.columns], states[0][0]


def change(projection: Projection, head: int) -> None:
    with torch.no_grad():
        projection.linear.weight[projection.rows[head]] *= -1.7


@pytest.mark.parametrize("kind", PROJECTED)
class TestEveryFamily:
    def test_a_head_has_queries_keys_and_values_of_its_own(self, kind: str) -> None:
        for part in ("query", "key"):
            model = make_model(kind)
            projection = getattr(projections_of(kind, model), part)
            before = weights_of(kind, model)
            change(projection, head=1)
            changed = (weights_of(kind, model) - before).abs().amax((1, 2)) > tolerance()
            share = HEADS // len(projection.rows)
            assert changed.tolist() == [head // share == 1 for head in range(HEADS)]
        model = make_model(kind)
        value = projections_of(kind, model).value
        weights, (before, _) = weights_of(kind, model), head_outputs(kind, model)
        change(value, head=1)
        changed = (head_outputs(kind, model)[0] - before).abs().amax((0, 2)) > tolerance(before)
        share = HEADS // len(value.rows)
        assert changed.tolist() == [head // share == 1 for head in range(HEADS)]
        assert torch.equal(weights_of(kind, model), weights)


def test_families_that_are_not_listed_are_refused() -> None:
    model = make_model("bert")
    model.config.model_type = "bert-of-tomorrow"
    with pytest.raises(ModelSupportError, match=r"bert-of-tomorrow: where it keeps its queries"):
        find_projections(model)


@pytest.mark.parametrize("kind", UNPROJECTED)
def test_families_that_are_only_scored_are_refused_with_the_reason(kind: str) -> None:
    family, model = FAMILIES[kind], make_model(kind)
    assert family.why_no_paths
    message = f"norms, gates and the removal of heads are not possible for {family.name}: "
    refused = pytest.raises(ModelSupportError, match=re.escape(message + family.why_no_paths))
    with refused, open_reader(model, "norms"):
        pass
    with pytest.raises(ModelSupportError, match=re.escape(family.why_no_paths)):
        remove_heads(model, [(0, 0)])


def norms_of(kind: str, model: nn.Module) -> Tensor:
    """(heads, query, key) of one layer."""
    layers: list[Tensor] = []
    with open_reader(model, "norms") as reader:  # type: ignore[arg-type]
        reader.read(INPUTS, lambda layer, norms: layers.append(norms.clone()))
    return layers[LAYER[kind]][0]


def layer_norms_of(kind: str, model: nn.Module) -> Tensor:
    """(query, key) of one layer."""
    layers: list[Tensor] = []
    with open_reader(model) as reader, open_norms(reader) as norms:  # type: ignore[arg-type]

        def read(layer: int, weights: Tensor) -> None:
            there = weights[:, list(reader.remaining[layer])]
            layers.append(norms.layer_norms(layer, there))

        reader.read(INPUTS, read)
    return layers[LAYER[kind]][0]


@pytest.mark.numbers
@pytest.mark.parametrize("kind", PROJECTED)
def test_every_family(kind: str) -> None:
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
        expected, of_layer = given.norm(dim=-1), given.sum(0).norm(dim=-1)
        expected /= expected.sum(-1, keepdim=True)
        of_layer /= of_layer.sum(-1, keepdim=True)
    assert_same_outputs(norms_of(kind, model), expected, SUMS)
    assert_same_outputs(layer_norms_of(kind, model), of_layer, SUMS)


def test_hand_checked_example() -> None:
    """Kobayashi et al. 2020: three tokens, two heads of size 1."""
    value, output = nn.Linear(2, 2), nn.Linear(2, 2)
    with torch.no_grad():
        value.weight.copy_(torch.eye(2))
        value.bias.copy_(torch.tensor([0.5, -1.0]))
        output.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    rows = torch.arange(2)[:, None]
    own = Projection(value, rows)
    values = ValueReader(
        [LayerProjections(own, own, own, output, rows, (0, 1), cast(Any, None))], {}
    )
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
    rows_of_first = torch.tensor([[1.05, 0.1, 0.15], [0.15, 0.4, 0.15], [0.45, 0.15, 0.6]])
    expected = rows_of_first / rows_of_first.sum(-1, keepdim=True)
    assert_same_outputs(norms[0], expected, SUMS)
    torch.testing.assert_close(norms[1, 0], torch.tensor([0.447214, 1.118034, 0]) / 1.565248)
    expected = torch.tensor(
        [[0.680074, 1.208305, 0.15], [1.209339, 0.824621, 0.15], [0.269258, 0.364005, 0.6]]
    )
    expected /= expected.sum(-1, keepdim=True)
    assert_same_outputs(of_layer, expected, SUMS)


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
