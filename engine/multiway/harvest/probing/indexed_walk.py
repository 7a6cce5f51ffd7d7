"""The walk of one tuple through the windows of the other streams by indexes (P4 7).

It is the walk of `gpu_kernels.multiway.walk`, but of the runs of a hop it looks only at what the
index of each physical basic window gives for the tuple: its *candidates*. What is counted is what
an operator does that probes when it pops: where a physical basic window holds k entries of tuples
that came before, to find the first candidate takes ``floor(log2 k) + 1`` comparisons, and each
candidate one, those included that lie outside the run. So it does not depend on tuples that were
admitted ahead of the clock and on how binary search gets past them.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.multiway.harvest.layout import Admitted, HarvestRules, ReadPlan
from engine.multiway.harvest.probing.indexes import (
    Index,
    first_entry,
    is_behind,
    sought,
    steps_of_search,
)
from engine.multiway.predicate import Condition, meets
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Integer, Ints, kernel
from gpu_kernels.multiway.predicates import INNER
from gpu_kernels.multiway.walk import DEPTH, ENDED, MEMBER, RUN, find_runs, first_at_or_after, taken

ENTRY, LAST, WINDOW, LIST = 0, 1, 4, 5
"""Rows of the stack, beside `RUN` and `MEMBER`: the next entry, where the window's end, a position
in the window, and which of the tuple's lists is next."""
ROWS = 6
OLDEST, YOUNGEST, READ = range(3)
"""Columns of `IndexedWalk.reach`."""


class IndexedWalk(NamedTuple):
    """The state of a tuple's walk; of one thread."""

    stack: Ints
    """(6, 8) int64. By hop; ``stack[ENTRY, DEPTH]`` is the depth."""
    bounds: Ints
    """(runs, 2) int64. Positions of the direction's runs."""
    reach: Ints
    """(hops, 3) int64. Of each hop's window: positions ``oldest <= position < youngest`` of the
    tuples that are not gone and came before; tuples in the runs, of which a scan makes a comparison
    each."""


class Hops(NamedTuple):
    """The counts of a tuple's walk by hop, each (hops,) int64."""

    comparisons: Ints
    passes: Ints
    read: Ints
    candidates: Ints
    """`comparisons`, `passes`, `read`, `candidates`: As `Probed` has them."""


@kernel
def begin_indexed(
    streams: MultiStreams, rules: HarvestRules, admitted: Admitted, plan: ReadPlan, place: Integer,
    stream: Integer, shred: float, walk: IndexedWalk, hops: Hops,
) -> None:  # fmt: skip
    """Start the walk of a tuple.

    Parameters
    ----------
    shred : float
        The throttle fraction, where the tuple is shredded; else more than 1.
    hops : Hops
        Added to.
    """
    order, runs = plan.order[stream], plan.runs[stream]
    first, after = plan.first[stream], plan.first[stream + 1]
    now = int(streams.ts[place])
    find_runs(
        now, stream, order, runs, plan.youngest[first:after], plan.oldest[first:after],
        rules.window, admitted.first, admitted.gone, admitted.number, admitted.ts, walk.bounds,
    )  # fmt: skip
    walk.stack[ENTRY, DEPTH] = 0
    for hop in range(order.size):
        other = order[hop]
        oldest = admitted.first[other] + admitted.gone[other]
        youngest = admitted.first[other] + admitted.number[other]
        # of equal times, those of the streams before came before
        behind = now + 1 if other < stream else now
        read = 0
        for run in range(runs[hop], runs[hop + 1]):
            read += walk.bounds[run, 1] - walk.bounds[run, 0]
        if hop == 0 and shred <= 1.0:
            read = int(read * shred)
        walk.reach[hop, OLDEST] = oldest
        walk.reach[hop, YOUNGEST] = first_at_or_after(admitted.ts, oldest, youngest, behind)
        walk.reach[hop, READ] = read
        if runs[hop + 1] == runs[hop]:
            walk.stack[ENTRY, DEPTH] = ENDED
    if walk.stack[ENTRY, DEPTH] != ENDED:
        _enter(walk, runs, 0, hops)


@kernel
def _enter(walk: IndexedWalk, runs: Ints, hop: int, hops: Hops) -> None:
    """Begin a hop, before its first run."""
    walk.stack[RUN, hop] = runs[hop] - 1
    walk.stack[ENTRY, hop] = 0
    walk.stack[LAST, hop] = 0
    walk.stack[LIST, hop] = ENDED
    hops.read[hop] += walk.reach[hop, READ]


@kernel
def _next_window(index: Index, walk: IndexedWalk, runs: Ints, hop: int) -> bool:
    """Advance to the next physical basic window of a hop; False at the end."""
    stack, bounds = walk.stack, walk.bounds
    run = stack[RUN, hop]
    begun = run >= runs[hop]
    at = index.end[stack[WINDOW, hop]] if begun else 0
    if not begun or at >= bounds[run, 1]:
        run += 1
        while run < runs[hop + 1] and bounds[run, 0] >= bounds[run, 1]:
            run += 1
        if run == runs[hop + 1]:
            return False
        stack[RUN, hop] = run
        at = bounds[run, 0]
    stack[WINDOW, hop] = at
    return True


