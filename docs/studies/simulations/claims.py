"""Simulations of claims: errors of their tests where the null hypothesis holds.

Values of documents have beta distributions as skewed as shares of first choices are; means are
exactly at the threshold. Claims that are compared with control models are tested on copies of a
model with permuted weights, and with heads shuffled over layers, each against five others, over at
most 300 sentences of a treebank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from docs.studies.simulations import ALPHA, Row, Study, averaged, generator
from headroles import read_conllu
from headroles.models.loading.encoder import load_encoder
from headroles.studies.claims.claims import CLAIMS
from headroles.studies.claims.finding import Halves, two_sides
from headroles.studies.claims.measured import (
    CONTROL_SENTENCES,
    N_CONTROLS,
    ClaimOptions,
    Measured,
    few_documents,
)
from headroles.studies.controls import with_permuted_weights, with_shuffled_heads
from headroles.testing.evidence import PValues
from headroles.testing.hypotheses import Hypotheses

MARGIN = 0.05
DOCUMENTS, HEADS, COPIES = 318, 12, 24
Array = np.ndarray
Draw = Callable[[np.random.Generator], tuple[PValues, PValues]]


def study_claims(places: list[Path], n: int) -> Iterator[Row]:
    """Test claims for which values are drawn."""
    return rows_of(simulations(), n)


def study_copies(places: list[Path], n: int) -> Iterator[Row]:
    """Test claims on copies of a model with permuted weights, and with shuffled heads."""
    model, treebank = places
    return rows_of(on_copies(str(model), treebank, COPIES), n)


def rows_of(simulated: Iterator[tuple[str, str, Draw]], n: int) -> Iterator[Row]:
    """Yield the shares of runs with p <= 5 % for each claim and against it, uncorrected."""
    for claim, null, draw in simulated:
        rng = generator(claim, null)
        p = ([one.evidence[0] for one in draw(rng)] for _ in range(n))
        shares = (
            {"shown": float(one <= ALPHA), "contradicted": float(other <= ALPHA)}
            for one, other in p
        )
        yield {"claim": f"`{claim}`", "null hypothesis": null, **averaged(shares)}


def simulations() -> Iterator[tuple[str, str, Draw]]:
    """Yield claim, null hypothesis and one run."""
    for claim, share in (("positional-heads", 0.9), ("rare-word-head", 0.5)):
        yield claim, f"the best of {HEADS} heads at {share:g}", partial(best_head, claim, share)
    yield "single-heads", f"the best of {HEADS} heads at 0.75", relations
    yield "positional-confident", "a mean of 0.8", confidence
    yield "separators-middle", "a mean of 0.5", separators
    for n in (3, 5, 8, 13):
        said = f"{n} models with layers like their neighbours, as in the control"
        yield "trends over layers", said, partial(trends, n)
    yield "separators-spread", "half of the documents", partial(spread, 0.5)
    yield "prunable-share", "a fall by the margin, 436 examples", pruned
    yield "tasks-agree", "no agreement (6 x 12 heads)", partial(agreement, 0.0)
    yield "tasks-agree", "as much agreement as with an untrained head", partial(agreement, 0.6)


def made(**parts: Any) -> Any:
    """Make the measurements of a claim; control models are far away."""
    options = SimpleNamespace(seed=0, alpha=ALPHA, probability_margin=MARGIN)
    return SimpleNamespace(alpha=ALPHA, options=options, **parts)


def sides(claim: str, measured: Any) -> tuple[PValues, PValues]:
    """Return the p-values of a claim and of its opposite."""
    found = CLAIMS[claim].test(measured)  # type: ignore[misc]
    return found.shown, found.contradicted


def shares(rng: np.random.Generator, mean: float, n: int = DOCUMENTS, heads: int = 1) -> Array:
    """Draw shares (documents, heads) of a mean, most of them near 1 if the mean is."""
    return rng.beta(3 * mean, 3 * (1 - mean), (n, heads))


def of_heads(rng: np.random.Generator, best: float) -> Array:
    """Draw shares (documents, heads); one head has the mean ``best``, the others less."""
    lower = [shares(rng, best * place / HEADS) for place in range(1, HEADS)]
    return np.concatenate([shares(rng, best), *lower], axis=1)


def halves() -> Halves:
    """Return the halves of documents that each have one example."""
    return Halves(np.arange(DOCUMENTS) % 2 == 1, np.arange(DOCUMENTS), (1, HEADS))


def far(value: float) -> dict[str, Any]:
    """Return control models whose heads have hardly any hits."""
    low = [made(hits_of=lambda role, k=k: np.full((9, HEADS), value + k / 1e3)) for k in range(5)]
    return {"permuted": low, "shuffled": []}


def best_head(claim: str, share: float, rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Put the best head at the threshold."""
    own = of_heads(rng, share)
    measured = made(hits_of=lambda role: own, halves=halves(), **far(0.01))
    measured.few = measured
    return sides(claim, measured)


