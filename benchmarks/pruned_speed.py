"""Speed of models without some of their heads.

python -m benchmarks.pruned_speed --model DIR [--shares 0 0.25 0.5 0.75 0.83] [--batches 1 32]
    [--lengths 32 128] [--order random] [--rounds 15] [--threads 1]

A row for each batch size, length of the texts in tokens, and share of the heads that are removed:

multiplications   the share of the multiplications of matrices (all layers, attention included) that
                  are saved
texts/s           of the model without these heads, the median over the rounds
ratio             the texts of it in the time of one of the full model: median, first and last
                  quartile over the rounds

In a round the full model and all others take turns, each of them between two passes of the full one
that it is compared with, so that a machine that slows down slows both. A copy with no head removed
is compared in the same way: its ratio shows the noise. Inputs are random tokens, without padding.
"""

from __future__ import annotations

import argparse
import time
from copy import deepcopy
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from headroles.models.heads.surgery import heads_of, remove_heads
from headroles.models.loading.encoder import load_model
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions

_SECONDS = 0.05
"""A timing takes so long at least: as many passes as that needs."""


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=[0, 0.25, 0.5, 0.75, 0.83])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--lengths", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--order", default="random", help="one that needs no task")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    full = load_model(given.model)
    models = {share: without_share(full, share, given.order) for share in given.shares}
    rows = []
    for batch, length in product(given.batches, given.lengths):
        ids = torch.randint(5, full.config.vocab_size, (batch, length))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        rows += compare(full, models, inputs, given.rounds)
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))


def without_share(full: PreTrainedModel, share: float, order: str) -> PreTrainedModel:
    """Copy a model without this share of its heads."""
    heads, pruned = heads_of(full), deepcopy(full)
    remove_heads(
        pruned, choose_heads(order, round(share * len(heads)), heads, PruneOptions(keep=1))
    )
    return pruned.eval()


def compare(
    full: PreTrainedModel,
    models: dict[float, PreTrainedModel],
    inputs: dict[str, Tensor],
    rounds: int,
) -> list[dict[str, str]]:
    """Return a row for each model."""
    batch, length = inputs["input_ids"].shape
    n_passes = max(1, round(_SECONDS / min(seconds_of(full, inputs, 1) for _ in range(3))))
    seconds = {share: np.empty(rounds) for share in models}
    ratios = {share: np.empty(rounds) for share in models}
    for number in range(rounds):
        before = seconds_of(full, inputs, n_passes)
        for share, model in models.items():
            own = seconds_of(model, inputs, n_passes)
            after = seconds_of(full, inputs, n_passes)
            seconds[share][number], ratios[share][number] = own, (before + after) / 2 / own
            before = after
    whole = multiplications(full, inputs)
    rows = []
    for share, model in models.items():
        low, middle, high = np.quantile(ratios[share], [0.25, 0.5, 0.75])
        rows.append(
            {
                "batch x tokens": f"{batch} x {length}",
                "heads removed": f"{share:.0%}",
                "weights left": f"{n_weights(model) / n_weights(full):.0%}",
                "multiplications saved": f"{1 - multiplications(model, inputs) / whole:.0%}",
                "texts/s": f"{batch / np.median(seconds[share]):.4g}",
                "ratio": f"{middle:.2f} ({low:.2f} to {high:.2f})",
            }
        )
    return rows


def seconds_of(model: PreTrainedModel, inputs: dict[str, Tensor], n_passes: int) -> float:
    """Return the seconds of one of ``n_passes``."""
    with torch.inference_mode():
        start = time.perf_counter()
        for _ in range(n_passes):
            model(**inputs)
        return (time.perf_counter() - start) / n_passes


def multiplications(model: PreTrainedModel, inputs: dict[str, Tensor]) -> int:
    """Count the multiplications of matrices in one pass."""
    counter, counted = FlopCounterMode(display=False), deepcopy(model)
    counted.set_attn_implementation("eager")  # the counter does not look into SDPA on a CPU
    with torch.inference_mode(), counter:
        counted(**inputs)
    return counter.get_total_flops() // 2


def n_weights(model: PreTrainedModel) -> int:
    """Count the weights of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


if __name__ == "__main__":
    main()
