"""Trees of a parser beside gold trees: which answers change?

python -m docs.studies.parsed --models MODEL [MODEL ...] --treebank FILE --parser PIPELINE

The parser gets the words and sentences of the treebank, so that trees and parts of speech are all
that differs. Relations are nsubj, obj (dobj), amod and advmod, subtypes folded. Tables:

relations  arcs of each relation in gold trees and in parsed ones, and those that are in both
answers    heads by step of evidence with either, undecided ones in brackets; answers about heads
           and roles of arcs that differ, of all, and the opposite ones among them
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import headroles as hr
from docs.studies.atlas import in_brackets
from docs.studies.roles import Rows, show
from headroles.corpus import Corpus, Sentence, fold_subtype
from headroles.studies.classification.ladder import ladder
from headroles.testing.evidence import NO, YES

if TYPE_CHECKING:
    from spacy.language import Language

RELATIONS = {"nsubj": "nsubj", "obj": "dobj", "amod": "amod", "advmod": "advmod"}
"""Relations of UD, and what CLEAR calls them."""
KEY = ["layer", "head", "role"]


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--parser", required=True)
    options = parser.parse_args()
    import spacy

    gold = [*hr.read_conllu(options.treebank)]
    parsed = parsed_again(gold, spacy.load(options.parser))
    show("relations", by_relation(gold, [*parsed]))
    show("answers", by_model(options.models, hr.make_corpus(gold), parsed))


def parsed_again(sentences: list[Sentence], pipeline: Language) -> Corpus:
    """Return the same words in the same sentences and documents, with the trees of a parser."""
    from spacy.tokens import Doc

    docs = []
    for sentence in sentences:
        n_words = len(sentence.words)
        starts = [True, *[False] * (n_words - 1)]
        spaces = sentence.spaces or (True,) * n_words
        docs.append(Doc(pipeline.vocab, sentence.words, spaces, sent_starts=starts))
    documents = [sentence.document for sentence in sentences]
    return hr.make_corpus([*pipeline.pipe(docs)], documents=documents)


def arcs_of(sentence: Sentence, relation: str) -> set[tuple[int, int]]:
    """Return the arcs of a relation (dependent, governor), by either name."""
    names = {relation, RELATIONS[relation]}
    arcs = enumerate(zip(sentence.governors, sentence.relations, strict=True))
    return {(word, end) for word, (end, label) in arcs if fold_subtype(label) in names}


def by_relation(gold: list[Sentence], parsed: list[Sentence]) -> Rows:
    """Count the arcs of each relation, and those that both have."""
    for relation in RELATIONS:
        counts: Counter[str] = Counter()
        for sentences in zip(gold, parsed, strict=True):
            first, second = (arcs_of(sentence, relation) for sentence in sentences)
            counts.update(gold=len(first), parsed=len(second), both=len(first & second))
        yield {"relation": relation, **counts}


def by_model(models: list[str], gold: Corpus, parsed: Corpus) -> Iterator[dict[str, object]]:
    """Count the heads of each step, and answers that differ."""
    for model in models:
        frames, row = [], {"encoder": Path(model).name}
        corpora = {"gold": (gold, RELATIONS), "parsed": (parsed, RELATIONS.values())}
        for trees, (corpus, relations) in corpora.items():
            table = hr.classify_heads(
                model, corpus, roles="syntactic", relations=",".join(relations)
            ).roles
            frame = table.frame.assign(role=table.frame["role"].str.replace(":dobj:", ":obj:"))
            row |= {f"{rung.step}, {trees}": in_brackets(rung) for rung in ladder(frame)}
            frames.append(frame.set_index(KEY)["answer"])
        yield {**row, **different(*frames)}


def different(first: pd.Series[str], second: pd.Series[str]) -> dict[str, object]:
    """Count the answers, by head and role, that differ, and those that say the opposite."""
    both = pd.concat([first, second], axis=1, keys=["first", "second"], join="inner")
    changed = both[both["first"] != both["second"]]
    are_opposite = [{*answers} == {YES, NO} for answers in changed.to_numpy()]
    yes = both[(both == YES).any(axis=1)]
    return {
        "answers": len(both),
        "different": len(changed),
        "yes with either, with both": f"{len(yes)}, {int((yes == YES).all(axis=1).sum())}",
        "opposite": sum(are_opposite),
    }


if __name__ == "__main__":
    main()
