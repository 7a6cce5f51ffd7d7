"""Warns of windows that are shorter than was probably meant."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.runtime.time_units import TICKS_A_SECOND
from engine.runtime.warned import warn


def warn_of_short_windows(
    given: Mapping[str, str],
    units: tuple[str, str | None],
    rows: int,
    span: tuple[int, int] | None,
) -> None:
    """Warn of windows given as plain numbers where ticks are parts of a second, if they are short.

    A number that was meant in seconds is a million times too short in microseconds.

    Parameters
    ----------
    given : mapping of str to str
        The windows by stream, as given; of a grid a list.
    units : (str, str or None)
        What one tick is, and what the user says it is: who says so means ticks.
    rows : int
        Tuples of all streams.
    span : (int, int) or None
        First and last tick; None without tuples.
    """
    if span is not None and rows > 1:
        _warn(given, units, (span[1] - span[0]) / (rows - 1))


def warn_of_windows_below_a_second(given: Mapping[str, str], units: tuple[str, str | None]) -> None:
    """Do the same where the tuples are not known yet: less than a second is short."""
    _warn(given, units, None)


def _warn(given: Mapping[str, str], units: tuple[str, str | None], gap: float | None) -> None:
    unit, stated = units
    if stated or unit not in TICKS_A_SECOND:
        return
    second = TICKS_A_SECOND[unit]
    apart = "" if gap is None else f", and there is a tuple every {gap / second:.3g} s on average"
    streams: dict[str, list[str]] = {}
    for name, text in given.items():
        streams.setdefault(str(text).strip(), []).append(name)
    for text, names in streams.items():
        for part in text.split(","):
            number = part.split(":")[0].strip()
            if re.fullmatch(r"\d+", number) and 0 < int(number) < (second if gap is None else gap):
                whose = "" if len(names) == len(given) else f" of stream {' and '.join(names)}"
                warn(
                    f"window {number}{whose} is {int(number) / second:.3g} s, as one tick is "
                    f"1 {unit}{apart}: write {number}s for seconds, or {number}{unit} if this is "
                    "what is meant"
                )
