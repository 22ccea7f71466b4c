"""The map of all heads in a real browser: pointing, opening, choosing, hiding, by keyboard."""

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


def choose(page: Any, words: str) -> None:
    page.locator(".controls select").select_option(label=words)


@pytest.mark.parametrize("width", WIDTHS)
def test_pointing_at_a_head_tells_of_it(
    open_page: Open, reports: dict[str, Path], width: int
) -> None:
    page = open_page(reports["roles"], width)
    data = data_of(page)
    choose(page, "subject -> its verb")
    view = next(one for one in data["views"] if one["words"] == "subject -> its verb")
    cell(page, "1-2").hover()
    told = page.locator(".told").inner_text()
    place = data["heads"] + 2
    for name in ("interval", "beyond distance", "answer", "certified"):
        assert name in told
    assert f"mean {view['values'][place]}" in told
    low, high = next(fact[1:] for fact in view["facts"] if fact[0] == "interval")
    assert f"interval {low[place]} to {high[place]}" in told
    assert told.startswith("Head 1-2")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_opens_the_head(open_page: Open, reports: dict[str, Path], width: int) -> None:
    page = open_page(reports["roles"], width)
    head = next(iter(data_of(page)["quoted"]))
    cell(page, head).click()
    opened = page.get_by_role("region", name="opened head")
    assert opened.locator("h3").inner_text() == f"Head {head}"
    shown = opened.locator("tbody tr").count()
    assert shown == sum(not one["summary"] for one in data_of(page)["views"])
    arcs = opened.locator(".arcs b, .arcs span").all_inner_texts()
    assert arcs
    assert all(re.fullmatch(r".+ ← .+ [01]\.\d\d", one) for one in arcs)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    opened.locator(".arcs b").first.hover()
    assert opened.locator(".lit").count() in (1, 2)
    opened.get_by_role("button", name="close").click()
    assert not opened.is_visible()


def test_roles_are_hidden(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["roles"])
    names = page.locator(".controls option")
    without = names.count()
    page.get_by_label("Roles with").fill("subject")
    assert all("subject" in text for text in names.all_inner_texts())
    assert 0 < names.count() < without
    cell(page, "0-0").click()
    rows = page.locator(".opened tbody th").all_inner_texts()
    assert rows
    assert all("subject" in text for text in rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_map_is_used_by_keyboard(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width)
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "gridcell":
            break
    for key in ("ArrowDown", "End", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    heads = data_of(page)["heads"]
    name = f"1-{heads - 3}"
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith(f"head {name}: ")
    assert f"Head {name}" in page.locator(".told").inner_text()
    is_seen = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
    assert page.evaluate(is_seen)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == f"Head {name}"
    page.keyboard.press("Escape")
    assert not page.locator(".opened").is_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == label
    assert page.locator("[role=gridcell][tabindex='0']").count() == 1


def test_arrows_lead_from_before_to_after(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["comparison"])
    view = data_of(page)["views"][0]
    assert view["name"].startswith("syntactic")
    assert "threshold" not in page.locator(".scale").inner_text()  # which is one of means
    rows = page.locator(".tracks li")
    assert rows.count() == min(20, sum(one is not None for one in view["values"]))
    before, after = view["arrow"]
    heads = data_of(page)["heads"]
    for text in rows.all_inner_texts():
        layer, head = map(int, re.match(r"(\d+)-(\d+)", text).groups())  # type: ignore[union-attr]
        place = layer * heads + head
        assert f"{before[place]} to {after[place]}" in text
    up = sum(b < a for b, a in zip(before, after, strict=True) if None not in (a, b))
    assert page.locator(".tracks i.up").count() == min(up, rows.count())
    page.get_by_role("gridcell").first.click()
    first = page.locator(".opened tbody th").all_inner_texts()[0]
    assert "->" in first
    assert page.locator(".opened .track i").count() > 0


def test_pictures_are_unfolded_on_paper(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert not page.locator("details svg").first.is_visible()
    page.get_by_text("The same as pictures").click()
    assert page.locator("details svg").first.is_visible()
    page.get_by_text("The same as pictures").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details svg").first.is_visible()
