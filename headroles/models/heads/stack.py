"""A stack: the layers of attention of a model, in one value that everything else asks.

A model has a stack of layers, perhaps below a task head, or beside a decoder. What runs, what is
read, where the projections are, how many layers and heads there are, which heads were removed and
how far each layer sees is found here, once.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.families import Family, Paths, find_family, is_encoder_decoder
from headroles.models.heads.remaining import Head, pruned_heads, sizes_of
from headroles.models.options import CROSS, DECODER, ENCODER
from headroles.reach import ACROSS, SOURCE, TARGET, Reach, window_of_decoder, window_to_either_side

_FULL, _WINDOW = "full_attention", "sliding_attention"
"""Kinds of layers in configurations: every query sees one span of keys."""


@dataclass(frozen=True)
class Stack:
    """The layers of attention of a model; `find_stack` makes it."""

    whole: PreTrainedModel
    """The model with all that is around the stack, such as a task head."""
    base: PreTrainedModel
    """The part that runs on a batch of tokens."""
    part: PreTrainedModel
    """The part of ``base`` whose attention is read; its paths begin below it."""
    family: Family
    n_layers: int
    """Number of layers; 0 if the configuration does not say, before a trial counts them."""
    n_heads: int
    """Number of heads that each layer has, or had before some were removed; 0 as for layers."""
    kind: str = ENCODER
    """Which attention of an encoder-decoder it is, one of ``ATTENTIONS``."""
    causal: tuple[bool, ...] = ()
    """For each layer, whether no token sees a later one, as a trial found; empty before it."""

    @property
    def config(self) -> Any:
        """Configuration of the part that is read; of a model of text and pictures, that of text."""
        config = getattr(self.part, "config", self.base.config)  # which FSMT's decoder lacks
        return config if is_encoder_decoder(config) else getattr(config, "text_config", config)

    @property
    def settings(self) -> dict[str, Any]:
        """Further arguments of a pass.

        A cache would hold the keys of all layers for tokens that are never generated.
        """
        return _without_cache(self.base)

    def run_whole(self, inputs: Mapping[str, Tensor]) -> Any:
        """Run the model with its head on the inputs of a batch."""
        return self.whole(**inputs, **_without_cache(self.whole))

    @property
    def takes_targets(self) -> bool:
        """Whether a pass reads a source and a target."""
        return self.kind != ENCODER

    @property
    def device(self) -> torch.device:
        """Device that the inputs have to be on."""
        return self.base.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self.base.dtype

    @property
    def paths(self) -> Paths:
        """Paths of the projections below ``part``. Raises ModelSupportError if they are unknown."""
        if self.family.paths is None:
            reason = self.family.why_no_paths
            raise ModelSupportError(
                "norms, gates and the removal of heads are not possible for "
                f"{self.family.name}: "
                f"{reason or 'where it keeps its queries, keys and values is not known'}; "
                "its attention weights can be scored"
            )
        return self.family.paths.across if self.kind == CROSS else self.family.paths

    @property
    def remaining(self) -> tuple[tuple[int, ...], ...]:
        """For each layer, the numbers of the heads that it has now.

        Heads keep the numbers that they had when the model was trained. Raises ModelError for a
        configuration that lists heads which the model cannot have had.
        """
        pruned = pruned_heads(self.config, self.kind)
        return tuple(
            tuple(head for head in range(self.n_heads) if head not in pruned.get(layer, ()))
            for layer in range(self.n_layers)
        )

    @property
    def heads(self) -> list[Head]:
        """The heads that the model has now, as (layer, head)."""
        return [(layer, head) for layer, heads in enumerate(self.remaining) for head in heads]

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """For each layer, how far its attention reaches.

        Raises ModelSupportError for a layer whose queries do not see one span of keys.
        """
        if self.kind == CROSS:
            return (ACROSS,) * self.n_layers
        sequence = TARGET if self.takes_targets else SOURCE
        config = self.config
        differ = getattr(config, "is_heterogeneous", False)
        configs = config.per_layer_config if differ else [config] * self.n_layers
        sides = 2 if config.model_type == "t5gemma2_text" else 1  # its width is that of both sides
        reaches = []
        for kind, of_layer, is_causal in zip(self.kinds, configs, self.are_causal, strict=True):
            if kind not in (_FULL, _WINDOW):
                raise ModelSupportError(
                    f"{self.family.name}: tokens do not see one span of keys in its layers of "
                    f"the kind {kind}"
                )
            width = None
            if kind == _WINDOW:
                width = getattr(of_layer, "sliding_window", None) or of_layer.window_size
            if is_causal:
                reaches.append(window_of_decoder(width, sequence))
            else:
                reaches.append(window_to_either_side(width and width // sides))
        return tuple(reaches)

    @property
    def are_causal(self) -> tuple[bool, ...]:
        """For each layer, whether no token sees a later one.

        Before a trial, they are so if the family or the configuration says it.
        """
        is_decoder = self.kind == DECODER or self.family.is_decoder or _says_causal(self.config)
        return self.causal or (is_decoder,) * self.n_layers

    @property
    def kinds(self) -> list[str]:
        """For each layer, the kind that the configuration names."""
        config = self.config
        if kinds := getattr(config, "layer_types", None):
            return list(kinds)
        if kinds := getattr(config, "attention_layers", None):  # GPT-Neo
            return [{"global": _FULL, "local": _WINDOW}.get(kind, kind) for kind in kinds]
        # Mistral and others name no kinds, and have a window in every layer or in none
        has_window = getattr(config, "sliding_window", None) is not None
        return [_WINDOW if has_window and any(self.are_causal) else _FULL] * self.n_layers

    @property
    def longest_input(self) -> int | None:
        """Largest number of tokens for the position embeddings; None if unlimited."""
        for name, module in cast(nn.Module, self.base).named_modules():
            if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
                # RoBERTa counts positions from behind the padding index
                taken = 0 if module.padding_idx is None else module.padding_idx + 1
                return module.num_embeddings - taken
        most: int | None = getattr(self.base.config, "max_position_embeddings", None)
        return most if most is None or most > 0 else None  # XLNet says -1


def _without_cache(model: PreTrainedModel) -> dict[str, Any]:
    takes_cache = "use_cache" in inspect.signature(model.forward).parameters
    return {"use_cache": False} if takes_cache else {}


def find_stack(model: PreTrainedModel, kind: str = ENCODER) -> Stack:
    """Find the layers of a model, below any task head; of an encoder-decoder those of a ``kind``.

    Raises ModelSupportError for models that cannot be scored, and for a kind of attention that a
    model does not have.
    """
    family = find_family(model)
    if kind != ENCODER:
        return _decoder_in(model, family, kind)
    encoder = _encoder_in(model)
    stack = Stack(model, encoder, encoder, family, n_layers=0, n_heads=0)
    return replace(
        stack,
        n_layers=getattr(stack.config, "num_hidden_layers", 0),
        n_heads=getattr(stack.config, "num_attention_heads", 0),
    )


def _decoder_in(model: PreTrainedModel, family: Family, kind: str) -> Stack:
    """Find the layers of the decoder, or of cross-attention."""
    base = cast("PreTrainedModel", model.base_model)
    if not is_encoder_decoder(model.config) or getattr(base, "decoder", None) is None:
        raise ModelSupportError(
            f"{family.name} has no {kind} attention beside that of an encoder: this takes an "
            "encoder-decoder, such as Marian, BART or T5"
        )
    if family.returns_scores:
        raise ModelSupportError(
            f"{family.name}: its decoder attends to several sequences at once; only its encoder is "
            "read"
        )
    part = cast("PreTrainedModel", base.decoder)
    n_layers, n_heads = sizes_of(model.config, kind)
    return Stack(model, base, part, family, n_layers=n_layers, n_heads=n_heads, kind=kind)


def _says_causal(config: Any) -> bool:
    """Tell whether a configuration makes a decoder of a model that is an encoder otherwise."""
    return bool(getattr(config, "is_decoder", False) or getattr(config, "causal", False))


def _encoder_in(model: PreTrainedModel) -> PreTrainedModel:
    """Return the encoder of a model, without any task head or decoder."""
    base = cast("PreTrainedModel", model.base_model)
    if not is_encoder_decoder(model.config):
        return base
    encoder: Any = base.get_encoder()
    if getattr(encoder, "config", None) is None:
        encoder = EncoderHalf(model.config, encoder)
    return cast("PreTrainedModel", getattr(encoder, "text_model", encoder))


class EncoderHalf(PreTrainedModel):  # type: ignore[no-untyped-call]
    """The encoder of an encoder-decoder, where it has no configuration of its own (FSMT)."""

    def __init__(self, config: PreTrainedConfig, encoder: nn.Module) -> None:
        super().__init__(config)
        self.encoder = encoder
        self.training = encoder.training

    def get_encoder(self, modality: str | None = None) -> PreTrainedModel:
        """Return the encoder as a model, which this is."""
        return self

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of tokens."""
        return self.encoder.get_submodule("embed_tokens")

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **arguments: Any) -> Any:
        """Run the encoder."""
        return self.encoder(input_ids, attention_mask, **arguments)
