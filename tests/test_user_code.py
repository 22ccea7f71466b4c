"""Code of users runs, and its types are those that the package declares."""

from __future__ import annotations

from pathlib import Path

from headroles import RoleTable
from tests import user_code


def test_the_code_of_users_runs(bert_folder: Path, treebank: Path, tmp_path: Path) -> None:
    model = str(bert_folder)
    assert isinstance(user_code.strongest_heads(model, treebank), list)
    table = user_code.save_and_load(model, treebank, tmp_path / "roles")
    assert isinstance(table, RoleTable)
    assert sum(user_code.heads_by_answer(table).values()) == len(table.frame)
    assert user_code.compare_with_itself(model, treebank)
