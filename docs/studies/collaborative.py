"""Costs of shared queries and keys for a fine-tuned model, beside those of pruned heads.

python -m docs.studies.collaborative --model DIR --sst2 DIR --order-on FILE --sample FILE --out DIR
    [--shares 1 0.75 0.5 0.333] [--methods shared unweighted per-head] [--pruned 0.17 0.33 0.5]
    [--sentences 800]

The model is one that was fine-tuned on SST-2. Its queries and keys are factorised at each share of
the full rank: shared factors fitted to the inputs in a sample, shared factors fitted to the weights
alone, factors per head. Beside them stand models that lost a share of their heads, the least
important ones for 200 phrases of ``--order-on``. The table has for each model its cost (parameters
of the encoder, multiplications and processor time of a pass, as shares of the original's), the
error of scores and the divergence of attention on the held-out part of the sample, and accuracy and
loss on the development sentences, before and after fine-tuning on ``--sentences`` sentences; the
original is fine-tuned too. The table is printed row by row, and written to DIR/table.md.
docs/evidence/sharing.md has the results.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import set_seed

from benchmarks.speeds import seconds_of
from docs.studies.fine_tuning import (
    Recipe,
    be_silent,
    choose_balanced,
    encode,
    make_trainer,
    read_sst2,
)
from docs.studies.simulations import markdown
from headroles import read_conllu, storage
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.models.loading.encoder import LoadedModel, load_encoder
from headroles.models.options import PER_HEAD, SHARED, ModelOptions
from headroles.models.shared.factorisation import InputMoments, factorise, score_error
from headroles.models.shared.sites import Site, find_sites, install
from headroles.passes.loop import ExampleBatch, Passes
from headroles.studies.pruning.orders import choose_heads
from headroles.studies.pruning.prune import PruneOptions
from headroles.studies.removals import n_parameters
from headroles.studies.sharing.collaborate import (
    LENGTHS,
    CollaborateOptions,
    divergences,
    moments_of,
    read_sample,
)
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run

UNWEIGHTED = "unweighted"


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "sst2", "order-on", "sample", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 3 / 4, 1 / 2, 1 / 3])
    parser.add_argument("--methods", nargs="*", default=[SHARED, UNWEIGHTED, PER_HEAD])
    parser.add_argument("--pruned", type=float, nargs="*", default=[1 / 6, 1 / 3, 1 / 2])
    parser.add_argument("--sentences", type=int, default=800)
    given = parser.parse_args()
    be_silent()
    study = Study.of(given)
    rows = [{"model": "original", **study.task_of(study.original)}]
    show(rows, given.out)
    made = (study.pruned(given.pruned), study.factorised(given.methods, given.shares))
    for row in chain.from_iterable(made):
        rows.append(row)
        show(rows, given.out)


@dataclass(frozen=True)
class Study:
    """The original, and all that others are made from and measured with."""

    given: argparse.Namespace
    original: Any
    encoder: LoadedModel
    sites: tuple[Site, ...]
    held_out_text: Passes[ExampleBatch]
    learnt: tuple[InputMoments, ...]
    held_out: tuple[InputMoments, ...]

    @classmethod
    def of(cls, given: argparse.Namespace) -> Study:
        """Load the model, and collect the moments of its inputs once for all factors."""
        whole = load_encoder(given.model, head=None)
        original = whole.model
        encoder = load_encoder(original, ModelOptions(tokenizer=whole.tokenizer))
        sites = find_sites(whole.stack)
        parts = read_sample(encoder, read_conllu(given.sample), CollaborateOptions(rank=1))[:2]
        learnt, held_out = (moments_of(whole.stack, sites, part) for part in parts)
        return cls(given, original, encoder, sites, parts[1], learnt, held_out)

    def factorised(self, methods: list[str], shares: list[float]) -> Iterator[dict[str, Any]]:
        """Yield rows of models whose queries and keys have these shares of the full rank."""
        for method, share in product(methods, shares):
            if share < 1 or method == SHARED:  # at full rank all are the original
                yield self._factorised(method, share)

    def _factorised(self, method: str, share: float) -> dict[str, Any]:
        made = copy.deepcopy(self.original)
        heads, size, _ = self.sites[0].maps.query.shape
        rank = round(share * size) * heads  # which heads can share out evenly
        found, start = [], time.process_time()
        for site, seen in zip(self.sites, self.learnt, strict=True):
            plain = InputMoments.none(site.maps.query.shape[2])
            kind = PER_HEAD if method == PER_HEAD else SHARED
            factors = factorise(site.maps, plain if method == UNWEIGHTED else seen, rank, kind)
            install(made, site, factors)
            found.append(factors)
        seconds = (time.process_time() - start) / len(self.sites)
        off = [
            score_error(site.maps, factors, unseen)
            for site, factors, unseen in zip(self.sites, found, self.held_out, strict=True)
        ]
        diverged = divergences(find_stack(self.original), find_stack(made), self.held_out_text)
        return {
            "model": f"{method}, rank {found[0].rank}",
            **self.cost_of(made),
            "s a layer": seconds,
            "score error": float(np.mean(off)),
            "divergence": float(diverged.mean()),
            **self.task_of(made),
        }

    def pruned(self, shares: list[float]) -> Iterator[dict[str, Any]]:
        """Yield rows of models without these shares of their heads."""
        heads = find_stack(self.original).heads
        numbers = [round(share * len(heads)) for share in shares]
        options = PruneOptions(keep=1, examples=200, tokenizer=self.encoder.tokenizer)
        run = open_run(self.original, self.given.order_on, options)
        order = choose_heads("importance", max(numbers, default=0), heads, options, run)
        for number in numbers:
            made = copy.deepcopy(self.original)
            remove_heads(made, order[:number])
            name = f"without {number} of {len(heads)} heads"
            yield {"model": name, **self.cost_of(made), **self.task_of(made)}

    def cost_of(self, made: Any) -> dict[str, float]:
        """Return parameters, multiplications and time of the encoder, over the original's."""
        sizes = [n_parameters(find_stack(model).base) for model in (made, self.original)]
        row = {"parameters": sizes[0] / sizes[1]}
        for tokens in LENGTHS:
            row[f"mult. {tokens}"] = _products(made, tokens) / _products(self.original, tokens)
        for tokens in (one for one in LENGTHS if one <= self.encoder.max_tokens):
            inputs = self.encoder.tokenizer.pad({"input_ids": [[5] * tokens]}, return_tensors="pt")
            passes = [partial(find_stack(one).base, **inputs) for one in (self.original, made)]
            before, after = np.min([[seconds_of(one) for one in passes] for _ in range(3)], axis=0)
            row[f"time {tokens}"] = after / before
        return row

    def task_of(self, made: Any) -> dict[str, float]:
        """Return accuracy and loss of the model, and of a copy after some fine-tuning."""
        trained = fine_tuned(made, self.encoder.tokenizer, self.given)
        options = TaskOptions(tokenizer=self.encoder.tokenizer)
        row = {}
        for when, model in (("", made), (" again", trained)):
            run = open_run(model, self.given.sst2 / "dev.tsv", options)
            found = run.measure(run.outcomes_unmasked())
            row |= {f"{name}{when}": found[name] for name in ("accuracy", "loss")}
        return row


