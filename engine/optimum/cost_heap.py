"""A binary heap of (cost, node) in two arrays, least cost first."""

from __future__ import annotations

from engine.runtime.jit import Ints, jit

Longs = Ints


@jit
def push(heap_cost: Longs, heap_node: Longs, size: int, cost: int, node: int) -> None:
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
def pop(heap_cost: Longs, heap_node: Longs, size: int) -> None:
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
