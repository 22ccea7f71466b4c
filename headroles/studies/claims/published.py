"""The tests of the published claims, by the ids of their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.models.heads.remaining import Head
from headroles.models.options import CROSS, NORMS, WEIGHTS
from headroles.scoring.scores import HeadScores
from headroles.studies.alignment.evidence import WHOLE_LAYER, AlignedPairs
from headroles.studies.claims import finding
from headroles.studies.claims.finding import DIFFERENCES, Finding, NotTestable, mean_of_known
from headroles.studies.claims.measured import N_CONTROLS, RELATIONS, ROWS, Measured
from headroles.studies.heads import HeadColumns
from headroles.studies.inspection import tokens
from headroles.testing.evidence import RANK
from headroles.testing.hypotheses import Hypotheses
from headroles.wording import head_name

INPUT, OUTPUT = ROWS
KINDS = ("local", "syntactic", "delimiter", "block")
POSITIONS = {"one back": "position:-1", "one ahead": "position:+1"}
POSITIONAL, CONFIDENT, RARE, ACCURATE, HALF, PRUNABLE = 0.9, 0.8, 0.5, 0.75, 0.5, 0.4
NEEDED = 0.6
"""Share of the heads of a kind without which translations were catastrophic (Michel et al.)."""


# Trends over layers: models are the units, so one model is described.


def trend(
    profiles: Sequence[FloatArray], place: Callable[[int], IndexArray] = np.arange
) -> Finding:
    """Describe how profiles (layers,) correlate with the place: the model's, then its controls'."""
    n_layers = len(profiles[0])
    is_flat = [min(np.ptp(profile), n_layers - 1) < 1e-12 for profile in profiles]
    effect, *control = [
        0.0 if flat else float(np.corrcoef(profile, place(n_layers))[0, 1])
        for profile, flat in zip(profiles, is_flat, strict=True)
    ]
    return Finding(effect, float(np.mean(control)), n_layers, "layers")


def shares(measured: Measured, having: Callable[[Measured], BoolArray]) -> list[FloatArray]:
    """Return each layer's share of heads that have something, of the model and its controls."""
    if not having(measured).any():
        raise NotTestable("no head of the model has such roles")
    return [having(model).mean(axis=1) for model in (measured, *measured.permuted)]


def several_roles_middle(measured: Measured) -> Finding:
    """Correlate with the nearness to the middle."""
    kinds = {role.partition(":")[0] for role in measured.roles.roles} & set(KINDS)
    several = shares(measured, lambda it: np.sum([it.has(kind) for kind in kinds], axis=0) > 1)
    return trend(several, lambda n: -np.abs(np.arange(n) - (n - 1) / 2))


def last_layers_move(measured: Measured) -> Finding:
    """Correlate movements with the layer's number."""
    noise = [movements(measured.few.scores, noisy.scores) for noisy in measured.noisy]
    return trend([movements(measured.scores, measured.later.scores), *noise])


def movements(before: HeadScores, after: HeadScores) -> FloatArray:
    """Return the movement of scores (layers,), in units of the mean of each role."""
    columns = HeadColumns.from_scores(before)
    moved = np.abs(columns.values(after).astype(np.float64) - columns.values(before))
    shape = (len(moved), len(columns.roles), columns.n_layers, columns.n_heads)
    by_role = mean_of_known(moved.reshape(shape), (0, 3))
    usual = by_role.mean(axis=1, keepdims=True)
    return np.asarray((by_role / np.where(usual > 0, usual, 1)).mean(axis=0))


# First choices of heads.


def first_choices(measured: Measured, share: float, roles: dict[str, str]) -> Finding:
    """Test whether each role is the first choice of some head in more than a share of tokens."""

    def best(model: Measured) -> float:
        means = (mean_of_known(model.hits_of(role), 0) for role in roles.values())
        return min(float(np.nanmax(mean)) for mean in means)

    halves, alpha = measured.halves, measured.alpha
    findings = {
        name: finding.some_head(measured.hits_of(role), share, halves, alpha=alpha)
        for name, role in roles.items()
    }
    whole = finding.all_of(findings) if len(roles) > 1 else findings.popitem()[1]
    return beyond_copies(whole, measured, best)


