"""What the command line shows: progress, summaries, errors."""

from __future__ import annotations

import functools
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from headroles import storage
from headroles.errors import HeadRolesError

if TYPE_CHECKING:
    from headroles.models import Family
    from headroles.planning import PowerPlan
    from headroles.roles import RoleTable

P = ParamSpec("P")
R = TypeVar("R")

# Names of relations and files are data: a bracket is no markup, and :cop: is no emoji.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)

_STRONGEST = 3
_PIPE_WIDTH = 200
TEST_NAMES = {
    "t": "t-tests",
    "wilcoxon": "Wilcoxon signed-rank tests",
    "sign_flip": "sign-flip tests",
    "bootstrap_t": "bootstrap-t tests",
}
_INTERRUPTED = "nothing was written, unless files were just being moved to their place"


def accept_any_text() -> None:
    """Let standard output escape what its encoding lacks, as standard error does anyway."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn what a user can cause into one line on standard error and an exit code."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HeadRolesError as error:
            err.print(f"error: {error}", style="red", soft_wrap=True)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as stop:
            kept = stop.args[0] if stop.args else _INTERRUPTED
            err.print(f"interrupted: {kept}", style="red", soft_wrap=True)
            raise typer.Exit(1) from None

    return guarded


@contextmanager
def telling_what_is_kept() -> Iterator[list[Path]]:
    """A list for the folders of scores that the block completed, told if it fails after that."""
    folders: list[Path] = []
    try:
        yield folders
    except HeadRolesError:
        if folders:
            warn(_kept(folders))
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(folders) if folders else _INTERRUPTED) from None


def _kept(folders: list[Path]) -> str:
    return (
        f"the scores in {', '.join(map(str, folders))} are complete and stay there; "
        "headroles compare takes them as they are"
    )


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback (done, total) that draws a bar; None where standard error is no terminal."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task(what, total=None, rate="")

        def report(done: int, total: int) -> None:
            speed = progress.tasks[0].speed
            rate = f"{speed:.0f} sentences/s" if speed else ""
            progress.update(task, completed=done, total=total, rate=rate)

        yield report


def warn(message: str) -> None:
    """A line on standard error that does not end the command."""
    err.print(f"warning: {message}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def print_json(content: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(storage.encode_json(content))


def print_run(provenance: dict[str, Any]) -> None:
    """What was scored, and what was skipped and why."""
    model, corpus = provenance["model"], provenance["corpus"]
    lines = [
        f"model   {model['model']} ({model['family']}, {provenance['layers']} layers x "
        f"{provenance['heads']} heads)",
        f"corpus  {', '.join(corpus['files'][:3])}{', ...' if len(corpus['files']) > 3 else ''}",
        f"        {corpus['sentences']} sentences, {corpus['documents']} documents, "
        f"{provenance['examples']} examples scored ({corpus['scheme']} relations)",
    ]
    if absent := provenance["absent_relations"]:
        lines.append(f"        no arcs of the default relations {', '.join(absent)}")
    skipped = [f"{reason}: {count}" for reason, count in provenance["skipped"].items()]
    lines.append(f"skipped {', '.join(skipped) if skipped else 'nothing'}")
    out.print("\n".join(lines), soft_wrap=True)


def print_roles(table: RoleTable) -> None:
    """Answers per role and heads per layer, the strongest heads, and what to be careful about."""
    tests = table.provenance["tests"]
    out.print(_title(table), soft_wrap=True)
    for grid in (_answers_grid(table), _strongest_grid(table)):
        print_grid(grid)
    if left_out := tests["left_out"]:
        out.print(f"left out, as no example has them: {', '.join(left_out)}")
    untested = int((table.frame["answer"] == "untestable").sum())
    if untested:
        out.print(f"{untested} tests were not made; the notes of the table say why")
    for warning in table.warnings:
        out.print(f"warning: {warning}", soft_wrap=True)


def print_grid(grid: Table) -> None:
    """A table and an empty line."""
    if not out.is_terminal:
        out.width = _PIPE_WIDTH  # a pipe has no width: let the table be as wide as it is
    out.print(grid)
    out.print()


def new_grid(*columns: str) -> Table:
    """A grid whose first column is text, the others numbers."""
    grid = Table(box=None, padding=(0, 1, 0, 0))
    grid.add_column(columns[0], overflow="fold")
    for name in columns[1:]:
        style = "bold" if name == "yes" else ""
        grid.add_column(name, justify="right", style=style, no_wrap=True)
    return grid


def _answers_grid(table: RoleTable) -> Table:
    """For each role the heads with it in each layer, and how many heads got which answer."""
    per_layer = table.counts().drop(columns="total")
    answers = table.answers()
    if not answers["untestable"].any():
        answers = answers.drop(columns="untestable")
    sizes = {"examples": table.frame.groupby("role")["n"].max()}
    if table.provenance["tests"]["clustered_by"] != "none":
        sizes["clusters"] = table.frame.groupby("role")["n_clusters"].max()
    grid = new_grid("role", *sizes, *map(str, per_layer.columns), *answers.columns)
    for role in table.roles:
        layers = [str(n) if n else "." for n in per_layer.loc[role]]
        counts = [str(column.loc[role]) for column in sizes.values()]
        grid.add_row(role, *counts, *layers, *map(str, answers.loc[role]))
    return grid


def _strongest_grid(table: RoleTable) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0))
    grid.add_column("role", no_wrap=True)
    grid.add_column("strongest heads: layer-head mean score")
    assigned = table.assigned
    digits = 2 if _kind(table) == "excess" else 1
    for role in table.roles:
        rows = assigned[assigned["role"] == role].head(_STRONGEST)
        heads = [
            f"{layer}-{head} {mean:.{digits}f}"
            for layer, head, mean in zip(rows["layer"], rows["head"], rows["mean"], strict=True)
        ]
        grid.add_row(role, "  ".join(heads))
    return grid


def print_plan(plan: PowerPlan) -> None:
    """How many examples it takes to decide the heads of each role."""
    asked, summary = plan.provenance["plan"], plan.summary()
    documents = f", {asked['n_clusters']} documents" if asked["clustered_by"] != "none" else ""
    out.print(
        f"examples of a corpus that decide half, nine tenths and all of a role's heads\n"
        f"with power {asked['power']:g} each (alpha {asked['alpha']:g}, "
        f"{describe_correction(asked)}); the pilot had {asked['examples']} examples{documents}\n",
        soft_wrap=True,
    )
    grid = new_grid("role", *(name.replace("_", " ") for name in summary.columns))
    for role, row in zip(summary.index, summary.to_dict(orient="records"), strict=True):
        shown = [f"{row.pop('share'):.0%}", *map(_whole, row.values())]
        grid.add_row(role, *shown)
    print_grid(grid)
    out.print("the pilot's means are uncertain: take these numbers as lower bounds")


def _whole(number: float) -> str:
    """A count for people; infinity stays, and - is what there is not."""
    if math.isnan(number):
        return "-"
    return "inf" if math.isinf(number) else f"{int(number):,}"


def plan_summary(plan: PowerPlan) -> dict[str, Any]:
    """The same for scripts: a JSON object, null where no number of examples is known to do."""
    rows = plan.summary().reset_index().to_dict(orient="records")
    return {
        "plan": plan.provenance["plan"],
        "roles": [{name: finite(value) for name, value in row.items()} for row in rows],
    }


def finite(value: Any) -> Any:
    """``value``, or None for a number that JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_written(folder: Path) -> None:
    """Where the results are."""
    out.print(f"written to {folder}", soft_wrap=True)


