"""Histograms of lags and the scores of logical basic windows against P4 5.2.2 in fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import naive_harvest
import numpy as np
import pytest

from engine.multiway.fractions.histograms import bucket_of, empty_histograms, learn, scores
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import SpecError

ROUNDING = 1e-12
"""Of masses below edges, relative to the whole mass."""


def drawn(seed: int, m: int, buckets: int) -> tuple[np.ndarray, list[int], list[list[int]], int]:
    """Draw histograms, windows, join orders and a basic window."""
    draw = random.Random(f"{seed}/{m}/{buckets}")  # noqa: S311 - test data
    windows = [draw.choice([7, 40, draw.randint(1, 90)]) for _ in range(m)]
    orders = [draw.sample([s for s in range(m) if s != i], m - 1) for i in range(m)]
    found = [
        [draw.choice([0.0, 0.0, 1.0, draw.random() * 9]) for _ in range(buckets)] for _ in range(m)
    ]
    return np.array(found), windows, orders, draw.choice([1, 3, 10, 100])


@pytest.mark.parametrize(("m", "buckets"), [(2, 1), (2, 30), (3, 8), (4, 5)])
@pytest.mark.parametrize("seed", range(4))
def test_scores_follow_equations_1_and_2(seed: int, m: int, buckets: int) -> None:
    histograms, windows, orders, b = drawn(seed, m, buckets)
    found = scores(histograms, windows, b, orders)
    for i in range(m):
        for j, stream in enumerate(orders[i]):
            n = max(1, -(-windows[stream] // b))
            wanted = [
                naive_harvest.score(histograms.tolist(), windows, b, i, stream, k)
                for k in range(1, n + 1)
            ]
            if sum(wanted) == 0:
                assert found[i][j].tolist() == [1.0] * n
                continue
            most = float(
                histograms[i].sum() * max(1.0, histograms[stream].sum())
                if i
                else histograms[stream].sum()
            )
            assert found[i][j].shape == (n,)
            assert (found[i][j] >= 0).all()
            for got, exact in zip(found[i][j].tolist(), wanted, strict=True):
                assert abs(Fraction(got) - exact) <= ROUNDING * most


def test_scores_by_hand() -> None:
    # W = 4 ticks, 4 buckets of 2 ticks: [-4,-2) [-2,0) [0,2) [2,4]
    histograms = np.array([[0, 0, 0, 0], [1, 3, 0, 0], [0, 0, 4, 2]], np.float64)
    orders = ((1, 2), (2, 0), (0, 1))
    found = scores(histograms, [4, 4, 4], 2, orders)
    # direction 0 and stream 1: L_1 of [-2, 0] and [-4, -2]; stream 2: nothing is known
    assert [hop.tolist() for hop in found[0]] == [[3.0, 1.0], [1.0, 1.0]]
    # direction 1 and stream 2: middles 1 and 3, L_1 of [1, 3], [3, 5] and [3, 5], [5, 7]: nothing
    # direction 1 and stream 0: L_1 of [0, 2] and [2, 4]: nothing
    assert [hop.tolist() for hop in found[1]] == [[1.0, 1.0], [1.0, 1.0]]
    # direction 2 and stream 0: L_2 of [0, 2] and [2, 4]; stream 1: middles -3 and -1,
    # 1 * L_2[-3, -1] + 3 * L_2[-1, 1] = 6 and 1 * L_2[-1, 1] + 3 * L_2[1, 3] = 2 + 3 * 3
    assert [hop.tolist() for hop in found[2]] == [[4.0, 2.0], [6.0, 11.0]]


def test_what_is_learned_is_counted_in_the_lag_s_bucket() -> None:
    draw = random.Random(8)  # noqa: S311 - test data
    for buckets in (1, 3, 7, 64):
        windows = [draw.randint(0, 50) for _ in range(4)]
        outputs = []
        wanted = np.zeros((4, buckets))
        for _ in range(200):
            lags = [0] + [draw.randint(-w, windows[0]) for w in windows[1:]]
            start = draw.randint(-(10**12), 10**12)
            outputs.append([start + lag for lag in lags])
            for i in range(1, 4):
                span = windows[i] + windows[0]
                place = Fraction((lags[i] + windows[i]) * buckets, span) if span else Fraction(0)
                wanted[i, min(int(place), buckets - 1)] += 1
        found = empty_histograms(windows, buckets)
        learn(found, windows, outputs[:50])
        learn(found, windows, outputs[50:])
        assert found.tolist() == wanted.tolist()


def test_a_lag_outside_counts_at_the_end() -> None:
    assert [bucket_of(lag, 10, 5, 3) for lag in (-99, -10, -6, -5, 0, 4, 5, 99)] == [
        0, 0, 0, 1, 2, 2, 2, 2,
    ]  # fmt: skip


def test_nothing_known_is_flat_and_a_profile_takes_the_scores() -> None:
    windows, orders = [10, 20, 30], ((1, 2), (2, 0), (1, 0))
    found = scores(empty_histograms(windows, 16), windows, 5, orders)
    assert [[hop.tolist() for hop in direction] for direction in found] == [
        [[1.0] * 4, [1.0] * 6], [[1.0] * 6, [1.0] * 2], [[1.0] * 4, [1.0] * 2],
    ]  # fmt: skip
    JoinProfile((1, 1, 1), windows, (2, 4, 6), orders, ((0.1,) * 3,) * 3, found)
    assert [hop.tolist() for hop in scores(np.zeros((2, 3)), [0, 0], 5, ((1,), (0,)))[0]] == [[1.0]]


def test_more_than_int64_counts_is_refused() -> None:
    with pytest.raises(SpecError, match="more than int64 counts"):
        empty_histograms([1, 10**16], 10**4)
