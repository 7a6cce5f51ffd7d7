"""The tuples of a run that agree with a tuple.

A run is a range of the admitted tuples of one stream, so it is a range of places, less the tuples
in between that were dropped. Of equi, places are sorted by code once, before the join. Values of
band and distance are compared many at a time where runs are short; where they are long, they are
sorted within blocks of neighbouring places. What is found is what a scan would find, in its order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.multiway.exact.lists import of_codes
from engine.multiway.exact.plan import interned
from engine.multiway.exact.screen import squares
from engine.multiway.harvest.layout import Admitted
from engine.multiway.harvest.probing.indexes import first_value, lies_before
from engine.multiway.predicate import Condition, Predicate, meets
from engine.multiway.streams import Attributes, MultiStreams
from engine.runtime.bits import WORD, lowest, near
from engine.runtime.jit import Floats, Integer, Ints, inlined, jit, kernel, shell_sorted
from gpu_kernels.multiway.predicates import BAND, COSINE, DISTANCE, EQUI, dot
from gpu_kernels.multiway.walk import first_at_or_after, taken

BLOCK = 4096
"""Places whose values are sorted together: as many as a binary search finds faster than a scan."""
_LONG = 4 * BLOCK
"""Tuples of a window, on average, from which on values are sorted."""
_ABOVE, _TINY = 1 + 2.0**-50, 1e-150
"""What rounding adds to a distance at most: a part of it, and where squares are too small."""


class Matching(NamedTuple):
    """Places in an order in which those that agree with a tuple are neighbours."""

    place: Ints
    """(n,) int64. Of equi by stream, code and place; of band and distance in long windows by block,
    value and place; else empty."""
    code: Ints
    """(n,) int64. Of equi: the list of each place within a stream."""
    lists: Ints
    """(m * codes + 1,) int64. Of equi: where the lists of each stream begin in `place`."""
    value: Floats
    """(n,) float64. Of band and distance in long windows: first coordinates, in the order of
    `place`."""
    flat: Floats
    """(n,) float64. By place: of band and distance first coordinates, a word of them more than
    there are places; of cosine lengths."""
    position: Ints
    """(n,) int64. By place: the position of a tuple that is admitted."""


@jit
def _by_code(stream_first: Ints, code: Ints, codes: int, place: Ints, lists: Ints) -> None:
    """Write the places of each stream and code, ascending, and where they begin."""
    for stream in range(stream_first.size - 1):
        for k in range(stream_first[stream], stream_first[stream + 1]):
            lists[stream * codes + code[k] + 1] += 1
    for at in range(1, lists.size):
        lists[at] += lists[at - 1]
    ends = lists[:-1].copy()
    for stream in range(stream_first.size - 1):
        for k in range(stream_first[stream], stream_first[stream + 1]):
            at = stream * codes + code[k]
            place[ends[at]] = k
            ends[at] += 1


@jit
def _by_value(stream_first: Ints, flat: Floats, place: Ints, value: Floats) -> None:
    """Write the places of each block in order of value, and their values."""
    for stream in range(stream_first.size - 1):
        for begin in range(stream_first[stream], stream_first[stream + 1], BLOCK):
            own = flat[begin : min(begin + BLOCK, stream_first[stream + 1])]
            order = np.argsort(own, kind="mergesort")
            for k in range(own.size):
                place[begin + k] = begin + order[k]
                value[begin + k] = own[order[k]]


def _are_long(streams: MultiStreams, windows: Ints) -> bool:
    """Return whether a window has many tuples, if they come evenly."""
    for stream, size in enumerate(windows.tolist()):
        ts = streams.ts[streams.part(stream)]
        if ts.size and ts.size * (size + 1) > _LONG * max(size + 1, int(ts[-1]) - int(ts[0]) + 1):
            return True
    return False


def matching_of(
    streams: MultiStreams, windows: Ints, predicate: Predicate, lengths: Floats | None = None
) -> Matching:
    """Return the places of all tuples in the order that a predicate needs.

    O(n); of long windows O(n log n).

    Parameters
    ----------
    windows : (m,) int64
        W ticks of each.
    lengths : (n,) float64, optional
        Of cosine, where they are known.
    """
    n, own = streams.ts.size, streams.attributes
    none, no_values, position = np.zeros(0, np.int64), np.zeros(0), np.zeros(n, np.int64)
    if predicate.kind == "equi":
        codes, narrow, _ = of_codes(own.code, interned)
        code, place = narrow.astype(np.int64), np.empty(n, np.int64)
        lists = np.zeros(streams.number * codes + 1, np.int64)
        _by_code(streams.first, code, codes, place, lists)
        return Matching(place, code, lists, no_values, no_values, position)
    if predicate.kind == "band" or (predicate.kind == "distance" and not predicate.equal):
        flat = np.concatenate([own.value[:, 0], np.zeros(WORD)])
        if not _are_long(streams, windows):
            return Matching(none, none, none, no_values, flat, position)
        place, value = np.empty(n, np.int64), np.empty(n)
        _by_value(streams.first, flat, place, value)
        return Matching(place, none, none, value, flat, position)
    if predicate.kind == "cosine":
        flat = np.sqrt(squares(own.value)) if lengths is None else lengths
        return Matching(none, none, none, no_values, flat, position)
    return Matching(none, none, none, no_values, no_values, position)


@kernel
def agree(
    condition: Condition, attributes: Attributes, matching: Matching, a: Integer, b: Integer
) -> Any:  # noqa: ANN401 - a bool
    """Return whether the predicate holds between two tuples, as `meets` does."""
    if condition.kind == COSINE:
        lengths = matching.flat[a] * matching.flat[b]
        return dot(attributes.value, a, b) / lengths >= condition.bound
    return meets(condition, attributes, a, b)


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


@inlined
def _near(squared: bool, bound: float, difference: float) -> bool:
    return difference * difference <= bound if squared else abs(difference) <= bound


@kernel
def _scanned(
    flat: Floats, reach: float, own: float, low: Integer, high: Integer, found: Ints,
    number: Integer,
) -> Integer:  # fmt: skip
    """Append the places ``low <= place < high`` whose value is near; return the new number."""
    for j in range(low, high, WORD):
        bits = near(flat, j, own, own, reach)
        if high - j < WORD:
            bits &= (np.uint64(1) << np.uint64(high - j)) - np.uint64(1)
        while bits != 0:
            found[number] = j + lowest(bits)
            number += 1
            bits &= bits - np.uint64(1)
    return number


@kernel
def _sorted_near(
    matching: Matching, squared: bool, bound: float, own: float, first: Integer, behind: Integer,
    low: Integer, high: Integer, found: Ints, number: Integer,
) -> Integer:  # fmt: skip
    """Append what `_scanned` appends, from sorted blocks of a stream's places, first to behind."""
    block = first + (low - first) // BLOCK * BLOCK
    while block < high:
        after = min(block + BLOCK, behind)
        entry = first_value(matching.value, int(block), after, squared, bound, own)
        begun = number
        while entry < after and not lies_before(squared, bound, own, matching.value[entry]):
            one = matching.place[entry]
            if low <= one < high and _near(squared, bound, matching.value[entry] - own):
                found[number] = one
                number += 1
            entry += 1
        shell_sorted(found, begun, number - begun)
        block = after
    return number


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
        Written from `number` on, in arrival order; with room for all of the stream.
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
        squared, own, begun = condition.kind == DISTANCE, float(matching.flat[place]), number
        if high - low > BLOCK and matching.value.size > 0:
            number = _sorted_near(
                matching, squared, condition.bound, own, streams.first[other],
                streams.first[other + 1], low, high, found, number,
            )  # fmt: skip
        else:
            reach = condition.bound
            if squared:  # as far as a rounded square may be within the bound
                reach = np.sqrt(reach) * _ABOVE + _TINY
            number = _scanned(matching.flat, reach, own, low, high, found, number)
        if not gaps and shred > 1.0 and not squared:
            return number
        kept = begun
        for at in range(begun, number):
            one = found[at]
            if _is_read(admitted, matching, one, begin, end, gaps, shred) and (
                not squared or meets(condition, streams.attributes, place, one)
            ):
                found[kept] = one
                kept += 1
        return kept
    for position in range(begin, end):
        one = admitted.place[position]
        if shred <= 1.0 and not taken(end - 1 - position, shred):
            continue
        if agree(condition, streams.attributes, matching, place, one):
            found[number] = one
            number += 1
    return number
