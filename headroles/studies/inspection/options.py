"""Options of inspection: which sentences, which weights, which tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.options import CIRCUMSTANCE, Convert, split_names
from headroles.passes.options import PassOptions
from headroles.roles.catalogue import FrequencyOptions
from headroles.scoring.options import PairingOptions
from headroles.studies.options import ImportOptions
from headroles.testing.options import UnitOptions

LARGEST: Final = "largest"
MEDIAN: Final = "median"
SMALLEST: Final = "smallest"


def _paths(given: Any) -> tuple[Path, ...]:
    if isinstance(given, PathLike):
        return (Path(given),)
    return tuple(map(Path, split_names(given) if isinstance(given, str) else given))


@dataclass(frozen=True, kw_only=True)
class TokenOptions(UnitOptions, FrequencyOptions, PairingOptions, PassOptions):
    """Options of the reading of tokens."""

    title: ClassVar[str] = "Roles"


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(ImportOptions):
    """Options of the choice of examples."""

    title: ClassVar[str] = "Output"

    n: Annotated[int, Meta(ge=1)] = 5
    """Number of examples."""
    which: Literal["largest", "median", "smallest"] = "median"
    """Typical ones, with scores nearest the median, or those with the largest or smallest."""
    example: str | None = None
    """The example with this id, with any score, and no other."""
    corpus: Annotated[Sequence[Path] | None, Convert(_paths), CIRCUMSTANCE] = None
    """Treebank that was scored, files or folders, if it has moved."""

    def check(self) -> None:
        """Reject a choice among examples where one is named."""
        super().check()
        if self.example is not None and self.which != MEDIAN:
            raise UsageError("`example` names the one to show; leave `which` out")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, ModelOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"

    model: Annotated[Any, CIRCUMSTANCE] = None
    """Model that was scored, if it has moved.

    A folder, a hub id or, from Python, a loaded model in evaluation mode.
    """


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(AttentionOptions):
    """Options of the choice of examples, and of the weights shown in them."""

    title: ClassVar[str] = "Output"

    weights: bool = True
    """Show the weights that the head gives; this loads the model."""
