"""Peak memory of scoring: on a small and on larger corpora, and at the longest inputs.

python -m benchmarks.memory --model DIR --treebank FILE [--sentences 900 9000]

Each figure is the peak resident memory of a process of its own, in MiB. A corpus of more sentences
than the treebank has repeats it, under other names of sentences and documents. The long inputs are
8 examples of 512 tokens in one batch, beside an eager forward pass over the same inputs; there the
growth over the loaded model is given too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import torch

SENTENCES = (900, 9000)
LONG_EXAMPLES = 8
LONG_SENTENCE = 254  # words of one piece each: two of them and the special tokens make 511


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--sentences", type=int, nargs="+", default=SENTENCES)
    arguments = parser.parse_args()
    measure_memory(arguments.model, arguments.treebank, arguments.sentences)


def measure_memory(model: str, treebank: Path, sentences: Sequence[int] = SENTENCES) -> None:
    """Print both comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        compare_sizes(model, treebank, sentences, Path(folder))
        compare_with_forward(model, Path(folder))


def compare_sizes(model: str, treebank: Path, sentences: Sequence[int], folder: Path) -> None:
    """Print the memory of `headroles score` on so many sentences, beside the first size."""
    peaks: list[float] = []
    for n in sentences:
        part = folder / f"{n}.conllu"
        with part.open("w", encoding="utf-8") as file:
            file.writelines(islice(repeated(sentence_blocks(treebank)), n))
        command = ["-m", "headroles", "score", model, str(part), "--out", f"{folder}/{n}"]
        peaks.append(peak_of(command))
        ratio = peaks[-1] / peaks[0]
        print(f"score, {n} sentences: {peaks[-1]:.0f} MiB, ratio {ratio:.3f}", flush=True)


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


def compare_with_forward(model: str, folder: Path) -> None:
    """Print the memory of scoring long inputs, beside an eager forward pass over them."""
    treebank = folder / "long.conllu"
    treebank.write_text("".join(long_sentence(k) for k in range(2 * LONG_EXAMPLES)))
    figures = {}
    for job in ("forward", "score"):
        command = [sys.executable, "-c", CHILD, job, model, str(treebank)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        figures[job] = json.loads(output)
        print(
            f"{job}, {LONG_EXAMPLES} x {figures[job]['tokens']} tokens: "
            f"{figures[job]['peak']:.0f} MiB, {figures[job]['growth']:.0f} over the loaded model"
        )
    for name in ("peak", "growth"):
        print(f"  ratio of {name} {figures['score'][name] / figures['forward'][name]:.3f}")


def long_sentence(number: int) -> str:
    """Write a flat tree of many words, all depending on the first."""
    rows = [f"# sent_id = long-{number}"]
    rows += [
        f"{k}\tthe\tthe\tDET\t_\t_\t{int(k > 1)}\t{'nsubj' if k > 1 else 'root'}\t_\t_"
        for k in range(1, LONG_SENTENCE + 1)
    ]
    return "\n".join(rows) + "\n\n"


def forget_peak(device: torch.device) -> None:
    """Start anew to watch the peak memory of this process or of the device."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> float:
    """Return the peak resident memory of this process, or that of the device, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def peak_of(arguments: list[str]) -> float:
    """Return the peak resident memory of a Python process, in MiB."""
    watcher = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", watcher, sys.executable, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


CHILD = """
import json, sys
from pathlib import Path
import torch
from benchmarks.memory import forget_peak, peak_memory
from headroles.corpus import prepared, read_conllu
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from benchmarks.speed import make_batches
job, model, treebank = sys.argv[1:]
budget = 8 * 512 * 512 // 64  # of long examples the budget takes fewer
encoder = load_encoder(model, ModelOptions(device="cpu"))
with prepared(read_conllu(treebank)) as corpus:
    (batch,) = make_batches(encoder, corpus, budget)
    forget_peak(encoder.device)
    before = peak_memory(encoder.device)
    if job == "forward":
        encoder.model.set_attn_implementation("eager")
        with torch.inference_mode():
            encoder.model(**batch)
    else:
        with open_reader(encoder.model) as reader:
            run = ScoringRun(encoder, reader, corpus, ScoreOptions(batch_tokens=budget))
            list(run.blocks())
    tokens = batch["input_ids"].shape[1]
    peak = peak_memory(encoder.device)
    print(json.dumps({"peak": peak, "growth": peak - before, "tokens": tokens}))
"""


if __name__ == "__main__":
    main()
