"""Heads removed, gated and at zero, of every family, against one another and by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from headroles.errors import UsageError
from headroles.models.families import FAMILIES
from headroles.models.heads.gates import (
    Ablation,
    HeadSites,
    gate_gradients,
    gated,
    sum_outputs,
    weights_of_heads,
)
from headroles.models.heads.linears import weight_of
from headroles.models.heads.projections import ValueReader
from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.shared_passes import SharedPasses
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.reach import SOURCE
from tests.models.families import (
    HEADS,
    LAYERS,
    ONE_MODULE,
    PROJECTED,
    WITH_POSITION_BIAS,
    make_model,
    randomise_biases,
)
from tests.rounding import DOUBLE, SUMS, assert_same_outputs

INPUTS = {
    "input_ids": torch.arange(8, 32).view(2, 12),
    "attention_mask": torch.tensor([[1] * 12, [1] * 9 + [0] * 3]),
}
MASK = INPUTS["attention_mask"]
SOME = [(0, 1), (1, 0), (1, 3), (2, 2)]
A_LAYER = [(1, head) for head in range(HEADS)]
EVENLY = [(layer, head) for layer in range(LAYERS) for head in (0, 2)]


def of_family(kind: str, heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ``heads``, or for shared layers the same numbers in all of them."""
    if kind not in ONE_MODULE:
        return heads
    return [(layer, head) for layer in range(LAYERS) for head in {head for _, head in heads}]


def closed(heads: list[tuple[int, int]]) -> Tensor:
    """Gates that are closed for ``heads``."""
    is_closed = [[(layer, head) in heads for head in range(HEADS)] for layer in range(LAYERS)]
    return 1.0 - torch.tensor(is_closed).float()


def outputs(model: PreTrainedModel) -> Tensor:
    with torch.no_grad():
        return model(**INPUTS).last_hidden_state[MASK.bool()]


class _Lowered(TorchFunctionMode):
    """Notes whether states in double precision become single."""

    found = False

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.requires_grad and out.dtype == torch.float32:
            self.found = True
        return out


@cache
def is_in_float32(kind: str) -> bool:
    """Whether a family normalises in single precision, in models of double precision too."""
    model = make_rich(kind)
    with _Lowered() as lowered:
        model(**INPUTS)
    return lowered.found


def of_double(kind: str) -> float:
    """The relative error of a model in double precision."""
    return SUMS if is_in_float32(kind) else DOUBLE


def make_rich(kind: str) -> PreTrainedModel:
    """In double precision, as the numbers of MobileBERT grow to 1e5."""
    return randomise_biases(make_model(kind).double(), 0.3)


def loss_of(model: PreTrainedModel) -> Tensor:
    """(batch,): of each example a number that all its real tokens take part in."""
    states = model(**INPUTS).last_hidden_state
    return (torch.tanh(states).sum(-1) * MASK).sum(-1)


