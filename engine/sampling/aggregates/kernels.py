"""Compiled sums of clusters, pane by pane and window by window (P5 4.3).

A cluster's sampled outputs come in order of time, with values y_j and inclusion probabilities p_j
that do not increase. Its share of the estimated variance is the sum over j, k of
``y_j y_k (1 / p_earlier - 1) / p_later``: with A the sum of ``y_j (1 / p_j - 1)`` over the outputs
before k, each output adds ``2 A y_k / p_k + y_k^2 (1 / p_k - 1) / p_k``. Two spans of time of one
cluster merge by ``V = V' + V'' + 2 A' S''``; the same holds for two values, bilinear.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Floats, Ints, jit, kernel
from engine.sampling.aggregates import layout as at
from engine.sampling.aggregates.layout import ClusterSlots, Partials, Results, SampledRows
from engine.sampling.aggregates.units import (
    add_sums,
    copy_row,
    raise_to,
    shift_cluster,
    standing,
)

DONE, MORE_PARTIALS, MORE_RESULTS = range(3)
PARTIALS, BEGIN, RESULTS, PANE, WINDOW, ROW, OPEN = range(7)
"""Fields of the progress: partials written, the first of an open window, results written, the
current pane, the next window to close, the next row, the first result of an open window."""
PROGRESS_FIELDS = 7
NO_PANE = np.iinfo(np.int64).min


@kernel
def add_output(s: Floats, i: int, y: float, w: float) -> None:
    """Add an output to its cluster's sums."""
    z = y * w
    b = y * (w - 1.0)
    d = w - 1.0
    s[i, at.C_VYY] += 2.0 * z * s[i, at.C_AY] + z * b
    s[i, at.C_VY1] += z * s[i, at.C_A1] + w * s[i, at.C_AY] + z * d
    s[i, at.C_V11] += 2.0 * w * s[i, at.C_A1] + w * d
    s[i, at.C_AY] += b
    s[i, at.C_A1] += d
    s[i, at.C_SY] += z
    s[i, at.C_S1] += w
    s[i, at.C_SEEN] += y
    s[i, at.C_SIZE] += abs(y)
    s[i, at.C_ROWS] += 1.0


@kernel
def merge(m: Floats, i: int, s: Floats, j: int) -> None:
    """Add a later span of time of one cluster, which is scratch, to the spans before it."""
    if s[j, at.C_ROWS] == 0.0:
        return
    if m[i, at.C_ROWS] == 0.0:
        copy_row(m, i, s, j)
        return
    shift_cluster(s, j, m[i, at.SHIFT])
    raise_to(m, i, s[j, at.LEVEL], at.C_DEGREES)
    raise_to(s, j, m[i, at.LEVEL], at.C_DEGREES)
    m[i, at.C_VYY] += s[j, at.C_VYY] + 2.0 * m[i, at.C_AY] * s[j, at.C_SY]
    m[i, at.C_VY1] += s[j, at.C_VY1] + m[i, at.C_AY] * s[j, at.C_S1] + m[i, at.C_A1] * s[j, at.C_SY]
    m[i, at.C_V11] += s[j, at.C_V11] + 2.0 * m[i, at.C_A1] * s[j, at.C_S1]
    m[i, at.C_AY] += s[j, at.C_AY]
    m[i, at.C_A1] += s[j, at.C_A1]
    m[i, at.C_SY] += s[j, at.C_SY]
    m[i, at.C_S1] += s[j, at.C_S1]
    m[i, at.C_SEEN] += s[j, at.C_SEEN]
    m[i, at.C_SIZE] += s[j, at.C_SIZE]
    m[i, at.C_ROWS] += s[j, at.C_ROWS]


