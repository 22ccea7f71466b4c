"""Words as they stand in the text beside words with a space before each: pieces and answers.

python -m docs.studies.spacing --models MODEL [MODEL ...] --treebanks FILE [FILE ...]
    [--sentences 300] [--pieces-only]

MODEL is a hub id or a folder, read with each FILE at its place in the list. The study reads the
first --sentences of each treebank twice, with --spacing text and words, as single sentences, and
prints a row for each model, in markdown:

pieces      of the whole sentences as the tokenizer cuts them, with text, and with words
a space     share of pieces with words that are the mark of a space alone
unknown     share of unknown pieces, with text and with words
answers     about heads and roles (local, and nsubj, obj, amod, advmod in both directions) that
            differ between the two, of all, and how many are yes with text and with words;
            not with --pieces-only
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import headroles as hr
from docs.studies.roles import show
from headroles.corpus import Example, Sentence
from headroles.corpus.spacing import TEXT, WORDS
from headroles.encoding import ExampleEncoder
from headroles.models.loading.tokenizers import fit_to_words, load_tokenizer
from headroles.models.options import ModelOptions

KEY = ["layer", "head", "role"]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebanks", nargs="+", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=300, help="the first of each treebank")
    parser.add_argument("--pieces-only", action="store_true", help="no answers")
    given = parser.parse_args()
    show("spacing", rows(given.models, given.treebanks, given.sentences, given.pieces_only))


def rows(
    models: list[str], treebanks: list[Path], n: int, pieces_only: bool
) -> Iterator[dict[str, object]]:
    """Yield a row for each model and its treebank."""
    for model, treebank in zip(models, treebanks, strict=True):
        text, words = (
            list(islice(hr.read_conllu(treebank, spacing=spacing), n)) for spacing in (TEXT, WORDS)
        )
        row = {"encoder": Path(model).name, "treebank": treebank.name.split("-")[0]}
        answers = {} if pieces_only else answers_of(model, text, words)
        yield {**row, **pieces_of(model, text, words), **answers}


def pieces_of(model: str, text: list[Sentence], words: list[Sentence]) -> dict[str, object]:
    """Count the pieces of whole sentences, and of both spacings."""
    tokenizer = load_tokenizer(model, ModelOptions())
    counts = []
    for sentences in (text, words):
        encoder = ExampleEncoder(fit_to_words(tokenizer), 10**9, False)
        encoder.encode([Example((sentence,)) for sentence in sentences], Counter())
        counts.append(encoder.counts)
    of_text, of_words = counts
    return {
        "pieces whole": sum(len(tokenizer.tokenize(as_text(sentence))) for sentence in text),
        "text": of_text["pieces"],
        "words": of_words["pieces"],
        "a space": f"{of_words['lone_spaces'] / of_words['pieces']:.0%}",
        "unknown text": f"{of_text['unknown_pieces'] / of_text['pieces']:.1%}",
        "unknown words": f"{of_words['unknown_pieces'] / of_words['pieces']:.1%}",
    }


def answers_of(model: str, text: list[Sentence], words: list[Sentence]) -> dict[str, object]:
    """Compare the answers of both spacings."""
    of_text, of_words = (classify(model, sentences).frame for sentences in (text, words))
    both = of_text.merge(of_words, on=KEY, suffixes=("", "_words"))
    return {
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
