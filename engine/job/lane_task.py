"""One lane as a task: a pure function of a small description, run here or by a Spark worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.facts.index import FactSide
from engine.facts.links import Links
from engine.job.fact_keys import FactKeys
from engine.job.heartbeat import rows_done
from engine.job.keys import KeyLoss, LaneKeys
from engine.job.output import PartWriter, id_columns
from engine.job.payload import PayloadWindow
from engine.lanes.facts import FactFile
from engine.lanes.profile import profile_side
from engine.lanes.reader import LaneBatch, lane_batches
from engine.policies import age
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.replay.planned import Plan
from engine.replay.settings import LaneProfile, ReplaySettings, SideProfile
from engine.streams import StreamBatch
from gpu_kernels.devices import Choice

_EMPTY = SideProfile(0, 0, 0, 0, 0.0)


@dataclass(frozen=True)
class LaneFiles:
    """Where a lane lies, None for a side without rows, and what joins its sides if not equality."""

    lane: int
    left: Path | None
    right: Path | None
    facts: FactFile | None = None

    def links(self, windows: tuple[int, int] | None) -> Links | None:
        """Return what the lane's tuples join through the facts, None where there are none.

        Parameters
        ----------
        windows : (int, int) or None
            The longest of left and right; None where the history estimator counts.
        """
        if self.facts is None:
            return None
        return Links(self.facts.index(), (_arrivals(self.left), _arrivals(self.right)), windows)


@dataclass(frozen=True)
class ProfileTask:
    """One pass over a lane before its budget is known."""

    files: LaneFiles
    windows: tuple[int, int]


def profile_lane(task: ProfileTask) -> LaneProfile:
    """Return a lane's rows, peaks and mean importances."""
    files = task.files
    index = None if files.facts is None else files.facts.index()
    sides = []
    for side, (path, window) in enumerate(
        zip((files.left, files.right), task.windows, strict=True)
    ):
        until = None if index is None else _until(index.sides[side])
        sides.append(_EMPTY if path is None else profile_side(_streamed(path), window, until))
    return LaneProfile(*sides)


def _until(side: FactSide) -> Callable[[StreamBatch], NDArray[np.int64]]:
    return lambda batch: side.until(batch.ts, batch.key)


def _streamed(path: Path) -> Iterator[StreamBatch]:
    """Yield a lane file's tuples without their rows."""
    none = np.empty(0, np.int64)
    with pq.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(columns=["_ts", "_key", "_importance"]):
            ts, key, importance = (column.to_numpy() for column in batch.columns)
            yield StreamBatch(ts, none, key, importance)


def _arrivals(path: Path | None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if path is not None:
        yield from ((batch.ts, batch.key) for batch in _streamed(path))


@dataclass(frozen=True)
class ReplayTask:
    """A lane's replay.

    Attributes
    ----------
    files : LaneFiles
    settings : ReplaySettings
    profile : LaneProfile
    budget : tuple of int
    curves : tuple of tuple of float or None
        AGE's curves.
    age_buckets : int or None
        Count the ages of exact matches instead of replaying.
    bin_edges : tuple of int
        Left edges of the time bins.
    approximate : bool
        False: an exact join, which is its own result.
    out : Path or None
        Folder for the part of the dataset; None to count only.
    payload : bool
        Write the payload columns as well.
    """

    files: LaneFiles
    settings: ReplaySettings
    profile: LaneProfile
    budget: tuple[int, int]
    curves: tuple[tuple[float, ...] | None, tuple[float, ...] | None] = (None, None)
    age_buckets: int | None = None
    bin_edges: tuple[int, ...] = (0,)
    approximate: bool = True
    out: Path | None = None
    payload: bool = False


class Tally(NamedTuple):
    """Counted outputs and their importance, also by time bin."""

    outputs: int
    importance: float
    by_bin: NDArray[np.int64]
    importance_by_bin: NDArray[np.float64]


class LaneResult(NamedTuple):
    """What a lane's replay came to."""

    lane: int
    exact: Tally
    result: Tally
    peaks: tuple[int, int]
    exact_peaks: tuple[int, int]
    top: list[KeyLoss]
    keys_complete: bool
    part: str | None
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]
    seconds: float
    schema: pa.Schema | None
    estimator_keys: int
    device: Choice | None = None


