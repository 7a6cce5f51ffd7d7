"""Points in time as people write them."""

from __future__ import annotations

import re

import numpy as np

from engine.runtime.errors import SpecError

_CODES = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "day": "D"}
_WRITTEN = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)"
    r"\s*(?:Z|([+-])(\d\d):?(\d\d)?)?"
)
_FARTHEST = 2**62


def parse_instant(text: str, unit: str, option: str) -> int:
    """Return a point in time in ticks.

    Parameters
    ----------
    text : str
        A whole number of ticks, or a date and time in ISO 8601 where ticks are units of time;
        without an offset it is UTC.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    option : str
        For messages.

    Raises
    ------
    SpecError
        If it is neither, no whole number of ticks, or beyond 2^62 ticks.

    Examples
    --------
    >>> parse_instant("-3", "tick", "--start-ts"), parse_instant("1970-01-02", "s", "--start-ts")
    (-3, 86400)
    >>> parse_instant("1970-01-01T02:00+01:00", "s", "--start-ts")
    3600
    """
    cleaned = text.strip()
    if re.fullmatch(r"[+-]?\d+", cleaned):
        ticks = int(cleaned)
    elif unit == "tick":
        raise SpecError(f"{option} is {text!r}, but time is a plain number: give a number of ticks")
    else:
        ticks = _calendar(cleaned, text, unit, option)
    if not -_FARTHEST <= ticks < _FARTHEST:
        raise SpecError(f"{option} is {text!r}, which is beyond 2^62 ticks, as no tuple is")
    return ticks


def _calendar(cleaned: str, text: str, unit: str, option: str) -> int:
    """Return a date and time in ticks."""
    found = _WRITTEN.fullmatch(cleaned)
    try:
        if found is None:
            raise ValueError  # noqa: TRY301 - said below, as what numpy cannot read
        moment = np.datetime64(found[1])
    except ValueError:
        raise SpecError(
            f"{option} is {text!r}; give ticks ({unit}) or a time such as 2024-05-01T09:30:00"
        ) from None
    if found[2] is not None:
        minutes = 60 * int(found[3]) + int(found[4] or 0)
        moment = moment - np.timedelta64(minutes if found[2] == "+" else -minutes, "m")
    ticks = moment.astype(f"datetime64[{_CODES[unit]}]")
    if ticks.astype(moment.dtype) != moment:
        raise SpecError(f"{option} is {text!r}, which is no whole number of ticks of 1 {unit}")
    return int(ticks.astype(np.int64))
