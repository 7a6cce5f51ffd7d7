"""One lane under some cells as a task: a pure function, run here or by a Spark worker.

The exact join within each pair of windows, which all cells of those windows share, is counted from
the same batches.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.key_links import KeyLinks, no_key_links
from engine.jobs.compile_ahead import compile_ahead
from engine.jobs.sweep.broadcast_pool import BroadcastPool
from engine.jobs.sweep.cells import Cell, CellResult, Exact, room_for, within
from engine.jobs.sweep.exact_counter import ExactCounter, count_exact, longest_of
from engine.jobs.sweep.on_gpu import replay_cells_on_gpu
from engine.jobs.sweep.shared_batches import Draws, Shared, SharedBatches, Wants
from engine.lanes.reader import LaneFiles
from engine.policies import Structure, age
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.device_choice import ASKED_FOR_CPU, ON_GPU, Wanted, attempt
from engine.runtime.host import half_of_memory
from engine.runtime.streams import StreamBatch
from engine.runtime.work import as_here
from engine.sampling.sizes import priorities
from gpu_kernels.devices import Choice

_COMPILED_FOR: set[tuple[Hashable, ...]] = set()
"""What has been compiled for in this process."""


@dataclass(frozen=True)
class SweepTask:
    """A lane and the cells to replay it under."""

    files: LaneFiles
    cells: tuple[Cell, ...]
    exact: tuple[ReplaySettings, ...]
    """Windows under which to count the exact join."""
    threads: int = 1
    """Cells replayed at once."""
    beside: int = 1
    """Such tasks at once, which share this machine's memory."""
    wanted: Wanted = ASKED_FOR_CPU
    """The device that replays the cells; the exact joins are counted here."""

    @property
    def steps(self) -> int:
        """Steps of loops that the cells' replays take, at least."""
        return self.files.rows * sum(cell.settings.steps for cell in self.cells)


class SweepOutcome(NamedTuple):
    """What the cells of a task came to: one line a cell, and one a pair of windows."""

    lane: int
    cells: list[CellResult]
    exact: dict[tuple[int, int], Exact]
    """By windows."""
    device: Choice
    """Where the cells were replayed, and why there."""


def sweep_lane(task: SweepTask) -> SweepOutcome:
    """Replay a lane under the cells of a task and count its exact joins.

    The lane is read once, or as often as the cells' memories need to fit into that of the machine.
    With a GPU it is read once for each device, at the same time.

    Raises
    ------
    DeviceError
        If the GPU was demanded and could not.
    """
    counters = [ExactCounter(settings) for settings in task.exact]
    if task.wanted.choice.device != ON_GPU:
        results, device = _on_cpu(task, counters), task.wanted.choice
    else:
        with ThreadPoolExecutor(1, **as_here()) as beside:
            counted = beside.submit(count_exact, task.files, counters, task.threads)
            done, device = attempt(
                task.wanted, lambda gpu: replay_cells_on_gpu(task.files, task.cells, gpu)
            )
            results = _on_cpu(task, ()) if done is None else done
            counted.result()
    found = {counter.windows: counter.found for counter in counters}
    return SweepOutcome(task.files.lane, results, found, device)


