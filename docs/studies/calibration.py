"""Whether tests, corrections and intervals keep what they promise on the scores of real heads.

python -m docs.studies.calibration FILE.jsonl --scores DIR [--quick] [--workers N]   measure, print
python -m docs.studies.calibration FILE.jsonl                                        print

DIR is what `headroles score` or `headroles classify` wrote. Its scores, a column per head and
role, serve as the population: examples are drawn from it with replacement, all columns together,
so that samples are as bounded, skewed, correlated and full of gaps as scores are. Every column is
shifted to mean 0, and H0, mean <= 0 or mean >= 0, is true at its limit. Every column is divided
by its deviation too, which changes no test and gives planted effects a unit.

Samples are a number of examples, or whole documents drawn with replacement. "+ effect" adds to
every value a random number that it shares with the other values of its document, of an
intra-class correlation of 0.2: what much dependence would do, whatever there is in the corpus.
The section "answers" leaves the means where they are and asks for the tool's answers, with the
default thresholds: how many of the "yes" and "no" are wrong.

A cell is a part of the replicates of one section and one kind of sample. Finished cells are
lines of FILE.jsonl; a second start goes on with those that are missing. Each cell has a seed of
its own, so figures depend on neither the order of the cells nor the number of workers.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headroles import HeadScores
from headroles.inference import (
    OK,
    Alternative,
    Intervals,
    Sample,
    adjust_p_values,
    bca_interval,
    bootstrap_t_interval,
    bootstrap_t_test,
    power_of,
    required_examples,
    sign_flip_test,
    simultaneous_intervals,
    step_down_max_t,
    t_interval,
    t_test,
    wilcoxon_signed_rank,
)
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing import TestOptions

Array: TypeAlias = NDArray[np.float64]
Clusters: TypeAlias = NDArray[np.intp] | None
Measured: TypeAlias = dict[str, float | Array]
"""By name: one number of a replicate, or one per column (NaN: none), of which the mean counts."""

ALPHA = 0.05
SIDES: tuple[Alternative, ...] = ("greater", "less")
CORRECTIONS = ("none", "bonferroni", "holm", "hochberg", "fdr_bh", "fdr_by", "fdr_tsbh")
SKEWNESS_RULES = (25, 400)
"""Values that a column should have, in squared skewnesses: Cochran's (1977) rule, and stricter."""
DISCOVERY = ("fdr_bh", "fdr_by", "fdr_tsbh", "holm")
SHIFTS = (2, 4, 6)
"""Planted effects, in standard errors of a mean of that many independent examples."""
EFFECTS = (0.2, 0.5)
"""Distances from the threshold, in deviations, that are planned for."""
POWER = 0.8
PILOT = 100
CAP = 100_000
"""Plans for more examples than this are counted, but not carried out."""
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
SKEWNESS_BANDS = (-2, -0.5, 0.5, 2, 4, 8)
SHARED = 0.2
"""Intra-class correlation of the planted effect."""


@dataclass(frozen=True)
class Design:
    """How a sample is drawn: so many examples, or whole documents."""

    name: str
    size: int
    by_document: bool = False
    planted: bool = False


EXAMPLES = tuple(Design(f"{n} examples", n) for n in (20, 100, 1000))
DOCUMENTS = tuple(Design(f"{n} documents", n, by_document=True) for n in (10, 20, 50, 300))
PLANTED = tuple(Design(f"{n} documents + effect", n, True, planted=True) for n in (10, 20, 50))
DESIGNS = EXAMPLES + DOCUMENTS + PLANTED
SOME_DESIGNS = (*EXAMPLES, DOCUMENTS[1], DOCUMENTS[3], PLANTED[1])
LARGE = 300
"""Samples of so many examples or documents get fewer replicates."""


