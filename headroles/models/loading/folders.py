"""Model folders of other people: checks of their files, and advice on missing or invalid ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import CONFIG_MAPPING

from headroles import storage
from headroles.errors import ModelError, StorageError
from headroles.models.heads.low_rank import is_collaborative
from headroles.models.heads.remaining import SETTINGS
from headroles.results.stored import MODEL_KINDS
from headroles.wording import in_one_line, listed, shortened

_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json")
_PLAIN_NAME = re.compile(r"[^./\\:][^/\\:]*")
_NUMBERS = ("F16", "BF16", "F32", "F64")
_OF_PLACES = "_ids"
"""Suffix of names of tensors that hold positions instead of weights."""
_LARGEST = {"layers": 10_000, "heads": 10_000, "labels": 1_000_000, "size": 100_000_000}
_LARGEST |= {"embeddings": 2_000_000}  # which sinusoidal positions are computed for
"""Largest numbers of a configuration that a model is built from, by the ends of their names."""


def local_folder(name: str | Path) -> Path | None:
    """Return where the files of a model folder lie; None for a hub id.

    A model that a killed run left in ``.headroles`` counts only where its run file names it.
    Raises ModelError for a pipe, a device or a link to one among them, which may block or never
    end, and for an index that names files elsewhere.
    """
    if not storage.is_folder(name):
        return None
    folder = storage.committed(Path(name), MODEL_KINDS)
    for file in folder.rglob("*"):
        try:
            storage.check_regular(file)
        except OSError as error:
            raise ModelError(
                f"{file} cannot be read ({in_one_line(error)}); replace or remove it"
            ) from error
    for index in folder.glob("*.index.json"):
        _check_index(index)
    return folder


def _check_index(index: Path) -> None:
    """Raise ModelError unless an index of weights names files in its own folder alone."""
    names = read_settings(index).get("weight_map")
    for name in names.values() if isinstance(names, dict) else ():
        if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
            raise ModelError(
                f"{index} names {shortened(repr(name))}, which is no file of its folder; correct "
                "the name"
            )


def advice_on_weights(folder: Path) -> str:
    """Return advice, in one line, for weights that are not stored as safetensors."""
    if any(folder.glob("*.safetensors")):
        return "copy or download the model again if its files are not whole"
    if not any((folder / name).is_file() for name in _PICKLED):
        return "headroles reads model.safetensors, which save_pretrained writes"
    casing = ", do_lower_case=False" if says_no_casing(folder) else ""
    tokenizer = f"AutoTokenizer.from_pretrained(old{casing}).save_pretrained(new)"
    return (
        "headroles reads model.safetensors, and this folder has pickled weights; if you trust "
        'them, convert them once: python -c "from transformers import AutoModel, AutoTokenizer; '
        f"old, new = {str(folder)!r}, {str(folder) + '-safe'!r}; "
        f'AutoModel.from_pretrained(old).save_pretrained(new); {tokenizer}"'
    )


def says_no_casing(folder: Path) -> bool:
    """Tell whether a vocabulary has capitals but no file says whether the tokenizer keeps them."""
    vocabulary = folder / "vocab.txt"
    if (folder / "tokenizer.json").is_file() or not vocabulary.is_file():
        return False
    if "do_lower_case" in read_settings(folder / "tokenizer_config.json"):
        return False
    lines = vocabulary.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line != line.lower() for line in lines if not line.startswith(("[", "<")))


def read_settings(file: Path) -> dict[str, Any]:
    """Read the JSON object in a file; empty if it is missing or invalid."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def check_settings(name: str, settings: dict[str, Any], trust_remote_code: bool) -> None:
    """Raise ModelError for settings of a configuration that no encoder has, before it is made.

    These are sizes beyond memory, architectures that are no list of names, and a type that only
    code beside the model knows, unless that may run.
    """
    for key, value in settings.items():
        kind = next((kind for kind in _LARGEST if key.endswith(kind)), None)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and kind is not None and not 0 <= value <= _LARGEST[kind]:
            raise ModelError(
                f"the configuration of {name} has {key} {value:.3g}; it must be a number that a "
                "model can have: check config.json"
            )
    classes = settings.get("architectures") or []
    if not isinstance(classes, list) or not all(isinstance(entry, str) for entry in classes):
        raise ModelError(
            f"the configuration of {name} has architectures {shortened(classes)}; it must be a "
            "list of names of classes: check config.json"
        )
    code = settings.get("auto_map")
    if code and settings.get("model_type") not in CONFIG_MAPPING and not trust_remote_code:
        raise ModelError(
            f"{name} brings code of its own ({listed(sorted(map(str, code.values())))}), which "
            "transformers does not know and headroles runs only if asked to: read it first, then "
            "give `trust_remote_code=True`"
        )