def _on_cpu(task: SweepTask, counters: Sequence[ExactCounter]) -> list[CellResult]:
    results: list[CellResult] = []
    room = min(half_of_memory() // task.beside, room_for(task.cells, task.beside))
    with COMPILED.expecting(task.steps):
        for i, run in enumerate(within(task.cells, room)):
            results += replay_cells(task.files, run, task.threads, () if i else counters)
    return results


def replay_cells(
    files: LaneFiles,
    cells: Sequence[Cell],
    threads: int,
    counters: Sequence[ExactCounter] = (),
) -> list[CellResult]:
    """Replay a lane under every cell, reading it once.

    Parameters
    ----------
    threads : int
        Cells replayed at once.
    counters : sequence of ExactCounter
        Exact counts to be made from the same batches.

    Returns
    -------
    list of CellResult
        In the order of the cells; each equal to the cell's own replay, whatever the others are.

    Notes
    -----
    Memory: the budgets and keys of all cells, the windows, and `MOST_BATCHES` batches.
    """
    if not cells and not counters:
        return []
    batches = SharedBatches(files, _wants(cells, counters))
    compile_for(cells, through_facts=batches.key_links is not None, counts=bool(counters))
    for counter in counters:
        counter.through(batches.key_links)
    running = [_Running(cell, batches.key_links) for cell in cells]
    states = [*(counter.take for counter in counters), *(one.take for one in running)]
    with BroadcastPool(states, threads) as pool:
        for batch in batches:
            pool.publish(batch)
    return [one.result() for one in running]


def compile_for(cells: Sequence[Cell], *, through_facts: bool, counts: bool) -> None:
    """Have the kernels of cells compiled before any cell's time is taken, once in a process.

    Where little work is expected they may be interpreted, and are asked for again.
    """
    kinds = {_kind(own): own._replace(budget=(0, 0)) for own in cells}
    terms = frozenset({own.settings.terms for own in cells} - {None})
    asked = frozenset(kinds), terms, through_facts, counts
    compiles = COMPILED.is_all
    if asked in _COMPILED_FOR:
        return
    key_links = (no_key_links(), no_key_links()) if through_facts else None
    replays = [_replay_of(own, key_links) for own in kinds.values()]
    known = [] if through_facts else [own for own in terms if own is not None]
    compile_ahead(replays, known, counts=counts and not through_facts)
    if compiles and COMPILED.is_all:
        _COMPILED_FOR.add(asked)


def _kind(cell: Cell) -> tuple[Structure, bool] | None:
    """Return what kernel a cell is replayed by: that of its kind, or the one for all (None)."""
    own = cell.settings
    return None if cell.spares else (own.structure, own.pooled)


def _replay_of(cell: Cell, key_links: tuple[KeyLinks, KeyLinks] | None) -> LaneReplay:
    return LaneReplay(
        cell.settings, cell.profile, cell.budget, curves=age.as_arrays(cell.curves), emit=False,
        bin_edges=np.array(cell.parts, np.int64), key_links=key_links, spares=cell.spares,
    )  # fmt: skip


class _Running:
    """One cell on its way through a lane."""

    def __init__(self, cell: Cell, key_links: tuple[KeyLinks, KeyLinks] | None) -> None:
        self._cell = cell
        self._replay = _replay_of(cell, key_links)
        self._seconds = 0.0

    def take(self, batch: Shared) -> None:
        """Replay a batch."""
        settings = self._cell.settings
        ready = Ready(
            self._draws(batch),
            tuple(batch.windows[which] for which in _windows_of(self._cell)),
            None if settings.terms is None else batch.valued[settings.terms],
        )
        left, right = (batch.left, batch.left_ids), (batch.right, batch.right_ids)
        if self._cell.since is not None:
            ready, left, right = _since(self._cell.since, ready, left, right)
        begun = time.thread_time()
        if batch.renumbered is not None:
            self._replay.remap(batch.renumbered)
        for _ in self._replay.push(*left, *right, batch.keys, ready):
            raise AssertionError  # it counts only
        self._seconds += time.thread_time() - begun

    def _draws(self, batch: Shared) -> Draws | None:
        """Return the batch's uniforms, or the priorities that a sampling policy draws by them."""
        settings, sampling = self._cell.settings, self._cell.sampling
        if not settings.draws:
            return None
        draws = batch.draws[settings.purpose, settings.seed]
        if sampling is None:
            return draws
        left, right = (
            priorities(settings.the_policy, *of_side)
            for of_side in zip(batch.sizes[sampling.sizing], sampling.scales, draws, strict=True)
        )
        return left, right

    def result(self) -> CellResult:
        """Return what the cell came to."""
        replay = self._replay
        several = len(self._cell.parts) > 1
        parts = zip(replay.by_bin.tolist(), replay.importance_by_bin.tolist(), strict=True)
        return CellResult(
            self._cell.number,
            replay.outputs,
            replay.importance,
            replay.peaks,
            replay.peak,
            self._seconds,
            tuple(Exact(*own) for own in parts) if several else (),
        )


_Arriving = tuple[StreamBatch, NDArray[np.int32]]


def _since(
    tick: int, ready: Ready, left: _Arriving, right: _Arriving
) -> tuple[Ready, _Arriving, _Arriving]:
    """Return a batch without the tuples that arrive before a tick, where values are estimated."""
    assert ready.valued is not None  # noqa: S101 - else all is replayed
    at, end = (int(np.searchsorted(batch.ts, tick)) for batch, _ in (left, right))
    return (
        ready._replace(valued=ready.valued.after(at, end)),
        (left[0].after(at), left[1][at:]),
        (right[0].after(end), right[1][end:]),
    )


def _windows_of(cell: Cell) -> tuple[tuple[int, int], ...]:
    """Return the (side, W) that a cell's estimator counts in."""
    counts = cell.settings.estimator == "window" and cell.settings.counts
    return tuple(enumerate(cell.windows)) if counts else ()


def _wants(cells: Sequence[Cell], counters: Sequence[ExactCounter]) -> Wants:
    windows = [*(cell.windows for cell in cells), *(counter.windows for counter in counters)]
    return Wants(
        longest_of(windows),
        all(cell.settings.estimator != "history" for cell in cells),
        frozenset(
            (cell.settings.purpose, cell.settings.seed) for cell in cells if cell.settings.draws
        ),
        frozenset(which for cell in cells for which in _windows_of(cell)),
        frozenset(cell.settings.terms for cell in cells if cell.settings.terms is not None),
        frozenset(cell.sampling.sizing for cell in cells if cell.sampling is not None),
    )
