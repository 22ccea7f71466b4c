"""Claims of papers about attention heads, tested on many encoders and treebanks.

python -m docs.studies.claims_over_encoders --models FOLDER --treebanks FOLDER --kept FOLDER
    --out docs/data/claims [--resume] [--only ENCODER,...] [--quick] [--seconds 500]
    [--task MODEL FILE]

The script saves scores and other measurements in the folder --kept, one sub-folder for each encoder
and treebank; --resume goes on from there. It makes tables anew when the code of claims has changed.
After --seconds no further encoder is started. --treebanks is a folder of the UD_... folders;
--models has a folder for each encoder. The first treebank of each language comes first, as pairs of
sentences; --quick takes no other. --task, which may come several times, names a model with its task
and labelled examples: then only the claims about removed heads are tested.

Written to --out, with a codebook in CODEBOOK.txt there:

claims.csv      a row for each encoder, treebank and claim
syntactic.csv   heads that a threshold calls syntactic, and how many pass each further control
encoders.csv    in at least how many encoders a claim is shown, by partial conjunction
tasks.csv       a row for each model with a task and claim about removed heads
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from headroles import HeadScores, read_conllu
from headroles.errors import HeadRolesError
from headroles.inference import partial_conjunction_of_p
from headroles.inference.sample import Sample
from headroles.roles import contrast_of
from headroles.studies import claims
from headroles.studies.claims import CLAIMS, ClaimOptions, Measured, claims_of
from headroles.studies.claims.claim import TASK, TWO_TASKS
from headroles.studies.claims.table import P_VALUES
from headroles.studies.heads import HeadColumns, clusters_of
from headroles.testing.evidence import find_p_values
from headroles.testing.hypotheses import Hypotheses, size_of_scores
from headroles.testing.options import TestOptions

ENGLISH = (
    "UD_English-EWT/en_ewt-ud-dev",
    "UD_English-Atis/en_atis-ud-dev",
    "UD_English-ESLSpok/en_eslspok-ud-dev",
)
TREEBANKS = {
    "English": ENGLISH,
    "Russian": ("UD_Russian-GSD/ru_gsd-ud-dev",),
    "Korean": ("UD_Korean-GSD/ko_gsd-ud-dev",),
    "Chinese": ("UD_Chinese-GSD/zh_gsd-ud-dev",),
}
LANGUAGES = {
    "rubert-tiny2-vesma": ("Russian", "English"),
    "ko-albert": ("Korean",),
    "opus-mt-zh-en": ("Chinese",),
}
"""Languages of encoders that are not for English alone."""
AFTER = {
    "minilm-l6-resume": "minilm-l6",
    "minilm-l6-sre": "minilm-l6",
    "minilm-l6-cloneguard": "minilm-l6",
    "granite-30m-question": "granite-30m-english",
    "distilbert-quire-0.3.2": "distilbert-quire-0.2.0",
}
"""Fine-tuned encoders, with their originals."""
OF_TASKS = tuple(one.id for one in CLAIMS.values() if one.needs in (TASK, TWO_TASKS))
OF_TWO = ("last-layers-move", "separators-spread")


def main() -> None:
    """Parse the command line, measure missing runs, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--treebanks", type=Path, required=True)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--task", nargs=2, type=Path, action="append", metavar=("MODEL", "FILE"))
    given = parser.parse_args()
    if given.task:
        write_tasks(given)
        return
    if given.kept.exists() and not given.resume:
        parser.error(f"{given.kept} exists; pass --resume to go on from it, or another folder")
    given.kept.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.seconds
    for run in runs(given):
        chosen = given.only is None or run.encoder in given.only
        if chosen and not run.is_done and time.monotonic() < end:
            print(run.name, run.measure(), flush=True)
    write(given)


