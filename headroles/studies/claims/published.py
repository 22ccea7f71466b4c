"""The tests of the published claims, each named as its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.models.heads.remaining import Head
from headroles.scoring.scores import HeadScores
from headroles.studies.claims.finding import (
    DIFFERENCES,
    NOTHING,
    SHARES,
    SHUFFLES,
    Finding,
    NotTestable,
    all_of,
    beyond_draws,
    beyond_shuffles,
    beyond_values,
    correlation,
    mean_beyond,
    mean_of_known,
    some_head,
)
from headroles.studies.claims.measured import N_CONTROLS, RELATIONS, Measured
from headroles.studies.heads import HeadColumns
from headroles.studies.inspection.tokens import (
    CLASSIFIER,
    DIFFERENCE,
    LENGTH,
    OTHER,
    PUNCTUATION,
    SEPARATORS,
    WEIGHTS,
    WITH_FREQUENCY,
)
from headroles.wording import head_name

KINDS = ("local", "syntactic", "delimiter", "block")
BACK, AHEAD = "position:-1", "position:+1"
POSITIONAL, CONFIDENT, RARE, ACCURATE, HALF = 0.9, 0.8, 0.5, 0.75, 0.5
PRUNABLE = 0.4


# Trends over layers: models are the units, so one model is described.


def several_roles_middle(measured: Measured) -> Finding:
    """Correlate a layer's share of heads with several roles with its nearness to the middle."""
    known = {role.partition(":")[0] for role in measured.roles.roles} & set(KINDS)
    return _trend(
        measured,
        lambda one: np.sum([one.has(kind) for kind in known], axis=0) > 1,
        lambda n: -np.abs(np.arange(n) - (n - 1) / 2),
    )


def separator_heads_late(measured: Measured) -> Finding:
    """Correlate a layer's share of separator heads with its number."""
    return _trend(measured, lambda one: one.has("delimiter:sep"), np.arange)


def classifier_heads_early(measured: Measured) -> Finding:
    """Correlate a layer's share of classifier heads with minus its number."""
    return _trend(measured, lambda one: one.has("delimiter:cls"), lambda n: -np.arange(n))


def _trend(
    measured: Measured,
    having: Callable[[Measured], BoolArray],
    places: Callable[[int], IndexArray],
) -> Finding:
    """Describe the correlation of the share of heads that have something with the layer's place."""
    if not having(measured).any():
        raise NotTestable("no head of the model has such roles")
    effect, *control = [
        correlation(having(one).mean(axis=1), places(one.shape[0]))
        for one in (measured, *measured.permuted)
    ]
    return Finding(effect, float(np.mean(control)), measured.shape[0], "layers")


def last_layers_move(measured: Measured) -> Finding:
    """Correlate a layer's number with how far its scores move from one model to the other."""
    pairs = [(measured.few, noisy) for noisy in measured.noisy]
    effect, *control = [
        correlation(moved := movements(before.scores, after.scores), np.arange(len(moved)))
        for before, after in [(measured, measured.later), *pairs]
    ]
    return Finding(effect, float(np.mean(control)), measured.shape[0], "layers")


def movements(before: HeadScores, after: HeadScores) -> FloatArray:
    """Return the movement of scores (layers,), in units of the mean of each role."""
    columns = HeadColumns.of(before)
    moved = np.abs(columns.values(after).astype(np.float64) - columns.values(before))
    shape = (len(moved), len(columns.roles), columns.n_layers, columns.n_heads)
    by_role = mean_of_known(moved.reshape(shape), (0, 3))
    usual = by_role.mean(axis=1, keepdims=True)
    return np.asarray((by_role / np.where(usual > 0, usual, 1)).mean(axis=0))


# First choices of heads.


def positional_heads(measured: Measured) -> Finding:
    """Test whether each direction has a head whose first choice is there in 90 % of tokens."""
    found = {
        name: some_head(measured.hits_of(role), POSITIONAL, measured.halves, alpha=measured.alpha)
        for name, role in (("one back", BACK), ("one ahead", AHEAD))
    }
    return _beyond_permuted(all_of(found), measured, lambda one: _best(one, BACK, AHEAD))