def replay_lane(task: ReplayTask, plan: Plan | None = None) -> LaneResult:
    """Replay a lane within its budget beside the exact count, by its policy or by a plan.

    Memory is bounded by the windows, the budget and a batch, never by the lane.
    """
    begun = time.perf_counter()
    settings = task.settings
    edges = np.array(task.bin_edges, np.int64)
    history = settings.estimator == "history"
    windows = settings.window_left, settings.window_right
    links = task.files.links(None if history else windows)
    partners = None if links is None else links.partners
    exact = ExactStream(
        settings.window_left,
        settings.window_right,
        settings.combine,
        settings.start_ts,
        edges,
        task.age_buckets,
        partners,
    )
    emit = task.out is not None
    replay = None
    if task.age_buckets is None and (task.approximate or emit):
        replay = LaneReplay(
            settings,
            task.profile,
            task.budget,
            curves=age.as_arrays(task.curves),
            emit=emit,
            bin_edges=edges,
            plan=plan,
            partners=partners,
            facts=None if task.files.facts is None else task.files.facts.index(),
        )
    keys = (
        LaneKeys(exact, replay, forgets=not history) if links is None else FactKeys(links, replay)
    )
    part = _Part(task) if emit else None
    for batch in lane_batches(task.files.left, task.files.right, payload=task.payload):
        ids = keys.intern(batch.left, batch.right)
        exact.push(batch.left, ids[0], batch.right, ids[1], keys.outputs, keys.importance)
        if part is not None:
            part.arrive(batch)
        rows_done(batch.left.ts.size + batch.right.ts.size)
        if replay is not None:
            for out in replay.push(batch.left, ids[0], batch.right, ids[1], keys.size):
                if part is not None:
                    part.write(out)
    counted = Tally(exact.outputs, exact.importance, exact.outputs_by_bin, exact.importance_by_bin)
    result = counted
    if replay is not None and task.approximate:
        result = Tally(replay.outputs, replay.importance, replay.by_bin, replay.importance_by_bin)
    exact_peaks = task.profile.left.peak, task.profile.right.peak
    return LaneResult(
        task.files.lane,
        counted,
        result,
        exact_peaks if replay is None else replay.peaks,
        exact_peaks,
        keys.top() if task.approximate else [],
        keys.complete,
        None if part is None else part.close(),
        (exact.ages_left, exact.ages_right),
        time.perf_counter() - begun,
        None if part is None else part.schema,
        keys.size if settings.estimator == "history" else 0,
    )


class _Part:
    """A lane's output on its way to a file of this attempt's own."""

    def __init__(self, task: ReplayTask) -> None:
        assert task.out is not None  # noqa: S101 - only made where there is a folder
        self._name = f"part-{task.files.lane:05d}.{uuid.uuid4().hex[:8]}.parquet"
        self._writer = PartWriter(task.out / self._name)
        self._payload = task.payload
        self._windows = (
            PayloadWindow(task.settings.window_left),
            PayloadWindow(task.settings.window_right),
        )
        self._facts = None if task.files.facts is None else _Facts(task.files.facts, task.payload)
        self.schema: pa.Schema | None = None

    def arrive(self, batch: LaneBatch) -> None:
        """Keep the payload of arrivals."""
        if self._payload:
            for window, side, table in zip(
                self._windows,
                (batch.left, batch.right),
                (batch.left_payload, batch.right_payload),
                strict=True,
            ):
                window.push(side.ts, table)

    def write(self, out: Outputs) -> None:
        """Write output tuples, with the payload of both members."""
        table = id_columns(out)
        if self._facts is not None:
            table = table.add_column(2, "fact_row", pa.array(self._facts.rows[out.fact]))
        if self._payload:
            for window, seq in zip(self._windows, (out.left_seq, out.right_seq), strict=True):
                taken = window.take(seq)
                for name in taken.column_names:
                    table = table.append_column(name, taken.column(name))
            if self._facts is not None:
                taken = self._facts.payload.take(pa.array(out.fact))
                for name in taken.column_names:
                    table = table.append_column(name, taken.column(name))
        self.schema = table.schema
        self._writer.write(table)

    def close(self) -> str | None:
        """Finish the file and return its name, None if there was no output."""
        return self._name if self._writer.close() else None


class _Facts:
    """What is written of the facts that join outputs."""

    def __init__(self, file: FactFile, payload: bool) -> None:
        self.rows = file.index().facts.row
        self.payload = file.payload() if payload else pa.table({})
