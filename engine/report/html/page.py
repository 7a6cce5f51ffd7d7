"""A report as one HTML file that loads nothing else, and as tables for a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from rich.console import Console

from engine.options.meanings import MEANINGS, papers_in
from engine.report.answers import Answer, answers_of
from engine.report.blocks import Block, Grid, Link, blocks_of
from engine.report.charts import Bars, Chart, Lines, Series
from engine.report.html.glossary import terms_in
from engine.report.html.svg import LOOKS, Drawing, draw, marker
from engine.report.shown import Request, Shown
from engine.report.tables import CommandLine, Footnote
from engine.report.texts import escape
from engine.runtime.storage.places import save_text
from engine.runtime.storage.uris import Place

MOST_DRAWN = 250_000
"""Bytes of plots; further ones are left out, which is said."""
MOST_TABLES = 150_000
"""Bytes of tables; further rows are left out, which is said."""
_NEW = ("out",)
"""Options of what a job writes, and does not replace."""
_HATCH = (
    '<svg class="key" width="0" height="0" aria-hidden="true"><defs>'
    '<pattern id="lost" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fbe3d2"/>'
    '<rect width="2.2" height="6" fill="#d55e00"/></pattern></defs></svg>'
)


def save_page(shown: Shown, path: Place) -> None:
    """Write the page, whole or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    save_text(path, page_of(shown), "HTML report")


def page_of(shown: Shown) -> str:
    """Return the page; the same for the same report."""
    blocks = [own for own in blocks_of(shown.printed) if not isinstance(own, Footnote)]
    charts = shown.drawn()
    plots, data = _plots(charts)
    body = [
        _section("The answer", _cards(shown)),
        _section("Plots", plots),
        _section("In detail", _blocks(blocks)),
        "" if shown.request is None else _section("What was asked", _asked(shown.request)),
    ]
    written = [f"{own.title} {own.x} {'' if isinstance(own, Bars) else own.y}" for own in charts]
    told = " ".join([*map(str, blocks), *written])
    asked = [] if shown.request is None else [text for _, _, text in shown.request.options]
    terms = terms_in(told) | papers_in(" ".join([told, *asked]))
    body.append(_section("Glossary", terms_of(terms)))
    title = f"winnow {shown.task}"
    return shell(title, _meaning(shown.task), "".join(body), data, _made_by(shown))


def shell(title: str, meaning: str, body: str, data: Sequence[Any], made_by: str) -> str:
    """Return a page of sections in markup, with what its plots are read out of."""
    style, script = _asset("style.css"), _asset("script.js")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{_HATCH}\n"
        f"<header><h1>{escape(title)}</h1><p>{escape(meaning)}</p></header>\n<main>\n"
        f"{body}</main>\n<footer>{escape(made_by)}</footer>\n"
        f'<script type="application/json" id="data">{_json(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def fragment_of(printed: Callable[[Console], None]) -> str:
    """Return the tables and lines of a report for a notebook, without script or style."""
    return f"<div>{_blocks(blocks_of(printed), sortable=False)}</div>"


def table_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table, without script or style."""
    cells = [[str(cell) for cell in row] for row in rows]
    grid = Grid("", list(names), [False] * len(names), [cells] if cells else [])
    return grid_of(grid, sortable=False)


@cache
def _asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return what the content policy names a script or a style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: Any) -> str:  # noqa: ANN401 - what JSON holds
    """Return data as JSON in which nothing ends the element that it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _section(title: str, inside: str) -> str:
    return f"<section>\n<h2>{title}</h2>\n{inside}\n</section>\n" if inside else ""


def _meaning(task: str) -> str:
    text = MEANINGS.get(task, "")
    return text[:1].upper() + text[1:]


def _made_by(shown: Shown) -> str:
    versions = shown.content.get("versions", {})
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"Made by winnow. {named}".rstrip()


def _cards(shown: Shown) -> str:
    return cards_of([*shown.answers, *answers_of(shown.task, shown.content)])


def cards_of(answers: Sequence[Answer]) -> str:
    """Return figures that stand out."""
    cards = "".join(
        f'<div><dt>{escape(own.name)}</dt><dd class="value">{escape(own.value)}</dd>'
        + (f'<dd class="note">{escape(own.note)}</dd>' if own.note else "")
        + "</div>"
        for own in answers
    )
    return f'<dl class="cards">{cards}</dl>' if cards else ""


def _asked(request: Request) -> str:
    rows = [[name, value, meaning] for name, value, meaning in request.options]
    grid = Grid("", ["option", "value", "meaning"], [False] * 3, [rows] if rows else [])
    taken = [name for name, _, _ in request.options if name.lstrip("-") in _NEW]
    new = f" ({taken[0]} must be given a place that does not exist)" if taken else ""
    again = f"<p>This makes it again{new}:</p>\n{text_of_block(CommandLine(request.line))}"
    return again + (f'<div class="asked">{grid_of(grid)}</div>' if rows else "")