@kernel
def fold(r: Floats, i: int, sy: float, s1: float, vyy: float, vy1: float, v11: float) -> None:
    """Add a whole cluster to the sums of its window and group."""
    r[i, at.S_Y] += sy
    r[i, at.S_1] += s1
    if v11 == 0.0:
        return
    r[i, at.V_YY] += vyy
    r[i, at.V_Y1] += vy1
    r[i, at.V_11] += v11
    r[i, at.YY_YY] += vyy * vyy
    r[i, at.YY_Y1] += vyy * vy1
    r[i, at.YY_11] += vyy * v11
    r[i, at.Y1_Y1] += vy1 * vy1
    r[i, at.Y1_11] += vy1 * v11
    r[i, at.C11_11] += v11 * v11
    q = v11 / (s1 * s1)
    r[i, at.SQUARES_1] += s1 * s1
    third = sy * vyy
    once = s1 * vyy + 2.0 * sy * vy1
    twice = 2.0 * s1 * vy1 + sy * v11
    thrice = s1 * v11
    r[i, at.THIRD] += third
    r[i, at.THIRD + 1] += once
    r[i, at.THIRD + 2] += twice
    r[i, at.THIRD + 3] += thrice
    r[i, at.COV] += q * third
    r[i, at.COV + 1] += q * once
    r[i, at.COV + 2] += q * twice
    r[i, at.COV + 3] += q * thrice
    r[i, at.CHANCE] += q
    r[i, at.RANDOM_V] += q * vyy
    r[i, at.RANDOM_SIZE] += q * abs(sy)
    r[i, at.RANDOM_Y] += q * sy


@kernel
def fold_cluster(r: Floats, i: int, s: Floats, j: int, counted: bool) -> None:
    """Add a whole cluster, which is scratch, to the sums of its window and group."""
    if s[j, at.C_ROWS] == 0.0:
        return
    if r[i, at.ROWS] == 0.0:
        r[i, at.SHIFT] = s[j, at.SHIFT]
    shift_cluster(s, j, r[i, at.SHIFT])
    raise_to(r, i, s[j, at.LEVEL], at.DEGREES)
    raise_to(s, j, r[i, at.LEVEL], at.C_DEGREES)
    fold(
        r, i, s[j, at.C_SY], s[j, at.C_S1], s[j, at.C_VYY], s[j, at.C_VY1], s[j, at.C_V11]
    )  # fmt: skip
    r[i, at.SEEN] += s[j, at.C_SEEN]
    r[i, at.SEEN_SIZE] += s[j, at.C_SIZE]
    r[i, at.ROWS] += s[j, at.C_ROWS]
    if counted:
        r[i, at.CLUSTERS] += 1.0


@kernel
def result_row(results: Results, window: int, group: int, n: int) -> tuple[int, int]:
    """Return the row of a group in a window, and how many rows there are now."""
    row = results.of_group[group]
    if row < 0:
        row = n
        results.of_group[group] = row
        results.window[row] = window
        results.group[row] = group
        for c in range(results.sums.shape[1]):
            results.sums[row, c] = 0.0
        n += 1
    return row, n


def _close(
    window: int, begin: int, end: int, partials: Partials, slots: ClusterSlots, results: Results,
    first: int, n: int, independent: bool,
) -> int:  # fmt: skip
    """Write a window's groups from the partials of its panes; return how many results there are.

    Those from `first` on are of this window. What is no cluster comes last, as it does where others
    have been folded before (`fold_complete`).
    """
    touched = 0
    for i in range(begin, end):
        slot = partials.slot[i]
        copy_row(partials.merged, touched, partials.sums, i)
        if independent:
            row, n = result_row(results, window, slot, n)
            add_sums(results.sums, row, partials.merged, touched)
            continue
        m = slots.touched[slot]
        if m < 0:
            slots.touched[slot] = touched
            partials.order[touched] = slot
            touched += 1
        else:
            merge(partials.merged, m, partials.merged, touched)
    for counted in (True, False):
        for m in range(touched):
            slot = partials.order[m]
            if slots.counted[slot] == counted:
                slots.touched[slot] = -1
                row, n = result_row(results, window, slots.group[slot], n)
                fold_cluster(results.sums, row, partials.merged, m, counted)
    for row in range(first, n):
        results.of_group[results.group[row]] = -1
    return n


close_window = kernel(_close)


@kernel
def _move(partials: Partials, slots: ClusterSlots, i: int, to: int) -> None:
    partials.pane[to] = partials.pane[i]
    partials.slot[to] = partials.slot[i]
    copy_row(partials.sums, to, partials.sums, i)
    slots.partial[partials.slot[to]] = to


