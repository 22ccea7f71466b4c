"""Errors and power of the tests of claims, at null hypotheses and at effects.

python -m docs.studies.claims_calibration (--kept FOLDER [--after FOLDER] | --task MODEL FILE)
    [--runs 300] [--only CLAIM,...]

--kept is a folder that `docs.studies.claims_over_encoders` saved for one encoder and treebank. With
--after, the folder of a fine-tuned copy, the study simulates claims about fine-tuning; with --task,
a model with its task and its examples, claims about tasks; otherwise all others. Null hypotheses
are made from real tables, and documents or examples drawn anew from them: layers in random order;
roles dealt to other heads of the layer; shares moved, within what shares can be, until the best
head is exactly at the threshold; probabilities of right answers moved until their mean change is at
the margin. The table has for each claim the share of runs in which it is shown and contradicted at
5 %, without correction, and the share in which it is shown if the effect is that in the last
column.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from headroles import make_corpus
from headroles.errors import HeadRolesError
from headroles.scoring.scores import HeadScores
from headroles.studies.claims import CLAIMS, ClaimOptions, Finding, Halves, Measured
from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.dimensions import shared_dimensions
from headroles.studies.claims.means import mean_of_known
from headroles.studies.claims.orders import trend
from headroles.studies.claims.published.budhraja_2020 import thirds
from headroles.studies.claims.published.pande_2021 import (
    FEW,
    SEPARATOR_ROLE,
    movements,
    nearness,
    share_of_several,
)
from headroles.studies.claims.task_probabilities import TaskProbabilities
from headroles.studies.inspection.token_reading import (
    CLASSIFIER,
    DIFFERENCE,
    LENGTH,
    OTHER,
    SEPARATORS,
    WEIGHTS,
    WITH_FREQUENCY,
)

ALPHA, MARGIN = 0.05, 0.05
_HEADS = 12
NULL, OPPOSITE, EFFECT = "null", "opposite", "effect"
"""What is true in a run: the null hypothesis, that of the opposite claim, or the effect."""
Array = np.ndarray
Make = Callable[[np.random.Generator, str], Finding]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--after", type=Path)
    parser.add_argument("--task", nargs=2)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", type=lambda text: text.split(","), default=None)
    given = parser.parse_args()
    print("| claim | runs | shown | contradicted | power | at the effect |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    with patch("headroles.studies.claims.means._betting_interval", return_value=(np.nan, np.nan)):
        for claim, effect, make in simulations(given):
            if given.only is None or claim in given.only:
                print(f"| `{claim}` | {rates(make, given.runs)} | {effect} |", flush=True)


def rates(make: Make, runs: int) -> str:
    """Return shares of runs with p <= 5 %: shown, contradicted, shown at the effect."""
    cells = [str(runs)]
    for truth, side in ((NULL, "shown"), (OPPOSITE, "contradicted"), (EFFECT, "shown")):
        rng = np.random.default_rng(0)
        try:
            found = [getattr(make(rng, truth), side) for _ in range(runs)]
        except HeadRolesError as error:
            return f"{runs} | | | | {error}"
        p = [np.nan_to_num(one.single[0], nan=one.by_bound[0]) for one in found]
        cells.append(f"{np.mean(np.array(p) <= ALPHA):.3f}")
    return " | ".join(cells)


def simulations(given: argparse.Namespace) -> Iterator[tuple[str, str, Make]]:
    """Yield claim, effect and one run."""
    triple = [(["no", "text"], [-1, 0], ["root", "dep"])]
    measured = Measured("", make_corpus(triple), ClaimOptions(), saved=given.kept)
    if given.after:
        before, after = (HeadScores.load(one / "bias") for one in (given.kept, given.after))
        yield from of_changes(before, after)
        return
    if given.task:
        yield from of_task(TaskProbabilities.open(*given.task, ClaimOptions()))
        return
    yield from of_roles(measured)
    yield from of_hits(measured)
    yield from of_tokens(measured)
    yield "layers-alike", "a third of the heads stay in their layers", of_layers(measured)
    yield "low-rank-together", "half of the dimensions shared", of_dimensions
    yield "undecided-few", "0.01 undecided", of_undecided(measured.scored.scores)


def of_roles(measured: Measured) -> Iterator[tuple[str, str, Make]]:
    """Simulate claims about the heads of roles."""
    answers = measured.answers
    layers = np.arange(answers.shape[0], dtype=float)
    said = f"correlation of about 0.9, {len(layers)} layers"
    yield "local-and-syntactic", "71 % of syntactic heads are local", colocation(answers)
    # Roles that no head has take the shares of another: any order of any shares is as likely.
    for claim, roles in (
        ("separator-heads-late", ("delimiter:sep", "delimiter")),
        ("classifier-heads-early", ("delimiter:cls", "local")),
    ):
        role = next(one for one in roles if answers.has(one).any())
        yield claim, said, in_order(answers.share_by_layer(role), layers)
    yield "several-roles-middle", said, in_order(share_of_several(answers), nearness(len(layers)))


def of_hits(measured: Measured) -> Iterator[tuple[str, str, Make]]:
    """Simulate claims about first choices; all parts of a claim but the named role are true."""
    hits = measured.hits
    sides = {way: measured.hits_of(f"position:{way}") for way in ("-1", "+1")}
    yield "positional-heads", "0.95 (one back)", some_heads(hits, sides["-1"], 0.9, 0.95, (0, 1))
    heads = np.flatnonzero(mean_of_known(sides["-1"], 0) >= 0.9)
    confidence = measured.hits_of("confidence")[:, heads[:1]]
    yield "positional-confident", "0.87", confident(hits, confidence)
    rare = measured.hits_of("rare")
    yield "rare-word-head", "0.66", some_heads(hits, rare, 0.5, 0.66, (0, 1))
    for relation, published in (("det", 0.943), ("obj", 0.868), ("nmod:poss", 0.805)):
        values = measured.hits_of(f"syntactic:{relation}:to_governor")
        make = some_heads(hits, values, 0.75, published, (0, 1))
        yield "single-heads", f"{published} ({relation})", make
    for relation, published in (("nsubj", 0.32), ("obj", 0.38), ("amod", 0.1), ("advmod", 0.09)):
        gains = measured.gains_of(f"syntactic:{relation}:to_governor")
        make = some_heads(hits, gains, 0.1, published, (-1, 1))
        yield "syntactic-heads", f"{published} beyond the offset ({relation})", make


def of_tokens(measured: Measured) -> Iterator[tuple[str, str, Make]]:
    """Simulate claims about attention to tokens."""
    documents, read = measured.tokens[1], measured.share_of_tokens
    values = read(SEPARATORS, WEIGHTS).mean(axis=1)
    yield "separators-middle", "0.55", shared(values, documents, 0.5, 0.55, (0, 1))
    values = mean_of_known(read(OTHER, f"{LENGTH}{WITH_FREQUENCY}"), 1)
    make = shared(values, documents, 0.0, -0.1, (-1, 1))
    yield "frequent-words-little", "correlation of -0.1", make
    values = read(CLASSIFIER, DIFFERENCE) + read(SEPARATORS, DIFFERENCE)
    make = shared(values.mean(axis=1), documents, 0.0, -0.05, (-1, 1))
    yield "special-tokens-little", "0.05 less", make


def moved(values: Array, mean: float, target: float, ends: tuple[float, float]) -> Array:
    """Move values between ``ends`` with this mean towards one end, until it is the target."""
    end = ends[0] if mean > target else ends[1]
    return end + (values - end) * (target - end) / (mean - end)


def drawn(rng: np.random.Generator, codes: Array | None, n: int) -> tuple[Array, Array]:
    """Draw documents anew, or examples without documents; return rows and their documents."""
    units = np.arange(n) if codes is None else codes
    chosen = rng.choice(np.unique(units), len(np.unique(units)))
    rows = [np.flatnonzero(units == one) for one in chosen]
    return np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(one) for one in rows])


def document_mean(values: Array, codes: Array | None) -> float:
    """Return the mean over documents of their means, which betting tests."""
    units = np.arange(len(values)) if codes is None else codes
    known = ~np.isnan(values)
    return float(np.mean([values[known & (units == one)].mean() for one in set(units[known])]))


def in_order(shares: Array, places: Array) -> Make:
    """Put the values of layers in random order, or let them rise with the place but for noise."""

    def run(rng: np.random.Generator, truth: str) -> Finding:
        values = rng.permutation(shares)
        if truth == EFFECT:
            values = places + rng.normal(0, 0.5 * places.std(), len(places))
        return trend(values, places, alpha=ALPHA, seed=int(rng.integers(1e9)))

    return run


def colocation(answers: HeadAnswers) -> Make:
    """Choose syntactic heads at random in their layers, or let 71 % of them be local."""
    local, syntactic = answers.has("local"), answers.has("syntactic")

    def run(rng: np.random.Generator, truth: str) -> Finding:
        marked = rng.permuted(syntactic, axis=1)
        if truth == EFFECT:
            n_local = min(rng.binomial(syntactic.sum(), 0.71), local.sum())
            some = [rng.permutation(np.flatnonzero(which)) for which in (local, ~local)]
            chosen = [*some[0][:n_local], *some[1][: syntactic.sum() - n_local]]
            marked = np.isin(np.arange(local.size), chosen).reshape(local.shape)
        signs = {"local": local * 2 - 1, "syntactic": marked * 2 - 1}
        made = HeadAnswers(signs, answers.p_above, answers.shape)
        return tested("local-and-syntactic", rng, answers=made)

    return run


def some_heads(
    hits: HeadScores, values: Array, threshold: float, effect: float, ends: tuple[float, float]
) -> Make:
    """Put the best head at the threshold or at the effect; heads below it stay below it."""
    there = ~np.isnan(values).all(axis=1)
    documents = np.unique(hits.documents, return_inverse=True)[1][there]
    values = values[there]
    best = np.argsort(mean_of_known(values, 0))[-_HEADS:]  # others cannot decide anything
    values = values[:, best]
    n_heads = values.shape[1]
    mean = max(document_mean(one, documents) for one in values.T)
    claim = {0.9: "positional-heads", 0.5: "rare-word-head", 0.75: "single-heads"}.get(threshold)
    targets = {NULL: threshold, OPPOSITE: threshold, EFFECT: effect}
    made = {truth: moved(values, mean, at, ends) for truth, at in targets.items()}

    def run(rng: np.random.Generator, truth: str) -> Finding:
        rows, clusters = drawn(rng, documents, len(values))
        own, perfect = made[truth][rows], np.ones((len(rows), n_heads))
        return tested(
            claim or "syntactic-heads",
            rng,
            halves=Halves(clusters % 2 == 1, clusters, (1, n_heads), ALPHA),
            hits_of=lambda role: perfect if role == "position:+1" else own,
            gains_of=None,
            of_relations=lambda names, read: {"this": own, "other": perfect},
        )

    return run


def confident(hits: HeadScores, confidence: Array) -> Make:
    """Put the confidence of the one positional head at the threshold, or at 0.87."""
    documents = np.unique(hits.documents, return_inverse=True)[1]
    mean = document_mean(confidence[:, 0], documents)

    def run(rng: np.random.Generator, truth: str) -> Finding:
        rows, clusters = drawn(rng, documents, len(confidence))
        own = moved(confidence[rows], mean, 0.87 if truth == EFFECT else 0.8, (0, 1))
        return tested(
            "positional-confident",
            rng,
            halves=Halves(clusters % 2 == 1, clusters, (1, 1), ALPHA),
            hits_of=lambda role: own if role == "confidence" else np.ones_like(own),
        )

    return run


def shared(
    values: Array, documents: Array | None, at: float, effect: float, ends: tuple[float, float]
) -> Make:
    """Put the attention to tokens at the threshold in all layers, or at the effect."""
    mean = document_mean(values, documents)
    claim = {0.55: "separators-middle", -0.1: "frequent-words-little"}.get(effect)

    def run(rng: np.random.Generator, truth: str) -> Finding:
        rows, clusters = drawn(rng, documents, len(values))
        own = moved(values, mean, effect if truth == EFFECT else at, ends)[rows]
        layers = own[:, None].repeat(6, axis=1)
        none = np.zeros_like(layers)
        return tested(
            claim or "special-tokens-little",
            rng,
            share_of_tokens=lambda group, name: layers if group in (SEPARATORS, OTHER) else none,
            tokens=(None, clusters),
        )

    return run


def of_layers(measured: Measured) -> Make:
    """Deal heads to layers at random, or a third of them while the others stay."""
    values, shape = measured.divergences

    def run(rng: np.random.Generator, truth: str) -> Finding:
        order = rng.permutation(values.shape[1])
        if truth == EFFECT:
            order = np.arange(values.shape[1])
            some = rng.permutation(len(order))[: 2 * len(order) // 3]
            order[np.sort(some)] = some
        mixed = values[:, order][:, :, order]
        return tested("layers-alike", rng, divergences=(mixed, shape))

    return run


def of_dimensions(rng: np.random.Generator, truth: str) -> Finding:
    """Make two layers of four small heads in random spaces, or with half of the spaces shared."""
    layers = []
    for _ in range(2):
        query, key = rng.normal(size=(2, 4, 8, 48))
        if truth == EFFECT:
            query[:, :4], key[:, :4] = query[0, :4], key[0, :4]
        layers.append((query, key))
    return tested(
        "low-rank-together", rng, dimensions=shared_dimensions(layers, int(rng.integers(1e9)))
    )


def of_undecided(scores: HeadScores) -> Make:
    """Make tests of which exactly 3 % are undecided on average, or 1 %."""
    return partial(_undecided, scores)


def _undecided(scores: HeadScores, rng: np.random.Generator, truth: str) -> Finding:
    from scipy import optimize, special, stats

    n, tests = len(set(scores.documents)), 900
    spread = stats.norm.ppf(np.linspace(0.001, 0.999, tests))
    undecided = special.ndtri(0.95)

    def excess(scale: float) -> float:
        at = scale * spread
        share = special.ndtr(undecided - at) - special.ndtr(-undecided - at)
        return float(share.mean() - (0.01 if truth == EFFECT else FEW))

    at = optimize.brentq(excess, 1, 1000) * spread / np.sqrt(n)
    values = at + rng.standard_normal((n, tests))

    def answers(chosen: Array) -> HeadAnswers:
        own = values[chosen]
        t = own.mean(0) / own.std(0, ddof=1) * np.sqrt(len(own))
        p = stats.t.sf(t, len(own) - 1)
        return HeadAnswers({}, p, (1, tests))

    groups = [answers(np.arange(n) % 10 != group) for group in range(10)]
    scored = SimpleNamespace(without_groups=groups)
    return tested("undecided-few", rng, answers=answers(np.arange(n)), scored=scored)


def of_changes(before: HeadScores, after: HeadScores) -> Iterator[tuple[str, str, Make]]:
    """Simulate claims about fine-tuning."""
    places = np.arange(before.n_layers, dtype=float)
    far = mean_of_known(movements(before, after), 0)
    yield "last-layers-move", "correlation of about 0.9", in_order(far, places)
    change = mean_of_known(
        after.column(SEPARATOR_ROLE).astype(float) - before.column(SEPARATOR_ROLE), 1
    )
    documents = np.unique(before.documents, return_inverse=True)[1]
    means = np.array([mean_of_known(change[documents == one], 0) for one in set(documents)])

    def run(rng: np.random.Generator, truth: str) -> Finding:
        quantile = np.nanquantile(means, 0.8 if truth == EFFECT else 0.5)
        own = rng.choice(means, len(means))[:, None] - quantile
        sides = [
            SimpleNamespace(column=lambda role, one=one: one) for one in (np.zeros_like(own), own)
        ]
        return tested(
            "separators-spread",
            rng,
            scored=SimpleNamespace(scores=sides[0], clusters=np.arange(len(own))),
            later=SimpleNamespace(scored=SimpleNamespace(scores=sides[1])),
            answers=SimpleNamespace(has=lambda role: np.ones((1, 1), dtype=bool)),
        )

    yield "separators-spread", "in 80 % of the documents", run


def of_task(task: TaskProbabilities) -> Iterator[tuple[str, str, Make]]:
    """Simulate claims about removed heads, drawing the examples of the task anew."""
    n = len(task.first)
    yield "specialised-last", "rank 0.2 higher", ranks(task)
    costs_nothing = f"no head costs anything, {n} examples"
    yield "many-can-go", costs_nothing, lazily(lambda: of_one_by_one(task))
    said = f"a fall of 0 in {(n + 1) // 2} examples"
    alone = lazily(lambda: of_alone(task, next(iter(task.alone.values()))))
    yield "one-head-a-layer", f"{said} (one layer)", alone
    pruned = lazily(lambda: of_pruned(task.falls([task.least_important(0.4)])))
    yield "prunable-share", said, pruned
    parts = cache(lambda: task.without(thirds(task)))
    yield "middle-layers-matter", "10 points more", lazily(lambda: of_middle(parts()))
    yield "bottom-as-top", f"no difference, {n} examples", lazily(lambda: of_ends(parts()))
    yield "tasks-agree", "correlation of 0.56", lazily(lambda: agreement(task))


def lazily(build: Callable[[], Make]) -> Make:
    """Build a simulation when its first run is asked for."""
    built = cache(build)
    return lambda rng, truth: built()(rng, truth)


CHANGES = (-1, 1)


def of_pruned(falls: Array) -> Make:
    """Let probabilities fall by the margin, or not at all."""
    made = {truth: moved(falls, falls.mean(), at, CHANGES) for truth, at in FALLS.items()}

    def run(rng: np.random.Generator, truth: str) -> Finding:
        own = rng.choice(made[truth], len(falls) // 2)
        task = SimpleNamespace(
            first=np.zeros(len(own), dtype=bool),
            least_important=lambda share: [],
            falls=lambda removed: own,
        )
        return tested("prunable-share", rng, tasks=[task])

    return run


FALLS = {NULL: MARGIN, OPPOSITE: MARGIN, EFFECT: 0.0}


def of_middle(parts: Array) -> Make:
    """Move probabilities without the middle to those without the ends, or 10 points lower."""
    bottom, middle, top = parts.T
    target = (bottom.mean() + top.mean()) / 2
    lower = {NULL: target, OPPOSITE: target, EFFECT: target - 0.1}
    made = {truth: moved(middle, middle.mean(), at, (0, 1)) for truth, at in lower.items()}

    def run(rng: np.random.Generator, truth: str) -> Finding:
        rows = rng.integers(0, len(middle), len(middle))
        own = np.stack([bottom, made[truth], top], axis=1)[rows]
        return tested("middle-layers-matter", rng, tasks=[without_layers(own)])

    return run


def of_ends(parts: Array) -> Make:
    """Raise probabilities without the top layers by the margin, or not at all."""
    more = parts[:, 2] - parts[:, 0]
    made = {truth: moved(more, more.mean(), at, CHANGES) for truth, at in FALLS.items()}

    def run(rng: np.random.Generator, truth: str) -> Finding:
        own = rng.choice(made[truth], len(more))
        return tested("bottom-as-top", rng, tasks=[without_layers(np.outer(own, [0, 1]))])

    return run


def without_layers(values: Array) -> Any:
    """Make a task with these probabilities (examples, sets of layers)."""
    return SimpleNamespace(shape=(3, 4), heads=[], without=lambda sets: values)


def of_one_by_one(task: TaskProbabilities) -> Make:
    """Let one head more than allowed cost the margin exactly, or one fewer cost more."""
    falls = task.one_by_one
    n = falls.shape[1]
    allowed = n - int(np.ceil(0.9 * n))

    def run(rng: np.random.Generator, truth: str) -> Finding:
        means = np.zeros(n)
        chosen = rng.permutation(n)
        if truth == NULL:
            means[chosen[: allowed + 1]] = MARGIN
        elif truth == OPPOSITE:
            means[chosen[:allowed]], means[chosen[allowed]] = 10 * MARGIN, MARGIN
        each = zip(falls.T, falls.mean(axis=0), means, strict=True)
        own = np.transpose([moved(*one, CHANGES) for one in each])
        rows = rng.integers(0, len(own), len(own))
        return tested("many-can-go", rng, tasks=[SimpleNamespace(one_by_one=own[rows])])

    return run


def of_alone(task: TaskProbabilities, alone: Array) -> Make:
    """Let the best head alone of one layer cost the margin, or nothing."""
    least = alone.mean(axis=0).min()
    made = {truth: moved(alone, least, at, CHANGES) for truth, at in FALLS.items()}

    def run(rng: np.random.Generator, truth: str) -> Finding:
        own = rng.choice(made[truth], len(alone))
        task = SimpleNamespace(
            shape=(1, own.shape[1]),
            heads=[(0, head) for head in range(own.shape[1])],
            first=np.arange(len(own)) % 2 == 0,
            alone={0: own},
        )
        return tested("one-head-a-layer", rng, tasks=[task])

    return run


def ranks(task: TaskProbabilities) -> Make:
    """Give a fifth of the heads a function, which importance ignores, or ranks."""
    importance = task.importances.mean(axis=0).reshape(task.shape)

    def run(rng: np.random.Generator, truth: str) -> Finding:
        marked = rng.random(task.shape) < 0.2
        placed = np.argsort(np.argsort(importance.ravel())).reshape(task.shape) / importance.size
        values = placed + 0.2 * marked * (truth == EFFECT)
        made = SimpleNamespace(shape=task.shape, importances=values.reshape(1, -1))
        place = "headroles.studies.claims.published.voita_2019.specialised"
        with patch(place, lambda measured: marked):
            return tested("specialised-last", rng, tasks=[made])

    return run


def agreement(task: TaskProbabilities) -> Make:
    """Make losses of a second task by dealing those of the first to other heads of the layer."""
    means = task.one_by_one.mean(axis=0).reshape(task.shape)
    means -= means.mean(axis=1, keepdims=True)

    def run(rng: np.random.Generator, truth: str) -> Finding:
        other = rng.permuted(means, axis=1)
        if truth == EFFECT:
            other = 0.56 * means + np.sqrt(1 - 0.56**2) * other
        made = [
            SimpleNamespace(shape=task.shape, heads=task.heads, one_by_one=one.reshape(1, -1))
            for one in (means, other)
        ]
        return tested("tasks-agree", rng, tasks=made)

    return run


def tested(claim: str, rng: np.random.Generator, **parts: Any) -> Finding:
    """Return the finding of a claim that measures these ``parts``."""
    options = SimpleNamespace(seed=int(rng.integers(1e9)), alpha=ALPHA, probability_margin=MARGIN)
    given = SimpleNamespace(
        alpha=ALPHA, options=options, interval=lambda *_: (np.nan, np.nan), **parts
    )
    return CLAIMS[claim].test(given)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
