"""How every report is printed on a terminal: tables, numbers and closing lines."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


class CommandLine(str):
    """A command line among what a report prints."""

    __slots__ = ()


class Sketch(str):
    """What is drawn with characters, and better where there are plots."""

    __slots__ = ()


class Footnote(str):
    """What explains a name on a terminal; pages have a glossary."""

    __slots__ = ()


def terminal() -> Console:
    """Return standard output, where data is printed as it is: brackets are no markup."""
    return Console(markup=False, emoji=False)


def number(value: float | None) -> str:
    """Return a number with thousands separators; None is the memory of an exact side."""
    if value is None:
        return "exact"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}"


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.2f} %"


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]] = (),
    title: str | None = None,
    texts: Collection[int] = (0,),
) -> Table:
    """Return a table.

    Parameters
    ----------
    columns : sequence of str
        Headings.
    rows : iterable of sequence of str
        Cells.
    title : str, optional
    texts : collection of int
        Columns aligned left; the others hold numbers.
    """
    table = Table(title=title, title_justify="left")
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
    """Print a report's seconds, with `details` after them, and the path of its output, if any."""
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(f"seconds: {seconds}" + (f"; {details}" if details else ""))
    if content.get("out"):
        console.print(f"{output}: {content['out']}")
