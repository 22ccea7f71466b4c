"""Options: written once, checked when made, shown by functions and commands alike."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
import typer
from msgspec import Meta
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

import headroles as hr
from headroles.cli.app import app
from headroles.cli.flags import GroupedCommand, help_of, with_flags
from headroles.corpus.tables import named_columns
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.options import (
    CIRCUMSTANCE,
    NO_FLAG,
    Convert,
    Flag,
    Options,
    fields_of,
    split_names,
    takes,
    whole_number,
)
from headroles.roles.catalogue import read_frequencies
from headroles.scoring.options import ScoreOptions
from headroles.studies.classification.assignment import ClassifyOptions
from headroles.tasks.options import TaskOptions
from headroles.tasks.running import open_run
from tests.tasks.conftest import make_task_model, save


@dataclass(frozen=True, kw_only=True)
class Baking(Options):
    title: ClassVar[str] = "Roles"

    heat: Annotated[float, Meta(gt=0, lt=300)] = 180.0
    """How hot."""
    layers: Annotated[int, Meta(ge=1)] = 2
    """How many.

    More take longer.
    """
    form: Literal["round", "square"] = "round"
    """Which shape."""
    toppings: Annotated[str | None, Convert(split_names), CIRCUMSTANCE] = None
    """What goes on it."""
    is_vegan: Annotated[bool, Flag("--vegan")] = False
    """Whether."""
    salt: Annotated[float | None, Meta(gt=0)] = None
    """How much."""
    oven: Annotated[Any, NO_FLAG] = None
    """Which one."""

    def check(self) -> None:
        if self.is_vegan and self.heat > 250:
            raise UsageError("too hot for that")


@takes(Baking)
def bake(cake: str, options: Baking) -> tuple[str, Baking]:
    """Bake a cake."""
    return cake, options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heat": 0}, r"^heat is 0; it must be a number above 0 and below 300$"),
        ({"heat": float("nan")}, "heat is nan; it must be a number above 0"),
        ({"heat": "180"}, "heat is '180'; it must be a number"),
        ({"heat": None}, "heat is None; it must be a number"),
        ({"layers": 0}, "layers is 0; it must be a whole number from 1$"),
        ({"layers": 1.5}, "layers is 1.5; it must be a whole number"),
        ({"layers": True}, "layers is True; it must be a whole number"),
        ({"layers": 10**5000}, "layers is a value of type int; it must be a whole number"),
        ({"form": "star"}, "form is 'star'; it must be one of round, square"),
        ({"form": None}, "form is None; it must be one of round, square"),
        ({"is_vegan": 1}, "is_vegan is 1; it must be True or False"),
        ({"salt": 0}, "salt is 0; it must be a number above 0"),
        ({"salt": float("nan")}, "salt is nan; it must be a number above 0"),
        ({"salt": float("inf")}, "salt is inf; it must be a number above 0"),
        ({"is_vegan": True, "heat": 260}, "too hot for that"),
    ],
)
def test_invalid_values_are_refused(options: dict[str, Any], message: str) -> None:
    for make in (Baking, lambda **given: bake("tart", **given)):
        with pytest.raises(UsageError, match=message):
            make(**options)


def test_checking_options_changes_none() -> None:
    published = ClassifyOptions(preset="published")
    assert (published.controls, published.scored_controls) == (("trees",), ())
    assert published.record()["controls"] == []
    assert ClassifyOptions().record()["controls"] == ["trees"]


def test_numbers_of_numpy_are_numbers() -> None:
    made = Baking(heat=np.float32(200), layers=np.int64(3), salt=np.int32(1))
    assert (made.heat, made.layers, made.salt) == (200.0, 3, 1.0)
    assert [type(one) for one in (made.heat, made.layers, made.salt)] == [float, int, float]


def test_functions_take_options_by_name() -> None:
    assert bake("tart") == ("tart", Baking())
    asked = Baking(toppings=("plums", "nuts"), layers=3)
    assert bake("tart", toppings="plums, , nuts", layers=3) == ("tart", asked)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bake("tart", hat=3), r"^bake\(\) has no option 'hat'; did you mean 'heat'\?$"),
        (lambda: bake("tart", xyz=3), r"^bake\(\): got an unexpected keyword argument 'xyz'$"),
        (lambda: bake(heat=3), r"^bake\(\): missing a required argument: 'cake'$"),
        (lambda: bake("tart", 3), r"^bake\(\): too many positional arguments$"),
    ],
)
def test_other_arguments_are_refused_by_name(call: Callable[[], None], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_commands_have_the_same_options() -> None:
    kitchen, baked = typer.Typer(), []

    def cook(cake: str, options: Baking) -> None:
        baked.append((cake, options))

    kitchen.command(cls=GroupedCommand)(with_flags(cook))
    words = "tart --heat 200 --vegan --toppings nuts,plums"
    result = CliRunner().invoke(kitchen, words.split())
    assert result.exit_code == 0, result.output
    assert baked == [bake("tart", heat=200.0, is_vegan=True, toppings=["nuts", "plums"])]
    shown = CliRunner().invoke(kitchen, ["--help"]).output
    for one in fields_of(Baking):
        assert one.flag in shown
        assert not one.flag or one.text.splitlines()[0] in shown
    assert "take longer" not in shown
    assert "--oven" not in shown
    assert "round|square" in shown


PUBLIC = [hr.score_heads, hr.classify_heads, hr.assign_roles, hr.compare_roles, hr.power_analysis]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__name__)
def test_public_functions_show_every_option_with_its_default(function: Any) -> None:
    given = inspect.signature(function).parameters.values()
    options = [one for one in given if one.kind is one.KEYWORD_ONLY]
    assert len(options) > 5
    for one in options:
        assert one.default is not one.empty
        assert f"    {one.name}: " in function.__doc__


@pytest.mark.parametrize(
    ("name", "group"), [("score", ScoreOptions), ("classify", ClassifyOptions)]
)
def test_commands_show_every_option_of_their_function(name: str, group: type[Options]) -> None:
    in_short = CliRunner().invoke(app, [name, "--help"]).output
    assert [one.flag for one in fields_of(group) if one.flag not in in_short] == []
    in_full = CliRunner().invoke(app, [name, "--help-all"]).output
    texts = [help_of(one).split()[0] for one in fields_of(group) if one.flag]
    assert [one for one in texts if one not in in_full] == []


def test_numbers_of_any_length(tmp_path: Path) -> None:
    digits = "9" * 5000  # more than Python makes a number of
    assert whole_number("7") == 7
    assert whole_number(digits) is whole_number("-1") is whole_number("x") is None
    assert named_columns(digits) == named_columns([digits]) == (digits,)
    assert TaskOptions(label_column=digits).label_column == digits
    (tmp_path / "f").write_text(f"the\t{digits}\n")
    with pytest.raises(CorpusError, match=r"f, line 1: .* is not a word, a tab and a count"):
        read_frequencies(tmp_path / "f")


def test_options_of_roles_go_with_these_roles() -> None:
    more: dict[str, Any] = {"window": 3, "relations": "nsubj", "arcs": "enhanced", "columns": True}
    ScoreOptions(roles="all", frequencies="f.tsv", keep_subtypes=True, **more)


def test_a_position_that_no_example_has(bert_folder: Path, treebank: Path) -> None:
    with pytest.raises(CorpusError, match=r"no example has a score for position:\+400"):
        hr.score_heads(bert_folder, hr.read_conllu(treebank), roles="position:400")


def test_an_objective_that_a_loaded_model_was_not_trained_for(tmp_path: Path) -> None:
    folder = save(make_task_model(), tmp_path / "model")
    network = AutoModelForSequenceClassification.from_pretrained(folder)
    (tmp_path / "text").write_text("the cat\nthe dog\n")
    with pytest.raises(ModelError, match=r"nothing trained .* for masked lm"):
        open_run(network.eval(), tmp_path / "text", TaskOptions(objective="masked_lm"))


WITHOUT_SOURCE = """
from dataclasses import dataclass
from headroles.options import Options, takes

@dataclass(frozen=True, kw_only=True)
class FrozenOptions(Options):
    title = "Roles"

    heat: float = 180.0

@takes(FrozenOptions)
def bake(cake: str, options: FrozenOptions) -> float:
    return options.heat
"""


def test_options_without_source_have_no_texts_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in frozen programs, at a prompt, and of packages installed as compiled files."""
    module = ModuleType("frozen_kitchen")
    monkeypatch.setitem(sys.modules, "frozen_kitchen", module)
    exec(compile(WITHOUT_SOURCE, "<frozen>", "exec"), vars(module))
    assert module.bake("apple", heat=200.0) == 200.0
    assert fields_of(module.FrozenOptions)[0].text == ""
    assert str(inspect.getdoc(module.bake)).split() == (
        "Options, as keyword arguments: Roles: heat:".split()
    )


def test_options_stand_last_so_that_no_parameter_is_hidden() -> None:
    def bake_in(options: Baking, oven: str = "") -> str:
        return oven

    with pytest.raises(TypeError, match="the last parameter of bake_in is not called options"):
        takes(Baking)(bake_in)
