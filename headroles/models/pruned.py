"""Folders of models with removed heads, written so that they can be read again.

The folder holds the remaining weights, and ``pruned_heads`` of the configuration lists the removed
heads, as in transformers before version 5 (version 4 reads such folders by itself). To read a
folder, the model is built with all heads, loses the listed ones, and then loads the weights
strictly.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any

import transformers
from transformers import MODEL_MAPPING, AutoModel, PreTrainedConfig, PreTrainedModel

from headroles.errors import ModelError, ModelSupportError
from headroles.models.families import is_encoder_decoder
from headroles.models.kept_heads import Head, pruned_heads
from headroles.models.surgery import remove_those_of, removed_from, zero_heads


def class_to_load(auto: Any, config: PreTrainedConfig) -> Any:
    """Return the class whose ``from_pretrained`` reads the weights: ``auto``, or one without heads.

    With AutoModel, only the encoder of an encoder-decoder is read: the class has no decoder.

    Raises ModelSupportError for a model with removed heads of a class unknown to transformers.
    """
    pruned = pruned_heads(config)
    if auto is AutoModel and is_encoder_decoder(config) and type(config) in auto._model_mapping:
        kind = _without_decoder(one_of(auto, config), config)
    elif pruned:
        kind = one_of(auto, config)
    else:
        return auto
    return _without_heads(kind, pruned) if pruned else kind


def _without_decoder(
    kind: type[PreTrainedModel], config: PreTrainedConfig
) -> type[PreTrainedModel]:
    """Return the class that wrote an encoder alone, or ``kind`` without its decoder."""
    named = getattr(sys.modules[kind.__module__], (config.architectures or ["none"])[0], None)
    if isinstance(named, type) and not _takes_decoder_inputs(named):
        return named

    def make(self: Any, config: PreTrainedConfig, *given: Any, **named: Any) -> None:
        kind.__init__(self, config, *given, **named)
        del self.decoder
        for name in ("_tied_weights_keys", "all_tied_weights_keys"):
            tied = getattr(self, name, None) or {}
            own = {one: other for one, other in tied.items() if not one.startswith("decoder.")}
            setattr(self, name, own)

    own = {"__init__": make, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), own)


def _takes_decoder_inputs(kind: Any) -> bool:
    return "decoder_input_ids" in inspect.signature(kind.forward).parameters


def one_of(auto: Any, config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return one of the classes of ``auto``, preferably the one that wrote the configuration.

    Raises ModelSupportError for a family without such a class.
    """
    try:
        found = auto._model_mapping[type(config)]
    except KeyError as error:
        raise ModelSupportError(
            f"{config.model_type} models that headroles changed cannot be read as "
            f"{auto.__name__}; transformers has no such class of this family"
        ) from error
    kinds = found if isinstance(found, tuple | list) else (found,)
    named = [kind for kind in kinds if kind.__name__ in (config.architectures or ())]
    chosen: type[PreTrainedModel] = (named or kinds)[0]
    return chosen


def class_of(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return the class that wrote a configuration, without the removed heads.

    Raises ModelSupportError for a class that transformers does not have.
    """
    named = (config.architectures or ["none"])[0]
    beside = sys.modules.get(getattr(MODEL_MAPPING.get(type(config), None), "__module__", ""))
    found = getattr(transformers, named, None) or getattr(beside, named, None)
    if not (isinstance(found, type) and issubclass(found, PreTrainedModel)):
        raise ModelSupportError(
            f"the configuration was written by {named}, which is no model class that "
            "transformers has"
        )
    pruned = pruned_heads(config)
    return _without_heads(found, pruned) if pruned else found


def _without_heads(
    kind: type[PreTrainedModel], pruned: dict[int, tuple[int, ...]]
) -> type[PreTrainedModel]:
    """Make a class whose models lose heads when they are built, before weights are read."""

    def make(self: PreTrainedModel, config: PreTrainedConfig, *given: Any, **named: Any) -> None:
        kind.__init__(self, config, *given, **named)
        remove_those_of(self, pruned)

    own = {"__init__": make, "__module__": kind.__module__, "_published_class": kind}
    return type(kind.__name__, (kind,), own)


def as_published(network: PreTrainedModel) -> PreTrainedModel:
    """Return a loaded model as an instance of its transformers class."""
    kind = getattr(type(network), "_published_class", None)
    if kind is not None:
        network.__class__ = kind
    return network


def put_to_zero(model: PreTrainedModel, heads: Iterable[Head]) -> None:
    """Set the output weights of heads to zero, for folders that any program can read.

    Raises ModelError for a model that already lacks heads.
    """
    given = list(heads)
    if given and removed_from(model):
        raise ModelError(
            "heads can only be put to zero in a model that has all of its heads; this one lacks "
            f"{len(removed_from(model))}"
        )
    zero_heads(model, given)
