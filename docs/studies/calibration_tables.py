"""Tables of the measurements of `docs.studies.calibration`."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headroles.arrays import FloatArray

SIDES = ("greater", "less")
QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
SKEWNESS_BANDS = (-2, -0.5, 0.5, 2, 4, 8)


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read the finished cells of a file, without half a line of an interrupted start."""
    found = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


@dataclass(frozen=True)
class Results:
    """All cells of a file, by section, design and measurement.

    ``sums`` are (count, sum, sum of squares) over replicates; ``columns`` (2, tests) count and
    sum of every column.
    """

    sums: Mapping[tuple[str, str, str], FloatArray]
    columns: Mapping[tuple[str, str, str], FloatArray]

    @classmethod
    def read(cls, file: Path) -> Results:
        """Sum up the parts of every section and design."""
        sums: dict[tuple[str, str, str], Any] = defaultdict(lambda: np.zeros(3))
        columns: dict[tuple[str, str, str], Any] = defaultdict(lambda: np.zeros(1))
        for line in read_lines(file):
            section, design, _ = line["cell"]
            for name, numbers in line["sums"].items():
                sums[section, design, name] += np.array(numbers)
            for name, counts in line["columns"].items():
                columns[section, design, name] = columns[section, design, name] + np.array(counts)
        return cls(sums, dict(columns))

    def designs(self, section: str) -> list[str]:
        """Return the kinds of samples of a section, in order."""
        return list(dict.fromkeys(design for s, design, _ in self.sums if s == section))

    def names(self, section: str, design: str) -> list[str]:
        """Return the measurements of a section and design, in order."""
        return [name for s, d, name in self.sums if (s, d) == (section, design)]

    def first_parts(self, section: str, design: str) -> list[str]:
        """Return the names of measurements up to the first slash."""
        return list(dict.fromkeys(n.split("/")[0] for n in self.names(section, design)))

    def mean(self, section: str, design: str, name: str) -> tuple[float, float]:
        """Return the mean over replicates and its Monte Carlo error; NaN if it was not measured."""
        n, total, squares = self.sums.get((section, design, name), np.full(3, np.nan))
        if not n > 0:
            return math.nan, math.nan
        variance = max(0.0, squares / n - (total / n) ** 2)
        return total / n, math.sqrt(variance / max(n - 1, 1))

    def percent(self, section: str, design: str, name: str) -> str:
        """Format a share as a percentage, with its error."""
        mean, error = self.mean(section, design, name)
        return "" if math.isnan(mean) else f"{100 * mean:.1f} ± {100 * error:.1f}"

    def rates(self, section: str, design: str, name: str) -> FloatArray | None:
        """Return the mean of every column (tests,), None if it was not measured."""
        counts = self.columns.get((section, design, name))
        if counts is None:
            return None
        count, total = counts
        return np.asarray(total / np.maximum(count, 1))


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a table whose first column is text and whose others are figures."""
    names = list(header)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table_of_population(results: Results) -> str:
    """Tabulate quantiles over columns."""
    rows, counts = [], []
    for design in results.designs("population"):
        for name in results.names("population", design):
            columns = results.rates("population", design, name)
            if columns is None:
                counts.append(f"{results.mean('population', design, name)[0]:.0f} {name}")
            else:
                rows.append([name, *(f"{q:.2f}" for q in np.quantile(columns, QUANTILES))])
    header = ["over columns", *(f"{100 * q:g} %" for q in QUANTILES)]
    return ", ".join(counts) + "\n\n" + markdown(header, rows)


def table_of_levels(results: Results) -> str:
    """Tabulate each test at 5 %, mean over columns."""
    rows = [
        [design, test, *(results.percent("level", design, f"{test}/{side}") for side in SIDES)]
        for design in results.designs("level")
        for test in results.first_parts("level", design)
    ]
    return markdown(["sample", "test", *(f"{side}, %" for side in SIDES)], rows)


def table_of_skewness(results: Results) -> str:
    """Tabulate the error of the t-test by the skewness of the columns."""
    skewness = [results.rates("population", d, "skewness") for d in results.designs("population")]
    if not skewness or skewness[0] is None:
        return "not measured yet"
    band = np.digitize(skewness[0], SKEWNESS_BANDS)
    there = [place for place in range(len(SKEWNESS_BANDS) + 1) if (band == place).any()]
    rows = []
    for side in SIDES:
        for design in results.designs("level"):
            tests = results.first_parts("level", design)
            test = "cluster t" if "cluster t" in tests else "t"
            rates = results.rates("level", design, f"{test}/{side}")
            assert rates is not None
            rows.append([design, side, *(f"{100 * rates[band == k].mean():.1f}" for k in there)])
    limits = [f"{limit:g}" for limit in SKEWNESS_BANDS]
    names = [f"< {limits[0]}"]
    names += [f"{low} to {high}" for low, high in itertools.pairwise(limits)]
    names += [f"> {limits[-1]}"]
    header = [f"{names[place]} ({(band == place).sum()})" for place in there]
    return markdown(["sample", "side", *header], rows)


def table_of_families(results: Results) -> str:
    """Tabulate any wrong rejection, all H0 true."""
    rows, methods = [], []
    for side in SIDES:
        for design in results.designs("families"):
            names = results.names("families", design)
            methods = [n.split("/")[1] for n in names if n.startswith(f"{side}/")]
            methods = list(dict.fromkeys(methods))
            row = [results.percent("families", design, f"{side}/{method}") for method in methods]
            rates = results.rates("families", design, f"t/{side}/tail")
            assert rates is not None
            share = f"{100 * rates.max() / max(rates.sum(), 1e-9):.0f}"
            rows.append([design, side, *row, share])
    return markdown(["sample", "side", *methods, "of one column, %"], rows)


def table_of_less_skewed_families(results: Results) -> str:
    """Tabulate wrong rejections after Holm without columns that are skewed in the sample."""
    rows, rules = [], []
    for side in SIDES:
        for design in results.designs("families"):
            names = results.names("families", design)
            rules = [n.split("/")[1] for n in names if n.startswith("left out/")]
            row = []
            for rule in rules:
                row.append(results.percent("families", design, f"{side}/holm/{rule}"))
                left_out = results.mean("families", design, f"left out/{rule}")[0]
                row.append(f"{100 * left_out:.0f}")
            rows.append([design, side, *row])
    columns = [text for rule in rules for text in (rule, "left out, %")]
    return markdown(["sample", "side", *columns], rows)


def table_of_mixtures(results: Results) -> str:
    """Tabulate false discoveries and power."""
    rows, methods = [], []
    for side in SIDES:
        for design in results.designs("mixture"):
            keys = [n.split("/") for n in results.names("mixture", design)]
            methods = list(dict.fromkeys(method for _, _, method, _ in keys))
            for shift in dict.fromkeys(shift for _, shift, _, _ in keys):
                row = [design, side, shift]
                for method in methods:
                    key = f"{side}/{shift}/{method}"
                    power = results.mean("mixture", design, f"{key}/power")[0]
                    false = results.percent("mixture", design, f"{key}/false")
                    row.append(f"{false}, {100 * power:.0f}")
                rows.append(row)
    return markdown(["sample", "side", "effect", *methods], rows)


def table_of_answers(results: Results) -> str:
    """Tabulate the answers at the default thresholds, and the wrong ones among them."""
    rows = []
    for design in results.designs("answers"):
        for method in results.first_parts("answers", design):
            row = [design, method]
            for answer in ("yes", "no"):
                for what in ("given", "of the true ones"):
                    share = results.mean("answers", design, f"{method}/{answer}/{what}")[0]
                    row.append(f"{100 * share:.0f}")
                row.append(results.percent("answers", design, f"{method}/{answer}/wrong"))
            row.append(results.percent("answers", design, f"{method}/both/wrong"))
            rows.append(row)
    of_answers = ["yes", "of the true", "wrong", "no", "of the true", "wrong"]
    return markdown(["sample", "method", *of_answers, "wrong of both"], rows)


def table_of_intervals(results: Results) -> str:
    """Tabulate coverage, misses on either side, and width."""
    rows = []
    for design in results.designs("intervals"):
        for name in results.first_parts("intervals", design):
            missed, error = results.mean("intervals", design, f"{name}/missed")
            sides = [
                f"{100 * results.mean('intervals', design, f'{name}/{side}')[0]:.1f}"
                for side in ("above", "below")
            ]
            width = results.mean("intervals", design, f"{name}/width")[0]
            covered = f"{100 * (1 - missed):.1f} ± {100 * error:.1f}"
            rows.append([design, name, covered, *sides, f"{width:.2f}"])
    header = ["sample", "interval", "covers, %", "mean above it", "mean below it", "width / t"]
    return markdown(header, rows)


def table_of_plans(results: Results) -> str:
    """Tabulate the share of heads decided in corpora of about the planned size."""
    rows = []
    for design in results.designs("planning"):
        keys = [n.split("/")[:2] for n in results.names("planning", design)]
        for source, size in dict.fromkeys(map(tuple, keys)):
            heads = results.mean("planning", design, f"{source}/{size}/heads")[0]
            decided = results.percent("planning", design, f"{source}/{size}/decided")
            by = source if source == "all scores" else f"a pilot of {design}"
            units = "documents" if "documents" in design else "examples"
            rows.append([by, units, size, f"{heads:.0f}", decided])
    return markdown(["planned by", "units", "examples", "heads", "decided, %"], rows)


TABLES = {
    "The scores": table_of_population,
    "Each test by itself": table_of_levels,
    "The t-test by the skewness of the columns, %": table_of_skewness,
    "Families: at least one rejection when all H0 are true, %": table_of_families,
    "The same after Holm, of columns that are less skewed in the sample, %": (
        table_of_less_skewed_families
    ),
    "Half of H0 true: false discoveries, and power, %": table_of_mixtures,
    "Answers at the default thresholds, %": table_of_answers,
    "Intervals at 95 %": table_of_intervals,
    "Planning": table_of_plans,
}
