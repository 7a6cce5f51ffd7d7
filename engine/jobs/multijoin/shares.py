"""The parts that an exact join is cut into, a task each.

Every output is in one of them: joins are cut into slices of time, but those on equal attributes by
their hash into lanes where windows are long, as each lane reads all rows. An output belongs to the
slice that its latest tuple is in (P3 3; contract, section 1), and a slice reads a window's length
before it as well; a harvested join, which is not cut unless that is asked for, also the time in
which it learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.archives.normalise import normalise
from engine.archives.roles import JoinColumns, Roles
from engine.archives.rows import Choice, GroupTimes
from engine.archives.stretches import RowGroups, row_groups
from engine.jobs.multijoin.read import Share
from engine.jobs.streams import StreamSource, rows_of
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Windows
from engine.runtime.errors import NoStretchesError
from engine.runtime.executors import Executor
from engine.runtime.jit import FOREVER, Ints

_EVERY = 16
"""Of so many tuples the time of one is looked at, to cut time into slices."""
_LEAST_ROWS = 100_000
"""Rows that are worth a task."""
_REPEATED = 0.5
"""Of all tuples: if so many are read twice, joins on equal attributes are not cut into slices."""
HERE = 2_000_000
"""Tuples of a slice that this process joins, at least: they take some 200 MB meanwhile."""
_AGAIN = 0.1
"""Of all tuples: at most so many are read twice by slices that nobody asked for."""
_READ = 3
"""Times that such slices read a row, on average and at most: they read row groups whole."""
LESSONS = 10
"""Adaptation intervals before a slice of a harvested join."""


def shares_of(sample: Ints, windows: Windows, predicate: Predicate, number: int) -> list[Share]:
    """Return shares of about equally many tuples.

    Parameters
    ----------
    sample : (n,) int64
        Times of some tuples.
    windows : Windows
        A count-based one reaches back any time, over tuples of all attributes: there is one share.
    number : int
        Shares; there may be fewer slices where many tuples have one time.

    Examples
    --------
    >>> from engine.multiway.streams import windows_of
    >>> windows, near = windows_of([10, 5]), Predicate("band", ("v",), 1.0)
    >>> [share[1:3] for share in shares_of(np.arange(100), windows, near, 2)]
    [(-9223372036854775807, 50), (50, 9223372036854775807)]
    >>> shares_of(np.arange(100), windows_of([60, 5]), Predicate("equi", ("k",)), 2)[1].lanes
    ((1,),)
    """
    if number < 2 or sample.size == 0 or windows.by_rows.any():
        return [Share()]
    found = slices_of(sample, number)
    begins = [share.begin for share in found[1:]]
    if not predicate.transitive or (
        len(found) == number and _before(sample, begins, windows) < _REPEATED * sample.size
    ):
        return found
    return [Share(lane, lanes=((lane,),), hashed=number) for lane in range(number)]


def _before(sample: Ints, begins: Sequence[int], windows: Windows) -> int:
    """Return how many times are within the longest window before slices, of all slices together.

    Examples
    --------
    >>> from engine.multiway.streams import windows_of
    >>> _before(np.arange(100), [25, 50], windows_of([10, 5]))
    20
    """
    ordered, ends = np.sort(sample), np.array(begins, np.int64)
    low, high = (np.searchsorted(ordered, own) for own in (ends - windows.size.max(), ends))
    return int((high - low).sum())


def slices_of(sample: Ints, number: int, lead: int | None = None) -> list[Share]:
    """Return slices of time of about equally many tuples, with so many ticks before each.

    Examples
    --------
    >>> [share.begin for share in slices_of(np.arange(100), 4)][1:]
    [25, 50, 75]
    """
    ranks = (np.arange(1, number) * sample.size) // number
    cuts = sorted(set(np.sort(sample)[ranks].tolist())) if sample.size else []
    spans = pairwise([-FOREVER, *cuts, FOREVER])
    return [Share(at, begin, end, lead) for at, (begin, end) in enumerate(spans)]


def slices_here(
    sources: tuple[StreamSource, ...], unit: str, sample: Ints, windows: Windows,
    predicate: Predicate,
) -> tuple[list[Share], tuple[StreamSource, ...]]:  # fmt: skip
    """Return slices of time for the cores of this process; one share where slices would not pay.

    They are read side by side, and only what a few of them need is in memory. The archives must
    tell by their footers what is in a slice, and dense vectors use all cores as they are. The
    sources come with what is known of their files.

    Parameters
    ----------
    unit : str
        What a tick is.
    sample : (n,) int64
        Times of some tuples.
    """
    number = sum(file.rows or 0 for own in sources for file in own.archive.files) // HERE
    wanted = number > 1 and not (windows.by_rows.any() or predicate.dense)
    if not wanted or sample.size == 0 or any(own.table is not None for own in sources):
        return [Share()], sources
    try:
        groups = [row_groups(own.archive, own.roles.time, unit, (), ()) for own in sources]
    except NoStretchesError:
        return [Share()], sources
    found = slices_of(sample, number)
    again = _before(sample, [share.begin for share in found[1:]], windows) / sample.size
    if again > _AGAIN:
        found = slices_of(sample, max(1, int(number * _AGAIN / again)))
    rows = sum(int(own.rows.sum()) for own in groups)
    while len(found) > 1 and _read(groups, found, windows) > _READ * rows:
        found = slices_of(sample, len(found) // 2)
    return found, tuple(map(_with_files, sources, groups))


def _read(groups: Sequence[RowGroups], shares: Sequence[Share], windows: Windows) -> int:
    """Return how many rows slices read, of all streams: row groups are read whole."""
    cuts, total = np.array([share.begin for share in shares[1:]], np.int64), 0
    for own, window in zip(groups, windows.size.tolist(), strict=True):
        first = np.searchsorted(cuts, own.low, "right")
        last = np.searchsorted(cuts, own.high + window, "right")
        total += int((own.rows * (last - first + 1)).sum())
    return total


def _with_files(source: StreamSource, groups: RowGroups) -> StreamSource:
    first = np.flatnonzero(np.diff(groups.file, prepend=-1))
    if not first.size:
        return source
    times = zip(
        np.add.reduceat(groups.rows, first).tolist(),
        np.minimum.reduceat(groups.low, first).tolist(),
        np.maximum.reduceat(groups.high, first).tolist(),
        strict=True,
    )
    paths = (source.archive.files[at].path for at in groups.file[first].tolist())
    return source._replace(files=dict(zip(paths, map(GroupTimes._make, times), strict=True)))


def lead_in(windows: Windows, settings: HarvestSettings) -> int:
    """Return the ticks before a slice of a harvested join: its windows fill, and it learns.

    After so many adaptations, of what was learnt before the lead-in `forget` to their number would
    be left: by default a tenth.
    """
    return int(windows.size.max()) + LESSONS * settings.adapt_every


def threads_of(executor: Executor, tasks: int) -> int:
    """Return how many threads each of some tasks uses."""
    return 1 if executor.slots else max(1, executor.threads // tasks)


def beside_of(executor: Executor, tasks: int) -> int:
    """Return how many of some tasks run at once."""
    return min(tasks, executor.slots or executor.threads)


def at_once(times: float, beside: int) -> float:
    """Return how many times as long as the largest task all take, of which so many run at once.

    Parameters
    ----------
    times : float
        How many times as much as the largest all have to do.
    beside : int
    """
    return max(1.0, times / beside)


def share_count(asked: int | None, slots: int, rows: Sequence[int | None]) -> int:
    """Return how many shares to make: as asked, else one for each task that can run elsewhere.

    As many as there are rows at most, where these are known: each is a task.
    """
    known = sum(own or 0 for own in rows)
    if asked is not None:
        return asked if None in rows else min(asked, max(1, known))
    return max(1, min(slots, known // _LEAST_ROWS))


def times_of(sources: Sequence[StreamSource], columns: JoinColumns) -> Ints:
    """Return times of some tuples of all streams, the first and the last included: (n,) int64.

    Row groups with statistics are not read: their times are taken to be spread evenly.
    """
    found = [np.zeros(0, np.int64)]
    plain = JoinColumns(columns.unit, columns.zoned, (), ())

    def noted(group: GroupTimes) -> bool:
        some = 2 + group.rows // _EVERY
        span = group.high - group.low
        found.append(group.low + (np.arange(some) * (span / (some - 1))).astype(np.int64))
        found.append(np.array([group.low, group.high]))
        return False

    for source in sources:
        roles = Roles((), source.roles.time)
        choice = Choice(roles.time, columns.unit, noted)
        used = *source.roles.columns, *source.columns
        with rows_of(source, roles, used) as archive:
            for part in archive.parts((roles.time,), choice=choice):
                if part.left_out is not None:
                    continue
                ts = normalise(part.table, roles, plain, part.first).ts
                if ts.size:
                    found += [ts[::_EVERY], np.array([ts.min(), ts.max()])]
    return np.concatenate(found)
