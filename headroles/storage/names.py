"""Allowed names of result files.

A folder from someone else may name any file, in its run file or its list of renames. Only files
with these names, in the folder itself or in a sub-folder, are ever moved, replaced or removed.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

HIDDEN = ".headroles"
_TABLE = re.compile(r"[a-z][a-z_-]*\.(csv|parquet)")
_WEIGHTS = re.compile(r"(model|low_rank)(-\d{5}-of-\d{5})?\.safetensors")
_CODE = re.compile(r"(configuration|modeling|tokenization)_\w+\.py")
_OTHERS = frozenset(
    "run.json headroles.json sentences-words.json config.json generation_config.json "
    "low_rank.json model.safetensors.index.json "
    "tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json "
    "chat_template.jinja vocab.txt vocab.json merges.txt bpe.codes byte_maps.json dict.txt "
    "emoji.json entity_vocab.json normalizer.json prophetnet.tokenizer sentencepiece.bpe.model "
    "sentencepiece.model spiece.model spm.model spm_char.model tokenizer.model "
    "word_pronunciation.json word_shape.json".split()
)


def is_result_name(name: object) -> bool:
    """Tell whether a result can have a file of this name: table, run file or file of a model."""
    return isinstance(name, str) and (
        name in _OTHERS
        or any(pattern.fullmatch(name) is not None for pattern in (_TABLE, _WEIGHTS, _CODE))
    )


def is_result_path(path: str) -> bool:
    """Tell whether a result can have a file at this path, in its folder or a sub-folder."""
    folder, _, name = path.rpartition("/")
    return is_result_name(name) and (path == name or is_plain_name(folder))


def is_plain_name(name: str) -> bool:
    """Tell whether a name is one path component on every system, and not the hidden folder's."""
    return (
        name not in ("", ".", "..", HIDDEN)
        and "\0" not in name
        and PurePosixPath(name).name == PureWindowsPath(name).name == name
    )
