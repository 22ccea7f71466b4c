"""Which heads have which roles? A model and a corpus, or scores -> RoleTable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from msgspec import structs
from numpy.typing import NDArray

from headroles.arrays import BoolArray, FloatArray
from headroles.corpus import NEWDOC, AnyCorpus, as_corpus
from headroles.encoding import TOO_LONG
from headroles.errors import UsageError
from headroles.inference.sample import Sample
from headroles.models.heads.remaining import Head
from headroles.models.options import TargetOptions
from headroles.options import Convert, takes
from headroles.record import Record
from headroles.results.stored import save_together
from headroles.role_names import BEYOND_OFFSET, GROUP, OTHER_TREES
from headroles.roles import BIAS, EVENNESS, SCORES, SENTENCE_PAIRS, Role
from headroles.scoring.options import (
    CONTROLS,
    PERMUTED_WEIGHTS,
    PERMUTED_WORDS,
    TREES,
    ScoreOptions,
    controls_of,
)
from headroles.scoring.parts import ALONE, Sharing
from headroles.scoring.run_notes import warnings_of_run
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.ladder import heads_in, reaches
from headroles.studies.classification.role_table import (
    CONTROLS_IN_WORDS,
    AssignOptions,
    RoleFacts,
    RoleTable,
)
from headroles.studies.evidence import (
    ATTRACTORS,
    BEYOND_TREES,
    CLASS,
    Answered,
    RoleHypotheses,
    evidence_of,
)
from headroles.studies.heads import (
    HeadColumns,
    check_contrasts,
    describe_clusters,
    note_removed,
    refuse_nothing_to_test,
    refuse_one_document,
    scores_of,
    warn_of_doubled,
)
from headroles.studies.specificity import describe_specificity
from headroles.testing.evidence import NO, UNTESTABLE, YES, find_p_values
from headroles.testing.notes import find_notes, find_warnings
from headroles.testing.steps import Leg

if TYPE_CHECKING:
    from headroles.models.loading.encoder import Attending

_SEED = 0
"""Seed of permuted words and weights."""
_MUCH = 0.1  # share of sentences without a document that is reported
_MANY = 0.25  # share of the heads that a control may find without a warning


@dataclass(frozen=True, kw_only=True)
class ClassifyOptions(AssignOptions, ScoreOptions):
    """Options of scoring and testing."""

    __test__ = False
    title: ClassVar[str] = "Roles"

    controls: Annotated[str | Sequence[str], Convert(controls_of)] = TREES
    """Controls of answers, separated by commas: trees, words, weights; or none.

    trees: arcs of other sentences of as many words, in the same pass. words: the words of each
    sentence permuted, under the same tree; weights: each weight matrix of the model permuted within
    itself; one more pass each.
    """

    def check(self) -> None:
        """Reject a threshold outside the range of the score. Raises UsageError."""
        super().check()
        self.check_range(SCORES[self.score])

    def check_roles(self, roles: Sequence[Role]) -> None:
        """Reject roles without any to test, and margins that none of them needs."""
        refuse_nothing_to_test([role for role in roles if role.is_tested])
        self.check_margins(roles, SCORES[self.score])


@dataclass(frozen=True, repr=False)
class Classification:
    """Scores of every example and the role table of their tests.

    With ``model`` and ``corpus`` as for `classify_heads`:

    >>> from headroles import classify_heads
    >>> found = classify_heads(model, corpus, roles="local,punctuation")
    >>> found.scores.role_ids, found.scores.n_examples
    (('local', 'punctuation'), 127)
    >>> found.roles.roles
    ('local', 'punctuation')
    """

    scores: HeadScores
    roles: RoleTable

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write scores, role table and ``run.json`` into ``folder``, all of them or none.

        Raises StorageError if the folder holds files already and ``overwrite`` is not set.
        """
        return save_together(folder, [self.scores, self.roles], overwrite)

    @classmethod
    def load(cls, folder: str | Path) -> Classification:
        """Read back what `save` wrote. Raises StorageError where that is not possible."""
        return cls(HeadScores.load(folder), RoleTable.load(folder))

    def __getattr__(self, name: str) -> Any:
        """Return what the role table has."""
        if name.startswith("_"):  # what copies ask for before they have a table
            raise AttributeError(name)
        return getattr(self.roles, name)

    def __dir__(self) -> list[str]:
        """Return the names for tab completion, those of the role table too."""
        return sorted({*super().__dir__(), *dir(self.roles)})

    def __repr__(self) -> str:
        return repr(self.roles)

    def _repr_html_(self) -> str:
        return self.roles._repr_html_()