@pytest.mark.parametrize("kind", PROJECTED)
class TestEveryFamily:
    @pytest.mark.parametrize("heads", [EVENLY, SOME + A_LAYER])
    def test_removed_is_zeroed_is_gated(self, kind: str, heads: list[tuple[int, int]]) -> None:
        heads = of_family(kind, heads)
        full, zeroed, removed = make_rich(kind), make_rich(kind), make_rich(kind)
        zero_heads(HeadSites(find_stack(zeroed)), heads)
        remove_heads(removed, heads)
        before = outputs(full)
        sites = HeadSites(find_stack(full))
        with gated(sites, closed(heads)):
            masked = outputs(full)
        with gated(sites, closed([])):
            assert torch.equal(outputs(full), before)
        assert torch.equal(outputs(full), before)
        assert not torch.allclose(before, outputs(zeroed), atol=1e-3)
        assert_same_outputs(masked, outputs(zeroed), DOUBLE)
        assert_same_outputs(outputs(removed), outputs(zeroed), of_double(kind))
        n_weights, n_left = (sum(p.numel() for p in m.parameters()) for m in (full, removed))
        assert n_left < n_weights

    def test_in_steps_is_at_once(self, kind: str) -> None:
        first, then = of_family(kind, [(1, 2), (2, 0)]), of_family(kind, [(1, 0), (2, 1)])
        stepwise, once = make_rich(kind), make_rich(kind)
        for heads in (first, then):
            remove_heads(stepwise, heads)
        remove_heads(once, first + then)
        assert_same_outputs(outputs(stepwise), outputs(once), of_double(kind))
        shapes, same = ({k: v.shape for k, v in m.state_dict().items()} for m in (stepwise, once))
        assert shapes == same
        assert stepwise.config.pruned_heads == once.config.pruned_heads

    def test_the_rest_is_gated_by_its_numbers_and_learns(self, kind: str) -> None:
        first, then = of_family(kind, SOME), of_family(kind, [(1, 1)])
        pruned, zeroed = make_rich(kind), make_rich(kind)
        remove_heads(pruned, first)
        zero_heads(HeadSites(find_stack(zeroed)), first + then)
        with gated(HeadSites(find_stack(pruned)), closed(then)):
            assert_same_outputs(outputs(pruned), outputs(zeroed), of_double(kind))
        pruned(**INPUTS).last_hidden_state.sum().backward()
        queries = {n: p for n, p in pruned.named_parameters() if "query" in n}
        unused = ("w2e_", "e2w_", "e2e_")  # of LUKE's entities
        assert all(p.grad is not None for n, p in queries.items() if not any(map(n.count, unused)))

    def test_heads_that_stay_keep_their_weights(self, kind: str) -> None:
        model = make_rich(kind)
        before = weights_of_heads(HeadSites(find_stack(model)))
        assert list(before) == find_stack(model).heads
        remove_heads(model, of_family(kind, SOME + A_LAYER))
        after = weights_of_heads(HeadSites(find_stack(model)))
        assert list(after) == find_stack(model).heads
        assert all(torch.equal(before[head], own) for head, own in after.items())

    def test_gradients_are_those_of_finite_differences(self, kind: str) -> None:
        model = make_rich(kind)
        model.requires_grad_(False)
        sites = HeadSites(find_stack(model))
        with gate_gradients(sites) as of_loss:
            found = of_loss(loss_of(model).sum())[SOURCE].sum(1)
        rough = is_in_float32(kind)
        step = 1e-2 if rough else 1e-5
        tolerance = {"rtol": 2e-2, "atol": 5e-2} if rough else {"rtol": 1e-6, "atol": 1e-6}
        for layer, head in ((0, 3), (1, 0), (2, 3)):
            sides = []
            for sign in (1, -1):
                gates = torch.ones(LAYERS, HEADS).double()
                gates[layer, head] += sign * step
                with gated(sites, gates), torch.no_grad():
                    sides.append(loss_of(model))
            expected = (sides[0] - sides[1]) / (2 * step)
            torch.testing.assert_close(found[:, layer, head], expected, **tolerance)

    def test_passes_share_the_layers_that_are_the_same(self, kind: str) -> None:
        model = make_rich(kind)
        sites = HeadSites(find_stack(model))
        settings = [closed(of_family(kind, one)) for one in ([], [(2, 1)], [(2, 0)], [(1, 1)])]
        computed: list[nn.Module] = []
        passes = SharedPasses(sites)
        for gates, following in zip(settings, (2, 2, 1, 0), strict=True):
            with gated(sites, gates):
                expected = outputs(model)
            with ExitStack() as stack:
                for module in {layer.output: 0 for layer in sites.layers}:
                    note = module.register_forward_hook(lambda module, *_: computed.append(module))
                    stack.callback(note.remove)
                stack.enter_context(gated(sites, gates))
                stack.enter_context(passes.next(following))
                assert torch.equal(outputs(model), expected)
        assert len(computed) == (4 * LAYERS if kind in ONE_MODULE else LAYERS + 1 + 1 + 2)
        assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize("kind", [kind for kind in PROJECTED if kind not in WITH_POSITION_BIAS])
def test_uniform_is_attention_without_queries(kind: str) -> None:
    model, equal = make_rich(kind), make_rich(kind)
    heads = of_family(kind, [(1, 2), (2, 0)])
    sites = HeadSites(find_stack(equal))
    with torch.no_grad():
        for layer, head in heads:
            query = sites.layers[layer].query
            for values in (weight_of(query.linear), query.linear.bias):
                if values is not None:
                    values[query.rows[head]] = 0
    uniform = Ablation("uniform", inputs={"attention_mask": MASK})
    with gated(HeadSites(find_stack(model)), closed(heads), uniform):
        assert_same_outputs(outputs(model), outputs(equal), of_double(kind))


