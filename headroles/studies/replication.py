"""Score sets of several corpora or checkpoints -> Replication: in how many a head has a role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
import pandas as pd

from headroles.errors import UsageError
from headroles.formats import to_records
from headroles.inference import adjust_p_values, betting_test, partial_conjunction
from headroles.options import takes
from headroles.results import Grid, Result, Shown, Warned
from headroles.roles import Role
from headroles.scoring import HeadScores
from headroles.studies.forms import ReplicationForm
from headroles.studies.heads import (
    FloatArray,
    HeadColumns,
    general_threshold,
    hypotheses_of,
    roles_in,
)
from headroles.studies.options import CHECKPOINTS, CORPORA, SEEDS, ReplicateOptions
from headroles.studies.stopped import drawn_from
from headroles.testing import Hypotheses, describe_correction, known_bounds
from headroles.wording import listed

COLUMNS = ("layer", "head", "role", "sets", "at_least", "log_e", "p_adjusted", "replicated")
LAYER_COLUMNS = ("set", "role", "layer", "heads", "with_role")


class _Replicated(Result):
    """What both tables of replication have in common."""

    form: ClassVar[type[msgspec.Struct]] = ReplicationForm

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for, and of which sets."""
        asked: dict[str, Any] = self.provenance["replication"]
        return asked

    def _title(self) -> str:
        asked = self.asked
        correction = describe_correction(asked["correction"], asked["family"])
        return (
            f"{asked['score']} > {asked['threshold']:g} in {len(asked['names'])} {asked['over']}: "
            f"{listed(asked['names'])}\n(by betting, alpha {asked['alpha']:g}, {correction})"
        )

    def _left_out(self) -> Iterator[Shown]:
        if dropped := self.asked["left_out"]:
            yield Warned(f"not all sets have these roles, which are left out: {', '.join(dropped)}")


@dataclass(frozen=True, repr=False, eq=False)
class Replication(_Replicated):
    """In at least how many of k score sets each head has each role.

    ``frame`` has a row per layer, head, role and number ``at_least`` from 1 to k, and the columns
    of ``COLUMNS``. ``sets`` are those in which the role could be tested at all. ``log_e`` is the
    natural logarithm of the evidence that it is in at least so many, ``p_adjusted`` min(1, 1 / E)
    corrected over the family of all heads and roles for this number, ``replicated`` whether that
    is at most alpha.
    """

    kind: ClassVar[str] = "replication"
    stem: ClassVar[str] = "replication"
    cure: ClassVar[str] = "make one with: headroles replicate DIR DIR --out REPLICATION"
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "heads", "counts", "layers")

    def heads(self) -> pd.DataFrame:
        """Columns layer, head, role, and in ``at_least`` how many sets it was shown; 0 for none."""
        shown = self.frame["at_least"].where(self.frame["replicated"], 0)
        by_head = self.frame.assign(at_least=shown).groupby(["layer", "head", "role"], sort=False)
        heads: pd.DataFrame = by_head[["at_least"]].max().reset_index()
        return heads

    def counts(self) -> pd.DataFrame:
        """Number of heads: a row per role, a column per number of sets that it was shown for."""
        counts = self.frame.pivot_table(
            index="role", columns="at_least", values="replicated", aggfunc="sum", sort=False
        )
        return counts.astype(int).rename_axis(columns=None)

    def layers(self) -> pd.DataFrame:
        """Number of heads by role and layer: a column per number of sets."""
        counts = self.frame.pivot_table(
            index=["role", "layer"],
            columns="at_least",
            values="replicated",
            aggfunc="sum",
            sort=False,
        )
        return counts.astype(int).rename_axis(columns=None).reset_index()

    def shown(self) -> Iterator[Shown]:
        """Heads per role by the number of sets, and per layer those shown for all sets."""
        counts, layers = self.counts(), self.layers()
        k = len(self.asked["names"])
        everywhere = layers.pivot_table(index="role", columns="layer", values=k, sort=False)
        in_all: list[list[int]] = everywhere.to_numpy(dtype=int).tolist()
        yield f"heads that have a role in at least so many of {k}\n{self._title()}\n"
        rows = [
            (
                role,
                *map(str, counts.loc[role]),
                *(str(n) if n else "." for n in of_layers),
            )
            for role, of_layers in zip(roles_in(self.frame), in_all, strict=True)
        ]
        names = (*map(str, counts.columns), *(f"layer {n}: {k}" for n in everywhere.columns))
        total = (*counts.sum().tolist(), *everywhere.sum().tolist())
        rows.append(("all", *(str(int(n)) for n in total)))
        yield Grid(("role", *names), tuple(rows), bold=str(k))
        if not self.asked["independent"]:
            yield (
                "the sets share examples, or the seed of a random order (--shuffle-seed): evidence "
                "is averaged over them, and not multiplied\n"
            )
        yield from self._left_out()

    def facts(self) -> dict[str, Any]:
        """The same for scripts, with the heads of every role."""
        heads = self.heads()
        return {
            "replication": self.asked,
            "heads_per_role": self.counts().to_dict(orient="index"),
            "heads": to_records(heads[heads["at_least"] > 0]),
        }


