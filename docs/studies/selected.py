"""Coverage of intervals of heads with one answer, and shares of wrong answers.

python -m docs.studies.selected DIR [DIR ...] [--tables N]

`headroles score` wrote each DIR. Whole documents are drawn from it without replacement, and the
means of all documents are the truth. Answers are those of t after Benjamini-Hochberg at the default
thresholds; for the same rows "t" is the interval of 95 %, "fcr" the wider one that accounts for the
selection (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from docs.studies.certified import Population
from docs.studies.documents import markdown, sample_of
from headroles.inference import OK, Sample, adjust_p_values, t_interval, t_test

ALPHA = 0.05
SIZES = (20, 50, 100, 150)


def measured(population: Population, size: int, rng: np.random.Generator) -> dict[str, list[float]]:
    """Return the shares of answered rows in a sample that are covered, and that are wrong."""
    drawn = rng.permutation(len(population.documents))[:size]
    rows, clusters = sample_of(population.documents, drawn)
    sample = Sample.of(population.values[rows], clusters)
    truth = np.nanmean(population.values.astype(float), axis=0)
    found: dict[str, list[float]] = {}
    for name, side in (("yes", "greater"), ("no", "less")):
        p = t_test(sample, population.thresholds, alternative=side).p_value
        chosen = np.flatnonzero(adjust_p_values(p, "fdr_bh") <= ALPHA)
        if not len(chosen):
            continue
        share = len(chosen) / (sample.moments.status == OK).sum()
        limits, mean = population.thresholds[chosen], truth[chosen]
        for kind, level in (("t", ALPHA), ("fcr", ALPHA * share)):
            at = t_interval(sample.take(chosen), confidence=1 - level)
            held = (at.ci_low <= mean) & (mean <= at.ci_high)
            found[f"{name}, {kind}"] = [float(held.mean())]
        wrong = (mean <= limits) if name == "yes" else (mean >= limits)
        found[f"{name}, wrong"] = [float(wrong.mean())]
    return found


def main() -> None:
    """Parse the command line; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", type=Path, nargs="+")
    parser.add_argument("--tables", type=int, default=200)
    arguments = parser.parse_args()
    names = [f"{answer}, {what}" for answer in ("yes", "no") for what in ("t", "fcr", "wrong")]
    lines = []
    for folder in arguments.scores:
        population = Population.load(folder)
        rng = np.random.Generator(np.random.Philox(5))
        for size in (one for one in SIZES if one <= len(population.documents)):
            found: dict[str, list[float]] = {}
            for _ in range(arguments.tables):
                for name, value in measured(population, size, rng).items():
                    found.setdefault(name, []).extend(value)
            of = {name: 100 * np.mean(found[name]) if name in found else np.nan for name in names}
            shown = [f"{of[n]:.2f}" if "wrong" in n else f"{of[n]:.1f}" for n in names]
            lines.append([f"{population.name}, {size} documents", *shown])
    print(markdown(["score and sample", *names], lines))


if __name__ == "__main__":
    main()
