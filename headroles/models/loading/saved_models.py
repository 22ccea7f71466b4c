"""Model folders of headroles: written with a run record, checked before they are read.

The record has the digest of every file. Only the configuration says which heads a model lacks, so a
changed configuration would give heads the numbers of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import storage
from headroles.errors import StorageError
from headroles.models.families import quiet_transformers
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.folders import foreign_weights
from headroles.models.loading.targets import SAVED, save_for_targets
from headroles.record import Record
from headroles.results.stored import MODEL_KINDS, Claimed, Stored, new_folder, write_together
from headroles.wording import in_one_line, listed

_FILES = (
    *("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "*.model", "*.spm", f"{SAVED}*"),
)


@dataclass(frozen=True, repr=False, eq=False)
class ChangedModel(Stored):
    """A changed model with its tokenizer; its folder can be given wherever a model can.

    ``target_tokenizer`` is the tokenizer of targets of an encoder-decoder, if that is another one.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    record: Record
    target_tokenizer: PreTrainedTokenizerBase | None = None

    @classmethod
    def file_names(cls) -> Sequence[str]:
        """Return the names that transformers gives to the files of a model and its tokenizer."""
        return _FILES

    def write_files(self, folder: Path) -> list[str]:
        """Write configuration, tokenizer and weights: files alone, chat templates among them."""
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.iterdir())
        try:
            with quiet_transformers():
                self.model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder, save_jinja_files=False)
                if self.target_tokenizer is not None:
                    save_for_targets(self.target_tokenizer, folder)
        except SafetensorError as error:  # such as a full disk
            raise StorageError(f"{folder} cannot be written: {in_one_line(error)}") from error
        written = sorted(set(folder.iterdir()) - before)
        if folders := [file.name for file in written if file.is_dir()]:
            raise StorageError(
                f"the tokenizer saves folders ({listed(folders)}), whose files would be unchecked; "
                "name another one with `tokenizer`"
            )
        for file in written:  # transformers makes weights readable for their owner alone
            file.chmod((folder / "config.json").stat().st_mode)
        return [file.name for file in written]

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the model into ``folder``, whole or not at all; raises errors as `model_folder`."""
        with model_folder(folder, None, [type(self)], overwrite) as staging:
            write_together(staging, [self])
        return Path(folder)

    @classmethod
    def read_files(cls, folder: Path, record: Record) -> Self:
        """Read the model and its tokenizer."""
        loaded = load_encoder(folder, head=None)
        return cls(loaded.model, loaded.tokenizer, record, loaded.own_for_targets)


@dataclass(frozen=True, repr=False, eq=False)
class PrunedModel(ChangedModel):
    """A model without some of its heads, or with zeros in their place."""

    kind: ClassVar[str] = MODEL_KINDS[0]
    hint: ClassVar[str] = "make one with: headroles prune MODEL --out DIR"


@dataclass(frozen=True, repr=False, eq=False)
class CollaborativeModel(ChangedModel):
    """A model whose queries and keys are of low rank, with its tokenizer.

    Its folder can be given to every command in the place of a model. ``model`` is in evaluation
    mode and has the task head of the original.
    """

    kind: ClassVar[str] = MODEL_KINDS[1]
    hint: ClassVar[str] = "make one with: headroles collaborate MODEL --rank R --out DIR"


@contextmanager
def model_folder(
    out: str | Path | Claimed,
    model: Any,
    kinds: Sequence[type[Stored]],
    overwrite: bool = False,
    resume: bool | None = None,
) -> Iterator[Path]:
    """Open a `new_folder` for results of ``kinds`` that include a model made from ``model``.

    Raises StorageError as `new_folder`, for a folder that ``model`` is read from, and for one with
    weights that headroles did not write. A folder that is `Claimed` was checked before.
    """
    if isinstance(out, Claimed):
        yield out.folder
        return
    folder = Path(out)
    source = Path(model) if isinstance(model, str | Path) and storage.exists(model) else None
    if source is not None and storage.exists(folder) and source.samefile(folder):
        raise StorageError(
            f"{folder} is the folder of the model itself, which would be replaced; name another "
            "one with `out`"
        )
    if storage.exists(folder) and (foreign := foreign_weights(folder)):
        raise StorageError(
            f"{folder} holds {listed(foreign)}, which headroles did not write; the new model "
            "would stand beside them. Name another folder"
        )
    with new_folder(folder, kinds, overwrite, resume) as staging:
        yield staging
