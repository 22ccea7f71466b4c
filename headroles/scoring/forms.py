"""What ``run.json`` must say of scores for them to be read back."""

from __future__ import annotations

from typing import Any

import msgspec

from headroles.roles import SCORES


class RoleForm(msgspec.Struct, forbid_unknown_fields=True):
    """As `Role.to_record` writes it."""

    id: str
    words: str = ""
    unit: str = ""
    thresholds: dict[str, float] = {}
    baseline: float | None = None
    meaning: dict[str, Any] = {}
    measure_of: str = ""
    in_window: str = ""


class ScoresForm(msgspec.Struct):
    """As `HeadScores.record` writes it; provenance beyond that may be missing, if made by hand."""

    score: str
    roles: list[RoleForm]
    layers: int
    heads: int
    scores: int
    model: dict[str, Any] = {}
    corpus: dict[str, Any] = {}
    options: dict[str, Any] = {}
    reaches: list[int | None] = []
    absent_relations: list[str] = []
    skipped: dict[str, int] = {}
    controls: dict[str, int] = {}

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"unknown score {self.score!r}")
        ids = [role.id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("two roles of one id")
        if min(self.layers, self.heads, self.scores) < 0:
            raise ValueError("a size below 0")
