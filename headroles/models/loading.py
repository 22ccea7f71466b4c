"""Encoders and tokenizers from a folder or the hub, checked before they are used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from headroles.errors import ModelError, TokenizerError, UsageError
from headroles.models.collaborative import is_collaborative, load_collaborative
from headroles.models.families import longest_input, refuse_unsupported
from headroles.models.folders import (
    TOKENIZER_FILES,
    cure_of_config,
    cure_of_weights,
    refuse_absurd_sizes,
)
from headroles.models.hub import hub_answers
from headroles.models.options import ModelOptions
from headroles.models.pruned import as_published, class_of, class_to_load
from headroles.models.quiet import quiet_transformers
from headroles.models.tokenizers import (
    doubts_about,
    fit_to_words,
    limit_of,
    refuse_other_vocabulary,
)
from headroles.wording import listed

Model: TypeAlias = str | Path | PreTrainedModel
"""A folder, a hub id, or a loaded model in evaluation mode."""

ENCODER, CLASSIFICATION, MASKED_LM = HEADS = ("", "classification", "masked_lm")
"""What a model may have on top of its encoder, where that is needed."""
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
_HUB_ID_PARTS = 2  # owner/name


@dataclass(frozen=True)
class LoadedEncoder:
    """An encoder that is ready to be scored. ``max_tokens`` counts special tokens too."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    takes_token_types: bool
    description: dict[str, Any]

    @property
    def device(self) -> torch.device:
        """Where the inputs belong."""
        return self.model.device


def load_encoder(
    model: Model, options: ModelOptions | None = None, head: str = ENCODER
) -> LoadedEncoder:
    """A checked encoder with its tokenizer, from a folder, a hub id or a loaded model.

    A model that heads were removed from is read as it is. With ``head`` of ``HEADS`` the model
    comes with what was trained on top of its encoder, and the tokenizer as it was trained with. A
    loaded model is used where it stands, in its own precision; a tokenizer must come with it
    unless it knows where it was loaded from. Weights are read from safetensors files only, and
    code from the hub is run only with ``trust_remote_code``.

    Raises:
        ModelError: no such model, no safetensors weights, or weights missing or not finite.
        ModelSupportError: not an encoder that can be scored.
        TokenizerError: no tokenizer.
        UsageError: a device that this machine does not have.
    """
    options = options or ModelOptions()
    if isinstance(model, PreTrainedModel):
        name = model.config._name_or_path or type(model).__name__
        refuse_unsupported(model.config)
        network, source = model, model.config._name_or_path
        unused: list[str] = []
    else:
        source = name = str(model)
        network, unused = _load_model(name, options, head)
        cast(nn.Module, network).to(choose_device(options.device))
    _refuse_broken_weights(network, name)
    tokenizer = _load_tokenizer(options.tokenizer or source, options)
    refuse_other_vocabulary(tokenizer, network, name)
    limits = (longest_input(network.base_model, network.config), limit_of(tokenizer))
    return LoadedEncoder(
        model=network,
        tokenizer=tokenizer if head else fit_to_words(tokenizer),
        max_tokens=min(int(limit) for limit in limits if limit is not None),
        takes_token_types=_takes_token_types(network.config, tokenizer),
        description={
            "model": name,
            "revision": getattr(network.config, "_commit_hash", None) or options.revision,
            "class": type(network).__name__,
            "model_type": network.config.model_type,
            "dtype": str(network.dtype).removeprefix("torch."),
            "weights_sha256": weight_digest(network if head else network.base_model),
            "tokenizer": tokenizer.name_or_path,
            "tokenizer_class": type(tokenizer).__name__,
            "warnings": [*unused, *doubts_about(tokenizer, network, options.tokenizer or source)],
        },
    )


