"""Parts of a corpus that were scored apart -> the scores of all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headroles import storage
from headroles.errors import StorageError, UsageError
from headroles.provenance import new_provenance
from headroles.roles import SCORES
from headroles.scoring.blocks import Counts, ScoreBlock
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import read_blocks
from headroles.scoring.writing import write_scores


def merge_scores(folders: Sequence[str | Path], staging: Path) -> dict[str, Any]:
    """Write the scores of a corpus into ``staging``, from folders of all its parts.

    They are those of a run over the whole corpus, to the bit, and so is their provenance but for
    its date and command. Memory does not grow with the number of examples. Returns the provenance.

    Raises:
        UsageError: folders of other runs than one, a part that is missing or given twice.
        StorageError: a folder that cannot be read, or is not what headroles wrote.
    """
    runs = _in_order([_open(Path(folder)) for folder in folders])
    first = runs[0][1]
    ids = [role["id"] for role in first["roles"]]
    return write_scores(staging, _interleaved(runs, ids), ids, _merged(runs))


def _open(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A folder of scores of a part, and what it says of itself."""
    run = HeadScores.read_record(folder)
    if "part" not in run:
        raise UsageError(
            f"{folder} holds scores, but not of a part of a corpus; "
            "make them with: headroles score --part 1/N"
        )
    return folder, run


def _in_order(runs: list[tuple[Path, dict[str, Any]]]) -> list[tuple[Path, dict[str, Any]]]:
    """Runs by the numbers of their parts. Raises UsageError unless they are those of one corpus."""
    (folder, first), *others = runs
    for other, run in others:
        one, another = (_plan(provenance) for provenance in (first, run))
        if told := storage.differences(one, another):
            raise UsageError(f"{folder} and {other} are of other plans: {told}")
    known: dict[int, Path] = {}
    for other, run in runs:
        number = run["part"]["number"]
        if number in known:
            raise UsageError(f"{known[number]} and {other} both hold part {number}")
        known[number] = other
    missing = [str(number) for number in range(1, first["part"]["of"] + 1) if number not in known]
    if missing:
        raise UsageError(
            f"of {first['part']['of']} parts of the corpus {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    return sorted(runs, key=lambda one: int(one[1]["part"]["number"]))


def _plan(provenance: dict[str, Any]) -> dict[str, Any]:
    shape = {name: provenance[name] for name in ("layers", "heads")}
    return {**provenance["part"]["plan"], "parts": provenance["part"]["of"], **shape}


def _interleaved(runs: list[tuple[Path, dict[str, Any]]], ids: list[str]) -> Iterator[ScoreBlock]:
    """Blocks in corpus order: its windows were dealt out to the parts in turn."""
    readers = [
        read_blocks(folder, ids, (run["layers"], run["heads"]), SCORES[run["score"]])
        for folder, run in runs
    ]
    n_windows = sum(len(run["part"]["sizes"]) for _, run in runs)
    for window in range(n_windows):
        turn, place = window % len(runs), window // len(runs)
        folder, run = runs[turn]
        if not run["part"]["sizes"][place]:
            continue
        block = next(readers[turn], None)
        if block is None or len(block.ids) != run["part"]["sizes"][place]:
            raise StorageError(
                f"{folder} does not hold its windows one by one; score that part again"
            )
        yield block


def _merged(runs: list[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    """The provenance of a run over the whole corpus."""
    first = runs[0][1]
    counts = Counts.from_record({name: first[name] for name in first["part"]["counts"]})
    for _, run in runs[1:]:
        counts.add(Counts.from_record(run["part"]["counts"]))
    now = new_provenance(model={}, corpus={}, options={})
    kept = {name: value for name, value in first.items() if name != "part"}
    return {
        **kept,
        "created": now["created"],
        "command": now["command"],
        "examples": sum(run["examples"] for _, run in runs),
        "scores": sum(run["scores"] for _, run in runs),
        **counts.record(),
    }
