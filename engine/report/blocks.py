"""What a report prints, as blocks: tables, lines and command lines, for whatever shows them."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.report.tables import CommandLine, Footnote, Sketch

WIDE = 100_000
"""Characters of a line: so many that nothing is cut into several tables."""


class Link(str):
    """A cell that leads to a place of the page (``#name``), or to a file beside it."""

    __slots__ = ("target",)
    target: str

    def __new__(cls, text: str, target: str) -> Self:
        """Make the text of a cell."""
        own = super().__new__(cls, text)
        own.target = target
        return own


class Grid(NamedTuple):
    """A table's texts."""

    title: str
    heads: list[str]
    numbers: list[bool]
    """Of each column, whether it holds numbers."""
    sections: list[list[list[str]]]
    """Rows of cells, those that a line separates apart."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(map(len, self.sections))


Block: TypeAlias = Grid | CommandLine | str


class _Collector(Console):
    """A console that keeps what is printed."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=WIDE, markup=False, emoji=False)
        self.blocks: list[Block] = []

    def print(self, *objects: Any, **_: Any) -> None:  # noqa: ANN401
        """Keep what is given."""
        for own in objects:
            if isinstance(own, Table):
                self.blocks.append(_grid(own))
            elif not isinstance(own, Sketch):
                kept = isinstance(own, (CommandLine, Footnote))
                self.blocks.append(own if kept else str(own))


def blocks_of(printed: Callable[[Console], None]) -> list[Block]:
    """Return what a report prints; what is drawn with characters is left out."""
    console = _Collector()
    printed(console)
    return console.blocks


def _grid(table: Table) -> Grid:
    cells = [[_text(cell) for cell in column.cells] for column in table.columns]
    sections: list[list[list[str]]] = [[]]
    for place, row in enumerate(table.rows):
        sections[-1].append([own[place] for own in cells])
        if row.end_section:
            sections.append([])
    return Grid(
        "" if table.title is None else _text(table.title),
        [_text(column.header) for column in table.columns],
        [column.justify == "right" for column in table.columns],
        [own for own in sections if own],
    )


def _text(cell: Any) -> str:  # noqa: ANN401 - whatever a table holds
    return cell.plain if isinstance(cell, Text) else str(cell)
