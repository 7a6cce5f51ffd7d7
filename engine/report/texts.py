"""Texts of data as plots and pages show them."""

from __future__ import annotations

import html
import re

from rich.cells import cell_len

_SHAPELESS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters but tab and newline, surrogates, and no characters; XML has few of them."""


def visible(text: str) -> str:
    r"""Return a text with escapes for characters without a shape, which XML and HTML refuse.

    Examples
    --------
    >>> print(visible("a\x1b[1m\ufffe"))
    a\x1b[1m\ufffe
    """
    return _SHAPELESS.sub(lambda own: own[0].encode("unicode_escape").decode(), text)


def escape(text: str) -> str:
    """Return a text as markup has it."""
    return html.escape(visible(text))


def shortened(text: str, most: int) -> str:
    """Return a text in at most so many columns, with an ellipsis for the middle of a longer one.

    Examples
    --------
    >>> shortened("https://example.org/a/b/7", 15), shortened("short", 15)
    ('https:/…g/a/b/7', 'short')
    """
    if cell_len(text) <= most:
        return text
    before, after = text[: most // 2], text[-((most - 1) // 2) :]
    while cell_len(before) > most // 2:
        before = before[:-1]
    while cell_len(after) > (most - 1) // 2:
        after = after[1:]
    return f"{before}…{after}"
