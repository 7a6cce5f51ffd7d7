"""How every report is printed on a terminal: tables, numbers and closing lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from engine.runtime.time_units import NANOSECONDS

_LEAST, _HUGE = 0.005, 1e15
"""Numbers between have two decimals: those below would be 0.00, those above are too long."""
_WORD = re.compile(r"\S+(?: %(?!\S))?")
"""What a line of a table is not broken in."""
_SMALL = 0.05
"""Of less, two decimals say little."""
_MANY = (("billion ticks", 1e9), ("million ticks", 1e6))
_UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0),
          ("milliseconds", 1e-3), ("microseconds", 1e-6), ("nanoseconds", 1e-9))  # fmt: skip


class CommandLine(str):
    """A command line among what a report prints."""

    __slots__ = ()


class Sketch(str):
    """What is drawn with characters, and better where there are plots."""

    __slots__ = ()


class Footnote(str):
    """What explains a name on a terminal; pages have a glossary."""

    __slots__ = ()


class Folding(Table):
    """A table that folds between words where it is too wide, and keeps numbers whole."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it in the room that there is."""
        widths, least = self._widths(), self.least_widths()
        room = options.max_width - _around(len(widths))
        folds = set(range(len(widths)))
        while sum(widths) > room and (folds := {at for at in folds if widths[at] > least[at]}):
            widths[max(folds, key=lambda at: (widths[at], at))] -= 1
        for column, width in zip(self.columns, widths, strict=True):
            column.width, column.overflow = width, "fold"
        yield from super().__rich_console__(console, options)

    @property
    def least_width(self) -> int:
        """Characters that it takes with all folded."""
        least = self.least_widths()
        return sum(least) + _around(len(least))

    def least_widths(self) -> list[int]:
        """Return the widths of columns with all folded, in characters."""
        cells = zip(self.columns, self._cells(), strict=True)
        return [_longest(_WORD.findall("\n".join([str(own.header), *its]))) for own, its in cells]

    def _widths(self) -> list[int]:
        named = zip(self.columns, self._cells(), strict=True)
        return [_longest([*str(own.header).split("\n"), *cells]) for own, cells in named]

    def _cells(self) -> list[list[str]]:
        """Return the lines of each column's cells."""
        return [[n for own in one.cells for n in str(own).split("\n")] for one in self.columns]


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _around(columns: int) -> int:
    """Return how many characters lines and spaces take."""
    return 3 * columns + 1


def terminal() -> Console:
    """Return standard output, where data is printed as it is: brackets are no markup."""
    return Console(markup=False, emoji=False)


def number(value: float | None) -> str:
    """Return a number with thousands separators; None is the memory of an exact side.

    Where two decimals would say nothing, or the number is huge, it has four digits.

    Examples
    --------
    >>> [number(own) for own in (12345, 1234.5, 0.0, 0.00004213, 7.22e99)]
    ['12,345', '1,234.50', '0.00', '4.213e-05', '7.220e+99']
    """
    if value is None:
        return "exact"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if value == 0 or _LEAST <= abs(value) < _HUGE else _digits(value)


def _digits(value: float) -> str:
    """Return a number with four digits that are significant."""
    return f"{value:#.4g}"


def rounded(value: float, *, whole: bool) -> str:
    """Return a number without or with two decimals; with three digits if these say little of it.

    Examples
    --------
    >>> rounded(1234.5, whole=True), rounded(1.5, whole=False), rounded(0.00289, whole=False)
    ('1,234', '1.50', '0.00289')
    """
    if isinstance(value, float) and abs(value) >= _HUGE:
        return _digits(value)
    if whole or isinstance(value, int):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value == 0 or abs(value) >= _SMALL else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.2f} %"


def time_scale(ticks: int, unit: str) -> tuple[float, str]:
    """Return what ticks are to be multiplied by for an axis of that length, and its unit.

    Examples
    --------
    >>> time_scale(864_000_000_000, "us"), time_scale(500, "tick")
    ((1.1574074074074074e-11, 'days'), (1.0, 'ticks'))
    """
    if unit == "tick":
        named = (size for size in _MANY if ticks >= 10 * size[1])
        name, size = next(named, ("ticks", 1.0))
        return 1 / size, name
    size = NANOSECONDS[unit] / 10**9
    for name, seconds in _UNITS:
        if ticks * size >= 2 * seconds:
            return size / seconds, name
    return 1.0, unit


def length(ticks: int, unit: str) -> str:
    """Return a length of time in its largest unit, rounded; plain ticks as a number.

    Examples
    --------
    >>> length(2_880_000_001, "us"), length(2_500, "tick")
    ('48 minutes', '2,500')
    """
    if unit == "tick" or not ticks:
        return f"{ticks:,}"
    scale, name = time_scale(ticks, unit)
    return f"{ticks * scale:.4g} {name}"


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]] = (),
    title: str | None = None,
    texts: Collection[int] = (0,),
) -> Folding:
    """Return a table.

    Parameters
    ----------
    columns : sequence of str
        Headings.
    rows : iterable of sequence of str
        Cells.
    texts : collection of int
        Columns aligned left; the others hold numbers.
    """
    table = Folding(title=title, title_justify="left")
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at in texts else "right")
    for cells in rows:
        table.add_row(*cells)
    return table


def archive_rows(content: Mapping[str, Any]) -> list[list[str]]:
    """Return the cells of stream, rows, null keys, rejected and sorted, a row for each stream."""
    return [
        [
            stream,
            *(number(content[name][stream]) for name in ("rows", "null_keys", "rejected")),
            "yes" if content["sorted"][stream] else "by winnow",
        ]
        for stream in content["rows"]
    ]


def facts_line(fact: Mapping[str, int]) -> str:
    """Return what was read of the fact relation."""
    others = [
        f"{number(fact[name])} {name.replace('_', ' ')}"
        for name in ("duplicates", "deletes", "null_keys", "between_ticks", "rejected")
        if fact[name]
    ]
    line = f"facts: {number(fact['facts'])} of {number(fact['rows'])} rows"
    return line + (f" ({', '.join(others)})" if others else "")


def speed_of(content: Mapping[str, Any]) -> str:
    """Return a run's throughput, device and seed."""
    device = content["device"]
    return (
        f"{content['tuples_per_second']:,.0f} tuples/s on {device['used']} ({device['reason']}); "
        f"seed {content['seed']}"
    )


def print_command(console: Console, command: str) -> None:
    """Print a command line over as many lines as it needs, ready to paste into a shell."""
    lines = [""]
    for group in _options(shlex.split(command)):
        if lines[-1] and len(lines[-1]) + len(group) + len(" \\ ") > console.width:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {group}" if lines[-1] else group
    console.print(CommandLine("\n".join(lines)), highlight=False, soft_wrap=True)


def _options(words: Sequence[str]) -> list[str]:
    """Return words, quoted, options with their values together."""
    found: list[str] = []
    for before, word in zip(["", *words[:-1]], words, strict=True):
        value = before.startswith("--") and not word.startswith("--")
        if value:
            found[-1] += f" {shlex.quote(word)}"
        else:
            found.append(shlex.quote(word))
    return found


def print_end(
    console: Console, content: Mapping[str, Any], details: str = "", output: str = "output"
) -> None:
    """Print a report's seconds, with `details` after them, and where its output is, if any."""
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(f"seconds: {seconds}" + (f"; {details}" if details else ""))
    if content.get("out"):
        console.print(f"{output}: {content['out']}")
    if content.get("aggregates_out"):
        console.print(f"aggregates: {content['aggregates_out']}")
