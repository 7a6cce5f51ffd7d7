"""What an exact multi-way join demands of what it is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.multiway.exact.spans import rises
from engine.multiway.predicate import GRAPHS, Predicate
from engine.multiway.streams import MOST_STREAMS, MultiStreams, Windows
from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints


def check_top(predicate: Predicate, top: int | None, *, clique: bool) -> None:
    """Raise `SpecError` if a join has no best matches, or not so many."""
    if top is None:
        return
    if top < 1:
        raise SpecError(f"--top {top} must be 1 or more")
    if not predicate.scored:
        raise SpecError(
            f"--top {top} asks for the best scores, and predicate {predicate.text} has none: "
            "choose cosine, distance, or inner on dense vectors"
        )
    if clique:
        raise SpecError(
            f"--top {top} is of an output's latest tuple, and in a clique of 3 streams or more the "
            "others must match too: give --join-graph star"
        )


def check_join(streams: MultiStreams, windows: Windows, graph: str) -> None:
    """Raise `SpecError` if streams, windows and graph make no join, or a stream is out of order."""
    if graph not in GRAPHS:
        raise SpecError(f"graph {graph!r} must be one of {', '.join(GRAPHS)}")
    if not 2 <= streams.number <= MOST_STREAMS:
        raise SpecError(f"{streams.number} streams cannot be joined: give 2 to {MOST_STREAMS}")
    if windows.size.size != streams.number:
        raise SpecError(
            f"{windows.size.size} windows do not go with {streams.number} streams: give one each"
        )
    for stream in range(streams.number):
        if not rises(streams.ts[streams.part(stream)]):
            raise SpecError(f"ts of stream {stream} decreases; sort it by (ts, row)")


def checked_orders(orders: Sequence[Sequence[int]] | None, sides: int) -> Ints:
    """Return the join orders as an array; no columns if none are given."""
    if orders is None:
        return np.zeros((sides, 0), np.int64)
    given = [list(order) for order in orders]
    if len(given) != sides or any(
        sorted(order) != [other for other in range(sides) if other != side]
        for side, order in enumerate(given)
    ):
        raise SpecError(f"orders {given} must name for each of {sides} streams all others once")
    return np.array(given, np.int64)
