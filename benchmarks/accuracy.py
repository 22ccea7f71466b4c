"""Errors of scores beside the slow reference of the tests, on a real model and treebank.

python -m benchmarks.accuracy MODEL TREEBANK [--sentences N] [--batch-tokens N] [--exact]
    [--score excess]

Prints, for both pairings, the largest difference over all examples, layers, heads and roles,
relative to the sums behind a score. The reference cuts words into pieces one by one, takes
attention from transformers' eager code, and follows the definition of the scores in float64.

The model rounds too, and differently in batches of different shapes: with ``--batch-tokens 1`` both
sides run every example alone, so that only the scores are rounded. ``--exact`` runs the model of
the reference in float64, so that the error includes all rounding.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import numpy as np

from headroles.corpus import Corpus, make_examples, prepared, read_conllu
from headroles.models.loading.encoder import load_encoder
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import open_scoring
from tests.reference import Asked, attention_of, cut, largest_difference, reference_scores
from tests.rounding import sizes_of


def largest_relative_difference(
    model: str,
    treebank: Path,
    sentences: int,
    pairing: str,
    batch_tokens: int | None,
    exact: bool,
    score: str,
) -> float:
    """Return the largest relative difference over the first ``sentences`` sentences."""
    whole = read_conllu(treebank)
    corpus = Corpus(whole.source, lambda skipped: islice(whole.read(skipped), sentences))
    with prepared(corpus) as ready:
        examples = {example.id: example for example in make_examples(ready, pairing)}
    options = ScoreOptions(pairing=pairing, batch_tokens=batch_tokens, score=score, device="cpu")
    encoder = load_encoder(model, options)
    with open_scoring(model, corpus, options) as run:
        blocks = list(run.blocks())
    encoder.model.set_attn_implementation("eager")
    if exact:
        encoder.model.double()
    worst = 0.0
    for block in blocks:
        roles = [role.id for role in run.roles]
        sizes = sizes_of(block.values, roles, block.counts, block.bounds[..., 0])
        for name, values, size in zip(block.ids, block.values, sizes, strict=True):
            tokens, ids = cut(examples[name], encoder.tokenizer)
            attention = attention_of(encoder.model, tokens, ids, encoder.takes_token_types)
            expected = reference_scores(attention, tokens, run.relations, Asked(score=score))
            difference = largest_difference(values, roles, expected, size, of=1)
            worst = float(np.fmax(worst, difference))
    return worst


def main() -> None:
    """Parse the command line and print one line per pairing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--score", choices=("bias", "excess"), default="bias")
    arguments = parser.parse_args()
    for pairing in ("adjacent", "none"):
        worst = largest_relative_difference(
            arguments.model,
            arguments.treebank,
            arguments.sentences,
            pairing,
            arguments.batch_tokens,
            arguments.exact,
            arguments.score,
        )
        print(f"{arguments.model}, pairing {pairing}: largest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
