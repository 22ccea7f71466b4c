"""Folders of encoders whose queries and keys are of low rank: writing, recognising and loading.

Such a folder stores its weights in a file of another name, so that transformers finds no weights
and says so, instead of inventing the missing projections. Models of low rank write such folders by
their own ``save_pretrained``, so that programs that train or change them can save them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from transformers import PreTrainedModel

from headroles import storage
from headroles.errors import HeadRolesError, ModelError
from headroles.models.heads.low_rank import LowRankScores, low_rank_modules, replace_scores
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


class LowRankShape(msgspec.Struct):
    """Shapes of queries and keys of a module, as `LowRankScores` takes them."""

    method: FactorMethod
    width: Count
    heads: Count
    rank: Count


class LowRankRecord(msgspec.Struct):
    """Content of ``low_rank.json``."""

    modules: dict[str, LowRankShape]


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


_KINDS: dict[type[Any], type[Any]] = {}


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


def _write(model: PreTrainedModel, folder: Path) -> None:
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    save_model(model, str(folder / WEIGHTS_FILE))
    (folder / WEIGHTS_FILE).chmod((folder / "config.json").stat().st_mode)
    modules = {
        path: LowRankShape(scores.method, scores.query.in_features, scores.heads, scores.rank)
        for path, scores in ((path, module.scores) for path, module in low_rank_modules(model))
    }
    storage.write_bytes(folder / RECORD_FILE, storage.encode_json(LowRankRecord(modules)))


def low_rank_model(folder: Path, model: PreTrainedModel) -> PreTrainedModel:
    """Return ``model`` with queries and keys as the record of ``folder`` says, without weights."""
    record = msgspec.convert(storage.read_json(folder / RECORD_FILE), LowRankRecord)
    for path, shape in record.modules.items():
        replace_scores(model, path, LowRankScores(**msgspec.structs.asdict(shape)))
    return model


def load_collaborative(folder: Path, make: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """Load the model of such a folder into a model that ``make`` makes from its configuration.

    Raises ModelError for a folder whose files do not fit together.
    """
    try:
        model = low_rank_model(folder, make())
        load_model(model, str(folder / WEIGHTS_FILE), strict=True)
    except HeadRolesError:
        raise
    except _DAMAGE as error:
        raise ModelError(
            f"the model of low rank in {folder} cannot be loaded ({in_one_line(error)}); "
            "make it again with: headroles collaborate"
        ) from error
    model.config._name_or_path = str(folder)
    return saved_whole(model)
