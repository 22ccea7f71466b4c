"""What the command line shows: progress, summaries, errors."""

from __future__ import annotations

import functools
import io
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
    from headroles.roles import RoleTable

P = ParamSpec("P")
R = TypeVar("R")

# Names of relations and files are data: a bracket is no markup, and :cop: is no emoji.
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)

_STRONGEST = 3
_PIPE_WIDTH = 200


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
        except KeyboardInterrupt:
            err.print("interrupted: nothing was written", style="red")
            raise typer.Exit(1) from None

    return guarded


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
    """Heads per role and layer, and the strongest heads of each role."""
    counts = table.counts()
    layers = [column for column in counts.columns if column != "total"]
    examples = table.frame.groupby("role")["n"].max()
    grid = Table(box=None, padding=(0, 1, 0, 0))
    grid.add_column("role", no_wrap=True)
    for name in ("examples", *layers, "heads"):
        grid.add_column(str(name), justify="right", style="bold" if name == "heads" else "")
    strongest = Table(box=None, padding=(0, 1, 0, 0))
    strongest.add_column("role", no_wrap=True)
    strongest.add_column("strongest heads: layer-head mean score")
    for role in table.roles:
        per_layer = counts.loc[[role], layers].to_numpy(dtype=int)[0].tolist()
        cells = [str(n) if n else "." for n in per_layer]
        grid.add_row(role, str(examples.loc[role]), *cells, str(sum(per_layer)))
        strongest.add_row(role, _strongest(table, role))
    out.print(_title(table.provenance["tests"]), soft_wrap=True)
    for shown in (grid, strongest):
        # A pipe has no width: let the table be as wide as it is.
        out.print(shown, width=None if out.is_terminal else _PIPE_WIDTH)
        out.print()
    if left_out := table.provenance["tests"]["left_out"]:
        out.print(f"left out, as no example has them: {', '.join(left_out)}")
    untested = int(table.frame["note"].str.startswith("untestable").sum())
    if untested:
        out.print(f"{untested} tests were not made: fewer than two examples have the score")


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


def _title(tests: dict[str, Any]) -> str:
    correction = (
        "no correction"
        if tests["correction"] == "none"
        else f"{tests['correction']} over {tests['family']} tests"
        if tests["family"] == "all"
        else f"{tests['correction']} within each role"
    )
    return (
        f"\nheads per layer with mean score > {tests['threshold']:g} "
        f"(alpha {tests['alpha']:g}, {correction})"
    )


def _strongest(table: RoleTable, role: str) -> str:
    rows = table.assigned
    rows = rows[rows["role"] == role].head(_STRONGEST)
    return "  ".join(
        f"{layer}-{head} {mean:.1f}"
        for layer, head, mean in zip(rows["layer"], rows["head"], rows["mean"], strict=True)
    )


def run_summary(provenance: dict[str, Any], table: RoleTable | None = None) -> dict[str, Any]:
    """The same for scripts: a JSON object."""
    summary = {
        key: provenance[key]
        for key in ("model", "corpus", "layers", "heads", "examples", "skipped", "options")
    }
    if table is None:
        return summary
    assigned = table.assigned[["layer", "head", "role", "mean", "p_adjusted"]]
    per_role = {role: int(total) for role, total in table.counts()["total"].items()}
    rows = assigned.astype(object).where(assigned.notna(), None).to_dict(orient="records")
    return {
        **summary,
        "tests": table.provenance["tests"],
        "heads_per_role": per_role,
        "assigned": rows,
    }
