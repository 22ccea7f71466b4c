"""Cost of opening a corpus: one pass over CoNLL-U of many words.

python -m benchmarks.reading --treebank FILE [--words 1000000 100000000]

The corpus repeats the treebank under other names of sentences and documents. A new process opens
each corpus as `headroles score` does: it checks and counts sentences and stores them to read them
again. The memory is the peak of the process above its memory before.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.memory import repeated, sentence_blocks

WORDS = (1_000_000, 100_000_000)
CHILD = """
import json, sys, time
import torch
from benchmarks.memory import forget_peak, peak_memory
from headroles.cli import console
from headroles.corpus import prepared, read_conllu
with console.progress_bar("scoring") as on_progress:
    corpus, cpu = console.watched(read_conllu(sys.argv[1]), on_progress), torch.device("cpu")
    forget_peak(cpu)
    before, start = peak_memory(cpu), time.perf_counter()
    with prepared(corpus) as opened:
        seconds, peak = time.perf_counter() - start, peak_memory(cpu)
        found = {"words": opened.record.words, "sentences": opened.record.sentences}
print(json.dumps({**found, "seconds": seconds, "MiB": peak - before}))
"""


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--words", type=int, nargs="+", default=WORDS)
    arguments = parser.parse_args()
    for n_words in arguments.words:
        with tempfile.TemporaryDirectory() as folder:
            measure(arguments.treebank, n_words, Path(folder) / "corpus.conllu")


def measure(treebank: Path, n_words: int, corpus: Path) -> None:
    """Print the cost of opening so many words, and a few more to the end of their sentence."""
    blocks = sentence_blocks(treebank)
    with corpus.open("w", encoding="utf-8") as file:
        for block in repeated(blocks):
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


if __name__ == "__main__":
    main()
