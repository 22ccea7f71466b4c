"""Calibration of tests, corrections, intervals and plans on real scores.

python -m docs.studies.calibration DIR [--only level planning] [--quick]

Prints a table for each section, or for those of --only, as it is measured; --quick takes two
replicates of each cell.

DIR is a folder that `headroles score` or `headroles classify` wrote. The population is all of its
scores, a column per head and role: examples are drawn from it with replacement, all columns
together, so that samples are as bounded, skewed, correlated and full of gaps as scores are. Every
column is shifted to mean 0, so that H0, mean <= 0 or mean >= 0, is true at its limit, and divided
by its standard deviation, which changes no test and gives planted effects a unit.

Samples are a number of examples, or whole documents drawn with replacement. "+ effect" adds to
every value a random number that it shares with the other values of its document, of an intra-class
correlation of 0.2: the effect of much dependence, in any corpus. The section "answers" does not
shift the means, and counts how many of the answers "yes" and "no" at the default thresholds are
wrong. The section "planning" plans as `headroles power` does, by all scores and by pilots, and
counts how many heads are decided with as many examples as were planned.

Each section and kind of sample has its own seeds.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docs.studies.documents import Rows, rows_by_document, sample_of
from headroles import HeadScores, power_analysis
from headroles.arrays import FloatArray
from headroles.inference import (
    OK,
    Alternative,
    Sample,
    adjust_p_values,
    t_interval,
    t_test,
)
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.answers import answer
from headroles.testing.answers import answers as answers_of
from headroles.testing.evidence import find_p_values
from headroles.testing.options import TestOptions

Clusters: TypeAlias = Rows | None
Measured: TypeAlias = dict[str, float | FloatArray]
"""What a replicate measures, a share or one for each column (NaN: none), of which the mean counts.

