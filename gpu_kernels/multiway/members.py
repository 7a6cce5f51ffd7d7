"""An output of a multi-way join: its members and their importance, for any device."""

from __future__ import annotations

from typing import Any

from gpu_kernels.combine import MEAN, SUM, combined
from gpu_kernels.multiway.predicates import Array
from gpu_kernels.multiway.walk import MEMBER
from gpu_kernels.portable import portable


@portable
def write_members(
    order: Array, stack: Array, stream: int, place: int, last: int, members: Array
) -> None:
    """Write the members of an output, by stream.

    Parameters
    ----------
    order : (hops,) int64
        Streams in the join order of the direction.
    stack : (4 or more, 8) int64
        Its row `MEMBER` holds the members of all hops but the last.
    stream, place : int
        Of the tuple that walks.
    last : int
        Place of the member of the last hop.
    members : (m,) int64
        Written.
    """
    members[stream] = place
    for hop in range(order.size - 1):
        members[order[hop]] = stack[MEMBER, hop]
    members[order[order.size - 1]] = last


@portable
def importance_of(combine: int, importance: Array, members: Array, number: int) -> Any:  # noqa: ANN401 - a float
    """Return the importance of an output, folded in the streams' order (contract, section 1).

    Parameters
    ----------
    combine : int
        Index among `gpu_kernels.combine.COMBINES`.
    importance : (n,) float64
        By place.
    members : (m,) int64
        Places, by stream.
    number : int
        m.
    """
    step = SUM if combine == MEAN else combine
    value = importance[members[0]]
    for stream in range(1, number):
        value = combined(step, value, importance[members[stream]])
    return value / number if combine == MEAN else value
