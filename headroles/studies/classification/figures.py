"""Figures, map and page of role tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headroles.drawing.page import HeadMap, Page, Picture, Section, Sentences, plain_page
from headroles.drawing.style import (
    MOST_LABELS,
    SCALE,
    draw_grid,
    figure_of,
    grid_of,
    inks,
    legend_below,
    new_map,
    role_label,
    score_label,
    set_title,
    several_axes,
    sizes_in,
    write_numbers,
)
from headroles.errors import UsageError
from headroles.results.result import AnyResult
from headroles.roles import SCORES
from headroles.studies.classification.ladder import Count, heads_in
from headroles.studies.classification.role_table import (
    NOT_CONTROLLED,
    RoleTable,
    about_controls,
    by_strength,
    digits,
    unit_of,
)
from headroles.studies.inspection.examples import quote
from headroles.studies.inspection.origin import (
    LARGEST,
    ExampleOptions,
    OriginOptions,
    ReportOptions,
    Wanted,
)
from headroles.testing.evidence import NO, POSITIONAL, UNDECIDED, UNTESTABLE, YES
from headroles.wording import head_name, numbered

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

CERTIFIED = "yes, certified"
"""The kind of "yes" that is marked apart."""
MOST_ROLES = 16
"""Number of roles in a figure of all roles, by default."""
PALE = 0.3
"""Strength of the colour of heads without the role."""
_HATCH = "////"
_CIRCLE = 0.27 * np.stack([np.cos(turn := np.linspace(0, 2 * np.pi, 25)), np.sin(turn)], axis=1)
_SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
_CROSS = np.array([[0, 0], [1, 1], [0, 0], [1, -1], [0, 0], [-1, -1], [0, 0], [-1, 1]]) / 4
_MARKS: dict[str, tuple[Any, dict[str, Any]]] = {
    CERTIFIED: (_CIRCLE, {}),
    YES: (1.15 * _CIRCLE, {}),
    POSITIONAL: (_SQUARE, {"hatch": _HATCH, "linewidth": 0, "edgecolor": "0.35"}),
    UNDECIDED: (0.88 * _SQUARE, {"edgecolor": "0.3"}),
    UNTESTABLE: (_CROSS, {}),
}
"""Outline, in cells, and look of the mark of each answer."""
LEGEND = {
    CERTIFIED: ("●", CERTIFIED, "full"),
    YES: ("○", YES, "full"),
    POSITIONAL: ("△", "positional: place may explain the attention", "hatched"),
    UNDECIDED: ("?", UNDECIDED, "framed"),
    UNTESTABLE: ("✕", UNTESTABLE, "missing"),
    NO: ("", NO, "pale"),
}
"""Sign, meaning and look of each answer in the map of a page."""
_QUOTED = (ExampleOptions(n=1, which=LARGEST), ExampleOptions(n=2))
_ROLES_OF_HEAD = 2  # of arcs, for which a head has sentences
_MOST_QUOTED = 500_000
"""Characters of all sentences of a page."""


def draw_role(table: RoleTable, role: str, ax: Axes | None = None) -> Axes:
    """Draw layers x heads for a role: the colour is the mean score, the mark is the answer.

    Heads with the role have full colour and a circle, which is full for a certified "yes"; the
    others are pale. Hatched heads are positional: their place may explain their attention.
    Undecided heads have a frame, untestable ones a cross. White is uniform attention or less; the
    line in the scale is the threshold.

    Raises UsageError for a role that the table does not have.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_role
    >>> draw_role(table, "local").get_xlabel()
    'head'
    """
    role = table.clearest_role(role)
    rows = table.frame[table.frame["role"] == role]
    ax = new_map(ax, _sizes_of(table))
    mesh = _draw_map(table, rows, ax)
    low, high = mesh.get_clim()
    bar = ax.figure.colorbar(mesh, ax=ax, label=score_label(table.facts["score"]))
    if low < (threshold := float(rows["threshold"].median())) < high:
        bar.ax.axhline(threshold, color="black", linewidth=1.2)
    ticks = sorted({low, min(threshold, high), high})
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.minorticks_off()
    ax.set(xlabel="head", ylabel="layer")
    count = table.count_of([role])
    none_shown = f"\n{count.none_shown}" if count.n_open and not count.heads else ""
    set_title(ax, f"{role_label(table, role)}{none_shown}")
    _explain([ax], shown_answers(rows).value_counts().to_dict())
    return ax


def draw_roles(table: RoleTable, roles: Sequence[str] | None = None) -> Figure:
    """Draw all roles at a glance: a small map for each, as by `draw_role`, with its own scale.

    The default is up to 16 roles of the table that most heads have, in its order.

    Raises UsageError for a role that the table does not have, and for none.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_roles
    >>> len(draw_roles(table).axes)
    1
    """
    if roles is None:
        counts = table.frame.groupby("role", sort=False)["assigned"].sum()
        most = counts.sort_values(ascending=False, kind="stable").index[:MOST_ROLES]
        roles = [role for role in table.roles if role in most]
    chosen = [table.clearest_role(role) for role in roles]
    if not chosen:
        raise UsageError("there is no role to draw; name one or more")
    layers, heads = _sizes_of(table)
    figure, axes = several_axes(len(chosen), 3.1, 4 if heads <= 12 else 3, layers / heads)
    for ax, role in zip(axes, chosen, strict=True):
        rows = table.frame[table.frame["role"] == role]
        _draw_map(table, rows, ax, most_labels=8)
        largest = f"largest mean {rows['mean'].max():.2g}"
        in_numbers = _in_numbers(table.count_of([role]))
        set_title(ax, f"{role_label(table, role)}\n{in_numbers}\n{largest}", 0.8)
        ax.tick_params(labelsize=6)
    axes[0].set_ylabel("layer")
    axes[-1].set_xlabel("head")
    _explain(axes)
    return figure


def shown_answers(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the answers of rows, with `CERTIFIED` in the place of some "yes"."""
    is_certified = (rows["answer"] == YES) & (rows["certified"] == YES)
    return rows["answer"].mask(is_certified, CERTIFIED)


