"""What does a task lose without heads? A model and a task -> Ablations, tested over examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
)

import numpy as np
import pandas as pd
from msgspec import Meta

from headroles.arrays import BoolArray, FloatArray, IntArray
from headroles.drawing.style import draw_values, grids_of, legend_below
from headroles.errors import UsageError
from headroles.head_rows import ATTENTION, HeadRows
from headroles.inference.power import smallest_n
from headroles.models.heads.remaining import Head
from headroles.models.options import ENCODER
from headroles.options import Convert, split_names, takes
from headroles.results.columns import WHOLE, Column, one_of
from headroles.results.consistency import Rule, answers_by, around, interval_of, on_side
from headroles.results.shown import Grid, Shown, Warned
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.removals import (
    BETTER,
    WORSE,
    ExamplesResult,
    RolesFromOptions,
    describe_task,
    heads_by_role,
    two_sided,
    without_each,
)
from headroles.studies.translations import (
    TranslationFacts,
    as_frame,
    compare_translations,
    describe_translations,
    translations_without,
)
from headroles.tasks.options import CLASSIFICATION, GenerateOptions, RunOptions
from headroles.tasks.outcomes import Measures, Outcomes
from headroles.testing.evidence import MCNEMAR, UNDECIDED, find_equivalence, find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of
from headroles.testing.notes import find_notes, warn_of_differences
from headroles.testing.options import CorrectionOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headroles.models.loading.encoder import Model
    from headroles.tasks.running import TaskRun

SETS = {
    "single": "one head",
    "others": "all heads of a layer but one",
    "layers": "a whole layer",
    "thirds": "a third of the layers",
    "kinds": "all heads of a kind of attention",
    "roles": "all heads with a role",
}
"""Sets of removals in words."""
ANSWERS = (WORSE, BETTER, UNDECIDED)
_TABULATED, _POWER = 8, 0.8


@dataclass(frozen=True, kw_only=True)
class AblateOptions(RolesFromOptions, CorrectionOptions, GenerateOptions, RunOptions):
    """Options of removals and their tests."""

    sets: Annotated[Sequence[str], Convert(split_names)] = "single"
    """Sets of heads to remove: single, others, layers, thirds, kinds, roles; separated by commas.

    single: each head; others: all heads of a layer but one; layers: whole layers; thirds: the
    lower, middle and upper third of the layers; kinds: all heads of the encoder, of the decoder, or
    across; roles: all heads with a role (needs roles_from).
    """
    ablation: Literal["zero", "mean", "uniform"] = "zero"
    """Replacement of the output of a head.

    zero: nothing. mean: its mean output. uniform: the mean of its values, as in the released BERT
    code of Budhraja et al. (2020).
    """
    margin: Annotated[float, Meta(gt=0)] = 0.01
    """Change of the loss that would matter, in nats.

    Choose it before seeing the data; a head whose removal is shown to change the loss by less can
    be removed.
    """

    def check(self) -> None:
        """Reject unknown sets, and the set roles without a folder, or the other way round."""
        super().check()
        for name in self.sets:
            if name not in SETS:
                raise UsageError(f"the set is {name!r}; it must be one of {', '.join(SETS)}")
        if self.generate and not self.translated:
            raise UsageError(
                "`generate` writes translations without whole layers, thirds, kinds or roles, and "
                "not without each single head; add one of these to `sets`"
            )
        if ("roles" in self.sets) != (self.roles_from is not None):
            raise UsageError(
                "`roles_from` goes with the set roles of `sets`, and with it alone; give both, or "
                "neither"
            )

    @property
    def translated(self) -> list[str]:
        """The sets without which translations are written; single heads would be too many."""
        return [name for name in self.sets if name not in ("single", "others")]


def _is_named(rows: pd.DataFrame, _: Any) -> BoolArray:
    """Tell which rows (n,) of single heads, all others and layers are of what ``removed`` names."""
    layer, head = rows["layer"].astype(str), rows["head"].astype(str)
    kind = rows[ATTENTION] + " " if ATTENTION in rows else ""
    names = {
        "single": kind + layer + "-" + head,
        "others": kind + "layer " + layer + " but " + head,
        "layers": kind + "layer " + layer,
    }
    n_heads = rows["n_removed"]
    fits = pd.Series((rows["layer"] == -1) & (rows["head"] == -1))
    for of_set, name in names.items():
        is_of_set = rows["set"] == of_set
        one = (n_heads == 1) if of_set == "single" else (n_heads >= 0)
        unnamed = (rows["head"] == -1) if of_set == "layers" else True
        fits = fits.mask(is_of_set, (rows["removed"] == name) & one & unnamed)
    return fits.to_numpy()


class AblationFacts(TypedDict):
    """Loss and metrics of the whole model, and its translations if any were written."""

    measured: Measures
    translations: NotRequired[TranslationFacts]


@dataclass(frozen=True, repr=False, eq=False)
class Ablations(ExamplesResult[AblateOptions, AblationFacts]):
    """Losses of a task without heads, each removal tested over the examples.

    ``frame`` has the columns of ``columns``, a row for each removal. ``layer`` and ``head`` are -1
    for removals from several layers, or of several heads. ``loss_change`` is the mean of the paired
    differences of losses (nats), with and without the heads; ``ci_low`` and ``ci_high`` are its
    interval, ``p_value`` tests whether the loss changes (two-sided). ``answer`` is worse, better or
    undecided; ``equivalent`` says whether the change is shown to be smaller than the margin.
    ``examples_needed`` is the number of examples that would show a change of this size at the level
    of a Bonferroni correction, with power 0.8. ``accuracy_change`` is tested by McNemar's exact
    test; NaN without classes.

    ``outcomes`` are the losses and predictions (examples, 1 + removals) of every example, the whole
    model first, with their targets. The view ``translations`` has BLEU and chrF without each layer,
    third, kind or role, if translations were written.

    With ``ablations`` as `ablate_heads` returns them:

    >>> ablations.rises().shape
    (3, 4)
    """

    outcomes: Outcomes | None = None

    kind: ClassVar[str] = "ablations"
    question: ClassVar[str] = "What does the model lose without attention heads?"
    figures: ClassVar[Mapping[str, str]] = {"worth": "draw_ablations"}
    views: ClassVar[tuple[str, ...]] = ("long", "translations")
    columns: ClassVar[tuple[str, ...]] = tuple(
        (
            "set removed layer head n_removed n loss loss_change sd ci_low ci_high p_value "
            "p_adjusted p_equivalence p_equivalence_adjusted answer equivalent "
            "examples_needed accuracy_change p_accuracy p_accuracy_adjusted note"
        ).split()
    )
    schema: ClassVar[Mapping[str, Column]] = {
        **dict.fromkeys(("layer", "head"), Column(WHOLE, -1)),
        "answer": one_of(*ANSWERS),
        "set": one_of(*SETS),
    }
    rules: ClassVar[tuple[Rule, ...]] = (
        around("ci_low", "loss_change", "ci_high"),
        interval_of(
            "ci_low",
            "ci_high",
            lambda rows: (rows["sd"] / np.sqrt(rows["n"])).to_numpy(),
            "n",
        ),
        Rule(("set", "removed", "layer", "head", "n_removed"), "removed names heads", _is_named),
        answers_by("answer", "p_adjusted", WORSE, BETTER, of="loss_change"),
        on_side("answer", (WORSE,), (BETTER,), of="loss_change"),
        answers_by("equivalent", "p_equivalence_adjusted", True),
        Rule(
            ("loss", "loss_change"),
            "loss less loss_change is the loss of the whole model",
            lambda rows, _: np.isclose(
                rows["loss"] - rows["loss_change"],
                (rows["loss"] - rows["loss_change"]).median(),
                rtol=1e-5,
            ),
        ),
    )

    @property
    def translations(self) -> pd.DataFrame:
        """BLEU and chrF without heads, with tests of their changes; empty if none were written."""
        return as_frame(self.facts.get("translations"))

    def check_layers(self) -> None:
        """Raise ValueError unless all heads of a layer have a row each, if one has."""
        removed, names = set(self.record.model.removed_heads), self.record.model.rows
        by_layer = [self.frame["set"], pd.Series(names.rows_of(self.frame))]
        for (kind, layer), rows in self.frame.groupby(by_layer):
            if kind not in ("single", "others"):
                continue
            n_heads = self.record.model.heads
            if ATTENTION in rows:
                n_heads = self.record.model.stack_heads.get(rows[ATTENTION].iloc[0], 0)
            heads = {(layer, head) for head in range(n_heads)} - removed
            if len(rows) != len(heads):
                raise ValueError(
                    f"it has {len(rows)} of the {len(heads)} heads of "
                    f"{names.name_of_layer(int(str(layer)))}"
                )

    def rises(self) -> FloatArray:
        """Return (layers, heads): the change of the loss without each head; NaN if not removed.

        Of several kinds of attention the layers are one after another, as in the table.
        """
        changes = np.full(self.record.shape, np.nan)
        rows = self.frame[self.frame["set"] == "single"]
        changes[self.record.model.rows.rows_of(rows), rows["head"]] = rows["loss_change"]
        return changes

    def method(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence on the tests, and the work to cite."""
        return ("We removed heads and tested whether the loss of the same examples changed.",), (
            "michel",
        )

    def summarize(self) -> Iterator[Shown]:
        """Say how many removals changed the loss, and tabulate the largest changes."""
        yield from describe_task(self.record, self.facts["measured"])
        for kind, rows in self.frame.groupby("set", sort=False):
            worse, better, undecided = (rows["answer"] == answer for answer in ANSWERS)
            small = undecided & rows["equivalent"]
            yield (
                f"Without {SETS[str(kind)]} ({len(rows)} removals): the loss is worse in "
                f"{worse.sum()}, better in {better.sum()};\nof the other {undecided.sum()}, "
                f"{small.sum()} are shown to change it by less than {self.options.margin:g} nats."
            )
        largest = self.frame.nlargest(_TABULATED, "loss_change")
        names = largest["removed"].where(
            largest["set"] != "roles", "all: " + largest["removed"].map(self.in_words)
        )
        has_accuracy = self.frame["accuracy_change"].notna().any()
        cells = {
            "Loss rises most without": "{removed}",
            "nats": "{loss_change:+z.4f}",
            f"{1 - self.options.alpha:.0%} interval": "{ci_low:+z.4f} to {ci_high:+z.4f}",
            **({"accuracy": "{accuracy_change:+z.3f}"} if has_accuracy else {}),
            "answer": "{answer}",
        }
        yield Grid.from_frame(largest.assign(removed=names), cells)
        excludes_zero = largest["ci_low"] * largest["ci_high"] > 0
        if ((largest["answer"] == UNDECIDED) & excludes_zero).any():
            yield f"Answers are corrected for {len(self.frame)} removals, intervals are not."
        yield from describe_translations(self.facts.get("translations"))
        yield from map(Warned, self.record.warnings)


