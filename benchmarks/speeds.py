"""Speed and memory: scoring and removed heads beside forward passes, large corpora, processors.

python -m benchmarks.speeds scoring --model DIR --treebank FILE [--jobs default all] [--clock]
    [--device cpu] [--dtype float32] [--batch-tokens N] [--profile]
python -m benchmarks.speeds scoring --model DIR --bitext FILE [--attention cross] [--links-from 1]
    [--target-tokenizer DIR] [--jobs default hit norms]
python -m benchmarks.speeds removal --model DIR --task FILE [--examples 64] [--roles DIR]
python -m benchmarks.speeds pruned --model DIR [--shares 0 0.25 0.5] [--batches 1 32]
    [--lengths 32 128]
python -m benchmarks.speeds ratios --model DIR --treebank FILE --task-model DIR --task FILE [--keep]
    [--examples 60] [--rounds 5] [--threads 1]
python -m benchmarks.speeds reading --treebank FILE [--sizes 1000000 100000000]
python -m benchmarks.speeds memory --treebank FILE --model DIR [--sizes 900 9000]
python -m benchmarks.speeds tests [--sizes 10000 100000 1000000]
python -m benchmarks.speeds processes --treebank FILE [FILE ...] --model DIR [--processes 2]
    [--rounds 3]
python -m benchmarks.speeds processors --model DIR --treebank FILE [--out DIR]

scoring     a row for each job: its time divided by that of a forward pass, the median over the
            rounds with the least and the most. In a round each job comes between two forward
            passes, with which it is compared, so that a machine that slows down slows both. Times
            are those of the processor, which other programs disturb less than the clock; with
            --clock, on a device, and of pruned models those of the clock. All sentences of a
            treebank, from parsed sentences to scores: default roles; all relations; both without
            contrasts (default-, all-); first choices (hit); norms. The forward pass is that of the
            model as it is loaded, over the batches of scoring. With --bitext the attention of the
            decoder, or across, beside the pass of the whole encoder-decoder
removal     importance: derivatives of every example's loss by all gates; ablate: the loss without
            each single head; re-estimated: a quarter of the heads removed in 5 steps; gates:
            updates of learnt gates, as many as there are batches, three at least; curves: five
            draws of the default orders at two shares; by-role: 99 random sets beside the syntactic
            heads of --roles, a folder of a role table. Both load the model
pruned      models without a share of their heads, over random tokens without padding: how many
            texts they read in the time of one of the full model; 0 shows the noise
ratios      scoring (bfloat16 beside float32) and removal, beside those of the last release on the
            same processor (ratios.json); fails if one is 10 % higher; --keep writes the new ones
reading     so many words, opened as `headroles score` does: checked, counted, and stored to be read
            again; the memory is the peak of the process above its memory before. A corpus larger
            than the treebank repeats it, under other names of sentences and documents
memory      peak of `headroles score` on so many sentences
tests       stored scores of so many examples (12 layers of 12 heads, 21 roles, 10 examples a
            document), read and tested: seconds, scores a second, and peak memory above that before,
            with pages of files that the system may take back
processes   processes of one thread, started at once with the environment that launchers set
            (started), or by torchrun, which imports PyTorch itself before it starts them; all
            must write the same bits as a single process. Ratios compare neighbours
processors  scores and answers by instruction sets and threads, each in a process of its own and
            compared with the first: the largest differences of scores, of contrasts, and of both
            relative to the sums behind them; how many answers differ, and how near to the threshold
            their heads are, in standard errors. With --out it only scores into a folder, as each of
            these processes does
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from headroles import assign_roles, find_pruning_curves, importance_by_role, score_heads
from headroles.corpus import PreparedCorpus, prepared, read_bitext, read_conllu
from headroles.encoding import PAIR_MASK
from headroles.models.attention.reader import open_reader
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.models.loading.encoder import LoadedModel, load_encoder, load_model
from headroles.models.options import ATTENTIONS, ENCODER, ModelOptions, TargetOptions
from headroles.passes.loop import Budget, passes_over
from headroles.record import Record, RecordedCorpus, RecordedModel
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import OF_BITEXTS, ScoringRun
from headroles.scoring.scores import HeadScores, describe_scores, write_scores
from headroles.scoring.windows import windows_of
from headroles.studies.pruning.gate import GateOptions, learn_gates
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.removals import rises_of
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import TaskRun, open_run
from tests.rounding import sizes_of_scores

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
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
SIZES = {
    "reading": (1_000_000, 100_000_000),
    "memory": (900, 9000),
    "tests": (10_000, 100_000, 1_000_000),
    "processes": (),
}
SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "ATen default": {"ATEN_CPU_CAPABILITY": "default"},
    "ATen AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "oneDNN SSE4.1": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "oneDNN AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "MKL SSE4.2": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "MKL AVX2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "all three at their oldest, 2 threads": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OMP_NUM_THREADS": "2",
    },
}
"""Variables of the environment; where nothing else is said, one thread."""


def main() -> None:
    """Parse the command line and print a table, or a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=(*BESIDE_PASSES, "ratios", *SIZES, "processors"))
    parser.add_argument("--model")
    parser.add_argument("--treebank", type=Path, nargs="+")
    parser.add_argument("--bitext", type=Path)
    parser.add_argument("--links-from", type=int, default=0)
    parser.add_argument("--attention", choices=ATTENTIONS[1:], default="cross", help="of a bitext")
    parser.add_argument("--target-tokenizer")
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
    parser.add_argument(
        "--profile", action="store_true", help="where the time of the first job goes"
    )
    parser.add_argument("--roles", help="folder of a role table")
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.25, 0.5, 0.75, 0.83])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--lengths", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--keep", action="store_true", help="write the figures")
    parser.add_argument("--sizes", type=int, nargs="+", help="of corpora")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="score into this folder, and end")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    if given.what == "ratios":
        sys.exit(compare_ratios(given))
    if given.what == "processors":
        compare_processors(given)
    elif given.what in SIZES:
        measure_growth(given)
    else:
        rows = BESIDE_PASSES[given.what](given)
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
    loading, of = ModelOptions(device=given.device, dtype=given.dtype), TargetOptions()
    corpus = None if given.bitext else read_conllu(given.treebank[0])
    if corpus is None:
        corpus = read_bitext(given.bitext, links_from=given.links_from)
        of = TargetOptions(attention=given.attention, target_tokenizer=given.target_tokenizer)
    encoder = load_encoder(given.model, loading, of=of)
    on_clock = given.clock or encoder.device.type != "cpu"
    clock = time.perf_counter if on_clock else time.process_time
    with prepared(corpus) as ready:
        if given.profile:
            profiler = cProfile.Profile()
            profiler.runcall(score, encoder, ready, given.jobs[0], given.batch_tokens)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
            return []
        jobs = {job: scored(encoder, ready, job, given.batch_tokens) for job in given.jobs}
        plain = forward(encoder, make_batches(encoder, ready, given.batch_tokens))
        seconds, ratios = take_turns(plain, jobs, given.rounds, clock)
        n = ready.record.sentences
    return [
        {
            "job": name,
            "sentences/s": spread([n / one for one in times], ".0f"),
            "forward passes": spread(ratios[name], ".3f") if name in ratios else "1",
        }
        for name, times in seconds.items()
    ]


