"""Wrong command lines end with their cause in words, before any work, and leave nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from headroles import assign_roles, compare_roles
from headroles.models.attention.reader import AttentionReader
from headroles.results.stored import save_together
from tests.cli.conftest import some_scores
from tests.commands import contents, run
from tests.conftest import (
    CAT,
    change_json,
    conllu_sentence,
    make_bert,
    make_tokenizer,
    write_treebank,
)
from tests.models.families import make_model
from tests.models.test_low_rank import with_vocabulary
from tests.tasks.conftest import save

ERRORS = """
2 classify                                       => Missing argument 'MODEL'
2 dance                                          => No such command 'dance'
2 CLASSIFY --window two                          => Invalid value for '--window'
2 CLASSIFY --pairing random                      => --pairing is 'random'; it must be one of
2 CLASSIFY --threshold nan                       => --threshold is nan
2 CLASSIFY --test wilcoxon   => --test is 'wilcoxon'; it must be one of t, betting
2 CLASSIFY --alpha 0         => --alpha is 0.0; it must be a number above 0 and below 0.5
2 CLASSIFY --preset published --score excess     => published numbers are bias scores
2 CLASSIFY --no-such-option                      => No such option
1 CLASSIFY --out TREEBANK/out => cannot be a folder: it, or one above it, is a file
1 classify no-such-model TREEBANK --out ROLES    => is not empty
1 classify BERT TREEBANK --out CHANGED --overwrite => roles.csv is in the way of the new results
1 assign CHANGED                                 => roles.csv is in the way of the new results
1 PRUNE --out MINE --overwrite                   => config.json is in the way of the new results
1 importance BERT TREEBANK --out WORTH --overwrite => importance-examples.safetensors is in the way
1 assign EMPTY                                   => error: there is no run.json in EMPTY
1 export EMPTY                                   => error: there is no run.json in EMPTY
1 report SCORES                                  => run: headroles assign SCORES
2 export SCORES --layer 0                        => test them first: headroles assign
2 power SCORES --overwrite                       => --overwrite needs a folder: name one for
2 redundancy BERT --report                       => --report needs a folder: name one for
2 replicate SCORES --out OUT                     => needs two score sets or more
2 compare SCORES --out OUT                       => Missing argument 'AFTER'
1 compare BERT BERT --out OUT                    => score models with: headroles score
1 compare SCORES no-such-model --out OUT => in no-such-model; name folders that score or
1 compare SCORES COMPARED --out OUT => COMPARED holds no scores (it holds: comparison)
1 by-task SCORES SCORES --out OUT => headroles ablate; for its arguments: headroles ablate --help
1 compare SCORES SCORES --out SCORES => SCORES holds scores, which would be replaced; name an
1 compare SCORES SCORES --out SCORES --overwrite => which would be replaced
2 COMPARE --margin 0           => --margin is 0.0; it must be a number above 0
2 COMPARE --margin nan         => --margin is nan
2 COMPARE --correction max_t   => --correction is 'max_t'; it must be one of
2 COMPARE --names a,b                            => names are ['a', 'b'] for 1 score sets
2 COMPARE --names before => give each a different name, other than 'before'
2 compare SCORES SCORES SCORES --names a,a --out OUT => for 2 score sets; give each a different
2 classify BERT ONE --clusters document --out OUT => all examples are of one document
2 RELATIONS ,                                    => --relations names no relation
1 RELATIONS obj,iobj           => no relation 'iobj'; did you mean 'obj'?
1 RELATIONS xyz                => no relation 'xyz'; it has: amod, nsubj, obj, punct
1 RELATIONS all,nsubj => 'all' stands for every relation; give it alone, or give only names
1 RELATIONS ALL                                  => no relation 'ALL'
2 examples SCORES --role local --head 4.0        => it must be layer-head, as in 3-11
2 EXAMPLES --no-weights --device cpu             => --device has no effect without weights
2 COLLABORATE                                    => give exactly one of --rank and --error
2 COLLABORATE --rank 8 --error 0.1               => give exactly one of --rank
2 COLLABORATE --rank 99                          => the rank is 99; a layer has 4 heads of 8
2 COLLABORATE --error 1                          => --error is 1.0; it must be a number above 0
2 COLLABORATE --rank 0                           => --rank is 0; it must be
2 COLLABORATE --rank 10 --method per-head        => per-head it must be a multiple of the 4 heads
2 COLLABORATE --rank 8 --label-column 1          => --label-column without a task
2 CLAIMS --labels no=0                           => --labels without a task
2 COLLABORATE --rank 8 --no-header               => name it with --sample
2 collaborate BERT --rank 8                      => Missing option '--out'
2 export ROLES --out OUT/r.xlsx                  => r.xlsx has no known file extension (.csv
2 export ROLES --out OUT/r.html --format csv => ends as html does, and --format says csv
2 export ROLES --role locla => there is no role 'locla'; did you mean 'local'?
2 export ROLES --layer 2                         => there is no layer '2'; there is: 0, 1
2 export ROLES --view wide --value size          => the value is 'size'
2 export ROLES --value mean => --value chooses the cells of a wide table; pass --view wide
1 export ROLES --out /dev/full => /dev/full cannot be written: No space left on device
2 FIGURE --kind changes       => no figure of the role table called 'changes'
2 FIGURE --kind heads --role local => no choice of role; choose another --kind, or leave --role out
2 figure ROLES --out OUT/f.gif                   => its name must end in .svg, .pdf, .png
2 report ROLES --out OUT/page.txt                => is no name of an HTML file
1 PARSE corpora/latin.conllu => latin.conllu, line 6: byte 0xe9 at column 6 is not UTF-8
1 PARSE corpora/red.conllu             => sentence '\\x1b[2Jred' has a cycle
1 PARSE corpora/schemes.conllu         => two label schemes in one corpus
2 PARSE notes/mine.txt                 => name a spaCy pipeline with --parser
1 PARSE caf\udce9.conllu               => caf\\udce9.conllu does not exist
1 classify BERT corpora/long.conllu --out OUT => scored: 1 examples longer than the model takes
1 classify models/half TREEBANK --out OUT => the weights of models/half cannot be loaded
1 classify models/pad_token TREEBANK --out OUT => the piece '[NOPE]'
1 classify models/unk_token TREEBANK --out OUT => the piece '[NOPE]'
1 classify models/cls_token TREEBANK --out OUT => the piece '[NOPE]'
1 classify models/sep_token TREEBANK --out OUT => the piece '[NOPE]'
1 collaborate models/mpnet --rank 8 --out OUT => MPNet have a bias of relative positions
1 redundancy models/mpnet                    => MPNet have a bias of relative positions
2 CLASSIFY --roles position:DIGITS           => has no valid offset
2 CLASSIFY --roles position:9999999 => position:+9999999 looks farther than the model reads
2 CLASSIFY --frequencies f.tsv => has no effect without the role rare
2 CLASSIFY --roles delimiter --window 3      => has no effect without the role local
2 CLASSIFY --roles local --relations nsubj   => has no effect without the role syntactic
2 CLASSIFY --roles local --arcs enhanced     => has no effect without the role syntactic
2 CLASSIFY --roles local --keep-subtypes     => has no effect without the role syntactic
2 CLASSIFY --roles local --columns           => has no effect without the role syntactic
2 EARLY --roles syntactic --relations none   => but no relation is scored; name relations with
2 EARLY --roles distance,entropy             => there is no role to test
2 EARLY --roles local --distance-margin 1    => --distance-margin has no effect
2 EARLY --offset-margin 0.2          => --offset-margin has no effect, as no role of these scores is
2 EARLY --score hit --roles local --offset-margin 0.2 => pairs of words with --score hit
2 EARLY --score hit --threshold 0.4 --offset-margin 0.2 => has no effect beside --threshold, which
2 ASSIGN --offset-margin 0           => --offset-margin has no effect, as no role of these scores is
2 EARLY --score excess --threshold 3 => --threshold 3 is outside the range of excess scores
2 EARLY --score hit --threshold 1    => --threshold 1 is outside the range of hit scores
2 EARLY --threshold -1               => is outside the range of bias scores, which are 0 or more
1 ANY => the corpus has a relation called 'any', which is the name of all relations together
1 NONE => the corpus has no relation 'nsubj'; it has none
2 TABLE --lines                      => omit --text-columns, which makes the corpus a table
2 TABLE --documents sent_id => --documents applies to treebanks, not to text; omit it
2 ASSIGN --threshold -1              => is outside the range of bias scores, which are 0 or more
2 score BERT TREEBANK --out OUT --controls words => which only classify makes; give trees, or
2 score BERT TREEBANK --out OUT --controls trees,weights => which only classify makes; give
2 ASSIGN --preset published --test betting   => leave --test out
2 ASSIGN --preset published --correction holm => leave --correction out
2 ASSIGN --test betting                      => betting needs the bounds of scores
2 power SCORES --power 0                     => --power is 0.0
2 power SCORES --power 1                     => --power is 1.0
2 REPLICATE SCORES --names a,a,b             => called a, a, b; name each apart
2 CLAIMS --claims single-head                => did you mean 'single-heads'
2 CLAIMS --claims nowhere:nothing            => cannot be loaded
2 PRUNE --protect 0-DIGITS                   => it must be layer-head
2 PRUNE --seed -1                            => from 0 and below 4294967296
2 PRUNE --seed 4294967296                    => from 0 and below 4294967296
2 GATE --seed 18446744073709551616           => from 0 and below 4294967296
2 GATE --weight-rate 0.1                     => does nothing to frozen weights
2 PRUNE --order top --epochs 2               => name examples with --fine-tune-on
2 ABLATE --sets layers,thirds => --roles-from goes with the set roles of --sets, and with it alone
2 EXAMPLES --text x                          => name one with --parser
2 export ROLES --view heads --role local     => the view heads has no rows of this role
2 report COMPARED --tokens x                 => the page of a comparison shows no sentences
2 report ROLES --text x                      => no pipeline parsed the text that was scored
2 report ROLES --parser x                    => parser has no effect without
"""
"""Exit codes, commands with places in capital letters, and what they print on standard error."""
LONG = {
    "CLASSIFY": "classify BERT TREEBANK --out OUT",
    "EXAMPLES": "examples SCORES --role local --head 0-0",
    "COLLABORATE": "collaborate BERT --out OUT",
    "EARLY": "classify no-model TREEBANK --out OUT",
    "ANY": "classify no-model corpora/any.conllu --out OUT --relations all",
    "NONE": "classify no-model corpora/roots.conllu --out OUT --relations nsubj",
    "TABLE": "classify no-model x.tsv --parser p --text-columns 0 --out OUT",
    "RELATIONS": "classify no-model TREEBANK --out OUT --relations",
    "COMPARE": "compare SCORES SCORES --out OUT",
    "FIGURE": "figure ROLES --out OUT/f.svg",
    "PARSE": "classify no-model --out OUT",
    "ASSIGN": "assign SCORES",
    "REPLICATE": "replicate SCORES SCORES --out OUT",
    "CLAIMS": "claims BERT TREEBANK --out OUT",
    "PRUNE": "prune BERT --keep 3 --out OUT",
    "GATE": "gate BERT TREEBANK --keep 3 --out OUT",
    "ABLATE": "ablate BERT TREEBANK --roles-from ROLES --out OUT",
    "DIGITS": "9" * 5000,  # more than Python makes a number of
}


SCHEMES = [("A", 0, "root"), ("b", 1, "dobj"), ("c", 1, "obj")]
CORPORA = {  # some ways to fail; tests/corpus has all defects
    "latin": conllu_sentence(CAT, "good-1").encode() + "1\tcaf\u00e9\t".encode("latin-1"),
    "red": conllu_sentence([("A", 1, "obj")], "\x1b[2Jred").encode(),
    "any": conllu_sentence([("A", 0, "root"), ("b", 1, "any")], "a-1").encode(),
    "roots": conllu_sentence([("Go", 0, "root")], "r-1").encode(),
    "schemes": conllu_sentence(SCHEMES, "s-1").encode(),
    "long": conllu_sentence([*[("a" * 60, 10, "nsubj")] * 9, ("is", 0, "root")], "c-1").encode(),
}


def write_models(folder: Path, good: Path) -> None:
    """Write a folder of models, each with a defect; tests/models has all of them."""
    half = shutil.copytree(good, folder / "half") / "model.safetensors"
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    save(with_vocabulary(make_model("mpnet")), folder / "mpnet")
    for kind in ("pad_token", "unk_token", "cls_token", "sep_token"):
        made = save(make_bert(vocab_size=len(make_tokenizer())), folder / kind)
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if not (made / name).exists():
                (made / name).write_text("{}")
            change_json(made / name, **{kind: "[NOPE]"})


@pytest.fixture(scope="module")
def places(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What words of a command line in capital letters stand for."""
    folder = tmp_path_factory.mktemp("errors")
    scores = some_scores()
    scores.save(folder / "scores")
    save_together(folder / "roles", [scores, assign_roles(scores)])
    compare_roles(scores, scores).save(folder / "compared")
    shutil.copytree(folder / "roles", folder / "changed")
    (folder / "changed" / "roles.csv").write_text("mine")
    for name in ("corpora", "empty", "mine", "notes", "worth"):
        (folder / name).mkdir()
    for name in ("mine/config.json", "worth/importance-examples.safetensors"):
        (folder / name).write_text("mine")
    (folder / "notes" / "mine.txt").touch()
    (folder / "one").with_suffix(".conllu").write_text(conllu_sentence(CAT, "one"))
    for name, content in CORPORA.items():
        (folder / "corpora" / f"{name}.conllu").write_bytes(content)
    write_models(folder / "models", bert_folder)
    named = {one.stem.upper(): str(one) for one in folder.iterdir() if one.stem != "models"}
    files = {"BERT": str(bert_folder), "TREEBANK": str(write_treebank(folder))}
    return {**LONG, **files, **named, "OUT": str(folder / "results" / "out")}


@pytest.mark.parametrize("line", ERRORS.strip().splitlines())
def test_wrong_command_lines(
    line: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in places.items():
        line = re.sub(rf"\b{name}\b", place, line)
    folder = Path(places["EMPTY"]).parent
    monkeypatch.chdir(folder)
    monkeypatch.setattr(AttentionReader, "read", lambda *_: pytest.fail("scored"))
    before, there = contents(folder), {*folder.rglob("*")}
    (code, *words), message = (part.split() for part in line.split("=>"))
    done = run(*words)
    printed = " ".join(done.stderr.split())
    assert (done.exit_code, done.stdout) == (int(code), ""), printed
    assert " ".join(message) in printed
    assert "Traceback" not in printed
    if not printed.startswith("Usage: "):
        assert printed.startswith("error: ")
        assert done.stderr.count("\n") == 1
    assert (contents(folder), {*folder.rglob("*")}) == (before, there)
