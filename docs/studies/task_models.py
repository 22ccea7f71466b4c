"""A model fine-tuned for one task of GLUE, for studies of removed heads.

python -m docs.studies.task_models --model DIR --task sst2|cola|mrpc --data DIR --out DIR
    [--examples 8000] [--seed 1] [--epochs 2]

``--data`` is the folder of the task's files as in GLUE. The recipe is that of
`docs.studies.fine_tuning`, but texts are cut at 96 word pieces, since MRPC has pairs of sentences.
``--out`` is then a MODEL for importance, ablate, by-role, prune and gate.
docs/removing-heads-measured.md has results of such models.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from transformers.utils import logging

from docs.studies.fine_tuning import Labelled, Recipe, Task, fine_tune, read_cola, read_sst2

MAX_TOKENS = 96


def main() -> None:
    """Parse the command line and fine-tune."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--task", choices=READERS, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the task's files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=8000, help="most to train on")
    parser.add_argument("--epochs", type=float, help="another number than the task's own")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.set_verbosity_error()  # that the classifier is new is no news
    logging.disable_progress_bar()
    recipe = Recipe(sentences=given.examples, max_tokens=MAX_TOKENS)
    torch.set_num_threads(recipe.threads)
    task = READERS[given.task](given.data)
    if given.epochs is not None:
        task = replace(task, epochs=given.epochs)
    print(fine_tune(given.model, task, given.seed, recipe, given.out))


def read_mrpc(folder: Path) -> Task:
    """Read pairs of news sentences, paraphrases or not (Dolan & Brockett 2005).

    Two thirds have label 1; all are kept, as there are few.
    """

    def read(name: str) -> list[Labelled]:
        lines = (folder / name).read_text(encoding="utf-8-sig").splitlines()[1:]
        pairs = {}
        for line in lines:
            label, first, second, *texts = line.split("\t")
            pairs.setdefault((first, second), ((texts[0], texts[1]), int(label)))
        return list(pairs.values())

    train, dev = read("msr_paraphrase_train.txt"), read("msr_paraphrase_test.txt")
    return Task("mrpc", "accuracy", epochs=3, train=train, dev=dev, balanced=False)


READERS: dict[str, Callable[[Path], Task]] = {
    "sst2": read_sst2,
    "cola": read_cola,
    "mrpc": read_mrpc,
}

if __name__ == "__main__":
    main()
