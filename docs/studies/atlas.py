"""The atlas: roles of the heads of several models, and what papers claim of them, as one table.

python -m docs.studies.atlas FOLDER --models DIR [DIR ...] --treebank FILE
python -m docs.studies.atlas FOLDER --models DIR --bitext FILE [--target-tokenizer DIR]
python -m docs.studies.atlas FOLDER --models DIR --copies FILE
python -m docs.studies.atlas FOLDER --out FILE.parquet

Saves roles of encoders with all controls in FOLDER/MODEL-roles, and claims in FOLDER/MODEL-claims.
With --bitext, whose links count from 1, or --copies, a treebank whose sentences are copied, it
saves roles of the heads of decoders and of cross-attention in FOLDER/MODEL-decoder-roles and
FOLDER/MODEL-cross-roles, and alignment error rates in FOLDER/MODEL-alignment. What is there is not
made again. --out writes the table of all results in FOLDER and prints, in Markdown:

steps     heads by step of evidence about arcs, undecided ones in brackets; heads that would count
          with a control too; heads with other roles
aligned   heads of decoders and of cross-attention by step, and the fewest alignment errors
relations the best head of each relation by encoder, with its mean beyond distance
claims    the verdict and the effect of each claim by encoder
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_string_dtype

import headroles as hr
from docs.studies.copies import copies
from docs.studies.roles import Rows, show
from headroles.arrays import FloatArray
from headroles.corpus import Corpus
from headroles.models.options import CROSS, DECODER, ENCODER
from headroles.studies.classification.ladder import Rung, heads_in, ladder
from headroles.studies.evidence import STEPS
from headroles.testing.evidence import NO, UNDECIDED, YES

CONTROLS = ("trees", "words", "weights")
ARCS, ALIGNED, CLAIM = "syntactic:", "aligned", "claim:"
PAIRS = (ARCS, ALIGNED)
"""What ids of roles of pairs of words begin with."""
COLUMNS = tuple(
    (
        "encoder family attention treebank layer head role n n_clusters mean ci_low ci_high "
        "p_adjusted answer certified beyond_distance beyond_low beyond_high beyond_trees evidence "
        "beyond_class class_low class_high class_answer past_attractors attractors_low "
        "attractors_high attractors_answer other_arcs above_others specific mean_trees mean_words "
        "mean_weights controls aer aer_low aer_high aer_norms fewer_errors note"
    ).split()
)
"""Columns of the atlas; a claim has no layer and no head, and a column ``control`` of its own."""
OTHER_ROLES = ("local", "delimiter:cls", "delimiter:sep", "block:ratio")
MARKS = {"shown": "✓", "contradicted": "✗", "undecided": "?", "described": ""}
RELATIONS = ("nsubj", "obj", "amod", "advmod")


def main() -> None:
    """Parse the command line, make what is missing, write and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--treebank", type=Path)
    parser.add_argument("--bitext", type=Path)
    parser.add_argument("--target-tokenizer")
    parser.add_argument("--copies", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for model in options.models:
        if options.treebank:
            make(model, options.treebank, options.folder)
        if options.bitext:
            pairs = hr.read_bitext(options.bitext, links_from=1)
            make_of_targets(model, pairs, options.folder, options.target_tokenizer)
        if options.copies:
            make_of_targets(model, copies(options.copies), options.folder)
    if options.out:
        write(atlas_of(options.folder), options.out)
        print_tables(pd.read_parquet(options.out))


def print_tables(atlas: pd.DataFrame) -> None:
    """Print the tables of the page."""
    show("steps", by_step(atlas))
    show("aligned", by_target(atlas))
    show("relations", by_relation(atlas))
    show("claims", by_claim(atlas))


# Results


def make(model: str, treebank: Path, folder: Path) -> None:
    """Save the roles and the claims of an encoder, if they are not there."""
    corpus, name = hr.read_conllu(treebank), Path(model).name
    if not (roles := folder / f"{name}-roles").exists():
        hr.classify_heads(model, corpus, controls=CONTROLS).save(roles)
    if not (claims := folder / f"{name}-claims").exists():
        hr.test_claims(model, corpus).save(claims)


def make_of_targets(
    model: str, pairs: Corpus, folder: Path, target_tokenizer: str | None = None
) -> None:
    """Save the roles of the heads that read targets, and errors of links, if they are not there."""
    name = Path(model).name
    for attention in (DECODER, CROSS):
        if not (roles := folder / f"{name}-{attention}-roles").exists():
            hr.classify_heads(
                model, pairs, attention=attention, target_tokenizer=target_tokenizer
            ).save(roles)
    if not (links := folder / f"{name}-alignment").exists():
        hr.align_words(model, pairs, target_tokenizer=target_tokenizer).save(links)


def results(folder: Path, kind: str) -> Iterator[tuple[str, hr.RoleTable]]:
    """Yield the name of each model and its results of a kind."""
    for file in sorted(folder.glob(f"*-{kind}/run.json")):
        yield file.parent.name.removesuffix(f"-{kind}"), hr.load(file.parent)


# The table


def atlas_of(folder: Path) -> pd.DataFrame:
    """Return the table of all roles, and of all claims whose role is ``claim:ID``."""
    parts = [_roles_in(name, table, folder) for name, table in results(folder, "roles")]
    encoders = {
        part["encoder"].iloc[0]: part.iloc[0]
        for part in parts
        if part["attention"].iloc[0] == ENCODER
    }
    for name, claims in results(folder, "claims"):
        frame = claims.frame[claims.frame["verdict"] != "not testable"]
        frame = frame.assign(encoder=name, role=CLAIM + frame["claim"])
        frame = frame.assign(**encoders[name][["family", "attention", "treebank"]])
        frame = frame.rename(columns={"effect": "mean", "verdict": "answer"})
        kept = [column for column in COLUMNS if column in frame]
        parts.append(frame[[*kept, "control"]])
    atlas = pd.concat(parts, ignore_index=True)
    return atlas.astype(dict.fromkeys(("layer", "head", "n", "n_clusters"), "Int16"))


def write(atlas: pd.DataFrame, file: Path) -> None:
    """Write the table with numbers of three digits, error rates of four: a small file.

    Texts that are missing are empty.
    """
    texts = [name for name in COLUMNS if is_string_dtype(atlas[name])]
    atlas = atlas.fillna(dict.fromkeys(texts, ""))
    numbers = [*atlas.select_dtypes("float")]
    small = atlas.assign(
        **{name: rounded(atlas[name].to_numpy(), 13 if "aer" in name else 10) for name in numbers}
    )
    small.to_parquet(
        file,
        index=False,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in small if name not in numbers],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
    )