def test_weights_of_a_head_are_all_that_is_its_own() -> None:
    model = make_model("bert")
    before = weights_of_heads(HeadSites(find_stack(model)))
    assert {len(own) for own in before.values()} == {4 * 8 * 32}
    own = model.encoder.layer[1].attention
    for linear in (own.self.query, own.self.key, own.self.value):
        linear.weight.data[16:24] += 1
    own.output.dense.weight.data[:, 16:24] += 1
    after = weights_of_heads(HeadSites(find_stack(model)))
    changed = {head for head, own in after.items() if not torch.equal(own, before[head])}
    assert changed == {(1, 2)}
    assert after[1, 2] == pytest.approx(before[1, 2] + 1)


def test_heads_keep_their_numbers() -> None:
    model = make_model("bert")
    remove_heads(model, [(0, 0), (2, 3)])
    remove_heads(model, [(0, 2), (0, 0)])
    assert model.config.pruned_heads == {"0": [0, 2], "2": [3]}
    assert removed_heads(model.config) == [(0, 0), (0, 2), (2, 3)]
    assert find_stack(model).remaining == ((1, 3), (0, 1, 2, 3), (0, 1, 2))


@pytest.mark.parametrize(
    "remove", [remove_heads, lambda model, heads: zero_heads(HeadSites(find_stack(model)), heads)]
)
def test_heads_that_cannot_be_removed(remove: Callable[..., None]) -> None:
    for head in ((3, 0), (0, 4), (-1, 0), (0, -1)):
        with pytest.raises(UsageError, match=r"no head .* 3 layers of 4 heads"):
            remove(make_model("bert"), [head])
    with pytest.raises(UsageError, match="layers 0 and 1 share one attention module"):
        remove(make_model("albert"), [(1, 2)])


def test_the_page_lists_the_families_that_prune_refuses() -> None:
    page = " ".join(Path("docs/removing-heads.md").read_text(encoding="utf-8").split())
    refused = sorted((one.name for one in FAMILIES.values() if one.paths is None), key=str.lower)
    assert f"`prune` refuses {', '.join(refused[:-1])} and {refused[-1]}, and" in page


def test_gates_of_examples_one_by_one() -> None:
    model = make_rich("bert")
    sites = HeadSites(find_stack(model))
    gates = torch.stack([closed([(1, 1)]), closed([])])
    with torch.no_grad():
        with gated(sites, gates):
            both = model(**INPUTS).last_hidden_state
        with gated(sites, gates[0]):
            first = model(**INPUTS).last_hidden_state[0]
        second = model(**INPUTS).last_hidden_state[1]
    torch.testing.assert_close(both, torch.stack([first, second]))


def test_mean_outputs_are_those_of_real_tokens() -> None:
    model = make_rich("bert")
    sites = HeadSites(find_stack(model))
    seen: list[Tensor] = []
    with sites.changed(lambda _, given: seen.append(given[MASK.bool()].mean(0)) or given):
        outputs(model)
    batches = [{name: values[row : row + 1] for name, values in INPUTS.items()} for row in (0, 1)]
    with torch.no_grad():
        of_batches = [sum_outputs(sites, batch) for batch in batches]
    pairs = [[sums[layer] for sums in of_batches] for layer in range(LAYERS)]
    means = [(first + second) / (n + m) for (n, first), (m, second) in pairs]
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
    sites = HeadSites(find_stack(model))
    projection = sites.layers[0].value
    output = torch.zeros(1, 3, projection.linear.out_features).double()
    output[0, :, projection.rows[1, :2]] = torch.tensor([[1.0, 0], [0, 2], [3, 1]]).double()
    values = ValueReader(sites.layers, {projection.linear: output})
    ablation = Ablation("uniform", inputs={"attention_mask": torch.ones(1, 3)}, values=values)
    found = ablation.instead(sites, 0, output)
    assert found[0, 2, 1, :2].tolist() == pytest.approx([4 / 3, 1])


def test_a_pass_that_was_broken_off_leaves_no_trace() -> None:
    model = make_model("albert")
    sites = HeadSites(find_stack(model))
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
