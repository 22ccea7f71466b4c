"""Commands that are killed and run again: is the result that of one run?

python -m benchmarks.kill --model DIR --treebank FILE [--sentences 900] [--rounds 2] [--seed 0]
    [--task-model DIR --task FILE] [--examples 400] [--steps 5] [--updates 20]
    [--translator DIR --bitext FILE --links FILE] [--links-from 0] [--target-tokenizer DIR]
    [--pairs 20] [--only NAME,NAME]

All commands that write a folder or a file, as far as a model, a model that was trained for a task
and a translator are given. In a round each command gets SIGKILL, SIGTERM and SIGINT, at a random
moment of its run; in every second round just after it changed a first file. Each command replaces
older results. After the signal these must be there unchanged, or the new ones whole; then the same
command runs again, with --resume if it has that option, and every file must equal that of a run
without interruption, except dates, commands, seconds and their digests in the record.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import load_file, save_file

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
OUT = "results"
"""Folder that a command fills, below the one where it is started."""
ROOT = Path(__file__).parents[1]
LONGEST_DELAY = 0.05
"""Seconds from the first changed file to the signal, at most."""


Words = tuple[str, ...]
Commands = dict[str, tuple[Words, Words]]
"""A command by its name in the table, and the command of the older results."""


@dataclass(frozen=True)
class Job:
    """A command, and folders of its older results and of those of an undisturbed run."""

    name: str
    arguments: Words
    old: Path
    new: Path
    seconds: float

    @property
    def resumed(self) -> Words:
        """The command of the second run."""
        more = ("--resume",) if self.arguments[0] in RESUMED else ()
        return (*self.arguments, *more)

    @property
    def outputs(self) -> list[str]:
        """Names of what the command writes: a folder of results, a file, or both."""
        return sorted(entry.name for entry in self.new.iterdir())


RESUMED = (
    *("score", "classify", "importance", "ablate", "by-role"),
    *("pruning-curves", "prune", "gate"),
)
"""Commands that have --resume."""


def start(words: Words, place: Path) -> subprocess.Popen[str]:
    """Start a command of headroles in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "headroles", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def main() -> None:
    """Parse the command line, kill, and print the table."""
    # What a shell runs in its background ignores SIGINT, and so would the commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=absolute, required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--task-model", type=absolute)
    parser.add_argument("--task", type=absolute)
    parser.add_argument("--examples", type=int, default=400)
    parser.add_argument("--steps", type=int, default=5, help="of prune")
    parser.add_argument("--updates", type=int, default=20, help="of gate")
    parser.add_argument("--translator", type=absolute)
    parser.add_argument("--bitext", type=Path)
    parser.add_argument("--links", type=Path)
    parser.add_argument("--links-from", default="0")
    parser.add_argument("--target-tokenizer", type=absolute)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", help="names of commands as the table has them, with commas")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        commands = all_commands(asked, folder)
        only = asked.only.split(",") if asked.only else list(commands)
        jobs = make_jobs(commands, folder, only)
        kill_at_random(jobs, folder, asked.rounds, random.Random(asked.seed))


def absolute(name: str) -> str:
    """Return the path of a folder or a file, as commands in other folders find it."""
    return str(Path(name).resolve()) if Path(name).exists() else name


# Commands


def all_commands(asked: argparse.Namespace, folder: Path) -> Commands:
    """Return all commands that the given models allow, those after others whose results they read.

    ``demo`` is missing, which classifies and reports.
    """
    commands = of_scores(asked, folder) | of_results(folder)
    if asked.task_model is not None:
        commands |= of_a_task(asked, folder)
    if asked.translator is not None:
        commands |= of_a_translator(asked, folder)
    return commands


