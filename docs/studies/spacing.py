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
            differ between the two, of all, and how many are yes with text and with words
cut alike   sentences that the tokenizer cuts as a whole into the pieces of text
differ      answers of text, and of words, that differ from those of whole sentences, in which a
            piece that reaches over several words counts as one of the first
Answers, and what is compared with them, are left out with --pieces-only.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import torch
from transformers import AutoModel

import headroles as hr
from docs.studies.roles import show
from headroles.corpus import Example, Sentence
from headroles.corpus.spacing import AS_WORDS, TEXT
from headroles.encoding import ExampleEncoder
from headroles.models.loading.tokenizers import fit_to_words, load_tokenizer
from headroles.models.options import ModelOptions

KEY = ["layer", "head", "role"]
ROLES = {"roles": "local,syntactic", "relations": "nsubj,obj,amod,advmod", "pairing": "none"}


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
            list(islice(hr.read_conllu(treebank, spacing=spacing), n))
            for spacing in (TEXT, AS_WORDS)
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
    """Compare the answers of both spacings, and with those of whole sentences."""
    of_text, of_words = (classify(model, sentences) for sentences in (text, words))
    tokenizer, whole = load_tokenizer(model, ModelOptions()), attention_in(model, text)
    ours = (hr.encode(tokenizer, one.words, one.spaces)[0]["input_ids"][0] for one in text)
    n_alike = sum(pieces.tolist() == cut.pieces for pieces, cut in zip(ours, whole, strict=True))
    arrays, alignment = [cut.attention for cut in whole], [cut.words for cut in whole]
    scores = hr.score_attention(arrays, hr.make_corpus(text), alignment, **ROLES)
    of_whole = hr.assign_roles(scores).frame
    return {
        "answers that differ": n_different(of_text, of_words),
        "of": len(of_text),
        "yes text": int(of_text["answer"].eq("yes").sum()),
        "yes words": int(of_words["answer"].eq("yes").sum()),
        "cut alike": n_alike,
        "text differs": n_different(of_text, of_whole),
        "words differ": n_different(of_words, of_whole),
    }


def classify(model: str, sentences: list[Sentence]) -> pd.DataFrame:
    """Return the tests of heads and roles over sentences, one by one."""
    return hr.classify_heads(model, hr.make_corpus(sentences), **ROLES).frame


def n_different(first: pd.DataFrame, second: pd.DataFrame) -> int:
    """Count the heads and roles with different answers."""
    both = first.merge(second, on=KEY, suffixes=("", "_other"))
    return int(both["answer"].ne(both["answer_other"]).sum())


class Whole(NamedTuple):
    """A whole sentence, as the tokenizer cuts it: its pieces, their words, and the attention."""

    pieces: list[int]
    words: list[int | None]
    attention: Any


def attention_in(model: str, sentences: list[Sentence]) -> list[Whole]:
    """Run the model over whole sentences."""
    tokenizer = load_tokenizer(model, ModelOptions())
    encoder = cast(Any, AutoModel).from_pretrained(model, attn_implementation="eager").eval()
    if encoder.config.is_encoder_decoder:
        encoder = encoder.get_encoder()
    whole = []
    for sentence in sentences:
        cut = tokenizer(
            as_text(sentence), return_offsets_mapping=True, return_special_tokens_mask=True
        )
        marked = zip(cut["special_tokens_mask"], cut["offset_mapping"], strict=True)
        words = [None if special else word_at(span, sentence) for special, span in marked]
        with torch.no_grad():
            seen = encoder(torch.tensor([cut["input_ids"]]), output_attentions=True)
        whole.append(Whole(cut["input_ids"], words, torch.cat(seen.attentions).numpy()))
    return whole


def word_at(span: tuple[int, int], sentence: Sentence) -> int:
    """Return the word of a piece of the text, the first of several; a space is of the next word."""
    lengths = [len(word) for word in sentence.words]
    ends = [*accumulate(map(sum, zip(lengths, sentence.spaces, strict=True)))]
    starts = [0, *ends[:-1]]
    ends = [start + n for start, n in zip(starts, lengths, strict=True)]
    return min(bisect_right(ends, span[0]), len(ends) - 1)


def as_text(sentence: Sentence) -> str:
    """Return the text that words and spaces make."""
    pairs = zip(sentence.words, sentence.spaces, strict=True)
    return "".join(word + " " * space for word, space in pairs).strip()


if __name__ == "__main__":
    main()
