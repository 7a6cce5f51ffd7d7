"""The first pass over both archives: its tasks, other engines' ways, and what all splits found.

`FirstPass` is the seam to engines whose own operators read, filter, partition and sort. They hand
rows to `engine.lanes.split.Splitting` as the tasks do, so that values, faults, lanes and codes are
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from engine.archives.normalise import BadRows, bad_rows_error
from engine.archives.roles import Roles
from engine.archives.source import Archive
from engine.archives.ticks import FAULTS
from engine.lanes.manifest import StreamSummary
from engine.lanes.placing import Group
from engine.lanes.runs import PlacedRun, Run
from engine.lanes.split import MAX_LANES, SPLIT_ROWS, Plan, SplitResult, too_many_lanes
from engine.lanes.split_tasks import FileRows
from engine.lanes.write import in_order
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, Progress
from engine.runtime.jit import Ints
from engine.runtime.storage.uris import Place
from engine.runtime.streams import LEFT, RIGHT
from engine.runtime.work import Bar, doing, listening

_BOTH = (LEFT, RIGHT)


@dataclass(frozen=True)
class Splits:
    """Results of splits, in the order of the archives' rows or of their own."""

    results: tuple[SplitResult, ...]
    lanes: int
    """A group."""
    grouped: bool
    """Whether there are partition columns."""

    @cached_property
    def groups(self) -> list[Group]:
        """All groups, ascending.

        Raises
        ------
        SpecError
            If they make too many lanes.
        """
        found = {group for side in _BOTH for run in self.runs_of(side) for group in run.groups}
        groups = sorted(found) if self.grouped else [()]
        if len(groups) * self.lanes > MAX_LANES:
            raise SpecError(too_many_lanes(str(len(groups)), self.lanes))
        return groups

    @cached_property
    def placed(self) -> tuple[tuple[PlacedRun, ...], tuple[PlacedRun, ...]]:
        """Every side's runs with their groups' places among all."""
        left, right = (
            tuple(
                PlacedRun(run.path, tuple(self._places[group] for group in run.groups))
                for run in self.runs_of(side)
            )
            for side in _BOTH
        )
        return left, right

    @cached_property
    def rows(self) -> Ints:
        """The rows of each side and lane, (2, lanes) int64."""
        rows = np.zeros((2, len(self.groups), self.lanes), np.int64)
        for side in _BOTH:
            for run in self.runs_of(side):
                at = [self._places[group] for group in run.groups]
                rows[side, at] += run.lane_rows.reshape(-1, self.lanes)
        return rows.reshape(2, -1)

    @property
    def collision(self) -> bool:
        """Whether two keys of a run share a code."""
        return any(result.collision for result in self.results)

    def runs_of(self, side: int) -> list[Run]:
        """Return the runs of one side."""
        return [run for result in self._of(side) for run in result.runs]

    def rejected_files(self, side: int) -> tuple[str, ...]:
        """Return where rejected rows of one side are."""
        return tuple(file for result in self._of(side) for file in result.rejected_files)

    def summary(self, side: int, on: tuple[str, ...]) -> StreamSummary:
        """Return what one side comes to, joined on some columns."""
        own, runs = self._of(side), self.runs_of(side)
        return StreamSummary(
            rows=sum(result.rows for result in own),
            joined=sum(int(run.lane_rows.sum()) for run in runs),
            null_keys=sum(result.null_keys for result in own),
            rejected=sum(result.rejected for result in own),
            sorted=in_order(runs),
            first_ts=min((run.low for run in runs), default=None),
            last_ts=max((run.high for run in runs), default=None),
            on=on,
        )

    @cached_property
    def _places(self) -> dict[Group, int]:
        return {group: i for i, group in enumerate(self.groups)}

    def _of(self, side: int) -> list[SplitResult]:
        return [result for result in self.results if result.side == side]


