"""Parses windows and instants: ticks, or durations and dates on columns that hold times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np

from engine.runtime.errors import SpecError, did_you_mean

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "day": 86_400 * 10**9}
"""Of a tick that is a unit of time."""
TICKS_A_SECOND = {"ns": 10**9, "us": 10**6, "ms": 10**3}
"""Of units that are parts of one."""
_NAMES = {
    "ns": ("ns", "nanosecond", "nanoseconds"),
    "us": ("us", "µs", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "day": ("d", "day", "days"),
    "week": ("w", "week", "weeks"),
}
_SIZES = NANOSECONDS | {"min": 60 * 10**9, "h": 3600 * 10**9, "week": 7 * 86_400 * 10**9}
_WORDS = {word: _SIZES[unit] for unit, words in _NAMES.items() for word in words}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)")
_LARGEST = 2**62 - 1  # as far as times reach: a time plus a lifetime must be an int64


def parse_window(text: str, unit: str, name: str) -> int:
    """Return the window `text` of stream `name` in ticks.

    Parameters
    ----------
    text : str
        A whole number of ticks ("400"), or a duration ("10min", "1h30m", "250 ms", "2 days",
        "1.5h") where ticks are units of time.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is: "tick" for plain integers.
    name : str
        The stream, for messages.

    Raises
    ------
    SpecError
        If `text` is neither, is negative, is no whole number of ticks or is 2^62 ticks or more.

    Examples
    --------
    >>> parse_window("400", "tick", "left"), parse_window("1h30min", "s", "left")
    (400, 5400)
    """
    return parse_ticks(text, unit, f"window {{}} of stream {name}")


def parse_ticks(text: str, unit: str, what: str, least: int = 0) -> int:
    """Return a length of time in ticks: `parse_window` of anything that is one.

    Parameters
    ----------
    text, unit : str
        As of `parse_window`.
    what : str
        Whose it is, with {} for the text, for messages.
    least : {0, 1}
        The fewest ticks.

    Raises
    ------
    SpecError
        As `parse_window`, and if there are fewer than `least`.

    Examples
    --------
    >>> parse_ticks("2min", "s", "--tau {}")
    120
    """
    named = what.format(text)
    cleaned = text.strip().lower()
    negative = cleaned.startswith("-")
    body = cleaned.lstrip("+-")
    if re.fullmatch(r"\d+", body):
        ticks = Fraction(int(body))
    elif re.fullmatch(r"\d*\.\d+|\d+\.", body):
        ticks = Fraction(body)
    else:
        ticks = _duration(body, text, unit, what)
    if (negative and ticks) or (least and not ticks):
        raise SpecError(f"{named} must be {least} tick{'' if least == 1 else 's'} or more")
    if ticks.denominator != 1:
        one = "" if unit == "tick" else f" (one tick is 1 {unit})"
        raise SpecError(f"{named} is not a whole number of ticks{one}: round it")
    if ticks > _LARGEST:
        raise SpecError(f"{named} is too long: give at most {_LARGEST} ticks")
    return int(ticks)


def _duration(body: str, text: str, unit: str, what: str) -> Fraction:
    """Return a duration in ticks of `unit`."""
    named = what.format(text)
    position, nanoseconds = 0, Fraction(0)
    while match := _PART.match(body, position):
        number, word = match.groups()
        size = _size(word, named, first=position == 0)
        nanoseconds += Fraction(number) * size
        position = match.end()
    if position == 0 or body[position:].strip():
        raise SpecError(
            f"{what.format(repr(text))} is neither a number of ticks nor a duration: "
            "write 400, 10min, 1h30min, 250ms or 2 days"
        )
    if unit == "tick":
        raise SpecError(
            f"{named} is a duration, but its time column holds plain "
            "numbers: give a number of ticks, as in 400, or say what a tick is with --time-unit"
        )
    return nanoseconds / NANOSECONDS[unit]


def _size(word: str, named: str, *, first: bool) -> int:
    """Return the nanoseconds of a unit's name; m is minutes only after another, as in 1h30m."""
    if word == "m" and not first:
        return _WORDS["min"]
    if word == "m":
        raise SpecError(f"{named}: m may be minutes or months: write min for minutes")
    if word not in _WORDS:
        hint = did_you_mean(word, _WORDS)
        raise SpecError(
            f"{named}: {word!r} is no unit of time: use ns, us, ms, s, min, h, days or weeks.{hint}"
        )
    return _WORDS[word]


_SHOWN = (("s", 1), ("min", 60), ("h", 3600), ("days", 86_400))


def span_text(ticks: int, unit: str) -> str:
    """Return a length of time as people write it: ticks with their unit, or a larger one.

    Examples
    --------
    >>> span_text(60_000_000, "us"), span_text(600, "s"), span_text(9, "day")
    ('60 s', '10 min', '9 days')
    >>> span_text(1_000, "tick"), span_text(1_500_000, "us")
    ('1,000', '1,500 ms')
    """
    if unit == "tick":
        return f"{ticks:,}"
    nanoseconds = ticks * NANOSECONDS[unit]
    for name, seconds in reversed(_SHOWN):
        size = seconds * 10**9
        if nanoseconds % size == 0 and (nanoseconds >= 2 * size or (name == "s" and nanoseconds)):
            return f"{nanoseconds // size:,} {name}"
    if unit == "day":
        return f"{ticks:,} day{'' if ticks == 1 else 's'}"
    names = ("ms", "us", unit) if nanoseconds else (unit,)
    name = next(own for own in names if nanoseconds % NANOSECONDS[own] == 0)
    return f"{nanoseconds // NANOSECONDS[name]:,} {name}"


