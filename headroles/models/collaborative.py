"""Folders of encoders whose queries and keys are of low rank: writing, recognising and loading.

Such a folder stores its weights in a file of another name, so that transformers finds no weights
and says so, instead of inventing the missing projections. Models of low rank write such folders by
their own ``save_pretrained``, so that programs that train or change them can save them.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_model
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from headroles import storage
from headroles.errors import HeadRolesError, ModelError
from headroles.models.classes import as_published, class_of
from headroles.models.low_rank import low_rank_modules, make_scores, replace_scores
from headroles.models.options import FactorMethod
from headroles.storage import Count
from headroles.wording import in_one_line

RECORD_FILE = "low_rank.json"
WEIGHTS_FILE = "low_rank.safetensors"
_DAMAGE = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError),
    *(TypeError, ValueError, SafetensorError),
)
"""What transformers and PyTorch raise for a configuration that no model can have."""


def is_collaborative(folder: str | Path) -> bool:
    """Tell whether a model of low rank wrote ``folder``."""
    return (Path(folder) / RECORD_FILE).is_file()


class _SavedWhole:
    """Mixin that models of low rank have before their transformers class."""

    def save_pretrained(
        self,
        save_directory: Any,
        is_main_process: bool = True,
        state_dict: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Write configuration and weights into a folder that `load_model` of headroles reads.

        Raises ModelError for a given ``state_dict``, such as that of a distributed model.
        """
        if state_dict is not None:
            raise ModelError("a model of low rank is written whole; save it from one process")
        if is_main_process:
            Path(save_directory).mkdir(parents=True, exist_ok=True)
            _write(cast(PreTrainedModel, self), Path(save_directory))


def saved_whole(model: PreTrainedModel) -> PreTrainedModel:
    """Return ``model``, whose ``save_pretrained`` now writes its queries and keys of low rank."""
    if not isinstance(model, _SavedWhole):
        kind: type[Any] = type(model)
        if kind not in _KINDS:
            # transformers looks at the source of the module that a class says it is from.
            own = {"__module__": kind.__module__}
            _KINDS[kind] = type(kind.__name__, (_SavedWhole, kind), own)
        model.__class__ = _KINDS[kind]
    return model


_KINDS: dict[type[Any], type[Any]] = {}


def _write(model: PreTrainedModel, folder: Path) -> None:
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    save_model(model, str(folder / WEIGHTS_FILE))
    (folder / WEIGHTS_FILE).chmod((folder / "config.json").stat().st_mode)
    modules = {
        path: _Scores(own.method, own.query.in_features, own.heads, own.rank)
        for path, own in ((path, module.scores) for path, module in low_rank_modules(model))
    }
    storage.write_json(folder / RECORD_FILE, storage.plain(_Record(modules)))


class _Scores(msgspec.Struct):
    """Shapes of queries and keys of a module, as `make_scores` takes them."""

    method: FactorMethod
    width: Count
    heads: Count
    rank: Count


class _Record(msgspec.Struct):
    """Content of ``low_rank.json``."""

    modules: dict[str, _Scores]


def _made(config: PreTrainedConfig, modules: dict[str, _Scores]) -> PreTrainedModel:
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
        modules = msgspec.convert(storage.read_json(folder / RECORD_FILE), _Record).modules
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
