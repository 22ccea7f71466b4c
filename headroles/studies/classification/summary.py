"""Summary and details of a role table, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from headroles.results.shown import SEE_FULL, Grid, Shown, Warned
from headroles.roles import BIAS, SCORES, in_words, is_contrast, is_own
from headroles.scoring.run_notes import about_length, describe_run
from headroles.studies.classification.answers import (
    Arc,
    Found,
    RoleAnswers,
    arcs_among,
    find_answers,
    is_arc,
)
from headroles.studies.options import CORPUS
from headroles.testing.answers import NO, UNTESTABLE, YES
from headroles.testing.catalogue import TESTS
from headroles.testing.options import describe_correction, describe_interval
from headroles.testing.recorded import RecordedLevel
from headroles.wording import head_name, listed, named_heads

if TYPE_CHECKING:
    from headroles.studies.classification.role_table import RoleTable, RoleTests

_STRONGEST = 3
NOT_CONTROLLED = (
    "Distance was not controlled: some of these heads may only look at a fixed place. Score with "
    "beyond_offset (--beyond-offset)."
)
_MOST_ROLES, _MOST_ARCS, _MOST_MISSING = 5, 3, 3  # rows of the summary, which is to fit on a screen


def summarized(table: RoleTable) -> Iterator[Shown]:
    """Summarise in some twenty lines the heads of each role, with cautions."""
    answers = find_answers(table)
    yield "\n".join(
        (
            *_about_run(table),
            about_level(table.tests, table.record.score, bool(table.rivals), table.roles),
            *_about_gaps(table),
        )
    )
    grid = _heads_grid(table, answers)
    yield grid if grid.rows else "No head was shown to have a role."
    yield from _about_others(table, answers)
    yield from _arcs(table, answers)
    yield from map(Warned, table.warnings)


def detailed(table: RoleTable) -> Iterator[Shown]:
    """Describe tests, tabulate answers and the strongest heads, and name missing values."""
    yield describe_run(table.record)
    yield _about_tests(table)
    yield _about_limit(table)
    yield _answers_grid(table)
    if _is_certified(table):
        yield _about_certified(table)
    yield "strongest heads: layer-head mean score"
    yield _strongest_grid(table)
    if caution := about_length(table.record):
        yield caution
    yield from _near_answers(table)
    untested = table.frame["note"][table.frame["answer"] == UNTESTABLE]
    causes = untested.str.removeprefix(f"{UNTESTABLE}: ").value_counts()
    if len(causes):
        named = "; ".join(f"{cause} ({n})" for cause, n in causes.items())
        yield f"{len(untested)} pairs of head and role are untestable: {named}."
    if changing := [role for role, (one, other) in table.rivals.items() if one != other]:
        yield f"The best offset differs between halves of the documents: {', '.join(changing)}."


def _near_answers(table: RoleTable) -> Iterator[str]:
    """Name heads and roles that half precision may have answered wrongly, or that were rescored."""
    half = table.record.half_precision
    rescored = [] if half is None else half.rescored
    for label, columns in (
        ("float32 may change the answers of", table.tests.near),
        ("scored in float32:", rescored),
    ):
        if columns:
            named = "; ".join(f"{layer}-{head} {role}" for layer, head, role in columns)
            yield f"{label} {named}"


def next_steps(table: RoleTable, folder: Path) -> Iterator[str]:
    """Name the commands that show more of the results in ``folder``."""
    yield f"See:     headroles report {folder}  (all tables and pictures, in one HTML file)"
    answers = find_answers(table)
    best: Iterator[Arc | Found] = chain(answers.arcs, answers.found)
    if first := next(best, None):
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
    chosen = record.chosen_dtype
    dtype = f", in {chosen.dtype} by auto" if chosen is not None else ""
    yield (
        f"{record.model.name} ({record.model.family}, {record.layers} layers x "
        f"{record.heads} heads{dtype}) over {over}:"
    )
    yield (
        f"{corpus.sentences} sentences, {corpus.documents} {documents}, "
        f"{record.examples} examples. {named}"
    )


def _about_gaps(table: RoleTable) -> Iterator[str]:
    """Report where scoring stopped, skipped examples, and roles that no example has."""
    if stopped := table.record.stopped:
        of = "this corpus" if stopped.until_of == CORPUS else "all text like this"
        yield (
            f"Scoring stopped after {stopped.sentences} of {stopped.of_sentences} sentences, "
            f"with {stopped.decided:.1%} decided for {of}."
        )
    half = table.record.half_precision
    if half is not None and half.rescored:
        yield (
            f"{half.dtype} could have changed {len(half.rescored)} of {len(table)} answers; their "
            f"scores are from a second pass in float32, which changed {half.changed}."
        )
    for reason, count in table.record.skipped.items():
        yield f"Skipped {reason}: {count}."
    by_reason: dict[str, list[str]] = {}
    for role in table.tests.left_out:
        by_reason.setdefault(table.tests.why_left_out.get(role, ""), []).append(in_words(role))
    for reason, roles in by_reason.items():
        yield f"No example has {listed(roles)}" + (f": {reason}." if reason else ".")


def about_level(
    tests: RecordedLevel, score_name: str, has_rivals: bool, roles: Iterable[str]
) -> str:
    """State the threshold for one of the roles, and the error rate of answers."""
    score, limit = SCORES[score_name], f"{tests.threshold:g}"
    if score.of_first_choice:
        over = f"a share of first choices above {limit}"
        if has_rivals:
            over += f",\nof arcs by {tests.offset_margin:g} more than the best fixed offset has"
    else:
        unit = "times uniform attention" if score.name == BIAS.name else f"in {score.name} score"
        if any(is_times_entropy(role, score_name) for role in roles):
            unit = "times uniform, x entropy if marked"
        over = f"a mean above {limit} {unit}"
    return f"A role is shown by {over} ({error_rate(tests)})."


def error_rate(tests: RecordedLevel) -> str:
    """State the error rate of answers."""
    level = f"{tests.alpha:.2g}"
    if tests.correction == "none":
        return f"each test at {level}, uncorrected"
    of = "" if tests.family == "all" else ", for each role"
    if tests.correction.startswith("fdr"):
        return f"false discovery rate {level}{of}"
    return f"family-wise error rate {level}{of}"


def _heads_grid(table: RoleTable, answers: RoleAnswers) -> Grid:
    """Return a row for each role that heads have: their number, names, and the strongest."""
    title = f"What the {answers.n_heads} heads attend to"
    rows = [
        (
            in_words_of_score(one.role, table.record.score),
            str(len(one.heads)),
            named_heads(one.heads, table.record.layers),
            head_name(one.head),
            in_units(one.mean, table.record.score),
        )
        for one in answers.found[:_MOST_ROLES]
    ]
    if answers.arcs or answers.only_position:
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
        first, score = answers.not_found[:_MOST_MISSING], table.record.score
        named = "; ".join(in_words_of_score(role, score) for role in first)
        others = len(answers.not_found[_MOST_MISSING:])
        yield f"No head attends to: {named}" + (f"; and {others} more." if others else ".")
    if left:
        yield f"Heads have {left} more roles: {SEE_FULL}"


def _arcs(table: RoleTable, answers: RoleAnswers) -> Iterator[Shown]:
    """Tabulate the best head of each relation, and name heads that may only have a distance."""
    if answers.arcs:
        shown = answers.arcs[:_MOST_ARCS]
        of = f"the {len(shown)} best of {len(answers.arcs)} relations"
        kind = "Heads of pairs of words" if _has_own_pairs(table) else "Syntactic heads"
        columns = (f"{kind} ({of})", "head", unit_of(table.record.score))
        rows = (
            (
                in_words(one.role),
                head_name(one.head),
                in_units(one.mean, table.record.score),
                *[in_units(one.beyond, table.record.score)] * answers.controls_distance,
            )
            for one in shown
        )
        yield Grid((*columns, *["beyond distance"] * answers.controls_distance), tuple(rows))
    if not answers.controls_distance and (answers.arcs or answers.only_position):
        scored = [one.id for one in table.record.roles]
        yield (
            "These rows leave out how far heads go beyond distance: some may only look at a place."
            if any(map(is_contrast, scored))
            else NOT_CONTROLLED
        )
    yield from _only_positional(table, answers)


def _only_positional(table: RoleTable, answers: RoleAnswers) -> Iterator[str]:
    """Name the head with the largest mean that may only look at a distance."""
    if not answers.only_position:
        return
    first = max(answers.only_position, key=lambda one: one.mean)
    yield (
        f"Not counted: {head_name(first.head)} ({in_words(first.role)} "
        f"{in_units(first.mean, table.record.score)}), which may give as much to any word at that "
        "distance."
    )


def _has_own_pairs(table: RoleTable) -> bool:
    """Tell whether a user's own pairs of words are among the roles that have contrasts."""
    return not all(map(is_arc, arcs_among(table.roles)))


