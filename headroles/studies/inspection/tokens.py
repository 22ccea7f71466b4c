"""Which tokens get the attention? Model and corpus -> TokenGroups, by weights and by norms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from msgspec import structs

from headroles.arrays import BoolArray, Float32Array, FloatArray, IntArray
from headroles.corpus import (
    AnyCorpus,
    PreparedCorpus,
    Sentence,
    as_corpus,
    make_examples,
    prepared,
)
from headroles.drawing.style import (
    BRIGHT,
    DARK,
    MOST_LABELS,
    THRESHOLD,
    legend_below,
    new_axes,
    several_axes,
)
from headroles.encoding import PAIR_MASK, EncodedExample
from headroles.errors import CorpusError, UsageError
from headroles.inference.doubled import Clusters, find_clusters
from headroles.models.options import CROSS, ENCODER, KindOptions, TargetOptions
from headroles.options import takes
from headroles.passes.options import PassOptions, shown_in_notebooks
from headroles.reach import SOURCE, TARGET, Reach
from headroles.record import PieceCounts, RecordedCorpus, RecordedModel
from headroles.results.columns import TEXT, Column
from headroles.results.columns import Axes as Combinations
from headroles.results.consistency import Rule, around
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned, in_digits
from headroles.roles import BIAS, PaddedBatch, Scope
from headroles.roles.catalogue import FrequencyOptions, count_words, find_marks, marks_in
from headroles.scoring.options import PairingOptions, is_read_as_bitext
from headroles.scoring.run_notes import warnings_of_run
from headroles.studies.heads import (
    ESTIMATES,
    clusters_in,
    estimates_of,
    refuse_one_document,
    warn_of_doubled,
)
from headroles.testing.options import UnitOptions
from headroles.wording import not_among

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headroles.models.attention.reader import AttentionReader, NormReader
    from headroles.models.loading.encoder import LoadedModel, Model
    from headroles.passes.loop import ExampleBatch

ALL_LAYERS = "all"
"""Layer of the means over layers."""
GROUPS = ("classifier", "separators", "punctuation", "other")
"""Kinds of tokens: every token is of one."""
CLASSIFIER, SEPARATORS, PUNCTUATION, OTHER = GROUPS
_IN_WORDS = {
    CLASSIFIER: "classifier tokens",
    SEPARATORS: "separators",
    PUNCTUATION: "punctuation marks",
    OTHER: "other tokens",
}
PUNCTUATION_AND_OTHER = "words"
"""Punctuation and other tokens together."""
PER_TOKEN = ("weights", "norms", "layer_norms", "length")
"""Quantities of every token."""
WEIGHTS, NORMS, LAYER_NORMS, LENGTH = PER_TOKEN
TOKEN_SHARE, DIFFERENCE, WITH_FREQUENCY = "tokens", "norms_less_weights", "_by_frequency"
QUANTITIES = (
    *((group, name) for group in GROUPS for name in (TOKEN_SHARE, *PER_TOKEN, DIFFERENCE)),
    *(
        (group, f"{name}{WITH_FREQUENCY}")
        for group in (PUNCTUATION_AND_OTHER, OTHER)
        for name in PER_TOKEN
    ),
)
"""Groups of tokens and their quantities, for an example and a layer."""
_FEWEST_WORDS = 3
"""Words that a rank correlation takes."""
_ATTENTION = {
    "encoder": "attention",
    "decoder": "attention of the decoder",
    "cross": "attention to sources",
}
_LOOKS: dict[str, dict[str, Any]] = {
    "weights": {"color": DARK, "marker": "o"},
    "norms": {"color": BRIGHT, "marker": "s", "linestyle": "dashed"},
}


@dataclass(frozen=True, kw_only=True)
class TokenOptions(UnitOptions, FrequencyOptions, PairingOptions, PassOptions):
    """Options of the reading of tokens."""

    title: ClassVar[str] = "Roles"


@dataclass(frozen=True, kw_only=True)
class TokenGroupOptions(TokenOptions, KindOptions):
    """The same, of any attention of a model."""

    title: ClassVar[str] = "Roles"


class TokenFacts(TypedDict):
    """The units of the estimates: examples (``none``), or documents."""

    clustered_by: str
    n_clusters: int


@dataclass(frozen=True, repr=False, eq=False)
class TokenGroups(Result[TokenGroupOptions, TokenFacts]):
    """Attention to tokens of each kind, by weights and by norms (Kobayashi et al. 2020).

    ``frame`` has a row for each ``layer`` (a text, ``"all"`` for the mean over layers), ``group``
    and ``quantity``. Groups are ``classifier``, ``separators``, ``punctuation`` and ``other``
    tokens. Of each:

    * ``tokens``: its share of uniform attention to the tokens in view, which is its share of the
      tokens where each token sees all;
    * ``weights``: its share of a row of attention weights, the mean over rows and heads;
    * ``norms``: the same of norms of single heads, each row divided by its sum;
    * ``layer_norms``: the same of norms of all heads of the layer together;
    * ``norms_less_weights``: their difference;
    * ``length``: the mean of ||f(x)|| over its tokens and heads, in units of hidden states.

    ``weights_by_frequency`` and so on are Spearman's rank correlations, over the words of an
    example, between the frequency of a word and the mean over its pieces: for all ``words``, and
    for ``other`` words, without punctuation. Weights and norms are divided by uniform attention.

    Cross-attention is to the tokens of sources, from all tokens of their targets.

    ``mean`` is over the ``n`` examples that have the group: shares of groups that some examples
    lack need not add up to 1. Intervals are robust to clusters, and NaN where there are fewer than
    two. Layers without heads have no values.

    With ``groups`` as `measure_token_groups` returns them:

    >>> groups.present
    ['classifier', 'separators', 'punctuation', 'other']
    """

    kind: ClassVar[str] = "token groups"
    question: ClassVar[str] = "Which tokens get the attention?"
    figures: ClassVar[Mapping[str, str]] = {"tokens": "draw_token_groups"}
    columns: ClassVar[tuple[str, ...]] = ("layer", "group", "quantity", *ESTIMATES)
    schema: ClassVar[Mapping[str, Column]] = {"layer": Column(TEXT)}
    rules: ClassVar[tuple[Rule, ...]] = (around("ci_low", "mean", "ci_high"),)
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    def axes(self) -> Combinations:
        """Return the groups with their quantities; a part may lack layers and their mean."""
        return {("layer",): [], ("group", "quantity"): QUANTITIES}

    @property
    def present(self) -> list[str]:
        """The groups that some example has."""
        rows = self.frame[(self.frame["quantity"] == TOKEN_SHARE) & (self.frame["n"] > 0)]
        return [group for group in GROUPS if group in set(rows["group"])]

    def summary(self) -> pd.DataFrame:
        """Return means over layers: a row for each group, a column for each quantity.

        They are NaN in a part of the table without the rows of all layers.
        """
        rows = self.frame[self.frame["layer"] == ALL_LAYERS]
        table = rows.pivot_table(index="group", columns="quantity", values="mean", dropna=False)
        return table.reindex(index=list(GROUPS), columns=[TOKEN_SHARE, *PER_TOKEN, DIFFERENCE])

    def summarize(self) -> Iterator[Shown]:
        """Name the tokens that get most beyond their share, by weights and by norms."""
        documents = ""
        if self.facts["clustered_by"] != "none":
            documents = f" in {self.facts['n_clusters']} documents"
        yield (
            f"Where the {_ATTENTION[self.record.model.attention]} of {self.record.model.name} "
            f"goes, averaged over layers, heads and {self.record.corpus.examples} "
            f"examples{documents}. Norms are weights times the length of what a token passes on."
        )
        table = self.summary()
        if ALL_LAYERS in set(self.frame["layer"]):
            times = (
                table.loc[self.present, [WEIGHTS, NORMS]].div(table[TOKEN_SHARE], axis=0).dropna()
            )
            names = times.rename(index=_IN_WORDS).idxmax()
            most = times.max()
            yield (
                f"By weights, {names[WEIGHTS]} get most for their number "
                f"({most[WEIGHTS]:.1f} times uniform attention); by norms, {names[NORMS]} do "
                f"({most[NORMS]:.1f} times)."
            )
        table = table[[TOKEN_SHARE, WEIGHTS, NORMS, DIFFERENCE, LAYER_NORMS, LENGTH]]
        table.index = table.index.map(_IN_WORDS)
        cells = table.map(partial(in_digits, digits=3)).reset_index()
        titles = ("Target", "Tokens", "Weights", "Norms", "Difference", "Norms of layers", "Length")
        yield Grid(titles, tuple(cells.itertuples(index=False, name=None)))
        for group in GROUPS:
            if group not in self.present:
                yield Warned(f"No example has {_IN_WORDS[group]}.")
        yield from map(Warned, warnings_of_run(self.record))


@takes(TokenGroupOptions)
def measure_token_groups(
    model: Model, corpus: AnyCorpus, options: TokenGroupOptions
) -> TokenGroups:
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
    {'classifier': 0.01, 'separators': 0.02, 'punctuation': 0.03, 'other': 0.94}
    """
    with shown_in_notebooks(options) as options, prepared(as_corpus(corpus)) as ready:
        is_read_as_bitext(ready.record, options.attention, options.pairing)
        of = options.as_group(TargetOptions)
        refuse_one_document(ready.record.documents, options)
        read = read_corpus(model, ready, options, of)
    values, clusters = read.values, clusters_in(read.clusters, options)
    layers = [*map(str, range(values.shape[1] - 1)), ALL_LAYERS]
    rows = [(layer, *quantity) for layer in layers for quantity in QUANTITIES]
    labels = pd.DataFrame(rows, columns=["layer", "group", "quantity"])
    estimates = estimates_of(values.reshape(len(values), -1), clusters, options.alpha)
    return TokenGroups.made(
        labels.assign(**estimates),
        options,
        model=read.model,
        corpus=read.corpus,
        facts={
            "clustered_by": "none" if clusters is None else "document",
            "n_clusters": len(values if clusters is None else np.unique(clusters)),
        },
        warnings=[*warn_of_doubled(read.clusters, options)],
    )


