"""Files of other people's model folders: settings, and advice for missing or invalid ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from headroles.errors import ModelError
from headroles.wording import shortened

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
_LARGEST = {
    "layers": 10_000,
    "heads": 10_000,
    "labels": 1_000_000,
    "size": 100_000_000,
    "embeddings": 100_000_000,
}
_MOST_WEIGHTS = 10**11
"""Limit of weights; a configuration that asks for more would fill the memory first."""


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


def refuse_odd_classes(name: str, settings: dict[str, Any]) -> None:
    """Raise ModelError for a configuration whose ``architectures`` are no list of names."""
    named = settings.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise ModelError(
            f"the configuration of {name} has architectures {shortened(named)}; it must be a list "
            "of names of classes: check config.json"
        )


def refuse_absurd_sizes(name: str, settings: dict[str, Any]) -> None:
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
    n_weights = _count_weights(settings)
    if n_weights > _MOST_WEIGHTS:
        raise ModelError(
            f"the configuration of {name} asks for {n_weights:.1g} weights; check config.json"
        )


def _count_weights(settings: dict[str, Any]) -> int:
    """Estimate the number of weights of a BERT of these sizes."""

    def size(*names: str) -> int:
        values = [settings.get(name) for name in names]
        return max((value for value in values if isinstance(value, int)), default=1)

    width = size("hidden_size", "d_model", "dim")
    layers = size("num_hidden_layers", "n_layers")
    between = size("intermediate_size", "ffn_dim", "hidden_dim")
    rows = size("vocab_size") + size("max_position_embeddings") + size("type_vocab_size")
    return width * (rows + layers * (4 * width + 2 * between))


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
