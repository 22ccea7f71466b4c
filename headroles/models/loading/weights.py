"""Configurations and weights, from a folder or the hub: read completely, or rejected by name.

The folder of a model with removed heads holds the remaining weights, and ``pruned_heads`` of its
configuration lists the removed heads, as in transformers before version 5 (version 4 reads such
folders by itself). The class that reads it builds the model with all heads and removes the listed
ones before transformers loads the weights strictly.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from torch import nn
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file

from headroles import storage
from headroles.errors import ModelError, ModelSupportError, lacks_memory
from headroles.models.families import (
    check_supported,
    is_encoder_decoder,
    quiet_transformers,
)
from headroles.models.heads.low_rank import (
    is_collaborative,
    load_collaborative,
    low_rank_model,
)
from headroles.models.heads.remaining import Head, removed_by_kind
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_listed
from headroles.models.loading.folders import (
    advice_on_weights,
    check_folder,
    check_layout,
    check_settings,
    local_folder,
    read_settings,
    stored_weights,
)
from headroles.models.options import ENCODER as ATTENTION_OF_ENCODER
from headroles.models.options import WeightOptions
from headroles.wording import in_one_line, listed

ENCODER, CLASSIFICATION, MASKED_LM, CAUSAL_LM, TEXT_TO_TEXT = HEADS = (
    *("", "classification", "masked_lm"),
    *("causal_lm", "text_to_text"),
)
"""Heads that a model may have on top of its encoder."""
_CLASSES = {
    ENCODER: AutoModel,
    CLASSIFICATION: AutoModelForSequenceClassification,
    MASKED_LM: AutoModelForMaskedLM,
    CAUSAL_LM: AutoModelForCausalLM,
    TEXT_TO_TEXT: AutoModelForSeq2SeqLM,
}
# A checkpoint may lack these: no attention weight depends on them.
_UNUSED_PARTS = {
    ENCODER: ("pooler.", "position_ids"),
    CLASSIFICATION: ("position_ids",),
    **dict.fromkeys((MASKED_LM, CAUSAL_LM, TEXT_TO_TEXT), ("pooler.", "position_ids")),
}
_OF_A_LAYER = re.compile(r"\blayers?\.\d+\.")
_OF_A_DECODER = re.compile(r"\bdecoder\.")
_HUB_ID_PARTS = 2  # owner/name
_MOST_TIMES, _MOST_BESIDE = 4, 10_000_000
"""Weights that a model may have for each one in its files, as several parts may share one, and
beside these.
"""


def read_model(
    name: str,
    options: WeightOptions,
    head: str | None = None,
    attention: str = ATTENTION_OF_ENCODER,
) -> tuple[PreTrainedModel, list[str]]:
    """Read a model on the CPU in evaluation mode, with warnings about weights that it does not use.

    With ``head``, one of ``HEADS``, the model has that on top of its encoder; with None it is of
    the class that wrote the weights. Of an encoder-decoder the encoder alone is read, unless the
    ``attention`` is another.

    Raises ModelError for weights that are missing, do not fit or would be random, and StorageError
    for a folder of headroles that was changed.
    """
    folder = local_folder(name)
    doubts = [] if folder is None else check_folder(folder)
    name = str(folder or name)
    config = load_config(name, options)
    check_supported(config)
    if folder is not None and is_collaborative(folder):

        def make() -> PreTrainedModel:
            loaded: PreTrainedModel = class_to_load(config, None, False)(copy.deepcopy(config))
            return loaded

        # without weights to compare with, only small models are made
        _check_number_of_weights(name, None, lambda: low_rank_model(folder, make()), fewest=1)
        model = load_collaborative(folder, make)
        cast(nn.Module, model).to(getattr(torch, options.dtype))
        if head:
            check_head(model, name, head)
    else:
        model, report = _from_pretrained(name, config, options, head, attention)
        _check_complete(model, name, report, head)
        doubts += _unused_layers(report["unexpected_keys"])
    cast(nn.Module, model).eval()
    return find_stack(model, attention).base if head == ENCODER else model, doubts


def _from_pretrained(
    name: str, config: PreTrainedConfig, options: WeightOptions, head: str | None, attention: str
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Load weights by transformers; return the model and the report of weights that did not fit."""
    kind = class_to_load(config, head, options.trust_remote_code, attention)
    if not options.trust_remote_code:
        _check_number_of_weights(name, options.revision, lambda: kind(config))
    try:
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # equal loads draw equal weights for those that a checkpoint lacks
            network, report = kind.from_pretrained(
                name,
                config=config,
                revision=options.revision,
                dtype=getattr(torch, options.dtype),
                use_safetensors=True,
                trust_remote_code=options.trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused by name, once all of them are known
            )
    except Exception as error:  # a configuration can lead to any error
        advice = advice_on_weights(Path(name))
        if lacks_memory(error):
            advice = "memory ran out: free some, or use a machine with more"
        raise ModelError(
            f"the weights of {name} cannot be loaded ({in_one_line(error)}); {advice}"
        ) from error
    return network, report


