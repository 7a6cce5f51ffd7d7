"""One batch of `ExactStream`: as in `chains`, a block is inserted, then its chains are followed.

The kernels take their arrays one by one: in a named tuple every access would count references.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.exact.combine import combined, neumaier
from engine.runtime.jit import Floats, Integer, Ints, jit, nth, patient

BLOCK = 512
# Places in the int64 vector that a batch leaves to the next, and the entries of the work list.
NEXT, LOW, BIN, OUTPUTS, AT_LEFT, AT_RIGHT, UNUSED, PLACE = 0, 2, 4, 5, 6, 7, 8, 9
CURSOR = 10
HEAD, OLDEST, KEY, NOW, STEP, MATCHES, ACTIVE = range(7)
OWN, GAIN = range(2)


@jit
def first_unexpired(ts: Ints, side: int, low: int, last: int, now: int, window: int) -> int:
    """Return the first position from `low` on with ``now - ts <= window``, `last` if none."""
    mask = len(ts) - 1
    while low < last and now - ts[nth((2 * low + side) & mask)] > window:
        low += 1
    return low


@jit
def span(first: Ints | None, key: Integer) -> tuple[Integer, Integer]:
    """Return where a key's partners begin and end; without facts it is its only one."""
    if first is None:
        return key, key + 1
    return first[nth(key)], first[nth(key + 1)]


@jit
def partner(other: NDArray[np.int32] | None, place: Integer) -> Integer:
    """Return the opposite id at a place among the partners."""
    if other is None:
        return place
    return np.int64(other[nth(place)])


