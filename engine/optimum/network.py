"""The residual network of a memory's min-cost flow, on the nodes of its time line alone.

A unit of flow is a slot of memory. It travels the line from the first node to the last, and skips
a stretch of it whenever it is a tuple's. A tuple has one unit at most, so its chain of matches
needs no nodes of its own: a tuple that is not stored offers steps from its `begin` to each of its
ends; one that is stored until e offers steps from e to its other ends, and back to its `begin`.
Every tuple is therefore found from one node, its *home*, and one search visits every choice once
at most.

Numbers are whole, so that prices, and what is proven by them, are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import NONE, Ints, jit


@jit
def push(heap_cost: Ints, heap_node: Ints, size: int, cost: int, node: int) -> None:
    """Add an entry to a binary heap of `size` entries."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap_cost[above] <= cost:
            break
        heap_cost[at], heap_node[at] = heap_cost[above], heap_node[above]
        at = above
    heap_cost[at], heap_node[at] = cost, node


@jit
def pop(heap_cost: Ints, heap_node: Ints, size: int) -> None:
    """Take the first entry out of a binary heap of `size` entries."""
    last = size - 1
    cost, node = heap_cost[last], heap_node[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and heap_cost[below + 1] < heap_cost[below]:
            below += 1
        if heap_cost[below] >= cost:
            break
        heap_cost[at], heap_node[at] = heap_cost[below], heap_node[below]
        at = below
    heap_cost[at], heap_node[at] = cost, node


_ON, _BACK = -1, -2  # along the line, against it
MOST_PRICE = 1 << 61
MOST_TARGETS = 4
"""Units sent after one search: more share ways, and long ways take time to walk (measured)."""


class Tuples(NamedTuple):
    """The choices of the tuples, as `engine.optimum.intervals.Intervals` has them."""

    begin: NDArray[np.int32]
    """(n,) int32."""
    start: Ints
    """(n + 1,) int64."""
    end: NDArray[np.int32]
    """(m,) int32."""
    value: Ints
    """(m,) int64. In whole units."""


class Flow(NamedTuple):
    """A flow that its prices cannot improve, though not all of it has arrived yet."""

    price: Ints
    """(nodes + 1,) int64. Cumulative price of the stretches before each node."""
    idle: Ints
    """(nodes,) int64. Units that travel each stretch of the line, in no tuple."""
    excess: Ints
    """(nodes + 1,) int64. Units that arrive at a node and do not leave it; below 0, that leave
    without having arrived."""
    chosen: Ints
    """(n,) int64. Each tuple's choice, NONE if it is not stored."""
    head: Ints
    """(nodes + 1,) int64. First of the tuples at home at a node, NONE if there are none."""
    after: Ints
    before: Ints
    """`after`, `before`: (n,) int64. The next and the previous tuple of the same home."""


class Search(NamedTuple):
    """Scratch of a search for the cheapest way from a node."""

    heap_cost: Ints
    heap_node: Ints
    """`heap_cost`, `heap_node`: (most steps,) int64."""
    cost: Ints
    """(nodes + 1,) int64. Of reaching a node, where `seen` has the number of this search."""
    seen: Ints
    done: Ints
    """`seen`, `done`: (nodes + 1,) int64."""
    source: Ints
    step: Ints
    choice: Ints
    """`source`, `step`, `choice`: (nodes + 1,) int64. Node that it is reached from, by which tuple
    (or _ON, _BACK), becoming which choice."""
    settled: Ints
    """(nodes + 1,) int64. Nodes in the order in which they were done."""
    targets: Ints
    """(MOST_TARGETS,) int64. Nodes found that lack a unit."""


def new_search(nodes: int, tuples: int, choices: int) -> Search:
    """Return scratch for a network of that size."""
    steps = tuples + choices + 2 * nodes + 1
    a, b, c, d, e, f, g = np.zeros((7, nodes + 1), np.int64)
    heap = np.empty((2, steps), np.int64)
    return Search(heap[0], heap[1], a, b, c, d, e, f, g, np.empty(MOST_TARGETS, np.int64))


@jit
def settle_home(flow: Flow, i: int, node: int) -> None:
    """Put a tuple first among those at home at a node."""
    first = flow.head[node]
    flow.after[i], flow.before[i] = first, NONE
    if first != NONE:
        flow.before[first] = i
    flow.head[node] = i


@jit
def move_home(flow: Flow, i: int, source: int, target: int) -> None:
    """Move a tuple to another home. O(1)."""
    before, after = flow.before[i], flow.after[i]
    if before == NONE:
        flow.head[source] = after
    else:
        flow.after[before] = after
    if after != NONE:
        flow.before[after] = before
    settle_home(flow, i, target)


@jit
def begin_flow(tuples: Tuples, flow: Flow, nodes: int, budget: int) -> None:
    """Give tuples their best choices at the prices, stretches idle units; `excess` is the rest."""
    begin, start, end, value = tuples
    price, idle, excess, chosen = flow.price, flow.idle, flow.excess, flow.chosen
    excess[:] = 0
    flow.head[:] = NONE
    for i in range(len(begin)):
        best, choice = 0, NONE
        for k in range(start[i], start[i + 1]):
            gain = value[k] - (price[end[k]] - price[begin[i]])
            if gain > best:
                best, choice = gain, k
        chosen[i] = choice
        settle_home(flow, i, begin[i] if choice == NONE else end[choice])
        if choice != NONE:
            excess[begin[i]] += 1
            excess[end[choice]] -= 1
    held, before = 0, budget
    for t in range(nodes):
        held += excess[t]
        idle[t] = max(0, budget - held) if price[t + 1] == price[t] else 0
        excess[t] = before - (held + idle[t])
        before = held + idle[t]
    excess[nodes] = before - budget


@jit
def reach(
    search: Search, size: int, number: int, cost: int, node: int,
    source: int, step: int, choice: int,
) -> int:  # fmt: skip
    """Note a way to a node if it is the cheapest so far; return the size of the heap."""
    if search.done[node] == number or (search.seen[node] == number and search.cost[node] <= cost):
        return size
    search.seen[node], search.cost[node] = number, cost
    search.source[node], search.step[node], search.choice[node] = source, step, choice
    push(search.heap_cost, search.heap_node, size, cost, node)
    return size + 1


@jit
def cheapest(
    tuples: Tuples, flow: Flow, search: Search, nodes: int, number: int, source: int
) -> tuple[int, int]:
    """Search from a node, by Dijkstra's algorithm, for as many nodes that lack a unit as it has.

    Returns
    -------
    (such nodes, nodes done)
    """
    begin, start, end, value = tuples
    price, chosen = flow.price, flow.chosen
    size = reach(search, 0, number, 0, source, NONE, NONE, NONE)
    settled = found = 0
    most = min(flow.excess[source], MOST_TARGETS)
    while size > 0:
        cost, u = search.heap_cost[0], search.heap_node[0]
        pop(search.heap_cost, search.heap_node, size)
        size -= 1
        if search.done[u] == number:
            continue
        search.done[u] = number
        search.settled[settled] = u
        settled += 1
        if flow.excess[u] < 0:
            search.targets[found] = u
            found += 1
            if found == most:
                break
        level = cost - price[u]
        if u < nodes:
            size = reach(search, size, number, level + price[u + 1], u + 1, u, _ON, NONE)
        if u > 0 and flow.idle[u - 1] > 0:
            size = reach(search, size, number, level + price[u - 1], u - 1, u, _BACK, NONE)
        i = flow.head[u]
        while i != NONE:
            value_now = 0
            if chosen[i] != NONE:
                value_now = value[chosen[i]]
                v = begin[i]
                size = reach(search, size, number, level + value_now + price[v], v, u, i, NONE)
            for k in range(start[i], start[i + 1]):
                v = end[k]
                more = level + value_now - value[k] + price[v]
                size = reach(search, size, number, more, v, u, i, k)
            i = flow.after[i]
    return found, settled


@jit
def still_open(tuples: Tuples, flow: Flow, search: Search, source: int, target: int) -> bool:
    """Return whether the way that the search found is still there, others having been taken."""
    v = target
    while v != source:
        u, step = search.source[v], search.step[v]
        if step == _BACK:
            if flow.idle[v] == 0:
                return False
        elif step != _ON:
            choice = flow.chosen[step]
            if u != (tuples.begin[step] if choice == NONE else tuples.end[choice]):
                return False
        v = u
    return True


@jit
def send(flow: Flow, search: Search, source: int, target: int) -> None:
    """Send a unit along the way that the search found."""
    flow.excess[source] -= 1
    flow.excess[target] += 1
    v = target
    while v != source:
        u, step = search.source[v], search.step[v]
        if step == _ON:
            flow.idle[u] += 1
        elif step == _BACK:
            flow.idle[v] -= 1
        else:
            flow.chosen[step] = search.choice[v]
            move_home(flow, step, u, v)
        v = u


@jit
def balance(
    tuples: Tuples, flow: Flow, search: Search, nodes: int, progress: Ints, steps: int
) -> bool:
    """Send units from where there are too many to where they lack, each the cheapest way.

    Parameters
    ----------
    progress : (3,) int64
        Node to go on from, searches begun, nodes done by them all.
    steps : int
        Nodes to be done before it returns for a while.

    Returns
    -------
    bool
        Whether all balances, so that the flow is optimal. False also if a price is too great.
    """
    pause = progress[2] + steps
    while progress[0] <= nodes:
        source = progress[0]
        if flow.excess[source] <= 0:
            progress[0] += 1
            continue
        if progress[2] >= pause:
            return False
        progress[1] += 1
        found, settled = cheapest(tuples, flow, search, nodes, progress[1], source)
        progress[2] += settled
        farthest = search.cost[search.targets[found - 1]]
        for q in range(settled):
            v = search.settled[q]
            flow.price[v] += max(0, farthest - search.cost[v])
            if abs(flow.price[v]) > MOST_PRICE:
                return False
        for q in range(found):
            if still_open(tuples, flow, search, source, search.targets[q]):
                send(flow, search, source, search.targets[q])
    return True
