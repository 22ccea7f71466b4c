"""What heads have in common: planted, and by chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headroles import RoleTable, assign_roles, find_redundancy
from headroles.errors import UsageError
from tests.conftest import make_bert, make_scores


def plant(model: PreTrainedModel) -> PreTrainedModel:
    """Heads 1 and 3 of layer 1 have one and the same key space."""
    key = model.encoder.layer[1].attention.self.key.weight
    with torch.no_grad():
        key[24:32] = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)) @ key[8:16]
    return model


def roles_for(*heads: tuple[int, int]) -> RoleTable:
    """A table in which these heads have the role ``a``, and head 0 of layer 0 alone ``b``."""
    means = np.zeros((3, 4, 2))
    for layer, head in heads:
        means[layer, head, 0] = 9
    means[0, 0, 1] = 9
    noise = np.random.default_rng(0).normal(0, 0.1, (20, 3, 4, 2))
    return assign_roles(make_scores(means + noise, ["a", "b"]))


class TestPairs:
    def test_random_heads_share_nothing(self, tokenizer: PreTrainedTokenizerFast) -> None:
        model = make_bert(seed=3, heads=8)
        found = find_redundancy(model, draws=19, tokenizer=tokenizer)
        adjusted = found.frame[["query_p_adjusted", "key_p_adjusted"]]
        assert (adjusted.to_numpy() > 0.05).all()
        overlap = found.frame[["query_overlap", "key_overlap"]].to_numpy()
        assert overlap.mean() == pytest.approx(1 / 8, abs=0.01)
        assert found.facts["chance"] == 1 / 8
        assert found.record.model.read_through == "attention interface"
        assert (found.layers["p_adjusted"] > 0.05).all()

    def test_a_common_key_space_is_found(self, tokenizer: PreTrainedTokenizerFast) -> None:
        found = find_redundancy(plant(make_bert()), draws=9, tokenizer=tokenizer)
        significant = found.frame[found.frame["key_p_adjusted"] <= 0.05]
        assert significant[["layer", "head", "other"]].to_numpy().tolist() == [[1, 1, 3]]
        assert significant["key_overlap"].item() == pytest.approx(1)
        assert "1 and 3 1.000" in repr(found)


class TestLayers:
    def test_heads_that_are_copies_take_few_dimensions(
        self, tokenizer: PreTrainedTokenizerFast
    ) -> None:
        model = make_bert(heads=8)
        attention = model.encoder.layer[2].attention.self
        with torch.no_grad():
            for linear in (attention.query, attention.key):
                linear.weight.copy_(linear.weight[:8].repeat(8, 1))
        layers = find_redundancy(model, draws=19, tokenizer=tokenizer).layers
        assert layers["sum_99%"][2] <= 8
        assert layers["sum_90%_by_chance"][2] > 2 * layers["sum_90%"][2]
        assert layers["p_value"][2] == 1 / 20
        assert (layers["p_value"][:2] > 0.05).all()


class TestRoles:
    def test_heads_of_one_role_that_share_keys_are_found(
        self, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
    ) -> None:
        model, roles = plant(make_bert()), roles_for((1, 1), (1, 3)).save(tmp_path / "roles")
        found = find_redundancy(model, draws=9, roles_from=roles, tokenizer=tokenizer)
        by = found.roles.set_index("projection")
        assert set(by["role"]) == {"a"}  # a role of one head has no pairs
        assert by["pairs"].tolist() == [1, 1]
        assert by["overlap"]["key"] == pytest.approx(1)
        assert by["p_value"]["key"] == pytest.approx(1 / 6, abs=0.02)  # 1 of the 6 pairs
        assert by["p_value"]["query"] > 1 / 6 - 0.02

    def test_roles_of_another_model_are_refused(self, bert_folder: Path, tmp_path: Path) -> None:
        table = assign_roles(make_scores(np.random.default_rng(0).random((9, 2, 4, 1)), ["a"]))
        with pytest.raises(UsageError, match=r"of 8 heads, and the model has 3 layers x 4"):
            find_redundancy(bert_folder, draws=9, roles_from=table.save(tmp_path / "roles"))
