"""The page of the measured claims, with numbers and tables from the CSV files alone.

python -m docs.studies.claims_page docs/data/claims docs/claims-measured.md

The sentences are in claims_page.txt beside this script, with a field in braces for each number and
table, as `fields` makes them: `claim[ID]` counts verdicts over encoders (`Counts`),
`effect[ENCODER][ID]` is one effect, over EWT `english[ENCODER][ID]`, and `size[MODEL][ID]` that of
a model with a task, without its sign; `same[A and B]` counts claims with equal verdicts; `left`
counts the heads that pass each control.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace

import pandas as pd

from docs.studies.claims_figures import published
from docs.studies.claims_over_encoders import AFTER, ENGLISH, OF_TWO, STEPS, first_of
from headroles.studies.claims import CLAIMS
from headroles.studies.claims.table import CONTRADICTED, NOT_TESTABLE, SHOWN, UNDECIDED

WIDTH = 120
SIGNS = {SHOWN: "✓", CONTRADICTED: "✗", UNDECIDED: "?", NOT_TESTABLE: "n.t."}


def main() -> None:
    """Parse the command line and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    names = ("claims", "encoders", "syntactic", "tasks")
    read = SimpleNamespace(**{one: pd.read_csv(given.tables / f"{one}.csv") for one in names})
    sentences = Path(__file__).with_suffix(".txt").read_text("utf-8")
    page = re.sub(r"(\d) ?%", r"\1\0%", sentences.format_map(fields(read)))
    blocks = [
        block if block[0] in "|#!" else fill(block, WIDTH, break_on_hyphens=False)
        for block in page.split("\n\n")
    ]
    text = "\n\n".join(blocks).replace("\0", " ")
    given.page.write_text(text.rstrip() + "\n", encoding="utf-8")


def fields(read: SimpleNamespace) -> dict[str, object]:
    """Return the fields of the sentences."""
    rows = first_of(read.claims)
    alone = rows[~rows["encoder"].isin(AFTER)]
    effects = rows.pivot_table(index="claim", columns="encoder", values="effect")
    in_english = read.claims[read.claims["treebank"] == Path(ENGLISH[0]).name]
    in_english = in_english[in_english["pairing"] == "adjacent"]
    tasks = read.tasks.pivot_table(index="claim", columns="model", values="effect")
    pairs = [("gte-small", "bge-small-en"), ("gte-small", "e5-small"), ("bge-small-en", "e5-small")]
    syntactic = first_of(read.syntactic)
    both = further(read.claims)
    originals = syntactic[~syntactic["encoder"].isin(AFTER)]
    notes = alone.set_index("claim")["note"].fillna("")
    random = notes["low-rank-together"].str.extract(r"spaces: ([\d.]+)")[0].astype(float)
    return {
        "claim": {one: Counts.of(own) for one, own in alone.groupby("claim")},
        "effect": effects.to_dict(),
        "english": in_english.pivot_table(
            index="claim", columns="encoder", values="effect"
        ).to_dict(),
        "size": tasks.abs().to_dict(),
        "same": {f"{one} and {other}": same(rows, one, other) for one, other in pairs},
        "left": originals[["heads", *STEPS]].sum(),
        "n": SimpleNamespace(
            encoders=alone[~alone["encoder"].str.contains(" to ")]["encoder"].nunique(),
            copies=len(AFTER),
            modifiers=int(notes["syntactic-heads"].str.contains(": (?:amod|advmod)").sum()),
            difference=(both["effect"] - both["effect_first"]).abs().median(),
            random_low=random.min(),
            random_high=random.max(),
        ),
        "table": {
            "verdicts": verdicts(alone, read.encoders),
            "syntactic": listed(syntactic[["encoder", "heads", *STEPS]]),
            "others": others(both),
            "copies": copies(rows),
            "tasks": of_tasks(read.tasks),
        },
    }


@dataclass(frozen=True)
class Counts:
    """Encoders by the verdict of one claim, with the smallest and the largest effect."""

    shown: int
    contradicted: int
    undecided: int
    untestable: int
    low: float
    high: float

    @property
    def tested(self) -> int:
        """Number of encoders on which the claim could be tested."""
        return self.shown + self.contradicted + self.undecided

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Counts:
        """Count the rows of a claim."""
        counts = rows["verdict"].value_counts()
        numbers = [int(counts.get(one, 0)) for one in SIGNS]
        return cls(*numbers, float(rows["effect"].min()), float(rows["effect"].max()))