def beyond_copies(
    result: Finding, measured: Measured, of: Callable[[Measured], float], both_sides: bool = False
) -> Finding:
    """Require the effect to be unlike that of models with permuted weights, or shuffled heads.

    The control is the mean of those that are nearer to the effect.
    """
    effect = of(measured.few)
    of_kinds = [
        list(map(of, copies)) for copies in (measured.permuted, measured.shuffled) if copies
    ]
    for draws in of_kinds:
        result = finding.beyond_draws(result, effect, draws, both_sides)
    nearest = min(map(np.mean, of_kinds), key=lambda control: abs(effect - control))
    return replace(result, control=float(nearest))


def positional_confident(measured: Measured) -> Finding:
    """Test whether the confidence of every positional head is above the threshold."""
    halves, confidence = measured.halves, measured.hits_of("confidence")
    hits = [mean_of_known(measured.hits_of(role), 0) for role in POSITIONS.values()]
    is_positional = np.nanmax(hits, axis=0) >= POSITIONAL
    if not is_positional.any():
        raise NotTestable("no head has its first choice at one place in 90 % of tokens")
    layers = np.repeat(np.arange(halves.shape[0]), halves.shape[1])
    findings = {}
    for head in np.flatnonzero(is_positional):
        confident, neighbours = confidence[:, head], (layers == layers[head]) & ~is_positional
        of_head = finding.mean_beyond(confident, CONFIDENT, halves.clusters, alpha=measured.alpha)
        if neighbours.any():
            control = mean_of_known(confidence[:, neighbours], 1)
            of_head = finding.beyond_values(of_head, confident, control, halves.clusters)
        findings[f"head {head_name(divmod(int(head), halves.shape[1]))}"] = of_head
    return finding.all_of(findings)


def single_heads(measured: Measured) -> Finding:
    """Test whether some head finds the arcs of each relation."""
    findings = {}
    for names in RELATIONS:
        hits, control = (model.hits_of_relation(names) for model in (measured, measured.reordered))
        test = (hits, ACCURATE, measured.halves, control, measured.alpha)
        findings[names[0]] = finding.some_head(*test)
    return finding.all_of(findings)


# What tokens get.


def of_documents(
    measured: Measured,
    values: Callable[[Measured], FloatArray],
    threshold: float = 0.0,
    bounds: tuple[float, float] = DIFFERENCES,
) -> Finding:
    """Test whether the mean of values (examples,) is above a threshold and the control's."""
    of_model = finding.mean_beyond(
        values(measured), threshold, measured.tokens[1], bounds, measured.alpha
    )
    return beyond_copies(
        of_model,
        measured,
        lambda model: float(mean_of_known(values(model), 0)),
        bounds == DIFFERENCES,
    )


def to_separators(measured: Measured) -> FloatArray:
    """Return the share of separators in the weights of middle layers."""
    weights = measured.of_tokens(tokens.SEPARATORS, tokens.WEIGHTS)
    return np.asarray(weights[:, middle(weights.shape[1])].mean(axis=1))


def middle(n_layers: int) -> IndexArray:
    """Return the layers that correspond to layers 6 to 10 of 12, counted from 1."""
    depth = (np.arange(n_layers) + 0.5) / n_layers
    return np.flatnonzero((depth > 5 / 12) & (depth < 10 / 12))


def more_by_norms(measured: Measured) -> FloatArray:
    """Return how much more special tokens and punctuation get by norms than by weights."""
    groups = (tokens.CLASSIFIER, tokens.SEPARATORS, tokens.PUNCTUATION)
    parts = [np.nan_to_num(measured.of_tokens(group, tokens.DIFFERENCE)) for group in groups]
    return np.asarray(np.sum(parts, axis=0).mean(axis=1))


def with_frequency(measured: Measured) -> FloatArray:
    """Return the correlations of the lengths ||f(x)|| of words with their frequency."""
    quantity = f"{tokens.LENGTH}{tokens.WITH_FREQUENCY}"
    return mean_of_known(measured.of_tokens(tokens.OTHER, quantity), 1)


