"""Length of scoring with `--until`, and errors of its answers about the whole corpus.

python -m docs.studies.stopping DIR [--seeds N]

`headroles score` wrote DIR. Its examples, or whole documents, are put into the random order of each
seed, which is that of the command, and tested as `headroles classify --until` does, without the
model. An answer is wrong where it contradicts the weighted mean over the whole corpus that it is
about.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docs.studies.calibration_tables import markdown
from headroles import HeadScores
from headroles.scoring.blocks import ScoreBlock
from headroles.studies.classification.options import UntilOptions
from headroles.studies.classification.stopping import EXAMPLES_PER_LOOK, AnswersSoFar, Stopping
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.options import TestOptions

ASKED = ((0.9, "corpus"), (0.95, "corpus"), (0.9, "text"))


@dataclass(frozen=True)
class Stop:
    """Stop of a run after so many sentences, with so many wrong answers."""

    sentences: int
    wrong: int


def whole_means(scores: HeadScores, by_document: bool) -> NDArray[np.float64]:
    """Return the weighted means (T,) over the corpus, of its examples or of its documents."""
    options = TestOptions(clusters="document" if by_document else "none")
    tested = hypotheses_of(scores, HeadColumns.of(scores), options)
    if tested.bounds is None:
        raise SystemExit("these scores have no bounds; score again")
    return tested.betting.test().mean


def looks_of(
    scores: HeadScores, seed: int, by_document: bool
) -> tuple[int, list[tuple[ScoreBlock, int]]]:
    """Return the number of units, and the looks of a run in the order of the seed.

    Each look has the examples that are new to it, of documents that are read to their end, and the
    number of sentences that were read by then.
    """
    names = np.asarray(scores.documents if by_document else scores.ids)
    units = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    order = np.random.default_rng(seed).permutation(len(units))
    rows = np.concatenate([units[k] for k in order])
    sentences = np.cumsum([scores.ids[row].count("+") + 1 for row in rows])
    ends = np.cumsum([len(units[k]) for k in order])
    looks, start = [], 0
    for read in range(EXAMPLES_PER_LOOK, len(rows) + EXAMPLES_PER_LOOK, EXAMPLES_PER_LOOK):
        # That a document has ended shows when the next one begins, or the corpus ends.
        whole = ends[ends < read] if by_document and read < len(rows) else ends[ends <= read]
        if len(whole) and whole[-1] > start:
            new = scores.select(rows[start : whole[-1]]).block
            looks.append((new, int(sentences[min(read, len(rows)) - 1])))
            start = whole[-1]
    return len(units), looks


def stop(scores: HeadScores, until: float, of: str, seed: int, means: NDArray[np.float64]) -> Stop:
    """Simulate one run."""
    by_document = of == "text"
    stopping = Stopping(UntilOptions(until=until, until_of=of), TestOptions(test="betting"))
    n_units, looks = looks_of(scores, seed, by_document)
    so_far = AnswersSoFar(stopping, scores.roles, scores.score, n_units, by_document)
    sentences = 0
    for block, read in looks:
        so_far.add(block)
        sentences = read
        if so_far.share_decided >= until:
            break
    limits = HeadColumns.of(scores).thresholds(scores.score, None)
    answers = so_far.answers()
    wrong = ((answers == "yes") & (means <= limits)) | ((answers == "no") & (means >= limits))
    return Stop(sentences, int(wrong.sum()))


def main() -> None:
    """Parse the command line; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", type=Path, help="folder of scores")
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    scores = HeadScores.load(arguments.scores)
    scores = scores.select(roles=HeadColumns.of(scores).ids)  # those with a score
    rows = []
    for until, of in ASKED:
        means = whole_means(scores, of == "text")
        stops = [stop(scores, until, of, seed, means) for seed in range(arguments.seeds)]
        found = sorted(one.sentences for one in stops)
        wrong = [one.wrong for one in stops]
        rows.append(
            [
                f"{until:g}",
                of,
                str(len(stops)),
                f"{found[0]} to {found[-1]}",
                f"{np.median(found):.0f}",
                str(sum(wrong)),
                str(sum(map(bool, wrong))),
            ]
        )
    header = ["until", "of", "seeds", "stopped after, sentences", "median", "wrong answers"]
    print(markdown([*header, "runs with any"], rows))


if __name__ == "__main__":
    main()
