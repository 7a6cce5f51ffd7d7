"""Plots of a report as data, which a page draws: lines over an axis, and bars by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from engine.report.envelope import instant

_NO_FRACTION = re.compile(r"\.\d+")

MOST = 400
"""Points of a line; of more, several are drawn as one."""
MOST_TOGETHER = 4_000
"""Points of all lines of a plot."""
FEWEST = 40

Values: TypeAlias = Sequence[float | None]


class Series(NamedTuple):
    """One line, or one bar of each name."""

    name: str
    values: Values
    """None where there is none."""
    low: Values = ()
    high: Values = ()
    """`low`, `high`: Of a band around it, if there is one."""
    shown: bool = True
    """Whether it is drawn before the reader asks for it."""

    def cut(self, take: Callable[[Values], Values]) -> Series:
        """Return the series with other values, those of the band too."""
        return self._replace(
            values=take(self.values), low=self.low and take(self.low),
            high=self.high and take(self.high),
        )  # fmt: skip


class Lines(NamedTuple):
    """Lines over one axis."""

    title: str
    x: str
    y: str
    """`x`, `y`: What the axes show, with their units."""
    xs: Sequence[float]
    """Of the points, ascending; of steps their edges, one more than values."""
    series: Sequence[Series]
    labels: Sequence[str] = ()
    """What stands for each value of x in a read-out."""
    steps: bool = False
    stacked: bool = False
    """Each series stands on those before it."""
    percent: bool = False
    """The axis of values ends at 100 at most."""
    log_x: bool = False
    log_y: bool = False
    clock: tuple[str, str | None] | None = None
    """Unit and time zone of `xs`, where they are points in time."""
    marks: Sequence[tuple[str, float]] = ()
    """Values at which a line goes across, by name."""

    @property
    def points(self) -> int:
        """Number of values of each series."""
        return len(self.xs) - self.steps

    def thinned(self) -> Lines:
        """Return a plot of few enough points: steps are joined to their mean, lines lose some.

        Examples
        --------
        >>> plot = Lines("", "", "", range(4001), [Series("a", [2.0] * 4000)], steps=True)
        >>> thin = plot.thinned()
        >>> thin.points, thin.xs[-1], set(thin.series[0].values)
        (400, 4000, {2.0})
        """
        most = min(MOST, max(FEWEST, MOST_TOGETHER // max(1, len(self.series))))
        if self.points <= most:
            return self
        size = -(-self.points // most)
        starts = range(0, self.points, size)
        if not self.steps:
            kept = sorted({*starts, self.points - 1})
            return self._replace(
                xs=[self.xs[i] for i in kept],
                labels=[self.labels[i] for i in kept] if self.labels else (),
                series=[own.cut(lambda values: [values[i] for i in kept]) for own in self.series],
            )
        labels = [
            f"{self.labels[i]} and {min(size, self.points - i) - 1:,} more, their mean"
            for i in (starts if self.labels else ())
        ]
        return self._replace(
            xs=[*(self.xs[i] for i in starts), self.xs[-1]],
            labels=labels,
            series=[
                own.cut(lambda values: [_mean(values[i : i + size]) for i in starts])
                for own in self.series
            ],
        )


class Bars(NamedTuple):
    """Bars by name, beside or behind each other."""

    title: str
    x: str
    """What the bars show, with its unit."""
    names: Sequence[str]
    series: Sequence[Series]
    stacked: bool = False
    marks: Sequence[Series] = ()
    """Values at which each name has a tick."""


Chart: TypeAlias = Lines | Bars


def _mean(values: Values) -> float | None:
    there = [own for own in values if own is not None]
    return sum(there) / len(there) if there else None


def clock_of(content: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Return the unit and the time zone of a report's times, None where they are plain ticks."""
    tick = content["window"]["tick"]
    return None if tick == "tick" else (tick, content["window"].get("zone"))


def time_label(content: Mapping[str, Any]) -> str:
    """Return what an axis of a report's times is called."""
    return "time (ticks)" if clock_of(content) is None else "time"


def spans_of(content: Mapping[str, Any], edges: Sequence[int]) -> list[str]:
    """Return each part of time as people write it, from its edges."""
    if content["window"]["tick"] == "tick":
        return [
            f"{begin:,} to {end - 1:,}"
            for begin, end in pairwise(edges)
        ]  # fmt: skip
    texts = [_NO_FRACTION.sub("", instant(content, own)) for own in edges]
    if len(set(texts)) < len(texts):
        texts = [instant(content, own) for own in edges]
    return [
        f"{begin} until {end.removeprefix(begin[:11])}" for begin, end in pairwise(texts)
    ]  # fmt: skip


def over_time(
    content: Mapping[str, Any],
    title: str,
    y: str,
    edges: Sequence[int],
    series: Sequence[Series],
    *,
    stacked: bool = False,
) -> Lines:
    """Return steps over parts of a report's time."""
    return Lines(
        title, time_label(content), y, edges, series, spans_of(content, edges), steps=True,
        stacked=stacked, clock=clock_of(content),
    )  # fmt: skip