def _check_number_of_weights(
    name: str, revision: str | None, make: Callable[[], nn.Module], fewest: int = 0
) -> None:
    """Raise ModelError for a configuration of many more weights than the files have.

    Only shapes are made, and only headers are read, so that no memory is taken for them. Files of
    the hub are downloaded first. Files without weights count as ``fewest``; with 0 of them the
    configuration is not checked, since transformers refuses them before it makes the model.
    """
    try:
        of_hub = (
            None if Path(name).is_dir() else cached_file(name, SAFE_WEIGHTS_NAME, revision=revision)
        )
        stored = stored_weights(Path(name) if of_hub is None else Path(of_hub).parent) or fewest
        with quiet_transformers(), torch.device("meta"):
            empty_model = make()
    except Exception:  # reported where the weights are read
        return
    sizes = {key: weights.numel() for key, weights in empty_model.named_parameters()}
    if stored and sum(sizes.values()) > _MOST_TIMES * stored + _MOST_BESIDE:
        largest = max(sizes, key=sizes.__getitem__)
        raise ModelError(
            f"the configuration of {name} asks for {sum(sizes.values()):,} weights, "
            f"{sizes[largest]:,} of them in {largest}, and its safetensors files have {stored:,}; "
            "correct the sizes in its .json files"
        )


def _check_complete(
    network: PreTrainedModel, name: str, report: dict[str, Any], head: str | None
) -> None:
    """Raise ModelError for weights that would be random and are not in unused parts."""
    missing = sorted(report["missing_keys"])
    missing += sorted(f"{key} of another shape" for key, *_ in report["mismatched_keys"])
    lacking = [key for key in missing if not is_unused(key, head)]
    for key in [key for key in lacking if key.endswith(".weight")]:
        if "Sinusoidal" in type(network.get_submodule(key.rpartition(".")[0])).__name__:
            lacking.remove(key)  # a formula makes these positions
    prefix = f"{network.base_model_prefix}."
    of_encoder = [key for key in lacking if key.startswith(prefix) and "pooler." not in key]
    if head and lacking and not of_encoder:
        raise _headless(name, head, f"{', '.join(lacking[:3])} would be random")
    if lacking:
        raise ModelError(
            f"{name} lacks weights of its {'model' if head is None else 'encoder'} "
            f"({listed(lacking)}); random ones would be scored in their place. Check that the "
            "weights belong to the configuration"
        )


def check_head(model: PreTrainedModel, name: str, head: str) -> None:
    """Raise ModelError for a transformers model with another head on its encoder."""
    is_known = type(model).__module__.startswith("transformers.")
    if is_known and not isinstance(model, class_among(_CLASSES[head], model.config)):
        raise _headless(name, head, f"it is a {type(model).__name__}")


def _headless(name: str, head: str, finding: str) -> ModelError:
    """Make the error for a model without the head that is needed."""
    return ModelError(
        f"{name} has nothing trained on top of its encoder for {head.replace('_', ' ')} "
        f"({finding}), so importances of its heads would mean nothing; fine-tune it on the "
        "task first"
    )


def _unused_layers(unexpected: Iterable[str]) -> list[str]:
    """Warn of layers in the checkpoint that the configuration does not use."""
    unused = sorted(
        key for key in unexpected if _OF_A_LAYER.search(key) and not _OF_A_DECODER.search(key)
    )
    if not unused:
        return []
    return [
        f"the checkpoint has {len(unused)} weights of layers that its configuration does not use "
        f"({listed(unused)}): check num_hidden_layers in config.json"
    ]


def is_unused(key: str, head: str | None = ENCODER) -> bool:
    """Tell whether neither attention weights nor ``head`` depend on a weight."""
    return any(part in key for part in _UNUSED_PARTS[head or ENCODER])


def load_config(name: str, options: WeightOptions) -> PreTrainedConfig:
    """Read the configuration of a folder or hub id. Raises ModelError if there is none."""
    folder = local_folder(name)
    name = str(folder or name)
    if folder is not None:
        check_layout(folder)
    try:
        revision = options.revision
        if folder is None and not try_to_load_from_cache(name, "config.json", revision=revision):
            _check_connection(name, revision)
        settings = PreTrainedConfig.get_config_dict(name, revision=revision)[0]
        check_settings(name, settings, options.trust_remote_code)
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            name, revision=revision, trust_remote_code=options.trust_remote_code
        )
        if config._attn_implementation != "eager":  # others may be code that the hub has
            config._attn_implementation = None  # sdpa, or eager where a family lacks it
    except ModelError:
        raise
    except Exception as error:  # configurations are validated by libraries with errors of their own
        raise ModelError(_about_config(name, in_one_line(error))) from error
    return config


def _check_connection(name: str, revision: str | None) -> None:
    """Ask the hub once, as its library asks for half a minute. Raises what the connection does."""
    with suppress(HfHubHTTPError, OfflineModeIsEnabled):
        get_hf_file_metadata(hf_hub_url(name, "config.json", revision=revision))