@dataclass(frozen=True)
class Population:
    """Scores (examples, tests) of mean 0 and deviation 1, NaN for missing.

    ``documents`` are the rows of each document. ``thresholds`` (tests,) are those that the tool
    takes, moved and scaled as the columns were. ``digest`` tells this population from others.
    """

    values: Array
    documents: tuple[NDArray[np.intp], ...]
    thresholds: Array
    digest: str

    @classmethod
    def load(cls, folder: Path, n_columns: int) -> Population:
        """From a folder of scores, columns chosen evenly in the order of their skewness."""
        scores = HeadScores.load(folder)
        tested = hypotheses_of(scores, HeadColumns.of(scores), TestOptions())
        values, limits = tested.sample.values, tested.threshold
        usable = Sample.of(values).moments.status == OK
        read = values.tobytes() + limits.tobytes()
        values, thresholds = values[:, usable].astype(np.float64), limits[usable]
        mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        values, thresholds = (values - mean) / deviation, (thresholds - mean) / deviation
        by_skewness = np.argsort(np.nanmean(values**3, axis=0))
        n_chosen = min(n_columns, len(by_skewness))
        places = (np.arange(n_chosen) + 0.5) * len(by_skewness) / n_chosen
        chosen = np.sort(by_skewness[places.astype(int)])
        labels = np.asarray(scores.documents)
        # The digest is of what was read: what is computed from it may differ in the last digit.
        return cls(
            values[:, chosen],
            tuple(np.flatnonzero(labels == name) for name in np.unique(labels)),
            thresholds[chosen],
            hashlib.sha256(read).hexdigest()[:16],
        )

    @property
    def n_tests(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def codes(self) -> NDArray[np.intp]:
        """Number of the document of each example (examples,)."""
        codes = np.empty(len(self.values), dtype=np.intp)
        for number, rows in enumerate(self.documents):
            codes[rows] = number
        return codes

    def draw(self, design: Design, rng: np.random.Generator) -> tuple[Array, Clusters]:
        """A sample, and the clusters of its examples if it was drawn by document."""
        if not design.by_document:
            return self.values[rng.integers(0, len(self.values), design.size)], None
        # A document that is drawn twice is two clusters.
        drawn = [self.documents[k] for k in rng.integers(0, len(self.documents), design.size)]
        clusters = np.repeat(np.arange(design.size), [len(rows) for rows in drawn])
        values = self.values[np.concatenate(drawn)]
        if design.planted:
            values = values + _document_effect(design.size, self.n_tests, rng)[clusters]
        return values, clusters


def _document_effect(n_documents: int, n_tests: int, rng: np.random.Generator) -> Array:
    """Normal effects (documents, tests), half of their variance the same for all columns."""
    common, own = rng.normal(size=(n_documents, 1)), rng.normal(size=(n_documents, n_tests))
    return np.asarray(math.sqrt(SHARED / (1 - SHARED)) * (common + own) / math.sqrt(2))


# What is measured: each function returns the measurements of one replicate.


def describe(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """The population itself: skewness, gaps, and how alike the examples of a document are."""
    values, codes = population.values, population.codes()
    plain, clustered = Sample.of(values).moments, Sample.of(values, codes).moments
    return {
        "tests": float(population.n_tests),
        "examples": float(len(values)),
        "documents": float(len(population.documents)),
        "skewness": np.nanmean(values**3, axis=0),
        "kurtosis": np.nanmean(values**4, axis=0),
        "share missing": np.isnan(values).mean(axis=0),
        "intra-class correlation": _intra_class_correlation(values, codes),
        "design effect": (clustered.standard_error / plain.standard_error) ** 2,
    }


def _intra_class_correlation(values: Array, codes: NDArray[np.intp]) -> Array:
    """One-way analysis of variance, clusters of different sizes, per column (tests,)."""
    found = []
    for column in values.T:
        there = ~np.isnan(column)
        x, labels = column[there], np.unique(codes[there], return_inverse=True)[1]
        sizes = np.bincount(labels)
        n, k = len(x), len(sizes)
        means = np.bincount(labels, x) / sizes
        between = (sizes * (means - x.mean()) ** 2).sum() / (k - 1)
        within = ((x - means[labels]) ** 2).sum() / (n - k)
        typical = (n - (sizes**2).sum() / n) / (k - 1)
        found.append((between - within) / (between + (typical - 1) * within))
    return np.array(found)


def level(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Wrong rejections of each test by itself."""
    values, clusters = population.draw(design, rng)
    found: Measured = {}
    for side in SIDES:
        for name, p in _all_tests(values, clusters, side, 999, rng):
            found[f"{name}/{side}/{ALPHA}"] = _rejected(p, ALPHA)
            found[f"{name}/{side}/{ALPHA / 10}"] = _rejected(p, ALPHA / 10)
    return found


def tail(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Wrong rejections where corrections look: at the level divided by the number of tests."""
    values, clusters = population.draw(design, rng)
    found: Measured = {}
    for side in SIDES:
        for name, p in _all_tests(values, clusters, side, 9_999, rng):
            found[f"{name}/{side}/tail"] = _rejected(p, ALPHA / population.n_tests)
            for method in ("holm", "fdr_bh"):
                found[f"{name}/{side}/{method}"] = _any_rejected(adjust_p_values(p, method))
    return found


def _all_tests(
    values: Array, clusters: Clusters, side: Alternative, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """(test, p-values), without clusters, and with them if there are any."""
    yield "t", t_test(values, 0, alternative=side).p_value
    yield "Wilcoxon", wilcoxon_signed_rank(values, 0, side).p_value
    options: dict[str, Any] = {"n_resamples": n_resamples, "seed": rng, "alternative": side}
    yield "sign flips", sign_flip_test(values, 0, **options)
    if clusters is None:
        yield "bootstrap-t", bootstrap_t_test(values, 0, **options)
        return
    yield "cluster t", t_test(values, 0, clusters=clusters, alternative=side).p_value
    yield "cluster sign flips", sign_flip_test(values, 0, clusters=clusters, **options)
    yield "cluster bootstrap-t", bootstrap_t_test(values, 0, clusters=clusters, **options)


def families(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Any wrong rejection in the family, all H0 true: p-values of t, and max-T."""
    values, clusters = population.draw(design, rng)
    skewed = {rule: _too_skewed(values, rule) for rule in SKEWNESS_RULES}
    found: Measured = {f"left out/{rule}": float(out.mean()) for rule, out in skewed.items()}
    for side in SIDES:
        p = t_test(values, 0, clusters=clusters, alternative=side).p_value
        for method in CORRECTIONS:
            found[f"{side}/{method}"] = _any_rejected(adjust_p_values(p, method))
        for rule, out in skewed.items():
            kept = np.where(out, np.nan, adjust_p_values(p, "fdr_bh"))
            found[f"{side}/fdr_bh/{rule}"] = _any_rejected(kept)
        found[f"{side}/max-T"] = _any_rejected(_max_t(values, 0, clusters, side, rng))
        found[f"t/{side}/tail"] = _rejected(p, ALPHA / population.n_tests)
    return found


def mixture(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """False discoveries and power where half of the columns, always the same, have an effect."""
    values, clusters = population.draw(design, rng)
    moved = np.random.default_rng(1).permutation(population.n_tests) % 2 == 0
    error = 1 / math.sqrt(len(values))
    found: Measured = {}
    for side in SIDES:
        for shift in SHIFTS:
            # Instead of values up, thresholds down.
            limits = np.where(moved, shift * error * (-1 if side == "greater" else 1), 0.0)
            for method, adjusted in _discoveries(values, limits, clusters, side, rng):
                key, rejected = f"{side}/{shift}/{method}", adjusted <= ALPHA
                found[f"{key}/false"] = _share_of(rejected & ~moved, rejected)
                found[f"{key}/power"] = float(rejected[moved].mean())
    return found


def answers(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """What is answered at the default thresholds, and how much of it is wrong."""
    values, clusters = population.draw(design, rng)
    limits = population.thresholds
    found: Measured = {}
    for side, answer, true in zip(SIDES, ("yes", "no"), (limits < 0, limits > 0), strict=True):
        for method, adjusted in _discoveries(values, limits, clusters, side, rng):
            given = adjusted <= ALPHA
            found[f"{method}/{answer}/given"] = float(given.mean())
            found[f"{method}/{answer}/of the true ones"] = _share_of(given & true, true)
            found[f"{method}/{answer}/wrong"] = _share_of(given & ~true, given)
    return found


def _share_of(some: NDArray[np.bool_], all_of: NDArray[np.bool_]) -> float:
    """How many of all are some; 0 if there are none."""
    return float(some.sum() / max(1, all_of.sum()))


def _discoveries(
    values: Array, limits: Array, clusters: Clusters, side: Alternative, rng: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """(procedure, adjusted p-values)."""
    p = t_test(values, limits, clusters=clusters, alternative=side).p_value
    for method in DISCOVERY:
        yield method, adjust_p_values(p, method)
    yield "max-T", _max_t(values, limits, clusters, side, rng)
    by_bootstrap = bootstrap_t_test(
        values, limits, n_resamples=1_999, seed=rng, clusters=clusters, alternative=side
    )
    yield "fdr_bh of bootstrap-t", adjust_p_values(by_bootstrap, "fdr_bh")


def intervals(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Means outside their intervals, by side, and widths beside those of t."""
    values, clusters = population.draw(design, rng)
    options: dict[str, Any] = {"n_resamples": 999, "seed": rng, "clusters": clusters}
    plain = t_interval(values)
    found_intervals: dict[str, Intervals] = {
        "t": plain,
        "bootstrap-t": bootstrap_t_interval(values, **options),
        "BCa": bca_interval(values, **options),
    }
    if clusters is not None:
        found_intervals = {"cluster t": t_interval(values, clusters=clusters), **found_intervals}
    found: Measured = {}
    width = plain.ci_high - plain.ci_low
    for name, result in found_intervals.items():
        for what, missed in _misses(result).items():
            found[f"{name}/{what}"] = np.where(np.isnan(result.ci_low), np.nan, missed)
        found[f"{name}/width"] = float(np.nanmedian((result.ci_high - result.ci_low) / width))
    together = simultaneous_intervals(values, **options)
    for what, missed in _misses(together).items():
        found[f"simultaneous/{what}"] = float(missed.any())
    found["simultaneous/width"] = float(np.nanmedian((together.ci_high - together.ci_low) / width))
    return found


def _misses(result: Intervals) -> dict[str, NDArray[np.bool_]]:
    """Which intervals (tests,) the mean, 0, lies above, below, or either."""
    above, below = result.ci_high < 0, result.ci_low > 0
    return {"above": above, "below": below, "missed": above | below}


def planning(population: Population, design: Design, rng: np.random.Generator) -> Measured:
    """Power of samples of the planned size: by a pilot, and by the true effect."""
    pilot, _ = population.draw(design, rng)
    found: Measured = {}
    for effect in EFFECTS:
        for name, alpha in (("0.05", ALPHA), ("0.05 / tests", ALPHA / population.n_tests)):
            plans = {"pilot": pilot, "population": population.values}
            for source, values in plans.items():
                needed = required_examples(values, -effect, alpha, POWER)
                feasible = needed <= CAP
                key = f"{effect}/{name}/{source}"
                found[f"{key}/feasible"] = float(feasible.mean())
                found[f"{key}/examples"] = float(np.nanmedian(needed))
                expected = power_of(needed[feasible], effect, alpha)
                found[f"{key}/expected"] = float(expected.mean())
                rejected = _carried_out(population, needed, effect, alpha, rng)
                found[f"{key}/observed"] = float(np.nanmean(rejected))
    return found


def _carried_out(
    population: Population, needed: Array, effect: float, alpha: float, rng: np.random.Generator
) -> Array:
    """Whether a sample of the needed size rejects (tests,); NaN without a feasible plan."""
    rejected = np.full(len(needed), np.nan)
    for test in np.flatnonzero(needed <= CAP):
        column = population.values[:, test]
        sample = rng.choice(column[~np.isnan(column)], int(needed[test]))[:, None]
        rejected[test] = t_test(sample, -effect).p_value[0] <= alpha
    return rejected


def _max_t(
    values: Array,
    limits: Array | float,
    clusters: Clusters,
    side: Alternative,
    rng: np.random.Generator,
) -> Array:
    return step_down_max_t(
        values, limits, n_resamples=999, seed=rng, clusters=clusters, alternative=side
    )


def _rejected(p: Array, alpha: float) -> Array:
    """1 or 0 per test, NaN where there is no p-value."""
    return np.where(np.isnan(p), np.nan, p <= alpha)


def _any_rejected(adjusted: Array) -> float:
    return float((adjusted <= ALPHA).any())


def _too_skewed(values: Array, rule: int) -> NDArray[np.bool_]:
    """Columns (tests,) with fewer values than ``rule`` times their squared sample skewness."""
    centred = values - np.nanmean(values, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = np.nanmean(centred**3, axis=0) / np.nanmean(centred**2, axis=0) ** 1.5
    there = (~np.isnan(values)).sum(axis=0)
    return np.asarray(there < rule * skewness**2, dtype=np.bool_)


# Which replicates there are, and doing them.


@dataclass(frozen=True)
class Section:
    """A kind of measurement; ``heavy`` is how many replicates large samples get."""

    measure: Callable[[Population, Design, np.random.Generator], Measured]
    designs: tuple[Design, ...]
    replicates: int
    heavy: int


SECTIONS = {
    "population": Section(describe, EXAMPLES[:1], 1, 1),
    "level": Section(level, DESIGNS, 400, 100),
    "families": Section(families, DESIGNS, 600, 300),
    "intervals": Section(intervals, DESIGNS, 300, 100),
    "tail": Section(tail, SOME_DESIGNS, 120, 40),
    "mixture": Section(mixture, SOME_DESIGNS, 120, 40),
    "answers": Section(answers, DESIGNS, 120, 40),
    "planning": Section(planning, (Design(f"pilots of {PILOT} examples", PILOT),), 60, 60),
}


@dataclass(frozen=True)
class Cell:
    """A part of the replicates of one section and design."""

    section: str
    design: str
    part: int
    replicates: int


def all_cells(quick: bool) -> list[Cell]:
    """What a whole run consists of: parts that take seconds to a minute each."""
    cells = []
    for name, section in SECTIONS.items():
        for design in section.designs:
            total = section.heavy if design.size >= LARGE else section.replicates
            parts = 1 if quick or total == 1 else 10
            size = min(total, 2) if quick else total // parts
            cells += [Cell(name, design.name, part, size) for part in range(parts)]
    return cells


def measure_cell(population: Population, cell: Cell) -> dict[str, Any]:
    """The line of a cell: per measurement count, sum and sum of squares over its replicates.

    Measurements that have a value per column also give, per column, the count and the sum.
    """
    section = SECTIONS[cell.section]
    design = next(d for d in section.designs if d.name == cell.design)
    rng = np.random.default_rng([zlib.crc32(f"{cell.section}/{cell.design}".encode()), cell.part])
    sums: dict[str, Array] = defaultdict(lambda: np.zeros(3))
    columns: dict[str, Array] = defaultdict(lambda: np.zeros((2, population.n_tests)))
    for _ in range(cell.replicates):
        for name, measured in section.measure(population, design, rng).items():
            if isinstance(measured, np.ndarray):
                columns[name] += np.array([~np.isnan(measured), np.nan_to_num(measured)])
                measured = float(np.nanmean(measured))
            if not math.isnan(measured):
                sums[name] += [1, measured, measured**2]
    return {
        "cell": [cell.section, cell.design, cell.part],
        "sums": {name: numbers.tolist() for name, numbers in sums.items()},
        "columns": {name: numbers.tolist() for name, numbers in columns.items()},
    }


_population: Population | None = None
"""Of a worker process: sent to it once, not with every cell."""


def _start_worker(population: Population) -> None:
    global _population
    _population = population


def _measure_in_worker(cell: Cell) -> dict[str, Any]:
    assert _population is not None
    return measure_cell(_population, cell)


def measure_missing(file: Path, population: Population, quick: bool, workers: int) -> None:
    """Append the cells that the file does not hold yet."""
    whole = [population.digest, population.n_tests, quick]
    lines = read_lines(file)
    if any(line["of"] != whole for line in lines):
        sys.exit(
            f"error: {file} holds cells of other scores, --columns or --quick; give a new file"
        )
    done = {tuple(line["cell"]) for line in lines}
    cells = [c for c in all_cells(quick) if (c.section, c.design, c.part) not in done]
    # One thread per worker: the products are small, and two of them at once are better.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), _start_worker, (population,)
    )
    with pool, file.open("a", encoding="utf-8") as stream:
        if file.stat().st_size and not file.read_bytes().endswith(b"\n"):
            stream.write("\n")  # what an interrupted start left stays a line of its own
        jobs = [pool.submit(_measure_in_worker, cell) for cell in cells]
        for count, job in enumerate(as_completed(jobs), start=1):
            stream.write(json.dumps({"of": whole, **job.result()}) + "\n")
            stream.flush()
            print(f"\r{count} of {len(cells)} cells", end="", file=sys.stderr)
    print(file=sys.stderr)


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The finished cells of a file; half a line, left by an interrupted start, is none."""
    found = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


# The tables.


@dataclass(frozen=True)
class Results:
    """All cells of a file, by section, design and measurement.

    ``sums`` are (count, sum, sum of squares) over replicates; ``columns`` (2, 2, tests) count and
    sum of every column, in either half of the parts.
    """

    sums: Mapping[tuple[str, str, str], Array]
    columns: Mapping[tuple[str, str, str], Array]

    @classmethod
    def read(cls, file: Path) -> Results:
        """Sum up the parts of every section and design."""
        sums: dict[tuple[str, str, str], Any] = defaultdict(lambda: np.zeros(3))
        columns: dict[tuple[str, str, str], Any] = {}
        for line in read_lines(file):
            section, design, part = line["cell"]
            for name, numbers in line["sums"].items():
                sums[section, design, name] += np.array(numbers)
            for name, counts in line["columns"].items():
                halves = columns.setdefault(
                    (section, design, name), np.zeros((2, *np.shape(counts)))
                )
                halves[part % 2] += np.array(counts)
        return cls(sums, columns)

    def mean(self, section: str, design: Design, name: str) -> tuple[float, float]:
        """Mean over replicates and its Monte Carlo error; NaN if it was not measured."""
        n, total, squares = self.sums.get((section, design.name, name), np.full(3, np.nan))
        if not n > 0:
            return math.nan, math.nan
        variance = max(0.0, squares / n - (total / n) ** 2)
        return total / n, math.sqrt(variance / max(n - 1, 1))

    def names(self, section: str, design: Design) -> list[str]:
        """Measurements of a section and design, in the order of their making."""
        return [name for s, d, name in self.sums if (s, d) == (section, design.name)]

    def percent(self, section: str, design: Design, name: str) -> str:
        """A share as a percentage, with its error."""
        mean, error = self.mean(section, design, name)
        return "" if math.isnan(mean) else f"{100 * mean:.1f} ± {100 * error:.1f}"

    def ratio(self, section: str, design: Design, name: str, nominal: float) -> str:
        """A share as a multiple of what it should be, with its error."""
        mean, error = self.mean(section, design, name)
        return "" if math.isnan(mean) else f"{mean / nominal:.1f} ± {error / nominal:.1f}"

    def rates(self, section: str, design: Design, name: str) -> Array | None:
        """Mean of every column (tests,), None if it was not measured."""
        halves = self.columns.get((section, design.name, name))
        if halves is None:
            return None
        count, total = halves.sum(axis=0)
        return np.asarray(total / np.maximum(count, 1))

    def high(self, section: str, design: Design, name: str) -> str:
        """Rate that one column in twenty exceeds."""
        rates = self.rates(section, design, name)
        return "" if rates is None else f"{100 * np.quantile(rates, 0.95):.0f}"

    def worst(self, section: str, design: Design, name: str) -> str:
        """Rate of the worst column: found in one half of the replicates, measured in the other."""
        halves = self.columns.get((section, design.name, name))
        if halves is None or (halves[:, 0].sum(axis=1) == 0).any():
            return ""
        rates = halves[:, 1] / np.maximum(halves[:, 0], 1)
        return f"{100 * rates[1, int(np.argmax(rates[0]))]:.0f}"


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose first column is text and whose others are figures."""
    names = list(header)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table_of_population(results: Results) -> str:
    """Quantiles over columns."""
    rows, counts = [], []
    for name in results.names("population", EXAMPLES[0]):
        columns = results.rates("population", EXAMPLES[0], name)
        if columns is None:
            counts.append(f"{results.mean('population', EXAMPLES[0], name)[0]:.0f} {name}")
        else:
            rows.append([name, *(f"{q:.2f}" for q in np.quantile(columns, QUANTILES))])
    header = ["over columns", *(f"{100 * q:g} %" for q in QUANTILES)]
    return ", ".join(counts) + "\n\n" + markdown(header, rows)


def table_of_levels(results: Results) -> str:
    """A table per side: one row per design and test."""
    header = ["sample", "test", "{}, %", "one in 20", "worst", "at 0.005", "at 0.05 / tests"]
    tables = []
    for side in SIDES:
        rows = [
            _level_row(results, design, test, side)
            for design in DESIGNS
            for test in dict.fromkeys(n.split("/")[0] for n in results.names("level", design))
        ]
        tables.append(markdown([name.format(side) for name in header], rows))
    return "\n\n".join(tables)


def _level_row(results: Results, design: Design, test: str, side: str) -> list[str]:
    name, rare = f"{test}/{side}/{ALPHA}", ALPHA / 10
    return [
        design.name,
        test,
        results.percent("level", design, name),
        results.high("level", design, name),
        results.worst("level", design, name),
        results.ratio("level", design, f"{test}/{side}/{rare}", rare),
        _tail_ratio(results, design, test, side),
    ]


def _tail_ratio(results: Results, design: Design, test: str, side: str) -> str:
    nominal = ALPHA / results.mean("population", EXAMPLES[0], "tests")[0]
    # The t-test costs nothing: the families have more replicates of it.
    section = "families" if test == _proper_t(design) else "tail"
    name = f"{'t' if section == 'families' else test}/{side}/tail"
    return results.ratio(section, design, name, nominal)


def _proper_t(design: Design) -> str:
    """The t-test that takes a sample for what it is."""
    return "cluster t" if design.by_document else "t"


def table_of_skewness(results: Results) -> str:
    """The error of the t-test by the skewness of the columns."""
    skewness = results.rates("population", EXAMPLES[0], "skewness")
    if skewness is None:
        return "not measured yet"
    band = np.digitize(skewness, SKEWNESS_BANDS)
    rows = []
    for side in SIDES:
        for design in DESIGNS:
            rates = results.rates("level", design, f"{_proper_t(design)}/{side}/{ALPHA}")
            means = [
                "" if rates is None else f"{100 * rates[band == place].mean():.1f}"
                for place in range(len(SKEWNESS_BANDS) + 1)
                if (band == place).any()
            ]
            rows.append([design.name, side, *means])
    limits = [f"{limit:g}" for limit in SKEWNESS_BANDS]
    names = [f"< {limits[0]}"]
    names += [f"{low} to {high}" for low, high in itertools.pairwise(limits)]
    names += [f"> {limits[-1]}"]
    counts = np.bincount(band, minlength=len(names))
    header = [f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count]
    return markdown(["sample", "side", *header], rows)


def table_of_families(results: Results) -> str:
    """Any wrong rejection, all H0 true; then the same for columns that are not too skewed."""
    columns = {method: "{side}/" + method for method in (*CORRECTIONS, "max-T")}
    for rule in SKEWNESS_RULES:
        columns[f"fdr_bh, n >= {rule} skewness²"] = f"{{side}}/fdr_bh/{rule}"
        columns[f"n < {rule} skewness²"] = f"left out/{rule}"
    rows = []
    for side in SIDES:
        for design in DESIGNS:
            names = [name.format(side=side) for name in columns.values()]
            row = [results.percent("families", design, name) for name in names]
            rates = results.rates("families", design, f"t/{side}/tail")
            one = "" if rates is None else f"{100 * rates.max() / max(rates.sum(), 1e-9):.0f}"
            rows.append([design.name, side, *row, one])
    return markdown(["sample", "side", *columns, "of one column, %"], rows)


def table_of_corrected_tests(results: Results) -> str:
    """Any wrong rejection after Holm or Benjamini-Hochberg, by test."""
    rows = []
    for design in SOME_DESIGNS:
        for test in dict.fromkeys(n.split("/")[0] for n in results.names("tail", design)):
            keys = [f"{test}/{side}/{method}" for side in SIDES for method in ("holm", "fdr_bh")]
            rows.append([design.name, test, *(results.percent("tail", design, k) for k in keys)])
    columns = [f"{side}, {method}" for side in SIDES for method in ("holm", "fdr_bh")]
    return markdown(["sample", "test", *columns], rows)


def table_of_mixtures(results: Results) -> str:
    """False discoveries and power."""
    methods = [*DISCOVERY, "max-T", "fdr_bh of bootstrap-t"]
    rows = []
    for side in SIDES:
        for design in SOME_DESIGNS:
            for shift in SHIFTS:
                row = [design.name, side, str(shift)]
                for method in methods:
                    key = f"{side}/{shift}/{method}"
                    power = results.mean("mixture", design, f"{key}/power")[0]
                    false = results.percent("mixture", design, f"{key}/false")
                    row.append(f"{false}, {100 * power:.0f}" if false else "")
                rows.append(row)
    return markdown(["sample", "side", "effect", *methods], rows)


def table_of_answers(results: Results) -> str:
    """How many answers are given at the default thresholds, and how many of them are wrong."""
    rows = []
    for design in DESIGNS:
        for method in dict.fromkeys(n.split("/")[0] for n in results.names("answers", design)):
            row = [design.name, method]
            for answer in ("yes", "no"):
                for what in ("given", "of the true ones"):
                    share = results.mean("answers", design, f"{method}/{answer}/{what}")[0]
                    row.append(f"{100 * share:.0f}")
                row.append(results.percent("answers", design, f"{method}/{answer}/wrong"))
            rows.append(row)
    header = [f"{a}{w}" for a in ("yes", "no") for w in (", % of all", ", % of true", ", % wrong")]
    return markdown(["sample", "method", *header], rows)


def table_of_intervals(results: Results) -> str:
    """Coverage, what is missed on either side, and width."""
    rows = []
    for design in DESIGNS:
        for name in dict.fromkeys(n.split("/")[0] for n in results.names("intervals", design)):
            missed, error = results.mean("intervals", design, f"{name}/missed")
            sides = [
                f"{100 * results.mean('intervals', design, f'{name}/{side}')[0]:.1f}"
                for side in ("above", "below")
            ]
            width = results.mean("intervals", design, f"{name}/width")[0]
            covered = f"{100 * (1 - missed):.1f} ± {100 * error:.1f}"
            rows.append([design.name, name, covered, *sides, f"{width:.2f}"])
    header = ["sample", "interval", "covers, %", "mean above it", "mean below it", "width / t"]
    return markdown(header, rows)


def table_of_plans(results: Results) -> str:
    """Promised, expected and observed power."""
    design = SECTIONS["planning"].designs[0]
    rows = []
    for key in dict.fromkeys(n.rsplit("/", 1)[0] for n in results.names("planning", design)):
        effect, rest = key.split("/", 1)
        alpha, source = rest.rsplit("/", 1)
        examples = results.mean("planning", design, f"{key}/examples")[0]
        shares = [
            results.percent("planning", design, f"{key}/{what}")
            for what in ("feasible", "expected", "observed")
        ]
        rows.append([effect, alpha, source, f"{examples:.0f}", shares[0], "80", *shares[1:]])
    header = ["effect", "alpha", "plan by", "median examples", "feasible, %"]
    return markdown([*header, "promised power, %", "by the true effect", "observed"], rows)


TABLES = {
    "Population": table_of_population,
    "Each test by itself": table_of_levels,
    "The t-test by the skewness of the columns, %": table_of_skewness,
    "Families, all H0 true": table_of_families,
    "Families by test, all H0 true": table_of_corrected_tests,
    "Families, half of H0 true: false discoveries in %, power in %": table_of_mixtures,
    "Answers at the default thresholds": table_of_answers,
    "Intervals": table_of_intervals,
    "Planning": table_of_plans,
}


def main() -> None:
    """Parse the command line; measure what is missing; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="JSON lines, one per finished cell")
    parser.add_argument("--scores", type=Path, help="folder of scores; none: only print")
    parser.add_argument("--quick", action="store_true", help="two replicates of each, 40 columns")
    parser.add_argument(
        "--columns", type=int, default=300, help="how many, from the least to the most skewed"
    )
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.scores:
        columns = 40 if arguments.quick else arguments.columns
        population = Population.load(arguments.scores, columns)
        measure_missing(arguments.file, population, arguments.quick, arguments.workers)
    results = Results.read(arguments.file)
    for title, table in TABLES.items():
        print(f"\n## {title}\n\n{table(results)}")


if __name__ == "__main__":
    main()