def _roles_in(name: str, table: hr.RoleTable, folder: Path) -> pd.DataFrame:
    """Return the rows of a table of roles in the columns of the atlas."""
    scores = table.record.sources["scores"]
    model, files = scores.model, scores.corpus.files
    encoder = name.removesuffix(f"-{model.attention}")
    frame = table.frame.assign(
        encoder=encoder,
        family=model.family,
        attention=model.attention,
        treebank=Path(files[0]).name if files else "copies",
        controls=_controls_with(table),
    )
    if model.attention == CROSS:
        frame = frame.merge(_errors_of(folder / f"{encoder}-alignment"), how="left")
    return frame.reindex(columns=COLUMNS)


def _controls_with(table: hr.RoleTable) -> list[str]:
    """Name for each row the controls in which the head would have the role, as trees,words."""
    having = {
        control: {(layer, head, role) for role, heads in roles.items() for layer, head in heads}
        for control, roles in table.facts["controls"].items()
    }
    rows = zip(table.frame["layer"], table.frame["head"], table.frame["role"], strict=True)
    return [",".join(name for name, found in having.items() if row in found) for row in rows]


def _errors_of(folder: Path) -> pd.DataFrame:
    """Return the alignment errors of single heads, as columns of the role ``aligned``."""
    alignment = hr.load(folder, hr.WordAlignment)
    places = ["layer", "head"]
    by_weights, by_norms = (
        alignment.rows_of(measure).set_index(places) for measure in ("weights", "norms")
    )
    errors = {
        "aer": by_weights["aer"],
        "aer_low": by_weights["ci_low"],
        "aer_high": by_weights["ci_high"],
        "aer_norms": by_norms["aer"],
        "fewer_errors": by_weights["answer"],
    }
    return pd.DataFrame(errors).reset_index().assign(role=ALIGNED)


