"""Page of a role table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.citing import how_to_report
from headroles.drawing.page import Group, Page, Picture, Section, Table
from headroles.drawing.plain_page import made_how
from headroles.drawing.style import figure_of
from headroles.roles import in_words, is_contrast
from headroles.scoring.run_notes import about_length
from headroles.studies.classification.answers import RoleAnswers, find_answers, strongest_rows
from headroles.studies.classification.figures import (
    draw_heads,
    draw_maps,
    strongest_roles,
    without_contrasts,
)
from headroles.studies.classification.map import asked_of_heads, role_map
from headroles.studies.classification.role_table import RoleTable
from headroles.studies.classification.summary import ABOUT_WHAT, contradicted
from headroles.studies.inspection.options import LARGEST, ExampleOptions
from headroles.studies.inspection.quoting import Asked, Sentences, Sources, quote
from headroles.testing.answers import NO, UNDECIDED, UNTESTABLE, YES
from headroles.wording import listed

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.classification.answers import RoleAnswers


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows by the names of their columns."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def with_interval(
    row: Mapping[Any, Any], value: str = "mean", low: str = "ci_low", high: str = "ci_high"
) -> str:
    """A value with its interval in brackets."""
    return f"{row[value]:.3g} ({row[low]:.3g} to {row[high]:.3g})"


_MOST_ROWS = 30


def beyond_position(answers: RoleAnswers) -> Iterator[str]:
    """Say how many heads follow arcs, which goes farthest, and which only looks at a distance."""
    if answers.arcs:
        first = answers.arcs[0]
        best = f"head {_name(first.head)}, {in_words(first.role)}"
        if answers.controls_distance:
            yield (
                f"{len(answers.syntactic)} of the {answers.n_heads} heads give syntactic partners "
                f"more than distance explains. Farthest goes {best}: {first.beyond:.3g} of its "
                f"mean of {first.mean:.3g} is beyond distance."
            )
        else:
            yield (
                f"{len(answers.syntactic)} of the {answers.n_heads} heads attend to syntactic "
                f"partners. The largest mean, {first.mean:.3g}, is that of {best}. Distance was "
                "not controlled: some of these heads may only look at a fixed place."
            )
    if answers.only_position:
        most = max(answers.only_position, key=lambda one: one.mean)
        yield (
            f"Not counted: head {_name(most.head)} ({in_words(most.role)}, mean {most.mean:.3g}), "
            "which may give as much to any word at that distance."
        )


def beyond_position_section(more: list[dict[str, Any]]) -> Iterator[Section]:
    """Yield these heads with their roles, and how much of their means is beyond distance.

    ``more`` are the rows of ``RoleTable.beyond_position``.
    """
    rows = tuple(
        (
            f"{row['layer']}-{row['head']}",
            in_words(row["role"]),
            with_interval(row),
            _more(row),
            row["certified"] or "-",
            row["note"],
        )
        for row in more
    )
    if not rows:
        return
    left = len(rows) - _MOST_ROWS
    first = f" The first {_MOST_ROWS} of {len(rows)}." if left > 0 else ""
    caption = (
        "Heads that have a role of arcs and give more along them than to other words at the same "
        f"distance in the same sentence; those first of which that is most.{first} All, as a file: "
        "headroles export DIR --view beyond_position"
    )
    names = ("head", "role", "mean and interval", "of it beyond distance", "certified", "note")
    table = Table(caption, names, rows[:_MOST_ROWS])
    yield Section("Heads that follow syntax, not distance", tables=(table,))


def _more(row: dict[str, Any]) -> str:
    return with_interval(row, "beyond", "beyond_low", "beyond_high")


def _name(head: tuple[int, int]) -> str:
    return f"{head[0]}-{head[1]}"


N_HEADS = 12
_SENTENCES = (ExampleOptions(n=3, which=LARGEST), ExampleOptions(n=2))
_ARCS = (
    "Words that the role looks at are marked; below a sentence, b ← a 0.62 says that word a gives "
    "word b 0.62 of its attention, in bold where the role has that arc."
)


def role_page(folder: Path, imported: Sequence[str] = (), model: str | None = None) -> Page:
    """The page of the role table in a folder, with sentences if scores and corpus are there.

    ``imported`` are the roles of one's own that may be imported to find theirs, ``model`` the one
    that was scored if it is not where it was.

    Raises StorageError for results that cannot be read.
    """
    table = RoleTable.load(folder)
    answers = find_answers(table)
    strongest = _best(table, strongest_roles(table, N_HEADS))
    asked = [
        ((row["layer"], row["head"]), row["role"], options)
        for row in strongest
        for options in _SENTENCES
    ]
    of_heads = list(asked_of_heads(table))
    found, why_not = quote(Sources(folder, tuple(imported), model), [*asked, *of_heads])
    sections = [
        _map(table, answers, of_heads, found[len(asked) :], why_not),
        _roles(table),
        *beyond_position_section(rows_of(table.beyond_position())),
    ]
    if strongest:
        sections.append(_strongest(table, strongest, found[: len(asked)], why_not))
    if cautions := tuple(_cautions(table)):
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        f"Which attention heads of {table.record.model.name} have which roles?",
        tuple(_answer(table, answers)),
        (*sections, how_to_report(table), made_how(table.record)),
    )


def _answer(table: RoleTable, answers: RoleAnswers) -> Iterator[str]:
    frame, assigned = table.frame, table.assigned
    n_heads = answers.n_heads
    if assigned.empty:
        yield f"None of the {n_heads} heads was shown to have any of the {len(table.roles)} roles."
        return
    n_roles = without_contrasts(frame)["role"].nunique()
    assigned = without_contrasts(assigned)
    having = len(assigned[["layer", "head"]].drop_duplicates())
    counts = assigned["role"].value_counts()
    most = f"; most attend to {in_words(counts.index[0])} ({counts.iloc[0]})" if having else ""
    certified = int((assigned["certified"] == YES).sum())
    sure = (
        f". {certified} of all {len(assigned)} roles of heads are certified, whatever the "
        "distribution of scores"
        if having and (frame["certified"] != "").any()
        else ""
    )
    yield (
        f"{having} of the {n_heads} heads have at least one of the {n_roles} roles "
        f"tested{most}{sure}."
    )
    yield from list(beyond_position(answers)) or [_strongest_of_all(table)]


def _strongest_of_all(table: RoleTable) -> str:
    top = _best(table, table.roles)[0]
    return (
        f"The largest mean score is that of head {top['layer']}-{top['head']} for "
        f"{in_words(top['role'])}: {with_interval(top)}, where the threshold is "
        f"{top['threshold']:.3g}."
    )


def _map(
    table: RoleTable,
    answers: RoleAnswers,
    asked: Sequence[Asked],
    found: Sequence[Sentences],
    why_not: tuple[str, ...],
) -> Section:
    shown = strongest_roles(table)
    which = (
        "all roles"
        if len(shown) == len(table.roles)
        else "roles that most heads have, contrasts last"
    )
    return Section(
        "All heads",
        texts=why_not,
        head_map=role_map(table, answers, asked, found),
        pictures=(
            Picture(
                (figure_of(draw_heads(table)),),
                "How many roles each head has, by layer and head; contrasts are not counted.",
            ),
            Picture(
                tuple(draw_maps(table, shown)),
                f"Mean scores for {which}. Each map has its own scale. Full circle: yes, "
                "certified. Open circle: yes. ?: undecided. Cross: untestable. No mark: no.",
            ),
        ),
    )


def _roles(table: RoleTable) -> Section:
    words = _words(table)
    answers, certified = table.answers(), table.certified()
    best = {row["role"]: row for row in _best(table, table.roles)}
    sizes = table.frame.groupby("role")[["n", "n_clusters"]].max()
    # A column of a table this wide has to say something.
    shown = [name for name in (NO, UNDECIDED, UNTESTABLE) if answers[name].any()]
    rows = tuple(
        (
            _called(role, words),
            str(answers.loc[role, YES]),
            str(certified.loc[role, YES]),
            *(str(answers.loc[role, name]) for name in shown),
            _named(best[role]) if role in best else "",
            with_interval(best[role]) if role in best else "",
            *map(str, sizes.loc[role]),
            role,
        )
        for role in table.roles
    )
    named = ("without" if name == NO else name for name in shown)
    names = ("role", "heads with it", "certified", *named)
    others = ("strongest", "mean and interval", "examples", "clusters", "id")
    caption = (
        "Each role, how many heads have it, and the strongest of them: of arcs the one that gives "
        f"most beyond distance. {_limits(table)}"
    )
    return Section("Roles", tables=(Table(caption, names + others, rows),))


def _limits(table: RoleTable) -> str:
    """What means are compared with, for people."""
    limits = table.frame.groupby("role", sort=False)["threshold"].first()
    contrasts = np.array([is_contrast(str(role)) for role in limits.index], dtype=bool)
    told = [
        f"{what} {' to '.join(dict.fromkeys((f'{own.min():.3g}', f'{own.max():.3g}')))}"
        for what, own in (("of roles", limits[~contrasts]), ("of contrasts", limits[contrasts]))
        if len(own)
    ]
    return f"Thresholds: {', '.join(told)}."


def _strongest(
    table: RoleTable,
    rows: list[dict[str, Any]],
    found: Sequence[Sentences],
    why_not: tuple[str, ...],
) -> Section:
    words, several = _words(table), len(_SENTENCES)
    groups = tuple(
        Group(
            f"{_called(row['role'], words)}: head {_named(row)}",
            f"Mean {with_interval(row)}, threshold {row['threshold']:.3g}, {row['n']} examples "
            f"({row['role']}).",
            tuple(one for own in found[k * several : (k + 1) * several] for one in own),
        )
        for k, row in enumerate(rows)
    )
    text = (
        "The strongest head of each role that most heads have (of arcs beyond distance), with the "
        "examples in which its score is largest, and typical ones, nearest the median of its "
        f"scores. {_ARCS}"
    )
    return Section("Strongest heads", texts=(text, *why_not), groups=groups)


def _cautions(table: RoleTable) -> Iterator[str]:
    yield from table.warnings
    for reason, count in table.record.skipped.items():
        yield f"{count} examples were skipped: {reason}."
    if told := about_length(table.record):
        yield _sentence(told)
    if not (rows := contradicted(table)).empty:
        named = [
            f"{row['layer']}-{row['head']} {row['role']} ({row['answer']}, certified "
            f"{row['certified']})"
            for row in rows_of(rows)
        ]
        yield (
            f"{_sentence(ABOUT_WHAT)} Where the two disagree, the role rests on those examples: "
            f"{listed(named, 8)}."
        )
    answers = table.frame["answer"]
    if undecided := int((answers == UNDECIDED).sum()):
        yield (
            f"{undecided} pairs of head and role are undecided: the data show neither that the "
            "head has the role nor that it has not."
        )
    why = table.frame["note"][answers == UNTESTABLE].str.removeprefix(f"{UNTESTABLE}: ")
    for cause, n in why.value_counts().items():
        yield f"{n} pairs of head and role are untestable: {cause}."
    if left_out := table.tests.left_out:
        yield f"No example has the roles {', '.join(left_out)}; they are left out."


def _best(table: RoleTable, roles: Sequence[str]) -> list[dict[str, Any]]:
    """The strongest head with each of the roles that any head has, the largest mean first."""
    return rows_of(strongest_rows(table, roles))


def _named(row: dict[str, Any]) -> str:
    only = " (not shown beyond distance)" if row["is_only_position"] else ""
    return f"{row['layer']}-{row['head']}{only}"


def _called(role: str, words: dict[str, str]) -> str:
    """A role in words, those of its author if no others are known."""
    told = in_words(role)
    return words.get(role) or role if told == role else told


def _words(table: RoleTable) -> dict[str, str]:
    return {role.id: role.words for role in table.record.roles}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
