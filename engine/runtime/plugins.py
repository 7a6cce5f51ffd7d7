"""What installed packages add to winnow: the entry points of a group."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any


def plugins(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group, by name."""
    return {point.name: point for point in _installed().select(group=group)}


@cache
def _installed() -> Any:  # noqa: ANN401 - Python 3.11's is of another type than newer ones
    """Read what is installed, once: that takes a file of every distribution."""
    return metadata.entry_points()