def check_faults(
    archives: tuple[Archive, Archive],
    roles: tuple[Roles, Roles],
    results: Iterable[SplitResult],
    *,
    quarantine: bool,
) -> None:
    """Raise an error that names file, column, fault, count and first rows of all bad rows.

    By side, file and fault, however the work was cut; `results` are in the order of the archives'
    rows. Rows are counted from 0 within their file.
    """
    if quarantine:
        return
    totals: dict[tuple[int, str, int], int] = {}
    rows: dict[tuple[int, str, int], list[int]] = {}
    cells: dict[tuple[int, str, int], str] = {}
    for result in results:
        for fault in result.faults:
            at = (result.side, result.origin, fault.fault)
            totals[at] = totals.get(at, 0) + fault.total
            cells.setdefault(at, fault.cell)
            rows.setdefault(at, []).extend(row - result.file_first for row in fault.rows)
    if not totals:
        return
    found = []
    places = [{file.path: i for i, file in enumerate(archive.files)} for archive in archives]
    for side, origin, fault_ in sorted(totals, key=lambda at: (at[0], places[at[0]][at[1]], at[2])):
        total = totals[side, origin, fault_]
        column = roles[side].time if FAULTS[fault_].role == "time" else roles[side].importance
        name = archives[side].files[places[side][origin]].name
        at = side, origin, fault_
        told = FAULTS[fault_].words, total, tuple(rows[at]), cells[at], archives[side].called
        found.append(BadRows(name, str(column), *told))
    raise bad_rows_error(found)


class Source(NamedTuple):
    """A Parquet file to split: the archive's own, or spooled from its text."""

    path: str
    origin: str


class FirstPass(Protocol):
    """A way to split archives."""

    def split(
        self, plan: Plan, sources: Sequence[Source], folder: Place
    ) -> list[SplitResult] | None:
        """Split the files of one side.

        Parameters
        ----------
        sources : sequence of Source
            In the order of the archive's files.
        folder : Path or Uri
            Where runs go.

        Returns
        -------
        list of SplitResult or None
            Faults and rejected rows are in the order of the archive's rows, as those of tasks. None
            where tasks must do it; the user has been told why.
        """
        ...


@runtime_checkable
class OffersFirstPass(Protocol):
    """An executor that may have one."""

    def first_pass(self) -> FirstPass | None:
        """Return one for a single preparation, None where there is none."""
        ...


def first_pass_of(executor: Executor) -> FirstPass | None:
    """Return the executor's own first pass, None where its tasks make it."""
    return executor.first_pass() if isinstance(executor, OffersFirstPass) else None


_LANES_A_TASK = 512
T = TypeVar("T")
R = TypeVar("R")


class Steps:
    """Runs the steps of a preparation and reports progress."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self._executor = executor
        self._progress = progress

    def run(
        self,
        stage: str,
        function: Callable[[T], R],
        tasks: Sequence[T],
        rows: Sequence[int] | None = None,
    ) -> Iterator[R]:
        """Yield the results of the tasks, in order; they tell of `rows` as they go through them."""
        if not tasks:
            return
        sizes = [0] * len(tasks) if rows is None else rows
        bar = Bar(self._progress, stage, len(tasks), sum(sizes))
        with doing(stage):
            results = self._executor.map(function, tasks)
        with listening(bar.told):
            for size, result in zip(sizes, results, strict=True):
                bar.ended(size)
                yield result

    def single(self, stage: str, work: Callable[[], R]) -> R:
        """Return the result of a step that is no tasks."""
        self._progress(stage, 0, 1)
        with doing(stage):
            found = work()
        self._progress(stage, 1, 1)
        return found


_SMALL_ROWS = 131_072
_MOST_FILES = 256


def row_group_runs(sizes: Iterable[int], rows: int) -> Iterator[tuple[int, ...]]:
    """Yield runs of neighbouring row groups of about `rows` rows."""
    return _runs(enumerate(sizes), rows)


def small_together(parts: Iterable[FileRows], rows: int) -> Iterator[tuple[FileRows, ...]]:
    """Yield parts that follow each other, many small files at once, of `rows` rows at most."""
    known = list(parts)
    sizes = ((at, part.rows) for at, part in enumerate(known))
    for run in _runs(sizes, min(rows, _SMALL_ROWS), _MOST_FILES):
        yield tuple(known[at] for at in run)


def lane_ranges(rows: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield the lanes that have rows, as many a task as together have about a split's rows."""
    sizes = ((lane, int(size)) for lane, size in enumerate(rows) if size)
    return _runs(sizes, SPLIT_ROWS, _LANES_A_TASK)


def _runs(
    sizes: Iterable[tuple[int, int]], rows: int, most: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield runs of numbers whose sizes come to `rows` or less, `most` at most in each."""
    chosen: list[int] = []
    total = 0
    for number, size in sizes:
        if chosen and (total + size > rows or len(chosen) == most):
            yield tuple(chosen)
            chosen, total = [], 0
        chosen.append(number)
        total += size
    if chosen:
        yield tuple(chosen)
