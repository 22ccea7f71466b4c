"""Heads of an encoder of chemical reactions that map atoms, close rings or close branches.

python -m docs.studies.reactions MODEL [--reactions reactions.jsonl]

MODEL is the folder of RXNMapper's encoder (package rxnmapper of PyPI), whose weights were saved
once more as safetensors. The study writes 96 reactions of six recipes, in which each part of the
product comes from one part of the reactants, to --reactions; it prints the summary of the roles of
the heads, and the best heads by scores, by first choices, and by the average of three.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import headroles as hr

TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
RECIPES = (
    "R|C(=O)|Cl.|N|S>>R|C(=O)|N|S",
    "N|S|.|R|C(=O)|O>>R|C(=O)|N|S",
    "R|C(=O)|Cl.|O|S>>R|C(=O)|O|S",
    "R|C|Br.|N|S>>R|C|N|S",
    "O|S|.|R|C|Cl>>R|C|O|S",
    "R|S(=O)(=O)|Cl.|N|S>>R|S(=O)(=O)|N|S",
)
"""Reactions: parts of reactants, >>, parts of the product; R and S stand for FIRST and SECOND."""
FIRST = "CC CC(C)C c1ccccc1 c1ccc(F)cc1 c1ccncc1 COCC C1CCCC1 c1ccc(OC)cc1".split()
SECOND = "CCC Cc1ccccc1 C(C)C CCOC CCN1CCOCC1 C1CCCC1 CC(C)(C)C CCc1cccs1".split()
EACH = 16
"""Reactions of each recipe."""


def main() -> None:
    """Parse the command line, write the reactions and print the heads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--reactions", type=Path, default=Path("reactions.jsonl"))
    given = parser.parse_args()
    for found in find_heads(given.model, given.reactions):
        print(found)


def find_heads(model: Path, file: Path) -> Iterator[Any]:
    """Yield the roles of heads over the reactions, and their best heads in three ways."""
    lines = "".join(f"{json.dumps(reaction)}\n" for reaction in reactions())
    file.write_text(lines, encoding="utf-8")
    corpus, tokenizer = hr.read_arcs(file), make_tokenizer(model / "vocab.txt")
    asked: dict[str, Any] = {"tokenizer": tokenizer, "roles": "syntactic", "pairing": "none"}
    asked["relations"] = "map,ring,branch"
    roles = hr.classify_heads(model, corpus, **asked)
    yield roles
    hits = hr.score_heads(model, corpus, score="hit", **asked)
    yield hr.find_best_heads(roles.scores)
    yield hr.find_best_heads(hits)
    yield hr.find_best_heads(roles.scores, top=3, tokenizer=tokenizer)


def reactions() -> Iterator[dict[str, Any]]:
    """Yield the tokens and arcs of all reactions."""
    pairs = [(first, second) for first in FIRST for second in SECOND]
    for row, recipe in enumerate(RECIPES):
        for column in range(EACH):
            yield make_reaction(recipe, *pairs[(7 * row + 11 * column) % len(pairs)])


def make_reaction(recipe: str, first: str, second: str) -> dict[str, Any]:
    """Return a reaction in SMILES: tokens, and arcs that follow from the text and the recipe.

    An arc ``map`` leads from an atom of the product to its atom among the reactants, ``ring`` and
    ``branch`` from the closing token to the opening one.
    """
    tokens: list[str] = []
    arcs: list[tuple[int, int, str]] = []
    atoms: dict[tuple[str, int], int] = {}
    rings: dict[str, int] = {}
    branches: list[int] = []
    for is_product, side in enumerate(recipe.split(">>")):
        tokens += [">>"] * is_product
        for part in side.split("|"):
            text = {"R": first, "S": second}.get(part, part)
            for number, token in enumerate(TOKEN.findall(text)):
                place = len(tokens)
                tokens.append(token)
                if token == "(":
                    branches.append(place)
                elif token == ")":
                    arcs.append((place, branches.pop(), "branch"))
                elif token.isdigit() and token in rings:
                    arcs.append((place, rings.pop(token), "ring"))
                elif token.isdigit():
                    rings[token] = place
                elif token[0].isalpha() and is_product:
                    arcs.append((place, atoms[part, number], "map"))
                elif token[0].isalpha():
                    atoms[part, number] = place
    return {"tokens": tokens, "arcs": arcs}


def make_tokenizer(vocabulary: str | Path) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose pieces are the tokens of reactions, from a list of them."""
    words = Path(vocabulary).read_text(encoding="utf-8").split()
    pieces = {piece: number for number, piece in enumerate(words)}
    backend = Tokenizer(models.WordLevel(pieces, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(name, pieces[name]) for name in ("[CLS]", "[SEP]")],
    )
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]"}
    special |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    make: Any = PreTrainedTokenizerFast
    return cast("PreTrainedTokenizerFast", make(tokenizer_object=backend, **special))


if __name__ == "__main__":
    main()