def scored(
    encoder: LoadedModel, corpus: PreparedCorpus, job: str, batch_tokens: int | None = None
) -> Work:
    """Return the scoring of all examples."""
    return lambda: score(encoder, corpus, job, batch_tokens)


def score(encoder: LoadedModel, corpus: PreparedCorpus, job: str, batch_tokens: int | None) -> None:
    """Score all examples."""
    with open_scoring_of(encoder, corpus, batch_tokens, job) as run:
        for _ in run.blocks():
            pass


@contextmanager
def open_scoring_of(
    encoder: LoadedModel, corpus: PreparedCorpus, batch_tokens: int | None, job: str
) -> Iterator[ScoringRun]:
    """Open the scoring of all examples; of a bitext the roles that it has by default."""
    attention = encoder.stack.kind
    chosen: dict[str, Any] = {"attention": attention, **SCORING[job]}
    if attention != ENCODER:
        chosen |= {"roles": OF_BITEXTS[attention], "relations": "none"}
    options = ScoreOptions(batch_tokens=batch_tokens, **chosen)
    with open_reader(encoder.stack, options.measure) as reader:
        yield ScoringRun(encoder, reader, corpus, options)


def make_batches(
    encoder: LoadedModel, corpus: PreparedCorpus, batch_tokens: int | None = None
) -> list[dict[str, Tensor]]:
    """Return the inputs of the very batches that scoring runs."""
    with open_scoring_of(encoder, corpus, batch_tokens, "default") as run_of_scoring:
        budget = Budget(run_of_scoring.batch_tokens)
    cutter = encoder.example_encoder()
    batches: list[dict[str, Tensor]] = []
    for window in windows_of(corpus, "adjacent"):
        cut = cutter.encode(window.examples, Counter())
        batches += [batch.inputs for batch in passes_over(cut, encoder, budget).batches()]
    return batches