def same(rows: pd.DataFrame, one: str, other: str) -> str:
    """Count the claims with the same verdict for two encoders."""
    first, second = (
        rows[rows["encoder"] == name].set_index("claim")["verdict"] for name in (one, other)
    )
    return f"{int((first == second).sum())} of {len(first)}"


def verdicts(rows: pd.DataFrame, encoders: pd.DataFrame) -> str:
    """Tabulate each claim: published figure, effects, counts of verdicts, partial conjunction."""
    least = encoders.set_index("claim")
    found = []
    for name in (one for one in CLAIMS if one in set(rows["claim"]) - set(OF_TWO)):
        counts = Counts.of(rows[rows["claim"] == name])
        row = {"claim": f"`{name}`", "published": published(name)}
        row["here"] = f"{counts.low:.2f} to {counts.high:.2f}"
        row |= {"shown": counts.shown, "contradicted": counts.contradicted}
        row |= {"undecided": counts.undecided, "not testable": counts.untestable}
        row["at least"] = "-"
        if name in least.index:
            ends = least.loc[name, ["shown_in", "contradicted_in"]].astype(int)
            row["at least"] = f"{ends.iloc[0]} ✓, {ends.iloc[1]} ✗"
        found.append(row)
    return listed(pd.DataFrame(found))


def further(claims: pd.DataFrame) -> pd.DataFrame:
    """Return tests on further texts, beside those of the same encoder's first treebank."""
    alone = claims[~claims["encoder"].str.contains(" to ")]
    first = first_of(alone)
    both = alone.drop(first.index).merge(first, on=["encoder", "claim"], suffixes=("", "_first"))
    both = both[(both["verdict"] != NOT_TESTABLE) & (both["verdict_first"] != NOT_TESTABLE)]
    sides = both["verdict"].map({SHOWN: 1, CONTRADICTED: -1, UNDECIDED: 0})
    both["opposite"] = sides * both["verdict_first"].map({SHOWN: 1, CONTRADICTED: -1}) == -1
    both["same"] = both["verdict"] == both["verdict_first"]
    return both


def others(both: pd.DataFrame) -> str:
    """Tabulate further texts: the number of verdicts that agree with the first treebank."""
    found = [
        {
            "treebank": treebank,
            "examples": "pairs" if pairing == "adjacent" else "sentences",
            "encoders": rows["encoder"].nunique(),
            "tests": len(rows),
            "same verdict": int(rows["same"].sum()),
            "opposite verdict": int(rows["opposite"].sum()),
        }
        for (treebank, pairing), rows in both.groupby(["treebank", "pairing"], sort=False)
    ]
    opposite = [
        f"{one.encoder} on `{one.claim}` ({one.effect_first:.2f}, and {one.effect:.2f} over "
        f"{one.treebank})"
        for one in both[both["opposite"]].itertuples()
    ]
    return f"{listed(pd.DataFrame(found))}\n\nOpposite verdicts: {'; '.join(opposite) or 'none'}."


def copies(rows: pd.DataFrame) -> str:
    """Tabulate the claims about fine-tuning by pair."""
    found = []
    for name, own in rows[rows["claim"].isin(OF_TWO)].groupby("encoder", sort=False):
        rows_of_two = own.set_index("claim").loc[list(OF_TWO)]
        cells = [f"{SIGNS[one.verdict]} {one.effect:.2f}" for one in rows_of_two.itertuples()]
        found.append({"encoder and copy": name} | dict(zip(OF_TWO, cells, strict=True)))
    return listed(pd.DataFrame(found))


def of_tasks(tasks: pd.DataFrame) -> str:
    """Tabulate the claims about removed heads by model."""
    found = []
    for name, rows in tasks.groupby("claim", sort=False):
        row = {"claim": f"`{name}`", "published": published(name)}
        for one in rows.itertuples():
            effect = f" {one.effect:.2f}" if one.effect == one.effect else ""
            row[one.model] = SIGNS[one.verdict] + effect
        found.append(row)
    return listed(pd.DataFrame(found))


def listed(frame: pd.DataFrame) -> str:
    """Format a frame as a table of Markdown; numbers stand at the right."""
    kinds = ["---:" if pd.api.types.is_numeric_dtype(kind) else "---" for kind in frame.dtypes]
    rows = [[name.replace("_", " ") for name in frame.columns], kinds, *frame.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


if __name__ == "__main__":
    main()
