"""Wrong command lines end with their cause in words, before any work, and leave nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headroles import assign_roles, compare_roles
from headroles.results.stored import save_together
from tests.commands import contents, run
from tests.conftest import CAT, conllu_sentence, make_scores, write_treebank

ERRORS = """
2 classify                                       => Missing argument 'MODEL'
2 score BERT                                     => Missing argument 'CORPUS'
2 assign                                         => Missing argument 'DIR'
2 dance                                          => No such command 'dance'
2 CLASSIFY --window two                          => Invalid value for '--window'
2 CLASSIFY --pairing random                      => --pairing is 'random'; it must be one of
2 CLASSIFY --device toaster                      => unknown device 'toaster'
2 CLASSIFY --text-columns 0                      => --parser
2 CLASSIFY --parser en_core_web_sm               => a treebank is parsed already
2 CLASSIFY --threshold nan                       => --threshold is nan
2 CLASSIFY --alpha 0         => --alpha is 0.0; it must be a number above 0 and below 0.5
2 CLASSIFY --test wilcoxon   => --test is 'wilcoxon'; it must be one of t, betting
2 CLASSIFY --preset published --score excess     => published numbers are bias scores
2 CLASSIFY --roles locl                          => there is no role 'locl' (did
2 CLASSIFY --no-such-option                      => No such option
1 CLASSIFY --out TREEBANK/out => cannot be a folder: it, or one above it, is a file
1 classify no-such-model TREEBANK --out ROLES    => is not empty
1 score no-such-model TREEBANK --out ROLES       => is not empty
1 assign EMPTY                                   => error: there is no run.json in EMPTY
1 show EMPTY                                     => error: there is no run.json in EMPTY
1 export EMPTY                                   => error: there is no run.json in EMPTY
1 export SCORES                                  => run: headroles assign SCORES
1 figure SCORES --out OUT/f.svg                  => run: headroles assign SCORES
2 power SCORES --overwrite                       => --overwrite needs a folder: name one for
2 redundancy BERT --report                       => --report needs a folder: name one for
2 replicate SCORES --out OUT                     => needs two score sets or more
2 compare SCORES --out OUT                       => name two or more to compare
2 compare SCORES SCORES --out OUT --corpus x     => leave out --corpus; or pass --models
2 compare --models BERT BERT --out OUT           => name what the models are to be scored over
1 compare EMPTY EMPTY --out OUT                  => or pass --models to score models first
1 compare SCORES EMPTY --out OUT   => there are no scores in EMPTY; name folders that score or
1 compare EMPTY SCORES --out OUT                 => there are no scores in EMPTY
1 compare SCORES SCORES EMPTY --out OUT          => there are no scores in EMPTY
1 compare SCORES EMPTY/none --out OUT            => there are no scores in EMPTY/none
1 compare SCORES BERT --out OUT                  => or pass --models to score models first
1 compare SCORES COMPARED --out OUT => COMPARED holds no scores (it holds: comparison)
1 compare COMPARED SCORES --out OUT => COMPARED holds no scores (it holds: comparison)
1 by-task SCORES SCORES --out OUT                => headroles ablate MODEL TASK --out DIR
1 compare SCORES SCORES --out NOTES              => NOTES is not empty
1 compare SCORES SCORES --out SCORES => SCORES holds scores, which a comparison would replace
1 compare SCORES SCORES --out SCORES --overwrite => which a comparison would replace
1 MODELS --out SCORES                            => which a comparison would replace
1 MODELS --out SCORES --overwrite                => which a comparison would replace
2 COMPARE --window 2                             => leave out --window; or pass --models
2 COMPARE --no-beyond-offset --no-header => leave out --header, --beyond-offset; or
2 COMPARE --text-columns 0                       => leave out --text-columns; or
2 COMPARE --margin 0           => --margin is 0.0; it must be a number above 0
2 COMPARE --correction max_t   => --correction is 'max_t'; it must be one of
2 COMPARE --alpha 0.5                            => --alpha is 0.5
2 COMPARE --on-mismatch ignore => --on-mismatch is 'ignore'; it must be one of error
2 COMPARE --names a,b                            => names are ['a', 'b'] for 1 score sets
2 COMPARE --names before => give each a different name, other than 'before'
2 COMPARE --names ,                              => names are [] for 1 score sets
2 MODELS --test wilcoxon       => --test is 'wilcoxon'; it must be one of t, betting
2 MODELS --names ../a                            => '../a' cannot be the name of a folder
2 MODELS --names run.json                        => 'run.json' cannot be the name of a folder
2 MODELS --score share         => --score is 'share'; it must be one of bias, excess
2 MODELS --pairing random                        => --pairing is 'random'
2 MODELS --text-columns 0                        => --parser
2 MODELS --relations ,                           => --relations names no relation
2 MODELS --clusters document                     => all examples are of one document
2 compare --models BERT SCORES --corpus ONE --out OUT => SCORES holds results and no model; to
2 compare --models BERT BERT ONE --corpus ONE --out OUT => ONE is a file and no model
1 RELATIONS nsubjj             => no relation 'nsubjj'; did you mean 'nsubj'?
1 RELATIONS obj,iobj           => no relation 'iobj'; did you mean 'obj'?
1 RELATIONS xyz                => no relation 'xyz'; it has: amod, nsubj, obj, punct
1 RELATIONS all,nsubj => 'all' stands for every relation; give it alone, or give only names
1 RELATIONS nsubj:pass                           => --keep-subtypes
1 RELATIONS ALL                                  => no relation 'ALL'
2 examples SCORES --role local --head 4.0        => it must be layer-head, as in 3-11
2 examples SCORES --role local --head 0          => it must be layer-head, as in 3-11
2 examples SCORES --role local --head a-b        => it must be layer-head, as in 3-11
2 examples SCORES --role local --head 1-         => it must be layer-head, as in 3-11
2 examples SCORES --role local --head 1 --layer -1 => it must be layer-head, as in 3-11
2 examples SCORES --role local --head 4-0 --layer 4 => the head is '4-4-0'; it must be layer-
2 EXAMPLES --no-weights --device cpu             => leave out --device
2 EXAMPLES --figure a.txt                        => must end in .svg
2 COLLABORATE                                    => give exactly one of --rank and --error
2 COLLABORATE --rank 8 --error 0.1               => give exactly one of --rank
2 COLLABORATE --rank 99                          => the rank is 99; a layer has 4 heads of 8
2 COLLABORATE --error 2                          => --error is 2.0; it must be a number above 0
2 COLLABORATE --rank 8 --label-column 1          => --label-column without a task
2 COLLABORATE --rank 8 --no-header               => name it with --sample
2 COLLABORATE --rank 8 --parser p                => name it with --sample
2 collaborate BERT --rank 8                      => Missing option '--out'
2 export ROLES --out OUT/r.xlsx                  => r.xlsx has no known file extension (.csv
2 export ROLES --out OUT/r.html --format csv => ends as html does, and --format says csv
2 export ROLES --role locla => there is no role 'locla'; did you mean 'local'?
2 export ROLES --layer 2                         => there is no layer '2'; there is: 0, 1
2 export ROLES --layer a                         => there is no layer 'a'; there is: 0, 1
2 export ROLES --format xls                      => --format is 'xls'; it must be one of csv
2 export ROLES --view tall => the view is 'tall'; it must be one of long, wide, assigned
2 export ROLES --view layers                     => the view is 'layers'
2 export ROLES --view wide --value size          => the value is 'size'
2 export ROLES --value mean => --value chooses the cells of a wide table; pass --view wide
2 export ROLES --view long --value mean          => pass --view wide with it
1 export ROLES --out /dev/full => /dev/full cannot be written: No space left on device
2 FIGURE --kind changes       => no figure of the role table called 'changes'
2 FIGURE --kind heads --role local => no choice of role; choose another --kind, or leave --role out
2 FIGURE --role objj                             => no choice of role; choose another --kind
2 FIGURE --kind head                             => is of one head; name it with --head
2 FIGURE --kind head --head ²-1                  => the head is '²-1'; it must be layer-head
2 FIGURE --kind role --head 1-2                  => no choice of a head
2 FIGURE --kind role --role locl                 => no role 'locl'
2 figure ROLES --out OUT/f.gif                   => its name must end in .svg, .pdf, .png
2 report ROLES --out OUT/page.txt                => is no name of an HTML file
"""
"""Exit codes, commands with places in capital letters, and what they print on standard error."""
LONG = {
    "CLASSIFY": "classify BERT TREEBANK --out OUT",
    "EXAMPLES": "examples SCORES --role local --head 0-0",
    "COLLABORATE": "collaborate BERT --out OUT",
    "RELATIONS": "classify no-model TREEBANK --out OUT --relations",
    "COMPARE": "compare SCORES SCORES --out OUT",
    "MODELS": "compare --models no-such-model no-other-model --corpus ONE --out OUT",
    "FIGURE": "figure ROLES --out OUT/f.svg",
}


@pytest.fixture(scope="module")
def places(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What words of a command line in capital letters stand for."""
    folder = tmp_path_factory.mktemp("errors")
    values = np.random.default_rng(0).normal([2.0, 4.0], 0.5, (30, 2, 3, 2))
    scores = make_scores(values, ["local", "block"], [f"d{k}" for k in range(30)])
    scores = replace(scores, digests=scores.ids)
    scores.save(folder / "scores")
    save_together(folder / "roles", [scores, assign_roles(scores)])
    compare_roles(scores, scores).save(folder / "compared")
    for name in ("empty", "notes"):
        (folder / name).mkdir()
    (folder / "notes" / "mine.txt").touch()
    (folder / "one").with_suffix(".conllu").write_text(conllu_sentence(CAT, "one"))
    named = {one.stem.upper(): str(one) for one in folder.iterdir()}
    files = {"BERT": str(bert_folder), "TREEBANK": str(write_treebank(folder))}
    return {**LONG, **files, **named, "OUT": str(folder / "out")}


@pytest.mark.parametrize("line", ERRORS.strip().splitlines())
def test_wrong_command_lines(
    line: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in places.items():
        line = re.sub(rf"\b{name}\b", place, line)
    folder = Path(places["OUT"]).parent
    monkeypatch.chdir(folder)
    before = contents(folder)
    (code, *words), message = (part.split() for part in line.split("=>"))
    done = run(*words)
    printed = " ".join(done.stderr.split())
    assert (done.exit_code, done.stdout) == (int(code), ""), printed
    assert " ".join(message) in printed
    assert "Traceback" not in printed
    if not printed.startswith("Usage: "):
        assert printed.startswith("error: ")
        assert done.stderr.count("\n") == 1
    assert contents(folder) == before
    assert not Path(places["OUT"]).exists()