def forward(encoder: LoadedModel, batches: list[dict[str, Tensor]]) -> Work:
    """Return the plain forward pass over all batches."""
    inputs = [{k: v for k, v in batch.items() if k != PAIR_MASK} for batch in batches]

    def run() -> None:
        with torch.inference_mode():
            for batch in inputs:
                encoder.stack.run_whole(batch)

    return run


# Removed heads


def removal(given: argparse.Namespace) -> list[dict[str, str]]:
    """Return a row for each study; ``runs``: forward passes if removals shared nothing."""
    run = open_run(given.model, given.task, TaskOptions(examples=given.examples))
    runs = {"ablate": str(1 + len(run.heads))}
    jobs = removals(run) | studies(given)
    ratios = take_turns(plain_task(run), jobs, given.rounds)[1]
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


def studies(given: argparse.Namespace) -> dict[str, Work]:
    """Return whole studies of removed heads."""
    task: dict[str, Any] = {"task": given.task, "examples": given.examples}
    shares, roles = (0.25, 0.5), {"roles_from": given.roles, "roles": "syntactic", "draws": 99}
    curves = partial(find_pruning_curves, given.model, given.task, shares=shares, **task)
    by_role = partial(importance_by_role, given.model, **task, **roles)
    return {"curves": curves} | ({"by-role": by_role} if given.roles else {})


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
    heads, copied = find_stack(full).heads, deepcopy(full)
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
    with prepared(read_conllu(given.treebank[0])) as corpus:
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


# Large corpora


def measure_growth(given: argparse.Namespace) -> None:
    """Print a line for each size of a corpus, or for several processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "processes":
            command = ["-m", "headroles", "score", given.model, *map(str, given.treebank)]
            measure_processes([*command, "--out", name], given.processes, given.rounds)
        for size in given.sizes or SIZES[given.what]:
            if given.what == "reading":
                measure_reading(given.treebank[0], size, folder / "corpus.conllu")
            elif given.what == "memory":
                measure_memory(given.model, given.treebank[0], size, folder)
            else:
                measure_tests(size, folder / str(size))


def sentence_blocks(treebank: Path) -> list[str]:
    """Return the sentences of a treebank as text."""
    text = treebank.read_text(encoding="utf-8")
    return [block + "\n\n" for block in text.split("\n\n") if block.strip()]


def repeated(blocks: Sequence[str]) -> Iterator[str]:
    """Yield the sentences again and again, each time under other names."""
    yield from blocks
    for turn in count(1):
        for block in blocks:
            yield re.sub(r"(?m)^(# (?:newdoc |sent_)id = )", rf"\g<1>{turn}-", block)


def forget_peak() -> None:
    """Start anew to watch the peak memory of this process."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> float:
    """Return the peak resident memory of this process, in MiB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


# Reading

CHILD = """
import json, sys, time
from benchmarks.speeds import forget_peak, peak_memory
from headroles.corpus import prepared, read_conllu
forget_peak()
before, start = peak_memory(), time.perf_counter()
with prepared(read_conllu(sys.argv[1])) as opened:
    seconds, peak = time.perf_counter() - start, peak_memory()
    found = {"words": opened.record.words, "sentences": opened.record.sentences}