class TokenValues(NamedTuple):
    """Quantities of all examples of a corpus, with their clusters, and records of the reading.

    ``values`` are (examples, layers + 1, quantities) of `QUANTITIES`, NaN where there is none; the
    last of the layers is the mean over layers.
    """

    values: Float32Array
    clusters: Clusters
    model: RecordedModel
    corpus: RecordedCorpus


def read_corpus(
    model: Model,
    corpus: PreparedCorpus,
    options: TokenOptions,
    of: TargetOptions = TargetOptions(),  # noqa: B008 - it cannot change
) -> TokenValues:
    """Read the examples of a corpus, window after window. Raises CorpusError if there is none.

    ``of`` chooses the attention of an encoder-decoder.
    """
    from headroles.models.attention.reader import open_norms, open_reader  # which import torch
    from headroles.models.loading.encoder import load_encoder
    from headroles.passes.loop import Budget, passes_over
    from headroles.scoring.windows import windows_of

    frequencies = count_words(options, _sentences_attended_to(corpus, of.attention))
    encoder = load_encoder(model, options, of=of)
    skipped, rows, done = Counter(corpus.skipped), [], 0
    documents: list[str] = []
    digests: list[str] = []
    lengths: list[int] = []
    cut, budget = encoder.example_encoder(), Budget.for_device(encoder.device, options.batch_tokens)
    with open_reader(encoder.stack) as reader, open_norms(reader) as norms:

        def read(batch: ExampleBatch) -> list[Float32Array]:
            per_token = read_tokens(encoder, reader, norms, batch)
            keys = PaddedBatch([one.part(reader.reaches[0].keys) for one in batch.examples])
            groups = groups_of(keys).swapaxes(0, 1)
            uniform = uniform_shares(keys, reader.reaches)
            return [
                values_of(
                    example,
                    per_token[row, ..., : len(example)],
                    groups[row, :, : len(example)],
                    uniform[row, :, : len(example)],
                    frequencies,
                )
                for row, example in enumerate(keys.examples)
            ]

        for window in windows_of(corpus, options.pairing):
            examples = cut.encode(window.examples, skipped)
            documents += [example.document for example in examples]
            digests += [example.digest for example in examples]
            lengths += map(len, examples)
            by_row = {
                row: values
                for batch, of_batch in passes_over(examples, encoder, budget).over_all(read)
                for row, values in zip(batch.indices, of_batch, strict=True)
            }
            rows += [by_row[row] for row in sorted(by_row)]
            done += window.n_sentences
            if options.on_progress is not None:
                options.on_progress(done, corpus.record.sentences)
        described = structs.replace(encoder.description, **reader.description)
    if not rows:
        reasons = "; ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise CorpusError(f"no example could be read: {reasons or 'the corpus is empty'}")
    pieces = PieceCounts(**cut.counts)
    counts = {"examples": len(rows), "skipped": dict(skipped), "pieces": pieces}
    clusters = find_clusters(documents, digests, np.array(lengths), pieces.per_word)
    return TokenValues(
        np.stack(rows), clusters, described, structs.replace(corpus.record, **counts)
    )


