"""How much of what is unexpired a memory holds, slice by slice, from what footers tell."""

from __future__ import annotations

import numpy as np
import pytest

from engine.sampling.stretches.density import Spread, spread_of
from engine.sampling.stretches.load import Held, unevenness

WINDOW, SLICE = 20, 200
EDGES = np.arange(0, 10 * SLICE + 1, SLICE)


def stream(rates: list[int]) -> Spread:
    """Return so many tuples a tick, slice by slice."""
    return spread_of(EDGES[:-1], EDGES[1:] - 1, SLICE * np.array(rates))


def by_hand(
    rates: tuple[list[int], list[int]], budgets: tuple[int, int], *, pooled: bool
) -> np.ndarray:
    """Add up pairs, all and kept, tick by tick."""
    each = [np.repeat(own, SLICE).astype(float) for own in rates]
    held = [
        np.array([own[max(0, t - WINDOW) : t + 1].sum() for t in range(own.size)]) for own in each
    ]
    both = sum(held)
    parts = [
        np.minimum(1, (sum(budgets) / both) if pooled else budget / np.maximum(own, 1))
        for own, budget in zip(held, budgets, strict=True)
    ]
    pairs = each[0] * held[1] + each[1] * held[0]
    kept = each[0] * held[1] * parts[1] + each[1] * held[0] * parts[0]
    pairs, kept = (own.reshape(-1, SLICE).sum(axis=1) for own in (pairs, kept))
    far = np.abs(kept / pairs - kept.sum() / pairs.sum())
    return far * pairs.sum() / (far * pairs).sum()


@pytest.mark.parametrize("pooled", [False, True])
def test_slices_whose_tuples_fit_are_unlike_busy_ones(pooled: bool) -> None:
    rates = [9, 9, 9, 1, 1, 9, 8, 9, 9, 9], [6, 6, 6, 1, 1, 6, 6, 6, 6, 6]
    held = Held((WINDOW, WINDOW), (60, 40), pooled)
    found = unevenness(EDGES, [stream(own) for own in rates], [held])
    assert found is not None
    np.testing.assert_allclose(found, by_hand(rates, (60, 40), pooled=pooled), rtol=0.1, atol=0.25)
    assert found[[3, 4]].min() > 5 * np.delete(found, [3, 4]).max()


@pytest.mark.parametrize("budgets", [(60, 40), (10**6, 10**6), (0, 0)])
def test_nothing_is_told_where_all_slices_are_alike(budgets: tuple[int, int]) -> None:
    even = stream([5] * 10)
    assert unevenness(EDGES, (even, even), [Held((WINDOW,) * 2, budgets, False)]) is None


def test_a_stream_without_tuples_tells_nothing() -> None:
    none = stream([0] * 10)
    assert unevenness(EDGES, (stream([5] * 10), none), [Held((WINDOW,) * 2, (5, 5), True)]) is None


def test_of_several_memories_the_one_counts_in_which_a_slice_is_farthest() -> None:
    rates = [9, 9, 9, 1, 1, 9, 8, 9, 9, 9], [6, 6, 6, 1, 1, 6, 6, 6, 6, 6]
    streams = [stream(own) for own in rates]
    near = [Held((WINDOW,) * 2, (10**6, 10**6), pooled) for pooled in (False, True)]
    small = [Held((WINDOW,) * 2, (60, 40), False)]
    one, all_of_them = (unevenness(EDGES, streams, own) for own in (small, near + small))
    np.testing.assert_array_equal(one, all_of_them)
