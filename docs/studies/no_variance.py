"""Wrong answers about scores that do not vary, in small samples of documents.

python -m docs.studies.no_variance DIR [--replicates N]

DIR is a folder that `headroles score --score hit` wrote. Its documents are the population: samples
of whole documents are drawn from it without replacement, all means are compared with one threshold,
and an answer is wrong where the mean of all documents lies on the other side. In the made
population heads hit at random, with a probability for each document.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from headroles import HeadScores, assign_roles

SIZES = (2, 5, 10, 30, 100)
THRESHOLD = 0.3


def made_like(scores: HeadScores, rng: np.random.Generator) -> HeadScores:
    """Make scores of the same documents, with probabilities of hits near 0.02 to 0.98."""
    document = np.unique(scores.documents, return_inverse=True)[1]
    shape = scores.values.shape[1:]
    of_heads = rng.choice([0.02, 0.15, 0.28, 0.32, 0.6, 0.98], shape)
    of_documents = rng.beta(8 * of_heads, 8 * (1 - of_heads), (document.max() + 1, *shape))
    hits = (rng.random(scores.values.shape) < of_documents[document]).astype(np.float32)
    return replace(scores, values=np.where(np.isnan(scores.values), np.nan, hits))


def draw(scores: HeadScores, n_documents: int, rng: np.random.Generator) -> HeadScores:
    """Draw some documents, each at most once."""
    names = np.array(scores.documents)
    drawn = rng.permutation(np.unique(names))[:n_documents]
    return scores.select(np.flatnonzero(np.isin(names, drawn)))


def count(
    scores: HeadScores, n_documents: int, n_replicates: int, rng: np.random.Generator
) -> dict[str, float]:
    """Count answers about scores without variance in a table, and the wrong ones among them."""
    key = ["role", "layer", "head"]
    true = assign_roles(scores, threshold=THRESHOLD).frame.set_index(key)["mean"]
    given, wrong = dict.fromkeys(("yes", "no"), 0), dict.fromkeys(("yes", "no"), 0)
    for _ in range(n_replicates):
        sample = draw(scores, n_documents, rng)
        frame = assign_roles(sample, threshold=THRESHOLD).frame.set_index(key)
        alike = frame[frame["note"].str.startswith("degenerate")]
        above = true.loc[alike.index] > THRESHOLD
        for answer, other in (("yes", ~above), ("no", above)):
            given[answer] += int((alike["answer"] == answer).sum())
            wrong[answer] += int(((alike["answer"] == answer) & other).sum())
    return {
        f"{answer}{what}": counts[answer] / n_replicates
        for answer in given
        for what, counts in (("", given), (", wrong", wrong))
    }


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", type=Path)
    parser.add_argument("--replicates", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.Generator(np.random.MT19937(7))
    real = HeadScores.load(given.scores)
    rows = [
        {"population": name, "documents": n, **count(scores, n, given.replicates, rng)}
        for name, scores in (("real", real), ("made", made_like(real, rng)))
        for n in SIZES
    ]
    print(pd.DataFrame(rows).to_markdown(index=False, floatfmt=".2f"))


if __name__ == "__main__":
    main()
