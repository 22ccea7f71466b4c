"""A lack of memory in every command that runs a model: the same results, or advice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from headroles import HeadScores
from headroles.models.loading import encoder as loading
from headroles.storage import parts_in
from tests.commands import run, run_well
from tests.conftest import make_bert
from tests.rounding import assert_same_sums
from tests.studies.conftest import classifier, labelled, labelled_twice, roles
from tests.tasks.conftest import make_task_model, save

__all__ = ["classifier", "labelled", "labelled_twice", "roles"]

CIRCUMSTANCES = "out time created digest command path".split()


@contextmanager
def memory_for(fits: Callable[[Tensor], bool]) -> Iterator[list[Tensor]]:
    """Models have memory only for inputs that fit; those that did not are listed."""
    refused: list[Tensor] = []

    def look(module: nn.Module, given: tuple[Any, ...]) -> None:
        if isinstance(module, nn.Embedding) and not fits(given[0]):
            refused.append(given[0])
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    handle = register_module_forward_pre_hook(look)
    try:
        yield refused
    finally:
        handle.remove()


def all_but_the_second() -> Callable[[Tensor], bool]:
    """Memory lacks once: for the second batch of several examples."""
    batches = 0

    def fits(ids: Tensor) -> bool:
        nonlocal batches
        batches += len(ids) > 1
        return batches != 2 or len(ids) == 1

    return fits


@pytest.fixture
def double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models run in double precision, so that what is left of rounding is that of scores."""
    plain = loading.read_model

    def read(*given: Any) -> tuple[nn.Module, list[str]]:
        model, doubts = plain(*given)
        return model.double(), doubts

    monkeypatch.setattr(loading, "read_model", read)


@pytest.fixture(scope="session")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for the task without dropout, whose updates depend on no random numbers."""
    model = make_task_model(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return save(model, tmp_path_factory.mktemp("models") / "steady")


TASK = "STEADY LABELLED --batch-tokens 60"
PRUNE = f"prune {TASK} --test LABELLED --keep 5"
GATE = f"gate {TASK} --test LABELLED --keep 5 --seeds 1 --updates 4"
COMMANDS = {
    "score": "score BERT_FOLDER SMALL --batch-tokens 300",
    "score by norms": "score BERT_FOLDER SMALL --batch-tokens 300 --measure norms",
    "tokens": "tokens BERT_FOLDER SMALL --batch-tokens 300",
    "importance": f"importance {TASK}",
    "ablate": f"ablate {TASK} --sets layers",
    "by-role": f"by-role {TASK} --roles-from ROLES --permutations 99",
    "pruning-curves": "pruning-curves STEADY LABELLED_TWICE --batch-tokens 60 --test LABELLED "
    "--shares 0.5 --steps 2 --orders reestimated,ablation,random",
    "prune, fine-tuned": f"{PRUNE} --order random --compensation --fine-tune-on LABELLED "
    "--epochs 1 --learning-rate 0.01",
    "gate, trained": f"{GATE} --weights trained --weight-rate 0.01",
    "collaborate": "collaborate STEADY --rank 16 --sample SMALL --task LABELLED",
    "claims": "claims STEADY SMALL --task LABELLED --claims single-heads,prunable-share",
}
"""Every command that runs a model over several examples, with fixtures in capital letters."""


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> list[object]:
    """One of the commands, without its folder."""
    words = COMMANDS[request.param].split()
    return [request.getfixturevalue(word.lower()) if word.isupper() else word for word in words]


def leaves(content: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a document, by its place, but for circumstances."""
    content = content.tolist() if isinstance(content, np.ndarray) else content
    if not isinstance(content, dict | list):
        yield where, content
        return
    for name, value in content.items() if isinstance(content, dict) else enumerate(content):
        if not any(part in str(name) for part in CIRCUMSTANCES):
            yield from leaves(value, f"{where}/{name}")


def assert_alike(found: Any, expected: Any) -> None:
    """The same but for rounding, and for circumstances."""
    one, other = dict(leaves(found)), dict(leaves(expected))
    assert one.keys() == other.keys()
    floats = [where for where, value in other.items() if isinstance(value, float)]
    # Shares, losses, scores and what is made of them have the size 1 at least: what they are
    # differences of.
    numbers = np.array([other.pop(where) for where in floats])
    assert_same_sums([one.pop(where) for where in floats], numbers, np.maximum(1, np.abs(numbers)))
    assert one == other


