"""Streams of dense vectors that are hard to join, and their joins' rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import naive_vectors as oracle
import numpy as np
from naive_multijoin import Tuple

from engine.multiway.exact import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows, no_attributes
from engine.runtime.jit import Floats

KINDS = ("cosine", "inner", "distance")


def predicate_of(kind: str, bound: float, equal: tuple[str, ...] = ()) -> Predicate:
    """Return one of a column of dense vectors."""
    return Predicate(kind, ("v",), bound, equal=equal, dense=True)


def plain(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return what is not hard."""
    return rng.standard_normal(shape)


def coarse(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return many equal scores, and scores that float32 has exactly."""
    found = rng.integers(-2, 3, shape) / 2.0
    found[:, 0] += 0.25
    return found


def close(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return vectors a hair apart, whose scores differ by less than float32 tells apart."""
    return rng.standard_normal(shape[1]) + 1e-6 * rng.standard_normal(shape)


def offset(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return data far from 0: distances by norms cancel."""
    return 1e6 + rng.standard_normal(shape)


def wide(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return lengths over 60 orders of magnitude."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-30, 30, (shape[0], 1))


def mixed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return elements of one vector over 40 orders of magnitude, and zeros."""
    found = rng.standard_normal(shape) * 10.0 ** rng.uniform(-20, 20, shape)
    found[rng.random(shape) < 0.2] = 0.0
    found[:, -1] = 1.0
    return found


def huge(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return lengths whose products overflow float64 here and there."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(140, 160, (shape[0], 1))


def tiny(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return lengths whose products are subnormal or 0."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-170, -150, (shape[0], 1))


Make = Callable[[np.random.Generator, tuple[int, int]], Floats]
DATA: dict[str, Make] = {
    own.__name__: own for own in (plain, coarse, close, offset, wide, mixed, huge, tiny)
}


def streams_of(sizes: tuple[int, ...], value: Floats, seed: int, codes: int = 0) -> MultiStreams:
    """Return streams of so many tuples in 25 ticks, with one of so many codes each."""
    rng = np.random.default_rng(seed)
    ts = np.concatenate([np.sort(rng.integers(0, 25, size)) for size in sizes])
    n = sum(sizes)
    return MultiStreams(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), ts.astype(np.int64),
        np.concatenate([np.arange(size) for size in sizes]).astype(np.int64),
        rng.integers(1, 5, n) / 2.0,
        no_attributes(n)._replace(value=value, code=rng.integers(0, codes, n * bool(codes))),
    )  # fmt: skip


def tuples(streams: MultiStreams) -> list[list[Tuple]]:
    """Return the streams as the oracle takes them."""
    own = streams.attributes
    found = []
    for stream in range(streams.number):
        part = streams.part(stream)
        vectors: list[Any] = [tuple(cells) for cells in own.value[part].tolist()]
        if own.code.size:
            vectors = list(zip(own.code[part].tolist(), vectors, strict=True))
        columns = streams.ts[part].tolist(), vectors, streams.importance[part].tolist()
        found.append([
            Tuple(ts, row, cells, importance)
            for row, (ts, cells, importance) in enumerate(zip(*columns, strict=True))
        ])  # fmt: skip
    return found


def given(windows: Windows) -> list[tuple[str, int]]:
    """Return the windows as the oracle takes them."""
    return [
        ("rows" if by_rows else "ticks", int(size))
        for size, by_rows in zip(windows.size, windows.by_rows, strict=True)
    ]


def rows_of(join: ExactJoin, streams: MultiStreams) -> list[tuple[tuple[int, ...], int, float]]:
    """Return rows, ts and importance of all outputs, in order."""
    found = []
    for chunk in join.outputs(7):
        members = (chunk.members - streams.first[:-1]).tolist()
        columns = map(tuple, members), chunk.ts.tolist(), chunk.importance.tolist()
        found += list(zip(*columns, strict=True))
    assert join.count().outputs == len(found)
    return sorted(found, key=lambda out: (out[1], out[0]))


def with_direction(kind: str, value: Floats) -> Floats:
    """Return data of which the definition leaves nothing out."""
    ok = [oracle.vector_of(kind, cells) is not None for cells in value.tolist()]
    value[~np.array(ok)] = 1.0
    return value
