"""Figures in files: SVG, PDF or PNG, whose characters can be read."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles import storage
from headroles.drawing.style import figure_of, svg_of
from headroles.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SVG, PDF, PNG = FORMATS = (".svg", ".pdf", ".png")
_DOTS = 150  # per inch, of PNG


def check_figure_file(file: str | Path) -> Path:
    """Return the path of a figure. Raises UsageError for an unknown file extension."""
    path = Path(file)
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"the figure is {path.name!r}; its name must end in {', '.join(FORMATS)}")
    return path


def save_figure(drawn: Figure | Axes, file: str | Path) -> Path:
    r"""Write a figure, or the figure of axes, in the format of the file name, and return the path.

    In SVG text stays text: the program that shows it needs the fonts. In PDF and PNG fonts of this
    machine draw the characters; numbers such as ``\u4e2d`` replace characters without a font, with
    a warning.

    Raises UsageError for a name that ends otherwise, StorageError for a place that cannot be
    written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    path = check_figure_file(file)
    figure = drawn if isinstance(drawn, Figure) else figure_of(drawn)
    suffix = path.suffix.lower()
    if suffix == SVG:
        storage.write_bytes(path, svg_of(figure, "headroles").encode())
        return path
    about: dict[str, Any] = (
        {"dpi": _DOTS} if suffix == PNG else {"metadata": {"CreationDate": None}}
    )
    page = io.BytesIO()
    # Type 42 fonts: publishers refuse Type 3.
    with mpl.rc_context({"pdf.fonttype": 42}), _fonts_there_are(figure) as missing:
        figure.savefig(page, format=suffix[1:], **about)
    if missing:
        warnings.warn(
            f"no font of this machine has {' '.join(sorted(missing)[:20])}; numbers replace "
            "these characters. Install"
            " a font that has them, such as Noto Sans, or save as SVG",
            stacklevel=2,
        )
    storage.write_bytes(path, page.getvalue())
    return path


@contextmanager
def _fonts_there_are(figure: Figure) -> Iterator[set[str]]:
    """Give every text a font for each of its characters, and spell out characters without one."""
    from matplotlib.text import Text

    texts: list[Any] = figure.findobj(Text)
    before = [(one.get_text(), one.get_fontfamily()) for one in texts]
    fonts, missing = _fonts_for(set().union(*(text for text, _ in before)))
    spelled = {ord(one): one.encode("unicode_escape").decode() for one in missing}
    try:
        for one, (text, families) in zip(texts, before, strict=True):
            one.set(text=text.translate(spelled), fontfamily=[*families, *fonts])
        yield missing
    finally:
        for one, (text, families) in zip(texts, before, strict=True):
            one.set(text=text, fontfamily=families)


def _fonts_for(characters: set[str]) -> tuple[list[str], set[str]]:
    """Return fonts for characters that the usual font lacks, and the characters without a font."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager

    missing = {one for one in characters if one.isprintable()}
    missing -= characters_of(findfont(FontProperties()))
    fonts = []
    for entry in sorted(fontManager.ttflist, key=lambda one: (one.style != "normal", one.name)):
        # The font of last resort has a box for everything.
        if not missing or "last resort" in entry.name.lower():
            continue
        if found := missing & characters_of(entry.fname):
            fonts.append(entry.name)
            missing -= found
    return fonts, missing


@cache
def characters_of(file: str) -> frozenset[str]:
    """Return the characters that a font file has."""
    from matplotlib.ft2font import FT2Font

    return frozenset(map(chr, FT2Font(file).get_charmap()))