def rounded(numbers: FloatArray, bits: int) -> NDArray[np.float32]:
    """Round numbers to so many binary digits, in single precision."""
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent).astype(np.float32)


# What pages show


def rungs_of(atlas: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, list[Rung]]]:
    """Yield the rows of each model and attention, and the steps of evidence about their pairs."""
    roles = atlas[atlas["head"].notna()]
    for _, rows in roles.groupby(["encoder", "attention"]):
        pairs = rows[rows["role"].str.startswith(PAIRS)]
        pairs = pairs.assign(assigned=pairs["answer"] == YES)
        yield rows, ladder(pairs) if len(pairs) else []


def in_brackets(rung: Rung) -> str:
    """Format the number of heads of a step, with that of undecided ones in brackets."""
    return f"{len(rung.heads)} ({len(rung.undecided)})"


def by_step(atlas: pd.DataFrame) -> Rows:
    """Count the heads of encoders at each step for the arcs of some relation, and others."""
    for rows, rungs in rungs_of(atlas[atlas["attention"] == ENCODER]):
        arcs = rows[rows["role"].str.startswith(ARCS)]
        steps = {rung.step: in_brackets(rung) for rung in rungs}
        controls = {
            f"other {name}": len(heads_in(arcs[arcs["controls"].str.contains(name)]))
            for name in CONTROLS
        }
        yield {
            "encoder": rows["encoder"].iloc[0],
            "heads": len(heads_in(rows)),
            **{step: steps.get(step, "") for step in STEPS},
            "not specific": int(((arcs["answer"] == YES) & (arcs["specific"] == NO)).sum()),
            **controls,
            **{role: with_role(rows[rows["role"] == role]) for role in OTHER_ROLES},
        }


def with_role(rows: pd.DataFrame) -> str:
    """Count the heads with a role, and undecided ones; empty without the role."""
    answers = rows["answer"].value_counts()
    return f"{answers.get(YES, 0)} ({answers.get(UNDECIDED, 0)})" if len(rows) else ""


def by_target(atlas: pd.DataFrame) -> Rows:
    """Count the heads of decoders and of cross-attention, and name those with fewest errors."""
    for rows, rungs in rungs_of(atlas[atlas["attention"].isin((DECODER, CROSS))]):
        if not rungs:  # targets without trees and links
            continue
        steps = {rung.step: in_brackets(rung) for rung in rungs}
        fewest = rows[rows["aer"].notna()].sort_values("aer")[:3]
        yield {
            "model": rows["encoder"].iloc[0],
            "attention": rows["attention"].iloc[0],
            "heads": len(heads_in(rows)),
            **{step: steps.get(step, "") for step in STEPS},
            "local": with_role(rows[rows["role"] == "local"]),
            "delimiter:sep": with_role(rows[rows["role"] == "delimiter:sep"]),
            "fewer errors than the diagonal": int((rows["fewer_errors"] == YES).sum()),
            "fewest": ", ".join(
                f"{one.layer}-{one.head} {100 * one.aer:.1f}" for one in fewest.itertuples()
            ),
        }


def by_relation(atlas: pd.DataFrame) -> Rows:
    """Name the head with the role of each relation that is furthest beyond distance."""
    encoders = atlas[atlas["attention"] == ENCODER]
    yes = encoders[(encoders["answer"] == YES) & encoders["beyond_distance"].notna()]
    for name in encoders["encoder"].unique():
        row: dict[str, object] = {"encoder": name}
        for relation in RELATIONS:
            has = yes[(yes["encoder"] == name) & yes["role"].str.contains(f":{relation}[:/]")]
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
    claims = atlas[atlas["role"].str.startswith(CLAIM)]
    for role, rows in claims.groupby("role", sort=False):
        cells = {
            one.encoder: f"{MARKS[one.answer]} {one.mean:.2f} ({one.control:.2f})".strip()
            for one in rows.itertuples()
        }
        yield {"claim": str(role).removeprefix(CLAIM), **cells}


if __name__ == "__main__":
    main()
