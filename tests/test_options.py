"""Options: written once, checked when made, shown by functions and commands alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
import typer
from typer.testing import CliRunner

import headroles as hr
from headroles.cli.app import app
from headroles.cli.flags import command
from headroles.errors import UsageError
from headroles.options import Option, Options, describe, fields_of, split_names, takes
from headroles.scoring.options import ScoreOptions
from headroles.studies.classification.options import ClassifyOptions
from headroles.studies.comparison.options import CompareOptions


@dataclass(frozen=True, kw_only=True)
class Baking(Options):
    title: ClassVar[str] = "Roles"

    heat: Annotated[float, Option("How hot.", above=0, below=300, words="the heat")] = 180.0
    layers: Annotated[int, Option("How many.", least=1)] = 2
    form: Annotated[str, Option("Which shape.", choices=("round", "square"))] = "round"
    toppings: Annotated[
        str | None, Option("What goes on it.", convert=split_names, recorded=False)
    ] = None
    is_vegan: Annotated[bool, Option("Whether.", flag="--vegan")] = False

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
        ({"heat": 0}, r"^the heat is 0; it must lie between 0 and 300$"),
        ({"heat": float("nan")}, "the heat is nan; it must lie between"),
        ({"heat": "180"}, "the heat is '180'; it must be a number"),
        ({"heat": None}, "the heat is None; it must be a number"),
        ({"layers": 0}, "layers is 0; it must be 1 or more"),
        ({"layers": 1.5}, "layers is 1.5; it must be a whole number"),
        ({"layers": True}, "layers is True; it must be a whole number"),
        ({"form": "star"}, "form is 'star'; it must be one of round, square"),
        ({"is_vegan": 1}, "is_vegan is 1; it must be True or False"),
        ({"is_vegan": True, "heat": 260}, "too hot for that"),
    ],
)
def test_invalid_values_are_refused(options: dict[str, Any], message: str) -> None:
    for make in (Baking, lambda **given: bake("tart", **given)):
        with pytest.raises(UsageError, match=message):
            make(**options)


def test_functions_take_options_by_name() -> None:
    assert bake("tart") == ("tart", Baking())
    assert bake("tart", toppings="plums, , nuts", layers=3) == (
        "tart",
        Baking(toppings=("plums", "nuts"), layers=3),  # type: ignore[arg-type]
    )


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


def test_a_group_records_options_that_change_numbers() -> None:
    assert list(Baking().record()) == ["heat", "layers", "form", "is_vegan"]


def test_commands_have_the_same_options() -> None:
    kitchen, baked = typer.Typer(), []

    @command(kitchen)
    def cook(cake: str, options: Baking) -> None:
        baked.append((cake, options))

    result = CliRunner().invoke(
        kitchen, ["tart", "--heat", "200", "--vegan", "--toppings", "nuts,plums"]
    )
    assert result.exit_code == 0, result.output
    assert baked == [bake("tart", heat=200.0, is_vegan=True, toppings=["nuts", "plums"])]
    shown = CliRunner().invoke(kitchen, ["--help"]).output
    for one in fields_of(Baking):
        assert one.flag in shown
        assert one.option.help in shown
    assert "round|square" in shown
    refused = CliRunner().invoke(kitchen, ["tart", "--layers", "0"])
    assert (refused.exit_code, refused.stderr) == (2, "error: layers is 0; it must be 1 or more\n")


PUBLIC = [hr.score_heads, hr.classify_heads, hr.assign_roles, hr.compare_roles, hr.plan_examples]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__name__)
def test_public_functions_show_every_option_with_its_default(function: Any) -> None:
    options = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind is one.KEYWORD_ONLY
    ]
    assert len(options) > 5
    for one in options:
        assert one.default is not one.empty
        assert f"    {one.name}: " in function.__doc__


@pytest.mark.parametrize(
    ("name", "group"), [("score", ScoreOptions), ("classify", ClassifyOptions)]
)
def test_commands_show_every_option_of_their_function(name: str, group: type[Options]) -> None:
    shown = CliRunner().invoke(app, [name, "--help-all"]).output
    assert all(one.flag in shown for one in fields_of(group) if one.option.has_flag)


def test_compare_scores_models_by_every_option_of_score() -> None:
    shown = CliRunner().invoke(app, ["compare", "--help-all"]).output
    options = {*fields_of(ScoreOptions), *fields_of(CompareOptions)}
    flags = {one.flag for one in options if one.option.has_flag and one.name != "preset"}
    assert all(flag in shown for flag in flags)
    assert "--preset" not in shown  # no comparison was published


def test_descriptions_have_titles_and_choices() -> None:
    assert describe(Baking).splitlines() == [
        "Options, as keyword arguments:",
        "",
        "Roles:",
        "    heat: How hot.",
        "    layers: How many.",
        "    form: Which shape. One of round, square.",
        "    toppings: What goes on it.",
        "    is_vegan: Whether.",
    ]


@takes(Baking)
def bake_for(guest: str, *, hour: int = 8, options: Baking) -> tuple[str, Baking, int]:
    """Bake something for a guest."""
    return guest, options, hour


def test_options_may_follow_optional_arguments() -> None:
    assert bake_for("Ada", layers=3) == ("Ada", Baking(layers=3), 8)
    assert bake_for("Ada", heat=200, hour=9) == ("Ada", Baking(heat=200), 9)


@pytest.mark.parametrize("name", [one for one in hr.__all__ if one.islower()])
def test_public_functions_take_their_options_by_keyword(name: str) -> None:
    """No function needs a group of options from its callers."""
    group = inspect.signature(getattr(hr, name)).parameters.get("options")
    assert group is None or group.default is None
