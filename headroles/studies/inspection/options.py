"""Options of inspection: which sentences, which weights, which tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from headroles.errors import UsageError
from headroles.models.options import ModelOptions
from headroles.options import Option, split_names
from headroles.passes.options import PassOptions
from headroles.roles.frequencies import FrequencyOptions
from headroles.scoring.options import PairingOptions
from headroles.studies.options import ImportOptions
from headroles.testing.options import UnitOptions

LARGEST, MEDIAN, SMALLEST = RANKS = ("largest", "median", "smallest")


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

    n: Annotated[int, Option("Number of examples.", least=1)] = 5
    which: Annotated[
        str,
        Option(
            "Typical ones, with scores nearest the median, or those with the largest or smallest.",
            choices=RANKS,
        ),
    ] = MEDIAN
    example: Annotated[
        str | None, Option("The example with this id, with any score, and no other.")
    ] = None
    corpus: Annotated[
        Sequence[Path] | None,
        Option(
            "Treebank that was scored, files or folders, if it has moved.",
            convert=_paths,
            recorded=False,
        ),
    ] = None

    def check(self) -> None:
        """Reject a choice among examples where one is named."""
        super().check()
        if self.example is not None and self.which != MEDIAN:
            raise UsageError("example (--example) names the one to show; leave which (--which) out")


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ExampleOptions, ModelOptions):
    """Options of the choice of examples, and of the model that reads them."""

    title: ClassVar[str] = "Model"

    model: Annotated[
        Any,
        Option(
            "Model that was scored, if it has moved.",
            more="A folder, a hub id or, from Python, a loaded model in evaluation mode.",
            convert=lambda given: given,
            recorded=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(AttentionOptions):
    """Options of the choice of examples, and of the weights shown in them."""

    title: ClassVar[str] = "Output"

    weights: Annotated[
        bool, Option("Show the weights that the head gives; this loads the model.")
    ] = True
