"""Summary and details of a role table, for people, and its method, for papers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from headroles.results.shown import SEE_FULL, Grid, Shown, Warned
from headroles.roles import BIAS, EXCESS, HIT, SCORES, in_words, is_arc, is_own
from headroles.scoring.run_notes import about_length, describe_run
from headroles.studies.classification.answers import (
    RoleAnswers,
    about_controls,
    by_strength,
    find_answers,
    pairs_among,
)
from headroles.testing.answers import NO, POSITIONAL, UNTESTABLE, YES
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction
from headroles.testing.recorded import RecordedLevel
from headroles.wording import head_name, listed, named_heads

if TYPE_CHECKING:
    from headroles.studies.classification.role_table import RoleTable, RoleTests

_SCORES = {
    BIAS.name: (
        "The sieve bias score of a head for a role is the attention that it gives to the words of "
        "the role, over what uniform attention would give them (Pande et al., 2021).",
        "pande",
    ),
    EXCESS.name: (
        "The excess score of a head for a role is its attention to the words of the role beyond "
        "uniform attention, over the largest possible excess.",
        "pande",
    ),
    HIT.name: (
        "The score of a head for a role is the share of words whose largest attention goes where "
        "the role looks (Clark et al., 2019).",
        "clark",
    ),
}
NOT_CONTROLLED = (
    "Distance was not controlled: some of these heads may only look at a fixed place. Score with "
    "`beyond_offset`."
)
_MOST_ROLES, _MOST_ARCS, _MOST_MISSING = 5, 3, 3  # rows of the summary, which is to fit on a screen


def summarized(table: RoleTable) -> Iterator[Shown]:
    """Summarise in some twenty lines the heads of each role, with cautions."""
    answers = find_answers(table)
    yield "\n".join(
        (
            *_about_run(table),
            about_level(table.tests, table.record.score, bool(table.rivals)),
            *_about_gaps(table),
        )
    )
    grid = _heads_grid(table, answers)
    yield grid if grid.rows else "No head was shown to have a role."
    yield from _about_others(table, answers)
    yield from about_controls(table)
    yield from _arcs(table, answers)
    yield from map(Warned, table.warnings)


def detailed(table: RoleTable) -> Iterator[Shown]:
    """Describe tests, tabulate answers and the strongest heads, and name missing values."""
    tests, frame = table.tests, table.frame
    yield describe_run(table.record)
    is_uneven = tests.effective_clusters < 0.9 * tests.n_clusters
    uneven = f" (effective number {tests.effective_clusters:.0f})" * bool(is_uneven)
    yield (
        f"{TESTS[tests.test].words} of {describe_units(tests)}{uneven}, each direction at alpha\n"
        f"intervals of {100 * (1 - tests.alpha):g} %: t, for each head separately"
    )
    score = "" if table.record.score == BIAS.name else f"{table.record.score} "
    yield (
        f"heads per layer with mean {score}score > {describe_limit(tests, bool(table.rivals))} "
        f"(alpha {tests.alpha:g}, {describe_correction(tests.correction)})"
    )
    yield _answers_grid(table)
    if _is_certified(table):
        yield _about_certified(table)
    yield "strongest heads: layer-head mean score"
    yield _strongest_grid(table)
    if caution := about_length(table.record):
        yield caution
    untested = frame["note"][frame["answer"] == UNTESTABLE]
    causes = untested.str.removeprefix(f"{UNTESTABLE}: ").value_counts()
    if len(causes):
        named = "; ".join(f"{cause} ({n})" for cause, n in causes.items())
        yield f"{len(untested)} pairs of head and role are untestable: {named}."
    if changing := [role for role, (first, second) in table.rivals.items() if first != second]:
        yield f"The best offset differs between halves of the documents: {', '.join(changing)}."


def _answers_grid(table: RoleTable) -> Grid:
    """Return for each role the numbers of examples, and of heads by layer and by answer."""
    sizes = table.frame.groupby("role", sort=False)[["n", "n_clusters"]].max()
    sizes.columns = ["examples", "clusters"]
    answers, certified = table.answers(), table.certified()[[YES, NO]].add_prefix("certified ")
    rare = [name for name in (POSITIONAL, UNTESTABLE) if not answers[name].any()]
    joined = pd.concat(
        [
            sizes.drop(columns=["clusters"] * (table.tests.clustered_by == "none")),
            table.counts().drop(columns="total").astype(str).replace("0", "."),
            answers.drop(columns=rare),
            certified if _is_certified(table) else certified[[]],
        ],
        axis=1,
    ).astype(str)
    return Grid(("role", *map(str, joined.columns)), tuple(joined.itertuples(name=None)), bold=YES)


def _is_certified(table: RoleTable) -> bool:
    """Tell whether there are certified answers: the scores have bounds."""
    return bool((table.frame["certified"] != "").any())


def _about_certified(table: RoleTable) -> str:
    """Name answers that the certified ones contradict."""
    given, certified = table.frame["answer"], table.frame["certified"]
    against = table.frame[(given == YES) & (certified == NO) | (given == NO) & (certified == YES)]
    named = listed([f"{row.layer}-{row.head} {row.role}" for row in against.itertuples()], 8)
    contradicted = f"; {len(against)} against the answer given: {named}" * bool(len(against))
    return f"certified: by betting and e-BH, for any distribution of scores{contradicted}\n"


def _strongest_grid(table: RoleTable) -> Grid:
    """Return the three strongest heads of each role."""
    ranked, digits = by_strength(table.frame[table.frame["assigned"]]), _digits(table.record.score)
    rows = []
    for role in table.roles:
        strongest = ranked[ranked["role"] == role].head(3).itertuples()
        heads = [f"{row.layer}-{row.head} {row.mean:.{digits}f}" for row in strongest]
        rows.append((role, "  ".join(heads)))
    return Grid(("role", "heads"), tuple(rows), left=frozenset(["heads"]))


def next_steps(table: RoleTable, folder: Path) -> Iterator[str]:
    """Name the commands that show more of the results in ``folder``."""
    yield f"See:     headroles report {folder}  (all tables and pictures, in one HTML file)"
    answers = find_answers(table)
    if first := next(chain(answers.arcs, answers.found), None):
        head = head_name(first.head)
        asked = f"headroles examples {folder} --head {head} --role {first.role}"
        own = ":".join(first.role.split(":")[:2])
        yield f"         {asked}" + is_own(first.role) * " ".join(("", "--roles", own))


def _about_run(table: RoleTable) -> Iterator[str]:
    """Name the model and the corpus."""
    record, corpus = table.record, table.record.corpus
    named = "Heads are named layer-head, counted from 0."
    if record.is_by_hand:
        yield f"Scores made by hand. {named}"
        return
    over = listed([Path(name).name for name in corpus.files]) or "sentences in memory"
    documents = "document" if corpus.documents == 1 else "documents"
    yield (
        f"{record.model.name} ({record.model.family}, {record.layers} layers x "
        f"{record.heads} heads) over {over}:"
    )
    yield (
        f"{corpus.sentences} sentences, {corpus.documents} {documents}, "
        f"{record.examples} examples. {named}"
    )


def _about_gaps(table: RoleTable) -> Iterator[str]:
    """Report skipped examples, and roles that no example has."""
    for reason, count in table.record.skipped.items():
        yield f"Skipped {reason}: {count}."
    by_reason: dict[str, list[str]] = {}
    for role, reason in table.tests.left_out.items():
        by_reason.setdefault(reason, []).append(in_words(role))
    for reason, roles in by_reason.items():
        yield f"No example has {listed(roles)}" + (f": {reason}." if reason else ".")


def about_level(tests: RecordedLevel, score_name: str, has_rivals: bool) -> str:
    """State the threshold of roles, and the error rate of answers."""
    score, limit = SCORES[score_name], f"{tests.threshold:g}"
    if score.of_first_choice:
        over = f"a share of first choices above {limit}"
        if has_rivals:
            over += f",\nof arcs by {tests.offset_margin:g} more than the best fixed offset has"
    else:
        unit = "times uniform attention" if score.name == BIAS.name else f"in {score.name} score"
        over = f"a mean above {limit} {unit}"
        if tests.distance_margin:
            over = (
                over.replace(" attention", "")
                + f", of arcs {tests.distance_margin:g} beyond distance"
            )
    return f"A role takes {over} ({error_rate(tests)})."


def error_rate(tests: RecordedLevel) -> str:
    """State the error rate of answers."""
    level = f"{tests.alpha:.2g}"
    if tests.correction == "none":
        return f"each test at {level}, uncorrected"
    if tests.correction.startswith("fdr"):
        return f"false discovery rate {level}"
    return f"family-wise error rate {level}"


def _heads_grid(table: RoleTable, answers: RoleAnswers) -> Grid:
    """Return a row for each role that heads have: their number, names, and the strongest."""
    title = f"What the {answers.n_heads} heads attend to"
    rows = [
        (
            in_words(one.role),
            str(len(one.heads)),
            named_heads(one.heads, table.record.layers),
            head_name(one.head),
            in_units(one.mean, table.record.score),
        )
        for one in answers.found[:_MOST_ROLES]
    ]
    if answers.arcs or answers.positional:
        heads = named_heads(answers.syntactic, table.record.layers)
        best = (head_name(answers.arcs[0].head), "see below") if answers.arcs else ("", "")
        partners = "words of pairs" if _has_own_pairs(table) else "syntactic partners"
        rows.insert(0, (partners, str(len(answers.syntactic)), heads, *best))
    columns = (title, "heads", "which", "strongest", unit_of(table.record.score))
    return Grid(columns, tuple(rows), left=frozenset(["which", "strongest"]))


def _about_others(table: RoleTable, answers: RoleAnswers) -> Iterator[str]:
    """Name roles that no head has, and count those that the grid leaves out."""
    left = len(answers.found[_MOST_ROLES:])
    if answers.not_found:
        named = "; ".join(map(in_words, answers.not_found[:_MOST_MISSING]))
        others = len(answers.not_found[_MOST_MISSING:])
        yield f"No head attends to: {named}" + (f"; and {others} more." if others else ".")
    if left:
        yield f"Heads have {left} more roles: {SEE_FULL}"


def _arcs(table: RoleTable, answers: RoleAnswers) -> Iterator[Shown]:
    """Tabulate the strongest head of each relation, and name a head that has a distance alone."""
    score = table.record.score
    if answers.arcs:
        shown = answers.arcs[:_MOST_ARCS]
        of = f"the {len(shown)} best of {len(answers.arcs)} relations"
        kind = "Heads of pairs of words" if _has_own_pairs(table) else "Syntactic heads"
        rows = (
            (
                in_words(one.role),
                head_name(one.head),
                in_units(one.mean, score),
                *[in_units(one.beyond, score)] * answers.controls_distance,
            )
            for one in shown
        )
        columns = (f"{kind} ({of})", "head", unit_of(score))
        yield Grid((*columns, *["beyond distance"] * answers.controls_distance), tuple(rows))
        if not answers.controls_distance:
            yield NOT_CONTROLLED
    if answers.positional:
        first = answers.positional[0]
        yield (
            f"Positional, not counted: {head_name(first.head)} ({in_words(first.role)} "
            f"{in_units(first.mean, score)}) gives as much to any word at that distance."
        )


def _has_own_pairs(table: RoleTable) -> bool:
    """Tell whether a user's own pairs of words are among the roles that have contrasts."""
    return not all(map(is_arc, pairs_among(table.frame)))


