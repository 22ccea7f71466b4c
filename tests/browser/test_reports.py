"""Reports in a real browser: what readers see, can do, and are spared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import EVIL

WIDTHS = (400, 1400)
Open = Callable[..., Any]


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")


def test_nothing_fails_and_nothing_is_loaded(open_page: Open, report: Path) -> None:
    page = open_page(report)
    assert page.said == []
    assert page.loaded == [report.as_uri()]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_as_wide_as_the_window(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.eval_on_selector_all(
        "table", "all => all.filter(one => one.scrollWidth > one.parentElement.clientWidth).length"
    )
    assert wide == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_accessible(open_page: Open, report: Path, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(report, width)
    unfold(page)
    page.locator("th button").first.click()
    page.get_by_role("gridcell").nth(4).click()
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_words_that_look_like_tags_are_words(open_page: Open, report: Path) -> None:
    page = open_page(report)
    page.get_by_role("gridcell").first.click()
    assert page.dialogs == []
    assert page.locator("script:not([type='application/json'])").count() == 1
    unfold(page)
    assert EVIL in page.locator("main").inner_text()


ROLES = "h3:has-text('Heads by layer and by answer') ~ .wide >> nth=0 >> table"
"""The table of all roles."""


def numbers(page: Any, column: int) -> list[float]:
    cells = page.locator(f"{ROLES} >> tbody tr td:nth-child({column})").all_inner_texts()
    return [float(cell) for cell in cells]


def test_tables_are_sorted(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["roles"])
    unfold(page)
    before = numbers(page, 2)
    assert before != sorted(before, reverse=True)
    button = page.get_by_role("button", name="examples", exact=True)
    head = page.get_by_role("columnheader", name="examples", exact=True)
    for order, is_reversed in (("descending", True), ("ascending", False)):
        button.click()
        assert numbers(page, 2) == sorted(before, reverse=is_reversed)
        assert head.get_attribute("aria-sort") == order
    page.get_by_role("button", name="role", exact=True).first.click()
    assert head.get_attribute("aria-sort") is None


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_filtered(open_page: Open, reports: dict[str, Path], width: int) -> None:
    page = open_page(reports["roles"], width)
    unfold(page)
    rows = page.locator(f"{ROLES} >> tbody tr")
    all_rows = rows.count()
    field = page.get_by_role("searchbox").first
    field.fill("NSUBJ")
    shown = rows.locator("visible=true").all_inner_texts()
    assert 0 < len(shown) < all_rows
    assert all("nsubj" in text for text in shown)
    assert page.get_by_role("status").first.inner_text() == f"{len(shown)} of {all_rows} rows"
    field.fill("")
    assert rows.locator("visible=true").count() == all_rows


def test_all_can_be_done_by_keyboard(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["roles"])
    unfold(page)
    reached = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
        if page.evaluate("document.activeElement.textContent") == "examples":
            break
    assert {"INPUT", "BUTTON"} <= reached
    is_seen = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
    assert page.evaluate(is_seen)
    page.keyboard.press("Enter")
    assert numbers(page, 2) == sorted(numbers(page, 2), reverse=True)
    assert page.evaluate("document.activeElement.textContent") == "examples"


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_read_without_scripts(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width, java_script_enabled=False)
    assert page.get_by_role("button").count() == 0
    assert page.get_by_role("searchbox").count() == 0
    for name in ("h1", ".answer", "summary"):
        assert page.locator(name).first.is_visible()
    page.get_by_role("heading", name="Pictures").click()
    assert page.locator("svg").first.is_visible()
    with_scripts = open_page(report, width)
    with_scripts.evaluate("document.querySelectorAll('.heads, .panel').forEach((e) => e.remove())")
    for name in ("h1", "h2", "h3", ".answer", "tbody td", ".caution", "pre", "figcaption"):
        texts = page.locator(name).all_text_contents()
        assert texts == with_scripts.locator(name).all_text_contents()


def test_phones_have_a_short_page_in_both_modes(open_page: Open, report: Path) -> None:
    inks = set()
    for mode in ("light", "dark"):
        page = open_page(report, 400, color_scheme=mode)
        assert page.evaluate("document.documentElement.scrollHeight") < 8000
        look = "getComputedStyle(document.body)"
        inks.add((page.evaluate(f"{look}.color"), page.evaluate(f"{look}.backgroundColor")))
    assert len({ink for pair in inks for ink in pair}) == 4


def test_it_fits_on_paper(open_page: Open, report: Path) -> None:
    page = open_page(report, 794)  # A4 at 96 dots per inch
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    assert page.locator("label.controls").first.is_visible()  # the role of the map
    assert not page.locator("article").first.is_visible()  # of every head: too many for paper
    assert page.pdf(format="A4").startswith(b"%PDF")
