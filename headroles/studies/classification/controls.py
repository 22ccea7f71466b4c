"""Controls of a role table: how many heads would have roles if there were nothing to find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headroles.arrays import FloatArray
from headroles.corpus import Corpus, as_corpus
from headroles.models.loading.encoder import Attending, load_encoder
from headroles.role_names import GROUP
from headroles.roles import is_arc, is_other_trees, without_other_trees
from headroles.scoring.options import PERMUTED_WEIGHTS, TREES, WORDS
from headroles.scoring.run import score_heads
from headroles.scoring.scores import HeadScores
from headroles.studies.classification.answers import heads_in, pairs_among
from headroles.studies.controls import with_permuted_weights, with_permuted_words
from headroles.studies.options import ThresholdOptions
from headroles.studies.role_answers import RoleHypotheses
from headroles.testing.answers import YES
from headroles.testing.options import TestOptions

if TYPE_CHECKING:
    from headroles.studies.classification.options import ClassifyOptions
    from headroles.studies.classification.role_table import RoleTable

SEED = 0
"""Seed of permuted words and weights."""
_IN_WORDS = {
    TREES: "the trees of other sentences",
    WORDS: "permuted words",
    PERMUTED_WEIGHTS: "permuted weights",
}
_MANY = 0.25  # share of the heads found that a control may find without a warning


@dataclass(frozen=True)
class Control:
    """The tests of one control: ``means`` of its rows, and the ``heads`` that would have roles."""

    frame: pd.DataFrame

    @property
    def heads(self) -> dict[str, list[tuple[int, int]]]:
        """The heads that would have each role."""
        rows = self.frame[self.frame["answer"] == YES]
        return {str(role): list(heads_in(own)) for role, own in rows.groupby("role", sort=False)}

    def means_of(self, frame: pd.DataFrame) -> FloatArray:
        """Return the mean of the control for each row of a role table, NaN where it has none."""
        key = ["layer", "head", "role"]
        means = self.frame.set_index(key)["mean"]
        return means.reindex(pd.MultiIndex.from_frame(frame[key])).to_numpy()


def score_controls(
    model: Attending, corpus: Corpus, options: ClassifyOptions
) -> dict[str, HeadScores]:
    """Score the controls that take a pass of their own, with permuted words or weights."""
    asked = replace(options, controls=TREES if WORDS in options.controls else "none")
    found = {}
    if WORDS in options.controls:
        permuted = with_permuted_words(as_corpus(corpus), SEED)
        found[WORDS] = score_heads(model, permuted, replace(asked, controls="none"))
    if PERMUTED_WEIGHTS in options.controls:
        encoder = load_encoder(model, options)
        other = with_permuted_weights(encoder.model, SEED)
        alike = replace(asked, controls="none", tokenizer=encoder.tokenizer)
        found[PERMUTED_WEIGHTS] = score_heads(other, corpus, alike)
    return found


def with_other_trees_as_own(scores: HeadScores) -> HeadScores | None:
    """Return the scores of arcs of other sentences as those of the roles; None without any."""
    names = [name for name in scores.role_ids if is_other_trees(name)]
    if not names:
        return None
    chosen = scores.select(roles=names)
    roles = tuple(replace(role, id=without_other_trees(role.id)) for role in chosen.roles)
    return replace(chosen, roles=roles)


def tested_controls(
    scores: HeadScores,
    others: Mapping[str, HeadScores],
    options: TestOptions,
    against: ThresholdOptions,
) -> dict[str, Control]:
    """Test the controls as the roles are tested, each by itself."""
    trees = with_other_trees_as_own(scores)
    every = {**({} if trees is None else {TREES: trees}), **others}
    return {name: _tested(one, options, against) for name, one in every.items()}


def _tested(scores: HeadScores, options: TestOptions, against: ThresholdOptions) -> Control:
    tested = RoleHypotheses.of(scores, options, against)
    answers = tested.answered(options).answers
    return Control(
        pd.DataFrame(
            {**tested.columns.labels, "mean": tested.means.moments.mean, "answer": answers}
        )
    )


def count_controls(table: RoleTable) -> pd.DataFrame:
    """Count heads with each role, and those that would have it in each control.

    Columns ``role, heads``, and one for each control, NaN for roles that it does not test. If there
    are roles of pairs of words, the first row is any of them.
    """
    pairs = pairs_among(table.frame)
    groups = {GROUP: pairs} if pairs else {}
    rows = []
    for name, roles in (groups | {role: [role] for role in table.roles}).items():
        own = table.frame[table.frame["assigned"] & table.frame["role"].isin(roles)]
        found: dict[str, Any] = {"role": name, "heads": len(heads_in(own))}
        for control, heads in table.tests.controls.items():
            tested = [role for role in roles if control != TREES or role in pairs]
            either = {head for role in tested for head in heads.get(role, [])}
            found[control] = len(either) if tested else np.nan
        rows.append(found)
    return pd.DataFrame(rows)


def about_controls(table: RoleTable) -> Iterator[str]:
    """Say in a sentence how many heads would be called syntactic in each control."""
    named = [name for name in _IN_WORDS if name in table.tests.controls]
    counts = count_controls(table).iloc[0]
    if not named or counts["role"] != GROUP:
        return
    called = "have roles of pairs"
    if all(map(is_arc, pairs_among(table.frame))):
        called = "be called syntactic"
    first, *others = ((_IN_WORDS[name], int(counts[name])) for name in named)
    heads = "head" if first[1] == 1 else "heads"
    rest = "".join(f", with {words} {n}" for words, n in others)
    yield f"With {first[0]} {first[1]} {heads} would {called}{rest}."
    if TREES in named and (alone := table.record.without_other_tree):
        yield (
            f"The control with other trees lacks {alone} of {table.record.corpus.sentences} "
            "sentences: no other document has a sentence of as many words."
        )


def warn_of_controls(table: RoleTable) -> Iterator[str]:
    """Warn of controls that find more than a quarter of the heads that have roles of pairs."""
    row = count_controls(table).iloc[0]
    many = [
        f"{int(row[name])} with {words}"
        for name, words in _IN_WORDS.items()
        if row["role"] == GROUP and row.get(name, 0) > max(_MANY * row["heads"], 1)
    ]
    if many:
        yield (
            f"Controls find heads with a role of pairs too: {' and '.join(many)}, beside "
            f"{row['heads']} heads with the corpus itself. Do not read these answers as more than "
            "the control"
        )
