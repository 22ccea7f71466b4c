"""How much does a task depend on each head? A model and a task -> Importance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypedDict

import numpy as np
import pandas as pd
from scipy import stats

from headroles.arrays import FloatArray
from headroles.drawing.style import draw_values
from headroles.errors import UsageError
from headroles.head_rows import ATTENTION
from headroles.inference.intervals import skewed_interval
from headroles.options import takes
from headroles.results.columns import NUMBER, Axes, Column, one_of
from headroles.results.consistency import Rule, inside, only_with
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.studies.removals import ExamplesResult, describe_task
from headroles.tasks.options import RunOptions
from headroles.tasks.outcomes import Derivatives, Measures, Outcomes
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Plot

    from headroles.models.loading.encoder import Model

ABSOLUTE, SIGNED, TOKEN, TAYLOR = ESTIMATORS = ("absolute", "signed", "token", "taylor")
NONE, L2 = NORMALISATIONS = ("none", "l2")
USES = {
    ABSOLUTE: ("choose heads to remove (Michel et al. 2019)", "nats"),
    SIGNED: ("estimate the rise of the loss without the head", "nats"),
    TAYLOR: ("choose heads, where rare large effects count more", "nats squared"),
    TOKEN: ("repeat what Michel et al. released", "nats a token"),
}
"""What to use each estimator for, and its unit."""
_TABULATED, _DRAWN = 5, 10
"""Most important heads whose values are tabulated, and whose ranks are drawn."""
_RELIABLE, _WANTED, _SPLITS = 0.8, 0.9, 50


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(RunOptions):
    """Options of the estimation of importance, and of the order of heads."""

    title: ClassVar[str] = "Heads"

    normalisation: Literal["none", "l2"] = "none"
    """Whether importances are divided by their Euclidean length in each layer.

    Michel et al. (2019) describe l2; their released code does not do it by default.
    """


class ImportanceFacts(TypedDict):
    """Loss and metrics of the model, and the `split_half` correlation of each estimator."""

    measured: Measures
    split_half: dict[str, float | None]


@dataclass(frozen=True, repr=False, eq=False)
class Importance(ExamplesResult[ImportanceOptions, ImportanceFacts]):
    """Dependence of the loss of a task on each head, by several estimators.

    With d the derivative of an example's loss by the gate of a head (a gate of 1 leaves the head
    as it is), the estimators are means over examples: ``absolute`` of |d| (Michel et al. 2019,
    equation 2); ``signed`` of -d, to first order the rise of the loss if the head is removed;
    ``taylor`` of d^2 (Molchanov et al. 2019); ``token`` adds up absolute values over tokens
    before anything else and divides by the number of tokens, in the last layer by the number of
    examples (as the released code of Michel et al.; values per token bound values per example from
    above).

    ``frame`` has the columns of ``columns``, ordered by estimator, layer and head. ``importance``
    is in units of the loss (``taylor`` squared), with its standard error and 95 % interval: by t
    for ``signed``, by `skewed_interval` for the others, whose upper tails are long (of ``taylor``
    from 50 examples it holds the mean in 89 %);
    ``normalised`` is divided by the Euclidean length of its layer; ``rank`` counts from 1, the most
    important head, by ``normalised`` under l2, else by ``importance``. Removed heads are NaN.

    ``derivatives`` are the derivatives of every example.

    With ``importance`` as `find_importance` returns it:

    >>> importance.of("absolute").shape
    (3, 4)
    """

    derivatives: Derivatives | None = None

    kind: ClassVar[str] = "importance"
    arrays: ClassVar[tuple[str, type]] = ("derivatives", Derivatives)
    question: ClassVar[str] = "How much does the task depend on each attention head?"
    figures: ClassVar[Mapping[str, str]] = {"worth": "draw_importance"}
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer head estimator n importance standard_error ci_low ci_high normalised rank".split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "estimator": one_of(*ESTIMATORS),
        "rank": Column(NUMBER, 1, gaps=True),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        inside("ci_low", "importance", "ci_high"),
        only_with("importance", "n", 1),
        only_with("standard_error", "n", 2),
    )
    views: ClassVar[tuple[str, ...]] = ("long", "reliability", "correlations")

    def axes(self) -> Axes:
        """Return all estimators and all heads of a layer; layers may be missing."""
        heads = [(head,) for head in range(self.record.model.heads)]
        layers = self.record.model.rows.with_column(["layer"])
        return {("estimator",): [(name,) for name in ESTIMATORS], layers: [], ("head",): heads}

    def of(self, estimator: str, column: str = "importance") -> FloatArray:
        """Return (layers, heads): a column of one estimator; NaN for missing layers.

        Of several kinds of attention the layers are one after another, as in the table.
        """
        rows = self.frame[self.frame["estimator"] == estimator]
        values = np.full(self.record.shape, np.nan)
        values[self.record.model.rows.rows_of(rows), rows["head"]] = rows[column]
        return values

    def correlations(self) -> pd.DataFrame:
        """Return rank correlations (Spearman) of the estimators with one another, over heads."""
        values = {name: self.of(name).ravel() for name in ESTIMATORS}
        return pd.DataFrame(values).corr("spearman").rename_axis("estimator")

    def reliability(self) -> pd.DataFrame:
        """Return how far the order of heads by each estimator holds for other examples.

        Columns: ``split_half``, the rank correlation of the orders in random halves of the
        examples; ``full``, expected for all examples, and ``examples_needed`` for an order of
        reliability 0.9, both by the formula of Spearman (1910) and Brown (1910). NaN for fewer
        than 3 heads or 4 examples; infinite where no number of examples is enough.
        """
        halves = pd.Series(self.facts["split_half"], dtype=float).rename_axis("estimator")
        full = (2 * halves / (1 + halves)).where(~(halves <= -1), -1.0)
        n, wanted = self.record.task.examples, _WANTED
        needed = (n * wanted * (1 - full) / (full * (1 - wanted))).apply(np.ceil)
        needed = needed.where(full.isna() | ((full > 0) & (full < 1)), np.inf)
        return pd.DataFrame({"split_half": halves, "full": full, "examples_needed": needed})

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the definition of importance, and the work to cite."""
        return (
            "The importance of a head is the expected derivative of the loss by a gate on its "
            "output (Michel et al., 2019).",
        ), ("michel",)

    def summarize(self) -> Iterator[Shown]:
        """Name the estimator to use and its most important heads; warn of unreliable orders."""
        yield from describe_task(self.record, self.facts["measured"])
        yield (
            "The estimator absolute serves to choose heads to remove: how much the loss of an "
            "example changes,\nup or down, as the head is scaled, in nats, mean over examples. "
            "Heads are named layer-head, from 0."
        )
        rows = self.frame[self.frame["estimator"] == ABSOLUTE].dropna(subset="importance")
        kind = "{attention} " if ATTENTION in rows else ""
        cells = {
            f"Most important of {len(rows)} heads": kind + "{layer}-{head}",
            "nats": "{importance:.3g}",
            "95 % interval": "{ci_low:.3g} to {ci_high:.3g}",
        }
        yield Grid.from_frame(rows.nsmallest(_TABULATED, "rank"), cells)
        if ATTENTION in rows:
            means = rows.groupby(ATTENTION, sort=False)["importance"].mean()
            texts = ", ".join(f"{kind} {mean:.3g}" for kind, mean in means.items())
            yield f"Mean over the heads of each kind: {texts}."
        reliable = self.reliability()["full"]
        yield Grid(
            ("Estimator", "serves to", "unit", "reliability"),
            tuple((name, *use, in_digits(reliable[name])) for name, use in USES.items()),
            left=frozenset({"serves to", "unit"}),
        )
        yield Warned("Reliability is not validity: check the ranking with `headroles ablate`.")
        if n_cut := self.record.task.cut:
            yield f"{n_cut} examples were cut to the length that the model takes."
        if weak := [name for name in ESTIMATORS if reliable[name] < _RELIABLE]:
            yield Warned(
                f"Other examples would give another order by {', '.join(weak)} (reliability below "
                f"{_RELIABLE:g}). Add examples."
            )


