"""Presets: names for combinations of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from headroles.options import Option, Options

PRESETS = DEFAULT, PUBLISHED = ("default", "published")


@dataclass(frozen=True, kw_only=True)
class PresetOptions(Options):
    """Option that chooses a preset."""

    title: ClassVar[str] = "Tests"

    preset: Annotated[
        str,
        Option(
            "published: as the released notebooks, without correction.",
            more="For comparison with them only: their band edge and no contrasts in scoring; "
            "t-tests of independent examples with the population standard deviation.",
            words="the preset",
            choices=PRESETS,
        ),
    ] = DEFAULT

    @property
    def is_published(self) -> bool:
        """Whether scores and tests are those of the released notebooks."""
        return self.preset == PUBLISHED
