"""Classes that models are read as: without removed heads, or without a decoder.

The folder of a model with removed heads holds the remaining weights, and ``pruned_heads`` of its
configuration lists the removed heads, as in transformers before version 5 (version 4 reads such
folders by itself). The class builds the model with all heads and removes the listed ones before
transformers loads the weights strictly.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import transformers
from transformers import MODEL_MAPPING, AutoModel, PreTrainedConfig, PreTrainedModel

from headroles.errors import ModelSupportError
from headroles.models.families import is_encoder_decoder
from headroles.models.heads.remaining import Head, removed_heads
from headroles.models.heads.surgery import remove_listed


def class_to_load(auto: Any, config: PreTrainedConfig) -> Any:
    """Return the class whose ``from_pretrained`` reads the weights: ``auto``, or one without heads.

    With AutoModel, only the encoder of an encoder-decoder is read: the class has no decoder.

    Raises ModelSupportError for a model with removed heads of a class unknown to transformers.
    """
    removed = removed_heads(config)
    if auto is AutoModel and is_encoder_decoder(config) and type(config) in auto._model_mapping:
        kind = _without_decoder(one_of(auto, config), config)
    else:
        has_code = getattr(config, "auto_map", None)  # with classes that transformers does not know
        known = one_of(auto, config) if removed or not has_code else auto
        kind = known if removed else auto
    return _without_heads(kind, removed)


def _without_decoder(
    kind: type[PreTrainedModel], config: PreTrainedConfig
) -> type[PreTrainedModel]:
    """Return the class that wrote an encoder alone, or ``kind`` without its decoder."""
    named = getattr(sys.modules[kind.__module__], (config.architectures or ["none"])[0], None)
    if isinstance(named, type):
        forward: Any = named.forward  # type: ignore[attr-defined]
        if "decoder_input_ids" not in inspect.signature(forward).parameters:
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


def one_of(auto: Any, config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return one of the classes of ``auto``, preferably the one that wrote the configuration.

    Raises ModelSupportError for a family without such a class.
    """
    try:
        found = auto._model_mapping[type(config)]
    except KeyError as error:
        raise ModelSupportError(
            f"{config.model_type} models cannot be read as {auto.__name__}: transformers has no "
            "such class of this family; name a model that was trained for the task"
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
    return _without_heads(found, removed_heads(config))


def _without_heads(kind: type[PreTrainedModel], removed: list[Head]) -> type[PreTrainedModel]:
    """Make a class that builds models of ``kind`` without some heads, before weights are read."""
    if not removed:
        return kind

    def make(self: PreTrainedModel, config: PreTrainedConfig, *given: Any, **named: Any) -> None:
        kind.__init__(self, config, *given, **named)
        remove_listed(self, removed)
        self.__class__ = kind

    return type(kind.__name__, (kind,), {"__init__": make, "__module__": kind.__module__})