def is_times_entropy(role: str, score: str) -> bool:
    """Tell whether a score of a role is multiplied by entropy: the bias score of ``block``."""
    return role == "block" and score == BIAS.name


def in_words_of_score(role: str, score: str) -> str:
    """Name a role for people, with the factor that its score has beside attention."""
    return in_words(role) + " (x entropy)" * is_times_entropy(role, score)


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


def _about_tests(table: RoleTable) -> str:
    tests = table.tests
    is_uneven = tests.effective_clusters < 0.9 * tests.n_clusters
    uneven = f" (effective number {tests.effective_clusters:.0f})" * bool(is_uneven)
    rough = "\nintervals assume a fixed number of examples, and are rough"
    return (
        f"{TESTS[tests.test].words} of {describe_units(tests)}{uneven}, each direction at alpha\n"
        f"{describe_interval(tests.interval, tests.alpha)}{rough * table.record.stopped_early}"
    )


def _about_limit(table: RoleTable) -> str:
    tests, score = table.tests, table.record.score
    limit = describe_limit(tests, any(map(is_contrast, table.roles)), bool(table.rivals))
    return (
        f"heads per layer with mean {'' if score == BIAS.name else f'{score} '}score > {limit} "
        f"(alpha {tests.alpha:g}, {describe_correction(tests.correction, tests.family)})"
    )


