"""Commands that are killed at random moments and run again: is the result that of one run?

python -m benchmarks.kill --model DIR --treebank FILE [--moments 50] [--seed 0] [--sentences 900]
    [--task-model DIR --task FILE] [--examples 400] [--steps 5]
    [--updates 20] [--only NAME,NAME]

`score`, `classify`, `assign`, `collaborate` and `compare` take turns, and so do SIGKILL, SIGTERM
and SIGINT. With a model that was trained for a task, the studies of removed heads take their turns
too. Each command replaces older results in its folder. After the signal the folder must hold either
the older results unchanged or the new ones whole; then the same command runs again, with --resume
if it has that option, and every file must equal that of a run without interruption, except dates,
commands, seconds and their digests in the record.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speeds import sentence_blocks
from headroles.storage import HIDDEN, committed, parts_in

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
CODES = {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}
CIRCUMSTANCES = ("created", "command")
DIGESTS = ("digest", "holds")
"""What a run file says of itself and of the files beside it, which are compared themselves."""
PROVENANCE = b"headroles"
NOT_YET_HANDLED = -2
"""Exit code of a process that SIGINT met while Python itself was starting."""


@dataclass(frozen=True)
class Job:
    """A command over a folder: what stands there before, and what after an undisturbed run."""

    name: str
    arguments: tuple[str, ...]
    can_resume: bool
    old: Path
    new: Path
    seconds: float

    def command(self, out: Path, *more: str) -> list[str]:
        """Return the command, with ``out`` as its folder."""
        given = [str(out) if word == OUT else word for word in self.arguments]
        return [sys.executable, "-m", "headroles", *given, *more]

    @property
    def resumed(self) -> tuple[str, ...]:
        """Further arguments of the second run."""
        return ("--resume",) if self.can_resume else ()


OUT = "OUT"


def main() -> None:
    """Parse the command line, kill, and print the table."""
    # What a shell runs in its background ignores SIGINT, and so would the commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--sentences", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--task-model")
    parser.add_argument("--task")
    parser.add_argument("--examples", type=int, default=400)
    parser.add_argument("--steps", type=int, default=5, help="of prune")
    parser.add_argument("--updates", type=int, default=20, help="of gate")
    parser.add_argument("--only", help="names of commands as the table has them, with commas")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.conllu"
        blocks = islice(sentence_blocks(arguments.treebank), arguments.sentences)
        corpus.write_text("".join(blocks), encoding="utf-8")
        asked = of_scores(arguments.model, corpus, Path(folder))
        if arguments.task_model is not None:
            asked |= of_a_task(arguments, Path(folder))
        jobs = make_jobs(asked, Path(folder), arguments.only)
        kill_at_random(jobs, Path(folder), arguments.moments, random.Random(arguments.seed))


Asked = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Arguments of commands by name, with other arguments for the older results."""
NOT_RESUMED = ("assign", "compare", "collaborate")


def of_scores(model: str, corpus: Path, folder: Path) -> Asked:
    """Return the commands over a treebank; those over stored scores read the others' results."""
    scored = ("--pairing", "adjacent", "--out", OUT, "--overwrite")
    other = ("--dtype", "bfloat16")
    stored = (str(folder / "score-new"), str(folder / "score-old"))
    return {
        "score": (("score", model, str(corpus), *scored), other),
        "classify": (("classify", model, str(corpus), *scored), other),
        "assign": (("assign", OUT), ("--threshold", "2")),
        "compare": (("compare", *stored, "--out", OUT, "--overwrite"), ("--alpha", "0.01")),
        "collaborate": (
            ("collaborate", model, "--rank", "16", "--out", OUT, "--overwrite"),
            ("--seed", "1"),
        ),
    }


def of_a_task(arguments: argparse.Namespace, folder: Path) -> Asked:
    """Return the studies of removed heads."""
    subjects = (arguments.task_model, arguments.task)
    into = ("--examples", str(arguments.examples), "--out", OUT, "--overwrite")
    roles = ("--roles-from", str(folder / "classify-new"), "--draws", "2")
    curves = ("--test", arguments.task, "--draws", "5")
    estimated = ("--order", "reestimated", "--steps", str(arguments.steps))
    learned = ("--keep", "12", "--seeds", "2", "--updates", str(arguments.updates))
    return {
        "importance": (("importance", *subjects, *into), ("--normalisation", "l2")),
        "ablate": (("ablate", *subjects, *into, "--sets", "layers"), ("--alpha", "0.01")),
        "by-role": (("by-role", *subjects, *into, *roles), ("--seed", "1")),
        "curves": (("pruning-curves", *subjects, *into, *curves), ("--seed", "1")),
        "prune": (("prune", *subjects, *into, "--share", "0.5", *estimated), ("--steps", "2")),
        "gate": (("gate", *subjects, *into, *learned), ("--seed", "5")),
        "trained": (("gate", *subjects, *into, *learned, "--weights", "trained"), ("--seed", "5")),
    }


