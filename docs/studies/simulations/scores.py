"""Simulations that draw from scores of real heads.

The population is all scores of a folder, and its means are the truth. Samples are examples or whole
documents, drawn with replacement and all heads together, so that they are as skewed, correlated and
full of gaps as scores are. Where H0 has to be true, thresholds are set to the means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docs.studies.simulations import ALPHA, Figures, Row, Study, averaged, generator
from headroles import (
    HeadScores,
    assign_roles,
    find_best_heads,
    power_analysis,
    read_conllu,
    score_heads,
)
from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.corpus import DEFAULT_RELATIONS, Corpus, Skipped, fold_subtype
from headroles.corpus.sentence import ROOT, Sentence
from headroles.inference import Alternative, Sample, bet
from headroles.role_names import BEYOND_OFFSET
from headroles.roles import OFFSETS, contrast_of
from headroles.studies.evidence import CONTRASTS, DISTANCE, RoleHypotheses
from headroles.studies.heads import HeadColumns
from headroles.testing.evidence import (
    NO,
    UNDECIDED,
    YES,
    find_change,
    find_equivalence,
    find_p_values,
    find_replicated,
)
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import TestOptions

SIDES: tuple[Alternative, ...] = ("greater", "less")
WORDS = {"greater": "yes", "less": "no"}
TESTS = {
    "t, fdr_bh": TestOptions(),
    "t, holm": TestOptions(correction="holm"),
    "betting, fdr_bh": TestOptions(test="betting"),
    "betting, holm": TestOptions(test="betting", correction="holm"),
}
SKEWNESS = (-0.5, 2.0, 8.0)
PLANNED = (50, 100, 200, 400, 800, 1600)
"""Sizes of corpora, in examples; heads planned for at least 4/5 of one are looked at in it."""
ROUNDING = 1e-5


@dataclass(frozen=True)
class Kind:
    """A kind of sample: so many examples, or whole documents."""

    size: int
    of: str

    def __str__(self) -> str:
        return f"{self.size} {self.of}"


EXAMPLES = tuple(Kind(size, "examples") for size in (20, 100, 1000))
DOCUMENTS = tuple(Kind(size, "documents") for size in (20, 50, 150, 300))
PILOTS = (Kind(100, "examples"), Kind(50, "documents"))


def rows_by_document(scores: HeadScores) -> list[IndexArray]:
    """Return the rows of each document."""
    names = np.asarray(scores.documents)
    return [np.flatnonzero(names == name) for name in np.unique(names)]


def drawn_rows(
    scores: HeadScores, documents: list[IndexArray], chosen: Iterable[int]
) -> HeadScores:
    """Return the examples of documents; a document that is chosen twice stands for two."""
    rows = [documents[place] for place in chosen]
    clusters = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    return renamed(scores.select(np.concatenate(rows)), clusters)


def renamed(scores: HeadScores, clusters: NDArray[np.integer]) -> HeadScores:
    """Give examples that may be repeated new names, and documents these clusters."""
    ids = tuple(map(str, range(len(clusters))))
    return replace(scores, ids=ids, documents=tuple(map(str, clusters)), digests=())


@dataclass(frozen=True)
class Population:
    """All scores of a folder."""

    scores: HeadScores

    @cached_property
    def documents(self) -> list[IndexArray]:
        """The rows of each document."""
        return rows_by_document(self.scores)

    @cached_property
    def columns(self) -> HeadColumns:
        """The roles, layers and heads that samples are tested for, whatever they hold."""
        return HeadColumns.from_scores(self.scores)

    def tested(self, scores: HeadScores | None = None) -> RoleHypotheses:
        """Return the H0 of the default table, by default of the population itself."""
        drawn = self.scores if scores is None else scores
        return RoleHypotheses.from_scores(drawn, TestOptions(), columns=self.columns)

    @cached_property
    def whole(self) -> RoleHypotheses:
        """The H0 of the population, by document."""
        return self.tested()

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness of each column."""
        return self.whole.means.sample.skewness

    def draw(self, kind: Kind, rng: np.random.Generator) -> HeadScores:
        """Draw a sample; examples are independent, and documents clusters."""
        if kind.of == "examples":
            rows = rng.integers(0, self.scores.n_examples, kind.size)
            return renamed(self.scores.select(rows), np.zeros(kind.size, dtype=int))
        chosen = rng.integers(0, len(self.documents), kind.size)
        return drawn_rows(self.scores, self.documents, chosen)

    @cached_property
    def _means(self) -> dict[tuple[str, str], tuple[FloatArray, list[FloatArray]]]:
        """What `means` returned, by test and unit."""
        return {}

    def means(self, test: str, kind: Kind) -> tuple[FloatArray, list[FloatArray]]:
        """Return the means (T,), and those of all contrasts with distance, that a test is about."""
        key = (test, kind.of)
        if key not in self._means:
            mean_of = weighted if test == "betting" else lambda tested, _: tested.moments.mean
            legs = [leg for name, leg in self.whole.legs.items() if name in CONTRASTS[DISTANCE]]
            beyond = [leg.spread(mean_of(leg.hypotheses, kind)) for leg in legs]
            self._means[key] = (mean_of(self.whole.means, kind), beyond)
        return self._means[key]

    def truths(self, test: str, kind: Kind) -> dict[str, BoolArray]:
        """Tell for which columns *yes* and *no* are right answers."""
        (mean, beyond), limits = self.means(test, kind), self.whole.means.threshold
        is_yes = mean > limits + ROUNDING
        for contrast in beyond:
            margin = self.scores.score.margin + ROUNDING
            is_yes &= np.nan_to_num(contrast, nan=np.inf) > margin
        return {"yes": is_yes, "no": mean < limits - ROUNDING}


