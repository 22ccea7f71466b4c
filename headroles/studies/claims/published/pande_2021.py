"""Claims of Pande et al. (2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headroles.arrays import BoolArray, FloatArray
from headroles.scoring.scores import HeadScores
from headroles.studies.claims.answers import KINDS, LOCAL, SYNTACTIC, HeadAnswers
from headroles.studies.claims.claim import (
    CORPUS,
    SECOND_MODEL,
    TREES,
    Finding,
    NotTestable,
    claim,
    reversed_finding,
)
from headroles.studies.claims.means import SHARES, jackknifed, mean_beyond, mean_of_known
from headroles.studies.claims.measured import Measured
from headroles.studies.claims.orders import correlations, in_layers, trend
from headroles.studies.heads import HeadColumns


def share_of_local(answers: HeadAnswers) -> float:
    """Return the share of syntactic heads that are local too; NaN without syntactic heads."""
    syntactic = answers.has(SYNTACTIC)
    return float(answers.has(LOCAL)[syntactic].mean()) if syntactic.any() else np.nan


@claim(
    source="Pande et al. 2021, README; follow-up on mBERT",
    statement="Heads with a syntactic role have the local role too.",
    published="0.42 to 0.88 (four GLUE tasks); 0.71 (mBERT)",
    needs=TREES,
    effect="share of syntactic heads that are local",
    rule="Random: heads of the same layers. Null: syntactic heads are local as often as the other "
    "heads of their layers. Contradicted if they are local less often.",
)
def local_and_syntactic(measured: Measured) -> Finding:
    """Test whether syntactic heads are local more often than random heads of their layers."""
    answers = measured.answers
    if not answers.has(SYNTACTIC).any():
        raise NotTestable("no head was shown to be syntactic")
    whole = share_of_local(answers)
    return in_layers(
        answers.has(LOCAL).astype(np.float64),
        answers.has(SYNTACTIC),
        seed=measured.options.seed,
        interval=measured.interval(share_of_local, whole),
        effect=whole,
    )


def share_trend(
    measured: Measured, share: Callable[[HeadAnswers], FloatArray], places: FloatArray
) -> Finding:
    """Test whether a share of heads (layers,) rises with the places of the layers (layers,)."""

    def statistic(answers: HeadAnswers) -> float:
        return float(correlations(share(answers)[None], places)[0])

    interval = measured.interval(statistic, statistic(measured.answers))
    shares, seed = share(measured.answers), measured.options.seed
    return trend(shares, places, alpha=measured.alpha, seed=seed, interval=interval)


def role_trend(measured: Measured, role: str) -> Finding:
    """Test whether the share of heads with a role rises with the number of the layer.

    Raises NotTestable where no head has the role.
    """
    if not measured.answers.has(role).any():
        raise NotTestable(f"no head was shown to have the role {role}")
    places = np.arange(measured.answers.shape[0], dtype=np.float64)
    return share_trend(measured, lambda answers: answers.share_by_layer(role), places)


def share_of_several(answers: HeadAnswers) -> FloatArray:
    """Return the share of heads (layers,) with two or more of the scored kinds of roles."""
    kinds = np.stack([answers.has(kind) for kind in KINDS if kind in answers.by_role])
    return np.asarray((kinds.sum(axis=0) > 1).mean(axis=1))


def nearness(n_layers: int) -> FloatArray:
    """Return minus the distance (layers,) of each layer from the middle."""
    return np.asarray(-np.abs(np.arange(n_layers) - (n_layers - 1) / 2))


@claim(
    source="Pande et al. 2021, README",
    statement="Heads with more than one of the roles local, syntactic, delimiter and block sit in "
    "the middle layers.",
    published="in words only",
    needs=TREES,
    effect="correlation of a layer's share of such heads with its nearness to the middle",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit in the bottom and top layers.",
)
def several_roles_middle(measured: Measured) -> Finding:
    """Test whether the share of heads with several roles rises towards the middle layer."""
    return share_trend(measured, share_of_several, nearness(measured.answers.shape[0]))


@claim(
    source="Pande et al. 2021, README",
    statement="Heads that attend to separators sit in later layers.",
    published="in words only",
    needs=CORPUS,
    effect="correlation of a layer's share of such heads with its number",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit in earlier layers.",
)
def separator_heads_late(measured: Measured) -> Finding:
    """Test whether the share of heads with the role rises with the layer."""
    return role_trend(measured, "delimiter:sep")


@claim(
    source="Pande et al. 2021, README",
    statement="Heads that attend to the classifier token sit in early layers.",
    published="in words only",
    needs=CORPUS,
    effect="correlation of a layer's share of such heads with its number",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if such "
    "heads sit in later layers.",
)
def classifier_heads_early(measured: Measured) -> Finding:
    """Test whether the share of heads with the role falls with the layer."""
    return reversed_finding(role_trend(measured, "delimiter:cls"))


FEW = 0.03
_ENDS = (0.05, 0.95)


def share_undecided(answers: HeadAnswers) -> float:
    """Return the share of single tests whose p-value is neither small nor large."""
    p = answers.p_above[~np.isnan(answers.p_above)]
    return float(((p > _ENDS[0]) & (p < _ENDS[1])).mean())


@claim(
    source="Pande et al. 2021, README and follow-up on mBERT",
    statement="At most 3 % of the tests of heads and roles are undecided (one-sided p between 0.05 "
    "and 0.95, no correction).",
    published="0.02 (GLUE); 0.027 (mBERT)",
    needs=CORPUS,
    effect="share of undecided tests",
    rule="Random: documents, in ten groups. Null: the share is 3 %. Contradicted if it is larger. "
    "The share falls with the number of examples.",
)
def undecided_few(measured: Measured) -> Finding:
    """Test whether the share is below 3 %, by pseudo-values of groups of documents."""
    whole = share_undecided(measured.answers)
    without = [share_undecided(one) for one in measured.scored.without_groups]
    low, high, pseudo = jackknifed(whole, without, measured.alpha)
    if len(pseudo) < 3 or not np.isfinite(pseudo).all():
        raise NotTestable("too few documents for an interval; the claim needs three at least")
    found = mean_beyond(pseudo - pseudo.mean() + whole, FEW, None, alpha=measured.alpha)
    return reversed_finding(replace(found, low=low, high=high, unit="groups"))


def movements(before: HeadScores, after: HeadScores) -> FloatArray:
    """Return the movement of scores (examples, layers), in units of the mean of each role."""
    columns = HeadColumns.of(before)
    moved = np.abs(columns.values(after).astype(np.float64) - columns.values(before))
    shape = (len(moved), len(columns.roles), columns.n_layers, columns.n_heads)
    by_role = mean_of_known(moved.reshape(shape), 3)
    usual = mean_of_known(by_role, (0, 2))[None, :, None]
    return mean_of_known(by_role / np.where(usual > 0, usual, 1), 1)


@claim(
    source="Pande et al. 2021, README",
    statement="Fine-tuning changes what heads of later layers do more than those of early layers.",
    published="in words only",
    needs=SECOND_MODEL,
    effect="correlation of a layer's number with how far its scores move",
    rule="Random: the order of the layers. Null: any order is as likely. Contradicted if early "
    "layers move more.",
)
def last_layers_move(measured: Measured) -> Finding:
    """Test whether scores of examples move farther in later layers."""
    moved = movements(measured.scored.scores, measured.later.scored.scores)
    if not np.nansum(moved):
        raise NotTestable("no score differs between both models")
    places = np.arange(moved.shape[1], dtype=np.float64)

    def statistic(chosen: BoolArray) -> float:
        return float(correlations(mean_of_known(moved[chosen], 0)[None], places)[0])

    whole = np.ones(len(moved), dtype=bool)
    without = [statistic(chosen) for chosen in measured.scored.groups()]
    low, high, _ = jackknifed(statistic(whole), without, measured.alpha)
    return trend(
        mean_of_known(moved, 0),
        places,
        alpha=measured.alpha,
        seed=measured.options.seed,
        interval=(low, high),
    )


SEPARATOR_ROLE, HALF = "delimiter:sep", 0.5


@claim(
    source="Pande et al. 2021, README",
    statement="Fine-tuning spreads the attention of separator heads to other tokens.",
    published="in words only",
    needs=SECOND_MODEL,
    effect="share of documents in which separator heads attend less to separators",
    rule="Random: documents. Null: half of them. Contradicted if these heads attend more to "
    "separators in most documents.",
)
def separators_spread(measured: Measured) -> Finding:
    """Test whether scores of former separator heads fall in most documents."""
    before, after = measured.scored.scores, measured.later.scored.scores
    change = after.column(SEPARATOR_ROLE).astype(np.float64) - before.column(SEPARATOR_ROLE)
    heads = measured.answers.has(SEPARATOR_ROLE).ravel()
    if not heads.any():
        heads[:] = True
    values, documents = mean_of_known(change[:, heads], 1), measured.scored.clusters
    if documents is not None:
        of = [values[documents == one] for one in np.unique(documents)]
        values = np.array([mean_of_known(one, 0) for one in of])
    falls = np.where(np.isnan(values), np.nan, HALF - np.sign(values) / 2)
    found = mean_beyond(falls, HALF, None, alpha=measured.alpha, bounds=SHARES)
    note = f"mean change {np.nanmean(values):+.3f} times uniform attention"
    return replace(found, unit="examples" if documents is None else "documents", note=note)