def print_families(families: Iterable[Family], refused: dict[str, str]) -> None:
    """Which encoder families can be scored, and which cannot."""
    shown = Table(box=None, pad_edge=False)
    for column in ("family", "read through", "note"):
        shown.add_column(column)
    for family in families:
        shown.add_row(family.name, family.read_through, family.note)
    out.print(shown)
    out.print("\nOther encoders work if they use transformers' attention interface. Refused:")
    for kind, reason in refused.items():
        out.print(f"  {kind}: {reason}")
    out.print("  decoders and encoder-decoders: headroles scores encoders")


def _title(table: RoleTable) -> str:
    tests = table.provenance["tests"]
    excess = "excess " if _kind(table) == "excess" else ""
    units = (
        f"{tests['n_clusters']} independent examples"
        if tests["clustered_by"] == "none"
        else f"examples clustered by {tests['n_clusters']} documents"
    )
    return (
        f"\nheads per layer with mean {excess}score > {tests['threshold']:g} "
        f"(alpha {tests['alpha']:g}, {describe_correction(tests)})\n"
        f"{TEST_NAMES[tests['test']]} of {units}"
    )


def describe_correction(tests: dict[str, Any]) -> str:
    """The correction and its families, from the options of tests."""
    if tests["correction"] == "none":
        return "no correction"
    within = "over all tests" if tests["family"] == "all" else "within each role"
    return f"{tests['correction']} {within}"


def _kind(table: RoleTable) -> str:
    return str(table.provenance["options"].get("score", "bias"))


def run_summary(provenance: dict[str, Any], table: RoleTable | None = None) -> dict[str, Any]:
    """The same for scripts: a JSON object."""
    summary = {
        key: provenance[key]
        for key in ("model", "corpus", "layers", "heads", "examples", "skipped", "options")
    }
    if table is None:
        return summary
    assigned = table.assigned[["layer", "head", "role", "mean", "p_adjusted"]]
    answers = table.answers()
    rows = assigned.astype(object).where(assigned.notna(), None).to_dict(orient="records")
    return {
        **summary,
        "tests": table.provenance["tests"],
        "heads_per_role": answers["yes"].to_dict(),
        "answers_per_role": answers.to_dict(orient="index"),
        "assigned": rows,
    }
