"""One line a cell: what its lanes came to together, as rows and as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from engine.jobs.sweep.bounds import Best, Place
from engine.jobs.sweep.cells import CellResult, Exact
from engine.options.cells import Point
from engine.policies import policy_or_sample
from engine.replay.settings import ReplaySettings
from engine.report.envelope import plain_parameters
from engine.report.losses import importance_share, share


class Row(NamedTuple):
    """A cell of the grid and what it came to on all lanes."""

    cell: int
    policy: str
    parameters: str
    """JSON of all parameters of the policy."""
    memory: str
    """As asked: tuples of both sides, or a percentage."""
    split: str
    """Of the memory over both sides."""
    memory_left: int
    memory_right: int
    """`memory_left`, `memory_right`: Tuples allowed, added up over the lanes."""
    window_left: int
    window_right: int
    """`window_left`, `window_right`: W in ticks."""
    seed: int | None
    """None where the policy draws nothing."""
    estimator: str | None
    """None where the policy counts no matches."""
    lanes: int
    """Hash lanes of each partition group."""
    probe: str
    outputs: int
    importance: float
    """`outputs`, `importance`: Of the cell."""
    exact_outputs: int
    exact_importance: float
    """`exact_outputs`, `exact_importance`: Of the exact join."""
    recall: float
    importance_recall: float
    best_lower: float | None
    best_upper: float | None
    """`best_lower`, `best_upper`: Bounds of the best possible importance within this memory, where
    they were asked for and the policy keeps to it."""
    share_of_best: float | None
    """Importance over `best_upper`: the cell reaches at least this much of the best possible."""
    best_any_lower: float | None
    best_any_upper: float | None
    share_of_best_any: float | None
    """`best_any_lower`, `best_any_upper`, `share_of_best_any`: The same of this memory however it
    is split over the sides, at any instant."""
    peak_left: int
    peak_right: int
    peak_memory: int
    """`peak_left`, `peak_right`, `peak_memory`: Most tuples held at once, added up over the lanes;
    the last of both sides: of one memory at once, of two their peaks added up."""
    seconds: float
    """Of one core, in the cell's own replays."""
    tuples_per_second: float
    """Tuples of both streams that took part, over those seconds."""
    recall_low: float | None = None
    recall_high: float | None = None
    importance_recall_low: float | None = None
    importance_recall_high: float | None = None
    outputs_low: float | None = None
    outputs_high: float | None = None
    importance_low: float | None = None
    importance_high: float | None = None
    """`recall_low` to `importance_high`: Intervals of what was estimated; None where nothing was,
    or there is none."""
    no_interval: str | None = None
    """Why there is none."""
    stretches: int | None = None
    """By which the cell was estimated; 0 where it was replayed after all, None where that was not
    asked for."""

    @property
    def tuples(self) -> int:
        """Tuples allowed, both sides."""
        return self.memory_left + self.memory_right


_TEXT = {"policy", "parameters", "memory", "split", "estimator", "probe", "no_interval"}
INTERVALS = tuple(
    f"{measure}_{end}"
    for measure in ("recall", "importance_recall", "outputs", "importance")
    for end in ("low", "high")
)
_REAL = {
    "importance", "exact_importance", "recall", "importance_recall", "best_lower", "best_upper",
    "share_of_best", "best_any_lower", "best_any_upper", "share_of_best_any", "seconds",
    "tuples_per_second", *INTERVALS,
}  # fmt: skip
WITH_ESTIMATES = pa.schema(
    [
        (name, pa.string() if name in _TEXT else pa.float64() if name in _REAL else pa.int64())
        for name in Row._fields
    ]
)
ESTIMATES = (*INTERVALS, "no_interval", "stretches")
SCHEMA = pa.schema([one for one in WITH_ESTIMATES if one.name not in ESTIMATES])
"""Of a sweep that is not estimated."""


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Return the rows as a table, with the columns of estimates where there are any."""
    estimated = any(row.stretches is not None for row in rows)
    schema = WITH_ESTIMATES if estimated else SCHEMA
    columns = [pa.array([getattr(row, one.name) for row in rows], one.type) for one in schema]
    return pa.table(columns, schema)


@dataclass
class Total:
    """A cell's results, lane by lane."""

    left: int = 0
    right: int = 0
    results: list[CellResult] = field(default_factory=list)

    @property
    def importance(self) -> float:
        """Of all lanes."""
        return math.fsum(result.importance for result in self.results)

    def allow(self, budget: tuple[int, int]) -> None:
        """Add a lane's budget."""
        self.left += budget[0]
        self.right += budget[1]