@takes(AblateOptions)
def ablate_heads(model: Model, task: str | Path, options: AblateOptions) -> Ablations:
    """Test the change of a task's loss without heads, over the examples.

    Each removal is compared with the whole model, example by example: the losses by paired tests,
    accuracy by McNemar's. Both are corrected over all removals. An undecided head may still matter;
    ``equivalent`` heads are shown not to, by two one-sided tests against the margin.

    Args:
        model: a folder or hub id, with the head that was trained for the task; or a loaded model.
        task: a tab-separated file of labelled text, or of sources and targets; plain text for
            models that restore or continue text; of examples that the model was not trained on.
        options: keyword arguments, described below.

    Raises:
        UsageError, CorpusError, ModelError: as `find_importance`; roles of another model.

    With ``model`` a classifier of 3 layers with 4 heads each, ``task`` a file of 8 examples:

    >>> from headroles import ablate_heads
    >>> ablations = ablate_heads(model, task, sets="single")
    >>> ablations.rises().shape
    (3, 4)
    >>> ablations.frame[["removed", "n", "n_removed"]].head(2)
      removed  n  n_removed
    0     0-0  8          1
    1     0-1  8          1
    """
    from headroles.tasks.running import keep_parts, open_run
    from headroles.tasks.translating import check_generation

    run = open_run(model, task, options)
    check_generation(run, options, options.ablation)
    keep_parts("ablations", options, run)
    every = (removal for kind in options.sets for removal in _removals(kind, run, options))
    removals = [removal for removal in every if removal.heads]
    gates = without_each([(), *(removal.heads for removal in removals)], run.shape)
    outcomes = run.outcomes(gates, options.ablation)
    frame, warnings = make_table(removals, outcomes, run.objective == CLASSIFICATION, options)
    facts: AblationFacts = {"measured": run.measure(outcomes)}
    if options.generate:
        chosen = [removal for removal in removals if removal.set in options.translated]
        sets = [(), *(removal.heads for removal in chosen)]
        translations = translations_without(run, sets, options, options.ablation)
        names = [removal.removed for removal in chosen]
        facts["translations"] = compare_translations(names, translations, options, options)
    record = run.record(options, kind="ablations", facts=facts, warnings=warnings)
    return Ablations(run.sites.rows.with_kinds(frame), record, outcomes)


