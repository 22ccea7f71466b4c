"""What a role table says at a glance, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headroles.results import Grid, Shown, Warned
from headroles.roles import BIAS, SCORES, is_contrast
from headroles.scoring import about_length
from headroles.studies.options import CORPUS
from headroles.studies.stopped import stopped_early
from headroles.testing import NO, TESTS, YES, describe_correction, describe_interval

if TYPE_CHECKING:
    import pandas as pd

    from headroles.studies.role_table import RoleTable

_STRONGEST = 3
ABOUT_WHAT = (
    "what is certified is a weighted mean, in which examples that could score far from the "
    "threshold, long ones above all, count less"
)


def summarized(table: RoleTable) -> Iterator[Shown]:
    """Answers per role, heads per layer, the strongest heads, what to be careful about."""
    yield _title(table)
    yield _answers_grid(table)
    if _is_certified(table):
        yield _about_certified(table)
    yield _strongest_grid(table)
    yield from _beyond_position(table)
    yield from _left_out(table)
    if told := about_length(table.provenance):
        yield told
    if untested := int((table.frame["answer"] == "untestable").sum()):
        yield f"{untested} tests were not made; the notes of the table say why"
    if changing := [role for role, (one, other) in table.rivals.items() if one != other]:
        yield f"the best offset differs between halves of the documents: {', '.join(changing)}"
    yield from map(Warned, table.warnings)


def _left_out(table: RoleTable) -> Iterator[str]:
    """The roles that no example has, together with those that are left out for one reason."""
    by_reason: dict[str, list[str]] = {}
    for role in table.tests["left_out"]:
        reason = table.tests.get("why_left_out", {}).get(role, "")
        by_reason.setdefault(reason, []).append(role)
    for reason, roles in by_reason.items():
        why = f" ({reason})" if reason else ""
        yield f"left out, as no example has them: {', '.join(roles)}{why}"


def _is_uneven(table: RoleTable) -> bool:
    """Whether documents differ so much in size that it matters."""
    return bool(table.tests["effective_clusters"] < 0.9 * table.tests["n_clusters"])


def _title(table: RoleTable) -> str:
    tests = table.tests
    units = (
        f"{tests['n_clusters']} independent examples"
        if tests["clustered_by"] == "none"
        else f"examples clustered by {tests['n_clusters']} documents"
        + f" (worth {tests['effective_clusters']:.0f} of one size)" * _is_uneven(table)
    )
    limit = describe_limit(tests, any(map(is_contrast, table.roles)), bool(table.rivals))
    return (
        f"heads per layer with mean {_called(table.provenance)} > {limit} "
        f"(alpha {tests['alpha']:g}, "
        f"{describe_correction(tests['correction'], tests['family'])})\n"
        f"{TESTS[tests['test']].words} of {units}, each direction at alpha\n"
        f"{describe_interval(tests['interval'], tests['alpha'])}" + _where_stopped(table)
    )


def describe_limit(asked: Mapping[str, Any], has_contrasts: bool, has_rivals: bool) -> str:
    """What means are compared with, for people; ``asked`` are the options.

    ``has_rivals`` is whether roles of arcs are compared with fixed offsets.
    """
    contrasts = "; of contrasts > 0" * has_contrasts
    beyond = f"; of arcs > best fixed offset + {asked.get('offset_margin', 0):g}" * has_rivals
    return f"{asked['threshold']:g}{contrasts}{beyond}"


def _is_certified(table: RoleTable) -> bool:
    """Whether there are certified answers: the bounds of the scores were kept."""
    return bool((table.frame["certified"] != "").any())


def _about_certified(table: RoleTable) -> str:
    """How many answers stand whatever the distribution of scores is."""
    given, certified = table.frame["answer"], table.frame["certified"]
    counts = ", ".join(
        f"{int((certified == answer).sum())} {answer} "
        f"({int(((certified == answer) & (given == answer)).sum())} of them answered so above)"
        for answer in (YES, NO)
    )
    against = len(contradicted(table))
    return (
        f"certified (by betting and e-BH, whatever the distribution of scores): {counts}"
        + f"; {against} against the answer given" * bool(against)
        + f"\n{ABOUT_WHAT} (certified_mean)\n"
    )


def contradicted(table: RoleTable) -> pd.DataFrame:
    """The rows whose certified answer, of a weighted mean, is not the one that the mean has."""
    given, certified = table.frame["answer"], table.frame["certified"]
    return table.frame[(given == YES) & (certified == NO) | (given == NO) & (certified == YES)]


def _where_stopped(table: RoleTable) -> str:
    """Where scoring stopped early, if it did."""
    stopped = table.provenance.get("stopped")
    if not stopped:
        return ""
    rough = (
        "; intervals take the number of examples as given beforehand, and are rough"
        * stopped_early(table.provenance)
    )
    of = "this corpus" if stopped["until_of"] == CORPUS else "all text like this"
    return (
        f"\nstopped after {stopped['sentences']} of {stopped['of_sentences']} sentences, with "
        f"{stopped['decided']:.1%} of all heads and roles decided for {of}{rough}"
    )


def _answers_grid(table: RoleTable) -> Grid:
    """For each role the heads with it in each layer, and how many heads got which answer."""
    per_layer, answers = table.counts().drop(columns="total"), table.answers()
    if not answers["untestable"].any():
        answers = answers.drop(columns="untestable")
    certified = table.certified()[[YES, NO] if _is_certified(table) else []]
    certified = certified.add_prefix("certified ")
    sizes = {"examples": table.frame.groupby("role")["n"].max()}
    if table.tests["clustered_by"] != "none":
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
    assigned, digits = table.assigned, _digits(table.provenance)
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
    title = "strongest heads: layer-head mean score"
    return Grid(("role", title), tuple(rows), left=frozenset([title]))


def _beyond_position(table: RoleTable) -> Iterator[str]:
    """Which heads have a role of arcs and its contrast: contrasts by themselves are no roles."""
    if not any(map(is_contrast, table.roles)):
        return
    digits = _digits(table.provenance)
    rows = table.beyond_position().drop_duplicates(["layer", "head"])
    strongest = ", ".join(
        f"{row.layer}-{row.head} {row.role} {row.beyond:.{digits}f} of {row.mean:.{digits}f}"
        for row in rows.head(_STRONGEST).itertuples()
    )
    yield (
        f"heads that have a role of arcs, and more than by position: {len(rows)}"
        + f"; farthest beyond it {strongest}" * bool(strongest)
        + "\nheads with a contrast alone have no such role, however small or large it is"
    )


def _called(provenance: dict[str, Any]) -> str:
    name: str = provenance["score"]
    return "score" if name == BIAS.name else f"{name} score"


def _digits(provenance: dict[str, Any]) -> int:
    """Decimals that tell means apart on the scale of the score."""
    return 1 if SCORES[provenance["score"]].threshold >= 1 else 2
