"""A document of several parts as one HTML file: text, tables, plots, and links between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple, TypeAlias

from engine.report.answers import Answer
from engine.report.blocks import Block, Grid
from engine.report.charts import Bars, Chart, Lines
from engine.report.html.glossary import terms_in
from engine.report.html.page import cards_of, figure_of, grid_of, shell, terms_of, text_of_block
from engine.report.html.svg import draw

Content: TypeAlias = Block | Chart


class Part(NamedTuple):
    """A heading and what stands below it."""

    title: str
    contents: Sequence[Content]
    anchor: str = ""
    """By which links find it."""
    below: bool = False
    """Whether it belongs to the part before it."""


def document_of(
    title: str, meaning: str, cards: Sequence[Answer], parts: Iterable[Part], made_by: str,
    terms: dict[str, str],
) -> str:  # fmt: skip
    """Return the page; the same for the same contents.

    Parameters
    ----------
    cards : sequence of Answer
        What comes first.
    made_by : str
        By what, and when it was made.
    terms : dict of str to str
        Of the glossary, beside those that any report explains.
    """
    data: list[dict[str, Any]] = []
    told: list[str] = []
    body = [cards_of(cards)]
    for part in parts:
        told.append(part.title)
        level, anchor = "h3" if part.below else "h2", f' id="{part.anchor}"' if part.anchor else ""
        inside = [f"<{level}{anchor}>{escape(part.title)}</{level}>"]
        plots = False
        for own in part.contents:
            told.append(_words(own))
            drawn = isinstance(own, Lines | Bars)
            if drawn != plots:  # plots in a row stand beside each other
                inside.append('<div class="plots">' if drawn else "</div>")
                plots = drawn
            if isinstance(own, Lines | Bars):
                drawing = draw(own)
                inside.append(figure_of(own, drawing, len(data)))
                data.append(drawing.data)
            elif isinstance(own, Grid):
                inside.append(grid_of(own, sortable=own.rows > 3))
            else:
                inside.append(text_of_block(own))
        if plots:
            inside.append("</div>")
        body.append("<section>\n" + "\n".join(inside) + "\n</section>\n")
    glossary = terms | terms_in(" ".join(told))
    body.append(f'<section>\n<h2 id="glossary">Glossary</h2>\n{terms_of(glossary)}\n</section>\n')
    return shell(title, meaning, "".join(body), data, made_by)


def _words(own: Content) -> str:
    if isinstance(own, Grid):
        return " ".join([own.title, *own.heads, *(c for s in own.sections for r in s for c in r)])
    if isinstance(own, Bars):
        return f"{own.title} {own.x}"
    return f"{own.title} {own.x} {own.y}" if isinstance(own, Lines) else own
