"""Models that heads were removed from, in folders: written so that they can be read again.

The weights are those that are left, and ``pruned_heads`` of the configuration names the heads that
are gone, as transformers before version 5 wrote it (version 4 reads such folders by itself). To
read one, the model is made whole, loses these heads, and then takes the weights up strictly.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from headroles import storage
from headroles.errors import ModelError, ModelSupportError
from headroles.models.kept_heads import Head, pruned_heads
from headroles.models.quiet import quiet_transformers
from headroles.models.surgery import remove_those_of, removed_from, zero_heads


def class_to_load(auto: Any, config: PreTrainedConfig) -> Any:
    """What reads weights by ``from_pretrained``: ``auto``, or a class that lacks the same heads.

    Raises ModelSupportError for a model without some heads that transformers has no class for.
    """
    pruned = pruned_heads(config)
    return _without_heads(one_of(auto, config), pruned) if pruned else auto


def one_of(auto: Any, config: PreTrainedConfig) -> type[PreTrainedModel]:
    """One of the classes of ``auto``: the one that wrote the configuration if it is among them.

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
    """The class that wrote a configuration, lacking the same heads.

    Raises ModelSupportError for one that transformers does not have.
    """
    named = (config.architectures or ["none"])[0]
    found = getattr(transformers, named, None)
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
    """A class whose models lose heads as they are made, before any weight is read."""

    def make(self: PreTrainedModel, config: PreTrainedConfig, *given: Any, **named: Any) -> None:
        kind.__init__(self, config, *given, **named)
        remove_those_of(self, pruned)

    own = {"__init__": make, "__module__": kind.__module__, "_published_class": kind}
    return type(kind.__name__, (kind,), own)


def as_published(network: PreTrainedModel) -> PreTrainedModel:
    """A loaded model as one of the class that transformers has."""
    kind = getattr(type(network), "_published_class", None)
    if kind is not None:
        network.__class__ = kind
    return network


def save_model(
    model: PreTrainedModel,
    tokenizer: Any,
    folder: str | Path,
    *,
    zeroed: Iterable[Head] = (),
    notes: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model and its tokenizer into ``folder``, whole or not at all.

    The heads of ``zeroed`` get zeros in the weights of their outputs, in ``model`` too; use it with
    a model that has all of its heads for a folder that any program can read. ``notes`` are kept in
    ``headroles.json``.

    Raises StorageError if the folder holds files already and ``overwrite`` is not set.
    """
    given = list(zeroed)
    if given and removed_from(model):
        raise ModelError(
            "heads can only be put to zero in a model that has all of its heads; this one lacks "
            f"{len(removed_from(model))}"
        )
    zero_heads(model, given)
    with storage.result_folder(folder, overwrite) as staging, quiet_transformers():
        model.save_pretrained(staging)
        tokenizer.save_pretrained(staging)
        if notes is not None:
            storage.write_json(staging / "headroles.json", notes)
    return Path(folder)
