"""Axes of plots: where their ticks are, and what stands there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.runtime.time_units import instant_text, parse_ticks

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_STEPS = (
    "1ns", "10ns", "100ns", "1us", "10us", "100us", "1ms", "10ms", "100ms", "200ms", "500ms",
    "1s", "2s", "5s", "10s", "15s", "30s", "1min", "2min", "5min", "10min", "15min", "30min",
    "1h", "2h", "3h", "6h", "12h", "1d", "2d", "4d", "7d", "14d", "28d", "56d", "91d", "182d",
    "365d", "730d", "1826d", "3652d", "36525d",
)  # fmt: skip
MOST = 5
"""Ticks of an axis, about."""


class Axis(NamedTuple):
    """An axis: its ends, its ticks and its label."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    label: str
    log: bool = False

    def place(self, begin: float, end: float) -> Callable[[float], float]:
        """Return what gives a value its place between two ends."""
        scale: Callable[[float], float] = math.log10 if self.log else float
        low, high = scale(self.low), scale(self.high)
        wide = (end - begin) / ((high - low) or 1.0)
        return lambda value: begin + (scale(max(value, self.low)) - low) * wide


def short(value: float) -> str:
    """Return a number in few characters.

    Examples
    --------
    >>> short(1_250_000), short(20_000), short(0.1 + 0.2), short(1500), short(7.2e99)
    ('1.25M', '20k', '0.3', '1.5k', '7.2e+99')
    """
    for size, name in _LARGE:
        if 1e12 > abs(value) >= size:
            return f"{value / size:.4g}{name}"
    return f"{value:.4g}"


def numbers(low: float, high: float, label: str, *, log: bool = False) -> Axis:
    """Return the axis of numbers from one to another.

    Examples
    --------
    >>> [text for _, text in numbers(0, 41, "").ticks]
    ['0', '10', '20', '30', '40']
    >>> [text for _, text in numbers(3, 900, "", log=True).ticks]
    ['10', '100']
    >>> [text for _, text in numbers(1, 1, "", log=True).ticks]
    ['0.5', '1', '2']
    """
    if log:
        low = max(low, 1e-12)
        if high <= low:
            low, high = low / 2, low * 2
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        factors = (1, 2, 5) if last - first <= 2 else (1,)
        values = [own * 10.0**power for power in range(first, last + 1) for own in factors]
        inside = [own for own in values if low <= own <= high]
        if len(inside) < 2:
            return numbers(low, high, label)._replace(log=True)
        every = -(-len(inside) // (MOST + 2)) or 1
        return Axis(low, high, [(own, short(own)) for own in inside[::every]], label, log=True)
    high = high if high > low else low + 1
    rough = (high - low) / MOST
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(own * size for own in _NICE if own * size >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return Axis(low, high, [((first + i) * step, short((first + i) * step)) for i in range(count)],
                label)  # fmt: skip


def times(low: float, high: float, label: str, unit: str, zone: str | None) -> Axis:
    """Return the axis of points in time, in ticks, with a calendar's ticks.

    Examples
    --------
    >>> axis = times(0, 7200, "time", "s", "Europe/Berlin")
    >>> axis.ticks[0], axis.label
    ((0, '01:00'), 'time on 1970-01-01 (Europe/Berlin)')
    """
    first, last = int(low), int(high)
    step, text = _step(last - first, unit)
    offset = _offset(first, unit, zone)
    begin = -(-(first + offset) // step) * step - offset
    ticks = list(range(begin, last + 1, step))
    begins, ends = instant_text(first, unit, zone), instant_text(last, unit, zone)
    days, seconds = text.endswith("d"), text.endswith("s")
    same = begins[:10] == ends[:10]
    where = f" ({zone})" if zone else ""
    written = [(tick, instant_text(tick, unit, zone)) for tick in ticks]
    if days:
        return Axis(low, high, [(tick, own[:10]) for tick, own in written], f"{label}{where}")
    end = None if re.search(r"[mun]s$", text) else 19 if seconds else 16
    shown = [(tick, re.sub(r"[+-]\d\d:\d\d$", "", own[11:])[: end and end - 11])
             for tick, own in written]  # fmt: skip
    day = f" on {begins[:10]}" if same else f" from {begins[:10]} to {ends[:10]}"
    return Axis(low, high, shown, f"{label}{day}{where}")


def _step(ticks: int, unit: str) -> tuple[int, str]:
    """Return the distance of an axis's ticks that a clock has, in ticks of time and as text."""
    sizes = []
    for text in _STEPS:
        try:
            size = parse_ticks(text, unit, "{}")
        except ValueError:  # shorter than a tick
            continue
        sizes.append((size, text))
    return next((own for own in sizes if own[0] * MOST >= ticks), sizes[-1])


def _offset(tick: int, unit: str, zone: str | None) -> int:
    """Return how far a time zone is ahead, in ticks."""
    found = re.search(r"([+-])(\d\d):(\d\d)$", instant_text(tick, unit, zone))
    if found is None or unit == "day":
        return 0
    ahead = parse_ticks(f"{60 * int(found[2]) + int(found[3])}min", unit, "{}")
    return ahead if found[1] == "+" else -ahead