def of_scores(asked: argparse.Namespace, folder: Path) -> Commands:
    """Return the commands that run the model over text, or look at its weights."""
    sentences = list(islice(sentence_blocks(asked.treebank), asked.sentences))
    corpus, rest = folder / "corpus.conllu", folder / "rest.conllu"
    corpus.write_text("".join(sentences), encoding="utf-8")
    rest.write_text("".join(sentences[len(sentences) // 2 :]), encoding="utf-8")
    model, text, into = asked.model, str(corpus), ("--out", OUT, "--overwrite")
    scored = (model, text, "--pairing", "adjacent", *into)
    claims = (text, "--claims", "single-heads", *into)
    changed = [str(changed_model(model, folder / f"model-{factor}", factor)) for factor in (2, 3)]
    return {
        "score": with_older("score", *scored, older=("--dtype", "bfloat16")),
        "classify": with_older("classify", *scored, older=("--dtype", "bfloat16")),
        "on the rest": with_older("classify", model, str(rest), *into, older=("--alpha", "0.01")),
        "part": with_older("score", *scored, "--part", "1/2", older=("--dtype", "bfloat16")),
        "other part": with_older("score", *scored, "--part", "2/2", older=("--dtype", "bfloat16")),
        "hits": with_older("classify", *scored, "--score", "hit", older=("--alpha", "0.01")),
        "own": with_older("score", *scored, "--roles", "confidence,entropy", older=()),
        "tokens": with_older("tokens", model, text, *into, older=("--alpha", "0.01")),
        "claims": with_older("claims", model, *claims, older=("--alpha", "0.01")),
        "claims 2": with_older("claims", changed[0], *claims, older=()),
        "claims 3": with_older("claims", changed[1], *claims, older=()),
        "redundancy": with_older("redundancy", model, *into, older=("--seed", "1")),
        "collaborate": with_older(
            "collaborate", model, "--rank", "16", *into, older=("--seed", "1")
        ),
    }


def of_results(folder: Path) -> Commands:
    """Return the commands that read results of others, which run first."""

    def of(name: str) -> str:
        return str(folder / f"{name}-new" / OUT)

    scores, older_scores, roles = of("score"), str(folder / "score-old" / OUT), of("classify")
    into, strict = ("--out", OUT, "--overwrite"), ("--alpha", "0.01")
    example = ("examples", roles, "--head", "0-1", "--role", "local")
    merged = ("merge", of("part"), of("other part"), *into)
    older_parts = (str(folder / f"{name}-old" / OUT) for name in ("part", "other part"))
    page = ("--out", "page.html")
    return {
        "merge": (merged, ("merge", *older_parts, *into)),
        "assign": with_older("assign", OUT, older=("--threshold", "2")),
        "compare": with_older("compare", scores, older_scores, *into, older=strict),
        "replicate": with_older("replicate", roles, of("on the rest"), *into, older=strict),
        "power": with_older("power", roles, *into, older=strict),
        "best": with_older("best", of("hits"), *into, older=strict),
        "describe": with_older("describe", of("own"), *into, older=strict),
        "examples": with_older(*example, *into, older=("--n", "2")),
        "combine-claims": with_older(
            *("combine-claims", of("claims"), of("claims 2"), of("claims 3"), *into), older=strict
        ),
        "export": with_older("export", roles, "--out", "table.csv", older=("--only-assigned",)),
        "figure": with_older("figure", roles, "--out", "figure.pdf", older=("--title", "older")),
        "report": (("report", roles, *page), ("report", of("on the rest"), *page)),
    }


def of_a_task(asked: argparse.Namespace, folder: Path) -> Commands:
    """Return the studies of removed heads."""
    subjects = (asked.task_model, asked.task)
    into = ("--examples", str(asked.examples), "--out", OUT, "--overwrite")
    roles = ("--roles-from", str(folder / "roles-new" / OUT), "--draws", "2")
    text = str(folder / "corpus.conllu")
    curves = ("--test", asked.task, "--draws", "5")
    estimated = ("--share", "0.5", "--order", "reestimated", "--steps", str(asked.steps))
    learned = ("--keep", "12", "--seeds", "2", "--updates", str(asked.updates))
    tables = tuple(str(folder / f"{name}-new" / OUT) for name in ("heads", "other heads"))
    other = str(changed_model(asked.task_model, folder / "task-model-2", 2))
    seed = ("--seed", "1")
    return {
        "roles": with_older(
            "classify", asked.task_model, text, "--out", OUT, "--overwrite", older=()
        ),
        "importance": with_older("importance", *subjects, *into, older=("--normalisation", "l2")),
        "ablate": with_older(
            "ablate", *subjects, *into, "--sets", "layers", older=("--alpha", "0.01")
        ),
        "heads": with_older("ablate", *subjects, *into, older=()),
        "other heads": with_older("ablate", other, asked.task, *into, older=()),
        "by-role": with_older("by-role", *subjects, *into, *roles, older=seed),
        "by-task": with_older(
            "by-task", *tables, "--out", OUT, "--overwrite", older=("--alpha", "0.01")
        ),
        "curves": with_older("pruning-curves", *subjects, *into, *curves, older=seed),
        "prune": with_older("prune", *subjects, *into, *estimated, older=("--steps", "2")),
        "gate": with_older("gate", *subjects, *into, *learned, older=("--seed", "5")),
        "trained": with_older(
            "gate", *subjects, *into, *learned, "--weights", "trained", older=("--seed", "5")
        ),
    }


def of_a_translator(asked: argparse.Namespace, folder: Path) -> Commands:
    """Return the commands over a bitext; two of them write links beside their results."""
    bitext = str(first_lines(asked.bitext, asked.pairs, folder / "pairs.bitext"))
    links = ("--links", str(first_lines(asked.links, asked.pairs, folder / "gold.links")))
    by_hand = (*links, "--links-from", asked.links_from)
    target = ("--target-tokenizer", asked.target_tokenizer) if asked.target_tokenizer else ()
    into, strict = ("--out", OUT, "--overwrite"), ("--alpha", "0.01")
    written = (*into, "--write-links", "pairs.links")
    forward, backward = (str(folder / f"align-{age}" / "pairs.links") for age in ("new", "old"))
    directions = ("--forward", forward, "--backward", backward)
    subjects = (asked.translator, bitext, *target)
    shrunk = ("--share", "0.5", "--steps", "2", "--order", "reestimated")
    learned = ("--keep", "12", "--seeds", "1", "--updates", "3")
    return {
        "align": with_older("align", *subjects, *by_hand, *written, older=("--top", "2")),
        "symmetrize": with_older(
            *("symmetrize", bitext, *by_hand, *directions, *written),
            older=("--by", "union"),
        ),
        "cross": with_older(
            *("classify", *subjects, *by_hand, "--attention", "cross", *into), older=strict
        ),
        "prune across": with_older("prune", *subjects, *into, *shrunk, older=("--steps", "1")),
        "gate across": with_older("gate", *subjects, *into, *learned, older=("--seed", "5")),
    }


GIVEN = (
    *("on the rest", "other part", "hits", "own", "claims 2", "claims 3"),
    *("roles", "heads", "other heads"),
)
"""Names of commands that others need and that are not killed: the same command is, elsewhere."""


def with_older(*words: str, older: Words) -> tuple[Words, Words]:
    """Return a command, and the one of older results, which has other arguments beside."""
    return words, (*words, *older)


def changed_model(model: str, place: Path, factor: int) -> Path:
    """Copy a model with the weights of its query projections multiplied by ``factor``."""
    shutil.copytree(model, place)
    for file in place.glob("*.safetensors"):
        changed = {
            name: factor * weights if "query" in name else weights
            for name, weights in load_file(file).items()
        }
        save_file(changed, file, {"format": "pt"})
    return place


def first_lines(file: Path, n_lines: int, place: Path) -> Path:
    """Write the first lines of a file to a place, and return it."""
    with file.open(encoding="utf-8") as lines:
        place.write_text("".join(islice(lines, n_lines)), encoding="utf-8")
    return place


# Undisturbed runs


def make_jobs(commands: Commands, folder: Path, only: list[str]) -> list[Job]:
    """Run each command twice undisturbed: for the older results and for the new ones."""
    jobs = []
    for name in needed(commands, folder, only):
        arguments, older = commands[name]
        job = Job(name, arguments, folder / f"{name}-old", folder / f"{name}-new", 0.0)
        if name == "assign":
            shutil.copytree(folder / "classify-new", job.old)
        job.old.mkdir(exist_ok=True)
        if older != arguments:
            run(older, job.old)
        shutil.copytree(job.old, job.new)
        began = time.perf_counter()
        run(arguments, job.new)
        if name in only and name not in GIVEN:
            jobs.append(replace(job, seconds=time.perf_counter() - began))
    return jobs


def needed(commands: Commands, folder: Path, only: list[str]) -> list[str]:
    """Return the names of ``only`` and of those whose results they read, in the order of all."""
    names = set(only)
    for name in reversed(commands):  # those that read results come after these
        if name in names:
            words = [word for command in commands[name] for word in command]
            names |= {
                other
                for other in commands
                for which in ("old", "new")
                if any(word.startswith(str(folder / f"{other}-{which}")) for word in words)
            }
            names |= {"classify"} if name == "assign" else set()
    return [name for name in commands if name in names]


def run(words: Words, place: Path) -> None:
    """Run a command undisturbed. Raises RuntimeError with its message if it fails."""
    with start(words, place) as process:
        message = process.communicate()[1]
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {message}")


# Killed runs


def kill_at_random(jobs: list[Job], folder: Path, rounds: int, chance: random.Random) -> None:
    """Print a line for each moment, and how many went well."""
    print(f"{'command':14} {'signal':8} {'after, s':>9} {'ended, s':>9} {'code':>5}  kept  resumed")
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for job, name, is_at_change in moments(jobs, rounds):
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(job.old, out)
        killed = kill_one(job, out, name, is_at_change, chance)
        kept = state_of(out, job)
        parts = parts_in(out / OUT).count
        with start(job.resumed, out) as again:
            message = again.communicate()[1]
        other = [one for one in job.outputs if differences(out / one, job.new / one)]
        same = again.returncode == 0 and not other
        print(
            f"{job.name:14} {name:8} {killed.after:9.2f} {killed.ended:9.2f} {killed.code:5}  "
            f"{kept}, {parts} parts  {'same' if same else f'DIFFERENT {other} {message[-300:]}'}",
            flush=True,
        )
        slowest = max(slowest, killed.ended) if killed.code not in (0, -9) else slowest
        outcomes[judged(killed, name, kept, same)] += 1
    print(f"{dict(outcomes)}; slowest end {slowest:.2f} s")


def moments(jobs: list[Job], rounds: int) -> Iterator[tuple[Job, str, bool]]:
    """Yield a command, a signal, and whether it comes when the first file has changed."""
    for number in range(rounds):
        for name in SIGNALS:
            for job in jobs:
                yield job, name, number % 2 == 1


@dataclass(frozen=True)
class Killed:
    """A killed run: seconds before the signal and from it to the end, exit code, message."""

    after: float
    ended: float
    code: int
    message: str


def kill_one(job: Job, out: Path, name: str, is_at_change: bool, chance: random.Random) -> Killed:
    """Start a command, send it a signal, and wait for its end."""
    before, began = files_in(out), time.perf_counter()
    with start(job.arguments, out) as process:
        if is_at_change:
            while process.poll() is None and files_in(out) == before:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, LONGEST_DELAY))
        else:
            time.sleep(chance.uniform(0, job.seconds))
        sent = time.perf_counter()
        process.send_signal(getattr(signal, name))
        message = process.communicate()[1]
        return Killed(sent - began, time.perf_counter() - sent, process.returncode, message)


def files_in(out: Path) -> set[tuple[str, int]]:
    """Return all files with their inodes, locks aside."""
    found = set()
    for file in out.rglob("*"):
        try:
            if file.name != "lock" and file.is_file():
                found.add((str(file), file.stat().st_ino))
        except FileNotFoundError:  # meanwhile
            continue
    return found


def state_of(out: Path, job: Job) -> str:
    """Tell whether what is in ``out`` is old or new; of a command that writes two things, each."""
    states = [state_of_output(out, job, output) for output in job.outputs]
    return "BROKEN" if "BROKEN" in states else " and ".join(dict.fromkeys(states))


def state_of_output(out: Path, job: Job, output: str) -> str:
    """Tell whether a folder of results or a file in ``out`` is the old or the new one."""
    place = committed(out / output) if output == OUT else out / output
    for name, folder in (("old", job.old), ("new", job.new)):
        if not differences(place, folder / output):
            return name
    return "BROKEN"


def judged(killed: Killed, name: str, kept: str, same: bool) -> str:
    """Return the verdict in a word or two."""
    if kept == "BROKEN" or not same:
        return "BROKEN"
    if killed.code == 0:
        return "was done already"
    said = killed.message.count("interrupted")
    if killed.code == CODES[name] and (name == "SIGKILL" or said == 1):
        return "as it should be"
    if killed.code in (NOT_YET_HANDLED, -15):
        return "while Python itself was starting"
    return f"code {killed.code} and {killed.message[-200:]!r}"


# Comparison


def differences(one: Path, other: Path) -> list[str]:
    """Return names of result files that differ between both folders."""
    names = {
        file.relative_to(folder)
        for folder in (one, other)
        for file in (folder, *folder.rglob("*"))
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