@jit
def touch(ids: NDArray[np.int32], begin: int, heads: Ints, by_key: Ints) -> int:
    """Read what the next arrivals need, so that it is in the cache by then."""
    seen = 0
    for i in range(begin, min(begin + BLOCK // 2, len(ids))):
        key = np.int64(ids[i])
        seen |= heads[nth(2 * key)] | by_key[nth(key)]
    return seen


@jit
def stage_batch(
    left_ts: Ints, left_ids: NDArray[np.int32], left_importance: Floats, right_ts: Ints,
    right_ids: NDArray[np.int32], right_importance: Floats, left_first: Ints | None,
    left_other: NDArray[np.int32] | None, right_first: Ints | None,
    right_other: NDArray[np.int32] | None, ts: Ints, link: Ints, value: Floats, heads: Ints,
    cursor: Ints, windows: tuple[int, int], start_ts: int, work: Ints, weigh: Floats,
) -> int:  # fmt: skip
    """Insert a block of arrivals and list their partners with matches; return how many these are.

    An arrival whose partners are more than there is room for is gone on with at the next call.
    """
    mask = len(ts) - 1
    next_left, next_right, low_left, low_right = cursor[0], cursor[1], cursor[2], cursor[3]
    i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
    begun, cursor[PLACE] = cursor[PLACE], -1
    listed, done = 0, 0
    while done < BLOCK and listed < BLOCK and (i < len(left_ts) or j < len(right_ts)):
        if j == len(right_ts) or (i < len(left_ts) and left_ts[nth(i)] <= right_ts[nth(j)]):
            side, now, own = 0, left_ts[nth(i)], left_importance[nth(i)]
            key = np.int64(left_ids[nth(i)])
            place, stop = span(left_first, key)
            low_right = first_unexpired(ts, 1, low_right, next_right, now, windows[1])
            low, number = 2 * low_right + 1, 2 * next_left
        else:
            side, now, own = 1, right_ts[nth(j)], right_importance[nth(j)]
            key = np.int64(right_ids[nth(j)])
            place, stop = span(right_first, key)
            low_left = first_unexpired(ts, 0, low_left, next_left, now, windows[0])
            low, number = 2 * low_left, 2 * next_right + 1
        if begun >= 0:
            place, begun = begun, -1
        while place < stop and listed < BLOCK:
            other = partner(left_other, place) if side == 0 else partner(right_other, place)
            head = heads[nth(2 * other + (1 - side))]
            work[HEAD, nth(listed)] = head
            work[OLDEST, nth(listed)] = low
            work[KEY, nth(listed)] = key if side == 0 else other
            work[NOW, nth(listed)] = now
            weigh[OWN, nth(listed)] = own
            listed += (head >= low) & (now >= start_ts)
            place += 1
        if place < stop:
            cursor[PLACE] = place
            break
        if side == 0:
            i += 1
            next_left += 1
        else:
            j += 1
            next_right += 1
        slot = number & mask
        ts[nth(slot)] = now
        link[nth(2 * slot)] = heads[nth(2 * key + side)]
        value[nth(2 * slot + 1)] = own
        heads[nth(2 * key + side)] = number
        done += 1
    cursor[0], cursor[1], cursor[2], cursor[3] = next_left, next_right, low_left, low_right
    cursor[AT_LEFT], cursor[AT_RIGHT] = i, j
    return listed


@jit
def follow_batch(
    listed: int, link: Ints, value: Floats, combine: int, work: Ints, weigh: Floats
) -> None:
    """Count the matches of each listed arrival and add up their importance, newest first."""
    mask = len(link) // 2 - 1
    for x in range(listed):
        work[STEP, x], work[MATCHES, x], work[ACTIVE, x] = work[HEAD, x], 0, x
        weigh[GAIN, x] = 0.0
    active = listed
    while active > 0:
        kept = 0
        for q in range(active):
            x = work[ACTIVE, nth(q)]
            slot = 2 * (work[STEP, nth(x)] & mask)
            weigh[GAIN, nth(x)] += combined(combine, weigh[OWN, nth(x)], value[nth(slot + 1)])
            work[MATCHES, nth(x)] += 1
            head = link[nth(slot)]
            work[STEP, nth(x)] = head
            work[ACTIVE, nth(kept)] = x
            kept += head >= work[OLDEST, nth(x)]
        active = kept


@jit
def book(
    listed: int, cursor: Ints, total: Floats, by_key: Ints, gain_by_key: Floats, edges: Ints,
    by_bin: Ints, gain_by_bin: Floats, work: Ints, weigh: Floats,
) -> None:  # fmt: skip
    """Book the outputs of the listed arrivals, in their order."""
    place, outputs = cursor[BIN], cursor[OUTPUTS]
    high, rest = total[0], total[1]
    for x in range(listed):
        matches, gain, key = work[MATCHES, x], weigh[GAIN, x], work[KEY, x]
        outputs += matches
        high, rest = neumaier(high, rest, gain)
        by_key[nth(key)] += matches
        gain_by_key[nth(key)] += gain
        while place + 1 < len(edges) and edges[place + 1] <= work[NOW, x]:
            place += 1
        if place >= 0:
            by_bin[place] += matches
            gain_by_bin[place, 0], gain_by_bin[place, 1] = neumaier(
                gain_by_bin[place, 0], gain_by_bin[place, 1], gain
            )
    cursor[BIN], cursor[OUTPUTS] = place, outputs
    total[0], total[1] = high, rest


@jit
def count_ages(
    listed: int, ts: Ints, link: Ints, windows: tuple[int, int], ages: Ints, work: Ints
) -> None:
    """Count matches by the age of the earlier tuple; simultaneous tuples have none."""
    mask = len(ts) - 1
    buckets = ages.shape[1]
    for x in range(listed):
        head, low, now = work[HEAD, x], work[OLDEST, x], work[NOW, x]
        side = low & 1
        while head >= low:
            age = now - ts[nth(head & mask)]
            if age > 0:
                ages[side, ((age - 1) * buckets) // windows[side]] += 1
            head = link[nth(2 * (head & mask))]


@patient
@jit
def run_batch(
    left_ts: Ints, left_ids: NDArray[np.int32], left_importance: Floats, right_ts: Ints,
    right_ids: NDArray[np.int32], right_importance: Floats, left_first: Ints | None,
    left_other: NDArray[np.int32] | None, right_first: Ints | None,
    right_other: NDArray[np.int32] | None, ts: Ints, link: Ints, value: Floats, heads: Ints,
    cursor: Ints, total: Floats, by_key: Ints, gain_by_key: Floats, edges: Ints, by_bin: Ints,
    gain_by_bin: Floats, ages: Ints, windows: tuple[int, int], start_ts: int, combine: int,
) -> None:  # fmt: skip
    """Join one batch; of one instant the left arrivals go first. O(arrivals + matches).

    Parameters
    ----------
    left_ts, left_ids, left_importance, right_ts, right_ids, right_importance : (n,), (m,)
        The arrivals; ids are dense.
    left_first, left_other, right_first, right_other
        See `engine.facts.key_links.KeyLinks`; None in an equi-join.
    ts, link, value
        `Ring`, with room for the arrivals.
    heads : (2 * ids,) int64
        Number of the newest tuple of each key, left at ``2 * id`` and right at ``2 * id + 1``.
    cursor : (CURSOR,) int64
        Next and first unexpired position of both sides, time bin, outputs, position of both sides
        in the batch, one without meaning, and the partner to go on with, -1 at a new arrival.
    total, gain_by_bin : (2,) and (bins, 2) float64
        Compensated sums.
    by_key, gain_by_key, edges, by_bin : (ids,), (ids,), (bins,), (bins,)
        By key of the left member.
    ages : (2, buckets) int64
        No buckets: not wanted.
    """
    work = np.empty((7, BLOCK + 1), np.int64)
    weigh = np.empty((2, BLOCK + 1), np.float64)
    cursor[AT_LEFT], cursor[AT_RIGHT], cursor[PLACE] = 0, 0, -1
    while cursor[AT_LEFT] < len(left_ts) or cursor[AT_RIGHT] < len(right_ts):
        cursor[UNUSED] |= touch(left_ids, cursor[AT_LEFT], heads, by_key)
        cursor[UNUSED] |= touch(right_ids, cursor[AT_RIGHT], heads, by_key)
        listed = stage_batch(
            left_ts, left_ids, left_importance, right_ts, right_ids, right_importance,
            left_first, left_other, right_first, right_other, ts, link, value, heads, cursor,
            windows, start_ts, work, weigh,
        )  # fmt: skip
        follow_batch(listed, link, value, combine, work, weigh)
        book(
            listed, cursor, total, by_key, gain_by_key, edges, by_bin, gain_by_bin, work, weigh
        )  # fmt: skip
        if ages.shape[1] > 0:
            count_ages(listed, ts, link, windows, ages, work)