def terms_of(terms: dict[str, str]) -> str:
    """Return what terms mean."""
    found = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(meaning)}</dd></div>"
        for term, meaning in terms.items()
    )
    return f'<dl class="terms">{found}</dl>' if found else ""


def _plots(charts: Sequence[Chart]) -> tuple[str, list[dict[str, Any]]]:
    """Return the plots that there is room for, and what is read out of them."""
    figures: list[str] = []
    data: list[dict[str, Any]] = []
    room = MOST_DRAWN
    left_out = 0
    for chart in charts:
        own = draw(chart)
        figure = figure_of(chart, own, len(data))
        size = _size(figure) + _size(_json(own.data))
        if size > room:
            left_out += 1
            continue
        room -= size
        figures.append(figure)
        data.append(own.data)
    if not figures:
        return "", []
    note = f"<p>{left_out:,} more plots would make this file too large.</p>" if left_out else ""
    return f'<div class="plots">{"".join(figures)}</div>{note}', data


def figure_of(chart: Chart, own: Drawing, number: int) -> str:
    """Return a plot with its title and legend; its data stand at `number` of the page's."""
    filled = chart.stacked or isinstance(chart, Bars)
    looks = enumerate(own.looks if len(own.looks) > 1 or chart.marks else [])
    legend = "".join(
        f'<li><button type="button" data-s="{at}" aria-pressed="{str(shown).lower()}">'
        f"{_key(at, filled=filled)}{escape(name)}</button></li>"
        for at, (name, shown) in looks
    )
    legend += "".join(
        f'<li><span><svg class="key" viewBox="0 0 26 12"><path class="tick" d="M13,0V12"/></svg>'
        f"{escape(name)}</span></li>"
        for name in dict.fromkeys(own.name for own in chart.marks if isinstance(own, Series))
    )
    legend = legend and f'<ul class="legend">{legend}</ul>'
    unit = f'<p class="unit">{escape(chart.y)}</p>' if isinstance(chart, Lines) else ""
    return (
        f'<figure data-chart="{number}"><h3>{escape(chart.title)}</h3>'
        f'{legend}{unit}{own.svg}<div class="read"></div></figure>\n'
    )


def _key(at: int, *, filled: bool) -> str:
    """Return what a series looks like."""
    inside = '<path class="fill" d="M0,0H26V12H0Z"/>'
    if not filled:
        dots = marker(at % LOOKS, 13, 6)
        inside = f'<path class="line" d="M0,6H26"/><path class="dots" d="{dots}"/>'
    return f'<svg class="key s{at % LOOKS}" viewBox="0 0 26 12" aria-hidden="true">{inside}</svg>'


def _blocks(blocks: Sequence[Block], *, sortable: bool = True) -> str:
    room, found, left_out = MOST_TABLES, [], 0
    for own in blocks:
        if room <= 0:
            left_out += 1
            continue
        text = (
            grid_of(own, room=room, sortable=sortable)
            if isinstance(own, Grid)
            else text_of_block(own)
        )
        room -= _size(text)
        found.append(text)
    if left_out:
        found.append(f"<p>{left_out:,} more tables and lines would make this file too large.</p>")
    return "\n".join(found)


def text_of_block(text: str) -> str:
    """Return a paragraph, or a command line."""
    if isinstance(text, CommandLine):
        parts = (f"<span>{escape(own)}</span>" for own in re.split(" (?=--)", text))
        return f"<pre><code>{' '.join(parts)}</code></pre>"
    return f"<p>{escape(text)}</p>"


def grid_of(grid: Grid, *, room: int = MOST_TABLES, sortable: bool = True) -> str:
    """Return a table, as far as there is room for its rows."""
    several = sortable and grid.rows > 1
    heads = "".join(
        f'<th scope="col"{_number(is_number)}>{_head(name, sortable=several)}</th>'
        for name, is_number in zip(grid.heads, grid.numbers, strict=True)
    )
    bodies, shown = [], 0
    for section in grid.sections:
        rows = []
        for cells in section:
            row = "".join(
                f"<td{_number(is_number)}>{_cell(cell)}</td>"
                for cell, is_number in zip(cells, grid.numbers, strict=True)
            )
            room -= _size(row)
            if room < 0:
                break
            rows.append(f"<tr>{row}</tr>")
        shown += len(rows)
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    caption = f"<caption>{escape(grid.title)}</caption>" if grid.title else ""
    cut = "" if shown == grid.rows else f"<p>The first {shown:,} of {grid.rows:,} rows.</p>"
    return (
        f'<div class="table"><table>{caption}<thead><tr>{heads}</tr></thead>{"".join(bodies)}'
        f"</table></div>{cut}"
    )


def _cell(cell: str) -> str:
    text = escape(cell)
    return f'<a href="{escape(cell.target)}">{text}</a>' if isinstance(cell, Link) else text


def _head(name: str, *, sortable: bool) -> str:
    text = escape(name)
    return f'<button type="button">{text}</button>' if sortable and text else text


def _number(is_number: bool) -> str:
    return ' class="num"' if is_number else ""