@takes(ClassifyOptions)
def classify_heads(model: Attending, corpus: AnyCorpus, options: ClassifyOptions) -> Classification:
    """Return all scores and the table of roles: `score_heads`, then `assign_roles`.

    Arguments, options and errors are those of both functions. With ``model`` an encoder of 3 layers
    with 4 heads each, and random weights:

    >>> from headroles import classify_heads, read_conllu, sample_treebank
    >>> found = classify_heads(model, read_conllu(sample_treebank()), roles="local")
    >>> len(found.roles)
    12
    >>> found.roles.heads_with("local")
    []
    """
    return run_classification(model, corpus, options, ALONE)


def run_classification(
    model: Attending, corpus: AnyCorpus, options: ClassifyOptions, sharing: Sharing
) -> Classification:
    """Run `classify_heads` with parts, processes or a part of the corpus, as `ScoringRun`."""
    from headroles.models.loading.encoder import load_encoder
    from headroles.scoring.run import open_scoring, score_heads
    from headroles.studies.controls import with_permuted_weights, with_permuted_words

    with open_scoring(model, corpus, options, sharing) as run:
        refuse_one_document(run.corpus.record.documents, options.tests)  # before long work
        scores = run.scores()
    controls: dict[str, HeadScores] = {}  # of a pass of their own, answered as roles are
    as_roles = replace(options, controls=tuple({*options.controls} & {TREES}))
    if PERMUTED_WORDS in options.scored_controls:
        controls[PERMUTED_WORDS] = score_heads(
            model, with_permuted_words(as_corpus(corpus), _SEED), options=as_roles
        )
    if PERMUTED_WEIGHTS in options.scored_controls:
        encoder = load_encoder(model, options, of=options.as_group(TargetOptions))
        permuted = with_permuted_weights(encoder.model, _SEED)
        as_roles = replace(as_roles, tokenizer=encoder.tokenizer)
        controls[PERMUTED_WEIGHTS] = score_heads(permuted, corpus, options=as_roles)
    return Classification(scores, assign(scores, options, controls))


@takes(AssignOptions)
def assign_roles(scores: HeadScores, options: AssignOptions) -> RoleTable:
    """Test for every head and role whether the head has the role.

    The unit is the example, or its document. Two one-sided tests, of H0: mean <= threshold and of
    H0: mean >= threshold, are corrected for the number of tests, each direction separately. The
    answer is ``yes`` if the mean is shown to be above (adjusted p <= alpha), ``no`` if it is shown
    to be below, and ``undecided`` if the data show neither, which is not ``no``. Heads with ``yes``
    have the role.

    Roles of pairs of words, such as arcs, need contrasts too: attention to these pairs less that to
    other words at the same distance, and less that to the same places of other trees. ``yes`` then
    takes both above ``distance_margin``, and ``p_value`` is the largest of all p-values;
    ``positional`` is a mean above the threshold with a contrast that is shown to lie below the
    margin. The column ``evidence`` names the farthest step that is shown on top of ``yes``:
    ``distance``, ``class`` (more than nearer words of the same class) or ``attractors`` (more than
    such words in between). The column ``note`` says what is open where the answer is
    ``undecided``.

    "Yes" and "no" keep ``alpha`` each. With ``fdr_bh``, ``fdr_by`` and ``bonferroni`` the wrong
    answers of both kinds together keep it too, unless means lie exactly at the threshold; with
    ``holm`` and ``hochberg`` the chance of any wrong answer is up to 2 * ``alpha``. Most scores are
    skewed to the right. With few examples or clusters of such scores, t-tests give a wrong "no"
    more often than ``alpha`` says and a wrong "yes" less often.

    First choices (``score="hit"``) of arcs must beat a rule: always look at the word at the best
    fixed offset, up to 5 words away. Each half of the documents is compared with the best offset of
    the other half. The hits of the rule are subtracted from those of the head example by example,
    so that the errors of both count. The column ``threshold`` is then the mean of the rule plus
    ``offset_margin``, and ``sd``, interval and effect size are those of the difference. A
    ``threshold`` that you give holds for all roles and replaces the rule.

    Roles with fewer than two examples or clusters are ``untestable``. If scores vary by no more
    than rounding, betting decides, or the answer is ``undecided``. Neither enters the correction.
    ``block:evenness`` is not a role: its mean is the column ``evenness`` of ``block``. A role that
    no example has (``block`` without pairs) has no rows; the record names it.

    Args:
        scores: from `score_heads`.
        options: keyword arguments, described below.

    Raises:
        UsageError: an option outside its range, or options or scores that do not go together.

    Of two heads the first gives neighbouring words five times as much as uniform attention does:

    >>> import numpy as np
    >>> from headroles import HeadScores, assign_roles
    >>> values = np.random.default_rng(0).normal([[5.0], [1.0]], 1.0, size=(20, 1, 2, 1))
    >>> table = assign_roles(HeadScores.by_hand(values, ["local"]))
    >>> table.frame[["layer", "head", "role", "threshold", "answer"]]
       layer  head   role  threshold answer
    0      0     0  local        3.0    yes
    1      0     1  local        3.0     no
    """
    whole = scores_of(scores)
    check_contrasts(whole)
    return assign(whole, options, {})