def rows_of(
    points: Sequence[Point],
    settings: Mapping[int, ReplaySettings],
    totals: Mapping[int, Total],
    exact: Mapping[int, Sequence[Exact]],
    joined: int,
    best: Mapping[Place, Best],
    places: Mapping[int, Place],
) -> list[Row]:
    """Return a row a point, computed as `engine.jobs.replay.report.build_report` does."""
    whole = {
        window: Exact(sum(one.outputs for one in found), math.fsum(one.importance for one in found))
        for window, found in exact.items()
    }
    found = _reached(points, totals, best, places)
    return [
        _row(
            point, settings[point.number], totals[point.number],
            whole.get(point.window, Exact(0, 0.0)), joined,
            None if _unlimited(point) else found.get(places[point.number]),
        )
        for point in points
    ]  # fmt: skip


def _unlimited(point: Point) -> bool:
    """Tell whether a cell may hold more than its memory, so that no bound of that holds for it."""
    return policy_or_sample(point.policy).unlimited


def _reached(
    points: Sequence[Point],
    totals: Mapping[int, Total],
    best: Mapping[Place, Best],
    places: Mapping[int, Place],
) -> dict[Place, Best]:
    """Return the bounds, those from below no less than what a cell has reached."""
    found = dict(best)
    limited = {point.number for point in points if not _unlimited(point)}
    for number, place in places.items():
        if place in found and number in limited:
            found[place] = found[place].reached(totals[number].importance)
    return found


def _row(
    point: Point,
    settings: ReplaySettings,
    total: Total,
    exact: Exact,
    joined: int,
    best: Best | None,
) -> Row:
    outputs = sum(result.outputs for result in total.results)
    importance = total.importance
    peaks = [sum(result.peaks[side] for result in total.results) for side in (0, 1)]
    seconds = math.fsum(result.seconds for result in total.results)
    return Row(
        cell=point.number,
        policy=point.policy,
        parameters=json.dumps(plain_parameters(settings.parameters)),
        memory=str(point.memory),
        split=str(point.split),
        memory_left=total.left,
        memory_right=total.right,
        window_left=settings.window_left,
        window_right=settings.window_right,
        seed=point.seed,
        estimator=point.estimator,
        lanes=point.lanes,
        probe=settings.probe,
        outputs=outputs,
        importance=importance,
        exact_outputs=exact.outputs,
        exact_importance=exact.importance,
        recall=share(outputs, exact.outputs),
        importance_recall=importance_share(outputs, importance, *exact),
        best_lower=None if best is None else best.lower,
        best_upper=None if best is None else best.upper,
        share_of_best=None if best is None else min(1.0, share(importance, best.upper)),
        best_any_lower=None if best is None else best.any_lower,
        best_any_upper=None if best is None else best.any_upper,
        share_of_best_any=None if best is None else min(1.0, share(importance, best.any_upper)),
        peak_left=peaks[0],
        peak_right=peaks[1],
        peak_memory=sum(result.peak for result in total.results),
        seconds=seconds,
        tuples_per_second=joined / seconds if seconds else 0.0,
    )


def rows_in(table: pa.Table) -> list[Row]:
    """Return the rows of a table made by `table_of`."""
    return [Row(**line) for line in table.to_pylist()]
