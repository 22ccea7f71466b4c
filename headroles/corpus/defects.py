"""What becomes of defective sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headroles.options import Options


@dataclass(frozen=True, kw_only=True)
class DefectOptions(Options):
    """Option that chooses between errors and skipped sentences."""

    title: ClassVar[str] = "Corpus"

    on_bad_sentence: Literal["error", "skip"] = "error"
    """Whether defective sentences, and pairs of a bitext, are errors or skipped."""
