"""The rules of relevance compute what the model computes, and pass back what reaches them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from docs.studies.relevance import activated, half, normalise, relevance_rules
from tests.models.families import make_whole
from tests.models.test_surgery import INPUTS
from tests.rounding import assert_same_outputs


@pytest.mark.parametrize("kind", ["bert", "distilbert", "bart", "marian"])
def test_a_model_computes_the_same(kind: str) -> None:
    inputs, is_token = dict(INPUTS), INPUTS["attention_mask"].bool()
    model = make_whole(kind)
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = INPUTS["input_ids"]
    with torch.no_grad():
        before = model(**inputs)[0]
        with relevance_rules(model):
            within = model(**inputs)[0]
        after = model(**inputs)[0]
    assert_same_outputs(within[is_token], before[is_token])
    assert torch.equal(after, before)


def test_layer_norms_and_activations_pass_back_what_reaches_them() -> None:
    inputs, weights = torch.randn(2, 5, 8)
    norm = nn.LayerNorm(8, bias=False)
    nn.init.normal_(norm.weight)
    rules: list[Callable[[Tensor], Tensor]] = [
        lambda values: normalise(norm, values),
        lambda values: activated(nn.GELU())(norm, values),
    ]
    for rule in rules:
        at = inputs.clone().requires_grad_()
        outputs = rule(at)
        (relevance,) = torch.autograd.grad((outputs * weights).sum(), at)
        reaching = (outputs * weights).sum(-1)
        torch.testing.assert_close((at * relevance).sum(-1), reaching)


def test_two_factors_share_what_reaches_their_product() -> None:
    left, right = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    product = half(left) @ half(right)
    torch.testing.assert_close(product, left @ right)
    factors = (left, right)
    relevance = torch.autograd.grad(product.sum(), factors)
    shares = [(own * one).sum() for own, one in zip(factors, relevance, strict=True)]
    torch.testing.assert_close(torch.stack(shares), product.sum().expand(2) / 2)
