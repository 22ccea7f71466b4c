"""Heads shuffled over layers: each keeps its weights, and the order within a layer is nothing."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from transformers import PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.heads.gates import HeadSites, weights_of_heads
from headroles.models.heads.shuffling import shuffle_heads
from headroles.models.heads.stack import find_stack
from tests.models.families import (
    COMMON,
    CONFIGS,
    ONE_MODULE,
    PROJECTED,
    WITH_POSITION_BIAS,
    make_model,
    paths_of,
    randomise_biases,
)
from tests.models.test_surgery import INPUTS
from tests.rounding import assert_same_outputs

SHARING = tuple(
    kind for kind in PROJECTED if {**COMMON, **CONFIGS[kind]}.get("num_key_value_heads")
)
"""Families of which the small models have heads that share keys."""
FIXED = {*SHARING, *ONE_MODULE, *(kind for kind in PROJECTED if paths_of(kind).positions)}
MOVABLE = tuple(kind for kind in PROJECTED if kind not in FIXED)
ONE_LAYER = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "num_layers", "encoder_layers"), 1),
    "attention_types": [[["global"], 1]],
}


def weights_of(model: PreTrainedModel) -> list[tuple[float, ...]]:
    rows = weights_of_heads(HeadSites(find_stack(model)))
    return [tuple(row.tolist()) for row in rows.values()]


@pytest.mark.parametrize("kind", MOVABLE)
def test_every_head_keeps_its_weights_in_another_place(kind: str) -> None:
    model = randomise_biases(make_model(kind), 0.1)
    before = weights_of(model)
    shuffle_heads(model, 0)
    after = weights_of(model)
    assert Counter(after) == Counter(before)
    assert sum(one != other for one, other in zip(after, before, strict=True)) > len(before) / 2


@pytest.mark.parametrize("kind", [kind for kind in MOVABLE if kind not in WITH_POSITION_BIAS])
def test_the_order_of_heads_in_a_layer_changes_no_output(kind: str) -> None:
    """Outputs of heads are summed: with one layer, a model computes what it computed before."""
    known = {**COMMON, **CONFIGS[kind]}
    one_layer = {name: n for name, n in ONE_LAYER.items() if known.get(name) is not None}
    model = make_model(kind, **one_layer)
    randomise_biases(model, 0.1)
    with torch.inference_mode():
        before = model(**INPUTS)[0]
        shuffle_heads(model, 3)
        after = model(**INPUTS)[0]
    is_token = INPUTS["attention_mask"].bool()
    assert_same_outputs(after[is_token], before[is_token])


@pytest.mark.parametrize("kind", sorted(FIXED))
def test_heads_that_cannot_move_are_refused_before_anything_is_changed(kind: str) -> None:
    model = make_model(kind)
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    with pytest.raises(ModelSupportError, match=r"heads that (cannot change|share)"):
        shuffle_heads(model, 0)
    assert all(torch.equal(weights, before[name]) for name, weights in model.state_dict().items())
