"""Speed beyond which a device waits for the host, measured without a device.

python -m benchmarks.device --models DIR [DIR ...] --treebank FILE [--rounds 5]

What the host does for every window of examples, on one thread, in milliseconds of processor time:

prepare   examples read again, cut into pieces, sieves built, inputs made
launch    the encoder's forward pass with the attention read and contracted, layer by layer
fetch     the numbers read -> a block of scores
plain     the forward pass alone, attention by SDPA: the cost of any use of the model

Launching is timed on the CPU with as little arithmetic as possible, so that it measures Python and
the dispatch of operations: a model of the same family, layers and heads, of head size 2 and random
weights, and two examples of a few words instead of a window. The batches are those of a device,
65,536 tokens at most. Preparing has its own thread, which overlaps with the rest or takes turns
with it at the interpreter: a device that takes longer for a window than the sum of all three never
waits, and one that takes less than the longer of both threads does.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, BertConfig, PreTrainedModel

from headroles.corpus import PreparedCorpus, prepared, read_conllu
from headroles.encoding import ExampleEncoder
from headroles.models.attention.reader import open_reader
from headroles.models.loading.encoder import LoadedEncoder, load_encoder
from headroles.models.options import ModelOptions
from headroles.passes.loop import Budget
from headroles.scoring.block_scoring import BlockScorer, Launched, PreparedBatch
from headroles.scoring.options import ScoreOptions
from headroles.scoring.run import ScoringRun
from headroles.scoring.scores import Counts
from headroles.scoring.windows import windows_of

WINDOWS, EXAMPLES, BATCH_TOKENS, SHORTEST = 4, 192, 65536, 12
JOBS: dict[str, dict[str, Any]] = {"default": {}, "all": {"relations": "all"}}
LARGE = BertConfig(vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16)
"""What BERT-large is made of."""
HEADER = (
    f"{'model':14} {'roles':8} {'prepare':>8} {'launch':>8} {'fetch':>8} {'plain':>8}"
    f"  {'sentences/s':>16} {'tokens/s':>19}"
)


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"milliseconds a window of the host, median of {arguments.rounds}", HEADER, sep="\n")
    shapes = {Path(one).name: (one, AutoConfig.from_pretrained(one)) for one in arguments.models}
    shapes["BERT-large"] = (arguments.models[0], LARGE)
    with prepared(read_conllu(arguments.treebank)) as corpus:
        for name, (tokenizer, config) in shapes.items():
            options = ModelOptions(tokenizer=tokenizer, device="cpu")
            encoder = load_encoder(narrow(config), options)
            for job in JOBS:
                measure(name, job, encoder, corpus, arguments.rounds)


def narrow(config: Any) -> PreTrainedModel:
    """Make a model with as many layers and heads, and as little to compute as possible."""
    small = type(config).from_dict(config.to_dict())
    small.hidden_size, small.intermediate_size = 2 * config.num_attention_heads, 8
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModel.from_config(small, attn_implementation="eager")
    return model.eval()


def measure(
    name: str, job: str, encoder: LoadedEncoder, corpus: PreparedCorpus, rounds: int
) -> None:
    """Print the row of a model and a choice of roles."""
    options = ScoreOptions(batch_tokens=BATCH_TOKENS, **JOBS[job])
    with open_reader(encoder.model) as reader:
        run = ScoringRun(encoder, reader, corpus, options)
        scorer = BlockScorer(encoder, reader, run.roles, run.score, Budget(BATCH_TOKENS))
        blocks = prepare(encoder, scorer, corpus)
        examples = [one for block in blocks for batch in block for one in batch.known.examples]
        small = sorted((one for one in examples if len(one) >= SHORTEST), key=len)[:2]
        read = [as_if_read(block, reader.n_layers, reader.n_heads) for block in blocks]
        n_batches = sum(map(len, blocks))
        times = {
            "prepare": typical(lambda: prepare(encoder, scorer, corpus), rounds),
            "launch": typical(lambda: scorer.launch(small, lambda _: None), rounds) * n_batches,
            "fetch": typical(lambda: [scorer.fetch(one, Counts()) for one in read], rounds),
        }
    inputs = scorer.prepare(small, [0, 1]).inputs
    plain = typical(lambda: run_plainly(encoder, inputs), rounds) * n_batches
    together, apart = sum(times.values()), max(times["prepare"], times["launch"] + times["fetch"])
    n_sentences = sum(len(example.sentences) for example in examples)
    n_tokens = sum(map(len, examples))
    milliseconds = "".join(f"{1000 * one / WINDOWS:9.1f}" for one in (*times.values(), plain))
    rates = [f"{n / together:,.0f} - {n / apart:,.0f}" for n in (n_sentences, n_tokens)]
    print(f"{name:14} {job:7}{milliseconds}  {rates[0]:>16} {rates[1]:>19}", flush=True)


def prepare(
    encoder: LoadedEncoder, scorer: BlockScorer, corpus: PreparedCorpus
) -> list[list[PreparedBatch]]:
    """Prepare the batches of the first windows, as the threads that run ahead do."""
    cutter = ExampleEncoder(encoder.tokenizer, encoder.max_tokens, encoder.takes_token_types)
    blocks = []
    for window in islice(windows_of(corpus, "adjacent", EXAMPLES), WINDOWS):
        examples = cutter.encode(window.examples, Counter())
        parts = Budget(BATCH_TOKENS).batches([len(one) for one in examples])
        blocks.append([scorer.prepare(examples, indices) for indices in parts])
    return blocks


def as_if_read(block: list[PreparedBatch], n_layers: int, n_heads: int) -> list[Launched]:
    """Return the batches with arbitrary scores."""
    read: list[Launched] = []
    for batch in block:
        n_columns = max(batch.known.columns) + 1
        values = np.ones((len(batch.indices), n_layers, n_heads, n_columns), dtype=np.float32)
        read.append((batch.indices, batch.known, values.copy))
    return read


def run_plainly(encoder: LoadedEncoder, inputs: dict[str, Tensor]) -> None:
    """Run the forward pass of transformers."""
    with torch.inference_mode():
        encoder.model(**inputs)


def typical(work: Callable[[], object], rounds: int) -> float:
    """Return the median of the seconds of processor time."""
    times = []
    for _ in range(rounds + 1):  # the first warms up
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times[1:])


if __name__ == "__main__":
    main()
