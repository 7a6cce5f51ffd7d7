"""The tuples of a run that agree with a tuple: found without looking at all of the run.

A run is a range of the admitted tuples of one stream, so it is a range of places, less the tuples
in between that were dropped. Places are sorted once, before the join: of equi by code, of band and
distance by value within blocks of neighbouring places. What is found is what a scan would find, in
its order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.indexes import first_value, lies_before
from engine.multiway.harvest.layout import Admitted
from engine.multiway.predicate import Condition, Predicate, meets
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Integer, Ints, kernel, shell_sorted
from gpu_kernels.multiway.predicates import BAND, DISTANCE, EQUI
from gpu_kernels.multiway.walk import first_at_or_after, taken

BLOCK = 256
"""Places whose values are sorted together: as many as a binary search finds faster than a scan."""


class Matching(NamedTuple):
    """Places in an order in which those that agree with a tuple are neighbours."""

    place: Ints
    """(n,) int64. Of equi by stream, code and place; of band and distance by block, value and
    place; else empty."""
    code: Ints
    """(n,) int64. Of equi: the list of each place within a stream."""
    lists: Ints
    """(m * codes + 1,) int64. Of equi: where the lists of each stream begin in `place`."""
    value: Floats
    """(n,) float64. Of band and distance: first coordinates, in the order of `place`."""
    position: Ints
    """(n,) int64. By place: the position of a tuple that is admitted."""


def matching_of(streams: MultiStreams, predicate: Predicate) -> Matching:
    """Return the places of all tuples in the order that a predicate needs. O(n log n)."""
    n, own = streams.ts.size, streams.attributes
    stream = np.repeat(np.arange(streams.number), np.diff(streams.first))
    none, position = np.zeros(0, np.int64), np.zeros(n, np.int64)
    if predicate.kind == "equi":
        distinct, code = np.unique(own.code, return_inverse=True)
        lists = stream * distinct.size + code
        edges = np.bincount(lists, minlength=streams.number * distinct.size)
        begins = np.concatenate([[0], np.cumsum(edges)]).astype(np.int64)
        place = np.argsort(lists, kind="stable").astype(np.int64)
        return Matching(place, code.astype(np.int64), begins, np.zeros(0), position)
    if predicate.kind in ("band", "distance"):
        value = own.value[:, 0]
        blocks = (np.arange(n) - streams.first[stream]) // BLOCK
        place = np.lexsort((value, blocks, stream)).astype(np.int64)
        return Matching(place, none, none, np.ascontiguousarray(value[place]), position)
    return Matching(none, none, none, np.zeros(0), position)


@kernel
def _is_read(
    admitted: Admitted, matching: Matching, place: Integer, begin: Integer, end: Integer,
    gaps: bool, shred: float,
) -> bool:  # fmt: skip
    """Return whether a tuple between the ends of a run is in it, and read by a shredded tuple."""
    if not gaps and shred > 1.0:
        return True
    position = matching.position[place]
    if gaps and not (begin <= position < end and admitted.place[position] == place):
        return False
    return shred > 1.0 or taken(end - 1 - position, shred)


@kernel
def find_matches(
    streams: MultiStreams, condition: Condition, admitted: Admitted, matching: Matching,
    place: Integer, other: Integer, begin: Integer, end: Integer, shred: float, found: Ints,
    number: Integer,
) -> Integer:  # fmt: skip
    """Append the places of a run's tuples that agree with a tuple; return the new number.

    Parameters
    ----------
    place, other : int
        The tuple's place; the stream of the run.
    begin, end : int
        Positions of the run.
    shred : float
        The throttle fraction, where the run is read by a shredded tuple; else more than 1.
    found : (room,) int64
        Written from `number` on, in arrival order.
    """
    if begin >= end:
        return number
    low, high = int(admitted.place[begin]), int(admitted.place[end - 1]) + 1
    gaps = high - low != end - begin
    if condition.kind == EQUI:
        codes = (matching.lists.size - 1) // (streams.first.size - 1)
        at = other * codes + matching.code[place]
        last = matching.lists[at + 1]
        entry = first_at_or_after(matching.place, int(matching.lists[at]), last, low)
        while entry < last and matching.place[entry] < high:
            one = matching.place[entry]
            if _is_read(admitted, matching, one, begin, end, gaps, shred):
                found[number] = one
                number += 1
            entry += 1
        return number
    if condition.kind == BAND or condition.kind == DISTANCE:  # noqa: PLR1714 - compiled
        squared, own = condition.kind == DISTANCE, streams.attributes.value[place, 0]
        first, behind = streams.first[other], streams.first[other + 1]
        block = first + (low - first) // BLOCK * BLOCK
        while block < high:
            after = min(block + BLOCK, behind)
            entry = first_value(matching.value, int(block), after, squared, condition.bound, own)
            begun = number
            while entry < after and not lies_before(
                squared, condition.bound, own, matching.value[entry]
            ):
                one = matching.place[entry]
                if (
                    low <= one < high
                    and _is_read(admitted, matching, one, begin, end, gaps, shred)
                    and meets(condition, streams.attributes, place, one)
                ):
                    found[number] = one
                    number += 1
                entry += 1
            shell_sorted(found, begun, number - begun)
            block = after
        return number
    for position in range(begin, end):
        one = admitted.place[position]
        if shred <= 1.0 and not taken(end - 1 - position, shred):
            continue
        if meets(condition, streams.attributes, place, one):
            found[number] = one
            number += 1
    return number
