"""Combinations of candidates that also meet each other, stream by stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact.box import emitted, weighed
from engine.multiway.exact.layout import Integer, Part, Rules, Tallies, Work
from engine.multiway.meets import meets
from engine.multiway.streams import Attributes
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import woven


@compiled
def in_order(rules: Rules, work: Work, side: Integer) -> None:
    """Write the join order: the one given, or by number of candidates, fewest first."""
    sides = work.order.size
    work.order[0] = side
    if rules.order.shape[1] > 0:
        for hop in range(1, sides):
            work.order[hop] = rules.order[side, hop - 1]
        return
    hops = 1
    for stream in range(sides):
        if stream == side:
            continue
        at = hops
        while at > 1 and work.size[0, work.order[at - 1]] > work.size[0, stream]:
            work.order[at] = work.order[at - 1]
            at -= 1
        work.order[at] = stream
        hops += 1


@compiled
def _filtered(
    rules: Rules, part: Part, attributes: Attributes, work: Work, depth: Integer, u: Integer
) -> bool:
    """Keep those behind `depth` in the join order that meet `u`; False if a list is empty."""
    sides = work.order.size
    place = work.item[u] + part.shift[work.order[depth]]
    at = work.top[depth - 1]
    for hop in range(depth + 1, sides):
        other = work.order[hop]
        begin = work.begin[depth - 1, other]
        work.begin[depth, other] = at
        for i in range(begin, begin + work.size[depth - 1, other]):
            number = work.item[i]
            work.item[at] = number
            work.worth[at] = work.worth[i]
            found = meets(rules.condition, attributes, place, number + part.shift[other])
            at += np.int64(found)
        work.size[depth, other] = at - work.begin[depth, other]
        if work.size[depth, other] == 0:
            return False
    work.top[depth] = at
    return True


@woven
def combinations(
    rules: Rules,
    part: Part,
    attributes: Attributes,
    work: Work,
    tallies: Tallies,
    members: Any,  # noqa: ANN401 - numba's
) -> bool:
    """Count or write the combinations of the lists of depth 0 whose members all meet.

    The last list of the join order is counted, not gone through. False if the output is full.
    """
    sides = work.order.size
    passed = np.int64(0)
    depth = 1
    work.position[1] = 0
    while depth > 0:
        stream = work.order[depth]
        if work.position[depth] == work.size[depth - 1, stream]:
            depth -= 1
            continue
        u = work.begin[depth - 1, stream] + work.position[depth]
        work.position[depth] += 1
        work.box_begin[stream], work.box_size[stream] = u, 1
        if not _filtered(rules, part, attributes, work, depth, u):
            continue
        if depth < sides - 2:
            depth += 1
            work.position[depth] = 0
            continue
        last = work.order[sides - 1]
        work.box_begin[last], work.box_size[last] = work.begin[depth, last], work.size[depth, last]
        if rules.emit:
            passed = emitted(part, work, work.item, passed, members, tallies.progress)
            if passed < 0:
                return False
        else:
            weighed(rules, work, work.worth, tallies)
    return True
