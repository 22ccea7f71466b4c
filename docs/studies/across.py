"""Attention from targets to sources that knows no translation: which steps does it pass?

python -m docs.studies.across BITEXT [--links FILE] [--links-from 1]

Nearly all of the attention of each of 50 random heads of a kind is on words of the source, a word
of the target and one of the source being one piece each, the rest on its end. Prints in
Markdown, for each score, the heads of each kind that are shown to give aligned words more than
distance explains (*distance*), and more than nearer words of the same class (*class*), with the
heads whose mean is above the threshold.

noise       uniform attention, times noise
offset      a random kernel over how many words further on the source is
diagonal    a random kernel over the distance from the same part of the sentence
rare        the latter times a random power of the frequency of the word of the source
marks       the latter, with more attention from marks to marks and from words to words
places      the diagonal times a preference for places in the source
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from docs.studies.roles import Rows, show
from headroles import assign_roles, read_bitext, score_attention
from headroles.arrays import FloatArray
from headroles.corpus import Sentence
from headroles.roles.aligned import ALIGNED

KINDS = ("noise", "offset", "diagonal", "rare", "marks", "places")
N_HEADS, WIDEST, ON_WORDS = 50, 12, 0.95


class Heads:
    """Random heads: ``kernels`` (kinds, heads, offsets) and the strength of their tastes."""

    def __init__(self, seed: int, frequencies: Counter[str]) -> None:
        self.draws = np.random.default_rng(seed)
        shape = len(KINDS), N_HEADS, 2 * WIDEST + 1
        centre = self.draws.normal(0, 2, (*shape[:2], 1))
        width = self.draws.uniform(0.3, 4, (*shape[:2], 1))
        offsets = np.arange(-WIDEST, WIDEST + 1)
        bells = np.exp(-(((offsets - centre) / width) ** 2) / 2)
        self.kernels = bells * self.draws.gamma(1, 1, shape) + 1e-3
        self.exponents = self.draws.uniform(0.2, 1.5, (N_HEADS, 1))
        self.places = self.draws.gamma(1, 1, (N_HEADS, 5))
        self.frequencies = frequencies

    def attention(self, source: Sentence, target: Sentence) -> FloatArray:
        """Return attention (kinds, heads, 1 + target, source + 1)."""
        n_source, n_target = len(source.words), len(target.words)
        of_source, of_target = np.arange(n_source), np.arange(n_target)
        homes = (2 * of_target + 1) * n_source // (2 * n_target)
        by_offset, from_home = (
            (of_source - start[:, None]).clip(-WIDEST, WIDEST) + WIDEST
            for start in (of_target, homes)
        )
        weights = self.kernels[:, :, from_home]
        weights[0] = self.draws.gamma(4, 1 / 4, weights[0].shape)
        weights[1] = self.kernels[1][:, by_offset]
        counts = np.array([self.frequencies[word.casefold()] for word in source.words])
        weights[3] *= (counts[None] ** -self.exponents)[:, None]
        marks = [np.array(side.upos) == "PUNCT" for side in (source, target)]
        weights[4] *= np.where(marks[1][:, None] == marks[0], 5, 1)
        weights[5] *= self.places[:, (5 * of_source) // n_source][:, None]
        whole = np.zeros((len(KINDS), N_HEADS, n_target + 1, n_source + 1))
        whole[:, :, 1:, :-1] = ON_WORDS * weights / weights.sum(-1, keepdims=True)
        whole[..., -1] = 1 - whole[..., :-1].sum(-1)
        return whole.astype("f4")


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bitext", type=Path)
    parser.add_argument("--links", type=Path)
    parser.add_argument("--links-from", type=int, default=0)
    given = parser.parse_args()
    corpus = read_bitext(given.bitext, links=given.links, links_from=given.links_from)
    show("across", answers(list(corpus), corpus))


def answers(sentences: list[Sentence], corpus: Any) -> Rows:
    """Count the heads of each kind by step."""
    sources, targets = sentences[::2], sentences[1::2]
    frequencies = Counter(word.casefold() for source in sources for word in source.words)
    for score in ("bias", "excess"):
        heads, arrays, words = Heads(11, frequencies), [], []
        for source, target in zip(sources, targets, strict=True):
            arrays.append(heads.attention(source, target))
            of_source, of_target = range(len(source.words)), range(len(target.words))
            words.append([[*of_source, None], [None, *of_target]])
        asked: Any = {"attention": "cross", "score": score, "roles": ALIGNED}
        table = assign_roles(score_attention(arrays, corpus, words, **asked))
        rows = table.frame[table.frame["role"] == ALIGNED]
        for layer, kind in enumerate(KINDS):
            of_kind = rows[rows["layer"] == layer]
            yield {
                "score": score,
                "heads": kind,
                "above the threshold": int((of_kind["mean"] > of_kind["threshold"]).sum()),
                "distance": int(of_kind["assigned"].sum()),
                "class": int((of_kind["evidence"] == "class").sum()),
                "mean": f"{of_kind['mean'].max():.2f}",
                "beyond distance": f"{of_kind['beyond_distance'].max():.2f}",
                "beyond class": f"{of_kind['beyond_class'].max():.2f}",
            }


if __name__ == "__main__":
    main()