class Removal(NamedTuple):
    """Heads that are removed together: their set, and their name, as in tables."""

    set: str
    removed: str
    heads: tuple[Head, ...]
    layer: int = -1
    head: int = -1


def _removals(kind: str, run: TaskRun, options: AblateOptions) -> Iterator[Removal]:
    """Yield the removals of a kind, of which some may have no heads."""
    heads, names = run.heads, run.sites.rows
    layers = {layer: tuple(head for head in heads if head[0] == layer) for layer, _ in heads}
    if kind == "single":
        for head in heads:
            yield Removal(kind, names.name(head), (head,), *head)
    elif kind == "others":
        for head in heads:
            rest = tuple(other for other in layers[head[0]] if other != head)
            yield Removal(kind, f"{names.name_of_layer(head[0])} but {head[1]}", rest, *head)
    elif kind == "layers":
        for layer, of_layer in layers.items():
            yield Removal(kind, names.name_of_layer(layer), of_layer, layer)
    elif kind in ("thirds", "kinds"):
        for name, rows in _parts(kind, names, run.shape[0]):
            yield Removal(kind, name, tuple(head for head in heads if head[0] in rows))
    else:
        table = RoleTable.load(str(options.roles_from))
        for role, having in heads_by_role(table, run).items():
            yield Removal(kind, role, tuple(sorted(having)))


