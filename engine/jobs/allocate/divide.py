"""ALLOC and PROP: a memory divided over several joins (P5 5, 6.2.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

HALVINGS = 100
"""Of the common level: more than a float64 between 0 and 1 has digits."""

Need = Callable[[float], float]
"""Memory that a join needs at a common level: 0 at 0, non-decreasing, least for exact at 1."""


def alloc(needs: Sequence[Need], memory: float) -> tuple[float, list[float]]:
    """Return the greatest common level whose needs fit in the memory, and those needs.

    Parameters
    ----------
    needs : sequence of callable
        One a join. P5's f_i(w_i q) as a function of a level that is the same for all.
    memory : float
        Tuples of all joins together.

    Returns
    -------
    (level, memory of each join)
        Level 1 where all needs fit.

    Notes
    -----
    By theorem 5.1 the least quality is greatest where all are equal. O(joins) calls a halving.

    Examples
    --------
    A join that needs three times as much for the same recall gets three times as much:

    >>> level, shares = alloc([lambda q: 100 * q, lambda q: 300 * q], 200)
    >>> round(level, 9), [round(share, 6) for share in shares]
    (0.5, [50.0, 150.0])
    """
    low, high = 0.0, 1.0
    if sum(need(high) for need in needs) <= memory:
        low = high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if sum(need(middle) for need in needs) <= memory:
            low = middle
        else:
            high = middle
    return low, [need(low) for need in needs]


def prop(peaks: Sequence[int], memory: float) -> list[float]:
    """Return the memory of each join in proportion to what its exact join needs.

    Examples
    --------
    >>> prop([100, 300], 200), prop([100, 300], 4000)
    ([50.0, 150.0], [100.0, 300.0])
    """
    total = sum(peaks)
    part = min(1.0, memory / total) if total else 1.0
    return [part * peak for peak in peaks]


def filled(parts: Sequence[float], peaks: Sequence[int], memory: float) -> list[float]:
    """Return the parts with what is left of the memory added, as far as it is of any use.

    Parameters
    ----------
    parts : sequence of float
        Their sum is at most `memory`.
    peaks : sequence of int
        Beyond which a part gains nothing; the rest is given in proportion to what is short of them.

    Examples
    --------
    >>> filled([10.0, 20.0], [40, 30], 46.0), filled([10.0, 20.0], [40, 30], 99.0)
    ([22.0, 24.0], [40.0, 30.0])
    """
    short = [max(0.0, peak - part) for part, peak in zip(parts, peaks, strict=True)]
    total, left = sum(short), max(0.0, memory - sum(parts))
    share = min(1.0, left / total) if total else 0.0
    return [part + share * lack for part, lack in zip(parts, short, strict=True)]


def whole(parts: Sequence[float], memory: int) -> list[int]:
    """Return the parts as whole tuples by largest remainder, together at most `memory`.

    Examples
    --------
    >>> whole([1.5, 2.25, 0.25], 4), whole([1.5, 2.25, 0.25], 3)
    ([2, 2, 0], [1, 2, 0])
    """
    found = [int(part + 1e-9) for part in parts]
    rest = min(memory, round(sum(parts))) - sum(found)
    order = sorted(range(len(parts)), key=lambda i: (found[i] - parts[i], i))
    for i in order[: max(0, rest)]:
        found[i] += 1
    return found