def assign(
    scores: HeadScores, options: AssignOptions, control_scores: Mapping[str, HeadScores]
) -> RoleTable:
    """Run `assign_roles` with the scores of controls that took a pass of their own."""
    if options.is_published and scores.score != BIAS:
        raise UsageError(
            f"the published tests are of bias scores, and these are {scores.score.name} scores; "
            "score again with `score='bias'`, or leave the preset out"
        )
    columns = HeadColumns.from_scores(scores, unseen=True)
    refuse_nothing_to_test(columns.roles)
    tested = RoleHypotheses.from_scores(
        scores, options.tests, options, columns, options.is_published
    )
    frame = _frame(scores, tested, options)
    controls = (
        _Controls({}, {})
        if options.is_published
        else _test_controls(frame, scores, control_scores, options)
    )
    absent = [role for role in scores.roles if role.is_tested and role.id not in columns.ids]
    facts: RoleFacts = {
        **options.facts_about(scores.score),
        "distance_margin": options.margin_of(scores.score) * (BEYOND_OFFSET in tested.legs),
        "offsets": {role: rule.offsets for role, rule in tested.rules.items()},
        "class_rules": {
            role: (str(rule.rules[0]), str(rule.rules[1]))
            for role, rule in tested.class_rules.items()
        },
        "controls": controls.heads,
        "controls_beyond": controls.beyond,
        **describe_clusters(tested.means, scores.clusters),
        "left_out": {role.id: _why_absent(role, scores.record) for role in absent},
    }
    group, sources = options.as_group(AssignOptions), {"scores": scores.record}
    table = RoleTable.made(frame, group, facts=facts, sources=sources)
    preset = scores.record.options.get("preset", options.preset)
    warnings = [
        *warnings_of_run(scores.record),
        *warn_of_doubled(scores.clusters, options.tests),
        *_warn_of_documents(scores.record, options.tests.clusters, tested.means.is_clustered),
        *find_warnings(tested.means, options.tests, certain=_is_certain(frame)),
        *_warn_of_controls(table.controls.iloc[0]),
        *_warn_of_old_scores(tested),
        *_warn_of_lengths(scores.record, bool(tested.legs)),
    ]
    if preset != options.preset:
        warnings.insert(0, "scores were not made with this preset: only the tests follow it")
    return replace(table, record=structs.replace(table.record, warnings=warnings))


