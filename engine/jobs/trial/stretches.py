"""The stretches of a trial: parts of an archive's time, drawn with probability by their work.

Where windows are too long, parts of its keys stand for them: `engine.jobs.trial.by_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.frame import JobLanes
from engine.jobs.trial.lead_in import LEADS
from engine.lanes.reader import LaneFiles, streamed
from engine.lanes.stored import Stored, Ticks
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Floats, Ints

STAGE = "trial"
DRAWS = 8
"""Stretches drawn for the first round, at least, if that leaves candidates with every memory."""
BODIES = (4, 2, 1)
"""Windows that a stretch counts: the first of these that leaves enough draws."""
ROWS = 1_500
"""Tuples that a stretch counts on average, at least: each has a fixed cost too."""
MOST_ROWS, PART, MANY = 10_000, 1_000, 32
"""Of long archives it is one in `PART` of their tuples, but at most so many, and no more than what
leaves `MANY` draws."""
FEWEST = 2_000
"""Tuples that a replay counts as, at least: what it takes to begin and end one."""


@dataclass(frozen=True)
class TimesTask:
    """A lane whose tuples are to be counted by time."""

    files: LaneFiles
    edges: tuple[int, ...]
    """First tick of every block, and the tick after the last."""


def rows_by_time(task: TimesTask) -> NDArray[np.int64]:
    """Return the tuples of left and right in each block, (2, blocks) int64."""
    edges = np.array(task.edges, np.int64)
    return np.stack([_counted(side, edges) for side in (task.files.left, task.files.right)])


def _counted(stored: Stored | None, edges: Ints) -> Ints:
    found = np.zeros(edges.size - 1, np.int64)
    if stored is not None:
        for batch in streamed(stored, ("_ts",)):
            found += np.diff(np.searchsorted(batch.ts, edges))
    return found


class Keys(NamedTuple):
    """A part of a lane's keys, by hash."""

    part: int
    """From 0 on."""
    parts: int


class Stretch(NamedTuple):
    """A part of a lane's time or keys whose outputs are counted."""

    lane: int
    """Its place among those of the job."""
    ticks: Ticks
    """First and last tick that count."""
    leads: tuple[int, int]
    """First tick that is replayed, by `LEADS`."""
    rows: tuple[int, int]
    """Tuples replayed, lead-in included, likewise."""
    counted: int
    """Tuples that arrive in `ticks`."""
    work: float
    """Its share of the work of all stretches."""
    keys: Keys | None = None
    """The part of the keys that it is."""

    @property
    def costs(self) -> tuple[int, int]:
        """Tuples that its replay counts as, by `LEADS`."""
        return cost_of(self.rows[0]), cost_of(self.rows[1])


def cost_of(rows: int) -> int:
    """Return the tuples that a replay of so many counts as."""
    return max(FEWEST, rows)


class Blocks(NamedTuple):
    """Equal blocks of time, of which every lane has one stretch each."""

    edges: Ints
    """First tick of every block, and the tick after the last, (blocks + 1,) int64."""
    windows: tuple[int, int]


