"""Claims on hand-made measurements: each is shown, contradicted or described as it must be.

Before them the tests that they are made of, against other libraries and tables of known truth.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headroles.inference.betting import STAKES
from headroles.studies.claims.claims import CLAIMS
from headroles.studies.claims.finding import (
    Finding,
    Halves,
    NotTestable,
    all_of,
    beyond_draws,
    beyond_values,
    mean_beyond,
    some_head,
)
from headroles.studies.claims.published import as_many, middle
from headroles.studies.inspection.tokens import QUANTITIES

RNG = np.random.default_rng
ALPHA = 0.05


def p_of(found: Finding) -> tuple[float, float]:
    return float(found.shown.single[0]), float(found.contradicted.single[0])


def test_means_are_tested_by_betting() -> None:
    rng = RNG(5)
    values, units = rng.beta(6, 3, 90), np.repeat(np.arange(30), 3)
    found = mean_beyond(values, 0.5, units)
    of_documents = values.reshape(30, 3).mean(axis=1)
    bets = [np.prod(1 + stake * (of_documents - 0.5) / 0.5) for stake in STAKES]
    assert p_of(found) == (pytest.approx(1 / np.mean(bets)), 1)
    assert (found.n, found.unit) == (30, "documents")
    assert found.effect == pytest.approx(of_documents.mean())
    for limit, side in ((found.ci_low, 1), (found.ci_high, -1)):
        reach = limit if side > 0 else 1 - limit
        bets = [np.prod(1 + side * stake * (of_documents - limit) / reach) for stake in STAKES]
        assert 1 / np.mean(bets) == pytest.approx(ALPHA / 2, rel=0.05)
    with pytest.raises(NotTestable, match="no example has a value"):
        mean_beyond([np.nan], 0.5, None)


def test_values_must_exceed_those_of_the_control() -> None:
    rng = RNG(1)
    values = np.clip(rng.normal(0.9, 0.05, 200), 0, 1)
    found = mean_beyond(values, 0.5, None)
    low, same = (
        beyond_values(found, values, control, None) for control in (values - 0.4, values[::-1])
    )
    assert p_of(low)[0] < 0.001
    assert low.control == pytest.approx(values.mean() - 0.4)
    assert p_of(found)[0] < ALPHA < p_of(same)[0]


def test_an_effect_is_compared_with_one_more_control_model() -> None:
    draws = [0.1, 0.3, 0.2, 0.25, 0.15]
    found = mean_beyond(RNG(2).beta(9, 1, 200), 0.5, None)
    statistic = (0.5 - np.mean(draws)) / (np.std(draws, ddof=1) * np.sqrt(6 / 5))
    far = beyond_draws(found, 0.5, draws)
    assert p_of(far) == (pytest.approx(stats.t.sf(statistic, 4)), 1)
    assert far.control == pytest.approx(0.2)
    assert p_of(found)[0] < ALPHA < p_of(beyond_draws(found, 0.22, draws))[0]
    against = beyond_draws(found.opposite, 0.22, draws, both_sides=True)
    assert p_of(against) == (1, pytest.approx(stats.t.cdf(0.02 / 0.0866, 4), abs=0.01))


def test_a_head_is_chosen_on_one_half_and_tested_on_the_other() -> None:
    rng = RNG(2)
    second = np.arange(240) % 2 == 1
    values = rng.uniform(0, 0.3, (240, 6))
    values[:, 4] += 0.7
    values[~second, 1] += 0.7
    values[~second, 1] = 1  # the best of the first half is none of the second
    found = some_head(values, 0.5, Halves(second, None, (3, 2)))
    assert found.note == "head 0-1"
    assert p_of(found) == (1, 1)  # head 2-0 is above
    none = some_head(values[:, [0, 2, 3]], 0.5, Halves(second, None, (3, 1)))
    assert p_of(none)[1] < 1e-6
    good = some_head(values[:, [4]], 0.5, Halves(second, None, (1, 1)), values[:, [0]])
    assert p_of(good)[0] < 1e-6
    same = some_head(values[:, [4]], 0.5, Halves(second, None, (1, 1)), values[:, [4]])
    assert p_of(same)[0] > ALPHA
    values[second] = np.nan
    with pytest.raises(NotTestable, match="one half of the documents"):
        some_head(values, 0.5, Halves(second, None, (3, 2)))


def test_all_of_several_is_the_largest_p_value_and_any_of_them_bonferroni() -> None:
    values = RNG(3).beta(5, [[5], [4]], (2, 40))
    parts = [mean_beyond(one, 0.5, None) for one in values]
    found = all_of({"first": parts[0], "second": parts[1]})
    shown, contradicted = zip(*map(p_of, parts), strict=True)
    assert p_of(found) == (max(shown), pytest.approx(min(1, 2 * min(contradicted))))
    assert (found.effect, found.note) == (parts[0].effect, "smallest of first, second: first")


def made(permuted: list[Any] | None = None, **parts: Any) -> Any:
    options = SimpleNamespace(seed=0, alpha=ALPHA, probability_margin=0.05)
    one = SimpleNamespace(alpha=ALPHA, options=options, **parts)
    one.few, one.permuted, one.shuffled = one, permuted or [], []
    return one


def find(claim: str, measured: Any) -> tuple[float, float, float]:
    found = CLAIMS[claim].test(measured)  # type: ignore[misc]
    return found.effect, found.shown.single[0], found.contradicted.single[0]


LATE = np.arange(6)[:, None] > np.arange(6)


def having(**roles: Any) -> Any:
    return made(
        has=lambda role: np.asarray(roles.get(role.replace(":", "_"), np.zeros((6, 6), bool))),
        roles=SimpleNamespace(roles=tuple(roles)),
        shape=(6, 6),
    )


@pytest.mark.parametrize(
    ("claim", "roles"),
    [
        ("separator-heads-late", {"delimiter_sep": LATE}),
        ("classifier-heads-early", {"delimiter_cls": LATE[::-1]}),
        ("several-roles-middle", {"local": LATE & LATE[::-1], "delimiter": np.ones((6, 6), bool)}),
    ],
)
def test_trends_over_layers_are_described(claim: str, roles: dict[str, Any]) -> None:
    measured = having(**roles)
    measured.permuted = [having(**{name: one[::-1] for name, one in roles.items()}), having()]
    found = CLAIMS[claim].find(measured)
    assert isinstance(found, Finding)
    assert found.effect > 0.8
    assert np.isnan(p_of(found)).all()
    with pytest.raises(NotTestable, match="no head of the model"):
        find(claim, having(**{name: one & False for name, one in roles.items()}))


def hits(share: float, seed: int = 0) -> Any:
    values = np.full((240, 6), 0.1)
    values[:, 2] = np.minimum(1, share + RNG(seed).normal(0, 0.02, 240))
    return values


HALVES = Halves(np.arange(240) % 2 == 1, None, (2, 3))


def test_positional_heads_are_confident() -> None:
    def model(confidence: float, others: float = 0.1) -> Any:
        of_role = np.where(np.arange(6) == 2, confidence, others) + RNG(1).normal(0, 0.01, (240, 6))
        return made(
            hits_of=lambda role: of_role if role == "confidence" else hits(0.97), halves=HALVES
        )

    assert find("positional-confident", model(0.9))[1] < 0.001
    assert find("positional-confident", model(0.7))[2] < 0.001
    assert find("positional-confident", model(0.9, 0.9))[1] > ALPHA  # as all heads of the layer
    with pytest.raises(NotTestable, match="no head has its first choice"):
        find("positional-confident", made(hits_of=lambda role: hits(0.5), halves=HALVES))


def test_single_heads_need_all_three_relations_and_the_words() -> None:
    def model(reordered: float, **shares: float) -> Any:
        other = made(hits_of_relation=lambda names: hits(reordered))
        own = made(hits_of_relation=lambda names: hits(shares.get(names[0], 0.9)), halves=HALVES)
        own.reordered = other
        return own

    assert find("single-heads", model(0.3))[1] < 0.001
    assert find("single-heads", model(0.9))[1] > ALPHA
    found = CLAIMS["single-heads"].find(model(0.3, obj=0.5))
    assert isinstance(found, Finding)
    assert found.note == "head 0-2, smallest of det, obj, nmod:poss: obj"
    assert found.contradicted.single[0] < 0.001


def head_of(share: float, *permuted: float) -> Any:
    return made(list(map(head_of, permuted)), hits_of=lambda role: hits(share), halves=HALVES)


def tokens(value: float, *permuted: float) -> Any:
    values = np.full((100, 6, len(QUANTITIES)), value) + RNG(2).normal(0, 0.01, (100, 6, 1))
    return made(
        list(map(tokens, permuted)),
        of_tokens=lambda group, name: values[..., QUANTITIES.index((group, name))],
        tokens=(values, None),
    )


@pytest.mark.parametrize(
    ("claim", "model", "good", "bad", "by_chance"),
    [
        ("positional-heads", head_of, 0.98, 0.8, (0.2, 0.25, 0.3)),
        ("rare-word-head", head_of, 0.6, 0.4, (0.2, 0.25, 0.3)),
        ("separators-middle", tokens, 0.6, 0.3, (0.01, 0.0, -0.01)),
        ("special-tokens-little", tokens, -0.2, 0.2, (0.01, 0.0, -0.01)),
        ("frequent-words-little", tokens, -0.2, 0.2, (0.01, 0.0, -0.01)),
    ],
)
def test_a_model_shows_it_unless_its_copies_do_too(
    claim: str, model: Any, good: float, bad: float, by_chance: tuple[float, ...]
) -> None:
    assert find(claim, model(good, *by_chance))[1] < ALPHA
    assert find(claim, model(bad, *by_chance))[2] < ALPHA
    assert find(claim, model(good, 0.9 * good, good, 0.95 * good))[1] > ALPHA
    shuffled = model(good, *by_chance)
    shuffled.shuffled = model(good, 0.9 * good, good, 0.95 * good).permuted
    found = CLAIMS[claim].find(shuffled)
    assert isinstance(found, Finding)
    assert found.shown.single[0] > ALPHA
    assert abs(found.control - found.effect) < 0.1  # the copies nearer to the model


def test_middle_layers() -> None:
    assert middle(12).tolist() == [5, 6, 7, 8, 9]
    assert middle(6).tolist() == [3, 4]


def scored(values: Any) -> Any:
    documents = tuple(map(str, np.repeat(np.arange(80), 3)))
    scores = SimpleNamespace(column=lambda role: values, documents=documents)
    return made(scores=scores, has=lambda role: np.array([[1, 1, 0], [0, 0, 0]], dtype=bool))


def test_separators_after_fine_tuning() -> None:
    base, noise = RNG(8).normal(3, 1, (240, 6)), RNG(9).exponential(1, (240, 6))
    for sign, side in ((-1, 1), (1, 2)):
        model = scored(base)
        model.later = scored(base + sign * noise)
        model.noisy = [scored(base + 0.1 * RNG(seed).normal(0, 1, (240, 6))) for seed in range(5)]
        found = find("separators-spread", model)
        assert found[0] == (sign < 0)
        assert found[side] < ALPHA
        model.noisy = [scored(base + sign * (noise + one)) for one in (0, 1, 2)]
        assert find("separators-spread", model)[side] > ALPHA  # so does noise


def task_of(falls: float) -> Any:
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    return SimpleNamespace(
        heads=heads,
        first=np.arange(600) % 2 == 0,
        least_important=lambda share: heads[:5],
        falls=lambda sets: falls + RNG(6).normal(0, 0.01, (600, len(list(sets)))),
    )


def test_heads_that_can_go_are_no_equivalence() -> None:
    found = find("prunable-share", made(tasks=[task_of(0.0)]))
    assert found == (pytest.approx(0, abs=0.01), pytest.approx(np.nan, nan_ok=True), 1)
    assert find("prunable-share", made(tasks=[task_of(0.2)]))[2] < 0.001
    drawn = as_many(task_of(0).heads, [(0, 1), (0, 2), (2, 3)], RNG(0))
    assert [layer for layer, _ in drawn] == [0, 0, 2]


def test_two_tasks_agree() -> None:
    falls, untrained = RNG(3).normal(0, 1, (2, 3, 8))
    tasks = [SimpleNamespace(one_by_one=one) for one in (falls, falls)]
    others = [SimpleNamespace(one_by_one=one) for one in (untrained, untrained[:, ::-1])]
    effect, shown, _ = find("tasks-agree", made(tasks=tasks, untrained_tasks=others))
    assert effect == pytest.approx(1)
    assert shown < 0.01
    shown = find("tasks-agree", made(tasks=tasks, untrained_tasks=tasks))[1]
    assert shown > ALPHA  # the untrained classifier agrees as well
    with pytest.raises(NotTestable, match="two tasks"):
        find("tasks-agree", made(tasks=tasks[:1]))


def test_every_claim_says_where_it_is_from_and_has_a_control() -> None:
    for claim in CLAIMS.values():
        assert " et al. 20" in claim.source
        assert "section" in claim.source or "abstract" in claim.source or "results" in claim.source
        assert claim.statement.endswith(".")
        assert claim.control
        assert "Random" in claim.rule
