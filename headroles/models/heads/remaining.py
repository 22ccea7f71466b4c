"""Heads that a model still has; its configuration lists the removed ones.

``pruned_heads`` is the setting that transformers before version 5 wrote and read: layers as keys
(text, after JSON) and the removed heads of each, by their numbers in the model as it was trained.
Heads have those numbers in every table. ``pruned_decoder_heads`` and ``pruned_cross_heads`` are
those of the decoder beside an encoder, in the same form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from headroles.errors import ModelError, UsageError
from headroles.models.options import CROSS, DECODER, ENCODER
from headroles.wording import listed, shortened

Head: TypeAlias = tuple[int, int]
"""(layer, head), both counted from 0."""
SETTINGS = {
    ENCODER: "pruned_heads",
    DECODER: "pruned_decoder_heads",
    CROSS: "pruned_cross_heads",
}
"""Settings that list the removed heads, by kind of attention."""


def sizes_of(config: Any, kind: str = ENCODER) -> tuple[int, int]:
    """Return the numbers of layers and of heads in each; 0 if the configuration does not say."""
    layers, heads = ["num_hidden_layers"], ["num_attention_heads"]
    if kind != ENCODER:
        layers = ["decoder_layers", "num_decoder_layers"]
        heads.insert(0, "decoder_attention_heads")
    settings_found = ([getattr(config, name, None) for name in names] for names in (layers, heads))
    n_layers, n_heads = (
        next((n for n in numbers if n is not None), 0) for numbers in settings_found
    )
    return n_layers, n_heads


def pruned_heads(config: Any, kind: str = ENCODER) -> dict[int, tuple[int, ...]]:
    """Return the removed heads of each layer that lacks some.

    Raises ModelError for a configuration that lists heads which the model cannot have had.
    """
    name = SETTINGS[kind]
    recorded: Any = getattr(config, name, None) or {}
    try:
        heads_by_layer = {str(layer): list(heads) for layer, heads in recorded.items()}
        pruned = msgspec.convert(heads_by_layer, dict[int, list[int]], str_keys=True)
        if any(len(set(heads)) < len(heads) for heads in pruned.values()):
            raise ValueError("heads that are named twice")
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(
            f"{name} of the configuration is {shortened(recorded)}; it must name heads by "
            'layer, as in {"0": [1, 2]}'
        ) from error
    if not pruned:
        return {}
    n_layers, n_heads = sizes_of(config, kind)
    for layer, heads in pruned.items():
        if not 0 <= layer < n_layers or any(not 0 <= head < n_heads for head in heads):
            raise ModelError(
                f"{name} of the configuration names heads {listed(heads)} of layer {layer}; "
                f"the model has {n_layers} layers of {n_heads} heads, counted from 0"
            )
    return {layer: tuple(sorted(heads)) for layer, heads in sorted(pruned.items()) if heads}


def removed_heads(config: Any, kind: str = ENCODER) -> list[Head]:
    """Return the removed heads; raises errors as `pruned_heads`."""
    return [(layer, head) for layer, heads in pruned_heads(config, kind).items() for head in heads]


def removed_by_kind(config: Any) -> dict[str, list[Head]]:
    """Return the removed heads of each kind of attention that lacks some."""
    by_kind = {kind: removed_heads(config, kind) for kind in SETTINGS}
    return {kind: heads for kind, heads in by_kind.items() if heads}


def by_layer(heads: Iterable[Head]) -> dict[int, list[int]]:
    """Group heads by layer, sorted, without repeats."""
    grouped: dict[int, list[int]] = {}
    for layer, head in sorted(set(heads)):
        grouped.setdefault(layer, []).append(head)
    return grouped


def check_heads(heads: Iterable[Head], n_layers: int, n_heads: int) -> None:
    """Raise UsageError for a head that a model of this size does not have."""
    for layer, head in heads:
        if not 0 <= layer < n_layers or not 0 <= head < n_heads:
            raise UsageError(
                f"there is no head {layer}-{head}; the model has {n_layers} layers of {n_heads} "
                "heads, counted from 0"
            )