def _frame(scores: HeadScores, tested: RoleHypotheses, options: AssignOptions) -> pd.DataFrame:
    columns, means = tested.columns, tested.means
    answered, moments = tested.answered(options.tests), means.moments
    intervals = means.intervals(options.alpha)
    certified, certified_mean = np.full(means.n_tests, ""), np.full(means.n_tests, np.nan)
    # the published tests take examples as independent, which certified answers do not assume
    if tested.has_bounds and not options.is_published:
        certified, certified_mean = tested.certified(options.tests), means.betting.mean
    frame = pd.DataFrame(
        {
            **columns.labels,
            "n": moments.n,
            "n_clusters": moments.n_clusters,
            "df": moments.df,
            "mean": moments.mean,
            "sd": moments.sd,
            "effect_size": means.effect_size,
            "ci_low": intervals.ci_low,
            "ci_high": intervals.ci_high,
            "threshold": means.threshold,
            "statistic": answered.above.statistic,
            **_beyond_distance(tested, options),
            **_further_steps(tested, answered, options),
            "p_value": answered.above.single,
            "p_adjusted": answered.above.adjusted,
            "p_below": answered.below.single,
            "p_below_adjusted": answered.below.adjusted,
            "answer": answered.answers.astype(object),
            "assigned": answered.answers == YES,
            **describe_specificity(scores, columns, options.tests),
            "certified": certified.astype(object),
            "certified_mean": certified_mean,
            "evenness": _evenness(scores, columns),
            **dict.fromkeys((f"mean_{name}" for name in CONTROLS), np.nan),
        }
    )
    of_windows = _window_notes(scores, columns)
    notes = find_notes(means, of_windows, options.tests.test, _is_certain(frame))
    unseen = _notes_on_unseen(scores, columns)
    notes = np.where((answered.answers == UNTESTABLE) & (unseen != ""), unseen, notes)
    is_against = frame["answer"].map({YES: NO, NO: YES}) == frame["certified"]
    against = np.where(
        is_against, "the certified answer, for certified_mean, is " + frame["certified"], ""
    )
    evidence = frame["evidence"].to_numpy()
    rests_on = tested.rests_on_little(evidence, options.tests)
    noted = [rests_on, tested.lacks_documents(evidence, options.tests), notes, against]
    if answered.notes is not None:
        noted.insert(0, answered.notes)
    frame["note"] = ["; ".join(filter(None, texts)) for texts in zip(*noted, strict=True)]
    note_removed(frame, scores.record)
    return frame


def _is_certain(frame: pd.DataFrame) -> BoolArray:
    """Tell which answers betting confirms, so that they hold for scores of any distribution."""
    is_answer = frame["answer"].isin((YES, NO))
    return (is_answer & (frame["answer"] == frame["certified"])).to_numpy()


class _Controls(NamedTuple):
    """By control, the heads that would have each role, and those that reach each further step."""

    heads: dict[str, dict[str, list[Head]]]
    beyond: dict[str, dict[str, list[Head]]]


def _test_controls(
    frame: pd.DataFrame,
    scores: HeadScores,
    control_scores: Mapping[str, HeadScores],
    options: AssignOptions,
) -> _Controls:
    """Test the controls as roles are, each by itself. Their means become columns of ``frame``."""
    controls = dict(control_scores)
    if names := [role.id for role in scores.roles if role.control == OTHER_TREES]:
        trees = scores.select(roles=names)
        as_real = tuple(role.without_control() for role in trees.roles)
        controls = {TREES: replace(trees, roles=as_real), **controls}
    found = _Controls({}, {})
    for name, control in controls.items():
        tested = RoleHypotheses.from_scores(control, options.tests, options)
        rows = pd.DataFrame({**tested.columns.labels, "mean": tested.means.moments.mean})
        frame[f"mean_{name}"] = frame[["layer", "head", "role"]].merge(rows, how="left")["mean"]
        answered = tested.answered(options.tests)
        having = rows[answered.answers == YES].groupby("role", sort=False)
        found.heads[name] = {str(role): heads_in(of_role) for role, of_role in having}
        if steps := tested.steps(answered.above, options.tests):
            has_steps, alpha = tested.has_steps, options.tests.alpha
            rows["evidence"] = evidence_of(answered.answers, steps, has_steps, alpha)
            found.beyond[name] = {step: heads_in(rows[reaches(rows, step)]) for step in steps}
    return found


