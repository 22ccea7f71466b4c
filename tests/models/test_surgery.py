"""Models without some of their heads, of every family, against the same heads at zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headroles.errors import UsageError
from headroles.models.families import FAMILIES
from headroles.models.heads.gates import HeadSites, gated, weights_of_heads
from headroles.models.heads.remaining import remaining_heads, removed_heads
from headroles.models.heads.surgery import heads_of, remove_heads, zero_heads
from tests.models.families import HEADS, LAYERS, PROJECTED, make_model
from tests.rounding import DOUBLE, SUMS, assert_same_outputs

INPUTS = {
    "input_ids": torch.arange(8, 32).view(2, 12),
    "attention_mask": torch.tensor([[1] * 12, [1] * 9 + [0] * 3]),
}
SOME = [(0, 1), (1, 0), (1, 3), (2, 2)]
A_LAYER = [(1, head) for head in range(HEADS)]
EVENLY = [(layer, head) for layer in range(LAYERS) for head in (0, 2)]


def of_family(kind: str, heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ``heads``, or for shared layers the same numbers in all of them."""
    if kind != "albert":
        return heads
    return [(layer, head) for layer in range(LAYERS) for head in {head for _, head in heads}]


def closed(heads: list[tuple[int, int]]) -> Tensor:
    """Gates that are closed for ``heads``."""
    gates = torch.ones(LAYERS, HEADS)
    for layer, head in heads:
        gates[layer, head] = 0
    return gates


def outputs(model: PreTrainedModel) -> Tensor:
    with torch.no_grad():
        return model(**INPUTS).last_hidden_state[INPUTS["attention_mask"].bool()]


# These families normalise in single precision, also in models of double precision.
IN_FLOAT32 = (
    *("modernbert", "deberta", "splinter", "eurobert"),
    *("t5", "mt5", "umt5", "xlm", "flaubert"),
)


def of_double(kind: str) -> float:
    """The relative error of a model in double precision."""
    return SUMS if kind in IN_FLOAT32 else DOUBLE


def make_rich(kind: str) -> PreTrainedModel:
    """A model whose biases are not zero, so that a lost one would show; in double precision, as
    the numbers of MobileBERT grow to 1e5."""
    model = make_model(kind).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.normal_(std=0.3)
    return model


@pytest.mark.parametrize("kind", PROJECTED)
class TestEveryFamily:
    @pytest.mark.parametrize("heads", [EVENLY, SOME + A_LAYER])
    def test_removed_is_zeroed_is_gated(self, kind: str, heads: list[tuple[int, int]]) -> None:
        heads = of_family(kind, heads)
        full, zeroed, removed = make_rich(kind), make_rich(kind), make_rich(kind)
        zero_heads(zeroed, heads)
        remove_heads(removed, heads)
        before = outputs(full)
        sites = HeadSites(full)
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
        zero_heads(zeroed, first + then)
        with gated(HeadSites(pruned), closed(then)):
            assert_same_outputs(outputs(pruned), outputs(zeroed), of_double(kind))
        pruned(**INPUTS).last_hidden_state.sum().backward()
        queries = {n: p for n, p in pruned.named_parameters() if "query" in n}
        unused = ("w2e_", "e2w_", "e2e_")  # of LUKE's entities
        assert all(p.grad is not None for n, p in queries.items() if not any(map(n.count, unused)))

    def test_heads_that_stay_keep_their_weights(self, kind: str) -> None:
        model = make_rich(kind)
        before = weights_of_heads(HeadSites(model))
        assert list(before) == heads_of(model)
        remove_heads(model, of_family(kind, SOME + A_LAYER))
        after = weights_of_heads(HeadSites(model))
        assert list(after) == heads_of(model)
        assert all(torch.equal(before[head], own) for head, own in after.items())


def test_weights_of_a_head_are_all_that_is_its_own() -> None:
    model = make_model("bert")
    before = weights_of_heads(HeadSites(model))
    assert {len(own) for own in before.values()} == {4 * 8 * 32}
    own = model.encoder.layer[1].attention
    with torch.no_grad():
        for linear in (own.self.query, own.self.key, own.self.value):
            linear.weight[16:24] += 1
        own.output.dense.weight[:, 16:24] += 1
    after = weights_of_heads(HeadSites(model))
    changed = {head for head, own in after.items() if not torch.equal(own, before[head])}
    assert changed == {(1, 2)}
    assert after[1, 2] == pytest.approx(before[1, 2] + 1)


def test_heads_keep_their_numbers() -> None:
    model = make_model("bert")
    remove_heads(model, [(0, 0), (2, 3)])
    remove_heads(model, [(0, 2), (0, 0)])
    assert model.config.pruned_heads == {"0": [0, 2], "2": [3]}
    assert removed_heads(model.config) == [(0, 0), (0, 2), (2, 3)]
    assert remaining_heads(model.config, HEADS) == ((1, 3), (0, 1, 2, 3), (0, 1, 2))


@pytest.mark.parametrize("remove", [remove_heads, zero_heads])
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
