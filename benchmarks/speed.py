"""Cost of scoring, beside the plain forward pass of the same model.

python -m benchmarks.speed --models DIR [DIR ...] --treebank FILE [--large-treebank FILE]
    [--threads N] [--clock] [--rounds 7] [--jobs default all] [--device cpu] [--dtype float32]
    [--batch-tokens N] [--profile]

For each model one row per job and figure, as minimum, median and maximum over the rounds:

forward     the model as it is loaded (SDPA where it has it), over the examples in the very
            batches that scoring makes, inputs ready
default     scoring all default roles: reading the parsed sentences, cutting them into pieces,
            building sieves, running the encoder, contracting
all         the same for all relations of the treebank in both directions
default-, all-    the same without the contrasts with other words at the same offset
hit, norms  scoring all default roles by first choices; by norms, contrasts among them

A ratio compares one round of scoring with the forward passes right before and after it: the jobs
take turns in one process, so that a machine that slows down slows all of them. On a CPU seconds are
those of the processor, which other programs disturb less than the clock, or with --clock those of
the clock, which do not count work beside the model. The peak memory of a job is that of the
process, or of the device where there is one, in MiB. With a large treebank `benchmarks.process` and
`benchmarks.memory` follow, with the first model.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.memory import forget_peak, measure_memory, peak_memory
from benchmarks.process import measure_processes
from headroles.corpus import PreparedCorpus, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import LoadedEncoder, load_encoder
from headroles.models.options import ModelOptions
from headroles.passes.examples import passes_over
from headroles.passes.loop import Budget
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from headroles.scoring.windows import windows_of

JOBS: dict[str, dict[str, Any]] = {
    "default": {},
    "all": {"relations": "all"},
    "default-": {"beyond_offset": False},
    "all-": {"relations": "all", "beyond_offset": False},
    "hit": {"score": "hit"},
    "norms": {"measure": "norms"},
}
Clock = Callable[[], float]
HEADER = f"{'model':14} {'job':8} {'sentences/s':>20}  {'ratio to forward':>24}  {'peak MiB':>20}"


@dataclass(frozen=True)
class Cost:
    """Cost of one run of a job."""

    seconds: float
    peak: float


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--threads", type=int, help="of the processor; by default torch's own")
    parser.add_argument("--clock", action="store_true", help="time by the clock on a CPU too")
    parser.add_argument("--profile", action="store_true", help="where the time of default goes")
    parser.add_argument("--large-treebank", type=Path, help="of 9,000 sentences or more")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    with prepared(read_conllu(arguments.treebank)) as corpus:
        for model in arguments.models:
            encoder = load_encoder(
                model, ModelOptions(device=arguments.device, dtype=arguments.dtype)
            )
            if arguments.profile:
                profile(encoder, corpus, arguments.batch_tokens)
                continue
            if model == arguments.models[0]:
                print(describe_machine(encoder), HEADER, sep="\n")
            name, jobs = Path(model).name, arguments.jobs
            clock = time.perf_counter if arguments.clock else None
            measure(name, encoder, corpus, jobs, arguments.rounds, arguments.batch_tokens, clock)
    if arguments.large_treebank:
        measure_processes(arguments.models[0], arguments.treebank)
        measure_memory(arguments.models[0], arguments.large_treebank)


def describe_machine(encoder: LoadedEncoder) -> str:
    """Name the device of the figures."""
    where = (
        torch.cuda.get_device_name()
        if encoder.device.type == "cuda"
        else f"{torch.get_num_threads()} threads"
    )
    return f"{encoder.device.type} ({where}), {encoder.model.dtype}, torch {torch.__version__}"


def measure(
    name: str,
    encoder: LoadedEncoder,
    corpus: PreparedCorpus,
    jobs: list[str],
    rounds: int,
    batch_tokens: int | None,
    clock: Clock | None = None,
) -> None:
    """Run the jobs of one model in turns and print its rows."""
    batches = make_batches(encoder, corpus, batch_tokens)
    costs: dict[str, list[Cost]] = {"forward": [forward(encoder, batches, clock)]}  # it warms up
    ratios: dict[str, list[float]] = {}
    for _ in range(rounds):
        for job in jobs:
            cost = score(encoder, corpus, job, batch_tokens, clock)
            costs["forward"].append(forward(encoder, batches, clock))
            around = statistics.mean(forward.seconds for forward in costs["forward"][-2:])
            costs.setdefault(job, []).append(cost)
            ratios.setdefault(job, []).append(cost.seconds / around)
    for job, of_job in costs.items():
        rates = spread([corpus.record.sentences / cost.seconds for cost in of_job], ".0f")
        peaks = spread([cost.peak for cost in of_job], ".0f")
        ratio = spread(ratios[job], ".3f") if job in ratios else ""
        print(f"{name:14} {job:8} {rates:>20}  {ratio:>24}  {peaks:>20}", flush=True)


def spread(values: list[float], form: str) -> str:
    """Format minimum, median and maximum."""
    figures = (min(values), statistics.median(values), max(values))
    return " - ".join(format(figure, form) for figure in figures)


@contextmanager
def scoring_run(
    encoder: LoadedEncoder,
    corpus: PreparedCorpus,
    job: str,
    batch_tokens: int | None,
) -> Iterator[ScoringRun]:
    """Open a run over a prepared corpus."""
    options = ScoreOptions(batch_tokens=batch_tokens, **JOBS[job])
    with open_reader(encoder.model, options.measure) as reader:
        yield ScoringRun(encoder, reader, corpus, options)


def make_batches(
    encoder: LoadedEncoder, corpus: PreparedCorpus, batch_tokens: int | None
) -> list[dict[str, Tensor]]:
    """Return the inputs of the very batches that scoring runs."""
    with scoring_run(encoder, corpus, "default", batch_tokens) as run:
        budget = Budget(run.batch_tokens)
    cutter = ExampleEncoder(encoder.tokenizer, encoder.max_tokens, encoder.takes_token_types)
    batches: list[dict[str, Tensor]] = []
    for window in windows_of(corpus, "adjacent"):
        cut = cutter.encode(window.examples, Counter())
        batches += [batch.inputs for batch in passes_over(cut, encoder, budget).batches()]
    return batches


def forward(
    encoder: LoadedEncoder, batches: list[dict[str, Tensor]], clock: Clock | None = None
) -> Cost:
    """Time the plain forward pass over all batches."""

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                encoder.model(**batch)

    return cost_of(run, encoder.device, clock)


def score(
    encoder: LoadedEncoder,
    corpus: PreparedCorpus,
    job: str,
    batch_tokens: int | None,
    clock: Clock | None = None,
) -> Cost:
    """Time the scoring of all examples."""

    def run() -> None:
        with scoring_run(encoder, corpus, job, batch_tokens) as this_run:
            for _ in this_run.blocks():
                pass

    return cost_of(run, encoder.device, clock)


def cost_of(job: Callable[[], None], device: torch.device, clock: Clock | None = None) -> Cost:
    """Return the cost of ``job`` until it is done, on the device too."""
    clock = clock or (time.process_time if device.type == "cpu" else time.perf_counter)
    forget_peak(device)
    start = clock()
    job()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return Cost(clock() - start, peak_memory(device))


def profile(encoder: LoadedEncoder, corpus: PreparedCorpus, batch_tokens: int | None) -> None:
    """Print where the time of scoring the default roles goes."""
    import cProfile
    import pstats

    score(encoder, corpus, "default", batch_tokens)
    profiler = cProfile.Profile()
    profiler.runcall(score, encoder, corpus, "default", batch_tokens)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