def _draw_map(
    table: RoleTable, rows: pd.DataFrame, ax: Axes, most_labels: int = MOST_LABELS
) -> QuadMesh:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import PowerNorm

    sizes, by_head = _sizes_of(table), rows.set_index(["layer", "head"])
    mesh = draw_grid(ax, grid_of(table.frame, by_head["mean"], sizes), most_labels=most_labels)
    low, having = SCORES[table.facts["score"]].uniform, rows["mean"][rows["assigned"]]
    high = having.max() if len(having) else max(rows["mean"].max(), rows["threshold"].max())
    mesh.set_norm(PowerNorm(0.5, low, float(high) if high > low else low + 1, clip=True))
    has_role = grid_of(table.frame, by_head["assigned"].astype(float), sizes) == 1
    strength: Any = np.where(has_role, 1, PALE)
    mesh.set_alpha(strength)
    cell = 72 * ax.get_position().width * figure_of(ax).get_size_inches()[0] / sizes[1]
    line = float(np.clip(0.06 * cell, 0.7, 2.0))
    ink, shown = inks(mesh).reshape(sizes), shown_answers(rows)
    for answer, (outline, look) in _MARKS.items():
        cells = rows.loc[shown == answer, ["head", "layer"]].to_numpy()
        if len(cells):
            colors = ink[cells[:, 1], cells[:, 0]]
            face = colors if answer == CERTIFIED else "none"
            drawn = {"edgecolor": colors, "facecolor": face, "label": answer, "linewidth": line}
            ax.add_collection(PolyCollection(list(cells[:, None] + outline), **drawn | look))
    return mesh


def _in_numbers(count: Count) -> str:
    """Return the heads of a count and the undecided ones, for a title."""
    heads = numbered(len(count.heads), "head")
    if not count.heads and count.n_open:
        heads = "none shown"
    return f"{heads}, {len(count.undecided)} undecided"


def _explain(axes: Sequence[Axes], counts: Mapping[Any, int] | None = None) -> None:
    """Draw a legend of the marks on some maps: of each answer its cell, and its mark.

    Beside the answers of one map stand the ``counts`` of its heads.
    """
    from matplotlib import colormaps
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    forms: dict[str, Any] = {
        CERTIFIED: {"marker": "o"},
        YES: {"marker": "o", "fillstyle": "none"},
        UNTESTABLE: {"marker": "x"},
    }
    marks = {NO, *(str(drawn.get_label()) for ax in axes for drawn in ax.collections)}
    keys: dict[str, Any] = {}
    for answer, (_, look) in (_MARKS | {NO: (None, {})}).items():
        color = (*colormaps[SCALE](0.5)[:3], 1 if answer in (CERTIFIED, YES) else PALE)
        cell: Any = {"facecolor": color, "linewidth": 1 if look else 0} | look
        form = {"color": "black", "linestyle": "none", "markersize": 5, **forms.get(answer, {})}
        if answer in marks:
            words = answer if counts is None else f"{answer} ({counts.get(answer, 0)})"
            keys[words] = (Patch(**cell), Line2D([], [], **form))
    legend_below(axes[0], keys=keys)