@jit
def fold_complete(
    partials: Partials, slots: ClusterSlots, results: Results, progress: Ints, end: int
) -> None:
    """Fold the clusters of partials before `end`, which are complete, into the open window.

    It must be a window of one pane. There must be room for the results.
    """
    begin, written = progress[BEGIN], progress[RESULTS]
    held = begin
    for i in range(begin, end):
        slot = partials.slot[i]
        if slots.counted[slot]:
            copy_row(partials.merged, 0, partials.sums, i)
            row, written = result_row(results, progress[PANE], slots.group[slot], written)
            fold_cluster(results.sums, row, partials.merged, 0, True)
        else:  # never complete
            _move(partials, slots, i, held)
            held += 1
    for i in range(held - 1, begin - 1, -1):
        _move(partials, slots, i, i + end - held)
    progress[BEGIN], progress[RESULTS] = begin + end - held, written


@kernel
def partial_of(slot: int, pane: int, partials: Partials, slots: ClusterSlots, n: int) -> int:
    """Return where the sums of a slot in this pane stand, -1 if there is no room for them."""
    if slots.pane[slot] == pane:
        return int(slots.partial[slot])
    if n == partials.pane.size:
        return -1
    slots.pane[slot] = pane
    slots.partial[slot] = n
    partials.pane[n] = pane
    partials.slot[n] = slot
    for c in range(partials.sums.shape[1]):
        partials.sums[n, c] = 0.0
    return n


@kernel
def add_row(
    rows: SampledRows, i: int, partials: Partials, j: int, average: bool, independent: bool
) -> None:
    """Add an output to its partial."""
    if not rows.valid[i]:
        return
    s, y, w = partials.sums, rows.value[i], rows.weight[i]
    if independent:
        c = (w - 1.0) * w
        y = standing(s, j, y, average and s[j, at.ROWS] == 0.0, at.DEGREES)
        fold(s, j, y * w, w, y * y * c, y * c, c)
        s[j, at.SEEN] += y
        s[j, at.SEEN_SIZE] += abs(y)
        s[j, at.ROWS] += 1.0
        s[j, at.CLUSTERS] += 1.0
    else:
        y = standing(s, j, y, average and s[j, at.C_ROWS] == 0.0, at.C_DEGREES)
        add_output(s, j, y, w)


@jit
def drive(
    rows: SampledRows, partials: Partials, slots: ClusterSlots, results: Results,
    progress: Ints, a_window: int, average: bool, independent: bool, flush: bool,
) -> int:  # fmt: skip
    """Add rows, closing every window that is past; with `flush` all windows at the end.

    Returns
    -------
    int
        `DONE`, or what there must be more room for before the call is made again.
    """
    n, begin, written = progress[PARTIALS], progress[BEGIN], progress[RESULTS]
    pane, window, i, opened = progress[PANE], progress[WINDOW], progress[ROW], progress[OPEN]
    status = DONE
    while i < rows.pane.size or (flush and begin < n):
        following = rows.pane[i] if i < rows.pane.size else pane + a_window
        if pane == NO_PANE:
            pane = following
            window = pane - a_window + 1
        if following != pane:
            while window <= min(following - a_window, pane):
                while begin < n and partials.pane[begin] < window:
                    begin += 1
                if written + n - begin > results.window.size:
                    status = MORE_RESULTS
                    break
                written = close_window(
                    window, begin, n, partials, slots, results, opened, written, independent
                )
                opened = written
                window += 1
            if status != DONE:
                break
            pane = following
            window = pane - a_window + 1
            while begin < n and partials.pane[begin] < window:
                begin += 1
            continue
        j = partial_of(rows.slot[i], pane, partials, slots, n)
        if j < 0:
            status = MORE_PARTIALS
            break
        n = max(n, j + 1)
        add_row(rows, i, partials, j, average, independent)
        i += 1
    progress[PARTIALS], progress[BEGIN], progress[RESULTS] = n, begin, written
    progress[PANE], progress[WINDOW], progress[ROW], progress[OPEN] = pane, window, i, opened
    return status