def _sentences_attended_to(corpus: PreparedCorpus, attention: str) -> Iterable[Sentence]:
    """Return all sentences of a treebank; of a bitext its sources, or its targets for a decoder."""
    if attention == ENCODER:
        return corpus
    side = SOURCE if attention == CROSS else TARGET
    pairs = (example.sentences for example in make_examples(corpus, "adjacent"))
    return (pair[side] for pair in pairs if len(pair) > side)


def read_tokens(
    encoder: LoadedModel, reader: AttentionReader, norms: NormReader, batch: ExampleBatch
) -> FloatArray:
    """Return (examples, layers, 4, tokens): the attention that each token gets, by `PER_TOKEN`.

    Of a source and a target these are the tokens of the one that has the keys.

    ``weights`` and ``norms`` are means over heads and queries, ``layer_norms`` over queries, so
    that those of an example add up to 1; ``length`` is the mean of ||f|| over heads. Layers that
    have no heads left are NaN. Raises ModelError for attention that is not finite.
    """
    import torch

    from headroles.models.attention.functions import masks_of
    from headroles.scoring.windows import check_finite

    # without this mask, attention is not put into rows of all tokens of a pair
    inputs = {name: values for name, values in batch.inputs.items() if name != PAIR_MASK}
    is_real = masks_of(inputs, encoder.stack.kind)[0].float()
    queries = is_real / is_real.sum(dim=1, keepdim=True)
    layers: list[torch.Tensor] = []

    def take(layer: int, weights: torch.Tensor) -> None:
        remaining = reader.remaining[layer]
        if len(remaining) != weights.shape[1]:
            weights = weights[:, list(remaining)]
        weights = weights.float()
        of_heads = (weights, norms.norms(layer, weights))
        shares = [
            torch.einsum("bhqk,bq->bk", taken, queries) / taken.shape[1] for taken in of_heads
        ]
        shares.append(torch.einsum("bqk,bq->bk", norms.layer_norms(layer, weights), queries))
        layers.append(torch.stack([*shares, norms.lengths(layer).mean(dim=1)], dim=1))

    reader.read(inputs, take)
    per_token: FloatArray = torch.stack(layers, dim=1).cpu().numpy().astype(np.float64)
    has_heads = np.array([bool(heads) for heads in reader.remaining])
    check_finite(per_token[:, has_heads], batch.examples, encoder)
    per_token[:, ~has_heads] = np.nan
    return per_token