@kernel
def _next_list(
    streams: MultiStreams, condition: Condition, index: Index, runs: Ints, place: int, hop: int,
    walk: IndexedWalk, hops: Hops,
) -> bool:  # fmt: skip
    """Find the candidates in the next window, or in its next list; False if there is none."""
    stack, reach, own = walk.stack, walk.reach, streams.attributes
    begin, end = 0, 1
    if condition.kind == INNER:
        begin, end = own.first[place], own.first[place + 1]
        if begin == end:
            return False
    if stack[LIST, hop] == ENDED or stack[LIST, hop] == end:
        if not _next_window(index, walk, runs, hop):
            return False
        stack[LIST, hop] = begin
    at = stack[WINDOW, hop]
    low, high = index.begin[at], index.end[at]
    there = index.lists[min(high, reach[hop, YOUNGEST])] - index.lists[max(low, reach[hop, OLDEST])]
    code, value = sought(streams, condition, place, stack[LIST, hop])
    stack[LAST, hop] = index.lists[high]
    stack[ENTRY, hop] = first_entry(
        condition, index, index.lists[low], stack[LAST, hop], code, value
    )
    hops.comparisons[hop] += steps_of_search(there)
    stack[LIST, hop] += 1
    return True


@kernel
def _shares_before(streams: MultiStreams, place: int, other: int, end: int) -> bool:
    """Return whether two tuples share an item before the tuple's list `end`."""
    own = streams.attributes
    i, j, last = own.first[place], own.first[other], own.first[other + 1]
    while i < end and j < last:
        if own.item[i] == own.item[j]:
            return True
        if own.item[i] < own.item[j]:
            i += 1
        else:
            j += 1
    return False


@kernel
def _is_met(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, place: int, other: int,
    hop: int, walk: IndexedWalk,
) -> bool:  # fmt: skip
    """Return whether a candidate agrees with the tuple and, of a clique, all members before it."""
    # a tuple is in a list for each item that it shares: the first of them counts
    if condition.kind == INNER and _shares_before(streams, place, other, walk.stack[LIST, hop] - 1):
        return False
    if not meets(condition, streams.attributes, place, other):
        return False
    if rules.clique:
        for before in range(hop):
            if not meets(condition, streams.attributes, walk.stack[MEMBER, before], other):
                return False
    return True


@kernel
def _next_met(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    index: Index, place: int, shred: float, hop: int, walk: IndexedWalk, hops: Hops,
) -> bool:  # fmt: skip
    """Advance to the next candidate of the list that agrees; False at the end."""
    stack, run = walk.stack, walk.stack[RUN, hop]
    entry, last = stack[ENTRY, hop], stack[LAST, hop]
    if entry == last:
        return False
    begin, end = walk.bounds[run, 0], walk.bounds[run, 1]
    oldest, youngest = walk.reach[hop, OLDEST], walk.reach[hop, YOUNGEST]
    code, value = sought(streams, condition, place, stack[LIST, hop] - 1)
    looked = candidates = 0
    found = False
    while entry < last and not found:
        if is_behind(condition, index, entry, code, value):
            entry = last
            break
        position = index.position[entry]
        entry += 1
        if position < oldest or position >= youngest:
            continue
        looked += 1
        if position < begin or position >= end:
            continue
        if hop == 0 and shred <= 1.0 and not taken(end - 1 - position, shred):
            continue
        candidates += 1
        other = admitted.place[position]
        if _is_met(streams, rules, condition, place, other, hop, walk):
            stack[MEMBER, hop] = other
            found = True
    stack[ENTRY, hop] = entry
    hops.comparisons[hop] += looked
    hops.candidates[hop] += candidates
    return found


@kernel
def next_indexed(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    index: Index, plan: ReadPlan, place: Integer, stream: Integer, shred: float, walk: IndexedWalk,
    hops: Hops,
) -> bool:  # fmt: skip
    """Advance to the next output of a tuple; False at the end.

    The members are in ``walk.stack[MEMBER]`` by hop.
    """
    runs, last = plan.runs[stream], plan.order.shape[1] - 1
    depth = walk.stack[ENTRY, DEPTH]
    while depth >= 0:
        if _next_met(
            streams, rules, condition, admitted, index, place, shred, depth, walk, hops
        ):  # fmt: skip
            hops.passes[depth] += 1
            if depth == last:
                walk.stack[ENTRY, DEPTH] = depth
                return True
            depth += 1
            _enter(walk, runs, depth, hops)
        elif not _next_list(streams, condition, index, runs, place, depth, walk, hops):
            depth -= 1
    walk.stack[ENTRY, DEPTH] = ENDED
    return False
