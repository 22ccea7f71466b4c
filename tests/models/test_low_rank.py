"""Encoders with queries and keys of low rank: the same at full rank, in every family."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.families import FAMILIES
from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.surgery import heads_of, remove_heads, zero_heads
from headroles.models.loading.encoder import load_model
from headroles.models.options import FACTOR_METHODS
from headroles.models.shared.factorisation import InputMoments, factorise
from headroles.models.shared.sites import find_sites, install, reading_inputs
from tests.models.families import HEADS, LAYERS, PROJECTED, make_model
from tests.models.test_attention import LENGTHS, capture, make_inputs
from tests.models.test_surgery import A_LAYER, SOME, of_family
from tests.rounding import DOUBLE, assert_same_outputs

OF_ITS_OWN = [kind for kind in PROJECTED if FAMILIES[kind].has_own_forward]
PLAIN = [kind for kind in PROJECTED if not (FAMILIES[kind].positions or kind in OF_ITS_OWN)]
OTHERS = [kind for kind in PROJECTED if FAMILIES[kind].positions and kind not in OF_ITS_OWN]


def with_biases(kind: str, task: str = "Model", attention: str = "sdpa") -> PreTrainedModel:
    """A model whose biases are none of them 0."""
    model = make_model(kind, task, attention)
    generator = torch.Generator().manual_seed(1)
    for name, values in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(values, generator=generator)
    return model


def with_vocabulary(model: PreTrainedModel) -> PreTrainedModel:
    """``model`` with embeddings for all that the tokenizer of tests knows."""
    model.resize_token_embeddings(128)
    return model


def low_rank(model: PreTrainedModel, method: str, rank: int | None = None) -> PreTrainedModel:
    """A copy of ``model``, at full rank unless another is given."""
    changed = copy.deepcopy(model)
    for site in find_sites(changed):
        moments = InputMoments.none(site.maps.query.shape[2])
        install(changed, site, factorise(site.maps, moments, rank or site.maps.full_rank, method))
    return changed


def outputs(model: PreTrainedModel) -> Tensor:
    """Last hidden states of the real tokens of a padded batch."""
    inputs = make_inputs()
    with torch.no_grad():
        states: Tensor = model.base_model(**inputs)[0]
    return states[inputs["attention_mask"].bool()]


def weights_of(model: PreTrainedModel) -> list[Tensor]:
    """Attention of the real queries of the padded sequence, layer by layer."""
    return [weights[1, :, : LENGTHS[1]] for weights in capture(model, make_inputs())]


@pytest.mark.parametrize("kind", PLAIN)
class TestEveryFamily:
    @pytest.mark.parametrize("method", FACTOR_METHODS)
    def test_full_rank_is_the_original(self, kind: str, method: str) -> None:
        original = with_biases(kind)
        made = low_rank(original, method)
        for attention in ("eager", "sdpa"):
            for model in (original, made):
                model.set_attn_implementation(attention if model._supports_sdpa else "eager")
            expected, ours = outputs(original), outputs(made)
            assert_same_outputs(ours, expected)
            assert (ours != expected).any()
        ours, theirs = weights_of(made), weights_of(original)
        assert len(ours) == LAYERS
        for one, other in zip(ours, theirs, strict=True):
            assert_same_outputs(one, other)
            assert one[..., LENGTHS[1] :].abs().max() == 0  # padding


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("method", FACTOR_METHODS)
class TestWithoutSomeHeads:
    def test_removed_is_zeroed(self, kind: str, method: str, tmp_path: Path) -> None:
        heads = of_family(kind, SOME + A_LAYER)
        made = low_rank(with_biases(kind).double(), method, rank=2 * HEADS)
        zeroed, removed = copy.deepcopy(made), copy.deepcopy(made)
        zero_heads(zeroed, heads)
        remove_heads(removed, heads)
        assert not torch.allclose(outputs(made), outputs(zeroed), atol=1e-3)
        assert_same_outputs(outputs(removed), outputs(zeroed), DOUBLE)
        removed.save_pretrained(tmp_path / "removed")
        read = load_model(tmp_path / "removed").double()
        assert_same_outputs(outputs(read), outputs(removed))
        assert removed_heads(read.config) == sorted(set(heads))

    def test_then_of_low_rank_is_of_low_rank_then_without(self, kind: str, method: str) -> None:
        """At full rank both are the original without these heads."""
        heads = of_family(kind, [(0, 1), (2, 3)]) + (A_LAYER if kind != "albert" else [])
        original, pruned = with_biases(kind).double(), with_biases(kind).double()
        made = low_rank(original, method)
        remove_heads(made, heads)
        remove_heads(pruned, heads)
        expected = outputs(pruned)
        for one in (low_rank(pruned, method), made):
            assert_same_outputs(outputs(one), expected)


def test_a_model_without_any_head_is_refused() -> None:
    model = make_model("bert")
    remove_heads(model, heads_of(model))
    with pytest.raises(ModelSupportError, match="lost all its heads"):
        find_sites(model)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        *((kind, "have .*position") for kind in OTHERS),
        *((kind, "cannot be run with shared") for kind in OF_ITS_OWN),
    ],
)
def test_other_families_are_refused_with_the_reason(kind: str, reason: str) -> None:
    with pytest.raises(ModelSupportError, match=f"{FAMILIES[kind].name} {reason}"):
        find_sites(make_model(kind))


def test_a_second_time_is_refused() -> None:
    with pytest.raises(ModelSupportError, match="of low rank already"):
        find_sites(low_rank(make_model("bert"), FACTOR_METHODS[0], 8))


def test_moments_are_those_of_the_inputs_of_real_tokens() -> None:
    model = make_model("bert")
    sites, batch = find_sites(model), make_inputs()
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
    mask = batch["attention_mask"].bool()
    with reading_inputs(model, sites) as read:
        sums = read(batch)
    assert [number for number, _ in sums] == list(range(len(sites)))
    for states, (_, of_site) in zip(hidden, sums, strict=False):
        found = of_site.moments()
        rows = [own[real].double() for own, real in zip(states, mask, strict=True)]
        tokens = torch.cat(rows)
        apart = torch.cat([own - own.mean(dim=0) for own in rows])
        for ours, expected in (
            (found.mean, tokens.mean(dim=0)),
            (found.covariance, torch.cov(tokens.T, correction=0)),
            (found.within, apart.T @ apart / len(apart)),
        ):
            assert_same_outputs(torch.from_numpy(ours), expected)
    assert not any(module._forward_pre_hooks for module in model.modules())
