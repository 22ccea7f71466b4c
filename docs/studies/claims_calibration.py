"""How often claims are shown and contradicted where they are neither true nor false, and power.

python -m docs.studies.claims_calibration --kept FOLDER [--runs 400]

FOLDER is what `docs.studies.claims_over_encoders` kept of one encoder and treebank. Null hypotheses
are made from its real tables: layers in random order, roles dealt to other heads of the layer,
values of documents moved so that their mean is the threshold, and documents drawn anew. Printed for
each claim: the share of runs in which it is shown and contradicted at 5 %, without correction, and
the share in which it is shown where the effect is the one named in the last column.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from headroles import make_corpus
from headroles.errors import HeadRolesError
from headroles.studies.claims import CLAIMS, ClaimOptions, Finding, Measured
from headroles.studies.claims.answers import HeadAnswers
from headroles.studies.claims.kinds import mean_beyond, mean_of_known, some_head, trend
from headroles.studies.claims.published.several_roles_middle import by_layer, nearness
from headroles.studies.token_reading import LENGTH, OTHER, SEPARATORS, WEIGHTS, WITH_FREQUENCY

ALPHA = 0.05
Make = Callable[[np.random.Generator, bool], Finding]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=400)
    given = parser.parse_args()
    triple = [(["no", "text"], [-1, 0], ["root", "dep"])]
    measured = Measured("", make_corpus(triple), ClaimOptions(), kept=given.kept)
    measured.__dict__["relations"] = dict.fromkeys(("nsubj", "obj", "amod", "advmod", "det"), 1)
    print("| claim | shown | contradicted | shown at the effect | effect |")
    print("| --- | ---: | ---: | ---: | --- |")
    for claim, effect, make in simulations(measured):
        rng = np.random.default_rng(0)
        try:
            null = [make(rng, False) for _ in range(given.runs)]
            real = [make(rng, True) for _ in range(given.runs)]
        except HeadRolesError as error:
            print(f"| `{claim}` | | | | {error} |", flush=True)
            continue
        shares = [rate(null, "shown"), rate(null, "contradicted"), rate(real, "shown")]
        cells = " | ".join(f"{one:.3f}" for one in shares)
        print(f"| `{claim}` | {cells} | {effect} |", flush=True)


def rate(found: list[Finding], side: str) -> float:
    """Share of findings with a p-value of at most 5 %."""
    p = [getattr(one, side) for one in found]
    return float(np.mean([np.nan_to_num(one.single[0], nan=one.by_bound[0]) <= ALPHA for one in p]))


def simulations(measured: Measured) -> Iterator[tuple[str, str, Make]]:
    """Claim, effect and one run: of the null hypothesis, or with the effect."""
    answers = measured.answers
    n_layers = answers.shape[0]
    yield "local-and-syntactic", "71 % of syntactic heads are local", colocation(answers)
    late = np.arange(n_layers, dtype=float)
    for claim, role in (("separator-heads-late", "delimiter"), ("classifier-heads-early", "local")):
        shares = answers.share_by_layer(role)
        yield claim, f"correlation about 0.9, {n_layers} layers", in_order(shares, late)
    yield (
        "several-roles-middle",
        f"correlation about 0.9, {n_layers} layers",
        in_order(by_layer(answers), nearness(n_layers)),
    )
    shares = measured.share_of_tokens(SEPARATORS, WEIGHTS).mean(axis=1)
    documents = measured.tokens[1]
    yield "separators-middle", "0.55 of the attention", of_mean(shares, documents, 0.05)
    lengths = mean_of_known(measured.share_of_tokens(OTHER, f"{LENGTH}{WITH_FREQUENCY}"), 1)
    yield "frequent-words-little", "correlation 0.1", of_mean(lengths, documents, 0.1)
    for claim, role, threshold, gain in (
        ("positional-heads", "position:-1", 0.9, 0.05),
        ("rare-word-head", "rare", 0.5, 0.16),
        ("single-heads", "syntactic:det:to_governor", 0.75, 0.19),
        ("syntactic-heads", "syntactic:obj:to_governor", 0.1, 0.15),
    ):
        make = of_some_head(measured, role, threshold, gain)
        yield claim, f"{threshold + gain:.2f}, one role ({role})", make
    yield "layers-alike", "half the difference found", of_layers(measured)


def colocation(answers: HeadAnswers) -> Make:
    """Syntactic heads are random heads of their layers, or local in 71 %."""
    local, syntactic = answers.has("local"), answers.has("syntactic")

    def run(rng: np.random.Generator, has_effect: bool) -> Finding:
        marked = rng.permuted(syntactic, axis=1)
        if has_effect:
            n_local = min(rng.binomial(syntactic.sum(), 0.71), local.sum())
            some = [rng.permutation(np.flatnonzero(which)) for which in (local, ~local)]
            chosen = [*some[0][:n_local], *some[1][: syntactic.sum() - n_local]]
            marked = np.isin(np.arange(local.size), chosen).reshape(local.shape)
        signs = {"local": local * 2 - 1, "syntactic": marked * 2 - 1}
        made = HeadAnswers(signs, answers.p_above, answers.shape)
        return CLAIMS["local-and-syntactic"].test(fake(answers=made, seed=int(rng.integers(1e9))))

    return run


def in_order(shares: np.ndarray, places: np.ndarray) -> Make:
    """The shares of layers in random order, or rising with the place but for noise."""

    def run(rng: np.random.Generator, has_effect: bool) -> Finding:
        values = rng.permutation(shares)
        if has_effect:
            values = places + rng.normal(0, 0.5 * places.std(), len(places))
        return trend(values, places, alpha=ALPHA, seed=int(rng.integers(1e9)))

    return run


def drawn(rng: np.random.Generator, codes: np.ndarray | None, n: int) -> tuple[np.ndarray, Any]:
    """Rows of documents drawn anew, and their clusters."""
    units = np.arange(n) if codes is None else codes
    names = np.unique(units)
    chosen = rng.choice(names, len(names))
    rows = [np.flatnonzero(units == one) for one in chosen]
    clusters = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
    return np.concatenate(rows), None if codes is None else clusters


def of_mean(values: np.ndarray, codes: np.ndarray | None, gain: float) -> Make:
    """Values around the threshold, or beyond it by the gain; documents drawn anew."""
    centred = values - np.nanmean(values)

    def run(rng: np.random.Generator, has_effect: bool) -> Finding:
        rows, clusters = drawn(rng, codes, len(values))
        return mean_beyond(centred[rows] + gain * has_effect, 0.0, clusters, alpha=ALPHA)

    return run


def of_some_head(measured: Measured, role: str, threshold: float, gain: float) -> Make:
    """The head nearest to the threshold is put there, or beyond by the gain, and others below."""
    hits, codes = measured.hits_of(role), measured.hit_clusters
    there = ~np.isnan(hits).all(axis=1)
    hits, codes = hits[there], None if codes is None else codes[there]
    means = mean_of_known(hits, 0)
    nearest = means[np.argmin(np.abs(means - threshold))]  # the least that has to be moved
    moved = hits[:, means <= nearest] + (threshold - nearest)

    def run(rng: np.random.Generator, has_effect: bool) -> Finding:
        rows, clusters = drawn(rng, codes, len(moved))
        second = (np.arange(len(rows)) if clusters is None else clusters) % 2 == 1
        values = moved[rows] + gain * has_effect
        return some_head(
            values, threshold, second, clusters, alpha=ALPHA, shape=(1, moved.shape[1])
        )

    return run


def of_layers(measured: Measured) -> Make:
    """Heads are dealt to layers at random, or half of them stay where they are."""
    values, shape = measured.divergences

    def run(rng: np.random.Generator, has_effect: bool) -> Finding:
        order = rng.permutation(values.shape[1])
        if has_effect:
            order = np.arange(values.shape[1])
            some = rng.permutation(len(order))[: len(order) // 3]
            order[np.sort(some)] = some
        mixed = values[:, order][:, :, order]
        made = fake(divergences=(mixed, shape), seed=int(rng.integers(1e9)))
        return CLAIMS["layers-alike"].test(made)

    return run


def fake(seed: int, **parts: Any) -> Any:
    """What was measured, where the test needs no more than ``parts``."""
    options = SimpleNamespace(seed=seed, alpha=ALPHA)
    return SimpleNamespace(
        alpha=ALPHA, options=options, interval=lambda *_: (np.nan, np.nan), **parts
    )


if __name__ == "__main__":
    main()