def separators_spread(measured: Measured) -> Finding:
    """Test whether scores of former separator heads fall in most documents."""
    noisy, few, role = measured.noisy, measured.few, "delimiter:sep"
    heads = measured.has(role).ravel()
    if not heads.any():
        raise NotTestable("the model has no separator heads")

    def falls(before: HeadScores, after: HeadScores) -> FloatArray:
        change = after.column(role).astype(np.float64) - before.column(role)
        values = pd.Series(mean_of_known(change[:, heads], 1))
        if len(set(before.documents)) > 1:
            values = values.groupby(list(before.documents), sort=False).mean()
        return np.where(np.isnan(values), np.nan, HALF - np.sign(values) / 2)

    of_whole = falls(measured.scores, measured.later.scores)
    of_model = finding.mean_beyond(of_whole, HALF, None, alpha=measured.alpha)
    effect, *draws = [
        float(mean_of_known(falls(few.scores, model.scores), 0))
        for model in (measured.later.few, *noisy)
    ]
    return replace(finding.beyond_draws(of_model, effect, draws, both_sides=True), unit="documents")


# Tasks.


def prunable_share(measured: Measured) -> Finding:
    """Test whether probabilities fall by more than the margin without the least important heads."""
    task, seed = measured.tasks[0], measured.options.seed
    pruned = task.least_important(PRUNABLE)
    draws = [np.random.default_rng([seed, draw]) for draw in range(N_CONTROLS)]
    every = task.falls([pruned, *(as_many(task.heads, pruned, rng) for rng in draws)])
    falls, *control = every[~task.first].T
    margin = measured.options.probability_margin
    beyond = finding.mean_beyond(falls, margin, None, DIFFERENCES, measured.alpha)
    return replace(beyond.opposite, control=float(np.mean(control)), shown=finding.NOTHING)


def as_many(heads: Sequence[Head], chosen: Sequence[Head], rng: np.random.Generator) -> list[Head]:
    """Draw as many heads of each layer as there are among the chosen."""
    drawn: list[Head] = []
    for layer, n in sorted(Counter(layer for layer, _ in chosen).items()):
        in_layer = [head for head in heads if head[0] == layer]
        drawn += [in_layer[place] for place in rng.permutation(len(in_layer))[:n]]
    return drawn


def tasks_agree(measured: Measured) -> Finding:
    """Test whether the falls without each head correlate between two tasks, within layers."""
    if len(measured.tasks) < 2:
        raise NotTestable("pass two tasks for one model with `task`")
    tasks = [task.one_by_one for task in (*measured.tasks[:2], *measured.untrained_tasks[:2])]
    rng = np.random.default_rng(measured.options.seed)
    orders = rng.random((finding.SHUFFLES, *tasks[0].shape)).argsort(axis=2)
    # The shuffles of both are the same: the differences of their correlations are those under H0.
    (effect, drawn), (control, control_draws) = (
        agreement(tasks[k], tasks[k + 1], orders) for k in (0, 2)
    )
    tests = ((effect, drawn), (effect - control, drawn - control_draws))
    (more, less), (beyond, _) = (
        finding.two_sides(Hypotheses.from_draws(observed, draws[:, None], size=1.0), RANK)
        for observed, draws in tests
    )
    both = finding.at_least([more, beyond], 2)
    return Finding(effect, control, tasks[0].size, "heads", both, less)


def agreement(first: FloatArray, other: FloatArray, orders: IndexArray) -> tuple[float, FloatArray]:
    """Return the correlation of values (layers, heads), and those of orders of heads (B,)."""
    length = np.sqrt((first**2).sum() * (other**2).sum())
    if not length:
        raise NotTestable("in one task or both, removing a head changes no probability")
    shuffled = np.take_along_axis(other[None], orders, axis=2)
    drawn = np.einsum("lh,dlh->d", first, shuffled) / length
    return float((first * other).sum() / length), drawn


# Words that translate one another. One model is described.


def norms_align_layers(measured: Measured) -> Finding:
    """Return how many errors norms save of the best layer, beside those of the best head."""
    pairs = measured.aligned(INPUT)
    of_layers, of_heads = (
        pairs.unseen_error(WEIGHTS, whole) - pairs.unseen_error(NORMS, whole)
        for whole in (True, False)
    )
    return Finding(of_layers, of_heads, len(pairs.errors.of), "pairs")


