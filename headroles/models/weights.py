"""Configurations and weights, from a folder or the hub: read completely, or rejected by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)

from headroles import storage
from headroles.errors import ModelError
from headroles.memory import lacks_memory
from headroles.models.classes import as_published, class_of, class_to_load, one_of
from headroles.models.collaborative import is_collaborative, load_collaborative
from headroles.models.families import encoder_of, is_encoder_decoder, refuse_unsupported
from headroles.models.folders import (
    advice_on_config,
    advice_on_weights,
    refuse_absurd_sizes,
    refuse_odd_classes,
)
from headroles.models.hub import quiet_transformers, where_to_look
from headroles.models.options import ModelOptions
from headroles.models.saved_models import check_folder
from headroles.wording import in_one_line, listed

ENCODER, CLASSIFICATION, MASKED_LM = HEADS = ("", "classification", "masked_lm")
"""Heads that a model may have on top of its encoder."""
_CLASSES = {
    ENCODER: AutoModel,
    CLASSIFICATION: AutoModelForSequenceClassification,
    MASKED_LM: AutoModelForMaskedLM,
}
# A checkpoint may lack these: no attention weight depends on them.
_UNUSED_PARTS = {
    ENCODER: ("pooler.", "position_ids"),
    CLASSIFICATION: ("position_ids",),
    MASKED_LM: ("pooler.", "position_ids"),
}
_OF_A_LAYER = re.compile(r"\blayers?\.\d+\.")
_OF_A_DECODER = re.compile(r"\bdecoder\.")
_HUB_ID_PARTS = 2  # owner/name


def read_model(
    name: str, options: ModelOptions, head: str | None = None
) -> tuple[PreTrainedModel, list[str]]:
    """Read a model on the CPU in evaluation mode, with warnings about weights that it does not use.

    With ``head``, one of ``HEADS``, the model has that on top of its encoder; with None it is of
    the class that wrote the weights.

    Raises ModelError for weights that are missing, do not fit or would be random, and StorageError
    for a folder of headroles that was changed.
    """
    doubts = check_folder(Path(name)) if Path(name).is_dir() else []
    config = load_config(name, options)
    refuse_unsupported(config)
    if is_collaborative(name):
        model = load_collaborative(name, config, getattr(torch, options.dtype))
        if head:
            refuse_other_head(model, name, head)
        return encoder_of(model) if head == ENCODER else model, doubts
    network, report = _from_pretrained(name, config, options, head)
    _refuse_lacking(network, name, report, head)
    model = as_published(network)
    cast(nn.Module, model).eval()
    if head == ENCODER and is_encoder_decoder(config):
        model = encoder_of(model)
    return model, [*doubts, *_unused_layers(report["unexpected_keys"])]


def _from_pretrained(
    name: str, config: PreTrainedConfig, options: ModelOptions, head: str | None
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Load weights by transformers; return the model and the report of weights that did not fit."""
    kind: Any = class_of(config) if head is None else class_to_load(_CLASSES[head], config)
    try:
        with quiet_transformers(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # equal loads draw equal weights for those that a checkpoint lacks
            network, report = kind.from_pretrained(
                name,
                config=config,
                **where_to_look(name, options),
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


def _refuse_lacking(
    network: PreTrainedModel, name: str, report: dict[str, Any], head: str | None
) -> None:
    """Raise ModelError for weights that would be random and are not in unused parts."""
    missing = sorted(report["missing_keys"])
    missing += sorted(f"{key} of another shape" for key, *_ in report["mismatched_keys"])
    lacking = [key for key in missing if not (is_unused(key, head) or _is_computed(key, network))]
    if head and lacking and not any(_is_of_encoder(key, network) for key in lacking):
        raise _headless(name, head, f"{', '.join(lacking[:3])} would be random")
    if lacking:
        raise ModelError(
            f"{name} lacks weights of its {'model' if head is None else 'encoder'} "
            f"({listed(lacking)}); random ones would be scored in their place. Check that the "
            "weights belong to the configuration"
        )


def _is_computed(key: str, network: PreTrainedModel) -> bool:
    """Tell whether a formula makes a weight, such as sinusoidal positions, so it may be missing."""
    module = network.get_submodule(key.rpartition(".")[0]) if key.endswith(".weight") else None
    return "Sinusoidal" in type(module).__name__


def refuse_other_head(model: PreTrainedModel, name: str, head: str) -> None:
    """Raise ModelError for a transformers model with another head on its encoder."""
    is_known = type(model).__module__.startswith("transformers.")
    if is_known and not isinstance(model, one_of(_CLASSES[head], model.config)):
        raise _headless(name, head, f"it is a {type(model).__name__}")


def _headless(name: str, head: str, finding: str) -> ModelError:
    """Make the error for a model without the head that is needed."""
    return ModelError(
        f"{name} has nothing trained on top of its encoder for {head.replace('_', ' ')} "
        f"({finding}), so importances of its heads would mean nothing; fine-tune it on the "
        "task first"
    )


def _is_of_encoder(key: str, network: PreTrainedModel) -> bool:
    return key.startswith(f"{network.base_model_prefix}.") and "pooler." not in key


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


def _refuse_own_code(name: str, settings: dict[str, Any]) -> None:
    """Raise ModelError for a model that only the code beside it knows."""
    code = settings.get("auto_map")
    if code and settings.get("model_type") not in CONFIG_MAPPING:
        raise ModelError(
            f"{name} brings code of its own ({listed(sorted(map(str, code.values())))}), which "
            "transformers does not know and headroles runs only if asked to: read it first, then "
            "give trust_remote_code=True (--trust-remote-code)"
        )


def load_config(name: str, options: ModelOptions) -> PreTrainedConfig:
    """Read the configuration of a folder or hub id. Raises ModelError if there is none."""
    folder = Path(name)
    if folder.is_dir():
        storage.finish_swap(folder)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(
            f"{name} holds no config.json; give a folder written by save_pretrained, or a hub id"
        )
    where = where_to_look(name, options)
    try:
        settings = PreTrainedConfig.get_config_dict(name, **where)[0]
        refuse_absurd_sizes(name, settings)
        refuse_odd_classes(name, settings)
        if not options.trust_remote_code:
            _refuse_own_code(name, settings)
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            name, trust_remote_code=options.trust_remote_code, **where
        )
    except ModelError:
        raise
    except Exception as error:  # configurations are validated by libraries with errors of their own
        raise _unreadable_config(name, error, where["local_files_only"]) from error
    return config


def _unreadable_config(name: str, error: Exception, is_offline: bool) -> ModelError:
    """Make the error for a model whose configuration is missing or cannot be read."""
    folder = Path(name)
    if folder.is_file():
        return ModelError(
            f"{name} is a file, and a model is a folder or a hub id; give the model first, then "
            "the corpus or task"
        )
    if folder.exists():
        return ModelError(
            f"the configuration of {name} cannot be read ({in_one_line(error)}); "
            f"{advice_on_config(folder)}"
        )
    if folder.is_absolute() or name.startswith(".") or len(folder.parts) > _HUB_ID_PARTS:
        return ModelError(f"there is no folder {name}; check the path")
    reason = f"the hub has no model of that name ({in_one_line(error)})"
    if is_offline:
        reason = "the hub cannot be reached from here, and no earlier copy of it is stored"
    return ModelError(f"there is no folder {name}, and {reason}; check the name and the connection")
