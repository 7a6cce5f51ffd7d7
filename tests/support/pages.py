"""What holds of every report that is written as a page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from html.parser import HTMLParser
from typing import Any

MOST_BYTES = 500_000
VOID = {"meta"}
EMPTY = {"path", "rect"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "svg", "defs", "pattern", "rect", "path", "g",
    "text", "header", "main", "footer", "section", "h1", "h2", "h3", "p", "pre", "code", "span",
    "dl", "dt", "dd", "div", "figure", "ul", "li", "button", "table", "caption", "thead", "tbody",
    "tr", "th", "td", "script",
}  # fmt: skip


class Parsed(HTMLParser):
    """A page as its elements.

    Attributes
    ----------
    tags : Counter
        Number of elements by name.
    attributes : list of (str, str, str or None)
        Element, name and value.
    texts : dict of str to list of str
        What stands in elements, by the name of the innermost.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the begin of an element."""
        self.tags[tag] += 1
        self.attributes += [(tag, *own) for own in attrs]
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element that is empty."""
        assert tag in EMPTY
        self.tags[tag] += 1
        self.attributes += [(tag, *own) for own in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Take the end of an element."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Take text."""
        if self._open:
            self.texts[self._open[-1]][-1] += data

    def handle_comment(self, data: str) -> None:
        """Refuse a comment."""
        raise AssertionError(data)

    def value(self, tag: str, name: str) -> list[str | None]:
        """Return the values of an attribute."""
        return [value for own, key, value in self.attributes if (own, key) == (tag, name)]


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def checked(text: str) -> Parsed:
    """Return a page's elements, and hold what is true of any."""
    assert len(text.encode()) < MOST_BYTES
    found = Parsed(text)
    assert set(found.tags) <= ALLOWED
    for tag, name, value in found.attributes:
        assert name not in {"style", "src", "href", "action", "data", "xlink:href"}, (tag, name)
        assert not name.startswith("on"), (tag, name, value)
    (style,), (data, script) = found.texts["style"], found.texts["script"]
    policy = next(own for own in found.value("meta", "content") if own and "default-src" in own)
    assert policy == (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    for own in (style, script):
        assert "http" not in own
        assert "url(" not in own.replace("url(#lost)", "")
    charts: list[dict[str, Any]] = json.loads(data)
    assert len(charts) == found.tags["figure"] == found.value("svg", "class").count("plot")
    for chart in charts:
        steps = chart["kind"] != "points"
        assert len(chart["at"]) == len(chart["labels"]) + steps
        for own in chart["series"]:
            assert len(own["values"]) == len(chart["labels"])
    assert "NaN" not in data
    assert found.tags["h1"] == 1
    return found
