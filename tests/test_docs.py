"""The examples of the pages on roles of one's own run, and find what the pages say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from headroles import find_best_heads, read_conllu, score_heads

PAGE = Path(__file__).parents[1] / "docs" / "writing-roles.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def my_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the functions of the page, from which it is read."""
    functions = [block.partition("found = ")[0] for block in BLOCKS if "def " in block]
    assert len(functions) == 3
    (tmp_path / "my_roles.py").write_text("\n\n".join(functions), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_roles", raising=False)
    return tmp_path


def test_the_role_of_negation(my_roles: Path, bert_folder: Path, sample: Path) -> None:
    """22 pairs in 17 examples of the bundled sample, always one word ahead at best."""
    hits = score_heads(
        bert_folder,
        read_conllu(sample),
        roles="my_roles:negation,my_roles:proper_nouns",
        score="hit",
    )
    assert hits.role_ids == (
        "my_roles:negation",
        "my_roles:negation:back",
        "my_roles:proper_nouns",
        "my_roles:negation:other_trees",
        "my_roles:negation:back:other_trees",
    )
    assert hits.counts[:, 0].sum() == 22
    assert (hits.counts[:, 0] > 0).sum() == 17
    assert hits.counts[:, 2].sum() > 0
    rules = find_best_heads(hits).frame.set_index(["role", "half"])
    for half, rule in ((1, 0.833), (2, 0.917)):
        row = rules.loc[("my_roles:negation", half)]
        assert (row["offset"], round(row["offset_mean"], 3)) == (1, rule)