Names are ROW/.../COLUMN of a table; a name that ends in # is no share.
"""

ALPHA = 0.05
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
SKEWNESS_BANDS = (-2, -0.5, 0.5, 2, 4, 8)
SIDES: tuple[Alternative, ...] = ("greater", "less")
CORRECTIONS = ("none", "bonferroni", "holm", "fdr_bh", "fdr_by")
DISCOVERY = ("fdr_bh", "fdr_by", "holm")
COCHRAN = 25
"""Values that a column should have, in squared skewnesses."""
LIMITS = (1, 2)
"""Of the skewness in the sample, beyond which columns are left out of families."""
SHIFTS = (2, 4, 6)
"""Planted effects, in standard errors of a mean of that many independent examples."""
PLANNED = (50, 100, 200, 400, 800, 1600)
"""Sizes of corpora, in examples; heads planned for at least 4/5 of one are looked at in it."""
SHARED = 0.2
"""Intra-class correlation of the planted effect."""


@dataclass(frozen=True)
class Design:
    """Design of a sample: so many examples, or whole documents."""

    name: str
    size: int
    by_document: bool = False
    planted: bool = False


EXAMPLES = tuple(Design(f"{n} examples", n) for n in (20, 100, 1000))
DOCUMENTS = tuple(Design(f"{n} documents", n, by_document=True) for n in (10, 20, 50, 300))
PLANTED = Design("20 documents + effect", 20, True, planted=True)
PILOTS = (Design("100 examples", 100), Design("50 documents", 50, by_document=True))
DESIGNS = (*EXAMPLES, *DOCUMENTS, PLANTED)
SOME_DESIGNS = (*EXAMPLES, DOCUMENTS[1], DOCUMENTS[3], PLANTED)
LARGE = 300
"""Samples of so many examples or documents get fewer replicates."""


@dataclass(frozen=True)
class Population:
    """All scores that can be tested.

    ``documents`` are the rows of each document.
    """

    scores: HeadScores
    documents: tuple[Rows, ...]

    @classmethod
    def load(cls, folder: Path) -> Population:
        """Load a population from a folder of scores."""
        scores = HeadScores.load(folder)
        return cls(scores, rows_by_document(scores))

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        """Values (examples, tests) of mean 0 and deviation 1, and thresholds (tests,) as moved."""
        tested = hypotheses_of(self.scores, HeadColumns.of(self.scores), TestOptions())
        usable = tested.sample.moments.status == OK
        values, limits = tested.sample.values[:, usable].astype(np.float64), tested.threshold
        mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        return (values - mean) / deviation, (limits[usable] - mean) / deviation

    @property
    def values(self) -> FloatArray:
        """(examples, tests), NaN for missing."""
        return self._scaled[0]

    @property
    def thresholds(self) -> FloatArray:
        """Those that the tool takes (tests,), moved and scaled as the columns were."""
        return self._scaled[1]

    @property
    def n_tests(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    @property
    def codes(self) -> Rows:
        """Number of the document of each example (examples,)."""
        codes = np.empty(len(self.values), dtype=np.intp)
        for number, rows in enumerate(self.documents):
            codes[rows] = number
        return codes

    def rows(self, design: Design, rng: np.random.Generator) -> tuple[Rows, Clusters]:
        """Draw examples, with their clusters if they are drawn by document."""
        if not design.by_document:
            return rng.integers(0, len(self.scores.values), design.size), None
        drawn = rng.integers(0, len(self.documents), design.size)
        return sample_of(self.documents, drawn)

    def draw(self, design: Design, rng: np.random.Generator) -> tuple[FloatArray, Clusters]:
        """Draw a sample of the scaled values, with the clusters of its examples, if any."""
        rows, clusters = self.rows(design, rng)
        values = self.values[rows]
        if design.planted and clusters is not None:
            values = values + _document_effect(design.size, self.n_tests, rng)[clusters]
        return values, clusters

    def draw_scores(self, design: Design, rng: np.random.Generator) -> HeadScores:
        """Draw a sample of unscaled scores; without clusters all examples are of one document."""
        rows, clusters = self.rows(design, rng)
        return replace(
            self.scores.select(rows),
            ids=tuple(map(str, range(len(rows)))),
            documents=tuple(map(str, np.zeros_like(rows) if clusters is None else clusters)),
            digests=(),
            bounds=None,
        )


def _document_effect(n_documents: int, n_tests: int, rng: np.random.Generator) -> FloatArray:
    """Draw normal effects (documents, tests), half of whose variance all columns share."""
    common, own = rng.normal(size=(n_documents, 1)), rng.normal(size=(n_documents, n_tests))
    return np.asarray(math.sqrt(SHARED / (1 - SHARED)) * (common + own) / math.sqrt(2))


# What is measured: each function returns the measurements of one replicate.


def describe(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Describe the population: quantiles over columns."""
    values = population.values
    plain, clustered = (Sample.of(values, codes).moments for codes in (None, population.codes))
    of_columns = {
        "skewness": np.nanmean(values**3, axis=0),
        "kurtosis": np.nanmean(values**4, axis=0),
        "share missing": np.isnan(values).mean(axis=0),
        "design effect": (clustered.standard_error / plain.standard_error) ** 2,
    }
    found: Measured = {}
    for name, columns in of_columns.items():
        for q in QUANTILES:
            found[f"{name}/{100 * q:g} %#"] = float(np.quantile(columns, q))
    return found