def code_digest() -> str:
    """Return the digest of the code that tables depend on."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for file in sorted(Path(claims.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Run:
    """An encoder over a treebank; ``base`` is the encoder that it was fine-tuned from."""

    encoder: str
    model: Path
    treebank: Path
    pairing: str
    kept: Path
    base: Path | None = None

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.encoder}--{self.treebank.stem}--{self.pairing}"

    @property
    def is_done(self) -> bool:
        """Whether its table exists."""
        return self.file("csv").exists()

    def file(self, kind: str) -> Path:
        """Return the file of its table of this ``kind``, for the present code."""
        return self.kept / f"{self.name}.{CODE}.{kind}"

    def measure(self) -> str:
        """Test the claims, and keep the tables; what became of it."""
        options = ClaimOptions(pairing=self.pairing, claims=OF_TWO if self.base else None)
        place = self.kept / self.name
        if self.base is None:
            measured = Measured(str(self.model), read_conllu(self.treebank), options, saved=place)
        else:
            names = (self.base.name, self.model.name)
            before, after = (self.kept / replace(self, encoder=name).name for name in names)
            models = str(self.base), read_conllu(self.treebank), options, str(self.model)
            measured = Measured(*models, saved=before, after_saved=after)
        try:
            table = claims_of(measured).frame
        except HeadRolesError as error:
            return f"not measured: {error}"
        said = {"encoder": self.encoder, "treebank": self.treebank.stem, "pairing": self.pairing}
        if self.base is None:
            counts = pd.DataFrame([survivors(measured.scored.scores)])
            counts.assign(**said).to_csv(self.file("syntactic"), index=False)
        table.assign(**said).to_csv(self.file("csv"), index=False)
        return str(table["verdict"].value_counts().to_dict())


def runs(given: argparse.Namespace) -> Iterator[Run]:
    """Yield encoders over the first treebanks of their languages, then copies, then the rest."""
    folders = [folder for folder in given.models.iterdir() if (folder / "config.json").exists()]
    order = sorted(folders, key=lambda folder: (folder.name in AFTER, folder.name))
    rest = []
    for model in order:
        for language in LANGUAGES.get(model.name, ("English",)):
            files = [given.treebanks / f"{name}.conllu" for name in TREEBANKS[language]]
            first = Run(model.name, model, files[0], "adjacent", given.kept)
            yield first
            if before := AFTER.get(model.name):
                name = f"{before} to {model.name}"
                yield replace(first, encoder=name, base=given.models / before)
            else:
                rest += [replace(first, treebank=file) for file in files[1:]]
                rest.append(replace(first, pairing="none"))
    if not given.quick:
        yield from rest


CODE = code_digest()
TOLD = ["claim", "verdict", "effect", "ci_low", "ci_high", "n", "unit"]
TOLD += [*P_VALUES, "note"]
STEPS = ("threshold", "uncorrected", "corrected", "clustered", "beyond_distance")


def survivors(scores: HeadScores) -> dict[str, int]:
    """Count heads that are syntactic in some relation, or in all together, after each control.

    A mean above 3; an uncorrected t-test over independent examples; corrected over all heads and
    roles (Benjamini-Hochberg); clustered by documents as well; and with the contrast to other words
    at the same offset shown for the same relation.
    """
    columns = HeadColumns.of(scores)
    arcs = [one for one in columns.ids if one.startswith("syntactic") and is_governor(one)]
    clusters = clusters_of(scores, TestOptions())
    shown = {
        "threshold": columns.values(scores),
        "uncorrected": shows(scores, columns, None, "none"),
        "corrected": shows(scores, columns, None, "fdr_bh"),
        "clustered": shows(scores, columns, clusters, "fdr_bh"),
    }
    shown["threshold"] = np.nanmean(shown["threshold"], axis=0) > scores.score.threshold
    grids = {
        step: one.reshape(len(columns.ids), -1)[[columns.ids.index(role) for role in arcs]]
        for step, one in shown.items()
    }
    contrasts = shown["clustered"].reshape(len(columns.ids), -1)
    beyond = [
        contrasts[columns.ids.index(contrast_of(role))]
        if contrast_of(role) in columns.ids
        else np.zeros(contrasts.shape[1], dtype=bool)
        for role in arcs
    ]
    grids["beyond_distance"] = grids["clustered"] & np.array(beyond)
    heads = {step: int(one.any(axis=0).sum()) for step, one in grids.items()}
    return {"heads": columns.n_layers * columns.n_heads, **heads}


def is_governor(role: str) -> bool:
    """Tell whether a role is of arcs from dependents to governors, and no contrast."""
    return role == "syntactic" or role.endswith(":to_governor")


def shows(
    scores: HeadScores, columns: HeadColumns, clusters: np.ndarray | None, correction: str
) -> np.ndarray:
    """Tell which means (tests,) are shown to be above their thresholds."""
    sample = Sample.of(columns.values(scores), clusters)
    tested = Hypotheses.of(
        sample, columns.thresholds(scores.score, None), size=size_of_scores(sample)
    )
    return find_p_values(tested, TestOptions(correction=correction), "greater").shows(0.05)


def write(given: argparse.Namespace) -> None:
    """Join the tables of all runs that are done into those of ``out``."""
    done = [run for run in runs(given) if run.is_done]
    if all(run.base is not None for run in done):
        return
    given.out.mkdir(parents=True, exist_ok=True)
    whole = pd.concat([pd.read_csv(run.file("csv")) for run in done], ignore_index=True)
    names = ["encoder", "treebank", "pairing"]
    lacking = [*OF_TASKS, *OF_TWO]
    is_pair = whole["encoder"].str.contains(" to ")
    rows = whole[is_pair | ~whole["claim"].isin(lacking)][names + TOLD]
    rows.to_csv(given.out / "claims.csv", index=False, float_format="%.5g")
    counts = [pd.read_csv(run.file("syntactic")) for run in done if run.base is None]
    table = pd.concat(counts)[[*names, "heads", *STEPS]]
    table.to_csv(given.out / "syntactic.csv", index=False)
    replicated(rows).to_csv(given.out / "encoders.csv", index=False, float_format="%.3g")


def write_tasks(given: argparse.Namespace) -> None:
    """Test the claims about removed heads on each model with a task, and write the table."""
    corpus = given.treebanks / f"{ENGLISH[0]}.conllu"
    found = []
    for model, file in given.task:
        options = ClaimOptions(claims=OF_TASKS)
        table = claims_of(Measured(str(model), corpus, options, tasks=[file])).frame
        found.append(table.assign(model=model.name, task=f"{file.parent.name}/{file.name}"))
        print(model.name, table["verdict"].value_counts().to_dict(), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    rows = pd.concat(found)[["model", "task", *TOLD]]
    rows.to_csv(given.out / "tasks.csv", index=False, float_format="%.5g")


def first_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of pairs of sentences of each encoder's first treebank."""
    first = [
        Path(TREEBANKS[LANGUAGES.get(encoder, ("English",))[0]][0]).name
        for encoder in rows["encoder"]
    ]
    return rows[(rows["treebank"] == first) & (rows["pairing"] == "adjacent")]


def replicated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the least number of encoders in which a claim or its opposite holds.

    The largest u with a p-value of the partial conjunction of at most 0.05: of u of k encoders,
    for any dependence of their tests, which are made on the same texts (Bonferroni's).
    Fine-tuned copies do not count beside their encoder.
    """
    first = first_of(rows)
    first = first[~first["encoder"].str.contains(" to ") & ~first["encoder"].isin(AFTER)]
    found = []
    for claim, own in first[first["verdict"] != "not testable"].groupby("claim", sort=False):
        said = {"claim": claim, "encoders": len(own)}
        for side in ("shown", "contradicted"):
            p = own[f"p_{side}"].to_numpy()
            said[f"{side}_in"] = sum(
                partial_conjunction_of_p(p, u) <= LEVEL for u in range(1, len(p) + 1)
            )
        ends = {"effect_min": own["effect"].min(), "effect_max": own["effect"].max()}
        found.append(said | ends)
    return pd.DataFrame(found)


LEVEL = 0.05


if __name__ == "__main__":
    main()
