"""Time and answers of `--dtype bfloat16` and `--dtype auto`, beside float32.

python -m docs.studies.half_precision FILE.jsonl TREEBANK --models DIR [DIR ...] [--threads N]
    [--rounds N] [--roles ROLES]
python -m docs.studies.half_precision FILE.jsonl

The first form measures and prints tables, the second only prints them. `classify_heads` runs in
turns: in float32, in bfloat16, with `auto`, and with an `auto` that takes bfloat16 whatever a
second pass in float32 costs. Times are of whole runs, loading included, and medians over the
rounds: processor time, which other programs disturb less, beside the clock. Means and answers are
those of bfloat16 beside float32; answers count as near where `assign_roles` reports that float32
may change them.

Scores are excess scores. A model with a number of threads, a treebank and roles is a line of
FILE.jsonl; a second run measures the missing ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from docs.studies.calibration_tables import markdown
from headroles import Classification, RoleTable, classify_heads, read_conllu, sample_treebank
from headroles.corpus import Corpus

WAYS = ("float32", "bfloat16", "auto", "second pass")
_ASKED = ("model", "threads", "treebank", "roles")
_SECOND_PASS = "headroles.studies.classification.second_pass.expected_layers"


def classified(model: Path, corpus: Corpus, way: str, roles: str | None) -> Classification:
    """Return the scores and roles of one of the ways."""
    if way != WAYS[-1]:
        return classify_heads(model, corpus, dtype=way, score="excess", roles=roles)
    with patch(_SECOND_PASS, return_value=0):
        return classify_heads(model, corpus, dtype="auto", score="excess", roles=roles)


def timed(work: Callable[[], Classification]) -> tuple[Classification, float, float]:
    """Return a result, the seconds of the processor that it took, and those of the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - processor, time.perf_counter() - clock


def measure(model: Path, corpus: Corpus, rounds: int, roles: str | None) -> dict[str, Any]:
    """Measure the times of all ways, and what bfloat16 changes."""
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    found: dict[str, Classification] = {}
    classified(model, read_conllu(sample_treebank()), WAYS[0], "local")  # imports take time too
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else WAYS[::-1]:
            found[way], *taken = timed(partial(classified, model, corpus, way, roles))
            seconds[way].append((taken[0], taken[1]))
    medians = {way: np.median(own, axis=0).tolist() for way, own in seconds.items()}
    of_auto = found["auto"].scores.record.chosen_dtype
    return {
        "seconds": medians,
        "rounds": rounds,
        "chosen": "float32" if of_auto is None else of_auto.dtype,
        "ratio": None if of_auto is None else of_auto.time,
        **differences(*(found[way].roles for way in WAYS)),
    }


def differences(
    full: RoleTable, half: RoleTable, auto: RoleTable, forced: RoleTable
) -> dict[str, Any]:
    """Count answers that differ, and those of them that are near; say how far means lie apart."""
    apart = np.abs(full.frame["mean"] - half.frame["mean"])
    columns = list(zip(half.frame["layer"], half.frame["head"], half.frame["role"], strict=True))
    is_near = np.array([column in set(half.tests.near) for column in columns])
    changed = differing(full, half)
    return {
        "largest": float(np.nanmax(apart)),
        "median": float(np.nanmedian(apart)),
        "answers": len(columns),
        "changed": int(changed.sum()),
        "near": int(is_near.sum()),
        "caught": int((changed & is_near).sum()),
        "changed_by_auto": int(differing(full, auto).sum()),
        "changed_after_second_pass": int(differing(full, forced).sum()),
    }


def differing(one: RoleTable, other: RoleTable) -> NDArray[np.bool_]:
    """Tell which answers (T,) differ, given or certified."""
    names = ["answer", "certified"]
    return np.asarray((one.frame[names] != other.frame[names]).any(axis=1))


def print_tables(lines: list[dict[str, Any]]) -> None:
    """Print times and answers in Markdown."""
    times = [
        [line["model"], line["treebank"], line["roles"] or "usual", str(line["threads"])]
        + [f"{line['seconds'][way][0]:.1f} ({line['seconds'][way][1]:.1f})" for way in WAYS]
        + [line["chosen"], f"{line['ratio'] or np.nan:.2f}", str(line["rounds"])]
        for line in lines
    ]
    print(
        markdown(
            ["encoder", "treebank", "roles", "threads", *WAYS, "auto took", "ratio", "rounds"],
            times,
        )
    )
    answers = [
        [
            line["model"],
            line["treebank"],
            line["roles"] or "usual",
            f"{line['largest']:.4f}",
            f"{line['median']:.1e}",
            f"{line['changed']} of {line['answers']}",
            str(line["near"]),
            str(line["caught"]),
            f"{line['changed_by_auto']}, {line['changed_after_second_pass']}",
        ]
        for line in lines
        if line["threads"] == min(one["threads"] for one in lines)
    ]
    header = [
        "encoder",
        "treebank",
        "roles",
        "largest",
        "median",
        "changed",
        "near",
        "changed and near",
    ]
    print(markdown([*header, "changed by auto, after a second pass"], answers))


def main() -> None:
    """Parse the command line; measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="measurements, a line each")
    parser.add_argument("treebank", type=Path, nargs="?", help="CoNLL-U file")
    parser.add_argument("--models", type=Path, nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--roles", help="as of headroles classify; by default its usual ones")
    asked = parser.parse_args()
    text = asked.file.read_text() if asked.file.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    known = [{name: line[name] for name in _ASKED} for line in lines]
    torch.set_num_threads(asked.threads)
    treebank = asked.treebank.name if asked.treebank else ""
    for model in asked.models:
        cell = dict(zip(_ASKED, (model.name, asked.threads, treebank, asked.roles), strict=True))
        if cell in known:
            continue
        found = measure(model, read_conllu(asked.treebank), asked.rounds, asked.roles)
        lines.append({**cell, **found})
        with asked.file.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print_tables(lines)


if __name__ == "__main__":
    main()