def draw_heads(table: RoleTable) -> Figure:
    """Draw layers x heads: how many roles of grammatical partners each head has, how many others.

    Attention to special tokens, which most heads give, is left out.

    With ``table`` as `assign_roles` returns it:

    >>> from headroles.report import draw_heads
    >>> len(draw_heads(table).axes)
    1
    """
    rows, sizes = table.frame[table.frame["assigned"]], _sizes_of(table)
    other_roles, pairs = table.groups.others, table.groups.pairs
    other_roles = [role for role in other_roles if not role.startswith("delimiter")] or other_roles
    kind = "grammatical partners" if table.groups.are_arcs else "roles of pairs of words"
    groups = {
        f"{kind}: roles of each head": pairs,
        "other roles, special tokens aside": other_roles,
    }
    groups = {title: roles for title, roles in groups.items() if roles}
    layers, heads = sizes
    figure, axes = several_axes(len(groups), max(3.0, 0.4 * heads), 2, layers / heads, least=3)
    for ax, (title, roles) in zip(axes, groups.items(), strict=True):
        having = rows[rows["role"].isin(roles)]
        counts = having.groupby(["layer", "head"]).size().astype(float)
        grid = np.nan_to_num(grid_of(table.frame, counts, sizes))
        mesh = draw_grid(ax, grid)
        mesh.set_clim(0, max(3.0, grid.max()))
        write_numbers(ax, mesh, grid)
        ax.set(xlabel="head", ylabel="layer")
        set_title(ax, f"{title}\n{_in_numbers(table.count_of(roles))}")
    return figure


def _sizes_of(table: RoleTable) -> tuple[int, int]:
    """Return the numbers of layers and heads of the model, in the table or not."""
    (layers, heads), (all_layers, all_heads) = sizes_in(table.frame), table.record.shape
    return max(layers, all_layers), max(heads, all_heads)


def role_page(table: RoleTable, folder: Path, options: ReportOptions) -> Page:
    """Make the page of a role table, with sentences if scores and corpus are there.

    Args:
        table: the table.
        folder: the folder of the table and its scores.
        options: the model, functions that may be imported, and a sentence of the user's own.
    """
    if options.is_given and not table.frame["assigned"].any():
        raise UsageError(
            "no head was assigned a role, so the page has no place for a sentence of yours; leave "
            "it out"
        )
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
    """Yield sentences on roles of pairs of words, on other roles, and on controls."""
    _, other_roles = table.strongest
    if table.groups.pairs:
        yield " ".join(_about_partners(table))
        if not table.frame["beyond_distance"].notna().any():
            yield NOT_CONTROLLED
    rest = [
        f"{len(row['heads'])} to {table.in_words(role)} "
        f"({len(table.count_of([str(role)]).undecided)} undecided)"
        for role, row in other_roles.iterrows()
    ]
    yield (
        f"In addition, heads attend: {', '.join(rest)}."
        if rest
        else ("No head passed the test for another role.")
    )
    yield from about_controls(table)
    yield from table.about_unspecific()


def _about_partners(table: RoleTable) -> Iterator[str]:
    """Yield a sentence for each step of evidence about partners, and one on the clearest head."""
    (arcs, _), score, (first, *further) = table.strongest, table.facts["score"], table.ladder
    is_controlled = bool(table.frame["beyond_distance"].notna().any())
    partners = "grammatical partners" if table.groups.are_arcs else "the other word of pairs"
    beyond = ", more than distance explains" if is_controlled else ""
    undecided = f"{len(first.undecided)} are undecided"
    if not first.heads and first.n_open:
        undecided = f"{first.open_tests}: add documents"
    yield (
        f"{len(first.heads)} of the {table.n_heads} heads attend to {partners}{beyond}; "
        f"{undecided}."
    )
    for rung in further:
        open_heads = f"{len(rung.undecided)} undecided"
        if not rung.heads and rung.n_open:
            open_heads = f"{rung.open_tests}: add documents"
        yield f"{len(rung.heads)} of them do so {table.beyond[rung.step]} ({open_heads})."
    for best in arcs.reset_index()[:1].to_dict("records"):
        text = (
            f"The clearest is {head_name((best['layer'], best['head']))}, "
            f"{role_label(table, best['role'])}: {best['mean']:{digits(score)}} {unit_of(score)}"
        )
        if is_controlled:
            compared = "the same places of other trees"
            compared = compared if table.scored.model.is_causal else "the same distance"
            text += f", {best['beyond_distance']:{digits(score)}} of it above {compared}"
        yield f"{text}."


