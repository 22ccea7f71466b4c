"""Costs of scoring and of removed heads, beside the plain forward pass of the same model.

python -m benchmarks.speeds scoring --model DIR --treebank FILE [--jobs default all] [--clock]
    [--device cpu] [--dtype float32] [--batch-tokens N] [--profile]
python -m benchmarks.speeds removal --model DIR --task FILE [--examples 64]
python -m benchmarks.speeds pruned --model DIR [--shares 0 0.25 0.5] [--batches 1 32]
    [--lengths 32 128]
python -m benchmarks.speeds ratios --model DIR --treebank FILE --task-model DIR --task FILE [--keep]
    [--examples 60] [--rounds 5] [--threads 1]

A row for each job: its time divided by that of a forward pass, the median over the rounds with the
least and the most. In a round each job comes between two forward passes, with which it is compared,
so that a machine that slows down slows both. Times are those of the processor, which other programs
disturb less than the clock; with --clock, on a device, and of pruned models those of the clock.

scoring   all sentences of a treebank, from parsed sentences to scores: default roles; all
          relations; both without contrasts (default-, all-); first choices (hit); norms. The
          forward pass is that of the model as it is loaded, over the batches of scoring
removal   importance: derivatives of every example's loss by all gates; ablate: the loss without
          each single head; re-estimated: a quarter of the heads removed in 5 steps; gates: updates
          of learnt gates, as many as there are batches, three at least
pruned    models without a share of their heads, over random tokens without padding: how many
          texts they read in the time of one of the full model; 0 shows the noise
ratios    scoring (bfloat16 beside float32) and removal, beside those of the last release on the
          same processor (ratios.json); fails if one is 10 % higher; --keep writes the new ones
"""

from __future__ import annotations

import argparse
import cProfile
import json
import platform
import pstats
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from headroles.corpus import PreparedCorpus, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.models.attention.reader import open_reader
from headroles.models.heads.surgery import heads_of, remove_heads
from headroles.models.loading.encoder import LoadedEncoder, load_encoder, load_model
from headroles.models.options import ModelOptions
from headroles.passes.examples import passes_over
from headroles.passes.loop import Budget
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from headroles.scoring.windows import windows_of
from headroles.studies.pruning.gate import GateOptions, learn_gates
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.removals import rises_of
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run

Work = Callable[[], object]
Clock = Callable[[], float]
SCORING: dict[str, dict[str, Any]] = {
    "default": {},
    "all": {"relations": "all"},
    "default-": {"beyond_offset": False},
    "all-": {"relations": "all", "beyond_offset": False},
    "hit": {"score": "hit"},
    "norms": {"measure": "norms"},
}
FIGURES = Path(__file__).with_name("ratios.json")
MOST_SLOWER = 0.1
PASSES_SECONDS = 0.05
"""A timing of a pruned model takes so long at least: as many passes as that needs."""


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("scoring", "removal", "pruned", "ratios"))
    parser.add_argument("--model", required=True)
    parser.add_argument("--treebank", type=Path)
    parser.add_argument("--task-model")
    parser.add_argument("--task", type=Path)
    parser.add_argument("--examples", type=int, default=64, help="of the task")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of the processor; by default torch's own")
    parser.add_argument("--clock", action="store_true", help="time by the clock on a CPU too")
    parser.add_argument("--jobs", nargs="+", choices=SCORING, default=list(SCORING))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--profile", action="store_true", help="where the time of default goes")
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.25, 0.5, 0.75, 0.83])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--lengths", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--keep", action="store_true", help="write the figures")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    if given.what == "ratios":
        sys.exit(compare_ratios(given))
    rows = {"scoring": scoring, "removal": removal, "pruned": pruned}[given.what](given)
    print(f"{processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}\n")
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))


# Turns


