"""Join links of both directions of a bitext. Bitext, two files of links -> JoinedLinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypedDict

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray, IntArray
from headroles.corpus import (
    BITEXT,
    AnyCorpus,
    Example,
    PreparedCorpus,
    as_corpus,
    ends_of_link,
    links_in,
    make_examples,
    prepared,
    read_lines,
)
from headroles.errors import CorpusError, UsageError
from headroles.options import CIRCUMSTANCE, Convert, path_text, takes
from headroles.results.columns import NUMBER, WHOLE, Axes, Column
from headroles.results.consistency import Rule, around
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown, Warned
from headroles.storage import whole_file
from headroles.studies.alignment.evidence import Errors, difference, rates_of
from headroles.studies.alignment.joined import METHODS, Links
from headroles.testing.options import AlphaOptions
from headroles.wording import numbered, shortened

_RATE, _GAIN = ("aer", "ci_low", "ci_high"), ("gain", "gain_low", "gain_high")


@dataclass(frozen=True, kw_only=True)
class SymmetrizeOptions(AlphaOptions):
    """Options of joining links."""

    title: ClassVar[str] = "Corpus"

    forward: Annotated[str | None, Convert(path_text)] = None
    """File of links by a model that translates the sources, as `align` writes them."""
    backward: Annotated[str | None, Convert(path_text)] = None
    """File of links by a model of the other direction, which `align` writes with `reverse`."""
    by: Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"] = (
        "grow-diag-final"
    )
    """How the links that are written are joined."""
    write_links: Annotated[str | None, Convert(path_text), CIRCUMSTANCE] = None
    """File for the joined links, a line for each of the bitext, as in 0-0 1-2."""

    def check(self) -> None:
        """Reject a direction that is missing."""
        super().check()
        if self.forward is None or self.backward is None:
            raise UsageError(
                "links of both directions are joined: name their files with `forward` and "
                "`backward`"
            )


class SymmetrizeFacts(TypedDict):
    """Pairs of the bitext, those with links by hand, and their sure links."""

    pairs: int
    aligned: int
    sure: int
    written: str


@dataclass(frozen=True, repr=False, eq=False)
class JoinedLinks(Result[SymmetrizeOptions, SymmetrizeFacts]):
    """Links of both directions, and of each way to join them.

    ``frame`` has a row for each ``set`` of links, with the number of ``links`` in all pairs.
    ``precision``, ``recall``, ``f1`` and the alignment error rate ``aer``, with its interval, are
    over the ``n`` pairs that the bitext aligns, and NaN without; ``gain`` is the error rate of the
    better direction less that of the set.
    """

    kind: ClassVar[str] = "joined links"
    question: ClassVar[str] = "Do both directions align words better than one?"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "set n links precision recall f1 aer ci_low ci_high gain gain_low gain_high".split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        "links": Column(WHOLE, 0),
        **dict.fromkeys("precision recall f1 aer".split(), Column(NUMBER, 0, 1, gaps=True)),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "aer", "ci_high"),
        around("gain_low", "gain", "gain_high"),
    )

    def axes(self) -> Axes:
        """Return the sets of links."""
        return {("set",): [(name,) for name in METHODS]}

    def summarize(self) -> Iterator[Shown]:
        """Give the links and errors of each set, and the file of those that are written."""
        facts = self.facts
        if facts["aligned"]:
            yield (
                f"Links of {numbered(facts['pairs'], 'pair')}, in % beside {facts['sure']:,} sure "
                "links. Less errors: than those of the better direction, with the interval."
            )
        else:
            yield f"Links of {numbered(facts['pairs'], 'pair')}:"
            yield Warned("The bitext has no alignment, so errors cannot be counted.")
        cells = (
            (row["set"], f"{row['links']:,}", *_percents(row)) for _, row in self.frame.iterrows()
        )
        titles = ("set", "links", "precision", "recall", "errors", "less errors", "interval")
        yield Grid(titles, tuple(cells))
        yield from (
            f"Skipped {reason}: {count}." for reason, count in self.record.corpus.skipped.items()
        )
        if facts["written"]:
            yield f"The links by {self.options.by} are in {facts['written']}."


def _percents(row: pd.Series) -> Iterator[str]:
    """Yield the shares of a set of links in %, and the interval of a gain; empty without."""
    for name in ("precision", "recall", "aer", "gain"):
        yield "" if np.isnan(row[name]) else f"{100 * row[name]:.1f}"
    low, high = 100 * row["gain_low"], 100 * row["gain_high"]
    yield "" if np.isnan(low) else f"{low:.1f} to {high:.1f}"


@takes(SymmetrizeOptions)
def symmetrize_links(corpus: AnyCorpus, options: SymmetrizeOptions) -> JoinedLinks:
    """Join the links of both directions of a bitext, and count the errors of each way to do so.

    A target word has at most one link forward, a source word at most one backward. Joined, they
    are fewer and surer (intersection), more (union), or in between: grow-diag adds links of either
    direction beside ones of both, if these link a word without a link, and grow-diag-final then
    links of either to such words anywhere; with -and, to two such words (Koehn et al. 2005).

    Args:
        corpus: a bitext, as `read_bitext` reads it. Without links of words no errors are counted.
        options: keyword arguments, described below.

    Raises:
        UsageError: no bitext, or a direction without a file.
        CorpusError: defective input, or links that do not fit the bitext.
        StorageError: a file of links that cannot be written.
    """
    with prepared(as_corpus(corpus)) as ready:
        if ready.record.format != BITEXT:
            raise UsageError("links are of a bitext, with lines such as source ||| target")
        counts, sure, documents = _count(ready, options)
    is_aligned = sure[:, 1] > 0
    numbers = np.unique(documents, return_inverse=True)[1][is_aligned]
    found, n_sure = counts[is_aligned], sure[is_aligned, 0]
    frame = pd.DataFrame(
        {
            "set": [*METHODS],
            "n": int(is_aligned.sum()),
            "links": counts[..., 0].sum(axis=0),
            **rates_of(found, n_sure),
            **_errors(Errors.from_counts(found, n_sure), numbers, options.alpha),
        }
    )
    facts: SymmetrizeFacts = {
        "pairs": len(counts),
        "aligned": int(is_aligned.sum()),
        "sure": int(n_sure.sum()),
        "written": options.write_links or "",
    }
    return JoinedLinks.made(frame, options, facts=facts, corpus=ready.record)


def _errors(errors: Errors, clusters: IntArray, alpha: float) -> dict[str, FloatArray]:
    """Return error rates and their difference from the better direction, with limits."""
    if not len(errors.of):
        return {name: np.full(len(METHODS), np.nan) for name in (*_RATE, *_GAIN)}
    better = errors.column(int(np.argmin(errors.rates[:2])))
    columns = [errors.column(place) for place in range(len(METHODS))]
    rates, gains = (
        np.array([difference(column, beside, clusters, alpha) for column in columns]).T
        for beside in (None, better)
    )
    return dict(zip((*_RATE, *_GAIN), (*rates, *gains), strict=True))


def _count(
    corpus: PreparedCorpus, options: SymmetrizeOptions
) -> tuple[IntArray, IntArray, list[str]]:
    """Count links (pairs, sets, kinds), sure and all links by hand (pairs, 2); name documents.

    The links are written on the way.
    """
    counts, sure, documents, first = [], [], [], corpus.record.links_from
    files = [LinkFile(str(path), first) for path in (options.forward, options.backward)]
    with _opened(options.write_links) as out:
        for pair, place in _placed(corpus):
            lengths = tuple(len(sentence.words) for sentence in pair.sentences)
            both = [file.links_at(place, lengths) for file in files]
            joined = {name: join(*both) for name, join in METHODS.items()}
            by_hand = links_in(lengths[0], pair.sentences[1])
            own = frozenset((s, t) for s, t, label in by_hand if not label)
            every = frozenset((s, t) for s, t, _ in by_hand)
            sets = joined.values()
            counts.append([(len(found), len(found & own), len(found & every)) for found in sets])
            sure.append((len(own), len(every)))
            documents.append(pair.document)
            out(place, [f"{s + first}-{t + first}" for s, t in sorted(joined[options.by])])
    for file in files:
        file.check_end()
    return np.array(counts), np.array(sure), documents


def _placed(corpus: PreparedCorpus) -> Iterator[tuple[Example, int]]:
    """Yield the pairs of a bitext, each with its line in a file of links, from 0."""
    name, first, place = "", 0, -1
    for pair in make_examples(corpus, "adjacent"):
        if len(pair.sentences) < 2:
            continue
        own, _, number = pair.document.rpartition("-")
        if pair.sentences[0].id != f"{pair.document}.source":  # which is that of a line
            place += 1
        else:
            if own != name:
                name, first = own, place + 1
            place = first + int(number) - 1
        yield pair, place


@contextmanager
def _opened(path: str | None) -> Iterator[Callable[[int, list[str]], None]]:
    """Open a file of links, if there is one: a function that writes those of a line."""
    if path is None:
        yield lambda place, links: None
        return
    with whole_file(Path(path)) as draft, draft.open("w", encoding="ascii") as file:
        n_lines = 0

        def write(place: int, links: list[str]) -> None:
            nonlocal n_lines
            file.write("\n" * (place - n_lines) + " ".join(links) + "\n")
            n_lines = place + 1

        yield write


class LinkFile:
    """A file of links with a line for each line of a bitext, which is read once."""

    def __init__(self, path: str, first: int) -> None:
        self._path, self._first = path, first
        self._lines = enumerate(read_lines(Path(path)))

    def links_at(self, place: int, lengths: tuple[int, ...]) -> Links:
        """Return the links of a pair of sentences of these lengths, in the line of this place.

        Raises CorpusError if there is no such line, for links in lines before it that no pair has,
        and for a link that is none of its words.
        """
        for number, line in self._lines:
            if number == place:
                return frozenset(self._ends(link, place, lengths) for link in line.split())
            if line.strip():
                raise self._misfit(f"line {number + 1} has links, and the bitext no pair there")
        raise self._misfit(f"line {place + 1} does not have the links of a pair")

    def check_end(self) -> None:
        """Raise CorpusError for links after the last pair."""
        for number, line in self._lines:
            if line.strip():
                raise self._misfit(f"line {number + 1} has links, and the bitext no pair there")

    def _ends(self, link: str, place: int, lengths: tuple[int, ...]) -> tuple[int, int]:
        n_source, n_target = lengths
        ends = ends_of_link(link, self._first, (n_source, n_target))
        if ends is None:
            raise self._misfit(
                f"line {place + 1}: {shortened(repr(link))} is no link of {n_source} words with "
                f"{n_target}, counted from {self._first}"
            )
        return ends[0], ends[2]

    def _misfit(self, finding: str) -> CorpusError:
        return CorpusError(
            f"{self._path}, {finding}; give the links that headroles align wrote for this bitext, "
            "and its `links_from`"
        )
