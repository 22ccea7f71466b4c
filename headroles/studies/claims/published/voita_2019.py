"""Claims of Voita et al. (2019)."""

from __future__ import annotations

import numpy as np

from headroles.arrays import BoolArray
from headroles.roles import is_contrast
from headroles.studies.claims.claim import CORPUS, TASK, TREES, Finding, NotTestable, claim
from headroles.studies.claims.means import (
    DIFFERENCES,
    SHARES,
    all_of,
    heads_for_each,
    mean_beyond,
    mean_of_known,
)
from headroles.studies.claims.measured import OBJECTS, Measured
from headroles.studies.claims.orders import in_layers
from headroles.studies.heads import HeadColumns, hypotheses_of
from headroles.testing.evidence import find_p_values
from headroles.testing.options import TestOptions

POSITIONAL = 0.9
POSITIONS = {"one back": "position:-1", "one ahead": "position:+1"}


@claim(
    source="Voita et al. 2019",
    statement="One head has its first choice one token back for at least 90 % of the tokens, "
    "another one token ahead.",
    published="0.90 and more",
    needs=CORPUS,
    effect="share of first choices, the smaller of both directions",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 90 %. "
    "Contradicted if for one direction every head is shown to be below.",
)
def positional_heads(measured: Measured) -> Finding:
    """Test whether each direction has a head whose first choice is there in 90 % of tokens."""
    hits = {name: measured.hits_of(role) for name, role in POSITIONS.items()}
    return heads_for_each(hits, POSITIONAL, measured.halves, SHARES)


CONFIDENT = 0.8


@claim(
    source="Voita et al. 2019",
    statement="Every positional head has a confidence above 0.8.",
    published="0.80 and more",
    needs=CORPUS,
    effect="confidence (mean largest weight), the smallest of positional heads",
    rule="Random: documents. Null: a mean of 0.8 for some positional head. Contradicted if one of "
    "these heads is shown to be below.",
)
def positional_confident(measured: Measured) -> Finding:
    """Test whether every head that hits one place in 90 % of tokens has a confidence above 0.8."""
    hits = [mean_of_known(measured.hits_of(role), 0) for role in POSITIONS.values()]
    heads = np.flatnonzero(np.nanmax(hits, axis=0) >= POSITIONAL)
    if not len(heads):
        raise NotTestable("no head has its first choice at one place in 90 % of tokens")
    confidence, halves = measured.hits_of("confidence"), measured.halves
    findings = [
        mean_beyond(
            confidence[:, head], CONFIDENT, halves.clusters, alpha=halves.alpha, bounds=SHARES
        )
        for head in heads
    ]
    return all_of(findings, ["head {}-{}".format(*divmod(head, halves.shape[1])) for head in heads])


BEYOND_OFFSET = 0.1
RELATIONS = (("nsubj",), OBJECTS, ("amod",), ("advmod",))


@claim(
    source="Voita et al. 2019",
    statement="For each of subjects, objects, adjectives and adverbs, some head finds the other "
    "end of the arc at least 10 points more often than the best fixed offset.",
    published="0.01 to 0.38 (the better direction, WMT and OpenSubtitles)",
    needs=TREES,
    effect="hits beyond the best offset, the smallest of the four relations",
    rule="Random: documents; head and offset are chosen on one half of them. Null: 10 points. "
    "Contradicted if for some relation every head is shown to be below.",
)
def syntactic_heads(measured: Measured) -> Finding:
    """Test whether all four relations have such a head, in either direction."""
    gains = measured.of_relations(RELATIONS, measured.gains_of)
    return heads_for_each(gains, BEYOND_OFFSET, measured.halves, DIFFERENCES)


RARE = 0.5


@claim(
    source="Voita et al. 2019",
    statement="Some head has the rarest word of the sentence as its first choice for more than "
    "half of the words.",
    published="0.66 (OpenSubtitles); one of the two rarest above 0.50 (WMT)",
    needs=CORPUS,
    effect="share of first choices",
    rule="Random: documents; the head is chosen on one half of them. Null: a share of 0.5. "
    "Contradicted if every head is shown to be below.",
)
def rare_word_head(measured: Measured) -> Finding:
    """Test whether some head has the rarest word as first choice for half of the words."""
    hits = {"rarest word": measured.hits_of("rare")}
    return heads_for_each(hits, RARE, measured.halves, SHARES)


_THRESHOLDS = {"position:-1": 0.9, "position:+1": 0.9, "rare": 0.5}


def specialised(measured: Measured) -> BoolArray:
    """Return the heads (layers, heads) with a function of Voita et al. (2019).

    Their first choice is at one place (90 % of tokens), at the other end of an arc (10 points more
    often than the best offset), or at the rarest word (half of the words), by tests that are
    corrected over all heads and functions.
    """
    scores = measured.hits
    columns = HeadColumns.of(scores)
    options = measured.options.as_group(TestOptions)
    tested = hypotheses_of(scores, columns, options)
    own = [_THRESHOLDS.get(role, np.nan) for role in columns.ids]
    limits = columns.by_role(own)
    tested = tested.against(np.where(np.isnan(limits), tested.threshold, limits))
    shown = find_p_values(tested, options, "greater").shows(options.alpha)
    counts = [not is_contrast(role) for role in columns.ids]
    has = shown.reshape(len(columns.roles), columns.n_layers, columns.n_heads)[counts]
    return np.asarray(has.any(axis=0))


@claim(
    source="Voita et al. 2019",
    statement="Positional, syntactic and rare-word heads are more important than the other heads.",
    published="in words and a figure only (all functions are there with 17 of 48 heads left)",
    needs=TASK,
    effect="rank of importance (0 to 1) of these heads less the mean of their layers",
    rule="Random: heads of the same layers. Null: these heads are as important as the others of "
    "their layers. Contradicted if they are less important.",
)
def specialised_last(measured: Measured) -> Finding:
    """Test whether specialised heads are more important than others of their layers."""
    task = measured.tasks[0]
    values = task.importances.mean(axis=0).reshape(task.shape)
    marked = specialised(measured)
    if not marked.any():
        raise NotTestable("no head is positional, syntactic or a rare-word head")
    ranks = np.argsort(np.argsort(values.ravel())).reshape(values.shape) / (values.size - 1)
    ranks[np.isnan(values)] = np.nan
    return in_layers(ranks, marked, seed=measured.options.seed)
