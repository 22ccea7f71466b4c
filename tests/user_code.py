"""Code as users write it, against the public names: mypy checks it, a test runs it."""

from __future__ import annotations

from pathlib import Path

import headroles as hr


def strongest_heads(model: str, treebank: Path) -> list[tuple[int, int]]:
    """Heads from a subject to its verb."""
    scores: hr.HeadScores = hr.score_heads(model, hr.read_conllu(treebank))
    table: hr.RoleTable = hr.assign_roles(scores, alpha=0.01)
    return table.heads_with("syntactic:nsubj:to_governor")


def save_and_load(model: str, treebank: Path, folder: Path) -> hr.RoleTable:
    """A classification, saved and loaded."""
    result: hr.Classification = hr.classify_heads(model, hr.read_conllu(treebank))
    result.save(folder)
    return hr.RoleTable.load(folder)


def heads_by_answer(table: hr.RoleTable) -> dict[str, int]:
    """Numbers of tests by their answers, from the data frame of a table."""
    counts = table.frame["answer"].value_counts()
    return {str(answer): int(count) for answer, count in counts.items()}


def compare_with_itself(model: str, treebank: Path) -> str:
    """A comparison, as it is printed."""
    before = hr.score_heads(model, hr.read_conllu(treebank))
    shifts: hr.RoleComparison = hr.compare_roles(before, before)
    return str(shifts)