def weighted(hypotheses: Hypotheses, kind: Kind) -> FloatArray:
    """Return the weighted means that bets test at their limit; weights depend on the threshold."""
    sample, bounds = hypotheses.sample, hypotheses.bounds
    if bounds is None:
        raise SystemExit("these scores have no bounds; score again")
    if kind.of == "examples":
        sample = Sample.from_values(sample.values, np.arange(len(sample.values)))
    mean = sample.moments.mean
    for _ in range(200):
        before, mean = mean, bet(sample, mean, bounds).mean
        if np.nanmax(np.abs(mean - before)) < 1e-12:
            break
    return mean


# Studies of samples: what each draw shows

Measure = Callable[[Population, Kind, np.random.Generator], Figures]


def by_sample(
    measure: Measure,
    kinds: tuple[Kind, ...],
    folders: list[Path],
    n: int,
    null: Callable[[HeadScores], HeadScores] = lambda scores: scores,
) -> Iterator[Row]:
    """Yield a row for each folder, kind of sample and ROW of figures: averages over draws.

    Figures are named ROW/COLUMN, or COLUMN.
    """
    for folder in folders:
        population = Population(null(HeadScores.load(folder)))
        for kind in kinds:
            rng = generator(measure.__name__, kind)
            cells = averaged(measure(population, kind, rng) for _ in range(n))
            by_row: dict[str, dict[str, str]] = {}
            for name, cell in cells.items():
                row, _, column = name.rpartition("/")
                by_row.setdefault(row, {})[column] = cell
            for row, own in by_row.items():
                sample = f"{population.scores.score.name}, {kind}"
                yield {"sample": f"{sample}: {row}" if row else sample, **own}


