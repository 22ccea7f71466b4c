"""Folders of encoders whose queries and keys are of low rank: written, recognised, loaded.

Such a folder has its weights in a file of its own name: transformers, which would make up the
projections that it misses, finds no weights there and says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model
from torch import nn
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from headroles import storage
from headroles.errors import HeadRolesError, ModelError
from headroles.models.low_rank import low_rank_modules, make_scores, replace_scores

RECORD_FILE = "low_rank.json"
WEIGHTS_FILE = "low_rank.safetensors"
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError)


def is_collaborative(folder: str | Path) -> bool:
    """Whether ``folder`` was written by `save_collaborative`."""
    return (Path(folder) / RECORD_FILE).is_file()


def save_collaborative(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> list[str]:
    """Write model and tokenizer into an existing folder; the names of the files."""
    before = set(folder.iterdir())
    model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_model(model, str(folder / WEIGHTS_FILE))
    (folder / WEIGHTS_FILE).chmod(0o644)
    modules = {
        path: {
            "method": module.scores.method,
            "width": module.scores.query.in_features,
            "heads": module.scores.heads,
            "rank": module.scores.rank,
        }
        for path, module in low_rank_modules(model)
    }
    storage.write_json(folder / RECORD_FILE, {"class": type(model).__name__, "modules": modules})
    return sorted(file.name for file in set(folder.iterdir()) - before)


def load_collaborative(folder: str | Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The model of such a folder, with its task head if it has one, in evaluation mode.

    Raises ModelError for a folder whose files do not belong together.
    """
    folder = Path(folder)
    try:
        record = storage.read_json(folder / RECORD_FILE)
        model = _class_of(record["class"])(AutoConfig.from_pretrained(folder))
        for path, shape in record["modules"].items():
            replace_scores(model, path, make_scores(**shape))
        _fit_sizes(model, folder / WEIGHTS_FILE)
        load_model(model, str(folder / WEIGHTS_FILE), strict=True)
    except HeadRolesError:
        raise
    except (*_DAMAGE, SafetensorError) as error:
        raise _broken(folder, error) from error
    model.config._name_or_path = str(folder)
    return cast(PreTrainedModel, cast(nn.Module, model).to(dtype).eval())


def _broken(folder: Path, error: Exception) -> ModelError:
    return ModelError(
        f"the model of low rank in {folder} cannot be loaded ({' '.join(str(error).split())}); "
        f"make it again with: headroles collaborate"
    )


def _class_of(name: str) -> type[PreTrainedModel]:
    found = getattr(transformers, name, None)
    if not (isinstance(found, type) and issubclass(found, PreTrainedModel)):
        raise ModelError(f"{RECORD_FILE} names {name!r}, which is no model class of transformers")
    return found


def _fit_sizes(model: PreTrainedModel, file: Path) -> None:
    """Give linear layers the sizes that they have in ``file``: heads may have been pruned."""
    with safe_open(str(file), framework="pt") as weights:
        shapes = {name: weights.get_slice(name).get_shape() for name in weights.keys()}  # noqa: SIM118
    for name, shape in shapes.items():
        path, _, kind = name.rpartition(".")
        module: Any = model.get_submodule(path) if kind == "weight" else None
        if type(module) is nn.Linear and list(module.weight.shape) != shape:
            module.weight = nn.Parameter(torch.empty(shape))
            module.out_features, module.in_features = shape
            if module.bias is not None:
                module.bias = nn.Parameter(torch.empty(shape[0]))
