"""Files of other people's model folders: settings, and advice for missing or invalid ones."""

from __future__ import annotations

import json
import re
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from headroles import storage
from headroles.errors import ModelError, StorageError
from headroles.models.shared.collaborative import is_collaborative
from headroles.results.stored import MODEL_KINDS
from headroles.storage import check_regular
from headroles.wording import in_one_line, listed, shortened

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
"""Files that a tokenizer can be made from. Without any of them it would be an empty one."""
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json")
_NUMBERS = ("F16", "BF16", "F32", "F64")
_OF_PLACES = "_ids"
"""Suffix of names of tensors that hold positions instead of weights."""
_LARGEST = {
    "layers": 10_000,
    "heads": 10_000,
    "labels": 1_000_000,
    "size": 100_000_000,
    "embeddings": 2_000_000,
}


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
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def advice_on_config(folder: Path) -> str:
    """Return advice for a configuration that cannot be read."""
    settings = read_settings(folder / "config.json")
    if settings and "model_type" not in settings:
        return (
            f'{folder / "config.json"} names no model_type: add it, as in "model_type": "bert" '
            "for a model that BERT's code made"
        )
    return "give a folder written by save_pretrained, or a hub id"


def check_architectures(name: str, settings: dict[str, Any]) -> None:
    """Raise ModelError for a configuration whose ``architectures`` are no list of names."""
    named = settings.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise ModelError(
            f"the configuration of {name} has architectures {shortened(named)}; it must be a list "
            "of names of classes: check config.json"
        )


def check_sizes(name: str, settings: dict[str, Any]) -> None:
    """Raise ModelError for sizes that no encoder has, before memory is allocated for them."""
    for key, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        kind = next((kind for kind in _LARGEST if key.endswith(kind)), None)
        if kind is not None and not 0 <= value <= _LARGEST[kind]:
            raise ModelError(
                f"the configuration of {name} has {key} {value:.3g}; it must be a number that a "
                "model can have: check config.json"
            )


def check_regular_files(folder: Path) -> None:
    """Raise ModelError for a pipe, a device or a link to one among the files of a folder.

    Reading these may block, or never end.
    """
    for file in (*folder.glob("*"), *folder.glob("*/*")):
        try:
            check_regular(file)
        except OSError as error:
            raise ModelError(
                f"{file} cannot be read ({in_one_line(error)}); replace or remove it"
            ) from error


def stored_weights(folder: Path) -> int:
    """Count the numbers in the safetensors files of a folder by their headers; 0 without any."""
    total = 0
    for file in folder.rglob("*.safetensors"):
        try:
            with safe_open(file, framework="pt") as stored:
                shapes = [stored.get_slice(name).get_shape() for name in stored.keys()]  # noqa: SIM118
        except (SafetensorError, OSError):
            return 0  # reported where the weights are read
        total += sum(map(prod, shapes))
    return total


def languages_of(source: str) -> list[str]:
    """Return codes of the languages that the card of a model in a folder names; empty if none."""
    try:
        with (Path(source) / "README.md").open("rb") as file:
            text = file.read(100_000).decode("utf-8", errors="replace")
    except OSError:
        return []
    _, begin, rest = text.partition("---\n")
    found = re.search(r"^languages?:(.*\n(?:[ ]*- .*\n)*)", rest.partition("\n---")[0] + "\n", re.M)
    if not begin or not found:
        return []
    return [one for one in re.split(r"[^a-zA-Z]+", found[1]) if re.fullmatch("[a-z]{2,3}", one)]


def foreign_weights(folder: Path) -> list[str]:
    """List files of weights in a folder that its run record does not name."""
    ours = {*storage.result_files(folder), *storage.result_files(storage.committed(folder))}
    found = {file.name for pattern in _WEIGHTS for file in folder.glob(pattern)}
    return sorted(found.difference(ours))


def check_folder(folder: Path) -> list[str]:
    """Check that a model folder is as it was written; return warnings about it.

    Raises StorageError for files that the run record does not name, and ModelError for weights
    that are not floating-point numbers.
    """
    check_regular_files(folder)
    _check_dtypes(folder)
    if kinds := [kind for kind in storage.kinds_in(folder) if kind in MODEL_KINDS]:
        for kind in kinds:
            storage.check_files(folder, storage.read_run(folder).files[kind])
        if foreign := foreign_weights(folder):
            raise StorageError(
                f"{folder} holds {listed(foreign)}, which {storage.RUN_FILE} does not name: they "
                "are of another model; remove them"
            )
        return []
    settings = read_settings(folder / "config.json")
    if not is_collaborative(folder) and not settings.get("pruned_heads"):
        return []
    if (folder / "headroles.json").exists():
        raise StorageError(
            f"{folder} holds no {storage.RUN_FILE}: it is not whole, or was written by an older "
            "version of headroles; make the model again"
        )
    return [
        f"{folder} has no run record, so headroles cannot notice a changed configuration; make "
        "sure that pruned_heads in config.json lists the removed heads"
    ]


def _check_dtypes(folder: Path) -> None:
    """Raise ModelError for integer weights, whose meaning is unknown."""
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt") as stored:
                kinds = {name: stored.get_slice(name).get_dtype() for name in stored.keys()}  # noqa: SIM118
        except (SafetensorError, OSError):
            continue  # reported where the weights are read
        for name, kind in kinds.items():
            if kind not in _NUMBERS and not name.endswith(_OF_PLACES):
                raise ModelError(
                    f"{name} in {file} is of type {kind}; weights must be floating-point numbers. "
                    "Convert the model to float32"
                )
