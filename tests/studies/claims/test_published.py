"""Claims on hand-made tables: each is shown, contradicted or left undecided as it must be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headroles.models.subspaces import dimensions_for
from headroles.studies.claims import CLAIMS, Halves, NotTestable
from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.dimensions import distinct, shared_dimensions
from headroles.studies.claims.published.clark_2019 import middle
from headroles.studies.claims.published.pande_2021 import nearness, share_of_several
from headroles.studies.inspection.token_reading import QUANTITIES

RNG = np.random.default_rng


def answers_of(**roles: Any) -> HeadAnswers:
    signs = {
        name.replace("__", ":"): np.asarray(one, dtype=np.int64) for name, one in roles.items()
    }
    shape = next(iter(signs.values())).shape
    p = np.concatenate([np.full(97, 0.001), np.full(3, 0.5)])
    return HeadAnswers(signs, p, shape)


def measured_with(answers: HeadAnswers | None = None, **more: Any) -> Any:
    return SimpleNamespace(
        alpha=0.05,
        options=SimpleNamespace(seed=0, alpha=0.05, probability_margin=0.05),
        answers=answers,
        interval=lambda statistic, whole: (np.nan, np.nan),
        halves=Halves(np.arange(240) % 2 == 1, None, (2, 3), 0.05),
        **more,
    )


def outcome(claim: str, measured: Any) -> tuple[float, float, float]:
    found = CLAIMS[claim].test(measured)
    return found.effect, found.shown.single[0], found.contradicted.single[0]


def test_syntactic_heads_that_are_local() -> None:
    local = np.tile([1, 1, 1, -1, -1, -1, -1, -1], (4, 1))
    effect, shown, contradicted = outcome(
        "local-and-syntactic", measured_with(answers_of(local=local, syntactic=local))
    )
    assert (effect, contradicted) == (1, 1)
    assert shown < 0.001
    effect, shown, contradicted = outcome(
        "local-and-syntactic", measured_with(answers_of(local=local, syntactic=-local))
    )
    assert effect == 0
    assert contradicted < 0.001 < shown
    with pytest.raises(NotTestable, match="no head was shown to be syntactic"):
        outcome("local-and-syntactic", measured_with(answers_of(local=local, syntactic=-local * 0)))


def test_several_roles_in_the_middle() -> None:
    assert nearness(4).tolist() == [-1.5, -0.5, -0.5, -1.5]
    middle_heads = np.array([[-1, -1], [-1, 1], [1, 1], [1, 1], [-1, 1], [-1, -1]])
    answers = answers_of(local=middle_heads, delimiter=middle_heads)
    assert share_of_several(answers).tolist() == [0, 0.5, 1, 1, 0.5, 0]
    effect, shown, _ = outcome("several-roles-middle", measured_with(answers))
    assert effect == pytest.approx(1)
    assert shown == pytest.approx(8 / 720)


@pytest.mark.parametrize(
    ("claim", "role", "sign"),
    [
        ("separator-heads-late", "delimiter__sep", 1),
        ("classifier-heads-early", "delimiter__cls", -1),
    ],
)
def test_early_and_late_heads(claim: str, role: str, sign: int) -> None:
    late = np.where(np.arange(6)[:, None] > np.arange(6), 1, -1)
    _, shown, contradicted = outcome(claim, measured_with(answers_of(**{role: late})))
    assert (shown if sign > 0 else contradicted) == pytest.approx(1 / 720)
    with pytest.raises(NotTestable, match="no head was shown"):
        outcome(claim, measured_with(answers_of(**{role: -np.ones((6, 6))})))
    with pytest.raises(NotTestable, match="no example has a score"):
        outcome(claim, measured_with(answers_of(local=late)))


def test_undecided_tests_are_counted() -> None:
    few, many = answers_of(local=[[1]]), answers_of(local=[[1]])
    object.__setattr__(many, "p_above", np.full(100, 0.5))
    scored = SimpleNamespace(without_groups=[few] * 9 + [many])
    found = CLAIMS["undecided-few"].test(measured_with(few, scored=scored))
    assert found.effect == pytest.approx(0.03)


def hits(share: float, seed: int = 0) -> np.ndarray:
    values = np.full((240, 6), 0.1)
    values[:, 2] = np.minimum(1, share + RNG(seed).normal(0, 0.02, 240))
    return values


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [("positional-heads", 0.98, 0.8), ("rare-word-head", 0.6, 0.4)],
)
def test_there_is_a_head_or_there_is_none(claim: str, good: float, bad: float) -> None:
    effect, shown, _ = outcome(claim, measured_with(hits_of=lambda role: hits(good)))
    assert effect == pytest.approx(good, abs=0.01)
    assert shown < 0.05
    _, shown, contradicted = outcome(claim, measured_with(hits_of=lambda role: hits(bad)))
    assert contradicted < 0.05 < shown


def test_positional_heads_are_confident() -> None:
    made = measured_with(
        hits_of=lambda role: hits(0.7 if role == "confidence" else 0.97),
    )
    effect, _, contradicted = outcome("positional-confident", made)
    assert effect == pytest.approx(0.7, abs=0.01)
    assert contradicted < 0.001
    with pytest.raises(NotTestable, match="no head has its first choice"):
        outcome("positional-confident", measured_with(hits_of=lambda role: hits(0.5)))


def test_single_heads_need_all_three_relations() -> None:
    made = measured_with(
        hits_of=None,
        of_relations=lambda names, read: {
            name: hits(0.5 if name == "obj" else 0.9) for name, *_ in names
        },
    )
    found = CLAIMS["single-heads"].test(made)
    assert found.note.startswith("smallest of det, obj, nmod:poss: obj")
    assert found.contradicted.single[0] < 0.001


def tokens_of(**shares: float) -> Any:
    def share_of(group: str, quantity: str) -> np.ndarray:
        assert (group, quantity) in QUANTITIES
        base = shares.get(group, 0.0)
        return base + RNG(5).normal(0, 0.01, (60, 12))

    return measured_with(share_of_tokens=share_of, tokens=(None, None))


@pytest.mark.parametrize(
    ("claim", "sign"), [("special-tokens-little", -0.1), ("frequent-words-little", -0.3)]
)
def test_what_tokens_get(claim: str, sign: float) -> None:
    groups = ("classifier", "separators", "punctuation", "other")
    _, shown, contradicted = outcome(claim, tokens_of(**dict.fromkeys(groups, sign)))
    assert shown < 0.001 < contradicted
    _, shown, contradicted = outcome(claim, tokens_of(**dict.fromkeys(groups, -sign)))
    assert contradicted < 0.001 < shown


def test_separators_after_fine_tuning() -> None:
    base = RNG(8).normal(3, 1, (240, 6))
    documents = np.repeat(np.arange(80), 3)

    def scores_of(values: np.ndarray) -> Any:
        return SimpleNamespace(
            scores=SimpleNamespace(column=lambda role: values), clusters=documents
        )

    for sign, side in ((-1, 1), (1, 2)):
        made = measured_with(
            answers_of(delimiter__sep=[[1, 1, -1], [-1, -1, -1]]),
            scored=scores_of(base),
            later=SimpleNamespace(scored=scores_of(base + sign * RNG(9).exponential(1, (240, 6)))),
        )
        found = outcome("separators-spread", made)
        assert found[0] == (sign < 0)
        assert found[side] < 0.001


def test_separators_in_the_middle_layers() -> None:
    assert middle(12).tolist() == [5, 6, 7, 8, 9]
    assert middle(6).tolist() == [3, 4]
    assert outcome("separators-middle", tokens_of(separators=0.6))[1] < 0.001
    assert outcome("separators-middle", tokens_of(separators=0.3))[2] < 0.001


def test_heads_of_one_layer_alike() -> None:
    layers = np.repeat(np.arange(3), 4)
    near = np.where(layers[:, None] == layers, 0.1, 0.4)[None].repeat(5, axis=0)
    near = near + RNG(1).normal(0, 0.01, near.shape)
    effect, shown, _ = outcome("layers-alike", measured_with(divergences=(near, (3, 4))))
    assert effect == pytest.approx(0.3, abs=0.02)
    assert shown < 0.01
    far = measured_with(divergences=(0.5 - near, (3, 4)))
    assert outcome("layers-alike", far)[2] < 0.01


def test_shared_dimensions_of_queries_and_keys() -> None:
    rng = RNG(2)
    query, key = rng.normal(size=(2, 4, 3, 24))
    shared = np.repeat(query[:1], 4, axis=0), np.repeat(key[:1], 4, axis=0)
    dimensions = shared_dimensions([shared, shared], 0)
    strength = np.linalg.svd(np.einsum("hsd,hse->de", *shared), compute_uv=False)
    assert dimensions[0, 0] == dimensions_for(strength, 0.99) / 12
    _, shown, contradicted = outcome("low-rank-together", measured_with(dimensions=dimensions))
    assert shown == pytest.approx(1 / 60**2, rel=0.8)  # each of two layers among 60
    assert contradicted == 1
    dimensions = shared_dimensions([(query, key)], 0)
    _, shown, _ = outcome("low-rank-together", measured_with(dimensions=dimensions))
    assert shown > 0.05


def test_layers_with_the_same_weights_count_once() -> None:
    maps = RNG(0).normal(size=(4, 4, 3, 24))
    one, other = (maps[0], maps[1]), (maps[2], maps[3])
    assert distinct([one, one, one, other]) == [one, other]


def task_of(alone: float = 0.0, one: float = 0.0, pruned: float = 0.0) -> Any:
    """A task of three layers whose right answers lose half of their probability in the middle."""
    n = 600
    noise = RNG(3).normal(0, 0.01, n)
    heads = [(layer, head) for layer in range(3) for head in range(4)]

    def without(sets: Any) -> np.ndarray:
        lowest = [min((layer for layer, _ in own), default=0) for own in sets]
        means = [0.8 - pruned - (0.4 if layer == 1 else 0) for layer in lowest]
        return means + RNG(6).normal(0, 0.01, (n, len(lowest)))

    return SimpleNamespace(
        shape=(3, 4),
        heads=heads,
        first=np.arange(n) % 2 == 0,
        one_by_one=one + RNG(4).normal(0, 0.01, (n, 12)),
        alone={layer: alone + noise[:, None] + np.arange(4) / 10 for layer in range(3)},
        importances=np.tile(np.arange(12.0), (n, 1)),
        least_important=lambda share: heads[:4],
        without=without,
        falls=lambda sets: 0.8 - without(sets),
    )


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        ("many-can-go", {"one": 0.0}, {"one": 0.2}),
        ("one-head-a-layer", {"alone": 0.0}, {"alone": 0.2}),
        ("prunable-share", {"pruned": 0.0}, {"pruned": 0.2}),
    ],
)
def test_falls_within_the_margin(claim: str, good: dict[str, float], bad: dict[str, float]) -> None:
    _, shown, contradicted = outcome(claim, measured_with(tasks=[task_of(**good)]))
    assert shown < 0.001 < contradicted
    _, shown, contradicted = outcome(claim, measured_with(tasks=[task_of(**bad)]))
    assert contradicted < 0.001 < shown


def test_layers_of_a_task() -> None:
    made = measured_with(tasks=[task_of()])
    effect, shown, _ = outcome("middle-layers-matter", made)
    assert effect == pytest.approx(0.4, abs=0.01)
    assert shown < 0.001
    effect, shown, _ = outcome("bottom-as-top", made)
    assert effect == pytest.approx(0, abs=0.01)
    assert shown < 0.001
    made.tasks[0].shape = (2, 4)
    with pytest.raises(NotTestable, match="2 layers have no bottom, middle and top"):
        outcome("middle-layers-matter", made)


def test_two_tasks_agree() -> None:
    one = task_of()
    assert outcome("tasks-agree", measured_with(tasks=[one, one]))[:2] == pytest.approx((1, 1e-4))
    with pytest.raises(NotTestable, match="two tasks"):
        outcome("tasks-agree", measured_with(tasks=[one]))


def test_every_claim_says_where_it_is_from() -> None:
    for name, claim in CLAIMS.items():
        assert name == claim.id
        assert claim.source[-1] not in ". "
        assert claim.statement.endswith(".")
        assert "Contradicted" in claim.rule
        assert "Null" in claim.rule
