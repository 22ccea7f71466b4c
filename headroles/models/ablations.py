"""What can take the place of a head's output; names only, which cost nothing to import."""

from __future__ import annotations

ABLATIONS = ZERO, MEAN, UNIFORM = ("zero", "mean", "uniform")
