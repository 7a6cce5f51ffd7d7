"""Times and importances as numbers, and what is wrong with those that are none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives import texts
from engine.archives.canonical import contiguous
from engine.archives.families import UNIT_DIGITS
from engine.archives.malformed import MARK
from engine.archives.numbers import as_float64
from engine.archives.text_times import check_alike
from engine.runtime.jit import Floats, Ints
from engine.runtime.jit import kernel as compiled
from engine.runtime.time_units import FARTHEST

_DAY_MS = 86_400_000
_INT64 = np.iinfo(np.int64)


class Fault(NamedTuple):
    """A way in which a cell can be wrong: whose cell, the reason of a row, the words of a count."""

    role: str
    reason: str
    words: str


FAULTS = (
    Fault("", "", ""),
    Fault("time", "null time", "null"),
    Fault("time", "NaN time", "NaN"),
    Fault("time", "infinite time", "infinite"),
    Fault("time", "time {} is not a whole number of ticks", "not a whole number of ticks"),
    Fault("time", "time out of int64 range", "out of int64 range"),
    Fault("time", "time {!r} does not read as one", "not readable as a time"),
    Fault("importance", "null importance", "null"),
    Fault("importance", "NaN importance", "NaN"),
    Fault("importance", "infinite importance", "infinite"),
    Fault("importance", "negative importance", "negative"),
    Fault("importance", "importance {!r} is not a number", "not a number"),
    Fault("time", "time beyond 2^62 ticks", "beyond 2^62 ticks"),
    Fault("importance", "importance greater than 1e100", "greater than 1e100"),
    Fault("time", "{}", "malformed"),
)
_NULL, _NAN, _INFINITE, _PART, _RANGE, _UNREAD = range(1, 7)
FRACTION, MALFORMED = FAULTS[_PART].words, FAULTS[14].words
_NO_WEIGHT, _NAN_WEIGHT, _INFINITE_WEIGHT, _NEGATIVE, _UNREAD_WEIGHT = range(7, 12)
_FAR, _HUGE_WEIGHT, _MALFORMED = range(12, 15)
_HEAVIEST = 1e100
"""Products and sums of importances, counts and lifetimes must stay finite."""

Faults = NDArray[np.int8]


def ticks(column: pa.ChunkedArray, unit: str, *, zoned: bool) -> tuple[Ints, Faults]:
    """Return times in ticks of `unit`, and the fault of each (0: none).

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Integers, floats, timestamps, dates, or text of CSV cells that did not all convert.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
    zoned : bool
        Whether text must carry a time zone.

    Returns
    -------
    ts : (n,) int64
        Anything where there is a fault.
    faults : (n,) int8
        Indices into `FAULTS`.

    Raises
    ------
    InputError
        If text holds times that are finer than the unit, or of which only some have a time zone.
    """
    values = contiguous(column)
    faults = np.zeros(len(values), np.int8)
    faults[_nulls(values)] = _NULL
    ts, faults = _read(values, unit, faults, zoned=zoned)
    if ts.size and (ts.max() >= FARTHEST or ts.min() < -FARTHEST):
        faults[(faults == 0) & ((ts >= FARTHEST) | (ts < -FARTHEST))] = _FAR
    return ts, faults


def _nulls(values: pa.Array) -> Ints:
    """Return the places of nulls."""
    if not values.null_count:
        return np.empty(0, np.int64)
    return np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))


def _read(values: pa.Array, unit: str, faults: Faults, *, zoned: bool) -> tuple[Ints, Faults]:
    """Read any type of time."""
    if pt.is_null(values.type):
        return np.zeros(len(values), np.int64), faults
    if pt.is_string(values.type):
        return _text_ticks(values, unit, faults, zoned=zoned)
    if pt.is_floating(values.type):
        return _whole(_numbers(values), faults)
    if pt.is_integer(values.type):
        return _integers(values, faults)
    return _calendar(values, unit, faults)


def _calendar(values: pa.Array, unit: str, faults: Faults) -> tuple[Ints, Faults]:
    """Read dates and timestamps."""
    if pt.is_date32(values.type):
        return _filled(values.view(pa.int32())).astype(np.int64), faults
    raw = _filled(values.view(pa.int64()))
    if pt.is_date64(values.type):
        faults[(faults == 0) & (raw % _DAY_MS != 0)] = _PART
        return raw // _DAY_MS, faults
    digits = UNIT_DIGITS[unit] - UNIT_DIGITS[values.type.unit]
    return (_finer if digits >= 0 else _coarser)(raw, 10 ** abs(digits), faults)


def _filled(values: pa.Array) -> Ints:
    filled = pc.fill_null(values, 0) if values.null_count else values
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _numbers(values: pa.Array) -> Floats:
    return _filled(as_float64(values)).astype(np.float64, copy=False)


def _integers(values: pa.Array, faults: Faults) -> tuple[Ints, Faults]:
    raw = _filled(values)
    if raw.dtype == np.uint64:
        faults[raw > np.uint64(_INT64.max)] = _RANGE
    return raw.astype(np.int64, copy=False), faults


def _whole(numbers: Floats, faults: Faults) -> tuple[Ints, Faults]:
    good = faults == 0
    faults[good & np.isnan(numbers)] = _NAN
    faults[good & np.isinf(numbers)] = _INFINITE
    good = faults == 0
    faults[good & (np.floor(numbers) != numbers)] = _PART
    faults[good & ((numbers >= 2.0**63) | (numbers < -(2.0**63)))] = _RANGE
    return np.where(faults == 0, numbers, 0.0).astype(np.int64), faults


def _finer(raw: Ints, factor: int, faults: Faults) -> tuple[Ints, Faults]:
    if factor == 1:
        return raw, faults
    faults[(raw > _INT64.max // factor) | (raw < -(_INT64.max // factor))] = _RANGE
    return np.where(faults == 0, raw, 0) * factor, faults


def _coarser(raw: Ints, factor: int, faults: Faults) -> tuple[Ints, Faults]:
    """Read times that Arrow holds in a finer unit than theirs: Parquet has none in seconds."""
    faults[(faults == 0) & (raw % factor != 0)] = _PART
    return raw // factor, faults


def _text_ticks(cells: pa.Array, unit: str, faults: Faults, *, zoned: bool) -> tuple[Ints, Faults]:
    """Read text: plain numbers where ticks are, else dates or timestamps."""
    null = faults == _NULL
    if unit == "tick":
        whole, good = texts.parsed(cells, pa.int64())
        ts = _filled(whole)
        numbers, readable = texts.parsed(cells, pa.float64())
        other, found = _whole(_numbers(numbers), np.zeros(len(cells), np.int8))
        rest = ~null & ~good
        faults[rest] = np.where(readable, found, np.int8(_UNREAD))[rest]
        bad = np.flatnonzero(faults == _UNREAD)
        faults[bad[_marked(cells.take(pa.array(bad)))]] = _MALFORMED
        return np.where(good, ts, other), faults
    kind = pa.date32() if unit == "day" else pa.timestamp(unit, "UTC" if zoned else None)
    times, good = texts.parsed(cells, kind)
    bad = np.flatnonzero(~null & ~good)
    if bad.size:
        rest = cells.take(pa.array(bad))
        check_alike(rest, unit, zoned=zoned)
        far = texts.parsed(rest, pa.timestamp("s", kind.tz))[1] if unit == "ns" else False
        faults[bad] = np.where(far, np.int8(_RANGE), np.int8(_UNREAD))
        faults[bad[_marked(rest)]] = _MALFORMED
    raw = times.view(pa.int32() if unit == "day" else pa.int64())
    return _filled(raw).astype(np.int64), faults


def _marked(cells: pa.Array) -> NDArray[np.bool_]:
    """Return which cells stand for malformed lines."""
    return np.asarray(pc.starts_with(cells, MARK), np.bool_)


@compiled
def _plain(numbers: Floats) -> bool:
    """Return whether all are importances as they are: none is wrong, and none is -0.0."""
    wrong = 0
    for x in numbers:
        wrong += not (0 < x <= _HEAVIEST or (x == 0 and not np.signbit(x)))
    return wrong == 0


def importances(column: pa.ChunkedArray) -> tuple[Floats, Faults]:
    """Return importances as float64, and the fault of each (0: none).

    Returns
    -------
    importance : (n,) float64
        Anything where there is a fault.
    faults : (n,) int8
        Indices into `FAULTS`.
    """
    values = contiguous(column)
    faults = np.zeros(len(values), np.int8)
    null = _nulls(values)
    if pt.is_string(values.type):
        values, good = texts.parsed(values, pa.float64())
        faults[~good] = _UNREAD_WEIGHT
    faults[null] = _NO_WEIGHT
    numbers = _numbers(values)
    if _plain(numbers):
        return numbers, faults
    good = faults == 0
    faults[good & np.isnan(numbers)] = _NAN_WEIGHT
    faults[good & np.isposinf(numbers)] = _INFINITE_WEIGHT
    faults[good & np.isneginf(numbers)] = _INFINITE_WEIGHT
    faults[(faults == 0) & (numbers < 0)] = _NEGATIVE
    faults[(faults == 0) & (numbers > _HEAVIEST)] = _HUGE_WEIGHT
    return numbers + 0.0, faults


def reason(fault: int, cell: object) -> str:
    """Return why a row is rejected, as `_rejected` files have it."""
    return FAULTS[fault].reason.format(cell)


def cell_of(fault: int, told: str) -> str:
    """Return the cell that a reason names, as it names it; empty if it names none.

    Examples
    --------
    >>> cell_of(_UNREAD, "time 'x' does not read as one"), cell_of(_NULL, "null time")
    ("'x'", '')
    """
    before, brace, after = FAULTS[fault].reason.partition("{")
    cell = told.removeprefix(before).removesuffix(after.partition("}")[2])
    return cell.removeprefix(MARK) if brace else ""


def of_time(faults: Faults) -> NDArray[np.bool_]:
    """Return which faults leave a row without a time: (n,) bool."""
    return np.array([fault.role == "time" for fault in FAULTS])[faults]
