"""What shared queries and keys cost a fine-tuned model: scores, attention, roles, and its task.

python -m docs.studies.collaborative --model DIR --sst2 DIR --sample FILE --treebank FILE
    --out DIR [--sentences 2000]

The model is one that was fine-tuned on SST-2. It is re-parametrised at 1, 3/4, 1/2 and 1/3 of its
full rank, with shared factors and with factors per head, and once with shared factors fitted to
the weights alone; ``--sample`` weights the factors and has the text held out. Of each model the
accuracy is measured, its roles over ``--treebank`` are compared with those of the original, and
it is fine-tuned again on some sentences, as is the original. The table is printed, and written
to DIR/table.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

from docs.studies.fine_tuning import (
    Recipe,
    Task,
    accuracy,
    choose_balanced,
    encode,
    markdown,
    predict,
    read_sst2,
)
from headroles import assign_roles, collaborate_heads, read_conllu, score_heads, storage
from headroles.models import ModelOptions, load_whole

SHARES = (1, 3 / 4, 1 / 2, 1 / 3)
RUNS = [
    *(("shared", "inputs", share) for share in SHARES),
    ("shared", "none", 1 / 2),
    *(("per-head", "inputs", share) for share in SHARES[1:]),
]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "sst2", "sample", "treebank", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=2000)
    given = parser.parse_args()
    torch.set_num_threads(Recipe.threads)
    logging.disable_progress_bar()
    task = read_sst2(given.sst2)
    original, tokenizer = load_whole(given.model, ModelOptions())
    full = original.config.hidden_size
    kept = roles_of(original, tokenizer, given.treebank)
    rows = [{"factors": "original", "rank": full, **task_of(original, tokenizer, task, given)}]
    show(rows, given.out)
    for method, weighting, share in RUNS:
        made, table = collaborate_heads(
            given.model,
            read_conllu(given.sample),
            rank=int(full * share),
            method=method,
            weighting=weighting,
        )
        roles = roles_of(made.model, tokenizer, given.treebank)
        means = table.frame.mean(numeric_only=True)
        passes = {row["tokens"]: row for row in table.whole["passes"]}
        rows.append(
            {
                "factors": method + (", by weights" if weighting == "none" else ""),
                "rank": int(full * share),
                "q and k parameters": means["parameters"] / means["parameters_before"],
                "score error": means["score_error_held_out"],
                "divergence": means["divergence_held_out"],
                "s a layer": means["seconds"],
                **{f"time {n}": passes[n]["time"] for n in (32, 128, 512) if n in passes},
                "roles kept": len(kept & roles) / len(kept),
                "roles gained": len(roles - kept) / len(kept),
                **task_of(made.model, tokenizer, task, given),
            }
        )
        show(rows, given.out)


def roles_of(model: Any, tokenizer: Any, treebank: Path) -> set[tuple[int, int, str]]:
    """(layer, head, role) of all roles that are assigned."""
    scores = score_heads(
        model, read_conllu(treebank), score="excess", beyond_offset=False, tokenizer=tokenizer
    )
    rows = assign_roles(scores).assigned
    return set(zip(rows["layer"], rows["head"], rows["role"], strict=True))


def task_of(model: Any, tokenizer: Any, task: Task, given: Any) -> dict[str, float]:
    """Accuracy as it is, and after some sentences of fine-tuning; leaves the model trained."""
    set_seed(1)
    chosen = choose_balanced(task.train, given.sentences)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(given.out),
            num_train_epochs=1,
            learning_rate=5e-5,
            per_device_train_batch_size=32,
            warmup_steps=6,
            train_sampling_strategy="group_by_length",
            seed=1,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=encode(chosen, tokenizer, Recipe.max_tokens),
        processing_class=tokenizer,
    )
    trainer.remove_callback(PrinterCallback)
    dev = encode(task.dev, tokenizer, Recipe.max_tokens)
    before = accuracy(*predict(trainer, dev))
    trainer.train()
    return {"accuracy": before, "trained again": accuracy(*predict(trainer, dev))}


def show(rows: list[dict[str, Any]], out: Path) -> None:
    """Print the table so far, and keep it."""
    frame = pd.DataFrame(rows)
    numbers = frame.select_dtypes("number").columns.drop("rank")
    frame[numbers] = frame[numbers].map(lambda one: f"{one:.3f}" if np.isfinite(one) else "")
    out.mkdir(parents=True, exist_ok=True)
    storage.write_bytes(out / "table.md", f"{markdown(frame)}\n".encode())
    print(markdown(frame), flush=True)


if __name__ == "__main__":
    main()
