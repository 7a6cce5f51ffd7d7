"""The runs of tuples that a tuple's walk goes through, for the CPU, the GPU and the simulator."""

from __future__ import annotations

from gpu_kernels.multiway.predicates import Array
from gpu_kernels.multiway.walk import first_at_or_after
from gpu_kernels.portable import portable


@portable
def find_runs(
    now: int,
    stream: int,
    order: Array,
    runs: Array,
    youngest: Array,
    oldest: Array,
    size: Array,
    first: Array,
    gone: Array,
    admitted: Array,
    times: Array,
    bounds: Array,
) -> None:
    """Write where each run of a direction begins and ends for a tuple.

    Parameters
    ----------
    now : int
        The tuple's time.
    stream : int
        The direction.
    order : (hops,) int64
        Streams in its join order.
    runs : (hops + 1,) int64
        Where each hop's runs begin in `youngest` and `oldest`.
    youngest, oldest : (runs,) int64
        Ages ``youngest <= age < oldest``, in ticks.
    size : (m,) int64
        W of each stream, in ticks.
    first, gone, admitted : (m,) int64
        Where each stream's admitted tuples begin in `times`; how many of them are removed for
        good, the oldest; how many there are.
    times : (n,) int64
        Arrival times of admitted tuples.
    bounds : (runs of the direction, 2) int64
        Written, the direction's first run at 0.
    """
    at = 0
    for hop in range(order.size):
        other = order[hop]
        low = first[other] + gone[other]
        high = first[other] + admitted[other]
        # of equal times, those of the streams before came before
        behind = now + 1 if other < stream else now
        high = first_at_or_after(times, low, high, behind)
        low = first_at_or_after(times, low, high, now - size[other])
        for run in range(runs[hop], runs[hop + 1]):
            begin = first_at_or_after(times, low, high, now - oldest[run] + 1)
            bounds[at, 0] = begin
            bounds[at, 1] = first_at_or_after(times, begin, high, now - youngest[run] + 1)
            at += 1