def numbers_in(folder: Path) -> Iterator[tuple[str, Any]]:
    """What every table and every model in a folder holds."""
    for file in folder.rglob("*"):
        name = str(file.relative_to(folder))
        if file.suffix == ".parquet":
            yield name, pd.read_parquet(file).to_dict("list")
        elif file.suffix == ".safetensors":
            yield name, {key: own.flatten().numpy() for key, own in load_file(file).items()}


@pytest.mark.usefixtures("double_precision")
def test_results_are_the_same(command: list[object], tmp_path: Path) -> None:
    whole = run(*command, "--json", "--out", tmp_path / "whole")
    assert whole.exit_code == 0, whole.output
    with memory_for(all_but_the_second()) as refused:
        found = run(*command, "--json", "--out", tmp_path / "found")
    assert found.exit_code == 0, found.output
    assert len(refused) == 1
    assert_alike(json.loads(found.stdout), json.loads(whole.stdout))
    expected = dict(numbers_in(tmp_path / "whole"))
    assert expected
    assert_alike(dict(numbers_in(tmp_path / "found")), expected)


def test_an_example_that_does_not_fit_is_named(command: list[object], tmp_path: Path) -> None:
    with memory_for(lambda ids: ids.shape[1] <= 8):  # the length that models are tried out with
        result = run(*command, "--out", tmp_path / "out")
    assert result.exit_code == 1
    printed = " ".join(result.stderr.split())
    advice = r"use a device with more memory \(--device cpu\)"
    assert re.search(rf"error: memory ran out for .* alone \(.*{advice}", printed)


def test_an_example_to_be_shown_and_the_model_itself(
    bert_folder: Path, sample: Path, tmp_path: Path
) -> None:
    score = ("score", bert_folder, sample, "--out")
    with memory_for(lambda ids: False):
        result = run(*score, tmp_path / "out")
    assert result.exit_code == 1
    assert "error: memory ran out; use a device with more (--device cpu)" in result.stderr
    assert "Traceback" not in result.output
    run_well(*score, tmp_path / "scores")
    with memory_for(lambda ids: ids.shape[1] <= 8):
        shown = run_well("examples", tmp_path / "scores", "--head", "0-1", "--role", "local")
    assert "warning: Weights are not shown: memory ran out for" in shown.output


LIMITED = """
import resource
from pathlib import Path
from headroles.cli import main
from headroles.scoring import run
from headroles.scoring.windows import WindowScorer

run.WINDOW_EXAMPLES = 8
launch, calls = WindowScorer.launch, []

def launch_with_less(*given):
    calls.append(given)
    if len(calls) == 4:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + 2**24
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    return launch(*given)

WindowScorer.launch = launch_with_less
main()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc and RLIMIT_AS")
def test_a_limit_of_the_system(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished parts of a run that lacks memory are saved, and resumed with more memory."""
    model, corpus = save(make_bert(heads=24), tmp_path / "model"), tmp_path / "t.conllu"
    rows = "\n".join(f"{k}\tthe\t_\tX\t_\t_\t{k - 1}\tdep\t_\t_" for k in range(2, 501))
    long = f"# sent_id = long\n1\tthe\t_\tX\t_\t_\t0\troot\t_\t_\n{rows}"
    corpus.write_text(f"{small.read_text(encoding='utf-8')}{long}\n\n", encoding="utf-8")
    asked = ("score", str(model), str(corpus), "--pairing", "none", "--out")
    stopped = subprocess.run(
        [sys.executable, "-c", LIMITED, *asked, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert stopped.returncode == 1, stopped.stderr
    error, *printed = stopped.stderr.splitlines()
    assert error.startswith("error: memory ran out")
    saved = [line.startswith("warning: the finished work is saved") for line in printed]
    assert saved == [True], stopped.stderr
    assert parts_in(tmp_path / "out").count in (2, 3)
    monkeypatch.setattr("headroles.scoring.run.WINDOW_EXAMPLES", 8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    run_well(*asked, tmp_path / "out", "--resume")
    run_well(*asked, tmp_path / "whole")
    torch.set_num_threads(threads)
    one, other = (HeadScores.load(tmp_path / name) for name in ("out", "whole"))
    np.testing.assert_array_equal(one.values, other.values)
