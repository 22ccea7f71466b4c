"""Page of a role table: what was found, a map of all heads, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headroles.drawing.page import HeadMap, Page, Picture, Quoted, Section, Sentences, plain_page
from headroles.drawing.style import role_label
from headroles.roles import SCORES, in_words, is_arc, is_own
from headroles.studies.classification.figures import (
    CERTIFIED,
    draw_heads,
    draw_roles,
    shown_answers,
)
from headroles.studies.classification.role_table import (
    NOT_CONTROLLED,
    RoleTable,
    by_strength,
    digits,
    heads_in,
    pairs_among,
    split_roles,
    unit_of,
    with_interval,
)
from headroles.studies.inspection.again import LARGEST, ExampleOptions, Wanted
from headroles.studies.inspection.examples import quote
from headroles.studies.options import ReportOptions
from headroles.testing.answers import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name

_SIGNS = {CERTIFIED: "●", YES: "○", POSITIONAL: "△", UNDECIDED: "?", UNTESTABLE: "✕", NO: ""}
LEGEND = (
    ("●", "yes, certified", "full"),
    ("○", "yes", "full"),
    ("△", "positional: as much to any word that far away", "hatched"),
    ("?", "undecided", "framed"),
    ("✕", "untestable", "missing"),
    ("", "no", "pale"),
)
_QUOTED = (ExampleOptions(n=1, which=LARGEST), ExampleOptions(n=2))
_ROLES_OF_HEAD = 2  # of arcs, for which a head has sentences
_MOST_QUOTED = 500_000
"""Characters of all sentences of a page."""


def role_page(table: RoleTable, folder: Path, options: ReportOptions) -> Page:
    """Make the page of a role table, with sentences if scores and corpus are there.

    Args:
        table: the table.
        folder: the folder of the table and its scores.
        options: the model, functions that may be imported, and a sentence of the user's own.
    """
    pictures = (
        Picture(draw_heads(table), "How many roles each head has, by layer and head."),
        Picture(draw_roles(table), "Mean scores for each role, each map on its own scale."),
    )
    for ax in pictures[1].figure.axes:  # the cells of large models would make a large file
        ax.collections[0].set_rasterized(True)
    return plain_page(
        table,
        f"Which attention heads of {table.scored.model.name} have which roles?",
        pictures,
        role_map(table),
        tuple(_findings(table)),
        [_sentences(table, folder, options)] if table.frame["assigned"].any() else [],
    )


def _findings(table: RoleTable) -> Iterator[str]:
    """Say what was found: of pairs of words, of other roles, and under controls."""
    has, pairs, score = table.strongest(), pairs_among(table.frame), table.facts["score"]
    others, single = split_roles(table.roles, pairs)
    arcs = has[has.index.isin(single)]
    if pairs:
        rows = table.frame[table.frame["assigned"] & table.frame["role"].isin(pairs)]
        partners = "syntactic partners" if all(map(is_arc, pairs)) else "the other word of pairs"
        beyond = table.frame["beyond_distance"].notna().any()
        found = f"{len(heads_in(rows))} of the {table.n_heads} heads attend to {partners}"
        found += ", more than distance explains" * bool(beyond)
        for best in arcs.reset_index().head(1).to_dict("records"):
            found += (
                f". The clearest is {head_name((best['layer'], best['head']))}, "
                f"{role_label(best['role'])}: {best['mean']:{digits(score)}} "
                f"{unit_of(score).replace('x uniform', 'times uniform attention')}"
            )
            if beyond:
                found += f", {best['beyond_distance']:{digits(score)}} of it beyond distance"
        yield f"{found}."
    counts: Any = has["heads"].map(len)
    rest = [f"{counts[role]} to {in_words(role)}" for role in others if role in has.index]
    yield f"Heads attend also: {', '.join(rest)}." if rest else "No head was shown another role."
    yield from table.about_controls()
    if pairs and not beyond:
        yield NOT_CONTROLLED


def _sentences(table: RoleTable, folder: Path, options: ReportOptions) -> Section:
    """Return the section with sentences of every head, for its strongest roles."""
    rows, why_not = list(_strongest_of_heads(table)), dict[str, None]()
    of_rows: list[list[Quoted]] = [[] for _ in rows]
    choices = [(options.as_group(ExampleOptions),)] if options.is_given else []
    for some in (*choices, _QUOTED):
        wanted: list[Wanted] = [
            ((row["layer"], row["head"]), row["role"], one) for row in rows for one in some
        ]
        found, reasons = quote(folder, wanted, tuple(options.roles or ()), options.model)
        why_not |= dict.fromkeys(reasons)
        for k, several in enumerate(found):
            of_rows[k // len(some)] += several
    parts: list[str | Sentences] = [
        f"For each head and its strongest roles {'your sentence, ' * options.is_given}the example "
        "with its largest score, and two typical ones, nearest the median. The words that the role "
        "looks at are marked; b ← a 0.62 means that word a gives word b 0.62 of its attention, "
        "darker where the role has that arc.",
        *why_not,
    ]
    left = _MOST_QUOTED
    for row, quoted in zip(rows, of_rows, strict=True):
        left -= sum(len(one.data) + 30 * len(one.words) for one in quoted)
        if quoted and left > 0:
            head = head_name((row["layer"], row["head"]))
            title = f"{role_label(row['role'])}: head {head}"
            text = f"Mean {with_interval(row)}, threshold {row['threshold']:.3g}."
            parts.append(Sentences(title, text, head, tuple(quoted)))
    return Section("Sentences", tuple(parts))


def _strongest_of_heads(table: RoleTable) -> Iterator[dict[Any, Any]]:
    """Yield the rows of every head: of its roles farthest beyond distance, or of its strongest."""
    ranked, pairs = by_strength(table.frame[table.frame["assigned"]]), pairs_among(table.frame)
    _, single = split_roles(table.roles, pairs)
    of_arcs = ranked[ranked["role"].isin(single)].groupby(["layer", "head"]).head(_ROLES_OF_HEAD)
    yield from of_arcs.to_dict("records")
    known = set(heads_in(of_arcs))
    rows = ranked[~ranked["role"].isin(pairs)].drop_duplicates(["layer", "head"])
    for row in rows.to_dict("records"):
        if (row["layer"], row["head"]) not in known:
            yield row


def role_map(table: RoleTable) -> HeadMap:
    """Return the map of a table.

    Roles of pairs that heads have come first, farthest beyond distance first, then other roles by
    the number of their heads.
    """
    _, single = split_roles(table.roles, pairs_among(table.frame))
    first = [str(role) for role in table.strongest().index if role in single]
    counts = table.frame.groupby("role", sort=False)["assigned"].sum().drop(first)
    order = [*first, *counts.sort_values(ascending=False, kind="stable").index]
    score = table.facts["score"]
    unit = unit_of(score).replace("x uniform", "times uniform attention")
    frame = table.frame.sort_values("role", key=lambda role: role.map(order.index), kind="stable")
    frame = frame.assign(
        view=frame["role"],
        words=frame["role"].map(role_label),
        group=frame["role"].map(group_of),
        unit=unit,
        line=frame.groupby("role")["threshold"].transform("median"),
        value=frame["mean"],
        mark=shown_answers(frame).map(_SIGNS),
    )
    facts = {
        "interval": ("ci_low", "ci_high"),
        "beyond distance": ("beyond_distance",),
        "answer": ("answer",),
        "certified": ("certified",),
    }
    title = "Mean scores of heads for a role: layers are rows, heads are columns"
    return HeadMap(title, "mean", frame, facts, LEGEND, SCORES[score].uniform)


def group_of(role: str) -> str:
    """Return the heading of a role."""
    is_of_words = is_arc(role) or is_own(role)
    return "words and their partners" if is_of_words else "places and special tokens"