def relations(rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Put the best head of determiners at the threshold; it finds nothing in permuted words."""
    values = {"det": of_heads(rng, 0.75), "obj": of_heads(rng, 0.95)}
    permuted = made(hits_of_relation=lambda names: np.full((DOCUMENTS, HEADS), 0.05))
    own = made(
        hits_of_relation=lambda names: values.get(names[0], values["obj"]),
        halves=halves(),
        reordered=permuted,
    )
    return sides("single-heads", own)


def confidence(rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Put the confidence of the one positional head at the threshold; others have less."""
    own = np.concatenate([shares(rng, 0.8), np.full((DOCUMENTS, HEADS - 1), 0.1)], axis=1)
    hits = np.concatenate([np.ones((DOCUMENTS, 1)), np.zeros((DOCUMENTS, HEADS - 1))], axis=1)
    one = made(hits_of=lambda role: own if role == "confidence" else hits, halves=halves())
    return sides("positional-confident", one)


def separators(rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Put the share of separators at the threshold."""

    def model(values: Array) -> Any:
        layers = np.broadcast_to(values, (len(values), 6))
        return made(of_tokens=lambda group, name: layers, tokens=(layers, np.arange(len(values))))

    own = model(shares(rng, 0.5))
    own.few, own.shuffled = own, []
    own.permuted = [model(np.full((9, 1), 0.05 + k / 1e3)) for k in range(5)]
    return sides("separators-middle", own)


def walk(rng: np.random.Generator, layers: int = 6) -> Array:
    """Draw a profile over layers whose neighbours are alike (a random walk)."""
    return rng.normal(size=layers).cumsum()


def trends(n: int, rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Test over models whose profiles have a trend by chance, and whose controls have another."""
    effects = [
        np.corrcoef(walk(rng), np.arange(6))[0, 1]
        - np.mean([np.corrcoef(walk(rng), np.arange(6))[0, 1] for _ in range(N_CONTROLS)])
        for _ in range(n)
    ]
    return two_sides(Hypotheses.from_values(np.array(effects)[:, None], 0.0, size=2.0))


def spread(share: float, rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Let scores of separator heads fall in a share of the documents, as after noise."""

    def model(down: float) -> Any:
        change = np.where(rng.random((DOCUMENTS, 1)) < down, -1.0, 1.0)
        scores = SimpleNamespace(column=lambda role: change, documents=("one",))
        return made(scores=scores, has=lambda role: np.ones((1, 1), dtype=bool))

    base = SimpleNamespace(column=lambda role: np.zeros((DOCUMENTS, 1)), documents=("one",))
    own = made(scores=base, has=lambda role: np.ones((1, 1), dtype=bool))
    levels = rng.normal(share, 0.05, N_CONTROLS + 1)
    own.few, own.later = own, model(share)
    own.later.few, own.noisy = model(levels[0]), [model(level) for level in levels[1:]]
    return sides("separators-spread", own)


def pruned(rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Let probabilities fall by the margin on average: a few fall by much, most by nothing."""
    falls = np.where(rng.random((872, 1)) < 0.1, 0.5, 0.0) * np.ones((1, N_CONTROLS + 1))
    task = SimpleNamespace(
        heads=[(0, 0), (0, 1)],
        first=np.arange(872) % 2 == 0,
        least_important=lambda share: [(0, 0)],
        falls=lambda sets: falls,
    )
    return sides("prunable-share", made(tasks=[task]))


def agreement(r: float, rng: np.random.Generator) -> tuple[PValues, PValues]:
    """Let falls without each head have the same correlation with and without training."""

    def two() -> list[Any]:
        shared, *own = rng.normal(size=(3, 6, 12))
        values = [np.sqrt(r) * shared + np.sqrt(1 - r) * one for one in own]
        return [SimpleNamespace(one_by_one=one - one.mean(1, keepdims=True)) for one in values]

    return sides("tasks-agree", made(tasks=two(), untrained_tasks=two()))


COPIES_IN_WORDS = {
    "permuted": ("permuted weights", with_permuted_weights),
    "shuffled": ("heads shuffled over layers", with_shuffled_heads),
}


def on_copies(model: str, treebank: Path, n: int) -> Iterator[tuple[str, str, Draw]]:
    """Test claims on copies of a model of each kind, each against five others."""
    options = ClaimOptions()
    network = load_encoder(model, options).model
    few = few_documents(read_conllu(treebank), CONTROL_SENTENCES)
    for kind, (words, copy) in COPIES_IN_WORDS.items():
        copies: list[Any] = [
            Measured(partial(copy, network, seed), few, options) for seed in range(n)
        ]
        for one in copies:
            one.few, one.permuted, one.shuffled = one, [], []

        def draw(claim: str, rng: np.random.Generator) -> tuple[PValues, PValues]:
            own, *others = (copies[place] for place in rng.permutation(n)[: N_CONTROLS + 1])  # noqa: B023
            setattr(own, kind, others)  # noqa: B023
            return sides(claim, own)

        middle = ("separators-middle", "positional-heads", "rare-word-head")
        for claim in ("special-tokens-little", "frequent-words-little", *middle):
            yield claim, f"a copy with {words}", partial(draw, claim)


STUDIES: dict[str, tuple[Study, int]] = {
    "claims": (study_claims, 400),
    "copies": (study_copies, 200),
}
