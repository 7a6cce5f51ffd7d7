"""The oracle of joins on dense vectors: scores by definition, what joins nothing, the best K.

It imports nothing of ours and nothing beyond the standard library. Vectors are tuples of Python
floats; every operation rounds by itself, in index order. `naive_multijoin.exact` takes the
predicates, `top` goes on from its definition of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import naive_multijoin as naive
from naive_multijoin import Member, Output, Tuple, Window

Vector = tuple[float, ...]
Score = Callable[[Vector, Vector], float]

LEAST_SQUARE, MOST_SQUARE = 2.0**-960, 2.0**1000
"""Of the sum of squares of a vector that has a direction."""


def dot(a: Vector, b: Vector) -> float:
    """Return the sum, in index order, of the products."""
    s = 0.0
    for x, y in zip(a, b, strict=True):
        s = s + x * y
    return s


def square(a: Vector, b: Vector) -> float:
    """Return the sum, in index order, of the squared differences."""
    s = 0.0
    for x, y in zip(a, b, strict=True):
        s = s + (x - y) * (x - y)
    return s


def cosine(a: Vector, b: Vector) -> float:
    """Return the inner product over the product of the lengths."""
    return dot(a, b) / (math.sqrt(dot(a, a)) * math.sqrt(dot(b, b)))


SCORES: dict[str, Score] = {"inner": dot, "cosine": cosine, "distance": square}


def meets(kind: str, bound: float) -> naive.Meets:
    """Return the predicate."""
    score = SCORES[kind]
    if kind == "distance":
        return lambda a, b: score(a, b) <= bound * bound
    return lambda a, b: score(a, b) >= bound


def keyed(predicate: naive.Meets) -> naive.Meets:
    """Return the predicate on (code, vector) whose codes must be equal as well."""
    return lambda a, b: bool(a[0] == b[0]) and predicate(a[1], b[1])


def vector_of(kind: str, cells: Sequence[Any] | None) -> Vector | None:
    """Return a cell's vector; None for one that joins nothing.

    That is one that is null, has a null, NaN or infinite element, or, for a cosine, has no
    direction.
    """
    if cells is None or any(x is None or not math.isfinite(x) for x in cells):
        return None
    vector = tuple(map(float, cells))
    if kind == "cosine" and not LEAST_SQUARE <= dot(vector, vector) <= MOST_SQUARE:
        return None
    return vector


def top(
    streams: Sequence[Sequence[Tuple]], windows: Sequence[Window], predicate: naive.Meets,
    score: Callable[[Any, Any], float], k: int, combine: str = "min",
) -> list[Output]:  # fmt: skip
    """Return the outputs of a star's best matches: every latest tuple with k at most a stream.

    Parameters
    ----------
    streams, windows, predicate, combine
        As of `naive_multijoin.exact`.
    score : callable
        Of two tuples' values; the greatest are the best. Of equal ones the first to arrive are.
    """
    arrivals = naive.arrivals_of(streams)
    parts = [[u for u in arrivals if u.stream == i] for i in range(len(streams))]
    outputs = []
    for latest in arrivals:
        lists = [
            [latest] if i == latest.stream else _best(latest, part, windows[i], predicate, score, k)
            for i, part in enumerate(parts)
        ]
        outputs += [naive.output_of(members, combine) for members in product(*lists)]
    return sorted(outputs, key=lambda out: (out[1], out[0]))


def _best(
    latest: Member, part: list[Member], window: Window, predicate: naive.Meets,
    score: Callable[[Any, Any], float], k: int,
) -> list[Member]:  # fmt: skip
    earlier = [u for u in part if naive.arrival(u) < naive.arrival(latest)]
    kind, size = window
    if kind == "rows":
        reached = earlier[max(0, len(earlier) - size) :]
    else:
        reached = [u for u in earlier if latest.ts - u.ts <= size]
    matches = [u for u in reached if naive.pair_meets(predicate, u, latest)]
    return sorted(matches, key=lambda u: (-score(u.value, latest.value), naive.arrival(u)))[:k]
