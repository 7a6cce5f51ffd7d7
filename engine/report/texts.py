"""Texts of data as plots and pages show them."""

from __future__ import annotations

from rich.cells import cell_len


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