def _beyond_distance(tested: RoleHypotheses, options: AssignOptions) -> dict[str, NDArray[Any]]:
    """Return the columns about attention beyond distance: by contrasts, or beyond an offset."""
    means, leg = tested.means, tested.legs.get(BEYOND_OFFSET)
    offset_of_role = {
        role: " and ".join(dict.fromkeys(map("{:+d}".format, rule.offsets)))
        for role, rule in tested.rules.items()
    }
    offsets = np.array(
        [offset_of_role.get(role, "") for role in tested.columns.labels["role"]], object
    )
    share = np.where(offsets != "", means.threshold - options.offset_margin, np.nan)
    about_offset = {"offset": offsets, "offset_share": share}
    if leg is not None:
        return {**_contrast(leg, "beyond_distance", "beyond", options), **about_offset}
    intervals = means.intervals(options.alpha)
    return {
        "beyond_distance": means.moments.mean - share,
        "beyond_low": intervals.ci_low - share,
        "beyond_high": intervals.ci_high - share,
        "p_beyond": np.full(means.n_tests, np.nan),
        **about_offset,
    }


def _contrast(leg: Leg, mean: str, stem: str, options: AssignOptions) -> dict[str, NDArray[Any]]:
    """Return the columns about a contrast: its mean, interval and p-value against the margin."""
    tests = leg.hypotheses
    intervals = tests.intervals(options.alpha)
    above = find_p_values(tests, options.tests, "greater")
    return {
        mean: leg.spread(tests.moments.mean),
        f"{stem}_low": leg.spread(intervals.ci_low),
        f"{stem}_high": leg.spread(intervals.ci_high),
        f"p_{stem}": leg.spread(above.single),
    }


def _further_steps(
    tested: RoleHypotheses, answered: Answered, options: AssignOptions
) -> dict[str, NDArray[Any]]:
    """Return the columns about other trees, and about the steps beyond distance."""
    n, nothing = tested.means.n_tests, np.full(tested.means.n_tests, np.nan)
    columns: dict[str, NDArray[Any]] = dict.fromkeys(
        ("beyond_trees", "trees_low", "trees_high", "p_trees"), nothing
    )
    if leg := tested.legs.get(BEYOND_OFFSET if tested.is_causal else BEYOND_TREES):
        columns |= _contrast(leg, "beyond_trees", "trees", options)
    steps = tested.steps(answered.above, options.tests)
    for name, mean in ((CLASS, "beyond_class"), (ATTRACTORS, "past_attractors")):
        step = steps.get(name)
        columns |= {
            mean: nothing if step is None else step.mean,
            f"{name}_low": nothing if step is None else step.interval.ci_low,
            f"{name}_high": nothing if step is None else step.interval.ci_high,
            f"p_{name}": nothing if step is None else step.p_value,
            f"n_{name}": nothing if step is None else step.n,
            f"{name}_answer": np.full(n, "", object)
            if step is None
            else step.answers.astype(object),
        }
    has_steps = tested.has_steps
    if tested.rules and CLASS not in steps:
        columns["class_answer"][:] = UNTESTABLE
    if has_steps.any():
        for name in (CLASS, ATTRACTORS):
            columns[f"{name}_answer"][~has_steps] = ""
    evidence = evidence_of(answered.answers, steps, has_steps, options.alpha)
    return {"evidence": evidence, **columns}


def _evenness(scores: HeadScores, columns: HeadColumns) -> FloatArray:
    """Return the mean evenness (T,) of the roles that have it, NaN for others."""
    means = np.full((len(columns.roles), columns.n_layers * columns.n_heads), np.nan)
    for role in scores.roles:
        if role.id == EVENNESS and role.measure_of in columns.ids:
            of_role = Sample.from_values(scores.column(role.id)).moments.mean
            means[columns.ids.index(role.measure_of)] = of_role
    return means.ravel()


def _window_notes(scores: HeadScores, columns: HeadColumns) -> NDArray[np.object_]:
    """Note for each role (T,) that a layer sees only a window of the longest examples."""
    farthest = int(scores.lengths.max()) - 1
    notes = np.full((len(columns.roles), columns.n_layers, columns.n_heads), "", dtype=object)
    for layer, reach in enumerate(scores.record.model.reaches_of_layers):
        for place, role in enumerate(columns.roles):
            if reach.back is not None and reach.back < farthest and role.in_window:
                notes[place, layer] = (
                    f"attention of this layer reaches {reach.back} positions{role.in_window}"
                )
    return notes.ravel()


