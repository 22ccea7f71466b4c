"""Costs beside the plain forward pass, compared with those of the last release.

python -m benchmarks.ratios --model DIR --treebank FILE --task-model DIR --task FILE [--keep]
    [--examples 60] [--rounds 5]

Prints how many times the processor time of a forward pass each job takes, in one thread: scoring
(jobs of `benchmarks.speed`; bfloat16 beside float32) and removing heads (`benchmarks.removal`).
Jobs and forward passes take turns; figures are medians of the rounds. Seconds differ between
machines, ratios between processors: those of the last release stand in ratios.json, by processor.
The command fails if one is 10 % higher now; --keep writes the new ones. --examples are of the task.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from pathlib import Path

import torch

from benchmarks import removal, speed
from headroles.corpus import PreparedCorpus, prepared, read_conllu
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run

FIGURES = Path(__file__).with_name("ratios.json")
MOST_SLOWER = 0.1
_SCORING = ("default", "all", "hit", "norms")


def main() -> None:
    """Measure, print a Markdown table, and exit with 1 if anything became slower."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--task-model", type=Path, required=True)
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=60, help="of the task")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write the figures")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with prepared(read_conllu(given.treebank)) as corpus:
        ratios = of_scoring(given.model, corpus, given.rounds)
    run = open_run(given.task_model, given.task, TaskOptions(examples=given.examples))
    found = removal.measure(run, removal.jobs_of(run), given.rounds)
    ratios |= {name: statistics.median(values) for name, values in found.items()}
    figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    before = figures.get(processor(), {})
    print(f"{processor()}\n\n| job | forward passes | last release |\n| --- | ---: | ---: |")
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} | {before.get(name, '-')} |")
    if given.keep:
        figures[processor()] = {name: round(ratio, 2) for name, ratio in ratios.items()}
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
        return
    sys.exit("; ".join(slower(ratios, before)) or None)


def of_scoring(model: Path, corpus: PreparedCorpus, rounds: int) -> dict[str, float]:
    """Return the costs of scoring, beside forward passes in float32."""
    encoder, half = (
        load_encoder(model, ModelOptions(device="cpu", dtype=dtype))
        for dtype in ("float32", "bfloat16")
    )
    jobs = {name: (encoder, name) for name in _SCORING} | {"bfloat16": (half, "default")}
    batches = speed.make_batches(encoder, corpus, None)
    before, found = speed.forward(encoder, batches), dict[str, list[float]]()
    for _ in range(rounds):
        for name, (used, job) in jobs.items():
            own = speed.score(used, corpus, job, None)
            after = speed.forward(encoder, batches)
            ratio = 2 * own.seconds / (before.seconds + after.seconds)
            found.setdefault(name, []).append(ratio)
            before = after
    return {name: statistics.median(values) for name, values in found.items()}


def slower(ratios: dict[str, float], before: dict[str, float]) -> list[str]:
    """Name the jobs that take over 10 % more forward passes than before, one clause each."""
    return [
        f"{name} takes {ratio:.2f} forward passes, {before[name]:.2f} in the last release"
        for name, ratio in ratios.items()
        if name in before and ratio > (1 + MOST_SLOWER) * before[name]
    ]


def processor() -> str:
    """Name the processor and the instructions that torch uses, with AMX where it has them."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    matrices = ", AMX" if any("amx_bf16" in line for line in lines) else ""
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}{matrices}"


if __name__ == "__main__":
    main()
