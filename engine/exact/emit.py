"""Writing the pairs of a block of arrivals in order, from chains that run newest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.chains import BLOCK, Chains, Work
from engine.runtime.jit import Ints, jit, nth

LOG = 1 << 14  # steps along chains noted at a time; 128 KiB
LISTED, BEGUN, GROUP, NEEDED = range(4)


class Scratch(NamedTuple):
    """Where `emit` notes the steps along the chains of a group of arrivals."""

    head: NDArray[np.int32]
    item: NDArray[np.int32]
    """`head`, `item`: (LOG,) int32. Number reached, and the arrival that reached it, a step."""
    last: Ints
    """(BLOCK + 1,) int64. Matches of each arrival, then where its pairs end."""


def empty_scratch() -> Scratch:
    """Return scratch space."""
    head, item = np.empty((2, LOG), np.int32)
    return Scratch(head, item, np.empty(BLOCK + 1, np.int64))


@jit
def log_group(begin: int, end: int, chains: Chains, work: Work, scratch: Scratch) -> int:
    """Note all steps of the arrivals ``begin .. end - 1``, one of each a round.

    Returns
    -------
    int
        Steps noted; -1: they are more than LOG.
    """
    link, slots = chains.link, len(chains.value) // 2
    work_head, work_low = work.head, work.low
    log_head, log_item, last = scratch
    stride = len(link) // slots
    mask = slots - 1
    steps = 0
    for x in range(begin, end):
        log_head[nth(steps)] = work_head[nth(x)]
        log_item[nth(steps)] = x
        last[nth(x)] = 1
        steps += 1
    begun = 0
    while begun < steps:
        ended = steps
        if ended + (ended - begun) > LOG:
            return -1
        for q in range(begun, ended):
            item = log_item[nth(q)]
            head = link[nth(stride * (log_head[nth(q)] & mask))]
            log_head[nth(steps)] = head
            log_item[nth(steps)] = item
            more = head >= work_low[nth(item)]
            last[nth(item)] += more
            steps += more
        begun = ended
    return steps


@jit
def write_group(
    steps: int, begin: int, end: int, filled: int, offsets: tuple[int, int], work: Work,
    scratch: Scratch, out_left: Ints, out_right: Ints,
) -> None:  # fmt: skip
    """Write the noted pairs from `filled` on, those of one arrival oldest first."""
    offset_left, offset_right = offsets
    work_number = work.number
    log_head, log_item, last = scratch
    for x in range(begin, end):
        filled += last[x]
        last[x] = filled
    for q in range(steps):
        item = log_item[nth(q)]
        place = last[nth(item)] - 1
        last[nth(item)] = place
        number = work_number[nth(item)]
        own, other = number >> 1, log_head[nth(q)] >> 1
        from_left = (number & 1) == 0
        out_left[nth(place)] = offset_left + (own if from_left else other)
        out_right[nth(place)] = offset_right + (other if from_left else own)


@jit
def _chain_length(link: NDArray[np.int32], slots: int, head: int, low: int) -> int:
    stride = len(link) // slots
    length = 0
    while head >= low:
        head = link[stride * (head & (slots - 1))]
        length += 1
    return length


@jit
def write_chain(
    link: NDArray[np.int32], slots: int, head: int, low: int, end: int, own: int, offset_own: int,
    offset_other: int, out_own: Ints, out_other: Ints,
) -> None:  # fmt: skip
    """Write the pairs of one arrival with a long chain, ending before `end`."""
    stride = len(link) // slots
    while head >= low:
        end -= 1
        out_own[end] = offset_own + own
        out_other[end] = offset_other + (head >> 1)
        head = link[stride * (head & (slots - 1))]


@jit
def emit(
    progress: Ints, filled: int, offsets: tuple[int, int], chains: Chains, work: Work,
    scratch: Scratch, out_left: Ints, out_right: Ints,
) -> int:  # fmt: skip
    """Write the pairs of a work list, in its order, until it ends or the output is full.

    Parameters
    ----------
    progress : (4,) int64
        Entries listed, entries done, size of the group to try, and pairs there was no room for.

    Returns
    -------
    int
        Pairs in the output. O(pairs written).
    """
    link, slots = chains.link, len(chains.value) // 2
    progress[NEEDED] = 0
    while progress[BEGUN] < progress[LISTED]:
        begin = progress[BEGUN]
        end = min(begin + progress[GROUP], progress[LISTED])
        steps = log_group(begin, end, chains, work, scratch)
        if steps < 0 and end - begin > 1:
            progress[GROUP] = (end - begin) // 2
            continue
        head, low, number = work.head[begin], work.low[begin], work.number[begin]
        needed = _chain_length(link, slots, head, low) if steps < 0 else steps
        if filled + needed > len(out_left):
            progress[NEEDED] = needed
            break
        if steps >= 0:
            write_group(steps, begin, end, filled, offsets, work, scratch, out_left, out_right)
        elif number & 1:
            write_chain(
                link, slots, head, low, filled + needed, number >> 1, offsets[1], offsets[0],
                out_right, out_left,
            )  # fmt: skip
        else:
            write_chain(
                link, slots, head, low, filled + needed, number >> 1, offsets[0], offsets[1],
                out_left, out_right,
            )  # fmt: skip
        filled += needed
        progress[BEGUN] = end
        if needed < LOG // 4:
            progress[GROUP] = min(2 * progress[GROUP], BLOCK)
    return filled
