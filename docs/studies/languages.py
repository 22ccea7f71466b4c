"""Roles of the heads of an encoder in several languages, and its losses without layers.

python -m docs.studies.languages FOLDER --models MODEL [MODEL ...] --treebanks FILE [FILE ...]
    [--sentences 400] [--masked-lm [200]]

MODEL is a hub id or a folder. The study draws --sentences of each treebank at random, always the
same ones. It saves results in FOLDER, and reads them from there in a second run, whatever
--sentences is:

    FOLDER/MODEL/TREEBANK            of `classify --score excess --pairing none`
    FOLDER/MODEL-replicated          of `replicate`, over two treebanks or more
    FOLDER/MODEL/TREEBANK-ablated    with --masked-lm: of `ablate --sets thirds,layers`
    FOLDER/MODEL-by-task             with --masked-lm: of `by-task` over these

--masked-lm is for models with a head that predicts masked tokens, and takes so many sentences.
Tables, in markdown:

read      how much of each language the tokenizer knows, how many heads have roles of arcs beyond
          distance, and how many of them have such roles in the first language too
shared    heads with each role in each language, in all, in all by chance (as many heads of each
          layer drawn at random in each language), and certified in all
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import headroles as hr
from docs.studies.roles import show
from headroles.corpus import Corpus, Sentence, Skipped

ANY = "any of arcs"
Head = tuple[int, int]
"""Layer and head."""


@dataclass(frozen=True)
class Language:
    """A treebank, of which some sentences are drawn."""

    treebank: Path
    n_sentences: int

    @property
    def name(self) -> str:
        """The name in tables and folders: de_gsd for de_gsd-ud-dev.conllu."""
        return self.treebank.name.split("-")[0].split(".")[0]

    def corpus(self) -> Corpus:
        """Return the drawn sentences, in their order."""
        whole = hr.read_conllu(self.treebank)
        count = sum(1 for _ in whole)
        drawn = np.random.default_rng(0).permutation(count)[: self.n_sentences]
        places = frozenset(drawn.tolist())

        def read(skipped: Skipped) -> Iterator[Sentence]:
            return (one for place, one in enumerate(whole.read(skipped)) if place in places)

        return replace(whole, read=read)


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--treebanks", nargs="+", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=400, help="most of each treebank")
    parser.add_argument(
        "--masked-lm", type=int, nargs="?", const=200, help="sentences that lose layers"
    )
    given = parser.parse_args()
    languages = [Language(path, given.sentences) for path in given.treebanks]
    for model in given.models:
        place = given.folder / Path(model).name
        for language in languages:
            classify(model, language, place / language.name)
        folders = {language.name: place / language.name for language in languages}
        rows = [how_read(name, folder, folders) for name, folder in folders.items()]
        show(f"{place.name}: read", iter(rows))
        if len(folders) > 1:
            show(f"{place.name}: shared", shared(folders, place))
        if given.masked_lm:
            ablated = [ablate(model, language, given.masked_lm, place) for language in languages]
            drops = hr.drops_by_task(ablated, list(folders))
            drops.save(place.with_name(f"{place.name}-by-task"), overwrite=True)
            print(drops)


def classify(model: str, language: Language, place: Path) -> None:
    """Save scores and roles of the heads over a language, unless they are there."""
    if not place.exists():
        result = hr.classify_heads(model, language.corpus(), score="excess", pairing="none")
        result.save(place)


def how_read(name: str, place: Path, folders: dict[str, Path]) -> dict[str, object]:
    """Describe how a tokenizer reads a language, and count heads with syntactic roles."""
    table = hr.RoleTable.load(place)
    counts = table.scored.corpus.pieces
    assert counts is not None
    pieces, words = counts.unknown_shares
    first, place_of_first = next(iter(folders.items()))
    beyond, of_first = (with_arcs(one) for one in (table, hr.RoleTable.load(place_of_first)))
    return {
        "language": name,
        "sentences": table.scored.corpus.examples,
        "pieces a sentence": f"{table.scored.corpus.mean_length:.1f}",
        "pieces a word": f"{counts.pieces / counts.words:.2f}",
        "unknown pieces": f"{pieces:.1%}",
        "unknown words": f"{words:.1%}",
        "heads": len(heads_in(table.frame)),
        "beyond distance": len(heads_in(beyond)),
        "of these certified": len(heads_in(beyond[beyond["certified"] == "yes"])),
        f"those of {first}": len(heads_in(beyond) & heads_in(of_first)),
        "by chance": round(
            by_chance([heads_in(beyond), heads_in(of_first)], heads_a_layer(table)), 1
        ),
    }


def with_arcs(table: hr.RoleTable) -> pd.DataFrame:
    """Return the rows of heads that have roles of arcs, which takes their contrast too."""
    return table.frame[table.frame["assigned"] & table.frame["role"].isin(table.groups.pairs)]


def heads_a_layer(table: hr.RoleTable) -> int:
    """Return the number of heads of each layer."""
    return 1 + int(table.frame["head"].max())


def heads_in(rows: pd.DataFrame) -> set[Head]:
    """Return the heads in rows of a table."""
    return set(zip(rows["layer"], rows["head"], strict=True))


def shared(folders: dict[str, Path], place: Path) -> Iterator[dict[str, object]]:
    """Count heads with each role by language, in all, by chance, and certified in all."""
    tables = {name: hr.RoleTable.load(folder) for name, folder in folders.items()}
    replication = replicate(folders, place.with_name(f"{place.name}-replicated"))
    certified_in = replication.frame
    in_all = certified_in[certified_in["replicated"] & certified_in["at_least"].eq(len(folders))]
    heads = {
        name: by_role(table.frame[table.frame["assigned"]], table.groups.pairs)
        for name, table in tables.items()
    }
    of_all = by_role(in_all, replication.groups.pairs)
    n_heads = heads_a_layer(next(iter(tables.values())))
    roles = list(dict.fromkeys(role for table in tables.values() for role in table.roles))
    for role in [*roles, ANY]:
        own = [found.get(role, set()) for found in heads.values()]
        yield {
            "role": role,
            **{name: len(one) for name, one in zip(heads, own, strict=True)},
            "all": len(set.intersection(*own)),
            "by chance": round(by_chance(own, n_heads), 1),
            "certified in all": len(of_all.get(role, set())),
        }


def by_role(rows: pd.DataFrame, arcs: list[str]) -> dict[str, set[Head]]:
    """Return the heads of each role, and of any role of ``arcs``."""
    found = {str(role): heads_in(own) for role, own in rows.groupby("role")}
    return {**found, ANY: heads_in(rows[rows["role"].isin(arcs)])}


def by_chance(languages: list[set[Head]], n_heads: int) -> float:
    """Return the expected number of heads in all sets, drawn as many of each layer in each."""
    layers = {layer for own in languages for layer, _ in own}
    counts = [[sum(one == layer for one, _ in own) for own in languages] for layer in layers]
    return float(sum(n_heads * np.prod(np.array(own) / n_heads) for own in counts))


def replicate(folders: dict[str, Path], place: Path) -> hr.Replication:
    """Test in how many of the languages heads have roles."""
    sets = [hr.HeadScores.load(folder) for folder in folders.values()]
    found = hr.replicate_roles(sets, list(folders))
    assert isinstance(found, hr.Replication)  # over corpora
    found.save(place, overwrite=True)
    return found


def ablate(model: str, language: Language, examples: int, place: Path) -> hr.Ablations:
    """Ablate layers of a masked language model, over a language."""
    folder = place / f"{language.name}-ablated"
    if not folder.exists():
        text = place / f"{language.name}.txt"
        text.write_text("\n".join(" ".join(s.words) for s in language.corpus()), encoding="utf-8")
        sets = ("thirds", "layers")
        found = hr.ablate_heads(model, text, objective="masked_lm", sets=sets, examples=examples)
        found.save(folder)
    return hr.Ablations.load(folder)


if __name__ == "__main__":
    main()