def _sentences(table: RoleTable, folder: Path, options: ReportOptions) -> Section:
    """Return the section with sentences of every head.

    They are of its roles farthest beyond distance, or of its strongest one.
    """
    ranked, by_head = by_strength(table.frame[table.frame["assigned"]]), ["layer", "head"]
    of_arcs = ranked[ranked["role"].isin(table.groups.single)].groupby(by_head).head(_ROLES_OF_HEAD)
    other_rows = ranked[~ranked["role"].isin(table.groups.pairs)].drop_duplicates(by_head)
    heads, rows = heads_in(of_arcs), of_arcs.to_dict("records")
    rows += [
        row for row in other_rows.to_dict("records") if (row["layer"], row["head"]) not in heads
    ]
    own = (options.as_group(ExampleOptions),) if options.is_given else ()
    choices = own + _QUOTED
    wanted: list[Wanted] = [
        ((row["layer"], row["head"]), row["role"], choice) for row in rows for choice in choices
    ]
    quoted, why_not = quote(folder, wanted, options.as_group(OriginOptions))
    parts: list[str | Sentences] = [
        f"For each head and its strongest roles {'your sentence, ' if own else ''}the example "
        "with its largest score, and two typical ones, nearest the median. The words that the role "
        "looks at are marked; a → b 0.62 means that word a gives word b 0.62 of its attention, "
        "darker where the role has that arc.",
        *why_not,
    ]
    left = _MOST_QUOTED
    for k, row in enumerate(rows):
        of_row = tuple(chain(*quoted[k * len(choices) : (k + 1) * len(choices)]))
        left -= sum(len(sentence.data) + 30 * len(sentence.words) for sentence in of_row)
        if of_row and left > 0:
            head = head_name((row["layer"], row["head"]))
            title = f"{role_label(table, row['role'])}: head {head}"
            mean = "{mean:.3g} ({ci_low:.3g} to {ci_high:.3g})".format_map(row)
            text = f"Mean {mean}, threshold {row['threshold']:.3g}."
            parts.append(Sentences(title, text, head, of_row))
    return Section("Sentences", tuple(parts))


def role_map(table: RoleTable) -> HeadMap:
    """Return the map of a table.

    Roles of pairs that heads have come first, farthest beyond distance first, then other roles by
    the number of their heads.
    """
    first = table.strongest[0].index
    counts = table.frame.groupby("role", sort=False)["assigned"].sum().drop(first)
    order = [*first, *counts.sort_values(ascending=False, kind="stable").index]
    score = table.facts["score"]
    frame = table.frame.sort_values("role", key=lambda role: role.map(order.index), kind="stable")
    frame = frame.assign(
        view=frame["role"],
        words=frame["role"].map(partial(role_label, table)),
        group=frame["role"].map(partial(group_of, table)),
        unit=unit_of(score),
        line=frame.groupby("role")["threshold"].transform("median"),
        value=frame["mean"],
        mark=[LEGEND[answer][0] for answer in shown_answers(frame)],
    )
    facts = {
        "interval": ("ci_low", "ci_high"),
        "beyond distance": ("beyond_distance",),
        "beyond word class": ("beyond_class",),
        "past attractors": ("past_attractors",),
        "other arcs": ("other_arcs",),
        "answer": ("answer",),
        "evidence": ("evidence",),
        "specific": ("specific",),
        "certified": ("certified",),
    }
    title = "Mean scores of heads for a role: layers are rows, heads are columns"
    return HeadMap(title, "mean", frame, facts, tuple(LEGEND.values()), SCORES[score].uniform)


def group_of(table: AnyResult, role: str) -> str:
    """Return the heading of a role of a table."""
    recorded = table.known_roles([role])[0]
    is_of_words = bool(recorded.relation or recorded.function)
    return "words and their partners" if is_of_words else "places and special tokens"
