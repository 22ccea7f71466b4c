"""Names of ablations, the replacements for a head's output; cheap to import."""

from __future__ import annotations

ABLATIONS = ZERO, MEAN, UNIFORM = ("zero", "mean", "uniform")
