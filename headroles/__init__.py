"""What the attention heads of a BERT-style encoder do, with a test for every head and role.

Importing this package loads neither torch nor spaCy; its names load what they need when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headroles.classification import Classification, classify_heads
    from headroles.comparison import RoleShifts, compare_roles
    from headroles.corpus import read_conllu, read_pairs, read_text
    from headroles.errors import HeadRolesError
    from headroles.planning import PowerPlan, plan_examples
    from headroles.roles import RoleTable, assign_roles
    from headroles.sample import demo_model, sample_treebank
    from headroles.scores import HeadScores
    from headroles.scoring import score_heads

__all__ = [
    "Classification",
    "HeadRolesError",
    "HeadScores",
    "PowerPlan",
    "RoleShifts",
    "RoleTable",
    "assign_roles",
    "classify_heads",
    "compare_roles",
    "demo_model",
    "plan_examples",
    "read_conllu",
    "read_pairs",
    "read_text",
    "sample_treebank",
    "score_heads",
]

_HOMES = {
    "Classification": "classification",
    "HeadRolesError": "errors",
    "HeadScores": "scores",
    "PowerPlan": "planning",
    "RoleShifts": "comparison",
    "RoleTable": "roles",
    "assign_roles": "roles",
    "classify_heads": "classification",
    "compare_roles": "comparison",
    "demo_model": "sample",
    "plan_examples": "planning",
    "read_conllu": "corpus",
    "read_pairs": "corpus",
    "read_text": "corpus",
    "sample_treebank": "sample",
    "score_heads": "scoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headroles' has no attribute {name!r}")
    return getattr(import_module(f"headroles.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
