"""Do estimates of importance predict the loss without a head?

python -m docs.studies.estimators --importance DIR --ablation DIR [--splits 200]

Reads what `headroles importance` and `headroles ablate --sets single` wrote for one model and the
same examples, and runs no model. Rank correlations (Spearman) over heads of every estimator with
the rise of the loss without each head, and with the mean of its absolute value over examples:

same examples    both are estimated on all examples; 95 % by resampling examples
other examples   one is estimated on a random half of the examples and the other on the other half,
                 mean over splits: chance agreement within one half does not count

The last row correlates the target with itself on other examples. docs/removing-heads-measured.md
discusses the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from headroles.arrays import FloatArray
from headroles.errors import UsageError
from headroles.studies.importance.ablate import Ablations
from headroles.studies.importance.importance import ESTIMATORS, Importance, values_of

RISE, SIZE = "rise of the loss", "size of the change"


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--importance", type=Path, required=True)
    parser.add_argument("--ablation", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=200)
    given = parser.parse_args()
    importance, ablations = Importance.load(given.importance), Ablations.load(given.ablation)
    values = by_example(importance, ablations)
    means = {name: own.mean(0) for name, own in values.items()}
    rises = means[RISE]
    n_examples = len(values[RISE])
    print(
        f"{n_examples} examples, {len(rises)} heads; {int((rises < 0).sum())} removals lower the "
    )
    print(f"mean loss; it changes by {rises.min():+.4f} to {rises.max():+.4f}\n")
    for target in (RISE, SIZE):
        print(with_target(values, target, given.splits).to_markdown(index=False), end="\n\n")
    print(pd.DataFrame(means).corr("spearman").round(2).to_markdown())


def by_example(importance: Importance, ablations: Ablations) -> dict[str, FloatArray]:
    """Return (examples, heads) of every estimator, and of the change of the loss."""
    one, other = importance.record, ablations.record
    if (one.corpus, one.model) != (other.corpus, other.model):
        raise UsageError("importance and ablation are of other models or examples; take the same")
    if importance.derivatives is None or ablations.outcomes is None:
        raise UsageError("the folders lack the values of examples; make them again")
    single = np.flatnonzero(ablations.frame["set"] == "single")
    rows = ablations.frame.iloc[single]
    heads = (rows["layer"] * one.heads + rows["head"]).to_numpy()
    losses = ablations.outcomes.losses
    changes = losses[:, 1 + single] - losses[:, :1]
    found = {name: values_of(importance.derivatives, name)[:, heads] for name in ESTIMATORS}
    return {**found, RISE: changes, SIZE: np.abs(changes)}


def with_target(values: dict[str, FloatArray], target: str, n_splits: int) -> pd.DataFrame:
    """Return a row for each estimator, and one for the target itself."""
    rows = []
    for name in (*ESTIMATORS, target):
        own, those = values[name], values[target]
        row: dict[str, object] = {"estimator": name}
        if name != target:
            found = [correlation(own[rows_], those[rows_]) for rows_ in resamples(len(own))]
            low, high = np.quantile(found, [0.025, 0.975])
            row[f"with {target}, same examples"] = f"{correlation(own, those):.2f}"
            row["95 %"] = f"{low:.2f} to {high:.2f}"
        across = [correlation(own[a], those[b]) for a, b in halves(len(own), n_splits)]
        row["other examples"] = f"{np.mean(across):.2f}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Correlate the means over examples, over heads."""
    return float(stats.spearmanr(first.mean(0), second.mean(0)).statistic)


def resamples(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield examples drawn with replacement, 500 times."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        yield rng.integers(n, size=n)


def halves(n: int, n_splits: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield random halves of the examples, and the others."""
    rng = np.random.default_rng(0)
    for _ in range(n_splits):
        order = rng.permutation(n)
        yield order[: n // 2], order[n // 2 :]


if __name__ == "__main__":
    main()