def rare_word_head(measured: Measured) -> Finding:
    """Test whether some head has the rarest word as first choice for half of the words."""
    found = some_head(measured.hits_of("rare"), RARE, measured.halves, alpha=measured.alpha)
    return _beyond_permuted(found, measured, lambda one: _best(one, "rare"))


def _best(measured: Measured, *roles: str) -> float:
    """Return the mean share of the best head of each role, the smallest of all roles."""
    return min(float(np.nanmax(mean_of_known(measured.hits_of(role), 0))) for role in roles)


def _beyond_permuted(
    found: Finding,
    measured: Measured,
    statistic: Callable[[Measured], float],
    both_sides: bool = False,
) -> Finding:
    """Require the effect to be unlike that of models with permuted weights."""
    own, draws = statistic(measured.few), list(map(statistic, measured.permuted))
    return beyond_draws(found, own, draws, both_sides)


def positional_confident(measured: Measured) -> Finding:
    """Test whether every head that hits one place in 90 % of tokens has a confidence above 0.8."""
    halves, confidence = measured.halves, measured.hits_of("confidence")
    hits = [mean_of_known(measured.hits_of(role), 0) for role in (BACK, AHEAD)]
    is_positional = np.nanmax(hits, axis=0) >= POSITIONAL
    if not is_positional.any():
        raise NotTestable("no head has its first choice at one place in 90 % of tokens")
    layers = np.repeat(np.arange(halves.shape[0]), halves.shape[1])
    found = {}
    for head in np.flatnonzero(is_positional):
        own, others = confidence[:, head], (layers == layers[head]) & ~is_positional
        one = mean_beyond(own, CONFIDENT, halves.clusters, alpha=measured.alpha)
        if others.any():
            control = mean_of_known(confidence[:, others], 1)
            one = beyond_values(one, own, control, halves.clusters)
        found[f"head {head_name(divmod(int(head), halves.shape[1]))}"] = one
    return all_of(found)


def single_heads(measured: Measured) -> Finding:
    """Test whether some head finds three quarters of the arcs, for each of the three relations."""
    found = {}
    for names in RELATIONS:
        own, control = (one.hits_of_relation(names) for one in (measured, measured.reordered))
        found[names[0]] = some_head(own, ACCURATE, measured.halves, control, measured.alpha)
    return all_of(found)


# What tokens get.


def separators_middle(measured: Measured) -> Finding:
    """Test whether the share of separators in the weights of these layers is above one half."""

    def share(one: Measured) -> FloatArray:
        shares = one.of_tokens(SEPARATORS, WEIGHTS)
        return np.asarray(shares[:, middle(shares.shape[1])].mean(axis=1))

    return _of_documents(measured, share, HALF, SHARES)


def middle(n_layers: int) -> IndexArray:
    """Return the layers that correspond to layers 6 to 10 of 12, counted from 1."""
    depth = (np.arange(n_layers) + 0.5) / n_layers
    return np.flatnonzero((depth > 5 / 12) & (depth < 10 / 12))


def special_tokens_little(measured: Measured) -> Finding:
    """Test whether the share of these tokens is smaller by norms than by weights."""

    def more(one: Measured) -> FloatArray:
        groups = (CLASSIFIER, SEPARATORS, PUNCTUATION)
        parts = [np.nan_to_num(one.of_tokens(group, DIFFERENCE)) for group in groups]
        return np.asarray(np.sum(parts, axis=0).mean(axis=1))

    return _of_documents(measured, more, 0.0, DIFFERENCES).opposite


def frequent_words_little(measured: Measured) -> Finding:
    """Test whether the lengths ||f(x)|| of words fall with their frequency."""
    quantity = f"{LENGTH}{WITH_FREQUENCY}"
    return _of_documents(
        measured, lambda one: mean_of_known(one.of_tokens(OTHER, quantity), 1), 0.0, DIFFERENCES
    ).opposite