def stored_weights(folder: Path) -> int:
    """Count the numbers in the safetensors files of a folder by their headers; 0 without any."""
    return sum(prod(shape) for _, _, shape in _headers(folder.rglob("*.safetensors")))


def _headers(files: Iterator[Path]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield name and file, type and shape of each tensor; none of a file that cannot be read."""
    for file in files:
        try:
            with safe_open(file, framework="pt") as stored:
                for name in stored.keys():  # noqa: SIM118
                    part = stored.get_slice(name)
                    yield f"{name} in {file}", part.get_dtype(), part.get_shape()
        except (SafetensorError, OSError):
            continue  # reported where the weights are read


def languages_of(source: str) -> list[str]:
    """Return codes of the languages that the card of a model in a folder names; empty if none."""
    try:
        card = Path(source) / "README.md"
        storage.check_regular(card)
        with card.open("rb") as file:
            text = file.read(100_000).decode("utf-8", errors="replace")
    except OSError:
        return []
    _, begin, rest = text.partition("---\n")
    match = re.search(r"^languages?:(.*\n(?:[ ]*- .*\n)*)", rest.partition("\n---")[0] + "\n", re.M)
    if not begin or not match:
        return []
    return [code for code in re.split(r"[^a-zA-Z]+", match[1]) if re.fullmatch("[a-z]{2,3}", code)]


def foreign_weights(folder: Path) -> list[str]:
    """List files of weights in a folder that its run record does not name."""
    places = (folder, storage.committed(folder, MODEL_KINDS))
    ours = {name for place in places for name in storage.result_files(place)}
    weights = {file.name for pattern in _WEIGHTS for file in folder.glob(pattern)}
    return sorted(weights.difference(ours))


def check_layout(folder: Path) -> None:
    """Raise ModelError for a folder that holds no model, or an adapter beside one."""
    adapter = folder / "adapter_config.json"
    if adapter.is_file():
        base = read_settings(adapter).get("base_model_name_or_path") or "its base model"
        beside = "beside a model" if any(folder.glob("model*.safetensors")) else "and no model"
        raise ModelError(
            f"{folder} holds an adapter of PEFT ({adapter.name}) {beside}; merge it into "
            f"{shortened(base)} with merge_and_unload() of PEFT, save that model in another "
            "folder, and give that folder"
        )
    if (folder / "config.json").is_file():
        return
    if encoder := _of_sentence_transformers(folder):
        raise ModelError(
            f"{folder} is a folder of sentence-transformers, whose encoder is in a folder of its "
            f"own; give {encoder}"
        )
    raise ModelError(
        f"{folder} holds no config.json; give a folder written by save_pretrained, or a hub id"
    )


def _of_sentence_transformers(folder: Path) -> Path | None:
    """Return the folder of the encoder inside one of sentence-transformers; None if it has none."""
    if not (folder / "modules.json").is_file():
        return None
    return next(
        (
            file.parent
            for file in sorted(folder.glob("*_*/config.json"))
            if "model_type" in read_settings(file)
        ),
        None,
    )


def check_folder(folder: Path) -> list[str]:
    """Check that a model folder is as it was written; return warnings about it.

    Raises StorageError for files that the run record does not name, and ModelError for integer
    weights, whose meaning is unknown, and for a folder without a model.
    """
    check_layout(folder)
    for name, kind, _ in _headers(folder.glob("*.safetensors")):
        if kind not in _NUMBERS and not name.partition(" in ")[0].endswith(_OF_PLACES):
            raise ModelError(
                f"{name} is of type {kind}; weights must be floating-point numbers. Convert the "
                "model to float32"
            )
    if kinds := storage.kinds_in(folder, MODEL_KINDS):
        files = storage.read_run(folder, MODEL_KINDS).files
        for kind in kinds:
            storage.check_files(folder, files[kind])
        if foreign := foreign_weights(folder):
            raise StorageError(
                f"{folder} holds {listed(foreign)}, which {storage.RUN_FILE} does not name: they "
                "are of another model; remove them"
            )
        return []
    settings = read_settings(folder / "config.json")
    if not is_collaborative(folder) and not any(map(settings.get, SETTINGS.values())):
        return []
    return [
        f"{folder} has no run record, so headroles cannot notice a changed configuration; make "
        "sure that pruned_heads in config.json lists the removed heads"
    ]