def describe_units(tests: RoleTests) -> str:
    """Name the units of the tests of a role table, and count them."""
    if tests.clustered_by == "none":
        return f"{tests.n_clusters} independent examples"
    return f"examples clustered by {tests.n_clusters} documents"


def describe_limit(asked: RecordedLevel, has_contrasts: bool, has_rivals: bool) -> str:
    """Name the thresholds of means; with rivals, roles of arcs are compared with fixed offsets."""
    contrasts = "; of contrasts > 0" * has_contrasts
    beyond = f"; of arcs > best fixed offset + {asked.offset_margin:g}" * has_rivals
    return f"{asked.threshold:g}{contrasts}{beyond}"


def _is_certified(table: RoleTable) -> bool:
    """Tell whether there are certified answers: the scores have bounds."""
    return bool((table.frame["certified"] != "").any())


def _about_certified(table: RoleTable) -> str:
    """Count answers that hold for any distribution of scores, and name contradictions."""
    given, certified = table.frame["answer"], table.frame["certified"]
    counts = ", ".join(
        f"{int((certified == answer).sum())} {answer} "
        f"({int(((certified == answer) & (given == answer)).sum())} of them answered so above)"
        for answer in (YES, NO)
    )
    against = table.frame[(given == YES) & (certified == NO) | (given == NO) & (certified == YES)]
    named = listed([f"{row.layer}-{row.head} {row.role}" for row in against.itertuples()], 8)
    return (
        f"certified (by betting and e-BH, for any distribution of scores): {counts}"
        + f"; {len(against)} against the answer given: {named}" * bool(len(against))
        + "\nthe certified test uses a mean that gives long examples, which could score farthest "
        "from the threshold, less weight (certified_mean)\n"
    )


def _answers_grid(table: RoleTable) -> Grid:
    """Return for each role the number of heads by layer and by answer."""
    per_layer, answers = table.counts().drop(columns="total"), table.answers()
    if not answers["untestable"].any():
        answers = answers.drop(columns="untestable")
    certified = table.certified()[[YES, NO] if _is_certified(table) else []]
    certified = certified.add_prefix("certified ")
    sizes = {"examples": table.frame.groupby("role")["n"].max()}
    if table.tests.clustered_by != "none":
        sizes["clusters"] = table.frame.groupby("role")["n_clusters"].max()
    rows = [
        (
            role,
            *(str(column.loc[role]) for column in sizes.values()),
            *(str(n) if n else "." for n in per_layer.loc[role]),
            *map(str, answers.loc[role]),
            *map(str, certified.loc[role]),
        )
        for role in table.roles
    ]
    columns = (
        "role",
        *sizes,
        *map(str, per_layer.columns),
        *answers.columns,
        *certified.columns,
    )
    return Grid(columns, tuple(rows), bold=YES)


def _strongest_grid(table: RoleTable) -> Grid:
    assigned, digits = table.assigned, _digits(table.record.score)
    rows = []
    for role in table.roles:
        strongest = assigned[assigned["role"] == role].head(_STRONGEST)
        heads = [
            f"{layer}-{head} {mean:.{digits}f}"
            for layer, head, mean in zip(
                strongest["layer"], strongest["head"], strongest["mean"], strict=True
            )
        ]
        rows.append((role, "  ".join(heads)))
    return Grid(("role", "heads"), tuple(rows), left=frozenset(["heads"]))


def _digits(score: str) -> int:
    """Return the number of decimals for means on the scale of the score."""
    return 1 if SCORES[score].threshold >= 1 else 2
