"""Reports and their map in a real browser: what readers see, can do, and are spared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import EVIL

Open = Callable[..., Any]


@pytest.fixture(params=[400, 1400])
def width(request: pytest.FixtureRequest) -> int:
    """Of a phone and of a screen."""
    return int(request.param)


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")


def test_the_page_is_as_wide_as_the_window(open_page: Open, report: Path, width: int) -> None:
    page = open_page(report, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.eval_on_selector_all(
        "table", "all => all.filter(one => one.scrollWidth > one.parentElement.clientWidth).length"
    )
    assert wide == 0


def test_it_is_accessible(open_page: Open, report: Path, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(report, width)
    unfold(page)
    page.locator("th button").first.click()
    page.get_by_role("gridcell").nth(4).click()
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_nothing_fails_or_is_loaded_and_words_that_look_like_tags_are_words(
    open_page: Open, report: Path
) -> None:
    page = open_page(report)
    assert page.said == []
    assert page.loaded == [report.as_uri()]
    page.get_by_role("gridcell").first.click()
    assert page.dialogs == []
    assert page.locator("script:not([type='application/json'])").count() == 1
    unfold(page)
    assert EVIL in page.locator("main").inner_text()


ROLES = "h3:has-text('Answers') ~ .wide >> nth=0 >> table"
"""The table of all roles."""


def numbers(page: Any, column: int) -> list[float]:
    cells = page.locator(f"{ROLES} >> tbody tr td:nth-child({column})").all_inner_texts()
    return [float(cell) for cell in cells]


def test_tables_are_sorted(open_page: Open, reports: dict[str, Path]) -> None:
    page = open_page(reports["roles"])
    unfold(page)
    before = numbers(page, 2)
    assert before != sorted(before, reverse=True)
    button = page.get_by_role("button", name="yes", exact=True)
    head = page.get_by_role("columnheader", name="yes", exact=True)
    for order, is_reversed in (("descending", True), ("ascending", False)):
        button.click()
        assert numbers(page, 2) == sorted(before, reverse=is_reversed)
        assert head.get_attribute("aria-sort") == order
    page.get_by_role("button", name="role", exact=True).first.click()
    assert head.get_attribute("aria-sort") is None


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
        if page.evaluate("document.activeElement.textContent") == "yes":
            break
    assert {"INPUT", "BUTTON"} <= reached
    is_seen = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
    assert page.evaluate(is_seen)
    page.keyboard.press("Enter")
    assert numbers(page, 2) == sorted(numbers(page, 2), reverse=True)
    assert page.evaluate("document.activeElement.textContent") == "yes"


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


# The map of all heads.


def data_of(page: Any) -> dict[str, Any]:
    return json.loads(page.locator(".heads script").text_content())


def cell(page: Any, head: str) -> Any:
    return page.locator(f"[role=gridcell][aria-label^='head {head}:']")


def panel(page: Any) -> Any:
    return page.get_by_role("region", name="chosen head")


def test_pointing_at_a_head_shows_its_numbers(
    open_page: Open, reports: dict[str, Path], width: int
) -> None:
    page = open_page(reports["roles"], width)
    data = data_of(page)
    view = next(one for one in data["views"] if one["words"] == "noun subject \u2192 its verb")
    page.locator(".controls select").select_option(label=view["words"])
    cell(page, "1-2").hover()
    told = page.locator(".told").inner_text()
    place = data["heads"] + 2
    for name in ("interval", "beyond distance", "answer", "certified"):
        assert name in told
    assert told.startswith(f"Head 1-2 {view['words']}: mean {view['values'][place]:g}")
    low, high = next(fact[1:] for fact in view["facts"] if fact[0] == "interval")
    assert f"interval {low[place]:g} to {high[place]:g}" in told


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


STRUCK = """
sentence => {
  const { left, top } = sentence.getBoundingClientRect();
  const words = [...sentence.querySelectorAll(":scope > span, :scope > mark")];
  const boxes = words.flatMap((word) => [...word.getClientRects()]);
  return [...sentence.querySelectorAll("path")].flatMap((path) => {
    const length = path.getTotalLength();
    const places = [...Array(200)].map((_, k) => path.getPointAtLength((length * k) / 199));
    const on = (box, x, y) =>
      x > box.left && x < box.right && y > box.top + 3 && y < box.bottom - 3;
    return places.filter(({ x, y }) => boxes.some((box) => on(box, x + left, y + top)));
  }).length;
}
"""
"""How many points of arcs lie on words of a sentence."""

DRAWN = """
sentence => [
  sentence.querySelectorAll("polygon").length,
  [...sentence.querySelectorAll("path")].map((path) => path.getAttribute("d")),
]
"""
"""Tips and arcs at one moment, since a word under the mouse redraws them."""


def test_arcs_point_to_words_and_strike_none(
    open_page: Open, reports: dict[str, Path], width: int
) -> None:
    """Across line breaks too, where an arc has a part on each of two lines."""
    page = open_page(reports["tags"], width)
    n_arcs = n_split = 0
    for head in page.locator("article[data-head]").evaluate_all(
        "all => all.map(e => e.dataset.head)"
    ):
        cell(page, head).click()
        for sentence in panel(page).locator(".sentence").all():
            sentence.scroll_into_view_if_needed()
            assert sentence.evaluate(STRUCK) == 0
            n_tips, drawn = sentence.evaluate(DRAWN)
            assert n_tips == len(drawn)
            n_arcs += len(drawn)
            n_split += sum(path.count("M") == 2 for path in drawn)
    assert n_arcs
    assert n_split or width > 400


def test_a_chosen_head_stays_chosen(open_page: Open, reports: dict[str, Path]) -> None:
    """Of another role too; until then the strongest head of each role is chosen."""
    page = open_page(reports["roles"])
    options = page.locator(".controls option").evaluate_all("all => all.map(one => one.value)")
    chosen = []
    for pick in (None, "0-3"):
        if pick:
            cell(page, pick).click()
        for option in options:
            page.locator(".controls select").select_option(option)
            chosen.append(panel(page).locator("h2").inner_text())
    assert len(set(chosen[: len(options)])) > 1
    assert set(chosen[len(options) :]) == {"Head 0-3"}


def test_fingers_hit_cells(open_page: Open, report: Path) -> None:
    page = open_page(report, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for box in (cell(page, head).bounding_box() for head in ("0-0", "1-2", "2-3")):
        assert min(box["width"], box["height"]) >= 44


def test_the_answer_and_the_map_are_above_the_fold(open_page: Open, report: Path) -> None:
    page = open_page(report)
    last = page.locator(".answer").last.bounding_box()
    grid = page.locator(".grid").bounding_box()
    assert grid["x"] > last["x"] + last["width"]
    assert last["y"] + last["height"] < 900
    assert grid["y"] + grid["height"] < 900


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
    name = re.match(r"head (\d+-\d+): ", label)[1]
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
        layer, head = map(int, re.match(r"(\d+)-(\d+)", text).groups())
        place = layer * heads + head
        assert f"{before[place]:g} to {after[place]:g}" in text
    up = sum(b < a for b, a in zip(before, after, strict=True) if None not in (a, b))
    assert page.locator(".tracks i.up").count() == min(up, rows.count())


def test_cells_of_changes_are_as_deep_as_the_change(
    open_page: Open, reports: dict[str, Path]
) -> None:
    page = open_page(reports["comparison"])
    values = data_of(page)["views"][0]["values"]
    most = max(abs(value) for value in values if value is not None)
    cells = page.locator("[role=gridcell]")
    for k, value in enumerate(values):
        if value is not None:
            depth = cells.nth(k).evaluate("cell => +cell.style.getPropertyValue('--depth')")
            assert depth == pytest.approx(abs(value) / most, abs=1e-3)
            assert ("down" in (cells.nth(k).get_attribute("class") or "")) == (value < 0)


def test_all_parts_are_unfolded_on_paper(open_page: Open, report: Path) -> None:
    page = open_page(report)
    picture = page.locator("details figure svg").first
    assert not picture.is_visible()
    page.get_by_role("heading", name="Pictures").click()
    assert picture.is_visible()
    page.get_by_role("heading", name="Pictures").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert picture.is_visible()