print(json.dumps({**found, "seconds": seconds, "MiB": peak - before}))
"""


def measure_reading(treebank: Path, n_words: int, corpus: Path) -> None:
    """Print the cost of opening so many words, and a few more to the end of their sentence."""
    with corpus.open("w", encoding="utf-8") as file:
        for block in repeated(sentence_blocks(treebank)):
            file.write(block)
            n_words -= sum(line.split("\t", 1)[0].isdecimal() for line in block.splitlines())
            if n_words <= 0:
                break
    command = [sys.executable, "-c", CHILD, str(corpus)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(
        f"{found['words']:,} words, {found['sentences']:,} sentences: {found['seconds']:.1f} s, "
        f"{found['words'] / found['seconds']:,.0f} words/s, {found['MiB']:.0f} MiB",
        flush=True,
    )


# Memory

WATCHER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def measure_memory(model: str, treebank: Path, n_sentences: int, folder: Path) -> None:
    """Print the peak of a process that scores so many sentences."""
    part = folder / f"{n_sentences}.conllu"
    with part.open("w", encoding="utf-8") as file:
        file.writelines(islice(repeated(sentence_blocks(treebank)), n_sentences))
    scoring = ["headroles", "score", model, str(part), "--out", str(folder / str(n_sentences))]
    command = [sys.executable, "-c", WATCHER, sys.executable, "-m", *scoring]
    peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(f"score, {n_sentences} sentences: {float(peak):.0f} MiB", flush=True)


# Tests

BLOCK, SHAPE, N_ROLES, PER_DOCUMENT = 192, (12, 12), 21, 10
RELATIONS = tuple("nsubj obj iobj obl advmod amod nmod det case mark conj".split())


def measure_tests(n_examples: int, folder: Path) -> None:
    """Draw scores as they are saved, and print the cost of reading and testing them."""
    score = SCORES["excess"]
    chosen = choose_roles(RoleOptions(roles=["syntactic"]), RELATIONS, score)
    roles = tuple(role for role in chosen if role.baseline is None)[:N_ROLES]
    n_scores = n_examples * len(roles) * SHAPE[0] * SHAPE[1]
    record = Record.now(
        kind="scores",
        model=RecordedModel(layers=SHAPE[0], heads=SHAPE[1]),
        corpus=RecordedCorpus(examples=n_examples),
        facts={**describe_scores(list(roles), score), "scores": n_scores},
    )

    def draw(first: int, n: int) -> HeadScores:
        """Draw scores that are skewed, and above 0 in about half of the heads."""
        rng = np.random.default_rng(first)
        shift = np.linspace(-0.2, 0.2, SHAPE[0] * SHAPE[1]).reshape(1, *SHAPE, 1)
        values = rng.random((n, *SHAPE, len(roles)), dtype=np.float32) ** 2 - 1 / 3 + shift
        return HeadScores(
            ids=tuple(f"s-{number}" for number in range(first, first + n)),
            documents=tuple(f"d-{k // PER_DOCUMENT}" for k in range(first, first + n)),
            roles=roles,
            score=score,
            lengths=np.full(n, 20),
            values=np.clip(values, -0.5, 1).astype(np.float32),
            counts=np.ones((n, len(roles)), dtype=np.int64),
            bounds=np.broadcast_to(np.float32([-0.5, 1]), (n, len(roles), 2)),
        )

    folder.mkdir()
    firsts = range(0, n_examples, BLOCK)
    blocks = (draw(first, min(BLOCK, n_examples - first)) for first in firsts)
    write_scores(folder, blocks, is_half=False, record=lambda: record)
    forget_peak()
    before, start = peak_memory(), time.perf_counter()
    table = assign_roles(HeadScores.load(folder))
    seconds = time.perf_counter() - start
    print(
        f"{n_examples:10} examples, {len(table)} tests: {seconds:.1f} s, "
        f"{n_examples * len(table) / seconds:.0f} scores/s, {peak_memory() - before:.0f} MiB",
        flush=True,
    )


# Processes


def measure_processes(command: list[str], n_processes: int, rounds: int) -> None:
    """Print the seconds of all three ways, and how many times as fast the last two are."""
    ways: dict[str, Callable[[list[str]], None]] = {
        "alone": lambda command: run_alone([sys.executable, *command]),
        "started": lambda command: run_started(command, n_processes),
        "torchrun": lambda command: run_alone(
            [
                *(sys.executable, "-m", "torch.distributed.run"),
                *(f"--nproc-per-node={n_processes}", f"--master-port={free_port()}", *command),
            ]
        ),
    }
    scores = Path(command[-1]) / "scores.parquet"
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    written = set()
    for _ in range(rounds):
        for way, run in ways.items():
            start = time.perf_counter()
            run([*command, "--overwrite"])
            seconds[way].append(time.perf_counter() - start)
            written.add(scores.read_bytes())
    assert len(written) == 1, "the ways wrote different scores"
    for way, values in seconds.items():
        ratios = [one / other for one, other in zip(seconds["alone"], values, strict=True)]
        least, middle, most = min(ratios), statistics.median(ratios), max(ratios)
        print(f"{way:9} {statistics.median(values):7.2f} s   ", end="")
        print(f"{least:.2f} - {middle:.2f} - {most:.2f} times as fast", flush=True)


def run_alone(command: list[str]) -> None:
    """Run one process, which may start others."""
    subprocess.run(command, env=ONE_THREAD, check=True, capture_output=True)


def run_started(command: list[str], n_processes: int) -> None:
    """Run several processes, as the launcher of a cluster starts them."""
    common = {**ONE_THREAD, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**common, "WORLD_SIZE": str(n_processes), "RANK": rank, "LOCAL_RANK": rank},
            **silent,
        )
        for rank in map(str, range(n_processes))
    ]
    codes = [process.wait() for process in running]
    assert not any(codes), f"processes ended with exit codes {codes}"


def free_port() -> int:
    """Return the number of a port that no program uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Other processors