def make_jobs(asked: Asked, folder: Path, only: str | None) -> list[Job]:
    """Run each command twice undisturbed: for the older results and for the new ones."""
    jobs = []
    for name, (arguments, first) in asked.items():
        needed = name in ("score", "classify")
        if only is not None and name not in only.split(",") and not needed:
            continue
        old, new = folder / f"{name}-old", folder / f"{name}-new"
        if name == "assign":
            shutil.copytree(folder / "classify-new", old)
        job = Job(name, arguments, name not in NOT_RESUMED, old, new, 0.0)
        subprocess.run(job.command(old, *first), check=True, capture_output=True)
        shutil.copytree(old, new)
        start = time.perf_counter()
        subprocess.run(job.command(new), check=True, capture_output=True)
        jobs.append(replace(job, seconds=time.perf_counter() - start))
    return [job for job in jobs if only is None or job.name in only.split(",")]


def kill_at_random(jobs: list[Job], folder: Path, moments: int, chance: random.Random) -> None:
    """Print a line for each moment, and how many went well."""
    print(f"{'command':10} {'signal':8} {'after, s':>9} {'ended, s':>9} {'code':>5}  kept  resumed")
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for number in range(moments):
        job, name = jobs[number % len(jobs)], SIGNALS[number % len(SIGNALS)]
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(job.old, out)
        after = chance.uniform(0, job.seconds)
        code, ended, message = kill_one(job, out, name, after)
        kept = state_of(out, job)
        parts = parts_in(out).count
        done = subprocess.run(
            job.command(out, *job.resumed), check=False, capture_output=True, text=True
        )
        same = done.returncode == 0 and not differences(out, job.new)
        print(
            f"{job.name:10} {name:8} {after:9.2f} {ended:9.2f} {code:5}  {kept}, {parts} parts  "
            f"{'same' if same else 'DIFFERENT ' + done.stderr[-300:]}",
            flush=True,
        )
        slowest = max(slowest, ended) if code not in (0, -9) else slowest
        outcomes[judged(code, name, kept, same, message)] += 1
    print(f"{dict(outcomes)}; slowest end {slowest:.2f} s")


def kill_one(job: Job, out: Path, name: str, after: float) -> tuple[int, float, str]:
    """Return the exit code, the seconds from the signal to the end, and the message."""
    with subprocess.Popen(
        job.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(after)
        start = time.perf_counter()
        process.send_signal(getattr(signal, name))
        message = process.communicate()[1]
        return process.returncode, time.perf_counter() - start, message


def state_of(out: Path, job: Job) -> str:
    """Tell whether the results in ``out`` are the old or the new ones."""
    place = committed(out)
    for name, folder in (("old", job.old), ("new", job.new)):
        if not differences(place, folder):
            return name
    return "BROKEN"


def judged(code: int, name: str, kept: str, same: bool, message: str) -> str:
    """Return the verdict in a word or two."""
    if kept == "BROKEN" or not same:
        return "BROKEN"
    if code == 0:
        return "was done already"
    if code == CODES[name] and (name == "SIGKILL" or message.count("interrupted") == 1):
        return "as it should be"
    if code in (NOT_YET_HANDLED, -15):
        return "while Python itself was starting"
    return f"code {code} and {message[-200:]!r}"


def differences(one: Path, other: Path) -> list[str]:
    """Return names of result files that differ between both folders."""
    names = {
        file.relative_to(folder)
        for folder in (one, other)
        for file in folder.rglob("*")
        if file.is_file() and HIDDEN not in file.relative_to(folder).parts
    }
    return [str(name) for name in sorted(names) if content(one / name) != content(other / name)]


def content(file: Path) -> object:
    """Return the content of a file without circumstances that differ between runs."""
    if not file.exists():
        return None
    if file.name == "run.json":
        run = json.loads(file.read_text(encoding="utf-8"))
        return plain({key: run[key] for key in run if key not in DIGESTS})
    metadata = pq.read_schema(file).metadata if file.suffix == ".parquet" else {}
    if file.name == "collaboration.csv":  # of the same numbers as the Parquet file, with seconds
        return b""
    if PROVENANCE not in (metadata or {}):
        return file.read_bytes()
    table = pq.read_table(file).replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes(), plain(json.loads(metadata[PROVENANCE]))


def plain(record: object) -> object:
    """Return a record without circumstances, including the records inside it."""
    if not isinstance(record, dict):
        return record
    return {key: plain(value) for key, value in record.items() if key not in CIRCUMSTANCES}


if __name__ == "__main__":
    main()