def groups_of(batch: PaddedBatch) -> BoolArray:
    """Return (4, examples, tokens): whether a token is of each of `GROUPS`."""
    ((words, marks),) = find_marks(batch)
    return np.stack([batch.classifier, batch.separators, marks, words & ~marks])


def uniform_shares(keys: PaddedBatch, reaches: Sequence[Reach]) -> FloatArray:
    """Return (examples, layers, tokens): the mean share of each token in rows of equal weights.

    Rows have weights for the tokens in view alone, so that the first tokens of a decoder get most.
    """
    lengths, by_reach = keys.lengths[:, None], dict[Reach, FloatArray]()
    for reach in dict.fromkeys(reaches):
        shares = keys.real / lengths
        if reach.is_limited:
            scope = Scope(keys, Reach(reach.back, reach.ahead), BIAS)
            rows = scope.seen / np.maximum(scope.row_lengths, 1)[:, :, None]
            shares = (rows * keys.real[:, :, None]).sum(axis=1) / lengths
        by_reach[reach] = shares
    return np.stack([by_reach[reach] for reach in reaches], axis=1)


def values_of(
    example: EncodedExample,
    per_token: FloatArray,
    groups: BoolArray,
    uniform: FloatArray,
    counts: Mapping[str, int],
) -> Float32Array:
    """Return (layers + 1, quantities) from (layers, 4, n) per token and groups (4, n).

    ``uniform`` (layers, n) are the shares of uniform attention.

    Quantities are NaN where the example has no such token, and in layers without heads.
    """
    columns = []
    for group in groups:
        shares = per_token[:, :-1, group].sum(axis=-1)
        lengths = per_token[:, -1:, group].sum(axis=-1) / max(1, group.sum())
        of_group = [uniform[:, group].sum(axis=-1, keepdims=True), shares, lengths]
        of_group.append(shares[:, 1:2] - shares[:, :1])
        columns.append(np.concatenate(of_group, axis=1))
        if not group.any():
            columns[-1][:] = np.nan
    has_pieces = np.flatnonzero(example.sizes)
    words = [word for sentence in example.sentences for word in sentence.words]
    frequency = np.array([counts.get(word.casefold(), 0) for word in words])[has_pieces]
    pieces = (example.words[:, None] == has_pieces) / example.sizes[has_pieces]
    # the first tokens of a decoder are in view of most rows
    beside_uniform = per_token[:, :-1] / uniform[:, None]
    of_words = np.concatenate([beside_uniform, per_token[:, -1:]], axis=1) @ pieces  # their means
    is_other = ~marks_in(example)[has_pieces]
    for chosen in (np.ones_like(is_other), is_other):
        columns.append(rank_correlations(of_words[..., chosen], frequency[chosen]))
    layers = np.concatenate(columns, axis=1)
    has_heads = ~np.isnan(per_token).any(axis=(1, 2))
    layers[~has_heads] = np.nan
    whole = (layers[has_heads] if has_heads.any() else layers).mean(axis=0)
    return np.concatenate([layers, whole[None]]).astype(np.float32)