@takes(ImportanceOptions)
def find_importance(model: Model, task: str | Path, options: ImportanceOptions) -> Importance:
    """Estimate how much the loss of a task depends on each head of a model trained for the task.

    One pass forward and one back over the examples of ``task``, a file of labelled text (or plain
    text for a masked language model), gives the derivative of every example's loss by the gate of
    every head. A model of text to text takes sources and targets, and has heads of three kinds: of
    its encoder, of its decoder and across. Take examples that the model was trained on, or others
    that you will not test on.

    Importance does not measure the loss without heads, least of all without many: see
    `ablate_heads` for single heads and `find_pruning_curves` for many.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: a tab-separated file of labelled text, or of sources and targets; plain text for
            models that restore or continue text.
        options: keyword arguments, described below.

    Raises:
        CorpusError, UsageError: a task that cannot be read, or labels the model does not know.
        ModelError, TokenizerError: as `score_heads`; nothing trained on top of the encoder.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from headroles import find_importance
    >>> importance = find_importance(model, task)
    >>> importance.of("absolute").shape
    (3, 4)
    >>> importance.frame["estimator"].unique().tolist()
    ['absolute', 'signed', 'token', 'taylor']
    """
    from headroles.tasks.running import keep_parts, open_run

    run = open_run(model, task, options)
    keep_parts("importance", options, run)
    is_present = np.zeros(run.shape, dtype=bool)
    is_present[tuple(zip(*run.heads, strict=True))] = True
    derivatives, normalisation = run.derivatives(), options.normalisation
    whole = Outcomes(
        derivatives.losses[:, None], derivatives.predictions[:, None], targets=run.targets
    )
    frames, halves = [], {}
    for name in ESTIMATORS:
        values = np.where(is_present.ravel(), values_of(derivatives, name), np.nan)
        frames.append(make_frame(name, values, run.shape, normalisation))
        halves[name] = split_half(values.reshape(-1, *run.shape), normalisation)
    facts: ImportanceFacts = {"measured": run.measure(whole), "split_half": halves}
    record = run.record(options, kind="importance", facts=facts)
    frame = run.sites.rows.with_kinds(pd.concat(frames, ignore_index=True))
    return Importance(frame, record, derivatives)


