"""Models inside other objects: taken out of known wrappers, named in the refusal of others.

A wrapper is known by the package of its class, so that none of these packages is needed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles.errors import ModelSupportError, UsageError, lacks_memory
from headroles.models.attention.functions import SavedAttention
from headroles.wording import in_one_line, listed

_INSIDE: Mapping[str, tuple[str, ...]] = {
    "torch.nn.parallel": ("module",),
    "torch._dynamo": ("_orig_mod",),
    "transformers.pipelines": ("model",),
    "peft": ("base_model", "model"),
    "sentence_transformers": (),  # whichever model its parts hold
}
"""For each package of wrappers the attributes that hold what is wrapped."""
_QUANTIZED = ("torch.ao.nn.quantized", "torch.nn.quantized", "torch.ao.nn.intrinsic.quantized")


def unwrapped(wrapped: Any) -> tuple[Any, PreTrainedTokenizerBase | None]:
    """Return the model inside a wrapper, and the tokenizer of the wrapper, if it has one.

    Wrappers are those of PyTorch for several devices and for compiled models, PEFT's, pipelines of
    transformers, and the models of sentence-transformers. Names, functions and models themselves
    are returned as they are.

    Raises UsageError for other objects that hold a model, which it names, and for what is neither a
    model nor a function; ModelSupportError for adapters that add tokens.
    """
    model, tokenizer = wrapped, None
    while (package := _package_of(model)) and not isinstance(model, PreTrainedModel):
        of_wrapper = getattr(model, "tokenizer", None)
        if tokenizer is None and isinstance(of_wrapper, PreTrainedTokenizerBase):
            tokenizer = of_wrapper
        model = _inside(model, package)
    _check_is_model_or_function(model)
    return model, tokenizer


def _package_of(model: Any) -> str | None:
    """Return the package of wrappers that a class of ``model`` is from; None for other objects."""
    for kind in type(model).__mro__:
        for package in _INSIDE:
            if _is_from(kind, package):
                return package
    return None


def _is_from(kind: type, *packages: str) -> bool:
    return f"{kind.__module__}.".startswith(tuple(f"{package}." for package in packages))


def _inside(wrapper: Any, package: str) -> Any:
    """Return what a wrapper wraps. Raises UsageError if that is no single object."""
    is_module = isinstance(wrapper, nn.Module)
    for module in wrapper.modules() if is_module else ():
        _check_adds_no_tokens(module)
    parts = dict(wrapper.named_children()) if is_module else vars(wrapper)
    for name in _INSIDE[package]:
        if name in parts:
            return parts[name]
    models = _models_inside(wrapper)
    if len(models) != 1:
        raise _refusal(wrapper, models)
    return next(iter(models.values()))


def _check_adds_no_tokens(module: nn.Module) -> None:
    """Raise ModelSupportError for adapters that put vectors of their own before every text."""
    configs = getattr(module, "peft_config", None) if _is_from(type(module), "peft") else None
    for config in (configs or {}).values():
        if getattr(config, "is_prompt_learning", False):
            raise ModelSupportError(
                f"{type(module).__name__} puts vectors that are no words before every text "
                f"({type(config).__name__}), and heads attend to them; to read the model without "
                "them, give model.get_base_model()"
            )


def _check_is_model_or_function(model: Any) -> None:
    name = type(model).__name__
    if isinstance(model, str | Path | PreTrainedModel | SavedAttention):
        return
    if isinstance(model, type):
        raise UsageError(
            f"{model.__name__} is a class; give an object of it, such as a model that "
            "from_pretrained returns"
        )
    if isinstance(model, PreTrainedTokenizerBase):
        raise UsageError(f"{name} is a tokenizer; give the model first, and it as `tokenizer`")
    is_function = callable(model) and not isinstance(model, nn.Module)
    if not is_function and (models := _models_inside(model)):
        raise _refusal(model, models)
    if not callable(model):
        raise UsageError(
            f"the model is of type {name}; give a folder, a hub id, a loaded model of "
            "transformers, or attention of your own"
        )


def _models_inside(holder: Any) -> dict[str, Any]:
    """Return the models that an object holds, by their paths in it, without parts of others."""
    if not isinstance(holder, nn.Module):
        return {
            name: value
            for name, value in getattr(holder, "__dict__", {}).items()
            if isinstance(value, PreTrainedModel)
            or (isinstance(value, nn.Module) and _models_inside(value))
        }
    models: dict[str, Any] = {}
    for path, module in holder.named_modules():
        is_part = any(path.startswith(f"{outer}.") for outer in models)
        if isinstance(module, PreTrainedModel) and not is_part:
            models[path] = module
    return models


def _refusal(holder: Any, models: Mapping[str, Any]) -> UsageError:
    """Make the error for an object that is no model but may hold some."""
    paths = [f"{path} ({type(model).__name__})" for path, model in models.items()]
    remedy = "give a model of transformers, or attention of your own"
    if paths:
        those = "the one" if len(paths) == 1 else "one of those"
        remedy = f"give {those} inside, {listed(paths)}, with its tokenizer"
    return UsageError(f"{type(holder).__name__} is no model of transformers; {remedy}")


def check_full_precision(model: PreTrainedModel) -> None:
    """Raise ModelSupportError for layers whose weights are packed as integers."""
    for path, module in model.named_modules():
        if _is_from(type(module), *_QUANTIZED):
            raise ModelSupportError(
                f"the {type(model).__name__} is quantized: {path} is a "
                f"{type(module).__module__}.{type(module).__name__}, whose weights are integers; "
                "give the model before quantize_dynamic, in full precision"
            )


def with_plain_layers(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model whose layers have one weight each, and run as Python says.

    Adapters of PEFT are merged into the weights, and compiled layers are not, in a copy; a model
    without either is returned itself. Raises ModelSupportError for adapters that cannot be merged.
    """
    modules = list(model.modules())
    has_adapters = any(_is_from(type(module), "peft") for module in modules)
    is_compiled = any(module._compiled_call_impl is not None for module in modules)
    if not has_adapters and not is_compiled:
        return model
    model = copy.deepcopy(model)  # which is not compiled
    if has_adapters:
        _replace_adapters(model)
        for setting in ("peft_config", "_hf_peft_config_loaded"):  # else only adapters are saved
            model.__dict__.pop(setting, None)
    return model


def _replace_adapters(model: PreTrainedModel) -> None:
    """Put plain layers in place of those with adapters."""
    replaced: list[str] = []
    for path, module in list(model.named_modules()):
        is_part = any(path.startswith(f"{outer}.") for outer in replaced)
        if is_part or not _is_from(type(module), "peft"):
            continue
        try:
            plain = _merged(module)
        except Exception as error:  # of whatever kind of adapter it is
            if lacks_memory(error):
                raise
            raise ModelSupportError(
                f"the adapter {path} ({type(module).__name__}) cannot be merged into the weights "
                f"of the model ({in_one_line(error)}); give the model without it"
            ) from error
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, plain)
        replaced.append(path)


def _merged(layer: Any) -> nn.Module:
    """Return the plain layer that computes what a layer with adapters computes."""
    is_off = bool(getattr(layer, "disable_adapters", False))
    plain: nn.Module
    if hasattr(layer, "original_module") and is_off:
        plain = layer.original_module
    elif hasattr(layer, "unload_and_optionally_merge_module"):  # a layer that is trained as a whole
        plain = layer.unload_and_optionally_merge_module(
            merge=not is_off, safe_merge=False, adapter_names=None
        )
    else:
        if not is_off:
            layer.merge()
        elif layer.merged:
            layer.unmerge()
        plain = layer.get_base_layer()
    return plain
