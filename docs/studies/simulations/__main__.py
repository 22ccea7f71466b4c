"""Error rates of tests, intervals and plans, as tables in Markdown.

python -m docs.studies.simulations level|families|... FOLDER ... [--draws N]
python -m docs.studies.simulations tasks-make MODEL SST-2 DATA

--draws sets how often each row is drawn. FOLDER are scores that
`headroles score` wrote (``best`` and ``no-variance``: with --score hit), for ``changes`` scores of
one corpus before and after, for ``moved`` and ``dealt`` a model and a treebank. ``tasks-make``
writes the folder DATA of ``removed``, ``orders``, ``importance``, ``unchanged``, ``two-tasks`` and
``reliability``, by a model fine-tuned on SST-2 (`docs.studies.fine_tuning`). ``curves`` and
``claims`` take no folder, ``copies`` takes a model and a treebank.

level        single tests at 5 %, by the skewness of a column of scores
families     any rejection after a correction, where every H0 is true at its limit
answers      answers of the default table: given, found of the true ones, wrong
found        the share of true answers that are found, about roles of arcs and of tokens apart
limit        answers if half of the roles of arcs lie exactly at a threshold or margin
steps        wrong answers and steps of evidence about roles of arcs
limits       the same if one quantity that they need lies exactly at its limit for half of the roles
half         false discoveries and power if half of H0 are true at their limit
intervals    coverage, of all intervals and of heads picked by their answer
plans        heads decided with as many examples as `power` planned
best         coverage of hits and gains of best heads
no-variance  answers about scores that do not vary
changes      changes found between models that do not differ, or differ by the margin
replicate    roles shown in more corpora than have them
dealt        relations beside all others, with labels dealt at random within their sentence
moved        roles of arcs moved at random within their sentence, by margin
removed      by-role: roles dealt to heads at random
curves       pruning curves of few draws
orders       pruning curves of one method and other phrases
importance   coverage of intervals of importance
unchanged    ablate: losses and accuracies that no head changes
two-tasks    by-task: two tasks that are one
reliability  importance: orders of other phrases, and what is expected of them
claims       claims whose null hypothesis holds
copies       claims on copies of a model with permuted weights
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from docs.studies.simulations import Study, claims, markdown, scores, steps, tasks

STUDIES: dict[str, tuple[Study, int]] = {
    **scores.STUDIES,
    **steps.STUDIES,
    **tasks.STUDIES,
    **claims.STUDIES,
}


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=(*STUDIES, tasks.MAKE))
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--draws", type=int, help="of each row; left out: as many as usual")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.what == tasks.MAKE:
        tasks.make(*given.folders)
        return
    study, usual = STUDIES[given.what]
    print(markdown(study(given.folders, given.draws or usual)))


if __name__ == "__main__":
    main()
