"""Answers about changes of roles and means, and counts of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from headroles.arrays import BoolArray, IntArray
from headroles.roles import is_arc
from headroles.testing.answers import NO, POSITIONAL, UNTESTABLE, YES

CERTIFIED_SMALL = "trivial"
"""Certified answer about a difference that is not 0, and lies within the margin."""
STATUSES = ("kept", "gained", "lost", "absent", "undecided", "untestable")
CHANGES = {"changed": "changed", "equivalent": "equivalent", "open": "undecided"}
"""Answers about differences by column of counts; roles have a column undecided already."""
CERTIFIED = "certified_changes"
"""Column of counts: how many of the changes are certified to differ from 0."""


def role_status(before: ArrayLike, after: ArrayLike) -> NDArray[np.str_]:
    """Return the status of each role (tests,), from the answers before and after.

    ``"kept"`` (yes, yes), ``"gained"`` (no, yes), ``"lost"`` (yes, no) and ``"absent"`` (no, no)
    rest on two shown answers. A role that is undecided at one end is ``"undecided"``: that it
    could not be shown again is no evidence that it was lost. ``"untestable"`` goes before.

    Two answers stand behind each status, so with a family-wise correction, of p-values that hold
    (those of betting do on skewed scores, those of t do not), the chance that any role is wrongly
    called lost is at most 2 alpha, and the same for gained. A false discovery rate is that of a
    whole role table: among the few roles that were lost it may be higher.

    >>> role_status(["yes", "yes", "no"], ["no", "undecided", "yes"]).tolist()
    ['lost', 'undecided', 'gained']
    """
    before, after = np.asarray(before), np.asarray(after)
    untestable = (before == UNTESTABLE) | (after == UNTESTABLE)
    had, has = before == YES, after == YES
    lacked, lacks = (np.isin(one, (NO, POSITIONAL)) for one in (before, after))
    cases = (untestable, had & has, lacked & has, had & lacks, lacked & lacks)
    answers = ("untestable", "kept", "gained", "lost", "absent")
    return np.select(cases, answers, default="undecided")


def describe_change(
    changed: BoolArray, equivalent: BoolArray, testable: BoolArray
) -> NDArray[np.str_]:
    """Return the answer about each difference (tests,), from the tests of change and equivalence.

    ``"changed"``: it is shown to lie outside the margin, on either side. ``"equivalent"``: it is
    shown to lie within. ``"undecided"``: neither was shown.

    >>> changed, equivalent = np.array([[True, False, False], [False, True, False]])
    >>> describe_change(changed, equivalent, np.ones(3, dtype=bool)).tolist()
    ['changed', 'equivalent', 'undecided']
    """
    cases = (~testable, changed, equivalent)
    return np.select(cases, ("untestable", "changed", "equivalent"), default="undecided")


def is_certified(frame: pd.DataFrame) -> pd.Series[bool]:
    """Tell which rows are changes that are certified to differ from 0."""
    return frame["changed"] & frame["certified"].isin(("changed", CERTIFIED_SMALL))


def count_answers(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the heads of each checkpoint, role and layer by status.

    Columns ``checkpoint, role, layer, heads``, one for each of ``STATUSES``, and one for each of
    ``CHANGES``, the answers about differences of means (`describe_change`); and the number of
    certified changes.
    """
    key = ["checkpoint", "role", "layer"]
    statuses = {name: frame["status"] == name for name in STATUSES}
    changes = {column: frame["change"] == answer for column, answer in CHANGES.items()}
    certified = {CERTIFIED: is_certified(frame)}
    counted = frame[key].assign(heads=True, **statuses, **changes, **certified)
    counts = counted.groupby(key, sort=False).sum().reset_index()
    return counts[[*key, "heads", *STATUSES, *CHANGES, CERTIFIED]]


