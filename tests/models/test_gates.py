"""Gates of every family, against heads at zero, equal attention and finite differences."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.models.heads.gates import (
    Ablation,
    HeadSites,
    SharedPasses,
    gate_gradients,
    gated,
    sum_outputs,
)
from headroles.models.heads.projections import ValueReader
from tests.models.families import HEADS, LAYERS, PROJECTED, make_model
from tests.models.test_surgery import (
    IN_FLOAT32,
    INPUTS,
    closed,
    make_rich,
    of_double,
    of_family,
    outputs,
)
from tests.rounding import assert_same_outputs

MASK = INPUTS["attention_mask"]
# Attention is not equal where queries are 0, as positions have a say of their own.
WITH_POSITION_BIAS = ("mpnet", "deberta", "deberta-v2", "t5", "mt5", "umt5")


def loss_of(model: PreTrainedModel) -> Tensor:
    """(batch,): of each example a number that all its real tokens take part in."""
    states = model(**INPUTS).last_hidden_state
    return (torch.tanh(states).sum(-1) * MASK).sum(-1)


@pytest.mark.parametrize("kind", PROJECTED)
class TestEveryFamily:
    def test_uniform_is_attention_without_queries(self, kind: str) -> None:
        if kind in WITH_POSITION_BIAS:
            pytest.skip("positions have a say of their own in attention")
        model, equal = make_rich(kind), make_rich(kind)
        heads = of_family(kind, [(1, 2), (2, 0)])
        sites = HeadSites(equal)
        with torch.no_grad():
            for layer, head in heads:
                query = sites.layers[layer].query
                query.linear.weight[query.rows[head]] = 0
                if query.linear.bias is not None:
                    query.linear.bias[query.rows[head]] = 0
        with gated(HeadSites(model), closed(heads), Ablation("uniform", attention_mask=MASK)):
            assert_same_outputs(outputs(model), outputs(equal), of_double(kind))

    def test_gradients_are_those_of_finite_differences(self, kind: str) -> None:
        model = make_rich(kind)
        model.requires_grad_(False)
        sites = HeadSites(model)
        with gate_gradients(sites) as of_loss:
            found = of_loss(loss_of(model).sum()).sum(1)
        rough = kind in IN_FLOAT32
        step, expected = 1e-2 if rough else 1e-5, torch.zeros_like(found)
        tried = [(0, 3), (1, 0), (2, 3)]
        for layer, head in tried:
            sides = []
            for sign in (1, -1):
                gates = torch.ones(LAYERS, HEADS).double()
                gates[layer, head] += sign * step
                with gated(sites, gates), torch.no_grad():
                    sides.append(loss_of(model))
            expected[:, layer, head] = (sides[0] - sides[1]) / (2 * step)
        tolerance = {"rtol": 2e-2, "atol": 5e-2} if rough else {"rtol": 1e-6, "atol": 1e-6}
        for layer, head in tried:
            ours, theirs = found[:, layer, head], expected[:, layer, head]
            torch.testing.assert_close(ours, theirs, **tolerance)

    def test_passes_share_the_layers_that_are_the_same(self, kind: str) -> None:
        model = make_rich(kind)
        sites = HeadSites(model)
        settings = [closed(of_family(kind, one)) for one in ([], [(2, 1)], [(2, 0)], [(1, 1)])]
        shared = [2, 2, 1, 0]
        computed: list[nn.Module] = []
        passes = SharedPasses(sites)
        for gates, following in zip(settings, shared, strict=True):
            with gated(sites, gates):
                expected = outputs(model)
            with ExitStack() as stack:
                for module in {layer.output: 0 for layer in sites.layers}:
                    note = module.register_forward_hook(lambda module, *_: computed.append(module))
                    stack.callback(note.remove)
                stack.enter_context(gated(sites, gates))
                stack.enter_context(passes.next(following))
                assert torch.equal(outputs(model), expected)
        assert len(computed) == (4 * LAYERS if kind == "albert" else LAYERS + 1 + 1 + 2)
        assert not any("forward" in vars(module) for module in model.modules())


def test_gates_of_examples_one_by_one() -> None:
    model = make_rich("bert")
    sites = HeadSites(model)
    gates = torch.stack([closed([(1, 1)]), closed([])])
    with gated(sites, gates), torch.no_grad():
        both = model(**INPUTS).last_hidden_state
    with gated(sites, gates[0]), torch.no_grad():
        first = model(**INPUTS).last_hidden_state[0]
    with torch.no_grad():
        second = model(**INPUTS).last_hidden_state[1]
    torch.testing.assert_close(both, torch.stack([first, second]))


def test_mean_outputs_are_those_of_real_tokens() -> None:
    model = make_rich("bert")
    sites = HeadSites(model)
    seen: list[Tensor] = []

    def see(layer: int, outputs: Tensor) -> Tensor:
        seen.append(outputs[MASK.bool()].mean(0))
        return outputs

    with sites.changed(see):
        outputs(model)
    batches = [{name: values[row : row + 1] for name, values in INPUTS.items()} for row in (0, 1)]
    with torch.no_grad():
        (n, first), (m, second) = (sum_outputs(sites, batch) for batch in batches)
    means = [(first[layer] + second[layer]) / (n + m) for layer in range(LAYERS)]
    for mean, expected in zip(means, seen, strict=True):
        torch.testing.assert_close(mean, expected)

    def put(layer: int, outputs: Tensor) -> Tensor:
        changed = outputs.clone()
        if layer == 1:
            changed[:, :, 2] = means[1][2]
        return changed

    with sites.changed(put):
        expected = outputs(model)
    with gated(sites, closed([(1, 2)]), Ablation("mean", means=means)):
        torch.testing.assert_close(outputs(model), expected)


def test_uniform_by_hand() -> None:
    """Values [[1,0],[0,2],[3,1]] with equal attention: [4/3, 1] for all scores."""
    model = make_rich("bert")
    sites = HeadSites(model)
    projection = sites.layers[0].value
    output = torch.zeros(1, 3, projection.linear.out_features).double()
    output[0, :, projection.rows[1, :2]] = torch.tensor([[1.0, 0], [0, 2], [3, 1]]).double()
    values = ValueReader(sites.layers, {projection.linear: output})
    ablation = Ablation("uniform", attention_mask=torch.ones(1, 3), values=values)
    found = ablation.instead(sites, 0, output)
    assert found is not None
    assert found[0, 2, 1, :2].tolist() == pytest.approx([4 / 3, 1])


def test_a_pass_that_was_broken_off_leaves_no_trace() -> None:
    model = make_model("albert")
    sites = HeadSites(model)
    seen: list[int] = []

    def see(layer: int, outputs: Tensor) -> Tensor:
        seen.append(layer)
        if len(seen) == 2:
            raise RuntimeError("stop")
        return outputs

    with sites.changed(see):
        with pytest.raises(RuntimeError, match="stop"):
            outputs(model)
        outputs(model)
    assert seen == [0, 1, 0, 1, 2]
