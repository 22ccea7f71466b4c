"""Folders of encoders whose queries and keys are of low rank, read into models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import cast

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from headroles import storage
from headroles.errors import HeadRolesError, ModelError
from headroles.models.heads.low_rank import make_scores, replace_scores
from headroles.models.loading.classes import as_published, class_of
from headroles.models.shared.collaborative import (
    RECORD_FILE,
    WEIGHTS_FILE,
    LowRankRecord,
    LowRankShape,
    saved_whole,
)
from headroles.wording import in_one_line

_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, SafetensorError),
)
"""What transformers and PyTorch raise for a configuration that no model can have."""


def _made(config: PreTrainedConfig, modules: dict[str, LowRankShape]) -> PreTrainedModel:
    """Make a model of these shapes, whose weights are still to be loaded."""
    model = as_published(class_of(config)(copy.deepcopy(config)))
    for path, shape in modules.items():
        replace_scores(model, path, make_scores(**msgspec.structs.asdict(shape)))
    return model


def _compare_shapes(model: PreTrainedModel, file: Path) -> None:
    """Raise ValueError for weights whose shapes do not fit the model."""
    with safe_open(file, framework="pt") as stored:
        shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
    needed = {name: tuple(values.shape) for name, values in model.state_dict().items()}
    for name, shape in shapes.items():
        if needed.get(name) != shape:
            raise ValueError(
                f"{name} is of shape {shape} in {WEIGHTS_FILE}, and {needed.get(name)} by "
                f"{RECORD_FILE} and config.json"
            )


def load_collaborative(
    folder: str | Path, config: PreTrainedConfig, dtype: torch.dtype
) -> PreTrainedModel:
    """Load the model of such a folder, with its task head if it has one, in evaluation mode.

    Heads that ``config`` lists as removed are removed before queries and keys get the shapes that
    the folder records.

    Raises ModelError for a folder whose files do not fit together.
    """
    folder = Path(folder)
    try:
        modules = msgspec.convert(storage.read_json(folder / RECORD_FILE), LowRankRecord).modules
        with torch.device("meta"):  # shapes are compared before memory is asked for
            _compare_shapes(_made(config, modules), folder / WEIGHTS_FILE)
        model = _made(config, modules)
        load_model(model, str(folder / WEIGHTS_FILE), strict=True)
    except HeadRolesError:
        raise
    except _DAMAGE as error:
        raise ModelError(
            f"the model of low rank in {folder} cannot be loaded ({in_one_line(error)}); "
            "make it again with: headroles collaborate"
        ) from error
    model.config._name_or_path = str(folder)
    return cast(PreTrainedModel, cast(nn.Module, saved_whole(model)).to(dtype).eval())
