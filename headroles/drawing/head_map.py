"""An interactive map of all heads: its content, and the data that its script reads.

Without scripts the pictures of the same section replace it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroles.drawing.style import DIVERGING, SCALE
from headroles.wording import printable, printable_lines

Cells = NDArray[Any]
"""An array (layers, heads) of numbers or of texts; NaN and the empty text mean missing."""
_COLOURS = 17
_MOST_CELLS = 40_000
_MOST_QUOTED = 700_000  # characters; with as many cells the page stays below 2 MB


@dataclass(frozen=True)
class Quoted:
    """A sentence with the attention of a head.

    ``keys`` are places of the words in the sieve, ``arcs`` are (query, key, weight, whether the
    role has it); the weight is NaN without a model.
    """

    score: str
    words: tuple[str, ...]
    keys: tuple[int, ...] = ()
    arcs: tuple[tuple[int, int, float, bool], ...] = ()

    @property
    def parts(self) -> tuple[tuple[bool, str], ...]:
        """The sentence in parts, each with whether its words are in the sieve."""
        parts = groupby(range(len(self.words)), {*self.keys}.__contains__)
        return tuple((is_key, " ".join(self.words[k] for k in part)) for is_key, part in parts)

    @property
    def arcs_in_words(self) -> tuple[tuple[bool, str], ...]:
        """The arcs in words, each with whether it is of the role."""
        return tuple(
            (is_own, f"{self.words[key]} ← {self.words[query]}{_weight(weight)}")
            for query, key, weight, is_own in self.arcs
        )


def _weight(weight: float) -> str:
    return "" if np.isnan(weight) else f" {weight:.2f}"


@dataclass(frozen=True)
class View:
    """One quantity of every head in the map: a role, an estimator, a change.

    Args:
        name: its id.
        words: its name for people.
        group: its heading.
        values: (layers, heads) numbers that colour the map.
        marks: (layers, heads) signs of the legend, or numbers to be written.
        facts: further numbers or texts of each head, by name; a pair of arrays is a range.
        unit: of the values.
        line: the threshold, if there is one.
        only_position: (layers, heads) whether the head may only look at a distance.
        arrow: values before and after.
        best: the first head to show; if None, the head with the largest value.
        is_summary: whether it sums up other views; the panel of one head has no row for it.
    """

    name: str
    words: str
    group: str
    values: Cells
    marks: Cells
    facts: Mapping[str, tuple[Cells, ...]]
    unit: str
    line: float | None = None
    only_position: Cells | None = None
    arrow: tuple[Cells, Cells] | None = None
    best: tuple[int, int] | None = None
    is_summary: bool = False

    def record(self) -> dict[str, Any]:
        """Return the view for the script."""
        is_position = self.only_position
        return {
            "name": self.name,
            "words": self.words,
            "group": self.group,
            "unit": self.unit,
            "line": self.line,
            "values": _column(self.values),
            "marks": _column(self.marks),
            "facts": [[name, *map(_column, cells)] for name, cells in self.facts.items()],
            "position": [] if is_position is None else np.flatnonzero(is_position).tolist(),
            "best": self._best(),
            "summary": self.is_summary,
            "arrow": None if self.arrow is None else [*map(_column, self.arrow)],
        }

    def _best(self) -> int:
        """Return the place of the first head to show."""
        if self.best is not None:
            layer, head = self.best
            return layer * int(self.values.shape[1]) + head
        return int(np.argmax(np.nan_to_num(np.abs(self.values), nan=-1.0)))


@dataclass(frozen=True)
class HeadMap:
    """A map of all heads with its views, the first of which is shown first.

    Args:
        title: description of the map for screen readers.
        value: name of the values.
        views: choices of the switch, the most interesting first.
        legend: signs, their meaning, and whether such a head has the role.
        quoted: sentences of heads with the words of their roles.
        is_signed: whether 0 is the middle of the scale.
        choose: label of the switch.
    """

    title: str
    value: str
    views: tuple[View, ...]
    legend: tuple[tuple[str, str, bool], ...]
    quoted: Mapping[tuple[int, int], tuple[tuple[str, Quoted], ...]] = field(default_factory=dict)
    is_signed: bool = False
    choose: str = "Role"

    @property
    def drawn(self) -> tuple[View, ...]:
        """The first views, as many as fit the page."""
        return self.views[: max(1, _MOST_CELLS // max(1, self.views[0].values.size))]

    def to_json(self) -> str:
        """Return the data of the script as JSON that can stand in an HTML document."""
        layers, heads = self.views[0].values.shape
        views = self.drawn
        record = {
            "title": self.title,
            "value": self.value,
            "choose": self.choose,
            "layers": layers,
            "heads": heads,
            "signed": self.is_signed,
            "colours": _colours(DIVERGING if self.is_signed else SCALE),
            "legend": self.legend,
            "views": [view.record() for view in views],
            "left": len(self.views) - len(views),
            "quoted": self._quoted(),
        }
        text = json.dumps(_plain(record), separators=(",", ":"), allow_nan=False)
        for sign in "<>&":  # so that no word ends the element that holds the data
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text

    def _quoted(self) -> dict[str, list[Any]]:
        """Return sentences of heads for the script, as many as fit the page."""
        left, found = _MOST_QUOTED, {}
        for (layer, head), sentences in self.quoted.items():
            own = [
                [role, one.score, one.words, one.keys, [_arc(arc) for arc in one.arcs]]
                for role, one in sentences
            ]
            left -= len(json.dumps(own))
            if left < 0:
                break
            found[f"{layer}-{head}"] = own
        return found


def _arc(arc: tuple[int, int, float, bool]) -> list[int | float | None]:
    query, key, weight, is_own = arc
    return [query, key, None if np.isnan(weight) else round(weight, 2), int(is_own)]


def _column(cells: Cells) -> list[Any] | dict[str, Any]:
    """Return numbers of three digits, or texts by their numbers in a list of them."""
    flat = np.asarray(cells).ravel()
    if flat.dtype.kind in "iuf":
        return [_short(float(value)) if np.isfinite(value) else None for value in flat]
    texts = list(dict.fromkeys(map(str, flat)))
    places = {text: place for place, text in enumerate(texts)}
    return {"texts": texts, "at": [places[str(text)] for text in flat]}


def _short(value: float) -> float | int:
    short = float(f"{value:.3g}")
    return int(short) if short == int(short) and abs(short) < 1e9 else short


def _colours(name: str) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(one) for one in colormaps[name](np.linspace(0, 1, _COLOURS))]


def _plain(content: Any) -> Any:
    """Return the content with printable texts."""
    if isinstance(content, str):
        return printable_lines(content) if "\n" in content else printable(content)
    if isinstance(content, Mapping):
        return {_plain(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(one) for one in content]
    return content.item() if isinstance(content, np.generic) else content
