"""A plain script as a whole process, to compare with `headroles classify`.

python -m benchmarks.forward MODEL TREEBANK

Reads the treebank, loads the model, and runs its forward pass over the examples, sorted by length.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import conllu
import torch
from transformers import AutoModel, AutoTokenizer

BATCH_TOKENS = 1024


def main() -> None:
    """Do what a user would write in a notebook."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("treebank", type=Path)
    given = parser.parse_args()
    with given.treebank.open(encoding="utf-8") as stream:
        sentences = [
            [token["form"] for token in sentence if isinstance(token["id"], int)]
            for sentence in conllu.parse_incr(stream)
        ]
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    model = AutoModel.from_pretrained(given.model, dtype=torch.float32).eval()
    pairs = list(zip(sentences[::2], sentences[1::2], strict=False))
    cut = tokenizer(*map(list, zip(*pairs, strict=True)), is_split_into_words=True)
    rows = sorted(range(len(pairs)), key=lambda row: len(cut["input_ids"][row]))
    done = 0
    with torch.inference_mode():
        while done < len(rows):
            size = max(1, BATCH_TOKENS // len(cut["input_ids"][rows[done]]))
            chosen = {
                name: [values[row] for row in rows[done : done + size]]
                for name, values in cut.items()
            }
            model(**tokenizer.pad(chosen, return_tensors="pt"))
            done += size


if __name__ == "__main__":
    main()
