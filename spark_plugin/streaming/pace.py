"""The pace of event time."""

from __future__ import annotations

import re
from fractions import Fraction

from engine.runtime.errors import SpecError

_TICKS = {
    "s": Fraction(1),
    "ms": Fraction(10**3),
    "us": Fraction(10**6),
    "ns": Fraction(10**9),
    "day": Fraction(1, 86_400),
}
_SPEED = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(x|/s)")


def parse_speed(text: str, unit: str) -> Fraction | None:
    """Return the ticks per second, None for as many as possible.

    Parameters
    ----------
    text : str
        "max"; "60x", an hour of event time in a minute; or "1000/s", ticks a second.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.

    Raises
    ------
    SpecError
        If it is none of these.

    Examples
    --------
    >>> parse_speed("60x", "ms"), parse_speed("0.5/s", "tick"), parse_speed("max", "s")
    (Fraction(60000, 1), Fraction(1, 2), None)
    """
    cleaned = text.strip().lower()
    if cleaned == "max":
        return None
    found = _SPEED.fullmatch(cleaned)
    number = Fraction(found[1]) if found else Fraction(0)
    if found is None or not number:
        raise SpecError(f"speed is {text!r}; give max, 60x (event time by wall time) or 1000/s")
    if found[2] == "/s":
        return number
    if unit not in _TICKS:
        raise SpecError(
            f"speed is {text!r}, but time is a plain number, which no clock measures: give ticks a "
            "second, as in 1000/s"
        )
    return number * _TICKS[unit]


class Pace:
    """Event time by a clock that starts at the first call.

    Parameters
    ----------
    ticks_a_second : Fraction or None
        None: no clock.

    Examples
    --------
    >>> pace = Pace(Fraction(10))
    >>> pace.reached(500, 99.0), pace.reached(505, 99.55), pace.reached(505, 101.0)
    (500, 505, 520)
    """

    def __init__(self, ticks_a_second: Fraction | None) -> None:
        self._speed = ticks_a_second
        self._began: tuple[int, float] | None = None

    def reached(self, begin: int, now: float) -> int | None:
        """Return the tick that event time has reached, None for any.

        Parameters
        ----------
        begin : int
            Tick up to which everything has been read; where the clock starts.
        now : float
            Seconds of a monotonic clock.
        """
        if self._speed is None:
            return None
        if self._began is None:
            self._began = begin, now
        first, started = self._began
        return max(begin, first + int(Fraction(now - started) * self._speed))
