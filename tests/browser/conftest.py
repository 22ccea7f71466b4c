"""A browser of this machine, and reports to open in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headroles import assign_roles, compare_roles, read_conllu, sample_treebank, score_heads
from headroles.report.pages import write_report
from headroles.results.stored import save_together
from tests.conftest import DOG, changed, conllu_sentence, make_bert, make_tokenizer

EVIL = "<script>alert(1)</script>"
CURE = "make test-browser (Chromium itself: apt-get install chromium)"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, wherever it is."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip(f"reports are tried in a browser by playwright, which is not here: {CURE}")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"reports are tried in Chromium, which is not here: {CURE}")
    with sync_playwright() as driver:
        # The sandbox does not start for root; the pages are our own.
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of the kinds with a map, of a corpus with words that look like tags, or of these.

    The page ``tags`` has roles of arcs without control of distance, which random heads have too.
    """
    folder = tmp_path_factory.mktemp("reports")
    treebank = folder / "evil.conllu"
    evil = [(EVIL, 2, "nsubj"), ("sleep", 0, "root"), (f"[{EVIL}]", 2, "obj")]
    sentences = [evil, DOG, [*DOG[:3], (EVIL, 3, "obj")], evil] * 3
    real = sample_treebank().read_text("utf-8").split("\n\n")[:40]  # so that distance is controlled
    own = "".join(conllu_sentence(one, f"a-{k}") for k, one in enumerate(sentences))
    treebank.write_text(own + "\n\n".join(real) + "\n\n", "utf-8")
    model = folder / "model"
    make_bert(0).save_pretrained(model)
    make_tokenizer().save_pretrained(model)
    corpus = read_conllu(treebank)
    scores = changed(score_heads(model, corpus), command=["headroles", "classify", EVIL])
    table = assign_roles(scores, threshold=0.5, correction="none")
    other = score_heads(make_bert(1), corpus, tokenizer=make_tokenizer())
    shifts = compare_roles(scores, other, names=[EVIL])
    (folder / "tags.conllu").write_text(own + "\n\n", "utf-8")
    tags = read_conllu(folder / "tags.conllu")
    arcs = score_heads(model, tags, roles="syntactic", beyond_offset=False)
    has_arcs = assign_roles(arcs, threshold=0.1, correction="none")
    return {
        "tags": write_report(save_together(folder / "tags", [arcs, has_arcs])),
        "roles": write_report(save_together(folder / "roles", [scores, table])),
        "comparison": write_report(shifts.save(folder / "comparison")),
    }


@pytest.fixture(params=["roles", "comparison"])
def report(request: pytest.FixtureRequest, reports: dict[str, Path]) -> Path:
    """One page after the other."""
    return reports[request.param]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file so many pixels wide; what went wrong, and what was loaded, is at the page."""
    pages: list[Any] = []

    def open_file(file: Path, width: int = 1400, **options: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        page.said, page.loaded, page.dialogs = [], [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.loaded.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_file
    for page in pages:
        page.close()