def losses_over_time(content: Mapping[str, Any]) -> list[Chart]:
    """Return what was found and lost over time; of importance too where that is not 1 each."""
    spans = content.get("lost", {}).get("by_time", [])
    if not spans or not content["exact"]["outputs"]:
        return []
    edges = [*(own["from"] for own in spans), spans[-1]["to"] + 1]
    unweighted = content["exact"]["importance"] == content["exact"]["outputs"]
    charts: list[Chart] = []
    for measure in ["outputs"] if unweighted else ["importance", "outputs"]:
        lost = [own[f"lost_{measure}"] for own in spans]
        exact = [own[f"exact_{measure}"] for own in spans]
        found = [own - gone for own, gone in zip(exact, lost, strict=True)]
        series = [Series("found", found), Series("lost", lost)]
        title = f"Found and lost over time: {measure}"
        charts.append(
            over_time(content, title, f"{measure} of a span", edges, series, stacked=True)
        )
    return charts


def key_text(key: object) -> str:
    """Return a join attribute as text; one of several columns has commas between their values.

    Examples
    --------
    >>> key_text(["Texas", 3]), key_text("Texas")
    ('Texas, 3', 'Texas')
    """
    return ", ".join(map(str, key)) if isinstance(key, list | tuple) else str(key)


def losses_by_key(content: Mapping[str, Any]) -> list[Chart]:
    """Return what was found and lost of the keys that lost most."""
    keys = content.get("lost", {}).get("top_keys", [])
    if not keys:
        return []
    unweighted = content["exact"]["importance"] == content["exact"]["outputs"]
    none_weighs = not any(own["exact_importance"] for own in keys)
    measure = "outputs" if unweighted or none_weighs else "importance"
    found = [own[f"exact_{measure}"] - own[f"lost_{measure}"] for own in keys]
    return [
        Bars(
            f"Keys that lost most: {measure}", f"{measure} of the exact join",
            [key_text(own["key"]) for own in keys],
            [Series("found", found), Series("lost", [own[f"lost_{measure}"] for own in keys])],
            stacked=True,
        )
    ]  # fmt: skip


MOST_LANES = 20
"""Lanes with bars of their own: those with the most outputs of the exact join."""


def outputs_by_lane(content: Mapping[str, Any]) -> list[Chart]:
    """Return what the lanes of a multi-way join found, and lost if that is known."""
    lanes = content["lanes"]["by_lane"]
    if not lanes:
        return []
    known = "exact" in content
    most = sorted(lanes, key=lambda lane: -lane["exact_outputs" if known else "outputs"])
    most = most[:MOST_LANES]
    names = [key_text(lane["lane"]) for lane in most]
    series = [Series("found", [lane["outputs"] for lane in most])]
    if known:
        series.append(Series("lost", [lane["exact_outputs"] - lane["outputs"] for lane in most]))
    what = ", ".join(content["lanes"]["partition_by"]) or "hash lane"
    return [Bars(f"Outputs by {what}", "outputs", names, series, stacked=True)]


def memory_over_time(content: Mapping[str, Any]) -> list[Chart]:
    """Return the tuples that the exact join holds, and how many were allowed."""
    spans = content.get("exact_memory", {}).get("by_time", [])
    if not spans:
        return []
    edges = [*(own["from"] for own in spans), spans[-1]["to"] + 1]
    held = {side: [own[side] for own in spans] for side in ("left", "right")}
    allowed = content["memory"]
    if allowed["left"] is None and allowed["both"] is not None:  # one memory for both
        held["both"] = [sum(own) for own in zip(*held.values(), strict=True)]
        limits = {"both": allowed["both"]}
    else:
        limits = {side: allowed[side] for side in held if allowed[side] is not None}
    plot = over_time(
        content, "Memory that the exact join needs over time", "tuples at the end of a span", edges,
        [Series(name, values) for name, values in held.items()],
    )  # fmt: skip
    named: dict[int, list[str]] = {}
    for name, own in limits.items():
        named.setdefault(own, []).append(name)
    marks = [(f"{' and '.join(names)}: allowed", own) for own, names in named.items()]
    return [plot._replace(marks=marks)]


def memory(content: Mapping[str, Any]) -> list[Chart]:
    """Return the most tuples that each stream held, and how many it might hold."""
    peaks, allowed = content["peak_memory"], content["memory"]
    names = [name for name in peaks if name in content["rows"]]
    limits = [allowed.get(name) for name in names]
    total = next((name for name in ("total", "both") if name in peaks), None)
    if total is not None:
        together = allowed["split"] == "pooled" or content["policy"]["name"] == "plan"
        every = total if together else f"{total}, peaks added up"
        names, limits = [*names, every], [*limits, allowed.get(total)]
    marks = [Series("allowed", limits)] if any(own is not None for own in limits) else []
    held = [Series("most held at once", list(peaks.values()))]
    return [Bars("Memory", "tuples", names, held, marks=marks)]