def load_whole(
    model: Model, options: ModelOptions
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model with its task head, if it has one, and its tokenizer as it stands there.

    To be changed and written again; errors are those of `load_encoder`.
    """
    if isinstance(model, PreTrainedModel):
        refuse_unsupported(model.config)
        return model, _load_tokenizer(options.tokenizer or model.config._name_or_path, options)
    name = str(model)
    network = load_model(name, options)
    cast(nn.Module, network).to(choose_device(options.device))
    return network, _load_tokenizer(options.tokenizer or name, options)


def choose_device(device: str) -> torch.device:
    """The device called ``device``, ``"auto"`` being the first of cuda, mps and cpu that works.

    Raises UsageError for a device that this machine does not have.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"unknown device {device!r}; use auto, cpu, cuda or mps") from error
    absent_gpu = chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count()
    if not available.get(chosen.type, False) or absent_gpu:
        raise UsageError(f"this machine has no usable {device}; use --device auto or cpu")
    return chosen


def weight_digest(model: torch.nn.Module) -> str:
    """SHA-256 over names, shapes and values of the weights that attention depends on.

    A pooler is left out: where a checkpoint lacks one, every load makes up another.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if _is_unused(name):
            continue
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _load_model(name: str, options: ModelOptions, head: str) -> tuple[PreTrainedModel, list[str]]:
    """The model, and what to know of the weights that it does not use."""
    config = load_config(name, options)
    refuse_unsupported(config)
    if is_collaborative(name):
        return load_collaborative(name, getattr(torch, options.dtype)), []
    try:
        with quiet_transformers():
            network, report = class_to_load(_CLASSES[head], config).from_pretrained(
                name,
                config=config,
                **_where(name, options),
                dtype=getattr(torch, options.dtype),
                use_safetensors=True,
                trust_remote_code=options.trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported below, by name
            )
    except Exception as error:  # of whatever the configuration made of the model
        raise ModelError(
            f"the weights of {name} cannot be loaded ({_summary(error)}); "
            f"{cure_of_weights(Path(name))}"
        ) from error
    lacking = sorted(key for key in report["missing_keys"] if not _is_unused(key, head))
    lacking += sorted(
        f"{key} of another shape"
        for key, *_ in report["mismatched_keys"]
        if not _is_unused(key, head)
    )
    if head and lacking and not any(_is_of_encoder(key, network) for key in lacking):
        raise ModelError(
            f"{name} has nothing trained on top of its encoder for {head.replace('_', ' ')} "
            f"({', '.join(lacking[:3])} would be random), so what its heads are worth for it means "
            "nothing; fine-tune it on the task first"
        )
    if lacking:
        raise ModelError(
            f"{name} lacks weights of its encoder ({listed(lacking)}); random ones would be scored "
            "in their place. Check that the weights belong to the configuration"
        )
    model = as_published(network)
    cast(nn.Module, model).eval()
    return model, _unused_layers(report["unexpected_keys"])


def load_model(folder: str | Path, options: ModelOptions | None = None) -> PreTrainedModel:
    """The model in ``folder``, of the class that wrote it, with the heads that it was left with.

    For folders that ``headroles prune`` or ``headroles collaborate`` wrote, which
    ``from_pretrained`` of transformers 5 refuses; others are read as it reads them. The model is
    in evaluation mode and on the CPU.

    Raises ModelError for a folder that holds no model, or whose weights do not fit.
    """
    options = options or ModelOptions()
    config = load_config(str(folder), options)
    refuse_unsupported(config)
    if is_collaborative(str(folder)):
        return load_collaborative(str(folder), getattr(torch, options.dtype))
    kind: Any = class_of(config)
    try:
        with quiet_transformers():
            network, report = kind.from_pretrained(
                folder,
                config=config,
                dtype=getattr(torch, options.dtype),
                use_safetensors=True,
                trust_remote_code=options.trust_remote_code,
                output_loading_info=True,
                **_where(folder, options),
            )
    except Exception as error:  # of whatever the configuration made of the model
        raise ModelError(
            f"the weights of {folder} cannot be loaded ({_summary(error)}); "
            f"{cure_of_weights(Path(folder))}"
        ) from error
    lacking = sorted(key for key in report["missing_keys"] if not _is_unused(key))
    if lacking:
        raise ModelError(f"{folder} lacks weights of its model ({listed(lacking)}); write it again")
    model = as_published(network)
    cast(nn.Module, model).eval()
    return model


def _is_of_encoder(key: str, network: PreTrainedModel) -> bool:
    return key.startswith(f"{network.base_model_prefix}.") and "pooler." not in key


def _unused_layers(unexpected: Iterable[str]) -> list[str]:
    """What to know of layers that the checkpoint has and the configuration does not ask for."""
    unused = sorted(key for key in unexpected if _OF_A_LAYER.search(key))
    if not unused:
        return []
    return [
        f"the checkpoint has {len(unused)} weights of layers that its configuration does not use "
        f"({listed(unused)}): check num_hidden_layers in config.json"
    ]


def load_config(name: str, options: ModelOptions) -> PreTrainedConfig:
    """The configuration of a folder or hub id. Raises ModelError where there is none."""
    folder = Path(name)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(
            f"{name} holds no config.json; give a folder written by save_pretrained, or a hub id"
        )
    where = _where(name, options)
    try:
        refuse_absurd_sizes(name, PreTrainedConfig.get_config_dict(name, **where)[0])
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            name, trust_remote_code=options.trust_remote_code, **where
        )
    except ModelError:
        raise
    except Exception as error:  # configurations are validated by libraries with errors of their own
        if not folder.exists():
            if folder.is_absolute() or name.startswith(".") or len(folder.parts) > _HUB_ID_PARTS:
                raise ModelError(f"there is no folder {name}; check the path") from error
            reason = (
                "the hub cannot be reached from here, and no copy of it was kept from earlier"
                if where["local_files_only"]
                else f"no model of that name could be had from the hub ({_summary(error)})"
            )
            raise ModelError(
                f"there is no folder {name}, and {reason}; check the name and the connection"
            ) from error
        raise ModelError(
            f"the configuration of {name} cannot be read ({_summary(error)}); "
            f"{cure_of_config(folder)}"
        ) from error
    return config


def _where(source: str | Path, options: ModelOptions) -> dict[str, Any]:
    """What the libraries are told of where to look; without a connection, only among copies."""
    is_offline = not Path(source).exists() and not hub_answers()
    return {"revision": options.revision, "local_files_only": is_offline}


def _load_tokenizer(
    source: str | Path | PreTrainedTokenizerBase, options: ModelOptions
) -> PreTrainedTokenizerBase:
    if isinstance(source, PreTrainedTokenizerBase):
        return source
    if not source:
        raise TokenizerError("the model does not know its tokenizer; pass tokenizer=... with it")
    folder = Path(source)
    if folder.is_dir() and not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise TokenizerError(
            f"{source} holds no tokenizer; give one with --tokenizer, or save it there with "
            "tokenizer.save_pretrained"
        )
    try:
        with quiet_transformers():
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
                source, trust_remote_code=options.trust_remote_code, **_where(source, options)
            )
    except Exception as error:  # the tokenizers library raises bare Exception for broken files
        raise TokenizerError(
            f"the tokenizer of {source} cannot be loaded ({_summary(error)}); give a folder "
            "with a tokenizer.json, for example with --tokenizer"
        ) from error
    return tokenizer


def _refuse_broken_weights(network: PreTrainedModel, name: str) -> None:
    for parameter, values in network.base_model.named_parameters():
        # A finite sum has finite terms, and costs no memory; an infinite one may be an overflow.
        total = values.detach().sum(dtype=torch.float32)
        if not torch.isfinite(total) and not torch.isfinite(values).all():
            raise ModelError(
                f"{name}: the weights {parameter} hold NaN or infinity; the checkpoint is broken"
            )


def _takes_token_types(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> bool:
    return (
        getattr(config, "type_vocab_size", 0) > 1
        and "token_type_ids" in tokenizer.model_input_names
    )


def _is_unused(key: str, head: str = ENCODER) -> bool:
    return any(part in key for part in _UNUSED_PARTS[head])


def _summary(error: Exception) -> str:
    """The message in one line, without the advice that follows an empty line."""
    message = str(error).strip() or type(error).__name__
    return " ".join(message.split("\n\n")[0].split())
