"""The panels of a sweep's plots: one for each window, split, estimator and number of lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.jobs.sweep.advice import Advice, kind_of
from engine.jobs.sweep.rows import Row
from engine.runtime.time_units import span_text

ACROSS = 3
"""Panels in a row."""
MOST_PANELS = 12
"""With more, a line is the best of what has no panels of its own."""

_FACETS = ("window", "split", "estimator", "lanes")
_FOLDED = ("lanes", "estimator", "split")
"""What loses its panels first where there would be too many."""

Panel = tuple[Any, ...]
"""A panel's values of what panels differ by."""


class Panels:
    """The panels of a sweep.

    Attributes
    ----------
    rows : dict
        Of each panel. Those of a policy that counts no matches are in the panels of all estimators.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._all = rows
        self._by = [name for name in _FACETS if len(_values(rows, name)) > 1]
        for name in _FOLDED:
            number = math.prod(len(_values(rows, one)) for one in self._by)
            if number > MOST_PANELS and name in self._by:
                self._by.remove(name)
        self.rows: dict[Panel, list[Row]] = {(): list(rows)}
        for name in self._by:
            self.rows = {
                (*panel, own): [row for row in mine if _value(row, name) in (own, None)]
                for panel, mine in self.rows.items()
                for own in _values(rows, name)
            }
        self.rows = {panel: mine for panel, mine in self.rows.items() if mine}

    @property
    def across(self) -> int:
        """How many panels are in a row."""
        last = len(_values(self._all, self._by[-1])) if self._by else 1
        if last <= ACROSS:
            return last
        return 2 if last == ACROSS + 1 else ACROSS

    def holds(self, advice: Advice, panel: Panel) -> bool:
        """Tell whether a panel shows what is advised."""
        if advice.best is None:
            return False
        return any(kind_of(row) == advice.best.kind for row in self.rows[panel])

    def title(self, panel: Panel, tick: str) -> str:
        """Return what is above a panel."""
        words = []
        for name, value in zip(self._by, panel, strict=True):
            if name == "window":
                words.append(_window(value, tick))
            elif name == "lanes":
                words.append("1 lane" if value == 1 else f"{value} lanes")
            else:
                words.append(f"{name} {value}")
        return ", ".join(words)

    def rest(self, tick: str) -> str:
        """Return what is said of all panels: their one window, and what has no panels."""
        words = ""
        if self._all and "window" not in self._by:
            words = f", {_window(_value(self._all[0], 'window'), tick)}"
        folded = [
            name for name in _FACETS if name not in self._by and len(_values(self._all, name)) > 1
        ]
        return words + (f" (the best {' and '.join(folded)} at each memory)" if folded else "")


def _value(row: Row, name: str) -> Any:  # noqa: ANN401 - of any column
    return (row.window_left, row.window_right) if name == "window" else getattr(row, name)


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    """Return the values that rows have; None, of policies without an estimator, is none."""
    return [own for own in dict.fromkeys(_value(row, name) for row in rows) if own is not None]


def _window(windows: tuple[int, int], tick: str) -> str:
    unit = " ticks" if tick == "tick" else ""
    shown = [span_text(own, tick) for own in dict.fromkeys(windows)]
    return f"window{'s' if len(shown) > 1 else ''} {' and '.join(shown)}{unit}"
