"""Projections of every family, against the outputs of the encoder itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.attention.reader import open_reader
from headroles.models.families import FAMILIES
from headroles.models.heads.projections import LayerProjections, Projection, find_projections
from headroles.models.heads.surgery import remove_heads
from tests.models.families import (
    CONFIGS,
    HEADS,
    PROJECTED,
    UNKNOWN,
    UNPROJECTED,
    make_model,
)
from tests.models.test_attention import capture
from tests.rounding import tolerance

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


def test_families_without_projections_are_known() -> None:
    assert {*UNPROJECTED, *UNKNOWN} == {
        *("convbert", "fsmt", "ibert", "prophetnet", "squeezebert", "nystromformer", "xlnet"),
        *("lilt", "layoutlmv3", "neomme", "t5gemma2"),
    }


@pytest.mark.parametrize("kind", PROJECTED)
class TestEveryFamily:
    @pytest.mark.parametrize("part", ["query", "key"])
    def test_a_head_has_queries_and_keys_of_its_own(self, kind: str, part: str) -> None:
        model = make_model(kind)
        projection = getattr(projections_of(kind, model), part)
        before = weights_of(kind, model)
        change(projection, head=1)
        changed = (weights_of(kind, model) - before).abs().amax((1, 2)) > tolerance()
        share = HEADS // len(projection.rows)
        assert changed.tolist() == [head // share == 1 for head in range(HEADS)]

    def test_a_head_has_values_of_its_own(self, kind: str) -> None:
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
