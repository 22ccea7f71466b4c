"""The package as a whole: what importing it costs, and its public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import headroles

HEAVY = (
    "torch",
    "spacy",
    "transformers",
    "pandas",
    "scipy",
    "statsmodels",
    "pyarrow",
    "matplotlib",
)


def loaded_after(code: str) -> set[str]:
    """The heavy libraries that a fresh interpreter holds after ``code``."""
    report = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(eval(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import headroles") == set()


def test_figures_and_pages_load_when_they_are_used() -> None:
    assert loaded_after("import headroles.report") == set()
    drawn = loaded_after("from headroles.report import draw_role")
    assert "torch" not in drawn


def test_the_check_notices_loaded_libraries() -> None:
    assert "pandas" in loaded_after("import headroles; headroles.RoleTable")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["classify", "--help"],
        ["compare", "--help"],
        ["collaborate", "--help"],
        ["export", "--help"],
        ["report", "--help"],
        ["figure", "--help"],
        ["classify"],
        ["compare"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "from headroles.cli import app\n"
        f"try: app({arguments!r})\n"
        "except SystemExit as end: assert end.code in (0, 2)"
    )
    assert loaded_after(code) == set()


def test_public_names() -> None:
    names = (
        "Ablations BestHeads ClaimTable Classification Collaboration CollaborativeModel "
        "DropsByTask Examples Gated HeadDescription HeadRolesError HeadScores Importance "
        "ImportanceByRole LayerCounts PowerAnalysis Pruned PruningCurves Redundancy Replication "
        "Role RoleShifts RoleTable SavedAttention Sentence TokenGroups WordAttention ablate_heads "
        "assign_roles classify_heads collaborate_heads compare_roles demo_model describe_heads "
        "drops_by_task find_best_heads find_examples find_importance find_pruning_curves "
        "gate_heads importance_by_role load load_model make_corpus measure_token_groups "
        "power_analysis prune_heads read_attention read_conllu read_pairs read_text "
        "replicate_roles find_redundancy sample_treebank score_attention score_heads "
        "test_claims"
    )
    assert sorted(headroles.__all__) == names.split()


@pytest.mark.parametrize("name", headroles.__all__)
def test_every_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(headroles, name).__doc__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        headroles.no_such_name  # noqa: B018
