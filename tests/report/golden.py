"""Pictures as they were when people last looked at them, and figures compared with these.

A figure that is meant to look otherwise fails once: look at the picture that the failure names, and
copy it here.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from headroles.results.result import Result, draw

FOLDER = Path(__file__).parent / "pictures"
_MADE_WITH = (3, 11)
"""The matplotlib of the pictures; others place text otherwise."""
_DOTS = 40  # per inch: enough to tell what is where, and small files
_MOST = 3.0
"""The largest root mean square of differences, of 255; marks of one kind that are gone make 4.6."""


def file_of(name: str) -> Path:
    """The picture of a figure, or of the figure that a kind of result is shown with."""
    return FOLDER / f"{name.replace(' ', '-')}.png"


def check_look(figure: Figure, name: str, folder: Path) -> None:
    """Fail if a figure does not look as it did; ``folder`` is for what it looks like now."""
    golden, now = file_of(name), folder / file_of(name).name
    figure.savefig(now, dpi=_DOTS)
    assert golden.exists(), f"there is no {golden} yet: look at {now} and copy it there"
    if matplotlib.__version_info__[:2] != _MADE_WITH:
        pytest.skip("another matplotlib than that of the pictures")
    assert compare_images(str(golden), str(now), tol=_MOST) is None


def check_result_look(result: Result, folder: Path) -> None:
    """`check_look` for the figure that notebooks show with a result."""
    figure = draw(result)
    assert figure is not None
    check_look(figure, result.kind, folder)
