"""Costs that grow with the corpus: reading it, memory of scoring, tests, several processes.

python -m benchmarks.growth reading --treebank FILE [--sizes 1000000 100000000]
python -m benchmarks.growth memory --treebank FILE --model DIR [--sizes 900 9000]
python -m benchmarks.growth tests [--sizes 10000 100000 1000000]
python -m benchmarks.growth processes --treebank FILE [FILE ...] --model DIR [--processes 2]
    [--rounds 3]

A corpus larger than the treebank repeats it, under other names of sentences and documents.

reading     so many words, opened as `headroles score` does: checked, counted, and stored to be read
            again; the memory is the peak of the process above its memory before
memory      peak of `headroles score` on so many sentences
tests       stored scores of so many examples (12 layers of 12 heads, 21 roles, 10 examples a
            document), read and tested: seconds, scores a second, and peak memory above that before,
            with pages of files that the system may take back
processes   processes of one thread, started at once with the environment that launchers set
            (started), or by torchrun, which imports PyTorch itself before it starts them; all
            must write the same bits as a single process. Ratios compare neighbours
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import numpy as np

from headroles.record import Record, RecordedCorpus, RecordedModel
from headroles.roles import SCORES, RoleOptions, choose_roles
from headroles.scoring.scores import HeadScores, describe_scores, write_scores
from headroles.studies.classification.assignment import assign_roles
from headroles.studies.classification.options import AssignOptions

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
SIZES = {
    "reading": (1_000_000, 100_000_000),
    "memory": (900, 9000),
    "tests": (10_000, 100_000, 1_000_000),
    "processes": (),
}


def main() -> None:
    """Parse the command line and print a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=SIZES)
    parser.add_argument("--treebank", type=Path, nargs="+")
    parser.add_argument("--model")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
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
from benchmarks.growth import forget_peak, peak_memory
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
    table = assign_roles(HeadScores.load(folder), AssignOptions())
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


if __name__ == "__main__":
    main()