def level(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure wrong rejections of t at 5 %, with and without clusters, by skewness."""
    tested = population.tested(population.draw(kind, rng)).means
    limits = population.means("t", kind)[0]
    band = np.digitize(population.skewness, SKEWNESS)
    names = [f"to {limit:g}" for limit in SKEWNESS] + [f"above {SKEWNESS[-1]:g}"]
    figures: Figures = {}
    for side in SIDES:
        p = find_p_values(tested.against(limits), TestOptions(), side).single
        rejected = np.where(np.isnan(p), np.nan, p <= ALPHA)
        figures[f"{WORDS[side]}, all"] = rejected
        if tested.is_clustered:
            plain = Hypotheses.from_values(tested.sample.values, limits, size=tested.size)
            p = find_p_values(plain, TestOptions(), side).single
            figures[f"{WORDS[side]}, no clusters"] = np.where(np.isnan(p), np.nan, p <= ALPHA)
        for place, name in enumerate(names):
            figures[f"{WORDS[side]}, skewness {name}"] = rejected[band == place]
    return figures


def families(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure any rejection in a family whose H0 are all true at their limit."""
    tested = population.tested(population.draw(kind, rng)).means
    at_limit = {test: tested.against(population.means(test, kind)[0]) for test in ("t", "betting")}
    figures: Figures = {}
    for name, options in TESTS.items():
        for side in SIDES:
            found = find_p_values(at_limit[options.test], options, side)
            figures[f"{name}, {WORDS[side]}"] = float(found.shows(ALPHA).any())
    return figures


def answers(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure answers given, the share of the true ones that are found, and the wrong ones."""
    tested = population.tested(population.draw(kind, rng))
    figures: Figures = {}
    names = [name for name in TESTS if tested.has_bounds or TESTS[name].test == "t"]
    for name in names:
        given = tested.answered(TESTS[name]).answers
        for word, is_true in population.truths(TESTS[name].test, kind).items():
            own = given == word
            figures[f"{name}/{word}"] = float(own.mean())
            figures[f"{name}/{word}, found"] = share_of(own & is_true, is_true)
            figures[f"{name}/{word}, wrong"] = share_of(own & ~is_true, own)
    return figures


def found(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure the share of true answers that are found, about roles of arcs and of tokens apart."""
    tested = population.tested(population.draw(kind, rng))
    given = tested.answered(TestOptions()).answers
    figures: Figures = {}
    for part, is_of_part in (("arcs", tested.has_steps), ("tokens", ~tested.has_steps)):
        for word, is_true in population.truths("t", kind).items():
            true = is_true & is_of_part
            figures[f"{part}/{word}, found"] = share_of((given == word) & true, true)
        figures[f"{part}/undecided"] = share_of((given == UNDECIDED) & is_of_part, is_of_part)
    return figures


def share_of(some: BoolArray, all_of: BoolArray) -> float:
    """Return the share of all that are some; 0 of none."""
    return float(some.sum() / max(1, all_of.sum()))


def at_limit(scores: HeadScores) -> HeadScores:
    """Move half of the roles of arcs: by turns the mean to its threshold, the contrast to its
    margin, and the other of the two well above its limit. No bounds hold for such scores.
    """
    whole = Population(scores).whole
    values, rng = scores.values.copy(), generator("at limit")
    having = whole.legs[BEYOND_OFFSET].subjects
    moved = rng.permutation(having)[: len(having) // 2]
    role, layer, head = whole.columns.indices
    for turn, place in enumerate(moved):
        name = whole.columns.ids[role[place]]
        of_mean, of_contrast = (scores.role_ids.index(one) for one in (name, contrast_of(name)))
        for at, limit, exactly in (
            (of_mean, whole.means.threshold[place], turn % 2 == 0),
            (of_contrast, scores.score.margin, turn % 2 == 1),
        ):
            own = values[:, layer[place], head[place], at]
            away = 0 if exactly else 2 * np.nanstd(own)
            own += limit - np.nanmean(own, dtype=np.float64) + away
    return replace(scores, values=values, bounds=None)


def half(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure false discoveries and power; half of the columns have an effect of 4 errors."""
    drawn = population.draw(kind, rng)
    tested = population.tested(drawn).means
    is_moved = generator("half").permutation(tested.n_tests) % 2 == 0
    error = 4 * population.whole.means.moments.sd / np.sqrt(drawn.n_examples)
    figures: Figures = {}
    for side in SIDES:
        away = np.where(is_moved, error * (-1 if side == "greater" else 1), 0.0)
        limits = tested.against(population.means("t", kind)[0] + away)
        for name in ("t, fdr_bh", "t, holm"):
            shown = find_p_values(limits, TESTS[name], side).shows(ALPHA)
            figures[f"{name}, {WORDS[side]}, false"] = share_of(shown & ~is_moved, shown)
            figures[f"{name}, {WORDS[side]}, power"] = share_of(shown & is_moved, is_moved)
    return figures


def intervals(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure how many intervals of 95 % hold the mean, also of heads with one answer."""
    tested = population.tested(population.draw(kind, rng))
    mean = population.means("t", kind)[0]
    plain = Sample.from_values(tested.means.sample.values)
    given = tested.answered(TestOptions()).answers
    figures: Figures = {}
    for name, own in (("all", tested.means), ("no clusters", replace(tested.means, sample=plain))):
        at = own.intervals(ALPHA)
        held = np.where(np.isnan(at.ci_low), np.nan, (at.ci_low <= mean) & (mean <= at.ci_high))
        figures[name] = held
        if name == "all":
            figures["above the interval"] = np.where(np.isnan(held), np.nan, at.ci_high < mean)
            figures |= {word: held[given == word] for word in ("yes", "no")}
    return figures


def plans(population: Population, kind: Kind, rng: np.random.Generator) -> Figures:
    """Measure the share of heads decided with as many examples as planned, by size of the corpus.

    Plans are made by the whole corpus, and by a pilot, the sample. What is looked at in a corpus of
    n examples are the heads that were planned to need at most n of them, and at least 4/5 of n.
    """
    alone = replace(population.scores, documents=("",) * population.scores.n_examples)
    by_document = kind.of == "documents"
    whole = population.scores if by_document else alone
    made = {"whole corpus": whole, "pilot": population.draw(kind, rng)}
    per_document = population.scores.n_examples / len(population.documents)
    figures: Figures = {}
    for size in PLANNED:
        corpus = Kind(round(size / per_document) if by_document else size, kind.of)
        tested = population.tested(population.draw(corpus, rng))
        labels = pd.MultiIndex.from_frame(pd.DataFrame(population.columns.labels))
        given = pd.Series(tested.answered(TestOptions()).answers, index=labels)
        for source, scores in made.items():
            plan = power_analysis(scores).frame.set_index(["layer", "head", "role"])
            needed = plan["corpus_examples"]
            due = plan.index[(needed <= size) & (needed > 0.8 * size)]
            decided = given.reindex(due) == plan["direction"][due]
            figures[f"{source}, {size}"] = float(decided.mean()) if len(due) else np.nan
    return figures


# Studies of first choices


def study_best(folders: list[Path], n: int) -> Iterator[Row]:
    """Measure the coverage of hits and gains of best heads, in real and made documents."""
    (folder,) = folders
    real = HeadScores.load(folder)
    for name, scores in (("real", real), ("made", made_offsets(real))):
        documents = rows_by_document(scores)
        for size in (20, 50, 100, 150):
            rng = generator("best", name, size)
            draws = (
                of_best(scores, drawn_rows(scores, documents, chosen))
                for chosen in (rng.permutation(len(documents))[:size] for _ in range(n))
            )
            yield {"sample": f"{name}, {size} documents", **averaged(draws)}


def of_best(scores: HeadScores, drawn: HeadScores) -> Figures:
    """Return whether intervals hold the true hits and gains of the chosen heads, and widths."""
    frame = find_best_heads(drawn).frame.dropna(subset="gain_ci_low")
    truths = np.array([_truth(scores, row) for row in frame.itertuples()]).reshape(-1, 2).T
    figures: Figures = {}
    for name, prefix, truth in (("hits", "", truths[0]), ("gains", "gain_", truths[1])):
        low, high = (frame[f"{prefix}ci_{side}"].to_numpy() for side in ("low", "high"))
        figures[name] = ((low - ROUNDING <= truth) & (truth <= high + ROUNDING)).astype(float)
        figures[f"width of {name}#"] = high - low
    return figures


def _truth(scores: HeadScores, row: Any) -> tuple[float, float]:
    """Return the hits of a row's head in all examples, and its gain over its offset."""
    place = scores.role_ids.index(row.role)
    rule = scores.offset_shares[:, place, OFFSETS.index(row.offset)]  # type: ignore[index]
    hits = scores.values[:, row.layer, row.head, place].astype(float)
    return float(np.nanmean(hits)), float(np.nanmean(hits - rule))


def made_offsets(scores: HeadScores, n_documents: int = 3000) -> HeadScores:
    """Make three roles; head 0 hits as offset 0 does, but in 0.4, 4 or 26 % of the examples."""
    rng, flipped = generator("made offsets"), (0.003, 0.03, 0.2)
    assert scores.offset_shares is not None
    pairs = [k for k in range(len(scores.roles)) if not np.isnan(scores.offset_shares[:, k]).all()]
    document = np.repeat(np.arange(n_documents), rng.geometric(0.25, n_documents))
    n = len(document)
    hits = (rng.random((n, 1, 4, len(flipped))) < 0.1).astype(np.float32)
    shares = np.zeros((n, len(flipped), len(OFFSETS)), dtype=np.float32)
    for place, share in enumerate(flipped):
        rule = rng.random(n) < rng.beta(2, 2, n_documents)[document]
        flips = rng.beta(share, 1 - share, n_documents)[document] * np.where(rule, 1, 1.6)
        shares[:, place, 0] = rule
        hits[:, 0, 0, place] = rule ^ (rng.random(n) < flips)
    return replace(
        scores,
        ids=tuple(map(str, range(n))),
        documents=tuple(map(str, document)),
        lengths=np.ones(n, dtype=np.int64),
        roles=tuple(scores.roles[place] for place in pairs[: len(flipped)]),
        values=hits,
        counts=np.ones((n, len(flipped)), dtype=np.int64),
        offset_shares=shares,
        bounds=None,
        digests=(),
    )


def study_no_variance(folders: list[Path], n: int) -> Iterator[Row]:
    """Count answers about scores that do not vary, in a table against a threshold of 0.3."""
    (folder,) = folders
    real = HeadScores.load(folder)
    for name, scores in (("real", real), ("made", made_hits(real))):
        key, documents = ["role", "layer", "head"], rows_by_document(scores)
        truth = assign_roles(scores, threshold=0.3).frame.set_index(key)["mean"] > 0.3
        for size in (2, 5, 10, 30, 100):
            rng, draws = generator("no variance", name, size), []
            for _ in range(n):
                chosen = rng.permutation(len(documents))[:size]
                drawn = drawn_rows(scores, documents, chosen)
                frame = assign_roles(drawn, threshold=0.3).frame.set_index(key)
                alike = frame[frame["note"].str.startswith("degenerate")]
                draws.append(
                    {
                        f"{word}{what}#": float((own & other).sum())
                        for word, is_wrong in (("yes", ~truth), ("no", truth))
                        for own in [alike["answer"] == word]
                        for what, other in (("", own), (", wrong", is_wrong.loc[alike.index]))
                    }
                )
            yield {"sample": f"{name}, {size} documents", **averaged(draws)}


def made_hits(scores: HeadScores) -> HeadScores:
    """Make hits at random, with a probability for each head and document."""
    rng = generator("made hits")
    document = np.unique(scores.documents, return_inverse=True)[1]
    shape = scores.values.shape[1:]
    of_heads = rng.choice([0.02, 0.15, 0.28, 0.32, 0.6, 0.98], shape)
    of_documents = rng.beta(8 * of_heads, 8 * (1 - of_heads), (document.max() + 1, *shape))
    hits = (rng.random(scores.values.shape) < of_documents[document]).astype(np.float32)
    return replace(scores, values=np.where(np.isnan(scores.values), np.nan, hits))


# Studies of two score sets and more


def study_changes(folders: list[Path], n: int) -> Iterator[Row]:
    """Count changes between models that do not differ, or differ by exactly the margin."""
    before = HeadScores.load(folders[0])
    columns, margin = HeadColumns.from_scores(before), before.score.margin
    documents = rows_by_document(before)
    for folder in folders[1:]:
        after = columns.values(HeadScores.load(folder)).astype(np.float64)
        differences = after - columns.values(before)
        for null, size in ((null, size) for null in CHANGES for size in (20, 50, 150)):
            rng, draws = generator("changes", null, size), []
            for _ in range(n):
                own = [documents[k] for k in rng.permutation(len(documents))[:size]]
                clusters = np.repeat(np.arange(len(own)), [len(rows) for rows in own])
                sample = CHANGES[null](differences, np.concatenate(own), clusters, margin, rng)
                tested = Hypotheses.from_values(sample, 0, size=2.0, clusters=clusters)
                figures: Figures = {}
                for words, limit in (("beyond the margin", margin), ("against 0", 0.0)):
                    shown = find_change(tested, TestOptions(), limit).shows(ALPHA)
                    figures[f"{words}: tables"] = float(shown.any())
                    figures[f"{words}: rows"] = float(shown.mean())
                if null.endswith("margin"):
                    single = TestOptions(correction="none")
                    same = find_equivalence(tested, single, margin).shows(ALPHA)
                    figures["equivalent: single tests"] = float(same.mean())
                draws.append(figures)
            yield {"sample": f"{folder.name}, {null}, {size} documents", **averaged(draws)}


def exchanged(
    differences: FloatArray,
    rows: IndexArray,
    clusters: IndexArray,
    margin: float,
    rng: np.random.Generator,
    at_margin: bool = False,
) -> FloatArray:
    """Exchange before and after in each document with probability 1/2: no mean differs."""
    signs = rng.choice([-1.0, 1.0], clusters[-1] + 1)[clusters, None]
    return _at_margin(signs * differences[rows], margin, at_margin)


def shrunk(
    differences: FloatArray,
    rows: IndexArray,
    clusters: IndexArray,
    margin: float,
    rng: np.random.Generator,
    at_margin: bool = False,
) -> FloatArray:
    """Shrink what rose, or what fell, until the mean is 0: differences stay skewed."""
    rise, fall = (np.nansum(np.maximum(side * differences, 0), axis=0) for side in (1, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        up, down = (np.nan_to_num(np.minimum(rise, fall) / own) for own in (rise, fall))
    still = differences[rows] * np.where(differences[rows] > 0, up, down)
    return _at_margin(still, margin, at_margin)


def _at_margin(still: FloatArray, margin: float, is_moved: bool) -> FloatArray:
    """Move half of the columns up, half down by the margin."""
    sides = np.where(np.arange(still.shape[1]) % 2, margin, -margin)
    return still + sides if is_moved else still


CHANGES: dict[str, Callable[..., FloatArray]] = {
    "exchanged": exchanged,
    "exchanged at the margin": partial(exchanged, at_margin=True),
    "shrunk": shrunk,
    "shrunk at the margin": partial(shrunk, at_margin=True),
}


def study_replicate(folders: list[Path], n: int) -> Iterator[Row]:
    """Count roles shown in two of four corpora or more, if three have means at the threshold."""
    (folder,) = folders
    population = Population(HeadScores.load(folder))
    options = TestOptions(test="betting")
    for kind in DOCUMENTS[:3]:
        rng, draws = generator("replicate", kind), []
        means = population.means("betting", kind)[0]
        true = means > population.whole.means.threshold
        for _ in range(n):
            parts = [population.tested(population.draw(kind, rng)).means for _ in range(4)]
            null = [parts[0].against(means - 0.3), *(one.against(means) for one in parts[1:])]
            figures: Figures = {}
            for name, own in (("at the threshold", null), ("as scored", parts)):
                log_e = np.array([one.betting.above for one in own])
                shown = np.array(
                    [find_replicated(log_e, u, True, options).shows(ALPHA) for u in (2, 4)]
                )
                is_wrong = True if name == "at the threshold" else ~true
                figures[f"{name}: tables with an error"] = float((shown & is_wrong).any())
            figures["as scored: found in two or more"] = share_of(shown[0] & true, true)
            draws.append(figures)
        yield {"sample": f"{kind} each", **averaged(draws)}


# Moved arcs


def study_moved(places: list[Path], n: int) -> Iterator[Row]:
    """Count roles of arcs that no head can know, which were moved within their sentence."""
    model, treebank = places
    corpus = read_conllu(treebank)
    draws: dict[float, list[Figures]] = {}
    for seed in range(n):

        def read(skipped: Skipped, seed: int = seed) -> Iterator[Sentence]:
            rng = generator("moved", seed)
            return (move_arcs(sentence, rng) for sentence in corpus.read(skipped))

        scores = score_heads(str(model), Corpus(corpus.source, read), controls="none")
        for part in (0.0, 0.25, 0.5, 1.0):
            margin = part * scores.score.margin
            frame = assign_roles(scores, distance_margin=margin).frame
            tested = frame[frame["p_beyond"].notna()]
            figures: Figures = {
                "contrasts above, single tests": float((tested["p_beyond"] <= ALPHA).mean()),
                "roles of moved arcs#": float(tested["assigned"].sum()),
                "tables with one": float(tested["assigned"].any()),
            }
            draws.setdefault(margin, []).append(figures)
    for margin, found in draws.items():
        yield {"margin": margin, **averaged(found)}


def study_dealt(places: list[Path], n: int) -> Iterator[Row]:
    """Count relations that differ from the others although labels were dealt at random."""
    model, treebank = places
    corpus = read_conllu(treebank)
    draws: list[Figures] = []
    for seed in range(n):

        def read(skipped: Skipped, seed: int = seed) -> Iterator[Sentence]:
            rng = generator("dealt", seed)
            return (deal_labels(sentence, rng) for sentence in corpus.read(skipped))

        dealt = Corpus(corpus.source, read)
        # examples of one sentence: of a pair, one sentence may have more of the label, and more
        # attention along all of its arcs
        given = {"pairing": "none", "relations": "nsubj,obj,amod,advmod", "beyond_offset": False}
        scores = score_heads(str(model), dealt, roles="syntactic", controls="none", **given)
        frame = assign_roles(scores).frame
        tested = frame[frame["p_others"].notna()]
        differs = tested["p_others"] <= ALPHA
        figures: Figures = {
            "less, single tests": float((differs & (tested["above_others"] < 0)).mean()),
            "more, single tests": float((differs & (tested["above_others"] > 0)).mean()),
            "tables with one that is not specific": float((tested["specific"] == NO).any()),
            "tables with one that is specific": float((tested["specific"] == YES).any()),
        }
        draws.append(figures)
    yield {"labels": "dealt within their sentence", **averaged(draws)}


def deal_labels(sentence: Sentence, rng: np.random.Generator) -> Sentence:
    """Deal the labels of the arcs of a sentence to its arcs at random."""
    relations = list(sentence.relations)
    places = [place for place, governor in enumerate(sentence.governors) if governor != ROOT]
    for place, dealt in zip(places, rng.permutation(places).tolist(), strict=True):
        relations[place] = sentence.relations[dealt]
    return replace(sentence, relations=tuple(relations))


def move_arcs(sentence: Sentence, rng: np.random.Generator) -> Sentence:
    """Move each arc of the default relations to a random place that its offset allows.

    Arcs are moved one after the other, in random order, to dependents that are still free. Other
    arcs are left out: were every word to have a governor, arcs could no longer lie anywhere.
    """
    n = len(sentence.words)
    arcs = [
        (governor - dependent, sentence.relations[dependent])
        for dependent, governor in enumerate(sentence.governors)
        if governor >= 0 and fold_subtype(sentence.relations[dependent]) in DEFAULT_RELATIONS["ud"]
    ]
    governors, relations = [ROOT] * n, ["root"] * n
    for place in rng.permutation(len(arcs)).tolist():
        offset, relation = arcs[place]
        free = [d for d in range(max(0, -offset), min(n, n - offset)) if governors[d] == ROOT]
        if free:
            dependent = free[rng.integers(len(free))]
            governors[dependent], relations[dependent] = dependent + offset, relation
    return replace(sentence, governors=tuple(governors), relations=tuple(relations))


SAMPLES = (*EXAMPLES, *DOCUMENTS)
STUDIES: dict[str, tuple[Study, int]] = {
    "level": (partial(by_sample, level, SAMPLES), 20),
    "families": (partial(by_sample, families, SAMPLES), 60),
    "answers": (partial(by_sample, answers, SAMPLES), 20),
    "found": (partial(by_sample, found, DOCUMENTS), 10),
    "limit": (partial(by_sample, answers, DOCUMENTS[:3], null=at_limit), 100),
    "half": (partial(by_sample, half, SAMPLES), 20),
    "intervals": (partial(by_sample, intervals, SAMPLES), 20),
    "plans": (partial(by_sample, plans, PILOTS), 10),
    "best": (study_best, 200),
    "no-variance": (study_no_variance, 12),
    "changes": (study_changes, 100),
    "replicate": (study_replicate, 40),
    "dealt": (study_dealt, 20),
    "moved": (study_moved, 10),
}