@dataclass(frozen=True, repr=False, eq=False)
class LayerCounts(_Replicated):
    """How many heads of each layer have each role in score sets whose heads are no counterparts.

    ``frame`` has a row per set, role and layer and the columns of ``LAYER_COLUMNS``: how many heads
    there are, and how many were shown to have the role, each set corrected by itself.
    """

    kind: ClassVar[str] = "layer counts"
    stem: ClassVar[str] = "layer_counts"
    cure: ClassVar[str] = "make them with: headroles replicate DIR DIR --over seeds --out COUNTS"
    columns: ClassVar[tuple[str, ...]] = LAYER_COLUMNS
    views: ClassVar[tuple[str, ...]] = ("long", "summary")

    def summary(self) -> pd.DataFrame:
        """Fewest and most heads with a role among the sets, and their mean, by role and layer."""
        by_layer = self.frame.groupby(["role", "layer"], sort=False)["with_role"]
        summary: pd.DataFrame = by_layer.agg(["min", "mean", "max"]).reset_index()
        return summary

    def shown(self) -> Iterator[Shown]:
        """For each role and layer the fewest and the most heads with the role."""
        summary = self.summary()
        summary["range"] = [
            f"{low}" if low == high else f"{low}-{high}"
            for low, high in zip(summary["min"], summary["max"], strict=True)
        ]
        ranges = summary.pivot_table(
            index="role", columns="layer", values="range", aggfunc="first", sort=False
        )
        yield f"heads per layer, fewest and most among the sets\n{self._title()}\n"
        rows = tuple((str(role), *map(str, row)) for role, *row in ranges.itertuples())
        yield Grid(("role", *map(str, ranges.columns)), rows)
        yield from self._left_out()

    def facts(self) -> dict[str, Any]:
        """The same for scripts."""
        return {"replication": self.asked, "layers": to_records(self.summary())}


