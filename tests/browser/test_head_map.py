"""The map of all heads in a real browser: pointing, choosing, arcs, by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (400, 1400)
Open = Callable[..., Any]


def data_of(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.locator(".heads script").text_content())
    return found


def cell(page: Any, head: str) -> Any:
    return page.locator(f"[role=gridcell][aria-label^='head {head}:']")


def panel(page: Any) -> Any:
    return page.get_by_role("region", name="chosen head")


@pytest.mark.parametrize("width", WIDTHS)
def test_pointing_at_a_head_shows_its_numbers(
    open_page: Open, reports: dict[str, Path], width: int
) -> None:
    page = open_page(reports["roles"], width)
    data = data_of(page)
    view = next(one for one in data["views"] if one["words"] == "subject \u2192 its verb")
    page.locator(".controls select").select_option(label=view["words"])
    cell(page, "1-2").hover()
    told = page.locator(".told").inner_text()
    place = data["heads"] + 2
    for name in ("interval", "beyond distance", "answer", "certified"):
        assert name in told
    assert told.startswith(f"Head 1-2 {view['words']}: mean {view['values'][place]:g}")
    low, high = next(fact[1:] for fact in view["facts"] if fact[0] == "interval")
    assert f"interval {low[place]:g} to {high[place]:g}" in told


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_chooses_the_head(open_page: Open, reports: dict[str, Path], width: int) -> None:
    page = open_page(reports["roles"], width)
    head = page.locator("article[data-head]").first.get_attribute("data-head")
    cell(page, head).click()
    chosen = panel(page)
    assert chosen.locator("h2").inner_text() == f"Head {head}"
    assert cell(page, head).get_attribute("aria-selected") == "true"
    assert page.locator("[aria-selected]").count() == 1
    sentence = chosen.locator(".sentence").first
    arcs = json.loads(sentence.get_attribute("data-arcs"))
    assert sentence.locator("path.own").count() == sum(arc[3] for arc in arcs)
    query = arcs[0][0]
    sentence.locator(":scope > span, :scope > mark").nth(query).hover()
    assert sentence.locator("path").count() == sum(query in arc[:2] for arc in arcs)
    assert sentence.locator(".lit").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_answer_and_the_map_are_above_the_fold(open_page: Open, report: Path) -> None:
    page = open_page(report)
    last = page.locator(".answer").last.bounding_box()
    grid = page.locator(".grid").bounding_box()
    assert grid["x"] > last["x"] + last["width"]
    assert last["y"] + last["height"] < 900
    assert grid["y"] + grid["height"] < 900


@pytest.mark.parametrize("width", WIDTHS)
def test_the_map_is_used_by_keyboard(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width)
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "gridcell":
            break
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "End", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    name = re.match(r"head (\d+-\d+): ", label)[1]  # type: ignore[index]
    assert int(name.split("-")[1]) == data_of(page)["heads"] - 3
    assert page.locator(".told").inner_text().startswith(f"Head {name} ")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
    page.keyboard.press("Enter")
    assert panel(page).locator("h2").inner_text() == f"Head {name}"
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1


def test_arrows_lead_from_before_to_after(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["comparison"])
    view = data_of(page)["views"][0]
    assert "threshold" not in page.locator(".scale").inner_text()  # which is one of means
    rows = page.locator(".tracks li")
    assert rows.count() == min(20, sum(one is not None for one in view["values"]))
    facts = {name: columns[0] for name, *columns in view["facts"]}
    before, after = facts["before"], facts["after"]
    heads = data_of(page)["heads"]
    for text in rows.all_inner_texts():
        layer, head = map(int, re.match(r"(\d+)-(\d+)", text).groups())  # type: ignore[union-attr]
        place = layer * heads + head
        assert f"{before[place]:g} to {after[place]:g}" in text
    up = sum(b < a for b, a in zip(before, after, strict=True) if None not in (a, b))
    assert page.locator(".tracks i.up").count() == min(up, rows.count())


def test_all_parts_are_unfolded_on_paper(open_page: Open, report: Path) -> None:
    page = open_page(report)
    picture = page.locator("details figure svg").first
    assert not picture.is_visible()
    page.get_by_role("heading", name="Pictures").click()
    assert picture.is_visible()
    page.get_by_role("heading", name="Pictures").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert picture.is_visible()
