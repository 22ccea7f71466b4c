"""Public names, and the modules that have them, of packages that import nothing by themselves.

``make stubs`` writes the stubs of these packages from here, for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

HEADROLES = {
    "corpus": "Sentence make_corpus read_arcs read_bitext read_conllu read_pairs read_text",
    "errors": "HeadRolesError",
    "models.attention.functions": "SavedAttention",
    "models.loading.encoder": "load_model",
    "models.loading.saved_models": "CollaborativeModel",
    "models.loading.tokenizers": "encode",
    "results.result": "load",
    "roles": "Role",
    "sample": "atlas demo_model sample_treebank",
    "scoring.run": "score_attention score_heads",
    "scoring.scores": "HeadScores",
    "studies.alignment.align": "WordAlignment align_words",
    "studies.alignment.symmetrize": "JoinedLinks symmetrize_links",
    "studies.claims.claims": "ClaimTable combine_claims test_claims",
    "studies.classification.assignment": "Classification assign_roles classify_heads",
    "studies.classification.role_table": "RoleTable",
    "studies.comparison.compare": "RoleComparison compare_roles",
    "studies.describe": "HeadDescription describe_heads",
    "studies.importance.ablate": "Ablations ablate_heads",
    "studies.importance.by_role": "ImportanceByRole importance_by_role",
    "studies.importance.by_task": "DropsByTask drops_by_task",
    "studies.importance.importance": "Importance find_importance",
    "studies.inspection.attention": "WordAttention attention_of read_attention",
    "studies.inspection.best": "BestHeads find_best_heads",
    "studies.inspection.examples": "Examples find_examples",
    "studies.inspection.tokens": "TokenGroups measure_token_groups",
    "studies.power": "PowerAnalysis power_analysis",
    "studies.profile": "HeadProfile",
    "studies.pruning.gate": "Gating gate_heads",
    "studies.pruning.prune": "Pruning prune_heads",
    "studies.pruning.pruning_curves": "PruningCurves find_pruning_curves",
    "studies.replicate": "Replication replicate_roles",
    "studies.sharing.collaborate": "Collaboration collaborate_heads",
    "studies.sharing.redundancy": "Redundancy find_redundancy",
}
"""Names of the package ``headroles``, by module."""

REPORT = {
    "drawing.saving": "save_figure",
    "report.pages": "make_report write_report",
    "studies.alignment.figures": "draw_error_rates draw_links",
    "studies.classification.figures": "draw_heads draw_role draw_roles",
    "studies.comparison.figures": "draw_changed_heads draw_changes draw_trajectory",
    "studies.importance.ablate": "draw_ablations",
    "studies.importance.by_role": "draw_importance_by_role",
    "studies.importance.by_task": "draw_drops_by_task",
    "studies.importance.importance": "draw_importance",
    "studies.inspection.attention": "draw_attention",
    "studies.inspection.tokens": "draw_token_group draw_token_groups",
    "studies.power": "draw_power",
    "studies.pruning.pruning_curves": "draw_pruning_curves",
    "studies.replicate": "draw_layer_counts draw_replication",
}
"""Names of the package ``headroles.report``, by module."""


def module_by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name of a table above."""
    return {
        name: f"headroles.{module}" for module, listed in names.items() for name in listed.split()
    }


def load_lazily(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with these names.

    The module of a name is imported when the name is used.
    """
    modules = module_by_name(names)
    every = sorted(modules)

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: [*every], every
