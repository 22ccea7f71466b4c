"""What heads have in common: planted and by chance, against scipy and closed forms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from scipy.stats import beta, kstest
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headroles import RoleTable, assign_roles, find_redundancy
from headroles.errors import StorageError, UsageError
from headroles.studies.sharing.redundancy import (
    Redundancy,
    dimensions_for,
    overlaps,
    random_overlaps,
    random_sums,
    sum_singular,
)
from tests.conftest import make_bert, make_scores

RNG = np.random.default_rng(0)


def test_energy_of_heads_and_of_their_sum_by_hand() -> None:
    query = np.array([[[1.0, 0, 0], [0, 1, 0]], [[2.0, 0, 0], [0, 0.5, 0]]])
    key = np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2)
    both = [3, 1.5, 0]
    for heads, strength, share in (  # of the first dimension; two have all
        (slice(1), [1, 1, 0], 0.5),
        (slice(1, 2), [2, 0.5, 0], 0.941176),
        (slice(2), both, 0.8),
    ):
        found = sum_singular(query[heads], key[heads])
        assert_allclose(found[: len(strength)], strength[: len(found)], atol=1e-12)
        assert [int(dimensions_for(found, share + by)) for by in (-1e-6, 1e-6)] == [1, 2]
    shares = [int(dimensions_for(np.array(both), share)) for share in (0.8, 0.81, 0.99)]
    assert shares == [1, 2, 2]
    # As the products of matrices.
    query, key = RNG.normal(size=(2, 3, 2, 7))
    products = sum(one.T @ other for one, other in zip(query, key, strict=True))
    assert_allclose(sum_singular(query, key), np.linalg.svd(products, compute_uv=False), atol=1e-12)


def test_overlaps_are_mean_squared_cosines_of_principal_angles() -> None:
    maps = RNG.normal(size=(4, 3, 9))
    found = overlaps(maps)
    for one, other in np.ndindex(4, 4):
        angles = subspace_angles(maps[one].T, maps[other].T)
        assert found[one, other] == pytest.approx(np.mean(np.cos(angles) ** 2))


def test_random_overlaps_of_lines_follow_their_law() -> None:
    """The squared cosine of two random lines is Beta(1/2, (width - 1) / 2)."""
    drawn = random_overlaps(1, 6, 2000, np.random.default_rng(1))
    assert kstest(drawn, beta(0.5, 2.5).cdf).pvalue > 0.01


def test_random_sums_keep_the_energy_on_average() -> None:
    strength = np.abs(RNG.normal(size=(3, 2)))
    drawn = random_sums(strength, 10, 400, np.random.default_rng(5))
    energy = (drawn**2).sum(axis=1)
    assert energy.mean() == pytest.approx((strength**2).sum(), rel=0.05)


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


def test_random_heads_share_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    found = find_redundancy(make_bert(seed=3, heads=8), draws=19, tokenizer=tokenizer)
    adjusted = found.frame[["query_p_adjusted", "key_p_adjusted"]]
    assert (adjusted.to_numpy() > 0.05).all()
    overlap = found.frame[["query_overlap", "key_overlap"]].to_numpy()
    assert overlap.mean() == pytest.approx(1 / 8, abs=0.01)
    assert found.facts["chance"] == 1 / 8
    assert found.record.model.read_through == "attention interface"
    assert (found.layers["p_adjusted"] > 0.05).all()


def test_a_table_without_two_heads_of_a_layer_is_refused(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    found = find_redundancy(make_bert(), draws=9, tokenizer=tokenizer)
    of_layer = found.where(layer=1)
    assert Redundancy.load(of_layer.save(tmp_path / "layer")) == of_layer
    lacking = replace(found, frame=found.frame.drop(index=7)).save(tmp_path / "lacking")
    with pytest.raises(StorageError, match=r"parquet: it has 5 pairs of the 4 heads of layer 1;"):
        Redundancy.load(lacking)


def test_a_common_key_space_is_found(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    roles = roles_for((1, 1), (1, 3)).save(tmp_path / "roles")
    found = find_redundancy(plant(make_bert()), draws=9, roles_from=roles, tokenizer=tokenizer)
    significant = found.frame[found.frame["key_p_adjusted"] <= 0.05]
    assert significant[["layer", "head", "other"]].to_numpy().tolist() == [[1, 1, 3]]
    assert significant["key_overlap"].item() == pytest.approx(1)
    assert "1 and 3 1.000" in repr(found)
    by = found.roles.set_index("projection")
    assert set(by["role"]) == {"a"}  # a role of one head has no pairs
    assert by["pairs"].tolist() == [1, 1]
    assert by["overlap"]["key"] == pytest.approx(1)
    assert by["p_value"]["key"] == pytest.approx(1 / 6, abs=0.02)  # 1 of the 6 pairs
    assert by["p_value"]["query"] > 1 / 6 - 0.02


def test_heads_that_are_copies_take_few_dimensions(tokenizer: PreTrainedTokenizerFast) -> None:
    model = make_bert(heads=8)
    attention = model.encoder.layer[2].attention.self
    for linear in (attention.query, attention.key):
        linear.weight.data.copy_(linear.weight[:8].repeat(8, 1))
    layers = find_redundancy(model, draws=19, tokenizer=tokenizer).layers
    assert layers["sum_99%"][2] <= 8
    assert layers["sum_90%_by_chance"][2] > 2 * layers["sum_90%"][2]
    assert layers["p_value"][2] == 1 / 20
    assert (layers["p_value"][:2] > 0.05).all()


def test_roles_of_another_model_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    table = assign_roles(make_scores(np.random.default_rng(0).random((9, 2, 4, 1)), ["a"]))
    with pytest.raises(UsageError, match=r"of 8 heads, and the model has 3 layers x 4"):
        find_redundancy(bert_folder, draws=9, roles_from=table.save(tmp_path / "roles"))
