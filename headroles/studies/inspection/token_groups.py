"""Model and corpus -> TokenGroups: weights and norms that go to tokens of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from msgspec import structs

from headroles.arrays import Float32Array, IndexArray
from headroles.corpus import Corpus, as_corpus, prepared
from headroles.errors import CorpusError, UsageError
from headroles.formats import to_records
from headroles.models.loading.encoder import Model, load_encoder
from headroles.options import takes
from headroles.passes.options import shown_in_notebooks
from headroles.record import CorpusRecord, PieceCounts, Recorded
from headroles.results.columns import TEXT, Axes, Column
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.roles.catalogue import count_words
from headroles.scoring.run_notes import warnings_of_run
from headroles.storage import Count, plain
from headroles.studies.heads import clusters_in, refuse_one_document
from headroles.studies.inspection.options import TokenOptions
from headroles.studies.inspection.quantities import ESTIMATES, estimates_of
from headroles.studies.inspection.token_reading import (
    DIFFERENCE,
    GROUPS,
    LAYER_NORMS,
    LENGTH,
    NORMS,
    OTHER,
    PER_TOKEN,
    QUANTITIES,
    TOKENS,
    WEIGHTS,
    WITH_FREQUENCY,
    TokenReading,
)
from headroles.testing.recorded import Share

ALL_LAYERS = "all"


class TokenUnits(Recorded, frozen=True, kw_only=True):
    """The level of intervals, and the units that they are over."""

    alpha: Share
    clustered_by: str
    n_clusters: Count


class TokensRecord(CorpusRecord, frozen=True, kw_only=True):
    """Record of a table of token groups, with the units of its intervals."""

    token_groups: TokenUnits


@dataclass(frozen=True, repr=False, eq=False)
class TokenGroups(Result):
    """Attention to tokens of each kind, by weights and by norms (Kobayashi et al. 2020).

    ``frame`` has a row for each ``layer`` (a text, ``"all"`` for the mean over layers), ``group``
    and ``quantity``. Groups are ``classifier``, ``separators``, ``punctuation`` and ``other``
    tokens. Of each:

    * ``tokens``: its share of the tokens, the share of uniform attention;
    * ``weights``: its share of a row of attention weights, the mean over rows and heads;
    * ``norms``: the same of norms of single heads, each row divided by its sum;
    * ``layer_norms``: the same of norms of all heads of the layer together;
    * ``norms_less_weights``: their difference;
    * ``length``: the mean of ||f(x)|| over its tokens and heads, in units of hidden states.

    ``weights_by_frequency`` and so on are Spearman's rank correlations, over the words of an
    example, between the frequency of a word and the mean over its pieces: for all ``words``, and
    for ``other`` words, without punctuation.

    ``mean`` is over the ``n`` examples that have the group: shares of groups that some examples
    lack need not add up to 1. Intervals are robust to clusters, and NaN where there are fewer than
    two. Layers without heads have no values.

    With ``groups`` as `measure_token_groups` returns them:

    >>> groups.found
    ['classifier', 'separators', 'punctuation', 'other']
    """

    record: TokensRecord

    kind: ClassVar[str] = "token groups"
    figures: ClassVar[Mapping[str, str]] = {
        "tokens": "headroles.studies.inspection.figures:draw_token_groups",
    }
    page: ClassVar[str] = "headroles.studies.inspection.page:token_page"
    stem: ClassVar[str] = "token_groups"
    remedy: ClassVar[str] = "make one with: headroles tokens MODEL CORPUS --out DIR"
    columns: ClassVar[tuple[str, ...]] = ("layer", "group", "quantity", *ESTIMATES)
    own: ClassVar[Mapping[str, Column]] = {"layer": Column(TEXT)}
    views: ClassVar[tuple[str, ...]] = ("long", "summary", "layers")

    def axes(self) -> Axes:
        """Return the groups with their quantities; a part may lack layers and their mean."""
        return {("layer",): [], ("group", "quantity"): QUANTITIES}

    @property
    def found(self) -> list[str]:
        """The groups that some example has."""
        there = self.frame[(self.frame["quantity"] == TOKENS) & (self.frame["n"] > 0)]
        return [one for one in GROUPS if one in set(there["group"])]

    @property
    def has_all_layers(self) -> bool:
        """Whether the table has the mean over layers, which `where` may leave out."""
        return ALL_LAYERS in set(self.frame["layer"])

    def summary(self) -> pd.DataFrame:
        """Return means over layers: a row for each group, a column for each quantity.

        Raises UsageError for a part of the table without the rows of all layers.
        """
        own = self.frame[self.frame["layer"] == ALL_LAYERS]
        if own.empty:
            raise UsageError(
                f"the summary is of the layer {ALL_LAYERS!r}, which is missing; include it"
            )
        table = own.pivot_table(index="group", columns="quantity", values="mean", dropna=False)
        return table.loc[list(GROUPS), [TOKENS, *PER_TOKEN, DIFFERENCE]]

    def layers(self) -> pd.DataFrame:
        """Return means by layer: a row for each group and quantity."""
        index = ["group", "quantity"]
        table = self.frame.pivot_table(
            index=index, columns="layer", values="mean", sort=False, dropna=False
        )
        return table.reset_index()

    def summarize(self) -> Iterator[Shown]:
        """Name the tokens that get more than their share of weights and norms."""
        asked = self.record.token_groups
        documents = f" in {asked.n_clusters} documents" * (asked.clustered_by != "none")
        over = "layers, heads" if self.has_all_layers else "heads"
        yield (
            f"{self.record.model.name}: where attention goes, mean over {over} and "
            f"{self.record.examples} examples{documents}."
        )
        if self.has_all_layers:
            yield from _beyond_share(self.summary().loc[self.found])
            yield self._shares()
        else:
            yield "This part has no mean over layers; the details have tables by layer."
        for group in (one for one in GROUPS if one not in self.found):
            yield Warned(f"No example has tokens of the group {group}.")
        yield from map(Warned, warnings_of_run(self.record))

    def details(self) -> Iterator[Shown]:
        """Tabulate shares with intervals, shares by layer, and correlations with frequency."""
        asked = self.record.token_groups
        if self.has_all_layers:
            yield f"Shares with intervals of {1 - asked.alpha:.0%}"
            yield self._shares(with_intervals=True)
        yield "By layer: shares of weights and of norms, and mean length ||f(x)||"
        yield self._by_layer(
            [(group, name) for group in GROUPS for name in (WEIGHTS, NORMS, LENGTH)]
        )
        yield (
            "Rank correlations with word frequency over the words of an example, without "
            "punctuation: below 0 where frequent words get less"
        )
        yield self._by_layer([(OTHER, f"{name}{WITH_FREQUENCY}") for name in PER_TOKEN])

    def _shares(self, with_intervals: bool = False) -> Grid:
        names = (WEIGHTS, NORMS, DIFFERENCE, LAYER_NORMS)
        rows = []
        for group in GROUPS:
            row = [group, in_digits(self._rows[ALL_LAYERS, group, TOKENS].mean, 3)]
            for name in names:
                share = self._rows[ALL_LAYERS, group, name]
                row += [in_digits(share.mean, 3), *[_range(share)] * with_intervals]
            rows.append((*row, in_digits(self._rows[ALL_LAYERS, group, LENGTH].mean, 3)))
        interval = ["interval"] if with_intervals else []
        titles = [title for name in names for title in (name.replace("_", " "), *interval)]
        return Grid(("group", "tokens", *titles, "||f||"), tuple(rows))

    def _by_layer(self, chosen: list[tuple[str, str]]) -> Grid:
        layers, whole = list(dict.fromkeys(self.frame["layer"])), [ALL_LAYERS] * self.has_all_layers
        rows = [
            (
                f"{group} {name.removesuffix(WITH_FREQUENCY).replace('_', ' ')}",
                *(in_digits(self._rows[layer, group, name].mean, 3) for layer in layers),
                *(_range(self._rows[layer, group, name]) for layer in whole),
            )
            for group, name in chosen
        ]
        return Grid(("", *layers, *(f"interval of {one}" for one in whole)), tuple(rows))

    @cached_property
    def _rows(self) -> dict[tuple[str, str, str], Any]:
        """Rows by layer, group and quantity."""
        names = zip(*(self.frame[name] for name in self.columns[:3]), strict=True)
        return dict(zip(names, self.frame.itertuples(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {"token_groups": plain(self.record.token_groups), "rows": to_records(self.frame)}


def _beyond_share(table: pd.DataFrame) -> Iterator[str]:
    """Name the groups of ``table`` that get most beyond their share of the tokens."""
    times = table[["weights", "norms"]].div(table["tokens"], axis=0)
    most, largest = str(times["weights"].idxmax()), str(table["weights"].idxmax())
    beside = (
        f"; the largest part, {table['weights'][largest]:.0%}, goes to the {largest} tokens, "
        f"{times['weights'][largest]:.1f} times theirs"
    )
    yield (
        f"Beyond their share of the tokens, the {most} tokens get most of the attention weights: "
        f"{table['weights'][most]:.0%} of a row on average, {times['weights'][most]:.1f} times "
        f"that share{beside if largest != most else ''}."
    )
    yield (
        f"By norms, which count the vectors that heads pass on, the {most} tokens get "
        f"{table['norms'][most]:.0%}, {times['norms'][most]:.1f} times their share."
    )


@takes(TokenOptions)
def measure_token_groups(model: Model, corpus: Corpus, options: TokenOptions) -> TokenGroups:
    """Measure attention to classifier tokens, separators, punctuation and other tokens.

    Attention is measured by weights, and by norms: weights times the lengths ||f(x)|| of the
    vectors that heads pass on from a token, for each head and for all heads of a layer together
    (Kobayashi et al. 2020). Punctuation is words with the part of speech PUNCT, or, without parts
    of speech, words of punctuation characters.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        corpus: as `score_heads` takes it.
        options: keyword arguments, described below.

    Raises:
        CorpusError: defective input, frequencies that cannot be read, or no example that fits.
        ModelSupportError: a family whose value and output projections are not known.
        ModelError, TokenizerError, UsageError: as `score_heads`.

    With ``model`` an encoder with random weights, which prefers no kind of tokens:

    >>> from headroles import measure_token_groups, read_conllu, sample_treebank
    >>> groups = measure_token_groups(model, read_conllu(sample_treebank()))
    >>> groups.summary()["tokens"].round(2).to_dict()
    {'classifier': 0.01, 'separators': 0.02, 'punctuation': 0.03, 'other': 0.93}
    """
    with shown_in_notebooks(options) as options, prepared(as_corpus(corpus)) as ready:
        refuse_one_document(ready.documents, options)
        counts = count_words(options, ready)
        encoder = load_encoder(model, options)
        reading = TokenReading(encoder, ready, counts, options)
        values = reading.values()
        described = ready.describe()
    if not len(values):
        left = "; ".join(f"{count} {reason}" for reason, count in reading.skipped.items())
        raise CorpusError(f"no example could be read: {left or 'the corpus is empty'}")
    clusters = clusters_in(reading.documents, options)
    record = TokensRecord.now(
        model=structs.replace(encoder.description, **reading.described),
        corpus=described,
        options=options.record(),
        examples=len(values),
        skipped=dict(reading.skipped),
        pieces=PieceCounts(**reading.pieces),
        token_groups=TokenUnits(
            alpha=options.alpha,
            clustered_by="none" if clusters is None else "document",
            n_clusters=len(values) if clusters is None else len(np.unique(clusters)),
        ),
    )
    return TokenGroups(_frame(values, clusters, options.alpha), record)


def _frame(values: Float32Array, clusters: IndexArray | None, alpha: float) -> pd.DataFrame:
    """Return the long table of ``values`` (examples, layers + 1, quantities)."""
    layers = [*map(str, range(values.shape[1] - 1)), ALL_LAYERS]
    labels = [(layer, group, name) for layer in layers for group, name in QUANTITIES]
    columns = dict(zip(("layer", "group", "quantity"), zip(*labels, strict=True), strict=True))
    estimates = estimates_of(values.reshape(len(values), -1), clusters, alpha)
    return pd.DataFrame({**columns, **estimates})


def _range(row: Any) -> str:
    return "-" if np.isnan(row.ci_low) else f"{row.ci_low:.3f} to {row.ci_high:.3f}"