@takes(ReplicateOptions)
def replicate_roles(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> Replication | LayerCounts:
    """Test in at least how many of k score sets each head has each role.

    Evidence is that of betting: valid for any number of examples and any distribution. That a head
    has a role in at least u sets is tested by the evidence of the k - u + 1 sets that have the
    least of it (Benjamini and Heller 2008), multiplied where the sets share no example and averaged
    where they do, and corrected over the family for every u by itself.

    Args:
        sets: two or more, from `score_heads`, of one kind of score: of one model over several
            corpora, of checkpoints of one model (their heads correspond), or of models of several
            seeds (their heads do not, and heads are counted per layer only).
        names: what to call them.
        options: keyword arguments, described below.

    Raises:
        UsageError: fewer than two sets, sets that do not go together, or without bounds.
    """
    return replicate(sets, names, options)


def replicate(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> Replication | LayerCounts:
    """`replicate_roles` for callers that have their options together."""
    _check_sets(sets, names, options)
    roles, left_out = _common_roles(sets)
    asked = {
        **options.record(),
        "score": sets[0].score.name,
        "threshold": general_threshold(sets[0], options.threshold),
        "names": list(names),
        "independent": _are_independent(sets),
        "left_out": left_out,
    }
    provenance = {
        "score": sets[0].score.name,
        "replication": asked,
        "sets": {name: one.provenance for name, one in zip(names, sets, strict=True)},
    }
    tested = [_of_roles(one, roles, options) for one in sets]
    if options.over == SEEDS:
        parts = [
            _layer_counts(name, *one, options) for name, one in zip(names, tested, strict=True)
        ]
        return LayerCounts(pd.concat(parts, ignore_index=True), provenance)
    return Replication(_frame(tested, asked["independent"], options), provenance)


def kind_of(options: ReplicateOptions) -> type[Replication] | type[LayerCounts]:
    """The kind of table that these options ask for."""
    return LayerCounts if options.over == SEEDS else Replication


def _check_sets(
    sets: Sequence[HeadScores], names: Sequence[str], options: ReplicateOptions
) -> None:
    if len(sets) < 2:
        raise UsageError("what replicates is asked of two score sets or more; name another folder")
    if len(set(names)) != len(sets):
        raise UsageError(f"{len(sets)} score sets are called {', '.join(names)}; name each apart")
    first, called = sets[0], names[0]
    for one, name in zip(sets[1:], names[1:], strict=True):
        if one.score != first.score:
            raise UsageError(
                f"{name} has {one.score.name} scores and {called} {first.score.name} scores; score "
                "them alike"
            )
        if options.over != SEEDS and one.values.shape[1:3] != first.values.shape[1:3]:
            raise UsageError(
                f"{name} has {one.n_layers} layers x {one.n_heads} heads and {called} "
                f"{first.n_layers} x {first.n_heads}: they are no checkpoints of one model"
            )
        if options.over == CORPORA and _weights(one) != _weights(first):
            raise UsageError(
                f"{name} and {called} are of different models; pass over={CHECKPOINTS!r} (--over "
                f"{CHECKPOINTS}) if their heads correspond, or {SEEDS!r} if they do not"
            )


def _weights(scores: HeadScores) -> Any:
    return scores.provenance.get("model", {}).get("weights_sha256")


def _are_independent(sets: Sequence[HeadScores]) -> bool:
    """Whether no example is in two sets, and no random order is that of two, as far as is known.

    What is decided about a corpus itself has nothing else to do with chance than its order.
    """
    if any(not one.digests for one in sets):
        return False
    distinct = [set(one.digests) for one in sets]
    drawn = [one.provenance for one in sets if drawn_from(one.provenance) is not None]
    seeds = [provenance["stopped"].get("shuffle_seed") for provenance in drawn]
    return len(set(seeds)) == len(seeds) and len(set().union(*distinct)) == sum(map(len, distinct))


def _common_roles(sets: Sequence[HeadScores]) -> tuple[list[Role], list[str]]:
    """The roles that all sets have, in the order of the first, and ids of the others."""
    present = [HeadColumns.of(one).roles for one in sets]
    common = [role for role in present[0] if all(role in others for others in present)]
    ids = {role.id for role in common}
    left_out = dict.fromkeys(role.id for roles in present for role in roles if role.id not in ids)
    if not common:
        raise UsageError("there is no role that all score sets have; score them for the same roles")
    return common, list(left_out)


def _of_roles(
    scores: HeadScores, roles: list[Role], options: ReplicateOptions
) -> tuple[HeadColumns, Hypotheses]:
    columns = HeadColumns(tuple(roles), scores.n_layers, scores.n_heads)
    return columns, hypotheses_of(scores, columns, options, options)


def _log_e(hypotheses: Hypotheses) -> FloatArray:
    """Evidence (T,) that each mean is above its threshold; NaN where it could not be tested."""
    found = betting_test(
        hypotheses.sample,
        hypotheses.threshold,
        known_bounds(hypotheses),
        n_population=hypotheses.n_population,
    )
    return found.log_e


def _adjusted(log_e: FloatArray, hypotheses: Hypotheses, options: ReplicateOptions) -> FloatArray:
    p = np.exp(-np.maximum(log_e, 0))
    return adjust_p_values(p, options.correction, hypotheses.families, options.alpha)


def _frame(
    tested: list[tuple[HeadColumns, Hypotheses]], independent: bool, options: ReplicateOptions
) -> pd.DataFrame:
    columns, first = tested[0]
    log_e = np.array([_log_e(hypotheses) for _, hypotheses in tested])
    parts = []
    for at_least in range(1, len(tested) + 1):
        combined = partial_conjunction(log_e, at_least, independent)
        adjusted = _adjusted(combined, first, options)
        part = pd.DataFrame(
            {
                **columns.labels,
                "sets": (~np.isnan(log_e)).sum(axis=0),
                "at_least": at_least,
                "log_e": combined,
                "p_adjusted": adjusted,
                "replicated": adjusted <= options.alpha,
            }
        )
        parts.append(part[list(COLUMNS)])
    return pd.concat(parts, ignore_index=True)


def _layer_counts(
    name: str, columns: HeadColumns, hypotheses: Hypotheses, options: ReplicateOptions
) -> pd.DataFrame:
    adjusted = _adjusted(_log_e(hypotheses), hypotheses, options)
    frame = pd.DataFrame({**columns.labels, "with_role": adjusted <= options.alpha})
    counts = frame.groupby(["role", "layer"], sort=False)[["with_role"]].sum().reset_index()
    return counts.assign(set=name, heads=columns.n_heads)[list(LAYER_COLUMNS)]