def unit_of(score: str) -> str:
    """Name the unit of means in a few words."""
    if SCORES[score].of_first_choice:
        return "first choices"
    return "x uniform" if score == BIAS.name else "excess"


def in_units(mean: float, score: str) -> str:
    """Format a mean in the digits that its unit takes."""
    if SCORES[score].of_first_choice:
        return f"{mean:.0%}"
    return f"{mean:.{_digits(score)}f}"


def describe_units(tests: RoleTests) -> str:
    """Name the units of the tests of a role table, and count them."""
    if tests.clustered_by == "none":
        return f"{tests.n_clusters} independent examples"
    return f"examples clustered by {tests.n_clusters} documents"


def describe_limit(asked: RecordedLevel, has_rivals: bool) -> str:
    """Name the thresholds of means; with rivals, roles of arcs are compared with fixed offsets."""
    margin = asked.distance_margin
    contrasts = f", of arcs beyond distance > {margin:g}" if margin else ""
    beyond = f"; of arcs > best fixed offset + {asked.offset_margin:g}" * has_rivals
    return f"{asked.threshold:g}{contrasts}{beyond}"


def _digits(score: str) -> int:
    """Return the number of decimals for means on the scale of the score."""
    return 1 if SCORES[score].threshold >= 1 else 2


def method_of(table: RoleTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sentences on score and tests, and the key of the work that defines the score."""
    sentence, work = _SCORES[table.record.score]
    tests = table.tests
    correction = describe_correction(tests.correction).replace("fdr_bh", "Benjamini-Hochberg")
    tested = (
        f"{TESTS[tests.test].words} over {describe_units(tests)}, alpha {tests.alpha:g}, "
        f"{correction}"
    )
    beyond = ""
    if table.rivals:
        beyond = f", and of arcs {tests.offset_margin:g} above that of the best fixed offset"
    said = [
        sentence,
        f"A head has a role if its mean score is above {tests.threshold:g}{beyond} ({tested}).",
    ]
    if tests.distance_margin:
        said.append(
            "Of roles of arcs, its score on arcs also has to exceed that on other words at the "
            f"same distance by more than {tests.distance_margin:g} (intersection-union test)."
        )
    return (*said, *about_controls(table)), (work,)
