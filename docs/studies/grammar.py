"""Attention that knows no tree, and encoders, step by step: what each step excludes.

python -m docs.studies.grammar --treebank FILE --scores FOLDER --tables rules random
    --tokenizer MODEL [--sentences N]
python -m docs.studies.grammar --treebank FILE --scores FOLDER --tables encoders documents
    --models MODEL [MODEL ...] [--sentences N]

Scores are saved in FOLDER, a sub-folder for each kind and model, and read from there by a second
run. --sentences are the first of the treebank, by default all of them. Tables, in Markdown:

causal       rules of which each token sees itself and earlier ones alone, as in decoders: those
             shown at distance, by other trees, and by other words at the same distance alone
level        random heads of decoders that know no words: those with a grammatical role all the same
rules        rules (`docs.studies.rules`) for whose heads each step is shown: of each kind, with
             all, half and a quarter of the attention; and by name, those beyond distance
random       the same of random heads that know offsets, places, frequencies and classes
encoders     heads of encoders for which each step is shown, and those for which it is undecided
documents    share of the heads of each step in the whole treebank that some documents show, and
             the number of documents that show half of them
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from msgspec import structs

from docs.studies.roles import Rows, show
from docs.studies.rules import (
    NAMES,
    RANDOM,
    RULES,
    STRENGTHS,
    WITHOUT_WORDS,
    RandomHeads,
    Ruled,
    View,
    by_rules,
    in_view,
)
from docs.studies.simulations.scores import drawn_rows, rows_by_document
from headroles import HeadScores, RoleTable, assign_roles, encode, read_conllu, score_heads
from headroles.arrays import FloatArray
from headroles.corpus import Sentence
from headroles.models.attention.functions import SavedAttention
from headroles.models.loading.tokenizers import load_tokenizer
from headroles.models.options import ModelOptions
from headroles.roles import BIAS, EXCESS
from headroles.studies.classification.ladder import ladder
from headroles.studies.evidence import STEPS

SYNTACTIC = "syntactic"
"""All roles of arcs."""
SIZES = (20, 50, 100, 200)
N_DRAWS = 10


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True, help="folder to keep scores in")
    parser.add_argument("--tables", nargs="+", choices=TABLES, required=True)
    parser.add_argument("--tokenizer", help="model whose pieces rules attend to")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--sentences", type=int, help="the first ones; left out: all")
    given = parser.parse_args()
    results = Results(
        given.treebank, given.scores, given.tokenizer, tuple(given.models), given.sentences
    )
    for name in given.tables:
        show(name, TABLES[name](results))


RELATIONS = "nsubj,obj,amod,advmod"
"""Relations of all dependents, nouns and pronouns together."""


@dataclass(frozen=True)
class Results:
    """Scores of rules and of models over a treebank: from a folder, or made and kept there."""

    treebank: Path
    folder: Path
    tokenizer: str | None
    models: tuple[str, ...]
    n_sentences: int | None

    def sentences(self) -> list[Sentence]:
        """Return the sentences of the treebank."""
        return list(islice(read_conllu(self.treebank), self.n_sentences))

    def of_model(self, model: str) -> HeadScores:
        """Return the scores of a model, by default options but for `RELATIONS`."""
        place = self.folder / Path(model).name
        if not place.exists():
            score_heads(model, self.sentences(), relations=RELATIONS).save(place)
        return HeadScores.load(place)

    def of_rules(
        self, name: str, make: Callable[[View], FloatArray], score: str = BIAS.name
    ) -> HeadScores:
        """Return the scores of attention that rules make; each sentence is an example."""
        place = self.folder / name
        if not place.exists():
            if self.tokenizer is None:
                raise SystemExit("rules attend to pieces: give --tokenizer MODEL")
            sentences = {sentence.id: sentence for sentence in self.sentences()}
            tokenizer = load_tokenizer(self.tokenizer, ModelOptions())
            words = {
                key: encode(tokenizer, one.words, one.spaces)[1] for key, one in sentences.items()
            }
            saved = SavedAttention(Ruled(sentences, words, make), words)
            chosen = {"roles": "syntactic", "pairing": "none", "relations": RELATIONS}
            score_heads(saved, list(sentences.values()), score=score, **chosen).save(place)
        return HeadScores.load(place)


def of_rules(results: Results) -> Rows:
    """Count the rules of each kind for which each step is shown, by strength; then name them."""
    table = assign_roles(results.of_rules("rules", by_rules))
    heads = {step: set(table.heads_with(SYNTACTIC, beyond=step)) for step in STEPS}
    for kind, rules in RULES.items():
        places = [place for place, (own, _) in enumerate(NAMES) if own == kind]
        row: dict[str, object] = {"rules": kind, "number": len(rules)}
        for step in STEPS:
            counts = [sum((layer, k) in heads[step] for k in places) for layer in layers()]
            row[step] = ", ".join(map(str, counts))
        yield row
    for step in STEPS[1:]:
        for layer, strength in enumerate(STRENGTHS):
            passing = [
                name for place, (_, name) in enumerate(NAMES) if (layer, place) in heads[step]
            ]
            yield {"rules": f"{step}, {strength}: {'; '.join(passing)}"}
    yield from control(table)


def of_causal_rules(results: Results) -> Rows:
    """Count the rules of decoders that go beyond distance, by each of two contrasts alone."""
    for score in (BIAS.name, EXCESS.name):
        scores = results.of_rules(f"causal-{score}", in_view, score)
        tables = assign_roles(scores), assign_roles(by_offsets_alone(scores))
        heads = [set(table.heads_with(SYNTACTIC)) for table in tables]
        for kind, rules in RULES.items():
            places = [place for place, (own, _) in enumerate(NAMES) if own == kind]
            row: dict[str, object] = {"score": score, "rules": kind, "number": len(rules)}
            for name, having in zip(("other trees", "offsets"), heads, strict=True):
                counts = [sum((layer, k) in having for k in places) for layer in layers()]
                row[name] = ", ".join(map(str, counts))
            yield row


def of_causal_heads(results: Results) -> Rows:
    """Count random heads, and tests of them, with *yes*, by each of two contrasts alone."""
    heads = RandomHeads.drawn(np.random.default_rng(11))
    for score in (BIAS.name, EXCESS.name):
        scores = results.of_rules(f"level-{score}", heads.in_view, score)
        for name, own in (("other trees", scores), ("offsets", by_offsets_alone(scores))):
            table = assign_roles(own)
            rows = table.frame[table.frame["role"].isin(table.groups.pairs)]
            tested = rows[rows["answer"] != "untestable"]
            is_yes = tested["answer"] == "yes"
            having = {layer: set[int]() for layer in range(len(WITHOUT_WORDS))}
            for layer, head in table.heads_with(SYNTACTIC):
                having[layer].add(head)
            counts = {kind: len(having[layer]) for layer, kind in enumerate(WITHOUT_WORDS)}
            yes = f"{is_yes.sum()} of {len(tested)}"
            above = f"{(tested['mean'] > tested['threshold']).sum()}"
            yield {"score": score, "by": name, **counts, "tests": yes, "above threshold": above}


def by_offsets_alone(scores: HeadScores) -> HeadScores:
    """Return scores whose answers rest on other words at the same distance alone."""
    model = structs.replace(scores.record.model, reaches=[None] * scores.n_layers)
    kept = scores.select(roles=[role.id for role in scores.roles if not role.control])
    return replace(kept, record=structs.replace(kept.record, model=model))


def layers() -> range:
    """Return the layers, one for each strength."""
    return range(len(STRENGTHS))


def of_random(results: Results) -> Rows:
    """Count the random heads of each kind for which each step is shown."""
    table = assign_roles(results.of_rules("random", RandomHeads.drawn(np.random.default_rng(11))))
    for kind, layer in RANDOM.items():
        row: dict[str, object] = {"heads": kind}
        for step in STEPS:
            having = table.heads_with(SYNTACTIC, beyond=step)
            row[step] = sum(own == layer for own, _ in having)
        yield row
    yield from control(table)


def control(table: RoleTable) -> Rows:
    """Yield the heads that would have roles in other trees."""
    first = table.controls.iloc[0]
    yield {"heads": f"in other trees: {int(first['trees'])} of {int(first['heads'])}"}


def of_encoders(results: Results) -> Rows:
    """Count the heads of each encoder for which each step is shown, and undecided."""
    for model in results.models:
        scores = results.of_model(model)
        table = assign_roles(scores)
        pairs = table.frame[table.frame["role"].isin(table.groups.pairs)]
        row: dict[str, object] = {"encoder": Path(model).name, "heads": table.n_heads}
        for rung in ladder(pairs):
            row[rung.step] = len(rung.heads)
            row[f"{rung.step}, undecided"] = len(rung.undecided)
            few = rung.heads if len(rung.heads) <= 5 else []
            row[f"{rung.step}, which"] = ", ".join(f"{layer}-{head}" for layer, head in few)
        yield row


def of_documents(results: Results) -> Rows:
    """Yield the share of heads of each step that are shown with fewer documents."""
    for model in results.models:
        scores = results.of_model(model)
        scores = scores.select(roles=[role.id for role in scores.roles if is_of_arcs(role.id)])
        documents = rows_by_document(scores)
        whole = heads_of(scores)
        shares = {step: [0.0] for step in STEPS}
        sizes = [size for size in SIZES if size < len(documents)]
        for size in sizes:
            rng = np.random.default_rng(size)
            several = [
                heads_of(drawn_rows(scores, documents, rng.permutation(len(documents))[:size]))
                for _ in range(N_DRAWS)
            ]
            for step in STEPS:
                counts = [len(one[step] & whole[step]) for one in several]
                shares[step].append(float(np.mean(counts)) / max(1, len(whole[step])))
        for step, own in shares.items():
            half = np.interp(0.5, [*own, 1.0], [0, *sizes, len(documents)])
            found = {str(n): f"{share:.0%}" for n, share in zip(sizes, own[1:], strict=True)}
            yield {
                "encoder": Path(model).name,
                "step": step,
                **found,
                "all": f"{len(documents)}: {len(whole[step])} heads",
                "half by": f"{half:.0f}" if whole[step] else "",
            }


def is_of_arcs(name: str) -> bool:
    """Tell whether a role, contrast or control is of arcs."""
    return name.startswith(SYNTACTIC)


def heads_of(scores: HeadScores) -> dict[str, set[tuple[int, int]]]:
    """Return the heads of each step."""
    table = assign_roles(scores)
    return {step: set(table.heads_with(SYNTACTIC, beyond=step)) for step in STEPS}


TABLES: dict[str, Callable[[Results], Rows]] = {
    "rules": of_rules,
    "causal": of_causal_rules,
    "level": of_causal_heads,
    "random": of_random,
    "encoders": of_encoders,
    "documents": of_documents,
}

if __name__ == "__main__":
    main()