def _products(model: Any, tokens: int) -> int:
    """Count the operations of the matrix products of a pass over one sequence."""
    counted = copy.deepcopy(model)
    counted.set_attn_implementation("eager")  # whose products are counted one by one
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        counted.base_model(input_ids=torch.full((1, tokens), 9))
    return counter.get_total_flops()


def fine_tuned(model: Any, tokenizer: Any, given: argparse.Namespace) -> Any:
    """Train a copy of the model on some sentences, once."""
    set_seed(1)
    model = copy.deepcopy(model)
    chosen = choose_balanced(read_sst2(given.sst2).train, given.sentences)
    make_trainer(
        model,
        tokenizer,
        encode(chosen, tokenizer, Recipe.max_tokens),
        output_dir=str(given.out),
        num_train_epochs=1,
        learning_rate=5e-5,
        per_device_train_batch_size=32,
        warmup_steps=3,
        seed=1,
    ).train()
    return model.eval()


def show(rows: list[dict[str, Any]], out: Path) -> None:
    """Print the last row, and keep the table."""
    cells = [
        {
            name: (f"{cell:.3f}" if np.isfinite(cell) else "") if isinstance(cell, float) else cell
            for name, cell in row.items()
        }
        for row in rows
    ]
    out.mkdir(parents=True, exist_ok=True)
    storage.write_bytes(out / "table.md", f"{markdown(cells)}\n".encode())
    print(markdown(cells[-1:]), flush=True)


if __name__ == "__main__":
    main()