def level(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure wrong rejections of each test by itself, also by the skewness of columns."""
    values, clusters = population.draw(design, rng)
    band = np.digitize(np.nanmean(population.values**3, axis=0), SKEWNESS_BANDS)
    found: Measured = {}
    for side in SIDES:
        for name, p in _all_tests(values, clusters, side):
            found[f"{name}/{side}/all"] = _rejected(p)
            for k, limit in enumerate((*SKEWNESS_BANDS, np.inf)):
                found[f"{name}/{side}/skewness < {limit:g}"] = _rejected(p[band == k])
    return found


def _all_tests(
    values: FloatArray, clusters: Clusters, side: Alternative
) -> Iterator[tuple[str, FloatArray]]:
    """Yield (test, p-values), without clusters, and with clusters if there are any."""
    yield "t", t_test(values, 0, alternative=side).p_value
    if clusters is not None:
        yield "cluster t", t_test(Sample.of(values, clusters), 0, alternative=side).p_value


def families(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure any wrong rejection in the family, all H0 true: p-values of t.

    Then the same of families without the columns that are too skewed in the sample.
    """
    values, clusters = population.draw(design, rng)
    sample = Sample.of(values, clusters)
    skewness = np.abs(sample.skewness)
    there = sample.moments.n
    kept = {f"n >= {COCHRAN} skewness²": there >= COCHRAN * skewness**2}
    kept |= {f"skewness <= {limit}": skewness <= limit for limit in LIMITS}
    found: Measured = {}
    for side in SIDES:
        p = t_test(sample, 0, alternative=side).p_value
        for method in CORRECTIONS:
            found[f"{side}/{method}"] = _any_rejected(adjust_p_values(p, method))
        for rule, own in kept.items():
            of_kept = adjust_p_values(np.where(own, p, np.nan), "holm")
            found[f"{side}/holm, {rule}"] = _any_rejected(of_kept)
            found[f"{side}/left out, {rule}"] = float(1 - own.mean())
    return found


def mixture(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure false discoveries and power; half of the columns, always the same, have an effect."""
    values, clusters = population.draw(design, rng)
    moved = np.random.default_rng(1).permutation(population.n_tests) % 2 == 0
    error = 1 / math.sqrt(len(values))
    found: Measured = {}
    for side in SIDES:
        for shift in SHIFTS:
            # Instead of values up, thresholds down.
            limits = np.where(moved, shift * error * (-1 if side == "greater" else 1), 0.0)
            for method, adjusted in _discoveries(values, limits, clusters, side):
                key, rejected = f"{side}/{shift}/{method}", adjusted <= ALPHA
                found[f"{key}/false"] = _share_of(rejected & ~moved, rejected)
                found[f"{key}/power"] = float(rejected[moved].mean())
    return found


def answers(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure the answers at the default thresholds, and the wrong ones among them."""
    values, clusters = population.draw(design, rng)
    limits = population.thresholds
    adjusted = [dict(_discoveries(values, limits, clusters, side)) for side in SIDES]
    found: Measured = {}
    for method, above in adjusted[0].items():
        below = adjusted[1][method]
        given = answers_of(np.minimum(above, below) <= ALPHA, below - above)
        wrong = ((given == "yes") & (limits > 0)) | ((given == "no") & (limits < 0))
        for name, true in (("yes", limits < 0), ("no", limits > 0)):
            own = given == name
            found[f"{method}/{name}/given"] = float(own.mean())
            found[f"{method}/{name}/of the true ones"] = _share_of(own & true, true)
            found[f"{method}/{name}/wrong"] = _share_of(wrong & own, own)
        decided = (given == "yes") | (given == "no")
        found[f"{method}/both/wrong"] = _share_of(wrong, decided)
    return found


def _share_of(some: NDArray[np.bool_], all_of: NDArray[np.bool_]) -> float:
    """Return the share of all that are some; 0 of none."""
    return float(some.sum() / max(1, all_of.sum()))


def _discoveries(
    values: FloatArray, limits: FloatArray, clusters: Clusters, side: Alternative
) -> Iterator[tuple[str, FloatArray]]:
    """Yield (correction of t, adjusted p-values)."""
    p = t_test(Sample.of(values, clusters), limits, alternative=side).p_value
    for method in DISCOVERY:
        yield method, adjust_p_values(p, method)


def intervals(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure means outside their intervals, by side, and widths beside those of t."""
    values, clusters = population.draw(design, rng)
    plain = t_interval(values)
    by_name = {"t": plain}
    if clusters is not None:
        by_name["cluster t"] = t_interval(Sample.of(values, clusters))
    found: Measured = {}
    for name, result in by_name.items():
        low, high, there = result.ci_low, result.ci_high, ~np.isnan(result.ci_low)
        for what, is_so in (
            ("covers", (low <= 0) & (high >= 0)),
            ("mean above it", high < 0),
            ("mean below it", low > 0),
        ):
            found[f"{name}/{what}"] = np.where(there, is_so, np.nan)
        width = (high - low) / (plain.ci_high - plain.ci_low)
        found[f"{name}/width by that of t#"] = float(np.nanmedian(width))
    return found


def planning(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Measure the share of heads decided with as many examples as planned, by size of the corpus.

    Plans are made by all scores, and by a pilot. What is looked at in a corpus of n examples are
    the heads that were planned to need at most n of them, and at least 4/5 of n.
    """
    whole = replace(population.scores, documents=("",) * population.scores.n_examples)
    plans = {
        "all scores": population.scores if design.by_document else whole,
        "pilot": population.draw_scores(design, rng),
    }
    per_document = len(population.scores.values) / len(population.documents)
    given = {}
    for size in PLANNED:
        units = round(size / per_document) if design.by_document else size
        given[size] = _given(population, Design("", units, design.by_document), rng)
    found: Measured = {}
    for source, scores in plans.items():
        plan = power_analysis(scores).frame.set_index(["role", "layer", "head"])
        needed, wanted = plan["corpus_examples"], plan["direction"]
        for size in PLANNED:
            due = plan.index[(needed <= size) & (needed > 0.8 * size)]
            decided = given[size].reindex(due) == wanted[due]
            found[f"{source}/{size}/heads#"] = float(len(due))
            found[f"{source}/{size}/decided"] = float(decided.mean()) if len(due) else math.nan
    return found


def _given(population: Population, design: Design, rng: np.random.Generator) -> pd.Series[str]:
    """Return the answers to every role, layer and head, as `assign_roles` does."""
    scores, options = population.draw_scores(design, rng), TestOptions()
    columns = HeadColumns.of(scores)
    hypotheses = hypotheses_of(scores, columns, options)
    above, below = (find_p_values(hypotheses, options, side) for side in SIDES)
    labels = pd.DataFrame(columns.labels)[["role", "layer", "head"]]
    answers = answer(above, below, options.alpha)
    return pd.Series(answers, index=pd.MultiIndex.from_frame(labels))


def _rejected(p: FloatArray) -> FloatArray:
    """Return 1 or 0 per test, NaN without a p-value."""
    return np.where(np.isnan(p), np.nan, p <= ALPHA)


def _any_rejected(adjusted: FloatArray) -> float:
    return float((adjusted <= ALPHA).any())


# Which replicates there are, and their tables.


@dataclass(frozen=True)
class Section:
    """A kind of measurement; ``heavy`` is how many replicates large samples get."""

    title: str
    measure: Callable[[Population, Design, np.random.Generator], Measured]
    designs: tuple[Design, ...]
    replicates: int
    heavy: int


SECTIONS = {
    "population": Section("The scores", describe, EXAMPLES[:1], 1, 1),
    "families": Section("At least one rejection, all H0 true, %", families, DESIGNS, 200, 60),
    "answers": Section("Answers at the default thresholds, %", answers, DESIGNS, 40, 10),
    "planning": Section("Planning, %", planning, PILOTS, 20, 20),
    "level": Section("Each test by itself, %", level, DESIGNS, 20, 5),
    "intervals": Section("Intervals at 95 %", intervals, DESIGNS, 20, 5),
    "mixture": Section("Half of H0 true, %", mixture, SOME_DESIGNS, 20, 5),
}
PARTS = 5


def replicates(
    population: Population, name: str, design: Design, quick: bool
) -> Iterator[Measured]:
    """Yield the measurements of all replicates of a section and a kind of sample."""
    section = SECTIONS[name]
    total = section.heavy if design.size >= LARGE else section.replicates
    parts = 1 if quick or total == 1 else PARTS
    for part in range(parts):
        rng = np.random.default_rng([zlib.crc32(f"{name}/{design.name}".encode()), part])
        for _ in range(min(total, 2) if quick else total // parts):
            yield section.measure(population, design, rng)


def table_of(population: Population, name: str, quick: bool) -> str:
    """Measure a section and return its table: means with their Monte Carlo errors."""
    rows: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for design in SECTIONS[name].designs:
        sums: dict[str, list[float]] = defaultdict(list)
        for found in replicates(population, name, design, quick):
            for key, measured in found.items():
                there = np.asarray(measured)[~np.isnan(measured)]
                if there.size:
                    sums[key].append(float(there.mean()))
        for key, values in sums.items():
            *row, column = key.removesuffix("#").split("/")
            mean = np.mean(values)
            error = np.std(values) / math.sqrt(max(len(values) - 1, 1))
            text = f"{mean:.2f}" if key.endswith("#") else f"{100 * mean:.1f} ± {100 * error:.1f}"
            rows[design.name, *row][column] = text
    frame = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    frame.index = [", ".join(row) for row in rows]
    return frame.to_markdown()


def main() -> None:
    """Parse the command line; print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scores", type=Path, help="folder of scores")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="two replicates of each")
    given = parser.parse_args()
    population = Population.load(given.scores)
    for name in given.only:
        print(
            f"\n## {SECTIONS[name].title}\n\n{table_of(population, name, given.quick)}", flush=True
        )


if __name__ == "__main__":
    main()
