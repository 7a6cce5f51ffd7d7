"""Exact output count and importance of two streams in memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from engine.exact.chains import BLOCK, Chains, Work, empty_chains, empty_work, grown, stage
from engine.exact.checks import (
    check_in_order,
    check_sizes,
    check_windows,
    first_counted,
    thread_count,
)
from engine.exact.combine import combine_code, combined, neumaier
from engine.exact.slices import Slice, cut_slices, with_dense_keys
from engine.runtime.jit import Ints, jit, nth
from engine.runtime.streams import StreamBatch
from engine.runtime.work import as_here


class ExactCount(NamedTuple):
    """Size of an exact result."""

    outputs: int
    importance: float
    """Sum over the outputs, to 1e-12 of it."""


@jit
def follow(
    listed: int, chains: Chains, work: Work, combine: int, high: float, rest: float
) -> tuple[int, float, float]:
    """Follow the chains of a work list to their ends, a step of each a round. O(outputs).

    Returns
    -------
    (outputs, and the compensated sum (high, rest) with their importance added)
    """
    _, link, value = chains
    work_head, work_low, _, work_own = work
    slots = len(value) // 2
    stride = len(link) // slots
    mask = slots - 1
    outputs = 0
    while listed > 0:
        outputs += listed
        kept = 0
        total = 0.0
        for x in range(listed):
            head, low, own = work_head[nth(x)], work_low[nth(x)], work_own[nth(x)]
            slot = head & mask
            total += combined(combine, own, np.float64(value[nth(2 * slot + 1)]))
            head = link[nth(stride * slot)]
            work_head[nth(kept)] = head
            work_low[nth(kept)] = low
            work_own[nth(kept)] = own
            kept += head >= low
        high, rest = neumaier(high, rest, total)
        listed = kept
    return outputs, high, rest


@jit
def count_slice(
    part: Slice, cursor: Ints, chains: Chains, work: Work, combine: int, high: float, rest: float
) -> tuple[int, float, float, bool, bool]:
    """Count until the slice ends, the ring is full, or something does not fit.

    Returns
    -------
    (outputs, compensated sum (high, rest), whether importance fitted the chains, whether ts is in
     order)
    """
    outputs = 0
    while True:
        listed, fits, ordered, done = stage(part, cursor, chains, work)
        if done == 0 or not fits or not ordered:
            return outputs, high, rest, fits, ordered
        found, high, rest = follow(listed, chains, work, combine, high, rest)
        outputs += found


def _run(part: Slice, chains: Chains, work: Work, combine: int) -> ExactCount | None:
    """Count one slice, growing the ring as needed; None: importance needs float64."""
    cursor = np.zeros(4, np.int64)
    outputs, high, rest = 0, 0.0, 0.0
    while True:
        found, high, rest, fits, ordered = count_slice(
            part, cursor, chains, work, combine, high, rest
        )
        outputs += found
        check_in_order(ordered)
        if not fits:
            return None
        if part.ended(cursor):
            return ExactCount(outputs, high + rest)
        chains = grown(chains, cursor)


def _count(part: Slice, combine: int) -> ExactCount:
    """Count one slice, with float32 chains if they lose nothing."""
    part = with_dense_keys(part)
    for narrow in (True, False):
        chains = empty_chains(part.keys, part.slots(BLOCK), narrow)
        count = _run(part, chains, empty_work(), combine)
        if count is not None:
            break
    assert count is not None  # noqa: S101 - float64 holds every importance
    return count


def count_pairs(
    left: StreamBatch,
    right: StreamBatch,
    window_left: int,
    window_right: int,
    combine: str = "min",
    start_ts: int | None = None,
    threads: int | None = None,
) -> ExactCount:
    """Count the exact two-way window equi-join and add up its importance.

    Time is cut into one slice a thread; each inserts the window before its slice first.

    Parameters
    ----------
    left, right : StreamBatch
        Both streams, in arrival order.
    window_left, window_right : int
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.
    combine : str
        Importance of an output from its members': min, sum, product, max or mean.
    start_ts : int, optional
        Outputs before this tick are not counted. The time of an output is its later member's.
    threads : int, optional
        All CPUs unless given. The count does not depend on it, the sum in its last digits.

    Returns
    -------
    ExactCount
        O(tuples + outputs) time, O(windows + key range) memory a thread.

    Raises
    ------
    SpecError
        A window is negative, a stream is out of order, or `combine` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> ts, key = np.arange(4), np.array([7, 8, 7, 7])
    >>> batch = StreamBatch(ts, ts, key, np.ones(4))
    >>> count_pairs(batch, batch, 1, 1)
    ExactCount(outputs=6, importance=6.0)
    """
    check_windows(window_left, window_right)
    code = combine_code(combine)
    check_sizes(left, 0)
    check_sizes(right, 1)
    workers = thread_count(threads)
    parts = cut_slices(left, right, (window_left, window_right), first_counted(start_ts), workers)
    if len(parts) == 1:
        return _count(parts[0], code)
    with ThreadPoolExecutor(workers, **as_here()) as pool:
        counts = list(pool.map(lambda part: _count(part, code), parts))
    return ExactCount(sum(c.outputs for c in counts), float(sum(c.importance for c in counts)))
