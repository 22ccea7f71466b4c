"""The page of a role table: which heads have which roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles import storage
from headroles.errors import CorpusError, HeadRolesError
from headroles.report.beyond_position import beyond_position, beyond_position_section
from headroles.report.maps import draw_heads, draw_maps, strongest_roles
from headroles.report.page import Group, Page, Picture, Section, Table
from headroles.report.rows import rows_of, with_interval, without_contrasts
from headroles.report.run_facts import made_how
from headroles.report.style import figure_of
from headroles.roles import is_contrast, is_own
from headroles.scoring import HeadScores, about_length, model_name
from headroles.studies.examples import Examples, examples_of_heads
from headroles.studies.options import MEDIAN, ExampleOptions
from headroles.studies.rereading import not_imported
from headroles.studies.role_answers import count_heads, strongest_rows
from headroles.studies.role_summary import ABOUT_WHAT, contradicted
from headroles.studies.role_table import RoleTable
from headroles.testing import NO, UNDECIDED, UNTESTABLE, YES
from headroles.wording import listed

if TYPE_CHECKING:
    pass

N_HEADS = 12
_SENTENCES = (ExampleOptions(n=3), ExampleOptions(n=2, which=MEDIAN))


def role_page(folder: Path, imported: Sequence[str] = ()) -> Page:
    """The page of the role table in a folder, with sentences if scores and corpus are there.

    ``imported`` are the roles of one's own that may be imported to find theirs.

    Raises StorageError for results that cannot be read.
    """
    table = RoleTable.load(folder)
    more = rows_of(table.beyond_position())
    sections = [_pictures(table), _roles(table)]
    if beyond := beyond_position_section(more):
        sections.append(beyond)
    if table.frame["assigned"].any():
        sections.append(_strongest(folder, table, imported))
    if cautions := tuple(_cautions(table)):
        sections.append(Section("What to be careful about", cautions=cautions))
    return Page(
        f"Which attention heads of {model_name(table.provenance)} have which roles?",
        tuple(_answer(table, more)),
        (*sections, made_how(table.provenance)),
    )


def _answer(table: RoleTable, more: list[dict[str, Any]]) -> Iterator[str]:
    frame, assigned = table.frame, table.assigned
    n_heads = count_heads(table)
    if assigned.empty:
        yield f"None of the {n_heads} heads was shown to have any of the {len(table.roles)} roles."
        return
    n_roles = without_contrasts(frame)["role"].nunique()
    assigned = without_contrasts(assigned)
    having = len(assigned[["layer", "head"]].drop_duplicates())
    counts = assigned["role"].value_counts()
    most = f"; most have {counts.index[0]} ({counts.iloc[0]})" if having else ""
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
    yield beyond_position(table, more) or _strongest_of_all(table)


def _strongest_of_all(table: RoleTable) -> str:
    top = _best(table, table.roles)[0]
    return (
        f"The largest mean score is that of head {top['layer']}-{top['head']} for {top['role']}: "
        f"{with_interval(top)}, where the threshold is {top['threshold']:.3g}."
    )


def _pictures(table: RoleTable) -> Section:
    shown = strongest_roles(table)
    which = (
        "all roles"
        if len(shown) == len(table.roles)
        else "roles that most heads have, contrasts last"
    )
    return Section(
        "All heads",
        pictures=(
            Picture(
                (figure_of(draw_heads(table)),),
                "How many roles each head has, by layer and head; contrasts are not counted.",
            ),
            Picture(
                tuple(draw_maps(table, shown)),
                f"Mean scores for {which}. Each map has its own scale. A full circle: the head "
                "has the role, certified; an open one: it has it; ?: undecided; a cross: "
                "untestable; no mark: it does not have it.",
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
            role,
            str(answers.loc[role, YES]),
            str(certified.loc[role, YES]),
            *(str(answers.loc[role, name]) for name in shown),
            _named(best[role]) if role in best else "",
            with_interval(best[role]) if role in best else "",
            *map(str, sizes.loc[role]),
            words.get(role, ""),
        )
        for role in table.roles
    )
    named = ("without" if name == NO else name for name in shown)
    names = ("role", "heads with it", "certified", *named)
    others = ("strongest", "mean and interval", "examples", "clusters", "looks at")
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


def _strongest(folder: Path, table: RoleTable, imported: Sequence[str]) -> Section:
    rows = _best(table, strongest_roles(table, N_HEADS))
    words = _words(table)
    found, why_not = _sentences(folder, rows, imported)
    groups = tuple(
        Group(
            f"{row['role']}: head {_named(row)}",
            f"Looks at {words.get(row['role'], row['role'])}. Mean {with_interval(row)}, "
            f"threshold {row['threshold']:.3g}, {row['n']} examples.",
            tuple(_marked(own)),
        )
        for row, own in zip(rows, found, strict=True)
    )
    texts = [
        "The strongest head of each role that most heads have (of arcs beyond distance), with the "
        "examples in which its score is largest, and typical ones, nearest the median of its "
        "scores; the words that the role looks at are marked."
    ]
    return Section("Strongest heads", texts=(*texts, *why_not), groups=groups)


def _sentences(
    folder: Path, rows: list[dict[str, Any]], imported: Sequence[str]
) -> tuple[list[Sequence[Examples]], tuple[str, ...]]:
    """Examples for each of the rows, largest and typical, or why there are none."""
    closed = [row["role"] for row in rows if not _may_be_read(row["role"], imported)]
    asked = [
        ((row["layer"], row["head"]), row["role"], replace(options, roles=imported or None))
        for row in rows
        if row["role"] not in closed
        for options in _SENTENCES
    ]
    try:
        if HeadScores.kind not in storage.kinds_in(folder):
            raise CorpusError("the scores are not in the folder")
        found = examples_of_heads(HeadScores.load(folder), asked)
    except HeadRolesError as error:
        return [()] * len(rows), (f"The sentences cannot be shown: {error}.",)
    left = iter(found)
    why_not = dict.fromkeys(
        f"Sentences of {role} are not shown: {not_imported(role, '--roles of headroles report')}."
        for role in closed
    )
    return [
        () if row["role"] in closed else tuple(islice(left, len(_SENTENCES))) for row in rows
    ], tuple(why_not)


def _may_be_read(role: str, imported: Sequence[str]) -> bool:
    """Whether the sieve of a role is made without code that the user did not name."""
    return not is_own(role) or any(role in (name, f"{name}:back") for name in imported)


def _marked(found: Sequence[Examples]) -> Iterator[tuple[str, tuple[tuple[bool, str], ...]]]:
    """Each example as its score and parts, of which some are of the sieve."""
    for examples in found:
        typical = ", typical" if examples.provenance["examples_of"]["which"] == MEDIAN else ""
        for score, one in zip(examples.frame["score"], examples.marked, strict=True):
            yield f"{score:.3g}{typical}", one.parts


def _cautions(table: RoleTable) -> Iterator[str]:
    yield from table.warnings
    skipped = table.provenance.get("skipped") or {}
    for reason, count in skipped.items():
        yield f"{count} examples were skipped: {reason}."
    if told := about_length(table.provenance):
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
    for reason, count in why.value_counts().items():
        yield f"{count} pairs of head and role are untestable: {reason}."
    if left_out := table.tests["left_out"]:
        yield f"No example has the roles {', '.join(left_out)}; they are left out."


def _best(table: RoleTable, roles: Sequence[str]) -> list[dict[str, Any]]:
    """The strongest head with each of the roles that any head has, the largest mean first."""
    return rows_of(strongest_rows(table, roles))


def _named(row: dict[str, Any]) -> str:
    only = " (not shown beyond distance)" if row["is_only_position"] else ""
    return f"{row['layer']}-{row['head']}{only}"


def _words(table: RoleTable) -> dict[str, str]:
    return {one["id"]: one.get("words", "") for one in table.provenance.get("roles", ())}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