def values_of(derivatives: Derivatives, estimator: str) -> FloatArray:
    """Return (examples, layers * heads): the values whose means are importances."""
    if estimator == TOKEN and derivatives.tokens.ndim > 1:
        per_token = derivatives.by_token / derivatives.tokens.mean(0)[:, None]
        return np.asarray(per_token.reshape(len(per_token), -1))
    if estimator == TOKEN:
        # The released code divides by tokens, but by examples in the last layer, in which only the
        # classifier token has a derivative.
        by_token = derivatives.by_token.astype(np.float64)
        by_token[:, :-1] /= derivatives.tokens.mean()
        return by_token.reshape(len(by_token), -1)
    by_gate = derivatives.by_gate.astype(np.float64).reshape(len(derivatives.by_gate), -1)
    function = {ABSOLUTE: np.abs, SIGNED: np.negative, TAYLOR: np.square}[estimator]
    return np.asarray(function(by_gate))


def normalise(importances: FloatArray, how: str) -> FloatArray:
    """Divide importances (layers, heads) by the Euclidean length of layers if ``how`` is l2.

    A layer of zeros stays as it is.
    """
    if how != L2:
        return importances
    lengths = np.sqrt(np.nansum(importances**2, axis=1, keepdims=True))
    return np.asarray(importances / np.where(lengths > 0, lengths, 1))


def split_half(values: FloatArray, normalisation: str) -> float | None:
    """Return the mean rank correlation of heads in two random halves of the examples.

    ``values`` are (examples, layers, heads), NaN for removed heads. None if undefined.
    """
    is_present = ~np.isnan(values).any(axis=0)
    if is_present.sum() < 3 or len(values) < 4:
        return None
    rng = np.random.default_rng(0)
    correlations = []
    for _ in range(_SPLITS):
        halves = np.array_split(rng.permutation(len(values)), 2)
        first, second = (normalise(values[half].mean(0), normalisation) for half in halves)
        correlations.append(stats.spearmanr(first[is_present], second[is_present]).statistic)
    mean = float(np.mean(correlations))
    return None if np.isnan(mean) else mean


def make_frame(
    name: str, values: FloatArray, shape: tuple[int, int], normalisation: str
) -> pd.DataFrame:
    """Return the rows of an estimator whose values are (examples, layers * heads)."""
    tested = Hypotheses.from_values(values, 0.0, size=size_of(values))
    # absolute ones are never negative, with upper tails that are too long for t
    intervals = tested.intervals(0.05) if name == SIGNED else skewed_interval(tested.sample)
    means = tested.moments.mean
    normalised = normalise(means.reshape(shape), L2).ravel()
    ranked = normalised if normalisation == L2 else means
    layer, head = (axis.ravel() for axis in np.indices(shape))
    table = {
        "layer": layer,
        "head": head,
        "estimator": name,
        "n": tested.moments.n,
        "importance": means,
        "standard_error": tested.moments.standard_error,
        "ci_low": intervals.ci_low,
        "ci_high": intervals.ci_high,
        "normalised": normalised,
        "rank": pd.Series(-ranked).rank(method="first").to_numpy(),
    }
    return pd.DataFrame(table)


def draw_importance(
    importance: Importance, estimator: str = ABSOLUTE, ax: Plot | None = None
) -> Plot:
    """Draw layers x heads: the importance of each head, with the ranks of the most important.

    Raises UsageError for an unknown estimator.

    With ``importance`` as `find_importance` returns it:

    >>> from headroles.report import draw_importance
    >>> draw_importance(importance, "taylor").get_ylabel()
    'layer'
    """
    if estimator not in ESTIMATORS:
        raise UsageError(not_among("estimator", estimator, ESTIMATORS))
    values, ranks = importance.of(estimator), importance.of(estimator, "rank")
    title = f"importance of heads\nnumbers: the {_DRAWN} most important"
    label = f"importance ({estimator}, {USES[estimator][1]})"
    numbers = np.where(ranks <= _DRAWN, ranks, np.nan)
    return draw_values(ax, values, title, label, numbers, rows=importance.record.model.rows)
