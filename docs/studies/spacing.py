"""Words as they stand in the text beside words with a space before each: pieces and answers.

python -m docs.studies.spacing --models MODEL [MODEL ...] --treebanks FILE [FILE ...]
    [--sentences 300]

MODEL is a hub id or a folder, read with each FILE at its place in the list. The study reads the
first --sentences of each treebank twice, with --spacing text and words, as single sentences, and
prints a row for each model, in markdown:

pieces      of the whole sentences as the tokenizer cuts them, with text, and with words
a space     share of pieces with words that are the mark of a space alone
unknown     share of unknown pieces, with text and with words
answers     about heads and roles (local, and nsubj, obj, amod, advmod in both directions) that
            differ between the two, of all, and how many are yes with text and with words
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import headroles as hr
from docs.studies.roles import show
from headroles.corpus import Sentence
from headroles.corpus.spacing import TEXT, WORDS
from headroles.models.loading.tokenizers import load_tokenizer
from headroles.models.options import ModelOptions

KEY = ["layer", "head", "role"]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebanks", nargs="+", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=300, help="the first of each treebank")
    given = parser.parse_args()
    show("spacing", rows(given.models, given.treebanks, given.sentences))


def rows(models: list[str], treebanks: list[Path], n: int) -> Iterator[dict[str, object]]:
    """Yield a row for each model and its treebank."""
    for model, treebank in zip(models, treebanks, strict=True):
        yield compared(model, treebank, n)


def compared(model: str, treebank: Path, n: int) -> dict[str, object]:
    """Compare pieces and answers of both spacings."""
    sentences = {
        spacing: list(islice(hr.read_conllu(treebank, spacing=spacing), n))
        for spacing in (TEXT, WORDS)
    }
    tables = {spacing: classify(model, some) for spacing, some in sentences.items()}
    pieces = {spacing: table.scored.corpus.pieces for spacing, table in tables.items()}
    text, words = pieces[TEXT], pieces[WORDS]
    assert text is not None
    assert words is not None
    both = tables[TEXT].frame.merge(tables[WORDS].frame, on=KEY, suffixes=("", "_words"))
    tokenizer = load_tokenizer(model, ModelOptions())
    whole = [tokenizer.tokenize(as_text(sentence)) for sentence in sentences[TEXT]]
    return {
        "encoder": Path(model).name,
        "treebank": treebank.name.split("-")[0],
        "pieces whole": sum(map(len, whole)),
        "text": text.pieces,
        "words": words.pieces,
        "a space": f"{words.lone_spaces / words.pieces:.0%}",
        "unknown text": f"{text.unknown_shares[0]:.1%}",
        "unknown words": f"{words.unknown_shares[0]:.1%}",
        "answers that differ": int(both["answer"].ne(both["answer_words"]).sum()),
        "of": len(both),
        "yes text": int(both["answer"].eq("yes").sum()),
        "yes words": int(both["answer_words"].eq("yes").sum()),
    }


def classify(model: str, sentences: list[Sentence]) -> hr.RoleTable:
    """Return the roles of the heads over sentences, one by one."""
    roles = {"roles": "local,syntactic", "relations": "nsubj,obj,amod,advmod"}
    return hr.classify_heads(model, hr.make_corpus(sentences), pairing="none", **roles)


def as_text(sentence: Sentence) -> str:
    """Return the text that words and spaces make."""
    pairs = zip(sentence.words, sentence.spaces, strict=True)
    return "".join(word + " " * space for word, space in pairs).strip()


if __name__ == "__main__":
    main()
