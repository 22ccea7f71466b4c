"""Figures in files, as SVG, PDF or PNG whose characters can be read, and as SVG on pages."""

from __future__ import annotations

import html
import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles import storage
from headroles.drawing.style import figure_of
from headroles.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SVG, PDF, PNG = FORMATS = (".svg", ".pdf", ".png")
_DOTS = 150  # per inch, of PNG
_FAMILIES = (
    "Noto Sans,Noto Sans CJK SC,Noto Sans CJK JP,Noto Sans CJK KR,Droid Sans Fallback,"
    "WenQuanYi Zen Hei,PingFang SC,Hiragino Sans,Apple SD Gothic Neo,Microsoft YaHei,Yu Gothic,"
    "Malgun Gothic,Arial Unicode MS,Nirmala UI,Noto Sans Arabic,Noto Sans Hebrew,"
    "Noto Sans Devanagari,Noto Sans Tamil,Noto Sans Telugu,Noto Sans Thai,Unifont"
).split(",")
"""Fonts for the scripts of treebanks; those that are installed follow the usual one."""


def check_figure_file(file: str | Path) -> Path:
    """Return the path of a figure. Raises UsageError for an unknown file extension."""
    path = Path(file)
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"the figure is {path.name!r}; its name must end in {', '.join(FORMATS)}")
    return path


def save_figure(drawn: Figure | Axes, file: str | Path) -> Path:
    """Write a figure, or the figure of axes, in the format of the file name, and return the path.

    In SVG text stays text: the program that shows it needs the fonts. In PDF and PNG fonts of this
    machine draw the characters; a warning names those that no font has.

    Raises UsageError for a name that ends otherwise, StorageError for a place that cannot be
    written.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    path = check_figure_file(file)
    figure = figure_of(drawn)
    suffix = path.suffix.lower()
    if suffix == SVG:
        storage.write_bytes(path, _svg_of(figure, "headroles").encode())
        return path
    about: dict[str, Any] = (
        {"dpi": _DOTS} if suffix == PNG else {"metadata": {"CreationDate": None}}
    )
    fonts = [name for name in _FAMILIES if name in fontManager.get_font_names()]
    texts: list[Any] = figure.findobj(Text)
    families = [text.get_fontfamily() for text in texts]
    page = io.BytesIO()
    try:
        for text, usual in zip(texts, families, strict=True):
            text.set_fontfamily([*dict.fromkeys([*usual, *fonts])])
        # Type 42 fonts: publishers refuse Type 3.
        with mpl.rc_context({"pdf.fonttype": 42}), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure.savefig(page, format=suffix[1:], **about)
    finally:
        for text, usual in zip(texts, families, strict=True):
            text.set_fontfamily(usual)
    missing = []
    for warning in caught:
        if glyph := re.match(r"Glyph (\d+) .* missing from font", str(warning.message)):
            missing.append(chr(int(glyph[1])))
        else:
            warnings.warn(warning.message, stacklevel=2)
    if missing:
        warnings.warn(
            f"no font of this machine has {' '.join(sorted({*missing})[:20])}; boxes replace "
            "these characters. Install a font that has them, such as Noto Sans, or save as SVG",
            stacklevel=2,
        )
    storage.write_bytes(path, page.getvalue())
    return path


def _svg_of(figure: Figure, salt: str) -> str:
    """Return the figure as an SVG document whose text is text, the same for the same figure.

    ``salt`` makes its ids differ from those of others.
    """
    import matplotlib as mpl

    page = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}), warnings.catch_warnings():
        # The program that shows the text needs the fonts.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure.savefig(page, format="svg", metadata={"Date": None})
    return page.getvalue()


def to_svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an ``<svg>`` element of a page, its text kept as text.

    ``name`` makes its ids unique on the page; screen readers read ``description``.
    """
    drawn = _svg_of(figure, name)
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"<[^>]+>", lambda tag: _with_own_ids(tag[0], name), drawn)
    label = html.escape(description, quote=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _with_own_ids(tag: str, name: str) -> str:
    tag = tag.replace(' id="', f' id="{name}-')
    return re.sub(r'(url\(#|href="#)', lambda found: f"{found[1]}{name}-", tag)
