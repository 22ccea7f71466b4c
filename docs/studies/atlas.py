"""The atlas: roles of the heads of several encoders, and what papers claim of them, as one table.

python -m docs.studies.atlas FOLDER --models DIR [DIR ...] --treebank FILE [--out FILE.parquet]
python -m docs.studies.atlas FOLDER --models DIR [DIR ...] --bitext FILE

Saves roles with all controls in FOLDER/MODEL-roles and claims in FOLDER/MODEL-claims, and reads
them from there in a second run. Encoders of another language are a run of their own into the same
FOLDER. With --bitext it saves roles of the heads of decoders and of cross-attention, in
FOLDER/MODEL-decoder-roles and FOLDER/MODEL-cross-roles. --out writes the table of all results in
FOLDER, and prints, in Markdown:

steps     heads by step of evidence about arcs, undecided ones in brackets
encoders  heads with each role by encoder, undecided ones in brackets, and syntactic heads by the
          controls
relations the best head of each relation by encoder, with its mean beyond distance
claims    the verdict and the effect of each claim by encoder
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import headroles as hr
from docs.studies.roles import Rows, show
from headroles.studies.classification.ladder import ladder
from headroles.studies.evidence import STEPS
from headroles.testing.evidence import NO

CONTROLS = ("trees", "words", "weights")
TARGETS = ("decoder", "cross")
HEADS = [
    *("encoder", "family", "attention", "treebank", "layer", "head", "role", "n", "n_clusters"),
    *("mean", "ci_low", "ci_high", "beyond_distance", "beyond_low", "beyond_high", "beyond_trees"),
    *("beyond_class", "class_answer", "past_attractors", "attractors_answer", "evidence"),
    *("other_arcs", "above_others", "specific", "p_adjusted", "answer", "certified"),
    *("mean_trees", "mean_words", "mean_weights", "note"),
]
"""Columns of the atlas: of role tables. A claim has no layer and no head, and its ``control``."""
COUNTED = ("local", "delimiter:cls", "delimiter:sep", "block:ratio", "syntactic")
MARKS = {"shown": "✓", "contradicted": "✗", "undecided": "?", "described": ""}
RELATIONS = ("nsubj", "obj", "amod", "advmod")


def main() -> None:
    """Parse the command line, make what is missing, write and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--treebank", type=Path)
    parser.add_argument("--bitext", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for model in given.models:
        if given.bitext:
            make_of_targets(model, given.bitext, given.folder)
        else:
            make(model, given.treebank, given.folder)
    if given.out:
        atlas = atlas_of(given.folder)
        atlas.to_parquet(given.out, index=False, compression="zstd")
        show("steps", by_step(atlas, given.folder))
        show("encoders", by_encoder(atlas, given.folder))
        show("relations", by_relation(atlas))
        show("claims", by_claim(atlas))


def make(model: str, treebank: Path, folder: Path) -> None:
    """Save the roles and the claims of an encoder, if they are not there."""
    corpus, name = hr.read_conllu(treebank), Path(model).name
    if not (roles := folder / f"{name}-roles").exists():
        hr.classify_heads(model, corpus, controls=CONTROLS).save(roles)
    if not (claims := folder / f"{name}-claims").exists():
        hr.test_claims(model, corpus).save(claims)


def make_of_targets(model: str, bitext: Path, folder: Path) -> None:
    """Save the roles of the heads that read targets, if they are not there."""
    for attention in TARGETS:
        if not (roles := folder / f"{Path(model).name}-{attention}-roles").exists():
            hr.classify_heads(model, hr.read_bitext(bitext), attention=attention).save(roles)


def results(folder: Path, kind: str) -> Iterator[tuple[str, hr.RoleTable]]:
    """Yield the name of each encoder and its results of a kind."""
    for file in sorted(folder.glob(f"*-{kind}/run.json")):
        yield file.parent.name.removesuffix(f"-{kind}"), hr.load(file.parent)


def atlas_of(folder: Path) -> pd.DataFrame:
    """Return the table of all roles, and of all claims whose role is ``claim:ID``."""
    parts = []
    for name, table in results(folder, "roles"):
        scores = table.record.sources["scores"]
        about = {
            "encoder": name.removesuffix(f"-{scores.model.attention}"),
            "family": scores.model.family,
            "attention": scores.model.attention,
        }
        parts.append(table.frame.assign(**about, treebank=Path(scores.corpus.files[0]).name)[HEADS])
    families = {part["encoder"].iloc[0]: part.iloc[0] for part in parts[::-1]}
    for name, claims in results(folder, "claims"):
        frame = claims.frame.assign(encoder=name, role="claim:" + claims.frame["claim"])
        frame = frame.assign(**families[name][["family", "attention", "treebank"]])
        frame = frame.rename(columns={"effect": "mean", "verdict": "answer"})
        kept = [column for column in HEADS if column in frame and column not in ("layer", "head")]
        parts.append(frame[[*kept, "control"]])
    atlas = pd.concat(parts, ignore_index=True)
    numbers = dict.fromkeys(atlas.select_dtypes("float64"), "float32")
    return atlas.astype({**numbers, "layer": "Int16", "head": "Int16"})


def by_step(atlas: pd.DataFrame, folder: Path) -> Rows:
    """Count the heads that reach each step for the arcs of some relation, and undecided ones."""
    for name, table in results(folder, "roles"):
        pairs = table.frame[table.frame["role"].isin(table.groups.pairs)]
        rungs = {rung.step: f"{len(rung.heads)} ({len(rung.undecided)})" for rung in ladder(pairs)}
        arcs = pairs[pairs["assigned"]]
        yield {
            "encoder": name,
            "heads": len(table.frame[["layer", "head"]].drop_duplicates()),
            **{step: rungs.get(step, "") for step in STEPS},
            "not specific": f"{int((arcs['specific'] == NO).sum())} of {len(arcs)}",
        }


def in_brackets(atlas: pd.DataFrame, encoder: str, role: str) -> str:
    """Count the heads of an encoder with a role, or with any of a group; in brackets undecided."""
    rows = atlas[(atlas["encoder"] == encoder) & atlas["head"].notna()]
    rows = rows[(rows["role"] == role) | rows["role"].str.startswith(f"{role}:")]
    if rows.empty:
        return ""
    heads = {
        answer: set(zip(having["layer"], having["head"], strict=True))
        for answer, having in rows.groupby("answer")
    }
    yes, undecided = (heads.get(answer, set()) for answer in ("yes", "undecided"))
    return f"{len(yes)} ({len(undecided - yes)})"


def by_encoder(atlas: pd.DataFrame, folder: Path) -> Rows:
    """Count the heads with each role, and undecided ones."""
    for name, table in results(folder, "roles"):
        controls, arcs = table.facts["controls"], table.groups.pairs
        found = {
            control: len({tuple(h) for role, hs in heads.items() if role in arcs for h in hs})
            for control, heads in controls.items()
        }
        counts = {role: in_brackets(atlas, name, role) for role in COUNTED}
        yield {
            "encoder": name,
            "heads": len(table.frame[["layer", "head"]].drop_duplicates()),
            **counts,
            **{f"with other {control}": found[control] for control in CONTROLS},
        }


def by_relation(atlas: pd.DataFrame) -> Rows:
    """Name the head with the role of each relation that is furthest beyond distance."""
    yes = atlas[(atlas["answer"] == "yes") & atlas["beyond_distance"].notna()]
    for name in atlas["encoder"].unique():
        row: dict[str, object] = {"encoder": name}
        for relation in RELATIONS:
            has = yes[(yes["encoder"] == name) & yes["role"].str.contains(f":{relation}:")]
            best = has.sort_values("beyond_distance").tail(1)
            row[relation] = next(
                (
                    f"{one.layer}-{one.head} {'->' if 'governor' in one.role else '<-'} "
                    f"{one.mean:.1f}, {one.beyond_distance:.1f}"
                    for one in best.itertuples()
                ),
                "none",
            )
        yield row


def by_claim(atlas: pd.DataFrame) -> Rows:
    """Yield the verdict of each claim by encoder."""
    claims = atlas[atlas["role"].str.startswith("claim:")]
    for role, rows in claims.groupby("role", sort=False):
        cells = {
            one.encoder: f"{MARKS[one.answer]} {one.mean:.2f} ({one.control:.2f})".strip()
            for one in rows.itertuples()
            if one.answer != "not testable"
        }
        if cells:
            yield {"claim": str(role).removeprefix("claim:"), **cells}


if __name__ == "__main__":
    main()
