"""The options of the source ``winnow``, which are all text, and the pace of event time."""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from engine.archives.families import plain_type
from engine.archives.roles import JoinColumns, Roles, check_present, common_time
from engine.archives.source import Archive
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.streams import SIDES
from engine.runtime.time_units import NANOSECONDS, parse_instant, parse_ticks
from spark_plugin.streaming.feed import Feed, Stream, parquet_archive
from spark_plugin.versions import arrow_type

ROWS_PER_BATCH = 1_000_000
PARTITIONS = 8
KNOWN = (
    "left", "right", "time", "left_time", "right_time", "columns", "speed", "ticks_per_batch",
    "rows_per_batch", "start", "partitions", "feed",
)  # fmt: skip
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


@dataclass(frozen=True)
class Options:
    """The options of a stream, read."""

    feed: Feed
    speed: Fraction | None
    """Ticks of event time per second; None for as fast as possible."""
    ticks: int | None
    """Ticks of event time in a micro-batch."""
    rows: int
    """Maximum number of rows of both streams in a micro-batch."""
    start: int | None
    """Tick before which nothing is read."""
    partitions: int
    """Maximum number of tasks that read a micro-batch."""


def parse(given: Mapping[str, str]) -> Options:
    """Return the options, read and checked.

    Raises
    ------
    WinnowError
        If one is invalid, or an archive cannot be read.
    """
    options = {name.lower(): text for name, text in given.items()}
    for name in options:
        if name not in KNOWN:
            raise SpecError(
                f"the source winnow has no option {name!r}; it has {', '.join(KNOWN[:-1])}."
                + did_you_mean(name, KNOWN)
            )
    feed = unpacked(options["feed"]) if "feed" in options else _rows_feed(options)
    unit = feed.columns.unit
    ticks = options.get("ticks_per_batch")
    start = options.get("start")
    return Options(
        feed,
        parse_speed(options.get("speed", "max"), unit),
        None if ticks is None else parse_ticks(ticks, unit, "ticks_per_batch {}", least=1),
        _whole("rows_per_batch", options.get("rows_per_batch", str(ROWS_PER_BATCH))),
        None if start is None else parse_instant(start, unit, "start", feed.zone),
        _whole("partitions", options.get("partitions", str(PARTITIONS))),
    )


def packed(feed: Feed) -> str:
    """Return a feed as text."""
    return base64.b64encode(pickle.dumps(feed)).decode()


def unpacked(text: str) -> Feed:
    """Return the feed of `packed`."""
    found: Feed = pickle.loads(base64.b64decode(text))  # noqa: S301 - the driver's own
    return found


def _whole(option: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise SpecError(f"{option} is {text!r}; it must be a whole number, 1 or more")
    return int(text)


def _rows_feed(options: Mapping[str, str]) -> Feed:
    """Return the feed of rows as they are, which join nothing."""
    archives, roles = [], []
    for side in SIDES:
        where, time = options.get(side), options.get(f"{side}_time", options.get("time"))
        if where is None:
            raise SpecError(f"the source winnow has no archive {side}: give option {side}, a path")
        if time is None:
            raise SpecError(f"stream {side} has no time column: give option time, or {side}_time")
        archives.append(parquet_archive(where, side))
        roles.append(Roles((), time))
        check_present(archives[-1], time)
    unit, zoned = common_time(zip(archives, (own.time for own in roles), strict=True))
    streams = []
    for archive, own in zip(archives, roles, strict=True):
        payload = _payload(archive, archives, options.get("columns", "all"))
        names = dict.fromkeys((*payload, own.time))
        kinds = pa.schema([(name, _spark_kind(archive, name)) for name in names])
        streams.append(Stream(archive, own, kinds, payload))
    if unit not in ("tick", "day"):
        unit = "us"  # as in Spark
    return Feed((streams[0], streams[1]), JoinColumns(unit, zoned, (), ()))


def _payload(archive: Archive, archives: Sequence[Archive], columns: str) -> tuple[str, ...]:
    """Return the payload columns: all, none, or those of a JSON list."""
    if columns in ("all", "none"):
        return tuple(archive.schema.names) if columns == "all" else ()
    try:
        named = json.loads(columns)
    except ValueError:
        named = None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise SpecError(
            f"columns is {columns!r}; give all, none, or names as a JSON list, as in "
            '["item", "price"]'
        )
    known = {name for own in archives for name in own.schema.names}
    for name in named:
        if name not in known:
            raise SpecError(
                f"columns has {name!r}, which is in neither archive." + did_you_mean(name, known)
            )
    return tuple(name for name in archive.schema.names if name in named)


def _spark_kind(archive: Archive, name: str) -> pa.DataType:
    """Return the type that Spark has for a column, as Arrow hands it over."""
    kind = plain_type(archive.schema.field(name).type)
    try:
        found = from_arrow_type(_WIDER.get(kind, kind))
        return arrow_type(found)
    except Exception as error:  # pyspark raises several for a type that it lacks
        raise SpecError(
            f"column {name} of the {archive.side} archive has type {kind}, which Spark lacks: name "
            "the columns that you need, by option columns"
        ) from error


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
    if unit == "tick":
        raise SpecError(
            f"speed is {text!r}, but time is a plain number, which no clock measures: give ticks a "
            "second, as in 1000/s"
        )
    return number * Fraction(10**9, NANOSECONDS[unit])


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