def rank_correlations(values: FloatArray, counts: IntArray) -> FloatArray:
    """Return Spearman's rank correlations of ``values`` (..., words) with ``counts``.

    NaN for fewer than three words, and where either is the same for all words.
    """
    from scipy.stats import rankdata

    if values.shape[-1] < _FEWEST_WORDS:
        return np.full(values.shape[:-1], np.nan)
    ranks, of_counts = rankdata(values, axis=-1), rankdata(counts)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    of_counts -= of_counts.mean()
    scale = np.sqrt((ranks**2).sum(axis=-1) * (of_counts**2).sum())
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, for constant values
        return np.asarray(ranks @ of_counts / scale)


def draw_token_group(groups: TokenGroups, group: str, ax: Axes | None = None) -> Axes:
    """Draw by layer the shares of weights and norms that the tokens of one group get.

    Bars are the intervals of the table; the dotted line is the share of the tokens that are of the
    group, as with uniform attention. Raises UsageError for an unknown group, and for a table
    without single layers.

    With ``groups`` as `measure_token_groups` returns them:

    >>> from headroles.report import draw_token_group
    >>> draw_token_group(groups, "separators").get_title()
    'separators'
    """
    names = list(groups.frame["group"].unique())
    if group not in names:
        raise UsageError(not_among("group", group, names))
    if not set(groups.frame["layer"]) - {ALL_LAYERS}:
        raise UsageError("the table has no single layer to draw; include some")
    rows = groups.frame[groups.frame["group"] == group].set_index(["quantity", "layer"])
    ax = new_axes(ax, 4, 3)
    for name, look in _LOOKS.items():
        by_layer = rows.loc[name].drop(ALL_LAYERS, errors="ignore")
        layers, mean = by_layer.index.astype(int), by_layer["mean"]
        ax.plot(layers, mean, label=name, markersize=4, **look)
        ax.vlines(layers, by_layer["ci_low"], by_layer["ci_high"], color=look["color"])
    uniform = float(rows["mean"].loc["tokens"].iloc[-1])
    ax.axhline(uniform, color=THRESHOLD, linestyle="dotted", label="share of the tokens")
    ax.set_xticks(layers[:: -(-len(layers) // MOST_LABELS)])
    ax.set(ylim=(0, 1), xlabel="layer", ylabel="share")
    ax.set_title(group)
    legend_below(ax)
    return ax


def draw_token_groups(groups: TokenGroups) -> Figure:
    """Draw every group that some example has, each as `draw_token_group` does.

    Raises UsageError if there is none.

    With ``groups`` as `measure_token_groups` returns them:

    >>> from headroles.report import draw_token_groups
    >>> len(draw_token_groups(groups).axes)
    4
    """
    if not (names := groups.present):
        raise UsageError("no example has tokens of any group, so the figure would be empty")
    figure, axes = several_axes(len(names), 3.2, len(names), 0.9, sharey=True)
    for k, (ax, name) in enumerate(zip(axes, names, strict=True)):
        draw_token_group(groups, name, ax)
        if k:
            ax.set_ylabel("")
    return figure