def _about_config(name: str, reason: str) -> str:
    """Describe why a configuration is missing or cannot be read, with advice."""
    folder = Path(name)
    if storage.is_file(folder):
        return (
            f"{name} is a file, and a model is a folder or a hub id; give the model first, then "
            "the corpus or task"
        )
    if storage.exists(folder):
        settings = read_settings(folder / "config.json")
        advice = "give a folder written by save_pretrained, or a hub id"
        if settings and "model_type" not in settings:
            advice = (
                f'{folder / "config.json"} names no model_type: add it, as in "model_type": "bert" '
                "for a model that BERT's code made"
            )
        return f"the configuration of {name} cannot be read ({reason}); {advice}"
    if folder.is_absolute() or name.startswith(".") or len(folder.parts) > _HUB_ID_PARTS:
        return f"there is no folder {name}; check the path"
    return (
        f"there is no folder {name}, and the hub gives no model of that name ({reason}); check "
        "the name and the connection, or take copies that are stored here alone with "
        "HF_HUB_OFFLINE=1"
    )


def class_to_load(
    config: PreTrainedConfig,
    head: str | None,
    trust_remote_code: bool,
    attention: str = ATTENTION_OF_ENCODER,
) -> Any:
    """Return the class whose ``from_pretrained`` reads the weights; raises errors as `read_model`.

    Where the encoder of an encoder-decoder is read alone, its class has no decoder.
    """
    removed = removed_by_kind(config)
    if head is None:
        return _without_heads(class_of(config), removed)
    auto = _CLASSES[head]
    if trust_remote_code and getattr(config, "auto_map", None) and not removed:
        return auto  # it may be of a class that transformers does not know
    kind = class_among(auto, config)
    if head == ENCODER and is_encoder_decoder(config) and attention == ATTENTION_OF_ENCODER:
        kind = _without_decoder(kind, config)
        removed = {name: heads for name, heads in removed.items() if name == ATTENTION_OF_ENCODER}
    return _without_heads(kind, removed)


def _without_decoder(
    kind: type[PreTrainedModel], config: PreTrainedConfig
) -> type[PreTrainedModel]:
    """Return the class that wrote an encoder alone, or ``kind`` without its decoder."""
    kwargs = getattr(sys.modules[kind.__module__], (config.architectures or ["none"])[0], None)
    if isinstance(kwargs, type):
        forward: Any = kwargs.forward  # type: ignore[attr-defined]
        if "decoder_input_ids" not in inspect.signature(forward).parameters:
            return kwargs

    def make(self: Any, config: PreTrainedConfig, *args: Any, **kwargs: Any) -> None:
        kind.__init__(self, config, *args, **kwargs)
        del self.decoder
        for name in ("_tied_weights_keys", "all_tied_weights_keys"):
            tied = getattr(self, name, None) or {}
            kept = {key: other for key, other in tied.items() if not key.startswith("decoder.")}
            setattr(self, name, kept)

    return type(kind.__name__, (kind,), {"__init__": make, "__module__": kind.__module__})


def class_among(auto: Any, config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return one of the classes of ``auto``, preferably the one that wrote the configuration.

    Raises ModelSupportError for a family without such a class.
    """
    try:
        mapped = auto._model_mapping[type(config)]
    except KeyError as error:
        raise ModelSupportError(
            f"{config.model_type} models cannot be read as {auto.__name__}: transformers has no "
            "such class of this family; name a model that was trained for the task"
        ) from error
    kinds = mapped if isinstance(mapped, tuple | list) else (mapped,)
    in_config = [kind for kind in kinds if kind.__name__ in (config.architectures or ())]
    chosen: type[PreTrainedModel] = (in_config or kinds)[0]
    return chosen


def class_of(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """Return the class that wrote a configuration.

    Raises ModelSupportError for a class that transformers does not have.
    """
    architecture = (config.architectures or ["none"])[0]
    beside = sys.modules.get(getattr(MODEL_MAPPING.get(type(config), None), "__module__", ""))
    kind = getattr(transformers, architecture, None) or getattr(beside, architecture, None)
    if not (isinstance(kind, type) and issubclass(kind, PreTrainedModel)):
        raise ModelSupportError(
            f"the configuration was written by {architecture}, which is no model class that "
            "transformers has"
        )
    return kind


def _without_heads(
    kind: type[PreTrainedModel], removed: dict[str, list[Head]]
) -> type[PreTrainedModel]:
    """Make a class that builds models of ``kind`` without some heads, before weights are read."""
    if not removed:
        return kind

    def make(self: PreTrainedModel, config: PreTrainedConfig, *args: Any, **kwargs: Any) -> None:
        kind.__init__(self, config, *args, **kwargs)
        remove_listed(self, removed)
        self.__class__ = kind

    return type(kind.__name__, (kind,), {"__init__": make, "__module__": kind.__module__})
