"""Devices that multiply bfloat16, and how long models of both precisions take."""

from __future__ import annotations

from typing import Any

import pytest

from headroles.scoring.turns import score_in_turns

_HERE = "headroles.scoring.half_precision"


def native(monkeypatch: pytest.MonkeyPatch, does: bool = True) -> None:
    """Let the device multiply bfloat16, or not."""
    monkeypatch.setattr(f"{_HERE}.multiplies_bfloat16", lambda device: does)


def in_seconds(monkeypatch: pytest.MonkeyPatch, full: float, half: float) -> None:
    """Let models in float32 and in half precision take so long for the first examples."""

    def timed(*given: Any) -> Any:
        found = score_in_turns(*given)
        return [(one, took) for (one, _), took in zip(found, (full, half), strict=True)]

    monkeypatch.setattr(f"{_HERE}.score_in_turns", timed)