def _of_documents(
    measured: Measured,
    values: Callable[[Measured], FloatArray],
    threshold: float,
    bounds: tuple[float, float],
) -> Finding:
    """Test whether the mean of values (examples,) is above a threshold and the control's."""
    own, clusters = values(measured), measured.tokens[1]
    found = mean_beyond(own, threshold, clusters, bounds, measured.alpha)
    return _beyond_permuted(
        found, measured, lambda one: float(mean_of_known(values(one), 0)), bounds == DIFFERENCES
    )


# Fine-tuning.


def separators_spread(measured: Measured) -> Finding:
    """Test whether scores of former separator heads fall in most documents."""
    noisy, few, role = measured.noisy, measured.few, "delimiter:sep"
    heads = measured.has(role).ravel()
    if not heads.any():
        raise NotTestable("the model has no separator heads")

    def falls(before: HeadScores, after: HeadScores) -> FloatArray:
        change = after.column(role).astype(np.float64) - before.column(role)
        values = mean_of_known(change[:, heads], 1)
        if len(set(before.documents)) > 1:
            documents = np.asarray(before.documents)
            values = np.array(
                [mean_of_known(values[documents == one], 0) for one in set(documents)]
            )
        return np.where(np.isnan(values), np.nan, HALF - np.sign(values) / 2)

    of_whole = falls(measured.scores, measured.later.scores)
    found = mean_beyond(of_whole, HALF, None, alpha=measured.alpha)
    own = mean_of_known(falls(few.scores, measured.later.few.scores), 0)
    draws = [float(mean_of_known(falls(few.scores, one.scores), 0)) for one in noisy]
    return replace(beyond_draws(found, float(own), draws, both_sides=True), unit="documents")


# Tasks.


def prunable_share(measured: Measured) -> Finding:
    """Test whether probabilities fall by more than the margin without the least important heads."""
    task, seed = measured.tasks[0], measured.options.seed
    pruned = task.least_important(PRUNABLE)
    draws = [np.random.default_rng([seed, draw]) for draw in range(N_CONTROLS)]
    found = task.falls([pruned, *(as_many(task.heads, pruned, rng) for rng in draws)])
    falls, *control = found[~task.first].T
    margin = measured.options.probability_margin
    beyond = mean_beyond(falls, margin, None, DIFFERENCES, measured.alpha)
    return replace(
        beyond, control=float(np.mean(control)), shown=NOTHING, contradicted=beyond.shown
    )


def as_many(heads: Sequence[Head], chosen: Sequence[Head], rng: np.random.Generator) -> list[Head]:
    """Draw as many heads of each layer as there are among the chosen."""
    drawn: list[Head] = []
    for layer, n in sorted(Counter(layer for layer, _ in chosen).items()):
        own = [head for head in heads if head[0] == layer]
        drawn += [own[place] for place in rng.permutation(len(own))[:n]]
    return drawn


def tasks_agree(measured: Measured) -> Finding:
    """Test whether the falls without each head correlate between two tasks, within layers."""
    if len(measured.tasks) < 2:
        raise NotTestable("pass two tasks for one model with `task`")
    first, second = (task.one_by_one for task in measured.tasks[:2])
    one, other = (task.one_by_one for task in measured.untrained_tasks[:2])
    rng = np.random.default_rng(measured.options.seed)
    orders = rng.random((SHUFFLES, *first.shape)).argsort(axis=2)
    own, control = _agreement(first, second, orders), _agreement(one, other, orders)
    return beyond_shuffles(*own, *control, first.size)


def _agreement(one: FloatArray, other: FloatArray, orders: IndexArray) -> tuple[float, FloatArray]:
    """Return the correlation of values (layers, heads), and those of orders of heads (B,)."""
    length = np.sqrt((one**2).sum() * (other**2).sum())
    if not length:
        raise NotTestable("in one task or both, removing a head changes no probability")
    shuffled = np.take_along_axis(other[None], orders, axis=2)
    drawn = np.einsum("lh,dlh->d", one, shuffled) / length
    return float((one * other).sum() / length), drawn
