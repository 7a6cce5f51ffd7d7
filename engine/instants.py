"""Points in time as people write them."""

from __future__ import annotations

import re

import numpy as np

from engine.errors import SpecError

_CODES = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "day": "D"}


def parse_instant(text: str, unit: str, option: str) -> int:
    """Return a point in time in ticks.

    Parameters
    ----------
    text : str
        A whole number of ticks, or a date and time in ISO 8601 where ticks are units of time.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    option : str
        For messages.

    Raises
    ------
    SpecError
        If it is neither, or no whole number of ticks.

    Examples
    --------
    >>> parse_instant("-3", "tick", "--start-ts"), parse_instant("1970-01-02", "s", "--start-ts")
    (-3, 86400)
    """
    cleaned = text.strip()
    if re.fullmatch(r"[+-]?\d+", cleaned):
        return int(cleaned)
    if unit == "tick":
        raise SpecError(f"{option} is {text!r}, but time is a plain number: give a number of ticks")
    try:
        moment = np.datetime64(cleaned.rstrip("Z"), "ns")
    except ValueError:
        raise SpecError(
            f"{option} is {text!r}; give ticks ({unit}) or a time such as 2024-05-01T09:30:00"
        ) from None
    ticks = moment.astype(f"datetime64[{_CODES[unit]}]")
    if ticks != moment:
        raise SpecError(f"{option} is {text!r}, which is no whole number of ticks of 1 {unit}")
    return int(ticks.astype(np.int64))
