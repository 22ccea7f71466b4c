"""Which heads align words with their translations? Model, bitext -> WordAlignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from headroles.corpus import (
    BITEXT,
    LINKS,
    AnyCorpus,
    PreparedCorpus,
    as_corpus,
    prepared,
    read_backwards,
)
from headroles.encoding import EncodedExample
from headroles.errors import CorpusError, StorageError, UsageError
from headroles.models.heads.remaining import Head
from headroles.models.options import MEASURES, TranslationOptions
from headroles.options import CIRCUMSTANCE, Convert, path_text, split_names, takes
from headroles.passes.options import PassOptions, shown_in_notebooks
from headroles.record import Recorded, RecordedCorpus, RecordedModel
from headroles.results.columns import NUMBER, WHOLE, Axes, Column, one_of
from headroles.results.consistency import Rule, answers_by, around, equal_to, on_side
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.roles.aligned import Alignment
from headroles.scoring.run_notes import warnings_of_run
from headroles.storage import Count, is_folder
from headroles.studies.alignment.evidence import (
    WHOLE_LAYER,
    AlignedPairs,
    Errors,
    difference,
    shares_of,
)
from headroles.studies.alignment.head_sets import NO_LINK, HeadSet
from headroles.studies.heads import clusters_in, in_second_half, warn_of_doubled
from headroles.studies.inspection.origin import read_head
from headroles.testing.evidence import ANSWERS, NO, UNDECIDED, YES
from headroles.testing.options import LevelOptions
from headroles.wording import head_name, numbered

if TYPE_CHECKING:
    from headroles.models.loading.encoder import Model
    from headroles.studies.alignment.links import LinkCounts
    from headroles.studies.alignment.reading import PairReader

_RANKS = ("best head", "second", "third")
_SHOWN = len(_RANKS)
_STEPS = {"input": "reads", "output": "writes"}
_DRAWN, _SHORT, _LONG = 2, 5, 16
"""Pairs to draw, and numbers of words of each sentence that are legible."""


def _heads_named(value: str | Sequence[str | Head]) -> tuple[Head, ...]:
    """Read heads, as in 1-5,2-5, or pairs of numbers. Raises UsageError for other names."""
    names = split_names(value) if isinstance(value, str) else value
    heads = (one if isinstance(one, str) else head_name(one) for one in names)
    return tuple(dict.fromkeys(map(read_head, heads)))


@dataclass(frozen=True, kw_only=True)
class AlignOptions(LevelOptions, PassOptions, TranslationOptions):
    """Options of the alignment of words."""

    title: ClassVar[str] = "Heads"

    top: Annotated[int, Meta(ge=1)] = 3
    """Average this many of the best heads; with more than one the text is read twice."""
    reverse: bool = False
    """Read the bitext the other way round, with a model of the other direction.

    MODEL then translates the targets of the bitext into its sources. Links that are written stay
    source-target, and languages are those of the bitext.
    """
    links_of: Annotated[tuple[Head, ...] | None, Convert(_heads_named)] = None
    """Heads whose links are written and drawn, by their average, as in 1-5,2-5; left out: the top
    ones with fewest errors, or without an alignment those that attend most to single words."""
    links_by: Literal["weights", "norms"] = "weights"
    """Whether these links are by weights or by norms."""
    write_links: Annotated[str | None, Convert(path_text), CIRCUMSTANCE] = None
    """File for the links, a line for each of the bitext, as in 0-0 1-2 (source-target)."""


class DrawnPair(Recorded, frozen=True):
    """A pair of sentences with links (source, target), and those of the bitext."""

    id: str
    source: Annotated[list[str], Meta(min_length=1)]
    target: Annotated[list[str], Meta(min_length=1)]
    links: list[tuple[Count, Count]]
    sure: list[tuple[Count, Count]]
    possible: list[tuple[Count, Count]]

    def __post_init__(self) -> None:
        for source, target in (*self.links, *self.sure, *self.possible):
            if source >= len(self.source) or target >= len(self.target):
                raise ValueError("a link of no word")


class BestOfHalf(Recorded, frozen=True):
    """The best head by a measure for a half of the pairs, and several together; see `best`."""

    measure: str
    half: Count
    n: Count
    head: str
    aer: float | None
    ci_low: float | None
    ci_high: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    heads: str = ""
    together: float | None = None
    together_low: float | None = None
    together_high: float | None = None
    together_gain: float | None = None
    together_gain_low: float | None = None
    together_gain_high: float | None = None


_OF_BEST = BestOfHalf.__struct_fields__
_TEXTS = ("measure", "head", "heads")


class AlignFacts(TypedDict):
    """What the heads are compared with, and the best of them.

    ``pairs`` have links in the bitext, ``sure`` of them sure ones; ``diagonal`` is the alignment
    error rate of the diagonal. ``best`` are the rows of the view of that name. ``links_of`` and
    ``links_by`` name the heads of the links in ``drawn`` pairs.
    """

    clustered_by: str
    n_clusters: int
    pairs: int
    sure: int
    diagonal: float | None
    best: list[BestOfHalf]
    links_of: list[Head]
    links_by: str
    drawn: list[DrawnPair]
    written: str


@dataclass(frozen=True, repr=False, eq=False)
class WordAlignment(Result[AlignOptions, AlignFacts]):
    """How well each cross-attention head aligns words, by weights and by norms.

    A target word is linked to the source word that it attends to most, and has no link if that is a
    special token. ``frame`` has a row for each ``measure``, ``layer`` and ``head``; the head -1 are
    all heads of the layer together: the mean of weights, and the norm of the sum of what the heads
    take from a word (Kobayashi et al. 2020).

    ``linked`` is the share of target words with a link, ``confidence`` the mean over target words
    of the largest attention to a source word. ``precision``, ``recall``, ``f1`` and the alignment
    error rate ``aer`` (Och and Ney 2003) are over all links of the ``n`` pairs that the bitext
    aligns; they are NaN without, and for heads that were removed. ``ci_low`` and ``ci_high`` are
    the interval of ``aer``.

    ``gain`` is the error rate of the diagonal less that of the head, and ``answer`` says whether
    the head makes fewer errors. ``lead`` is the error rate of the best other head less that of this
    one, and ``leads`` whether it makes fewer errors than any other; the best other head (for
    layers: layer) of each half of the pairs is chosen on the other half.

    With ``alignment`` as `align_words` returns it:

    >>> alignment.frame.columns.tolist()[:4]
    ['layer', 'head', 'measure', 'n']
    """

    kind: ClassVar[str] = "alignment"
    question: ClassVar[str] = "Which heads align words with their translations?"
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "layer head measure n n_clusters links linked confidence precision recall f1 aer "
            "ci_low ci_high gain gain_low gain_high p_value p_adjusted p_below p_below_adjusted "
            "answer lead lead_low lead_high p_lead p_lead_adjusted p_behind p_behind_adjusted leads"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "head": Column(WHOLE, WHOLE_LAYER),
        "links": Column(WHOLE, 0),
        "confidence": Column(NUMBER, 0, 1.001),
        **dict.fromkeys("linked precision recall f1 aer".split(), Column(NUMBER, 0, 1, gaps=True)),
        "lead": Column(NUMBER, -1, 1, gaps=True),
        "answer": one_of(*ANSWERS),
        "leads": one_of(*ANSWERS),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "aer", "ci_high"),
        around("gain_low", "gain", "gain_high"),
        around("lead_low", "lead", "lead_high"),
        equal_to("f1", ("precision", "recall"), lambda p, r: 2 * p * r / (p + r)),
        answers_by("answer", "p_adjusted", YES),
        answers_by("answer", "p_below_adjusted", NO),
        answers_by("leads", "p_lead_adjusted", YES),
        answers_by("leads", "p_behind_adjusted", NO),
        on_side("answer", (YES,), (NO,), "gain"),
        on_side("leads", (YES,), (NO,), "lead"),
    )
    views: ClassVar[tuple[str, ...]] = ("long", "best")
    figures: ClassVar[Mapping[str, str]] = {
        "errors": "headroles.studies.alignment.figures:draw_error_rates",
        "links": "headroles.studies.alignment.figures:draw_links",
    }

    def axes(self) -> Axes:
        """Return measures, layers, and heads, which whole layers are among."""
        return {
            ("measure",): [(measure,) for measure in MEASURES],
            ("layer",): [],
            ("head",): [(WHOLE_LAYER,), (0,)],
        }

    @property
    def has_errors(self) -> bool:
        """Whether the bitext has an alignment to count errors by."""
        return bool(self.frame["aer"].notna().any())

    def best(self) -> pd.DataFrame:
        """Return the best head of each measure, and the mean of several, on unseen pairs.

        They are chosen on one half of the pairs by the alignment error rate ``aer``, and reported
        on the other ``half``, 1 or 2. ``gain`` is what the diagonal has more. ``together`` is the
        error rate of the average attention of the ``heads``, and ``together_gain`` that of the
        single head less this one. Empty without an alignment.
        """
        columns = {name: [getattr(row, name) for row in self.facts["best"]] for name in _OF_BEST}
        numbers = dict.fromkeys((name for name in _OF_BEST if name not in _TEXTS), np.float64)
        return pd.DataFrame(columns).astype({**numbers, "half": np.int64, "n": np.int64})

    def rows_of(self, measure: str, of_layers: bool = False) -> pd.DataFrame:
        """Return the rows of single heads by a measure, those with fewest errors first; or layers.

        Without an alignment, those that attend most to single words are first.
        """
        rows = self.frame[self.frame["measure"] == measure]
        rows = rows[(rows["head"] == WHOLE_LAYER) == of_layers]
        if self.has_errors:
            return rows.sort_values("aer", kind="stable")
        return rows.sort_values("confidence", ascending=False, kind="stable")

    def summarize(self) -> Iterator[Shown]:
        """Name the best heads and layers, what they are better than, and the file of links."""
        facts, step = self.facts, _STEPS[self.options.target_rows]
        pairs = numbered(self.record.corpus.examples, "pair")
        intro = (
            f"{self.record.model.name} over {pairs} of sentences. Links: the source word that each "
            f"target word attends to most, in the step that {step} it."
        )
        if self.options.reverse:
            intro += " The bitext is read the other way round: its targets are the sources."
        if self.has_errors:
            yield (
                f"{intro} Error rates beside {facts['sure']:,} sure links, in %; that of the "
                f"diagonal is {_percent(facts['diagonal'])}."
            )
            yield self._errors()
            yield from self._on_other_half()
        else:
            yield intro
            yield Warned(
                "The bitext has no alignment, so errors cannot be counted. Add links to its lines, "
                "or name a file of them with `links`."
            )
            yield "Heads with the largest mean attention to one source word:"
            yield self._confidence()
        yield from (
            f"Skipped {reason}: {count}." for reason, count in self.record.corpus.skipped.items()
        )
        if facts["written"]:
            heads = ", ".join(map(head_name, facts["links_of"]))
            yield f"The links of {heads} by {facts['links_by']} are in {facts['written']}."
        yield from map(Warned, (*self.record.warnings, *warnings_of_run(self.record)))

    def _errors(self) -> Grid:
        """Return the best heads and layers by each measure, and counts of answers."""
        rows = []
        for measure in MEASURES:
            heads, layers = self.rows_of(measure), self.rows_of(measure, of_layers=True)
            layer, answers = layers.iloc[0], heads["answer"].value_counts()
            best = _named_heads(heads.head(_SHOWN), 100 * heads["aer"], ".1f")
            counts = (str(answers.get(name, 0)) for name in (YES, UNDECIDED))
            rows.append((measure, *best, f"{layer['layer']} {_percent(layer['aer'])}", *counts))
        titles = ("by", *_RANKS, "best layer", "beat diagonal", "undecided")
        return Grid(titles, tuple(rows))

    def _confidence(self) -> Grid:
        """Return the heads that attend most to single words."""
        rows = [(measure, self.rows_of(measure).head(_SHOWN)) for measure in MEASURES]
        cells = ((name, *_named_heads(heads, heads["confidence"], ".2f")) for name, heads in rows)
        return Grid(("by", *_RANKS), tuple(cells))

    def _on_other_half(self) -> Iterator[Shown]:
        """Yield the error rates of heads that were chosen on other pairs."""
        best = self.best()
        if not len(best):
            return
        yield "Chosen on one half of the pairs, counted on the other:"
        shares = ["aer", "ci_low", "ci_high", "together"]
        cells = {
            "by": "{measure}",
            "half": "{half}",
            "head": "{head}",
            "errors": "{aer}",
            "interval": "{ci_low} to {ci_high}",
            "mean of": "{heads}",
            "errors ": "{together}",
        }
        columns = cells if best["together"].notna().any() else [*cells][:-2]
        best = best.assign(**{name: best[name].map(_percent) for name in shares})
        yield Grid.from_frame(best, {name: cells[name] for name in columns})


def _named_heads(rows: pd.DataFrame, values: pd.Series[float], digits: str) -> list[str]:
    """Write the heads of some rows with their values, in as many cells as are shown."""
    cells = [
        f"{head_name((layer, head))} {values[row]:{digits}}"
        for row, layer, head in zip(rows.index, rows["layer"], rows["head"], strict=True)
    ]
    return cells + [""] * (_SHOWN - len(cells))


def _percent(share: float | None) -> str:
    """Write a share in percent; "-" if missing."""
    return "-" if share is None or np.isnan(share) else f"{100 * share:.1f}"


@takes(AlignOptions)
def align_words(model: Model, corpus: AnyCorpus, options: AlignOptions) -> WordAlignment:
    """Compare the source words that target words attend to most with an alignment of the words.

    Links are found by every cross-attention head and every layer, by weights and by norms
    (Kobayashi et al. 2020). Attention to a word is the sum over its pieces, attention from a word
    the mean over its pieces; each special token of the source is one more choice, and means no
    link. Error rates are over all links of the bitext, with intervals and tests over its pairs.

    Args:
        model: a folder, a hub id, or a loaded encoder-decoder in evaluation mode.
        corpus: a bitext, as `read_bitext` reads it. Without links of words the heads find links,
            and no errors are counted.
        options: keyword arguments, described below.

    Raises:
        UsageError: no bitext, possible links without a sure one, heads that the model does not
            have, or pairs that cannot be clustered as asked.
        CorpusError: defective input, or no pair that fits.
        ModelSupportError: a model without cross-attention, or whose projections are not known.
        ModelError, TokenizerError: as `score_heads`.
        StorageError: a file of links that cannot be written.
    """
    with shown_in_notebooks(options) as options:
        _check_file(options.write_links)
        with _opened(model, corpus, options) as reader:
            _check_heads(options.links_of, reader)
            return _aligned(reader, options)


class CountedPairs(NamedTuple):
    """Errors of all heads, with the records of the model and the bitext."""

    pairs: AlignedPairs
    model: RecordedModel
    corpus: RecordedCorpus


def count_pairs(model: Model, corpus: AnyCorpus, options: AlignOptions) -> CountedPairs:
    """Return the errors of all heads in the pairs of a bitext. Raises errors as `align_words`."""
    with _opened(model, corpus, options) as reader:
        counts = reader.count_heads()
        return CountedPairs(_aligned_pairs(reader, counts, options), *reader.records)


@contextmanager
def _opened(model: Model, corpus: AnyCorpus, options: AlignOptions) -> Iterator[PairReader]:
    """Open the pairs of a bitext."""
    from headroles.studies.alignment.reading import open_pairs

    bitext, languages = as_corpus(corpus), (options.source_language, options.target_language)
    if options.reverse:
        bitext = read_backwards(bitext)
        target, source = languages
        options = replace(options, source_language=source, target_language=target)
    with prepared(bitext) as ready:
        if ready.record.format != BITEXT:
            raise UsageError(
                "words are aligned with those of a translation: give a bitext, with lines such as "
                "source ||| target ||| 0-0 1-2"
            )
        _check_links(ready)
        with open_pairs(model, ready, options, options.reverse) as reader:
            yield reader


def _aligned_pairs(reader: PairReader, counts: LinkCounts, options: AlignOptions) -> AlignedPairs:
    clusters = clusters_in(reader.clusters, options)
    in_second, labels = in_second_half(reader.clusters), _labels(reader.shape)
    absent = _absent(labels, reader.remaining)
    return AlignedPairs.from_counts(labels, counts, clusters, in_second, absent)


def _check_links(corpus: PreparedCorpus) -> None:
    """Raise CorpusError for a bitext with possible links and without a sure one."""
    has_possible = False
    for sentence in corpus:
        kinds = {kind for misc in sentence.misc for kind in LINKS if kind in misc}
        if LINKS[0] in kinds:
            return
        has_possible |= bool(kinds)
    if has_possible:
        raise CorpusError(
            "all links of the bitext are possible ones, as 0p0, and error rates need sure ones; "
            "write sure links as 0-0"
        )


def _check_file(out: str | None) -> None:
    """Raise StorageError before the work for a file of links that has no folder."""
    if out is not None and not is_folder(folder := Path(out).parent):
        raise StorageError(f"{folder}, the folder for the links, does not exist; make it first")


def _check_heads(heads: Sequence[Head] | None, reader: PairReader) -> None:
    """Raise UsageError for a head that the model does not have, and for a model without heads."""
    if not any(reader.remaining):
        raise UsageError("all heads of cross-attention are removed; take a model that has some")
    for head in heads or ():
        if not all(0 <= place < size for place, size in zip(head, reader.shape, strict=True)):
            layers, n_heads = reader.shape
            raise UsageError(
                f"the model has no cross-attention head {head_name(head)}; it has {layers} "
                f"layers of {n_heads} heads, from 0-0"
            )
        if head[1] not in reader.remaining[head[0]]:
            raise UsageError(
                f"the cross-attention head {head_name(head)} was removed from the model; name "
                "another one"
            )


def _aligned(reader: PairReader, options: AlignOptions) -> WordAlignment:
    """Count links, test them, and read the best heads together."""
    counts = reader.count_heads()
    pairs = _aligned_pairs(reader, counts, options)
    shares = shares_of(counts, pairs.absent)
    labels, clusters = pairs.labels, clusters_in(reader.clusters, options)
    chosen = [*_chosen(pairs, options.top)]
    links_of = _links_of(labels, pairs, shares, options)
    together: list[Errors] = []
    if (chosen and options.top > 1) or options.write_links:
        sets = [links_of, *(one.heads for one in chosen)]
        out = None if options.write_links is None else Path(options.write_links)
        of_sets = reader.count_sets(sets, 0, out)
        there = of_sets.has_links
        errors = Errors.from_counts(of_sets.found[there], of_sets.sure[there])
        together = [errors.column(place) for place in range(1, len(sets))]
    facts: AlignFacts = {
        "clustered_by": "none" if clusters is None else "document",
        "n_clusters": len(reader.lengths if clusters is None else np.unique(clusters)),
        "pairs": int(counts.has_links.sum()),
        "sure": int(counts.sure.sum()),
        "diagonal": float(pairs.diagonal.rates[0]) if counts.has_links.any() else None,
        "best": [
            _best_row(pairs, one, together[place] if options.top > 1 else None, options.alpha)
            for place, one in enumerate(chosen)
        ],
        "links_of": [*links_of.heads],
        "links_by": links_of.measure,
        "drawn": _drawn(reader, links_of),
        "written": options.write_links or "",
    }
    described, corpus = reader.records
    return WordAlignment.made(
        labels.assign(**shares, **pairs.tests(options)),
        options,
        facts=facts,
        model=described,
        corpus=corpus,
        warnings=[*warn_of_doubled(reader.clusters, options)],
    )


def _labels(shape: tuple[int, int]) -> pd.DataFrame:
    """Return measure, layer and head of all columns, as `LinkReader.by_heads` orders them."""
    heads = (*range(shape[1]), WHOLE_LAYER)
    rows = [*product(MEASURES, range(shape[0]), heads)]
    return pd.DataFrame(rows, columns=["measure", "layer", "head"])


def _absent(labels: pd.DataFrame, remaining: Sequence[Sequence[int]]) -> frozenset[int]:
    """Return the columns of heads that were removed from the model, and of layers without any."""
    present = [{WHOLE_LAYER, *heads} if heads else set() for heads in remaining]
    places = zip(labels["layer"], labels["head"], strict=True)
    return frozenset(
        column for column, (layer, head) in enumerate(places) if head not in present[layer]
    )


class _Chosen(NamedTuple):
    """The best heads by a measure for a half, 1 or 2, chosen on the other half."""

    half: int
    column: int
    heads: HeadSet


def _chosen(pairs: AlignedPairs, top: int) -> Iterator[_Chosen]:
    """Choose the best heads by each measure for each half; none if a half has no pair."""
    if not all(half.any() for half in pairs.halves):
        return
    for measure in MEASURES:
        for half in (1, 2):
            columns = pairs.best(measure, pairs.halves[2 - half])[:top]
            yield _Chosen(half, columns[0], HeadSet(measure, _heads_at(pairs.labels, columns)))


def _heads_at(labels: pd.DataFrame, columns: Sequence[int]) -> tuple[Head, ...]:
    rows = labels.iloc[[*columns]]
    return tuple(zip(rows["layer"].tolist(), rows["head"].tolist(), strict=True))


def _links_of(
    labels: pd.DataFrame,
    pairs: AlignedPairs,
    shares: Mapping[str, NDArray[Any]],
    options: AlignOptions,
) -> HeadSet:
    """Return the heads whose links are written and drawn."""
    measure = options.links_by
    if options.links_of is not None:
        return HeadSet(measure, options.links_of)
    if len(pairs.errors.of):
        columns = pairs.best(measure, np.ones(len(pairs.errors.of), dtype=bool))
    else:
        is_head = (labels["measure"] == measure) & (labels["head"] != WHOLE_LAYER)
        is_head[[*pairs.absent]] = False
        ranked = np.argsort(-shares["confidence"], kind="stable")
        columns = [column for column in ranked.tolist() if is_head[column]]
    return HeadSet(measure, _heads_at(labels, columns[: options.top]))


def _best_row(
    pairs: AlignedPairs, chosen: _Chosen, together: Errors | None, alpha: float
) -> BestOfHalf:
    """Return the best head for a half of the pairs, and several together."""
    rows = pairs.halves[chosen.half - 1]
    clusters = None if pairs.clusters is None else pairs.clusters[rows]
    estimate = partial(difference, clusters=clusters, alpha=alpha)
    of_head, of_diagonal = pairs.errors.take(rows, [chosen.column]), pairs.diagonal.take(rows)
    head = _heads_at(pairs.labels, [chosen.column])[0]
    row: dict[str, Any] = {
        "measure": chosen.heads.measure,
        "half": chosen.half,
        "n": int(rows.sum()),
        "head": head_name(head),
        **_named("aer ci_low ci_high", estimate(of_head, None)),
        **_named("gain gain_low gain_high", estimate(of_head, of_diagonal)),
    }
    if together is not None:
        of_all = together.take(rows)
        row |= {
            "heads": " ".join(map(head_name, chosen.heads.heads)),
            **_named("together together_low together_high", estimate(of_all, None)),
            **_named(
                "together_gain together_gain_low together_gain_high", estimate(of_all, of_head)
            ),
        }
    return BestOfHalf(**row)


def _named(names: str, numbers: Sequence[float]) -> dict[str, float]:
    return dict(zip(names.split(), map(float, numbers), strict=True))


def _drawn(reader: PairReader, heads: HeadSet) -> list[DrawnPair]:
    """Return the first pairs, before others those of legible length, with their links."""
    chosen = sorted(reader.first, key=_is_illegible)[:_DRAWN]
    drawn = []
    for pair, links in zip(chosen, reader.links_in(chosen, heads), strict=True):
        source, target = pair.sentences
        listed = [(s, t, label) for s, t, label in Alignment().of_pair(source, target)]
        drawn.append(
            DrawnPair(
                id=source.document,
                source=[*source.words],
                target=[*target.words],
                links=[(int(s), t) for t, s in enumerate(links) if s != NO_LINK],
                sure=[(s, t) for s, t, label in listed if label == 0],
                possible=[(s, t) for s, t, label in listed if label],
            )
        )
    return drawn


def _is_illegible(pair: EncodedExample) -> bool:
    """Tell whether a sentence of a pair is too short to tell anything, or too long to draw."""
    return not all(_SHORT <= len(sentence.words) <= _LONG for sentence in pair.sentences)