def input_aligns(measured: Measured) -> Finding:
    """Return how many errors the step that reads a word saves, beside those of the diagonal."""
    written, read = (measured.aligned(rows) for rows in (OUTPUT, INPUT))
    effect = written.unseen_error(WEIGHTS) - read.unseen_error(WEIGHTS)
    of_diagonal = float(written.diagonal.rates[0] - read.diagonal.rates[0])
    return Finding(effect, of_diagonal, len(read.errors.of), "pairs")


def penultimate_aligns(measured: Measured) -> Finding:
    """Return how many errors the last layer but one has less than others, by both rows."""
    effect, control = (_before_last(measured.aligned(rows)) for rows in (OUTPUT, INPUT))
    return Finding(effect, control, len(measured.aligned(OUTPUT).errors.of), "pairs")


def special_tokens_across(measured: Measured) -> Finding:
    """Return the share of special tokens of the source by weights, less that by norms."""
    effect = _special_by_weights(measured)
    control = float(np.mean([_special_by_weights(copy) for copy in measured.permuted_across]))
    return Finding(effect, control, len(measured.across), "pairs")


def _special_by_weights(measured: Measured) -> float:
    """Return the mean over pairs and layers; a source without such a token gives it nothing."""
    groups = (tokens.CLASSIFIER, tokens.SEPARATORS)
    places = [tokens.QUANTITIES.index((group, tokens.DIFFERENCE)) for group in groups]
    return float(-np.nan_to_num(measured.across[..., places]).sum(axis=-1).mean())


def cross_heads_needed(measured: Measured) -> Finding:
    """Compare the loss without cross heads with that without heads of the other kinds."""
    task, seed = measured.translating, measured.options.seed
    pruned = task.least_important(NEEDED)
    sets = list(pruned.values())
    for draw in range(N_CONTROLS):
        rng = np.random.default_rng([seed, draw])
        sets += [as_many(task.heads[kind], chosen, rng) for kind, chosen in pruned.items()]
    by_draw = task.rises(sets).reshape(-1, len(pruned))
    without_cross = [place for place, kind in enumerate(pruned) if kind != CROSS]
    effect, *control = by_draw[:, list(pruned).index(CROSS)] - by_draw[:, without_cross].max(axis=1)
    return Finding(float(effect), float(np.mean(control)), int((~task.first).sum()), "examples")


def _before_last(pairs: AlignedPairs) -> float:
    """Return the mean error rate of other layers less that of the last layer but one."""
    is_layer = (pairs.labels["measure"] == WEIGHTS) & (pairs.labels["head"] == WHOLE_LAYER)
    rates = pairs.errors.rates[is_layer.to_numpy()]
    if len(rates) < 2:
        raise NotTestable("the model has one layer")
    return float(np.delete(rates, -2).mean() - rates[-2])


TEST_OF_CLAIM: dict[str, Callable[[Measured], Finding]] = {
    "several-roles-middle": several_roles_middle,
    "separator-heads-late": lambda it: trend(shares(it, lambda model: model.has("delimiter:sep"))),
    "classifier-heads-early": lambda it: trend(
        shares(it, lambda model: model.has("delimiter:cls")), lambda n: -np.arange(n)
    ),
    "positional-heads": lambda it: first_choices(it, POSITIONAL, POSITIONS),
    "positional-confident": positional_confident,
    "rare-word-head": lambda it: first_choices(it, RARE, {"": "rare"}),
    "single-heads": single_heads,
    "separators-middle": lambda it: of_documents(it, to_separators, HALF, finding.SHARES),
    "special-tokens-little": lambda it: of_documents(it, more_by_norms).opposite,
    "frequent-words-little": lambda it: of_documents(it, with_frequency).opposite,
    "norms-align-layers": norms_align_layers,
    "input-aligns": input_aligns,
    "penultimate-aligns": penultimate_aligns,
    "special-tokens-across": special_tokens_across,
    "cross-heads-needed": cross_heads_needed,
    "last-layers-move": last_layers_move,
    "separators-spread": separators_spread,
    "prunable-share": prunable_share,
    "tasks-agree": tasks_agree,
}