def summarise_layers(frame: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the heads of each layer moved at each checkpoint, over all roles.

    ``tests`` were made; ``changed`` and ``equivalent`` are the shares of them that found this.
    ``effect_size`` is the mean absolute standardised difference, and ``chance`` its expectation if
    no mean had changed: the mean of sqrt(2 / pi) SE / sd (normal approximation).
    ``rms_difference`` is the root mean square difference, in units of the score. ``gained`` and
    ``lost`` are numbers of roles.
    """
    key = ["checkpoint", "layer"]
    tested = frame[frame["change"] != "untestable"]
    rows = tested[[*key, "changed", "equivalent"]].assign(
        effect_size=_distances(tested),
        chance=np.sqrt(2 / np.pi) * tested["standard_error"] / tested["sd"].where(tested["sd"] > 0),
        rms_difference=tested["difference"] ** 2,
    )
    layers = rows.groupby(key, sort=False).mean()
    layers["rms_difference"] **= 0.5
    layers.insert(0, "tests", tested.groupby(key).size())
    for status in ("gained", "lost"):
        layers[status] = tested.assign(found=tested["status"] == status).groupby(key)["found"].sum()
    return layers.reset_index()


def find_moved_heads(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the ``n`` heads of each checkpoint that moved most, over all roles, farthest first.

    ``effect_size`` is the root mean square of a head's standardised differences and ``changed`` the
    number of its roles that changed, ``certified_changes`` of those that are certified; ``role`` is
    the one of the former that moved most (of all, if none changed), with its ``role_effect_size``
    and ``role_difference``, which have their sign.
    """
    key = ["checkpoint", "layer", "head"]
    heads = frame.assign(distance=_distances(frame)).dropna(subset="distance")
    heads["square"] = heads["distance"] ** 2
    heads["has_changed"] = heads["change"] == "changed"
    heads[CERTIFIED] = is_certified(heads)
    grouped = heads.groupby(key, sort=False)
    moved = grouped.agg(
        effect_size=("square", "mean"),
        changed=("has_changed", "sum"),
        certified_changes=(CERTIFIED, "sum"),
    )
    moved["effect_size"] **= 0.5
    farthest = (
        heads.sort_values(["has_changed", "distance"], ascending=False, kind="stable")
        .drop_duplicates(key)
        .set_index(key)
    )
    for name, column in (
        ("role", "role"),
        ("role_effect_size", "effect_size"),
        ("role_difference", "difference"),
    ):
        moved[name] = farthest[column]
    ordered = moved.sort_values("effect_size", ascending=False, kind="stable").reset_index()
    place = pd.Categorical(ordered["checkpoint"], categories=frame["checkpoint"].unique())
    ordered = ordered.iloc[np.argsort(place.codes, kind="stable")]
    return ordered.groupby("checkpoint", sort=False).head(n).reset_index(drop=True)


def measure_agreement(frame: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Measure how far the role tables before and after name the same heads.

    Units are the heads that could be tested both times; a head either was shown to have the role
    (yes) or was not (no, undecided). ``had`` and ``has`` count those with the role before and
    after, ``both`` those with it both times, ``undecided`` those undecided at one end or both.

    ``jaccard`` is both / (had or has), with Wilson's interval for a proportion of the heads that
    have the role at all; NaN if none has. ``kappa`` is Cohen's (1960), with the large-sample
    interval of Fleiss, Cohen and Everitt (1969) cut at -1 and 1. It is NaN where all heads have
    the role both times, or none has; its limits are NaN where their standard error is 0 (full
    agreement or disagreement, or all heads or none with the role at one end), which is no
    certainty. Intervals have level 1 - ``alpha`` and take heads as drawn independently from many
    like them: they say how far a number rests on few heads, not what another fine-tuning run would
    give.
    """
    key = ["checkpoint", "role"]
    rows = [
        {**dict(zip(key, names, strict=True)), **_agreement(heads, alpha)}
        for names, heads in frame.groupby(key, sort=False)
    ]
    return pd.DataFrame(rows)


def _agreement(heads: pd.DataFrame, alpha: float) -> dict[str, float]:
    tested = heads[heads["status"] != "untestable"]
    had, has = (tested[name] == YES for name in ("answer_before", "answer_after"))
    both, either = int((had & has).sum()), int((had | has).sum())
    table = [[both, int((had & ~has).sum())], [int((has & ~had).sum()), int((~had & ~has).sum())]]
    jaccard = both / either if either else np.nan
    limits = proportion_confint(both, either, alpha, "wilson") if either else (np.nan, np.nan)
    return {
        "heads": len(tested),
        "had": int(had.sum()),
        "has": int(has.sum()),
        "both": both,
        "undecided": int((tested["status"] == "undecided").sum()),
        "jaccard": jaccard,
        "jaccard_low": limits[0],
        "jaccard_high": limits[1],
        **_kappa(np.array(table), alpha),
    }


def _kappa(table: IntArray, alpha: float) -> dict[str, float]:
    """Return Cohen's kappa of (2, 2) counts; see `measure_agreement`."""
    kappa = low = high = np.nan
    if table.diagonal().max() < table.sum():
        with np.errstate(invalid="ignore"):  # in figures that are not used
            found = cohens_kappa(table)
        kappa = found.kappa
        if np.minimum(table.sum(0), table.sum(1)).all() and abs(kappa) < 1:
            reach = stats.norm.isf(alpha / 2) * found.std_kappa
            low, high = max(-1.0, kappa - reach), min(1.0, kappa + reach)
    return {"kappa": kappa, "kappa_low": low, "kappa_high": high}


def _distances(frame: pd.DataFrame) -> pd.Series[float]:
    """Return absolute standardised differences: 0 if nothing varies or changed, else NaN."""
    distances = frame["effect_size"].abs()
    still = ~frame["changed"] & (frame["change"] != "untestable")
    return distances.where(distances.notna() | ~still, 0.0)


def changed_most(frame: pd.DataFrame) -> list[str]:
    """Order roles by how often heads gained or lost them, then changed: syntactic first.

    >>> import pandas as pd
    >>> roles = ["local", "syntactic:obj:to_governor"]
    >>> changed_most(pd.DataFrame({"role": roles, "status": ["lost", "kept"],
    ...     "change": ["changed", "undecided"]}))
    ['syntactic:obj:to_governor', 'local']
    """
    happened = frame["status"].isin(["gained", "lost"]).groupby(frame["role"], sort=False).sum()
    changed = (frame["change"] == "changed").groupby(frame["role"], sort=False).sum()

    def place(role: str) -> tuple[bool, int, int]:
        return not is_arc(role), -happened[role], -changed[role]

    return sorted(map(str, changed.index), key=place)
