"""Queries and keys of low rank: factors, models of every family, and their folders."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorly
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax
from tensorly.decomposition import parafac
from torch import Tensor
from transformers import AutoModel, PreTrainedModel, Trainer, TrainingArguments

from headroles.arrays import FloatArray
from headroles.errors import ModelError, ModelSupportError
from headroles.models.families import FAMILIES
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.remaining import removed_heads
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads, zero_heads
from headroles.models.loading.encoder import load_encoder, load_model
from headroles.models.options import FACTOR_METHODS, PER_HEAD, SHARED
from headroles.models.shared.factorisation import (
    InputMoments,
    ScoreMaps,
    factorise,
    fit_shared,
    head_singular,
    score_error,
)
from headroles.models.shared.sites import find_sites, install, reading_inputs
from tests.conftest import make_tokenizer
from tests.models.families import HEADS, LAYERS, ONE_MODULE, PROJECTED, make_model, randomise_biases
from tests.models.test_attention import LENGTHS, capture, make_inputs
from tests.models.test_surgery import A_LAYER, SOME, of_family, outputs
from tests.rounding import DOUBLE, assert_same_outputs
from tests.tasks.conftest import save

OF_ITS_OWN = [kind for kind in PROJECTED if FAMILIES[kind].has_own_forward]
PLAIN = [kind for kind in PROJECTED if not (FAMILIES[kind].positions or kind in OF_ITS_OWN)]
OTHERS = [kind for kind in PROJECTED if FAMILIES[kind].positions and kind not in OF_ITS_OWN]


def with_biases(kind: str, task: str = "Model") -> PreTrainedModel:
    return randomise_biases(make_model(kind, task, "sdpa"), 1)


def with_vocabulary(model: PreTrainedModel) -> PreTrainedModel:
    """``model`` with embeddings for all that the tokenizer of tests knows."""
    model.resize_token_embeddings(128)
    return model


def low_rank(model: PreTrainedModel, method: str, rank: int | None = None) -> PreTrainedModel:
    """A copy of ``model``, at full rank unless another is given."""
    changed = copy.deepcopy(model)
    for site in find_sites(find_stack(changed)):
        moments = InputMoments.none(site.maps.query.shape[2])
        install(changed, site, factorise(site.maps, moments, rank or site.maps.full_rank, method))
    return changed


def weights_of(model: PreTrainedModel) -> list[Tensor]:
    """Attention of the real queries of the padded sequence, layer by layer."""
    return [weights[1, :, : LENGTHS[1]] for weights in capture(model, make_inputs())]


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("method", FACTOR_METHODS)
def test_full_rank_is_the_original(kind: str, method: str) -> None:
    original = with_biases(kind)
    made = low_rank(original, method)
    for attention in ("eager", "sdpa"):
        for model in (original, made):
            model.set_attn_implementation(attention if model._supports_sdpa else "eager")
        expected, ours = outputs(original), outputs(made)
        assert_same_outputs(ours, expected)
        assert (ours != expected).any()
    ours, theirs = weights_of(made), weights_of(original)
    assert len(ours) == LAYERS
    for one, other in zip(ours, theirs, strict=True):
        assert_same_outputs(one, other)
        assert one[..., LENGTHS[1] :].abs().max() == 0  # padding


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("method", FACTOR_METHODS)
class TestWithoutSomeHeads:
    def test_removed_is_zeroed(self, kind: str, method: str, tmp_path: Path) -> None:
        heads = of_family(kind, SOME + A_LAYER)
        made = low_rank(with_biases(kind).double(), method, rank=2 * HEADS)
        zeroed, removed = copy.deepcopy(made), copy.deepcopy(made)
        zero_heads(HeadSites(find_stack(zeroed)), heads)
        remove_heads(removed, heads)
        assert not torch.allclose(outputs(made), outputs(zeroed), atol=1e-3)
        assert_same_outputs(outputs(removed), outputs(zeroed), DOUBLE)
        removed.save_pretrained(tmp_path / "removed")
        read = load_model(tmp_path / "removed").double()
        assert_same_outputs(outputs(read), outputs(removed))
        assert removed_heads(read.config) == sorted(set(heads))

    def test_then_of_low_rank_is_of_low_rank_then_without(self, kind: str, method: str) -> None:
        """At full rank both are the original without these heads."""
        heads = of_family(kind, [(0, 1), (2, 3)]) + (A_LAYER if kind not in ONE_MODULE else [])
        original, pruned = with_biases(kind).double(), with_biases(kind).double()
        made = low_rank(original, method)
        remove_heads(made, heads)
        remove_heads(pruned, heads)
        expected = outputs(pruned)
        for one in (low_rank(pruned, method), made):
            assert_same_outputs(outputs(one), expected)


def without_heads() -> PreTrainedModel:
    model = make_model("bert")
    remove_heads(model, find_stack(model).heads)
    return model


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        *((partial(make_model, kind), f"{FAMILIES[kind].name} have .*position") for kind in OTHERS),
        *(
            (partial(make_model, kind), f"{FAMILIES[kind].name} cannot be run with shared")
            for kind in OF_ITS_OWN
        ),
        (without_heads, "lost all its heads"),
        (lambda: low_rank(make_model("bert"), FACTOR_METHODS[0], 8), "of low rank already"),
    ],
)
def test_others_are_refused_with_the_reason(
    make: Callable[[], PreTrainedModel], reason: str
) -> None:
    with pytest.raises(ModelSupportError, match=reason):
        find_sites(find_stack(make()))


def test_moments_are_those_of_the_inputs_of_real_tokens() -> None:
    model = make_model("bert")
    stack, batch = find_stack(model), make_inputs()
    sites = find_sites(stack)
    with torch.no_grad():
        hidden = model(**batch, output_hidden_states=True).hidden_states
    mask = batch["attention_mask"].bool()
    with reading_inputs(stack, sites) as read:
        sums = read(batch)
    assert [number for number, _ in sums] == list(range(len(sites)))
    for states, (_, of_site) in zip(hidden, sums, strict=False):
        found = of_site.moments()
        rows = [own[real].double() for own, real in zip(states, mask, strict=True)]
        tokens = torch.cat(rows)
        apart = torch.cat([own - own.mean(dim=0) for own in rows])
        means, within = tokens.mean(dim=0), apart.T @ apart / len(apart)
        assert_same_outputs(torch.from_numpy(found.mean), means)
        assert_same_outputs(torch.from_numpy(found.covariance), torch.cov(tokens.T, correction=0))
        assert_same_outputs(torch.from_numpy(found.within), within)
    assert not any(module._forward_pre_hooks for module in model.modules())


def make_and_save(task: str, folder: Path) -> PreTrainedModel:
    """A BERT of low rank with embeddings for the tokenizer, which is saved in a folder with it."""
    model = low_rank(with_vocabulary(with_biases("bert", task)), FACTOR_METHODS[0], 8)
    save(model, folder)
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_and_save("Model", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("kind", "method"), [*((kind, SHARED) for kind in PLAIN), ("bert", PER_HEAD)]
)
def test_what_was_written_is_loaded(kind: str, method: str, tmp_path: Path) -> None:
    model = low_rank(with_biases(kind), method, 2 * HEADS)
    loaded = load_model(save(model, tmp_path))
    assert not loaded.training
    assert torch.equal(outputs(loaded), outputs(model))
    state, again = model.state_dict(), loaded.state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(values, again[name]) for name, values in state.items())


@pytest.mark.parametrize("task", ["ForSequenceClassification", "ForMaskedLM"])
def test_a_task_head_stays(task: str, tmp_path: Path) -> None:
    """Weights that a language model shares with its embeddings stay shared."""
    model = make_and_save(task, tmp_path)
    whole = load_encoder(tmp_path, head=None)
    for loaded in (whole.model, load_model(tmp_path)):
        assert type(loaded) is type(model)
        with torch.no_grad():
            assert torch.equal(loaded(**make_inputs()).logits, model(**make_inputs()).logits)
        if task == "ForMaskedLM":
            embeddings = loaded.get_input_embeddings().weight
            assert loaded.get_output_embeddings().weight is embeddings
    assert whole.tokenizer.get_vocab() == make_tokenizer().get_vocab()
    if task == "ForMaskedLM":
        with pytest.raises(ModelError, match=r"it is a BertForMaskedLM"):
            load_encoder(tmp_path, head="classification")


def test_what_is_trained_is_saved_by_the_trainer(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    make_and_save("ForSequenceClassification", tmp_path / "model")
    network = load_model(tmp_path / "model")
    before = {name: values.clone() for name, values in network.named_parameters()}
    quiet = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True}
    settings = TrainingArguments(tmp_path / "trained", max_steps=2, learning_rate=1e-2, **quiet)
    examples = [{"input_ids": [1, 9, 8 + label, 2], "labels": label} for label in (0, 1)]
    trainer = Trainer(network, settings, train_dataset=examples, processing_class=make_tokenizer())
    trainer.train()
    trainer.save_model()
    state = load_model(tmp_path / "trained").state_dict()
    for name, values in network.eval().named_parameters():
        assert torch.equal(state[name], values)
        assert ".scores." not in name or not torch.equal(before[name], values)
    assert load_encoder(tmp_path / "trained", head="classification").max_tokens > 4


def test_it_is_written_whole(folder: Path, tmp_path: Path) -> None:
    model = load_model(folder)
    with pytest.raises(ModelError, match="written whole"):
        model.save_pretrained(tmp_path / "part", state_dict={})
    type(model).save_pretrained(model, tmp_path / "again")
    assert torch.equal(outputs(load_model(tmp_path / "again")), outputs(model))


def test_its_memory_is_free_when_nothing_refers_to_it(folder: Path) -> None:
    model = load_model(folder)
    known = weakref.ref(model)
    gc.disable()
    del model
    is_free = known() is None
    gc.enable()
    assert is_free


def test_transformers_does_not_load_it_with_weights_made_up(folder: Path) -> None:
    with pytest.raises(OSError, match="no file named"):
        AutoModel.from_pretrained(folder)


SIZE, WIDTH = 3, 12
DIGITS = 1e-6
"""Figures that were worked out by hand have six digits."""
NO_INPUTS = InputMoments.none(WIDTH)
NOTHING = 1e-10
"""Sums in double precision of numbers of up to 100 are off by about 1e-13."""


def make_maps(seed: int = 0, biased: bool = True) -> ScoreMaps:
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, HEADS, SIZE, WIDTH))
    return ScoreMaps(query, key, biased * rng.normal(size=(HEADS, SIZE)))


def token_states(n: int = 400) -> FloatArray:
    """Inputs (n, WIDTH) of uneven covariance that are not centred."""
    rng = np.random.default_rng(1)
    return np.asarray(rng.normal(size=(n, WIDTH)) @ rng.normal(size=(WIDTH, WIDTH)) + 1)


def moments_of(inputs: FloatArray) -> InputMoments:
    """Moments of inputs that are one long sequence."""
    covariance = np.cov(inputs.T, bias=True)
    return InputMoments(inputs.mean(axis=0), covariance, covariance)


def tensor_of(maps: ScoreMaps) -> FloatArray:
    """(query input, head, key input)."""
    return np.asarray(np.einsum("hcq,hck->qhk", maps.query, maps.key))


@pytest.mark.parametrize("rank", [1, 2])
def test_two_heads_of_one_dimension_by_hand(rank: int) -> None:
    """Their products are of rank 1, and the bias of the keys plays no part."""
    query, key = np.array([[[[1.0, 0, 1]], [[2.0, 0, 2]]], [[[0.0, 1, 1]], [[0.0, 1, 1]]]])
    maps = ScoreMaps(query, key, bias=np.array([[0.5], [-1.0]]))
    inputs = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]])
    first, second = factorise(maps, InputMoments.none(3), rank).as_maps().scores(inputs)
    assert_allclose(first, [[0, 1.5, 3], [0, 0.5, 1], [0, 2.5, 5]], atol=DIGITS)
    assert_allclose(second, [[0, 1, 2], [0, -1, -2], [0, 3, 6]], atol=DIGITS)
    expected = [[0.039113, 0.17529, 0.785597], [0.186324, 0.307196, 0.50648]]
    rows = softmax(first, axis=1)
    assert_allclose(rows, [*expected, [0.006188, 0.075389, 0.918423]], atol=DIGITS)
    assert_allclose(softmax(second[0]), [0.090031, 0.244728, 0.665241], atol=DIGITS)
    with_key_bias = [[0.45, 1.95, 3.45], [0.15, 0.65, 1.15], [0.75, 3.25, 5.75]]
    assert_allclose(rows, softmax(with_key_bias, axis=1), atol=DIGITS)


@pytest.mark.parametrize("method", FACTOR_METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_the_same(method: str, weighted: bool) -> None:
    maps, inputs = make_maps(), token_states(20)
    moments = moments_of(token_states()) if weighted else NO_INPUTS
    factors = factorise(maps, moments, maps.full_rank, method)
    assert factors.rank == maps.full_rank
    assert_allclose(factors.as_maps().scores(inputs), maps.scores(inputs), atol=NOTHING)


@pytest.mark.parametrize("method", FACTOR_METHODS)
class TestError:
    def test_is_that_of_scores_of_the_inputs(self, method: str) -> None:
        """Written out over all pairs of tokens of one sequence."""
        maps, inputs = make_maps(), token_states(60)
        factors = factorise(maps, moments_of(inputs), 8, method)
        scores = [one.scores(inputs) for one in (maps, factors.as_maps())]
        exact, close = (rows - rows.mean(axis=-1, keepdims=True) for rows in scores)
        expected = np.sqrt(((exact - close) ** 2).sum() / (exact**2).sum())
        assert 0.01 < expected < 0.9
        assert score_error(maps, factors, moments_of(inputs)) == pytest.approx(expected, rel=1e-6)

    def test_of_no_inputs_is_that_of_the_tensor(self, method: str) -> None:
        maps = make_maps(biased=False)
        factors = factorise(maps, NO_INPUTS, 8, method)
        exact, close = tensor_of(maps), tensor_of(factors.as_maps())
        expected = np.linalg.norm(exact - close) / np.linalg.norm(exact)
        assert score_error(maps, factors, NO_INPUTS) == pytest.approx(expected, rel=1e-6)

    def test_on_inputs_is_less_if_these_are_what_counts(self, method: str) -> None:
        maps, moments = make_maps(), moments_of(token_states())
        weighted, plain = (factorise(maps, those, 8, method) for those in (moments, NO_INPUTS))
        assert score_error(maps, weighted, moments) < 0.9 * score_error(maps, plain, moments)
        assert score_error(maps, plain, NO_INPUTS) < score_error(maps, weighted, NO_INPUTS)


@pytest.mark.parametrize("rank", [2, 5, 8])
def test_shared_factors_are_as_good_as_parafac(rank: int) -> None:
    """The decomposition of the whole tensor by tensorly, the best of its starts."""
    maps = make_maps(3, biased=False)
    tensor = tensor_of(maps)
    settings = {"n_iter_max": 500, "tol": 1e-9, "init": "random"}
    rests = [
        tensor - tensorly.cp_to_tensor(parafac(tensor, rank, random_state=seed, **settings))
        for seed in range(3)
    ]
    fit = fit_shared(maps, rank, restarts=3, most_rounds=500, tolerance=1e-7)
    ours = tensor - np.einsum("rq,hr,rk->qhk", fit.query, fit.mixing, fit.key)
    *theirs, error = (np.linalg.norm(rest) / np.linalg.norm(tensor) for rest in (*rests, ours))
    assert fit.errors[-1] <= min(theirs) + 0.005
    assert fit.errors[-1] == pytest.approx(error, rel=1e-6)


def test_error_of_shared_factors_is_that_of_both_terms_and_never_rises() -> None:
    maps = make_maps(4)
    fit = fit_shared(maps, 6)
    close = np.einsum("rq,hr,rk->qhk", fit.query, fit.mixing, fit.key)
    content = np.einsum("hc,hck->hk", maps.bias, maps.key)
    left = ((tensor_of(maps) - close) ** 2).sum() + ((content - fit.bias @ fit.key) ** 2).sum()
    total = (tensor_of(maps) ** 2).sum() + (content**2).sum()
    assert fit.errors[-1] == pytest.approx(np.sqrt(left / total), rel=1e-6)
    errors = fit_shared(make_maps(6), 7, tolerance=0).errors
    assert len(errors) > 5
    assert np.diff(errors).max() < 1e-9


def test_heads_of_no_weights_are_no_error() -> None:
    nothing = np.zeros((HEADS, SIZE, WIDTH))
    maps = ScoreMaps(nothing, nothing, np.zeros((HEADS, SIZE)))
    factors = factorise(maps, NO_INPUTS, 4)
    assert np.isfinite(factors.as_maps().scores(token_states(5))).all()
    assert score_error(maps, factors, NO_INPUTS) == 0


def test_error_is_that_of_the_singular_values_left_out() -> None:
    maps = make_maps(9)
    factors = factorise(maps, NO_INPUTS, 2 * HEADS, PER_HEAD)
    with_bias = np.concatenate([maps.query, maps.bias[:, :, None]], axis=2)
    strength = np.linalg.svd(with_bias.swapaxes(1, 2) @ maps.key, compute_uv=False)
    expected = np.sqrt((strength[:, 2:] ** 2).sum() / (strength**2).sum())
    assert score_error(maps, factors, NO_INPUTS) == pytest.approx(expected, rel=1e-6)


def test_singular_values_are_those_of_the_products() -> None:
    maps = make_maps(11)
    left, strength, right = head_singular(maps.query, maps.key)
    products = maps.query.swapaxes(1, 2) @ maps.key
    assert_allclose(left * strength[:, None] @ right.swapaxes(1, 2), products, atol=NOTHING)
    expected = np.linalg.svd(products, compute_uv=False)[:, :SIZE]
    assert_allclose(strength, expected, atol=NOTHING)
