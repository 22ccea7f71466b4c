"""The main screens of a small made model, as a user sees them: tests/screens/*.txt.

    python -m tests.screens.make

writes them anew. A change of words is seen in the diff of these files; numbers are there to read,
and `words_of` leaves them out of the comparison, since other processors round otherwise.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from math import inf
from pathlib import Path
from unittest.mock import patch

from headroles import sample_treebank
from headroles.cli import console
from tests.commands import run
from tests.conftest import make_bert, save
from tests.scoring.test_targets import PAIRS, make_model
from tests.tasks.conftest import SENTENCES, make_task_model, write_labelled

FOLDER = Path(__file__).parent
SCREENS: Mapping[str, str] = {
    "classify": "classify tiny-bert sample.conllu --threshold 1.5 --out roles",
    "score": "score tiny-bert sample.conllu --score hit --roles local,syntactic --out hits",
    "assign": "assign roles --threshold 1.2 --distance-margin 0.1",
    "assign-hits": "assign hits",
    "compare": "compare roles later --threshold 1.5 --margin 0.05 --out shifts",
    "best": "best hits",
    "examples": "examples roles --head 0-0 --role local --n 2",
    "describe": "describe quantities",
    "describe-head": "describe roles --head 0-0",
    "tokens": "tokens tiny-bert small.conllu --out tokens",
    "power": "power roles --out power",
    "replicate": "replicate roles other --threshold 1.5 --out both",
    "importance": "importance classifier task.tsv --out importance",
    "ablate": "ablate classifier task.tsv --out ablations",
    "by-role": "by-role classifier task.tsv --roles-from task-roles --draws 2 --permutations 99"
    " --out by-role",
    "by-task": "by-task ablations again --out by-task",
    "prune": "prune classifier --order top --keep 7 --out pruned",
    "pruning-curves": "pruning-curves classifier task.tsv --test task.tsv --orders random,top"
    " --shares 0.25,0.5 --draws 5 --out curves",
    "gate": "gate classifier task.tsv --test task.tsv --keep 7 --seeds 2 --updates 5 --out gated",
    "collaborate": "collaborate tiny-bert --rank 16 --sample small.conllu --out shared",
    "redundancy": "redundancy tiny-bert --draws 9 --permutations 99",
    "align": "align translator pairs.bitext --top 2 --links-of 0-1,1-0 --write-links links --out"
    " aligned",
    "claims": "claims tiny-bert small.conllu --claims positional-heads,special-tokens-little"
    " --out claims",
}
"""Commands by the name of their screen, in their order: one may read what another has written."""
_BEFORE = (
    "classify other-bert sample.conllu --threshold 1.5 --out later",
    "classify tiny-bert rest.conllu --threshold 1.5 --out other",
    "score tiny-bert small.conllu --roles confidence,entropy,distance --out quantities",
    "classify classifier small.conllu --threshold 1 --no-beyond-offset --out task-roles",
    "ablate classifier other-task.tsv --out again",
)
_NUMBER = r"[-+]?\d[\d,.]*%?"
_MARKS = re.compile(rf"{_NUMBER}(?:[-/ ,]+{_NUMBER})*")


def screens() -> Iterator[tuple[str, str]]:
    """Yield the name of each screen, and what its command prints, in a new folder."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        _make_material()
        for line in _BEFORE:
            _printed(line)
        for name, line in SCREENS.items():
            yield name, f"$ headroles {line}\n{_printed(line)}"


def words_of(screen: str) -> list[str]:
    """Return the lines of a screen without their numbers, and without the spaces that they take."""
    return [" ".join(_MARKS.sub("#", line).split()) for line in screen.splitlines()]


def _printed(line: str) -> str:
    with (  # on a slow machine too
        patch.object(console, "SECONDS_BETWEEN_LINES", inf),
        patch.object(console, "SECONDS_TO_ESTIMATE", inf),
    ):
        done = run(*line.split())
    if done.exit_code:
        raise RuntimeError(f"headroles {line}: {done.output}")
    return "\n".join(line.rstrip() for line in done.output.splitlines()) + "\n"


def _make_material() -> None:
    """Write two encoders, a classifier, a translator, a treebank in parts, a bitext, two tasks."""
    save(make_bert(0), Path("tiny-bert"))
    save(make_bert(1), Path("other-bert"))
    save(make_task_model(), Path("classifier"))
    save(make_model("bart"), Path("translator"))
    bitext = "".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS * 4)
    Path("pairs.bitext").write_text(bitext, "utf-8")
    blocks = sample_treebank().read_text("utf-8").split("\n\n")
    parts = {"sample": blocks[:60], "small": blocks[:24], "rest": blocks[60:120]}
    for name, part in parts.items():
        Path(f"{name}.conllu").write_text("\n\n".join([*part, ""]), "utf-8")
    write_labelled(Path("task.tsv"), SENTENCES * 2)
    write_labelled(Path("other-task.tsv"), SENTENCES[:6])


def main() -> None:
    """Write all screens."""
    for name, screen in screens():
        (FOLDER / f"{name}.txt").write_text(screen, "utf-8")
        sys.stdout.write(f"{name}{os.linesep}")


if __name__ == "__main__":
    main()