def _notes_on_unseen(scores: HeadScores, columns: HeadColumns) -> NDArray[np.object_]:
    """Note for each role (T,) of a decoder in how many arcs the key comes later."""
    notes = []
    for role in columns.ids:
        n_seen, n_unseen = (
            int(scores.counts[:, scores.role_ids.index(name)].sum()) if name else 0
            for name in (role, scores.turned(role))
        )
        is_about_arcs = scores.record.model.is_causal and n_unseen
        later = f"the key comes later in {n_unseen} of {n_seen + n_unseen} arcs"
        notes.append(f"{UNTESTABLE}: {later}" if is_about_arcs else "")
    return np.array(notes, dtype=object)[columns.indices[0]]


# Cautions.


def _warn_of_controls(counts: pd.Series[Any]) -> Iterator[str]:
    """Warn of controls that find more than a quarter of the heads that have roles of pairs."""
    many = [
        f"{int(counts[name])} with {words}"
        for name, words in CONTROLS_IN_WORDS.items()
        if counts["role"] == GROUP and counts.get(name, 0) > max(_MANY * counts["heads"], 1)
    ]
    if many:
        yield (
            f"Controls find heads with a role of pairs too: {' and '.join(many)}, beside "
            f"{counts['heads']} heads with the corpus itself. Do not read these answers as more "
            "than the control"
        )


def _warn_of_lengths(record: Record, has_contrasts: bool) -> Iterator[str]:
    """Warn of contrasts in a model whose rows differ in length, as in decoders."""
    if has_contrasts and record.model.is_causal:
        yield (
            f"{record.model.sight}: beyond_distance compares attention to pairs of words with that "
            "to the same places of other trees, not with other words at the same distance"
        )


def _warn_of_old_scores(tested: RoleHypotheses) -> Iterator[str]:
    """Warn of first choices that were saved without the hits of class rules."""
    lacking = len(tested.rules.keys() - tested.class_rules.keys())
    if lacking and not tested.class_rules:
        yield (
            "These scores were saved by a version that did not count the hits of the nearest word "
            "of a class, so evidence beyond such a rule is untestable. Score again"
        )


def _warn_of_documents(record: Record, clusters: str, is_clustered: bool) -> Iterator[str]:
    """Warn of a corpus that does not name its documents, with advice.

    There is no warning if the user takes examples as independent, or if scores were made by hand.
    """
    corpus = record.corpus
    undivided, n_sentences = corpus.undivided, corpus.sentences
    if clusters == "none" or not n_sentences:
        return
    counted = "tests take examples as independent. Answers are too sure if they are not"
    if undivided <= _MUCH * n_sentences:
        if corpus.documents == 1:
            yield (
                f"the corpus is one document, so {counted}. Put each text into its own file, or "
                "pass `clusters='none'` if examples are independent."
            )
        return
    which = "the treebank names"
    if undivided < n_sentences:
        which = f"{undivided} of {n_sentences} sentences are in files, or parts of files, that name"
    rule = corpus.documents_by or NEWDOC
    named_by = "# newdoc" if rule == NEWDOC else f"`documents={rule!r}`"
    by_id = f"`documents='sent_id'`, as ids name {corpus.documents_by_id}; "
    yield (
        f"{which} no documents ({named_by}): "
        f"{'each file counts as one document' if is_clustered else counted}. Neighbouring "
        f"sentences are paired. Pass {by_id * (corpus.documents_by_id > 1)}"
        "`documents='comment:KEY'` if a comment names them; `pairing='none'` if neighbours are of "
        "different texts; or `clusters='none'` if examples are independent."
    )


def _why_absent(role: Role, record: Record) -> str:
    """Say why no example has a role."""
    if role.kind != "tokens" and record.model.sight:
        return record.model.sight
    if role.needs != SENTENCE_PAIRS:
        return role.needs and f"there are no {role.needs}"
    corpus, too_long = record.corpus, record.corpus.skipped.get(TOO_LONG, 0)
    n_single = corpus.examples + 2 * sum(corpus.skipped.values())  # sentences, if none is in a pair
    why = "there are none"
    if record.options.get("pairing") == "none":
        why = "with `pairing='none'` there are no pairs"
    elif corpus.sentences and corpus.sentences == corpus.documents:
        why = f"each of the {corpus.sentences} sentences is a document of its own"
    elif corpus.sentences > n_single:
        why = "the tokenizer puts no separator between the two"
    elif too_long:
        why += f" that the model takes (too long: {too_long})"
    return f"that takes {SENTENCE_PAIRS}, and {why}"
