"""Compiled code of the join of dense vectors: from proposals to pairs, from pairs to lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.multiway.exact.layout import Narrow, SlicePart
from engine.multiway.exact.screen import Screen, Singles
from engine.runtime.bits import WORD, lowest, reaching
from engine.runtime.jit import Floats, Integer, Ints, Records, jit, kernel
from gpu_kernels.multiway.predicates import COSINE, DISTANCE, DOT, dot, squared_distance
from gpu_kernels.multiway.walk import first_at_or_after


@kernel
def _score(screen: Screen, value: Floats, a: Integer, b: Integer) -> Any:  # noqa: ANN401 - numba's
    """Return the score of two places: of distance the square."""
    if screen.kind == DISTANCE:
        return squared_distance(value, a, b)
    if screen.kind == COSINE:
        return dot(value, a, b) / (screen.length[a] * screen.length[b])
    return dot(value, a, b)


@kernel
def _passes(screen: Screen, score: Records) -> bool:
    return score <= screen.bound if screen.kind == DISTANCE else score >= screen.bound


@kernel
def _sure(screen: Screen, a: Integer, b: Integer) -> Any:  # noqa: ANN401 - numba's
    """Return the least proposal of two places that matches for sure."""
    if screen.kind == DOT:
        return screen.sure + screen.margin * (screen.size[a] * screen.size[b])
    return screen.sure + screen.margin * (screen.size[a] + screen.size[b])


@kernel
def _decided(
    screen: Screen, value: Floats, proposal: Records, place: Integer, other: Integer
) -> bool:
    """Return whether two places match, as proposed."""
    if proposal >= _sure(screen, place, other):
        return True
    return _passes(screen, _score(screen, value, place, other))


@jit
def compacted(
    screen: Screen, value: Floats, tile: Singles, rows: Narrow, columns: Narrow, low: Ints,
    high: Ints, shift: Ints, pairs: Narrow, used: Integer,
) -> Integer:  # fmt: skip
    """Write the pairs of a tile that match, and return how many are used then.

    Parameters
    ----------
    tile : (rows, columns) float32
        Proposals.
    rows, columns : (r,), (c,) int32
        Numbers, columns ascending.
    low, high : (r,) int64
        Which numbers each row has in reach.
    shift : (2,) int64
        Place minus number, of rows and columns.
    pairs : (room, 2) int32
        With room for all of the tile.
    """
    for i in range(rows.size):
        begin = first_at_or_after(columns, 0, columns.size, low[i])
        end = first_at_or_after(columns, 0, columns.size, high[i])
        own = rows[i]
        place = own + shift[0]
        row = tile[i, begin:end]
        for j in range(0, row.size, WORD):
            if row.size - j >= WORD:
                bits = reaching(row, j, screen.low)
            else:
                bits = np.uint64(0)
                for k in range(j, row.size):
                    bits |= np.uint64(row[k] >= screen.low) << np.uint64(k - j)
            while bits != 0:
                k = j + lowest(bits)
                bits &= bits - np.uint64(1)
                number = columns[begin + k]
                if _decided(screen, value, row[k], place, number + shift[1]):
                    pairs[used, 0], pairs[used, 1] = own, number
                    used += 1
    return used


@jit
def tried(
    screen: Screen, value: Floats, rows: Narrow, columns: Narrow, low: Ints, high: Ints,
    shift: Ints, pairs: Narrow, used: Integer,
) -> Integer:  # fmt: skip
    """Decide all pairs of rows and columns without proposals, as `compacted` does."""
    for i in range(rows.size):
        place = rows[i] + shift[0]
        for j in range(columns.size):
            number = columns[j]
            if low[i] <= number < high[i]:
                pairs[used, 0], pairs[used, 1] = rows[i], number
                score = _score(screen, value, place, number + shift[1])
                used += np.int64(_passes(screen, score))
    return used


@jit
def scores(kind: int, length: Floats, value: Floats, left: Ints, right: Ints) -> Floats:
    """Return the scores of pairs of places, of distance the squares: (n,) float64.

    Four at a time: each is a sum in index order, in which every addition waits for the last.
    """
    found = np.empty(left.size)
    for i in range(0, left.size, 4):
        last = left.size - 1
        j, k, m = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a, b, c, d = left[i], left[j], left[k], left[m]
        e, f, g, h = right[i], right[j], right[k], right[m]
        p = q = r = s = 0.0
        if kind == DISTANCE:
            for n in range(value.shape[1]):
                w, x = value[a, n] - value[e, n], value[b, n] - value[f, n]
                y, z = value[c, n] - value[g, n], value[d, n] - value[h, n]
                p, q, r, s = p + w * w, q + x * x, r + y * y, s + z * z
        else:
            for n in range(value.shape[1]):
                p = p + value[a, n] * value[e, n]
                q = q + value[b, n] * value[f, n]
                r = r + value[c, n] * value[g, n]
                s = s + value[d, n] * value[h, n]
        if kind == COSINE:
            p, q = p / (length[a] * length[e]), q / (length[b] * length[f])
            r, s = r / (length[c] * length[g]), s / (length[d] * length[h])
        found[i], found[j], found[k], found[m] = p, q, r, s
    return found


@jit
def by_row(pairs: Narrow, first: int, ends: Ints, out: Narrow) -> None:
    """Sort pairs by row, stably: write the columns, and where those of each row end.

    Parameters
    ----------
    ends : (rows + 1,) int64
        Zeros.
    """
    for i in range(pairs.shape[0]):
        ends[pairs[i, 0] - first + 1] += 1
    for row in range(1, ends.size):
        ends[row] += ends[row - 1]
    at = ends[:-1].copy()
    for i in range(pairs.shape[0]):
        row = pairs[i, 0] - first
        out[at[row]] = pairs[i, 1]
        at[row] += 1


@jit
def best(score: Floats, ends: Ints, most: int) -> NDArray[np.bool_]:
    """Return which entries are among the greatest `most` of their row; of equal ones the first."""
    kept = np.ones(score.size, np.bool_)
    for row in range(ends.size - 1):
        begin, end = ends[row], ends[row + 1]
        if end - begin > most:
            order = np.argsort(-score[begin:end], kind="mergesort")
            for i in range(most, end - begin):
                kept[begin + order[i]] = False
    return kept


@jit
def importance_of(
    number: Narrow, ends: Narrow, part: SlicePart, importance: Floats, out: Floats
) -> None:
    """Write the importance of every match."""
    for k in range(ends.shape[0]):
        for other in range(ends.shape[1]):
            for entry in range(ends[k, other, 0], ends[k, other, 1]):
                out[entry] = importance[number[entry] + part.shift[other]]