def blocks_of(span: Ticks, windows: tuple[int, int], length: int) -> Blocks:
    """Return blocks of so many ticks, the last one up to twice as long.

    Examples
    --------
    >>> blocks_of((0, 10), (3, 2), 4).edges.tolist(), blocks_of((5, 6), (1, 1), 9).edges.tolist()
    ([0, 4, 11], [5, 7])
    """
    first, last = span
    number = max(1, (last - first + 1) // length)
    edges = first + length * np.arange(number + 1, dtype=np.int64)
    edges[-1] = last + 1
    return Blocks(edges, windows)


def stretches_of(
    blocks: Blocks, counts: Sequence[NDArray[np.int64]], start_ts: int | None
) -> list[Stretch]:
    """Return the stretches of all lanes that have tuples and count.

    Parameters
    ----------
    counts : sequence of (2, blocks) int64
        Of each lane, as `rows_by_time` finds them.
    start_ts : int or None
        Outputs before it do not count.

    Notes
    -----
    The work of a stretch is the mean of two shares: of its tuples, and of the pairs that its
    tuples make with those of the other side's window. Outputs of bursts are more like pairs; where
    only few pairs match, tuples keep every stretch likely enough to be drawn.
    """
    edges, lifetime = blocks.edges, max(blocks.windows) + 1
    found = []
    works = [_work(blocks, own) for own in counts]
    tuples = sum(float(rows.sum()) for rows, _ in works)
    pairs = sum(float(own.sum()) for _, own in works)
    for lane, (own, (rows, paired)) in enumerate(zip(counts, works, strict=True)):
        total = np.concatenate([[0], np.cumsum(own.sum(axis=0))])
        for i in np.flatnonzero(rows).tolist():
            first, last = int(edges[i]), int(edges[i + 1]) - 1
            if start_ts is not None and last < start_ts:
                continue
            leads = [max(int(edges[0]), first - windows * lifetime) for windows in LEADS]
            replayed = [round(float(total[i + 1] - np.interp(at, edges, total))) for at in leads]
            share = float(rows[i]) / tuples
            work = (share + float(paired[i]) / pairs) / 2 if pairs else share
            begin = first if start_ts is None else max(first, start_ts)
            counted = int(rows[i])
            found.append(
                Stretch(
                    lane, (begin, last), (leads[0], leads[1]), (replayed[0], replayed[1]), counted,
                    work,
                )
            )  # fmt: skip
    whole = sum(one.work for one in found)
    return [one._replace(work=one.work / whole) for one in found]


def _work(blocks: Blocks, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the tuples of each block, and the pairs that they make."""
    edges = blocks.edges.astype(np.float64)
    held = []
    for own, window in zip(counts, blocks.windows, strict=True):
        total = np.concatenate([[0.0], np.cumsum(own)])
        middle = (edges[1:] + edges[:-1]) / 2
        held.append(np.interp(middle, edges, total) - np.interp(middle - window, edges, total))
    left, right = counts.astype(np.float64)
    return left + right, left * held[1] + right * held[0]


def drawn(stretches: Sequence[Stretch], number: int, start: float, more: int = 1) -> list[int]:
    """Return the stretches drawn systematically, with probability by their work.

    Parameters
    ----------
    number : int
        Draws, equally far apart in the work of all stretches one after the other.
    start : float
        Of the first, 0 to 1: uniform.
    more : int
        How many times as many draws, those without it among them.

    Returns
    -------
    list of int
        Place of the stretch that each draw meets, ascending; one with much work more than once.

    Examples
    --------
    >>> some = [
    ...     Stretch(0, (i, i), (0, 0), (1, 1), 1, work) for i, work in enumerate([0.1, 0.6, 0.3])
    ... ]
    >>> drawn(some, 2, 0.5), drawn(some, 2, 0.5, 2)
    ([1, 2], [0, 1, 1, 2])
    """
    edges = np.cumsum([one.work for one in stretches])
    points = np.sort((start + np.arange(more * number) / more) / number % 1.0)
    at = np.searchsorted(edges, points, "right")
    return np.minimum(at, len(stretches) - 1).tolist()  # type: ignore[no-any-return]


def affordable(
    lanes: JobLanes,
    exact: ReplaySettings,
    weights: tuple[int, int],
    tuples: float,
    groups: Sequence[Sequence[int]] | None = None,
) -> tuple[list[Stretch], int]:
    """Return the stretches of lanes to draw from, and how many draws can be afforded.

    Parameters
    ----------
    lanes : JobLanes
        They have tuples.
    exact : ReplaySettings
        Windows, and the first tick that counts.
    weights : (int, int)
        Replays of every stretch, by `LEADS`.
    tuples : float
        Replayed in all draws together, on average.
    groups : sequence of sequence of int, optional
        Lanes that have their stretches together, whose places stand for the lanes'; by default
        each has its own.
    """
    span = lanes.prepared.span
    assert span is not None  # noqa: S101 - they have tuples
    rows = sum(lanes.rows)
    many = int(tuples / (MANY * max(1, sum(weights))))
    counted = max(ROWS, min(MOST_ROWS, rows // PART, many))
    least = -(-counted * (span[1] - span[0] + 1) // rows)
    for body in BODIES:
        length = max(least, body * (max(exact.windows) + 1))
        blocks = blocks_of(span, exact.windows, length)
        edges = tuple(blocks.edges.tolist())
        tasks = [TimesTask(files, edges) for files in lanes.files]
        counts = lanes.stages.mapped(STAGE, rows_by_time, tasks, lanes.rows)
        if groups is not None:
            counts = [np.sum([counts[i] for i in own], axis=0) for own in groups]
        stretches = stretches_of(blocks, counts, exact.start_ts)
        mean = sum(
            one.work * own * cost
            for one in stretches
            for own, cost in zip(weights, one.costs, strict=True)
        )
        number = int(tuples / max(1.0, mean))
        if number >= DRAWS or length == least:
            break
    return stretches, number
