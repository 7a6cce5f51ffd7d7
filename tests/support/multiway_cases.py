"""Random streams of multi-way joins, for the tests of every algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import naive_multijoin as oracle
import naive_vectors as vectors
import numpy as np

from engine.multiway.loops.layout import room
from engine.multiway.loops.method import Buckets, LoopsSettings
from engine.multiway.loops.run import LoopsCounters, LoopsRun
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes, MultiStreams, Windows
from engine.runtime.jit import Floats, Ints

PREDICATES = {
    "equi": Predicate("equi", ("k",)),
    "band": Predicate("band", ("v",), 1.0),
    "distance": Predicate("distance", ("x", "y"), 1.5),
    "inner": Predicate("inner", ("words",), 2.0),
    "theta": Predicate("theta", ("v",), 0.0, lambda a, b: a[0] < b[0] + 1.0, "rises"),
    "cosine": Predicate("cosine", ("v",), 0.8),
    "dense": Predicate("inner", ("v",), 4.0, dense=True),
    "keyed": Predicate("cosine", ("v",), 0.7, equal=("k",)),
}
MEETS: dict[str, Callable[[Any, Any], bool]] = {
    "equi": oracle.equi(),
    "band": oracle.band(1.0),
    "distance": oracle.distance(1.5),
    "inner": oracle.inner(2.0),
    "theta": lambda a, b: bool(a[0] < b[0] + 1.0),
    "cosine": vectors.meets("cosine", 0.8),
    "dense": vectors.meets("inner", 4.0),
    "keyed": vectors.keyed(vectors.meets("cosine", 0.7)),
}
"""The same of the oracle."""


def random_streams(
    seed: int, sizes: Sequence[int], kind: str, *, span: int = 60, distinct: int = 4
) -> MultiStreams:
    """Return streams with ties in time, in values and in importance.

    Parameters
    ----------
    sizes : sequence of int
        Tuples of each stream; 0 is possible.
    kind : str
        Of the predicate: what the attributes are for.
    span : int
        Times are from 0 to `span`.
    distinct : int
        Attributes (each coordinate, each item) take so many values, in halves.
    """
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    ts = np.concatenate([np.sort(rng.integers(0, span + 1, size)) for size in sizes])
    row = np.concatenate([np.arange(size) for size in sizes]).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    width = {"band": 1, "distance": 2, "theta": 1, "cosine": 3, "dense": 3, "keyed": 3}.get(kind, 0)
    value = rng.integers(0, distinct * 2, (n, width)) / 2.0
    if width == 3:
        value[:, 1] += 0.5  # no vector is 0
    counts = rng.integers(0, 4, n) if kind == "inner" else np.zeros(n, np.int64)
    items = [np.sort(rng.choice(distinct + 3, size, replace=False)) for size in counts]
    attributes = Attributes(
        rng.integers(0, distinct, n) if kind in ("equi", "keyed") else np.zeros(0, np.int64),
        value if width else np.zeros((0, 1)),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *items]).astype(np.int64),
        rng.integers(1, 4, int(counts.sum())) / 2.0,
    )
    importance = rng.integers(0, 5, n) / 2.0
    return MultiStreams(first, ts.astype(np.int64), row, importance, attributes)


def values(streams: MultiStreams, kind: str) -> list[list[object]]:
    """Return every stream's attributes as plain Python objects, as the oracles take them."""
    found: list[list[object]] = []
    own = streams.attributes
    for stream in range(streams.number):
        here: list[object] = []
        for place in range(*streams.part(stream).indices(streams.ts.size)):
            if kind == "equi":
                here.append(int(own.code[place]))
            elif kind == "inner":
                span = slice(own.first[place], own.first[place + 1])
                here.append(
                    dict(zip(own.item[span].tolist(), own.weight[span].tolist(), strict=True))
                )
            else:
                at = tuple(own.value[place].tolist())
                keyed = (int(own.code[place]), at) if kind == "keyed" else at
                here.append(at[0] if kind == "band" else keyed)
        found.append(here)
    return found


class LoopsResult(NamedTuple):
    """All outputs of a run, in the order found.

    Attributes
    ----------
    members : (r, m) int64
        Places.
    ts : (r,) int64
    importance : (r,) float64
    counters : LoopsCounters
    """

    members: Ints
    ts: Ints
    importance: Floats
    counters: LoopsCounters


def run_method(
    streams: MultiStreams,
    windows: Windows,
    predicate: Predicate,
    *,
    graph: str = "clique",
    method: str,
    order: Sequence[int] | None = None,
    orders: Sequence[Sequence[int]] | None = None,
    tau: int | None = None,
    expire_every: int = 0,
    buckets: Buckets = None,
    combine: str = "min",
    start_ts: int | None = None,
    emit: bool = True,
) -> LoopsResult:
    """Join streams by an algorithm of P3, all outputs at once."""
    settings = LoopsSettings(method, graph, order, orders, tau, expire_every, buckets)
    run = LoopsRun(
        streams, windows, predicate, settings, combine=combine, start_ts=start_ts, emit=emit
    )
    none = room(0, streams.number)
    members, ts, importance = [none.members], [none.ts], [none.importance]
    for part in run.parts():
        members.append(part.members.copy())
        ts.append(part.ts.copy())
        importance.append(part.importance.copy())
    return LoopsResult(
        np.concatenate(members), np.concatenate(ts), np.concatenate(importance), run.counters
    )