def _parts(kind: str, names: HeadRows, n_rows: int) -> Iterator[tuple[str, IntArray]]:
    """Yield names and rows of the thirds of each kind of attention, or of whole kinds."""
    for attention, part in names.parts.items():
        rows = np.arange(n_rows)[part]
        if kind == "kinds":
            yield attention or ENCODER, rows
            continue
        thirds = np.array_split(rows, 3)
        for name, third in zip(("lower", "middle", "upper"), thirds, strict=True):
            yield f"{attention} {name} third".lstrip(), third


def make_table(
    removals: Sequence[Removal], outcomes: Outcomes, has_classes: bool, options: AblateOptions
) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each removal, and warnings about the tests.

    ``outcomes`` are of the whole model and of each removal; accuracies need classes.
    """
    without, whole = outcomes.losses[:, 1:], outcomes.losses[:, :1]
    size, called = size_of(without, whole), "the differences"
    changes = Hypotheses.from_values(without - whole, 0.0, size=size, called=called)
    near = find_equivalence(changes, options, options.margin)
    effect = np.abs(changes.effect_size)
    needed = np.where(np.isnan(effect), np.nan, np.inf)
    if (some := effect > 0).any():  # by a two-sided test with a Bonferroni correction
        needed[some] = smallest_n(effect[some], options.alpha / 2 / changes.n_tests, _POWER)
    names = "loss_change ci_low ci_high p_value p_adjusted answer"
    frame = pd.DataFrame(removals, columns=Removal._fields).assign(
        n_removed=[len(removal.heads) for removal in removals],
        n=changes.moments.n,
        loss=without.mean(0),
        sd=changes.moments.sd,
        **two_sided(changes, options, (WORSE, BETTER), names),
        p_equivalence=near.single,
        p_equivalence_adjusted=near.adjusted,
        equivalent=near.shows(options.alpha),
        examples_needed=needed,
        **_accuracy(outcomes if has_classes else None, options),
        note=find_notes(changes),
    )
    return frame[list(Ablations.columns)], warn_of_differences(changes, options)


def _accuracy(outcomes: Outcomes | None, options: AblateOptions) -> dict[str, FloatArray | float]:
    """Return changes of the accuracy, with p-values; NaN for tasks without classes."""
    if outcomes is None:
        return dict.fromkeys(("accuracy_change", "p_accuracy", "p_accuracy_adjusted"), np.nan)
    right = outcomes.predictions == outcomes.targets[:, None]
    differences = right[:, 1:].astype(np.int8) - right[:, :1].astype(np.int8)
    tested = find_p_values(
        Hypotheses.from_values(differences, 0.0, size=1.0), options, "two-sided", MCNEMAR
    )
    return {
        "accuracy_change": right[:, 1:].mean(0) - right[:, 0].mean(),
        "p_accuracy": tested.single,
        "p_accuracy_adjusted": tested.adjusted,
    }


def draw_ablations(ablations: Ablations, ax: Axes | None = None) -> Axes:
    """Draw layers x heads: the change of the loss without each head alone.

    A circle is a head without which the loss is shown to be worse, a triangle a head without which
    it is shown to be better. Raises UsageError for ablations of no single heads.

    With ``ablations`` as `ablate_heads` returns them:

    >>> from headroles.report import draw_ablations
    >>> draw_ablations(ablations).get_title()
    'loss without each head'
    """
    rows = ablations.frame[ablations.frame["set"] == "single"]
    if not len(rows):
        raise UsageError("no head was removed by itself; the map needs the set single")
    label = "change of the loss (nats)"
    names, title = ablations.record.model.rows, "loss without each head"
    ax = draw_values(ax, ablations.rises(), title, label, is_signed=True, rows=names)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "black", "linewidth": 0.8, "s": 30}
    for answer, marker in ((WORSE, "o"), (BETTER, "v")):
        marked = rows[rows["answer"] == answer]
        for grid, part in zip(grids_of(ax), names.parts.values(), strict=False):
            within = np.isin(names.rows_of(marked), np.arange(len(ablations.rises()))[part])
            if (of_kind := marked[within]).size:
                grid.scatter(of_kind["head"], of_kind["layer"], label=answer, marker=marker, **look)
    keys = {
        label: handle
        for grid in grids_of(ax)
        for handle, label in zip(*grid.get_legend_handles_labels(), strict=True)
    }
    legend_below(ax, keys=keys)
    return ax