def instant_text(ticks: int, unit: str, zone: str | None = None) -> str:
    """Return a point in time as people write it, in its time zone; plain ticks as a number.

    Examples
    --------
    >>> instant_text(86_400, "s"), instant_text(1_500, "ms"), instant_text(1, "day")
    ('1970-01-02 00:00:00', '1970-01-01 00:00:01.500', '1970-01-02')
    >>> instant_text(0, "s", "Europe/Berlin"), instant_text(7, "tick")
    ('1970-01-01 01:00:00+01:00', '7')
    >>> instant_text(1_120_000_000, "ns"), instant_text(1, "us"), instant_text(10**6, "us")
    ('1970-01-01 00:00:01.120', '1970-01-01 00:00:00.000001', '1970-01-01 00:00:01')
    """
    if unit == "tick":
        return str(ticks)
    moment = np.array(ticks, np.int64).astype(f"datetime64[{_CODES[unit]}]")
    text = str(moment).replace("T", " ")
    if zone is None or unit == "day":
        while text.endswith("000") and "." in text:
            text = text[:-3]
        return text.removesuffix(".")
    try:
        seconds = int(moment.astype("datetime64[s]").astype(np.int64))
        offset = datetime.fromtimestamp(seconds, _zone(zone)).utcoffset() or timedelta()
    except (ValueError, OverflowError, OSError, KeyError):  # a zone or a year unknown here
        return f"{instant_text(ticks, unit)} UTC"
    there = int(offset.total_seconds()) * 10**9 // NANOSECONDS[unit]
    sign, minutes = "+-"[offset < timedelta()], abs(int(offset.total_seconds())) // 60
    return f"{instant_text(ticks + there, unit)}{sign}{minutes // 60:02}:{minutes % 60:02}"


def _ahead(moment: np.datetime64, zone: tzinfo) -> np.timedelta64:
    """Return how far a zone's clocks are ahead of UTC when they show a time."""
    try:
        shown = moment.astype("datetime64[s]").astype(datetime)
        offset = shown.replace(tzinfo=zone).utcoffset()
    except (ValueError, OverflowError, AttributeError):  # a year unknown here
        offset = None
    return np.timedelta64(int((offset or timedelta()).total_seconds()), "s")


def _zone(name: str) -> tzinfo:
    """Return a zone by its name, or of an offset as Arrow and Spark write it: +02:00, GMT+2."""
    if offset := re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d\d?):?(\d\d)?", name):
        east = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(east if offset[1] == "+" else -east)
    return ZoneInfo("UTC" if name in {"Z", "UT"} else name)


def duration_text(value: timedelta) -> str:
    """Return a `timedelta`, or one of pandas, as `parse_ticks` reads it.

    Examples
    --------
    >>> duration_text(timedelta(minutes=1)), duration_text(timedelta(milliseconds=1500))
    ('60s', '1500ms')
    """
    nanoseconds = value // timedelta(microseconds=1) * 1000 + getattr(value, "nanoseconds", 0)
    unit = next(own for own in ("s", "ms", "us", "ns") if nanoseconds % NANOSECONDS[own] == 0)
    return f"{nanoseconds // NANOSECONDS[unit]}{unit}"


_CODES = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "day": "D"}
_WRITTEN = re.compile(
    r"(\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)"
    r"\s*(?:Z|([+-])(\d\d):?(\d\d)?)?"
)
FARTHEST = 2**62
"""Differences of two times, and a time plus a window, must be an int64."""


def parse_instant(text: str, unit: str, option: str, zone: str | None = None) -> int:
    """Return a point in time in ticks.

    Parameters
    ----------
    text : str
        A whole number of ticks, or a date and time in ISO 8601 where ticks are units of time.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is.
    option : str
        For messages.
    zone : str, optional
        Time zone of a date and time without an offset.

    Raises
    ------
    SpecError
        If it is neither, no whole number of ticks, or beyond 2^62 ticks, or if its zone is unknown.

    Examples
    --------
    >>> parse_instant("-3", "tick", "--start-ts"), parse_instant("1970-01-02", "s", "--start-ts")
    (-3, 86400)
    >>> parse_instant("1970-01-01T02:00+01:00", "s", "--start-ts")
    3600
    >>> parse_instant("1970-07-01T02:00", "s", "--start-ts", "Europe/Berlin") / 3600
    4345.0
    """
    cleaned = text.strip()
    if re.fullmatch(r"[+-]?\d+", cleaned):
        ticks = int(cleaned)
    elif unit == "tick":
        raise SpecError(f"{option} is {text!r}, but time is a plain number: give a number of ticks")
    else:
        ticks = _calendar(cleaned, text, unit, option, zone)
    if not -FARTHEST <= ticks < FARTHEST:
        raise SpecError(f"{option} is {text!r}, which is beyond 2^62 ticks, as no tuple is")
    return ticks


def _calendar(cleaned: str, text: str, unit: str, option: str, zone: str | None) -> int:
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
    elif zone is not None and not cleaned.endswith("Z"):
        try:
            there = _zone(zone)
        except (ValueError, OSError, KeyError):
            raise SpecError(
                f"{option} is {text!r}, without an offset, and its time zone {zone!r} is unknown "
                "here: write the offset, as in 2024-05-01T09:30:00+02:00"
            ) from None
        moment = moment - _ahead(moment, there)
    ticks = moment.astype(f"datetime64[{_CODES[unit]}]")
    if ticks.astype(moment.dtype) != moment:
        raise SpecError(f"{option} is {text!r}, which is no whole number of ticks of 1 {unit}")
    return int(ticks.astype(np.int64))