def take_turns(
    forward: Work, jobs: Mapping[str, Work], rounds: int, clock: Clock = time.process_time
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the seconds of jobs, and these over the seconds of the forward passes around them."""
    seconds: dict[str, list[float]] = {name: [] for name in ("forward", *jobs)}
    ratios: dict[str, list[float]] = {name: [] for name in jobs}
    before = seconds_of(forward, clock)  # it warms up
    for _ in range(rounds):
        before = seconds_of(forward, clock)
        for name, job in jobs.items():
            own, after = seconds_of(job, clock), seconds_of(forward, clock)
            seconds[name].append(own)
            seconds["forward"].append(after)
            ratios[name].append(2 * own / (before + after))
            before = after
    return seconds, ratios


def seconds_of(work: Work, clock: Clock = time.process_time) -> float:
    """Time work until it is done, on the device too."""
    start = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - start


def spread(values: list[float], form: str) -> str:
    """Format the median, with the least and the most."""
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({least:{form}} to {most:{form}})"


# Scoring


def scoring(given: argparse.Namespace) -> list[dict[str, str]]:
    """Return a row for each job of scoring."""
    encoder = load_encoder(given.model, ModelOptions(device=given.device, dtype=given.dtype))
    on_clock = given.clock or encoder.device.type != "cpu"
    clock = time.perf_counter if on_clock else time.process_time
    with prepared(read_conllu(given.treebank)) as corpus:
        if given.profile:
            profiler = cProfile.Profile()
            profiler.runcall(score, encoder, corpus, "default", given.batch_tokens)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
            return []
        jobs = {job: scored(encoder, corpus, job, given.batch_tokens) for job in given.jobs}
        plain = forward(encoder, make_batches(encoder, corpus, given.batch_tokens))
        seconds, ratios = take_turns(plain, jobs, given.rounds, clock)
        n = corpus.record.sentences
    return [
        {
            "job": name,
            "sentences/s": spread([n / one for one in times], ".0f"),
            "forward passes": spread(ratios[name], ".3f") if name in ratios else "1",
        }
        for name, times in seconds.items()
    ]


def scored(
    encoder: LoadedEncoder, corpus: PreparedCorpus, job: str, batch_tokens: int | None = None
) -> Work:
    """Return the scoring of all examples."""
    return lambda: score(encoder, corpus, job, batch_tokens)


def score(
    encoder: LoadedEncoder, corpus: PreparedCorpus, job: str, batch_tokens: int | None
) -> None:
    """Score all examples."""
    options = ScoreOptions(batch_tokens=batch_tokens, **SCORING[job])
    with open_reader(encoder.model, options.measure) as reader:
        for _ in ScoringRun(encoder, reader, corpus, options).blocks():
            pass


def make_batches(
    encoder: LoadedEncoder, corpus: PreparedCorpus, batch_tokens: int | None = None
) -> list[dict[str, Tensor]]:
    """Return the inputs of the very batches that scoring runs."""
    options = ScoreOptions(batch_tokens=batch_tokens)
    with open_reader(encoder.model, options.measure) as reader:
        budget = Budget(ScoringRun(encoder, reader, corpus, options).batch_tokens)
    cutter = ExampleEncoder(encoder.tokenizer, encoder.max_tokens, encoder.takes_token_types)
    batches: list[dict[str, Tensor]] = []
    for window in windows_of(corpus, "adjacent"):
        cut = cutter.encode(window.examples, Counter())
        batches += [batch.inputs for batch in passes_over(cut, encoder, budget).batches()]
    return batches


def forward(encoder: LoadedEncoder, batches: list[dict[str, Tensor]]) -> Work:
    """Return the plain forward pass over all batches."""

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                encoder.model(**batch)

    return run


# Removed heads


def removal(given: argparse.Namespace) -> list[dict[str, str]]:
    """Return a row for each study; ``runs``: forward passes if removals shared nothing."""
    run = open_run(given.model, given.task, TaskOptions(examples=given.examples))
    runs = {"ablate": str(1 + len(run.heads))}
    ratios = take_turns(plain_task(run), removals(run), given.rounds)[1]
    return [
        {"job": name, "runs": runs.get(name, ""), "forward passes": spread(values, ".1f")}
        for name, values in ratios.items()
    ]


def plain_task(run: TaskRun) -> Work:
    """Return the forward passes over the batches of a task."""
    return forward(run.encoder, [dict(batch.inputs) for batch in run.batches])


def removals(run: TaskRun) -> dict[str, Work]:
    """Return studies of removed heads."""
    heads = run.heads
    pruning = PruneOptions(keep=1, order="reestimated", steps=5)
    gates = GateOptions(keep=len(heads) // 4, updates=max(len(run.groups(32)), 3))
    return {
        "importance": run.derivatives,
        "ablate": lambda: rises_of(run, [(head,) for head in heads]),
        "re-estimated": lambda: choose_heads(pruning.order, len(heads) // 4, heads, pruning, run),
        f"gates, {gates.updates} updates": lambda: learn_gates(run, gates, 0),
    }


# Models without some of their heads


def pruned(given: argparse.Namespace) -> list[dict[str, str]]:
    """Return a row for each batch size, length of texts in tokens, and share of removed heads."""
    full = load_model(given.model)
    models = {f"{share:.0%}": without_share(full, share) for share in given.shares}
    rows = []
    for batch, length in product(given.batches, given.lengths):
        ids = torch.randint(5, full.config.vocab_size, (batch, length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        warm = min(seconds_of(passes(full, inputs, 1), time.perf_counter) for _ in range(3))
        n = max(1, round(PASSES_SECONDS / warm))
        jobs = {share: passes(model, inputs, n) for share, model in models.items()}
        plain = passes(full, inputs, n)
        seconds, ratios = take_turns(plain, jobs, given.rounds, time.perf_counter)
        whole = multiplications(full, inputs)
        rows += [
            {
                "batch x tokens": f"{batch} x {length}",
                "heads removed": share,
                "weights left": f"{n_weights(model) / n_weights(full):.0%}",
                "multiplications saved": f"{1 - multiplications(model, inputs) / whole:.0%}",
                "texts/s": f"{n * batch / np.median(seconds[share]):.4g}",
                "ratio": spread([1 / ratio for ratio in ratios[share]], ".2f"),
            }
            for share, model in models.items()
        ]
    return rows


def without_share(full: PreTrainedModel, share: float) -> PreTrainedModel:
    """Copy a model without this share of its heads, drawn at random."""
    heads, copied = heads_of(full), deepcopy(full)
    n_removed = round(share * len(heads))
    remove_heads(copied, choose_heads("random", n_removed, heads, PruneOptions(keep=1)))
    return copied.eval()


def passes(model: PreTrainedModel, inputs: dict[str, Tensor], n_passes: int) -> Work:
    """Return so many forward passes."""

    def run() -> None:
        with torch.inference_mode():
            for _ in range(n_passes):
                model(**inputs)

    return run


def multiplications(model: PreTrainedModel, inputs: dict[str, Tensor]) -> int:
    """Count the multiplications of matrices in one pass, attention included."""
    counter, counted = FlopCounterMode(display=False), deepcopy(model)
    counted.set_attn_implementation("eager")  # the counter does not look into SDPA on a CPU
    with torch.inference_mode(), counter:
        counted(**inputs)
    return counter.get_total_flops() // 2


def n_weights(model: PreTrainedModel) -> int:
    """Count the weights of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


# Beside the last release


def compare_ratios(given: argparse.Namespace) -> str | None:
    """Print a table of ratios; return what became slower, None if nothing did."""
    encoder, half = (
        load_encoder(given.model, ModelOptions(device="cpu", dtype=dtype))
        for dtype in ("float32", "bfloat16")
    )
    with prepared(read_conllu(given.treebank)) as corpus:
        jobs = {job: scored(encoder, corpus, job) for job in ("default", "all", "hit", "norms")}
        jobs["bfloat16"] = scored(half, corpus, "default")
        plain = forward(encoder, make_batches(encoder, corpus))
        found = take_turns(plain, jobs, given.rounds)[1]
    run = open_run(given.task_model, given.task, TaskOptions(examples=given.examples))
    found |= take_turns(plain_task(run), removals(run), given.rounds)[1]
    ratios = {name: statistics.median(values) for name, values in found.items()}
    figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    before = figures.get(processor(), {})
    print(f"{processor()}\n\n| job | forward passes | last release |\n| --- | ---: | ---: |")
    for name, ratio in ratios.items():
        print(f"| {name} | {ratio:.2f} | {before.get(name, '-')} |")
    if given.keep:
        figures[processor()] = {name: round(ratio, 2) for name, ratio in ratios.items()}
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
        return None
    return "; ".join(slower(ratios, before)) or None


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
