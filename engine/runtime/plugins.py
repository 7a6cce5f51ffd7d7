"""What installed packages add to winnow: the entry points of a group."""

from __future__ import annotations

from functools import cache
from importlib import metadata


def plugins(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group, by name."""
    return {point.name: point for point in _installed().select(group=group)}


@cache
def _installed() -> metadata.EntryPoints:
    """Read what is installed, once: that takes a file of every distribution."""
    return metadata.entry_points()
