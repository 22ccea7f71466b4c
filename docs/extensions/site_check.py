"""Checks the finished site: every link inside it has its target, and nothing is loaded elsewhere.

Sphinx checks what pages say; this checks what browsers get, menus and generated pages included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


@dataclass
class Page(HTMLParser):
    """The targets, links and loaded files of a page."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag defines, links to or loads."""
        named = {name: value for name, value in attrs if value is not None}
        self.ids |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        if tag == "link" and named.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(named["href"])
        if tag in ("script", "img", "iframe", "source", "object", "embed"):
            self.loaded += [named[name] for name in ("src", "data") if name in named]


@cache
def read(file: Path) -> Page:
    """A page of the site."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def faults_of(file: Path) -> Iterator[str]:
    """What is wrong with the links and loaded files of a page."""
    page = read(file)
    for address in page.loaded:
        parts = urlsplit(address)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            yield f"loads {address}"
        elif parts.path and not (file.parent / unquote(parts.path)).is_file():
            yield f"loads {address}, which is not there"
    for address in page.links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = file.parent / unquote(parts.path) if parts.path else file
        if not target.is_file():
            yield f"links to {address}, which is not there"
        elif target.suffix == ".html" and unquote(parts.fragment) not in {"", *read(target).ids}:
            yield f"links to {address}; the page has no such place"


def check_site(app: Sphinx, exception: Exception | None) -> None:
    """Warn of every fault of a site that has been built."""
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for file in sorted(site.rglob("*.html")):
        if "_static" not in file.relative_to(site).parts:
            for fault in faults_of(file):
                logger.warning("%s %s", file.relative_to(site), fault)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after the build."""
    app.connect("build-finished", check_site)
    return {"parallel_read_safe": True}