def compare(first: HeadScores, other: HeadScores) -> str:
    """Return the cells of the table's row of ``other``."""
    difference = np.abs(first.values.astype(np.float64) - other.values)
    contrasts = np.array([role.endswith(":beyond_offset") for role in first.role_ids])
    relative = difference / np.maximum(sizes_of_scores(first), np.finfo(np.float32).tiny)
    tables = [assign_roles(scores).frame for scores in (first, other)]
    differ = (tables[0]["answer"] != tables[1]["answer"]).to_numpy()
    errors = tables[0]["sd"] / np.sqrt(tables[0]["n"])
    distances = (np.abs(tables[0]["mean"] - tables[0]["threshold"]) / errors)[differ]
    means = np.abs(tables[0]["mean"] - tables[1]["mean"]).max()
    cells = [
        f"{np.nanmax(difference[..., ~contrasts]):.1e}",
        f"{np.nanmax(difference[..., contrasts]):.1e}",
        f"{np.nanmax(relative):.1e}",
        f"{means:.1e}",
        f"{differ.sum()} of {len(differ)}",
        ", ".join(f"{one:.2f}" for one in distances) or "-",
    ]
    return " | ".join(cells)


def compare_processors(given: argparse.Namespace) -> None:
    """Score in processes of their own, compare with the first, print."""
    (treebank,) = given.treebank
    if given.out:
        score_heads(given.model, read_conllu(treebank), device="cpu").save(given.out)
        return
    print("| setting | scores | contrasts | relative | means | answers | standard errors away |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    first: HeadScores | None = None
    own = ["-m", "benchmarks.speeds", "processors", "--model", given.model, "--treebank", treebank]
    with tempfile.TemporaryDirectory() as work:
        for place, (name, variables) in enumerate(SETTINGS.items()):
            out = Path(work) / str(place)
            environment = ONE_THREAD | variables
            subprocess.run([sys.executable, *own, "--out", out], env=environment, check=True)
            scores = HeadScores.load(out)
            first = first or scores
            print(f"| {name} | {compare(first, scores)} |", flush=True)


BESIDE_PASSES = {"scoring": scoring, "removal": removal, "pruned": pruned}

if __name__ == "__main__":
    main()
