"""Profiles of a side of a lane, against what tuple by tuple is counted."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from engine.lanes.profile import SideProfile, SideProfiler, profile_side
from engine.runtime.streams import StreamBatch


def side_of(seed: int, rows: int, span: int) -> StreamBatch:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(-span, span, rows))
    return StreamBatch(ts, np.arange(rows), rng.integers(0, 5, rows), rng.random(rows) * 1e9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("span", [3, 40, 10_000])
def test_profiles_are_those_of_the_tuples(seed: int, span: int) -> None:
    whole = side_of(seed, 300, span)
    cuts = [0, *sorted(np.random.default_rng(seed).integers(0, 300, 6).tolist()), 300]
    windows = [0, 1, 7, 39, 20_000]
    look = SideProfiler(windows)
    for begin, end in pairwise(cuts):
        look.add(StreamBatch(*(column[begin:end] for column in whole)))
    ts = whole.ts
    mean = float(sum(map(Fraction, whole.importance.tolist()))) / len(ts)
    for window in windows:
        held = max(int(((ts <= now) & (ts >= now - window)).sum()) for now in ts)
        by_arrival = max(int((ts[: i + 1] >= ts[i] - window).sum()) for i in range(len(ts)))
        assert held == by_arrival
        found = look.profile(window)
        assert found == SideProfile(300, int(ts[0]), int(ts[-1]), held, mean)
        assert found == profile_side([whole], window)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("drops", [False, True])
def test_tuples_held_at_given_ticks_are_those_of_the_tuples(seed: int, drops: bool) -> None:
    whole = side_of(seed, 300, 50)
    rng = np.random.default_rng(seed)
    until = whole.ts + rng.integers(-3, 60, whole.ts.size)
    ends = dict(zip(whole.row.tolist(), until.tolist(), strict=True))

    def found_until(batch: StreamBatch) -> np.ndarray:
        return np.array([ends[row] for row in batch.row.tolist()], np.int64)

    ticks, windows = [-60, -50, -7, 0, 1, 20, 49, 50, 2**62], [0, 7, 39, 2**63 - 1]
    if drops:
        windows.pop()
    look = SideProfiler(windows, found_until if drops else None, ticks)
    for begin in range(0, 300, 70):
        look.add(StreamBatch(*(column[begin : begin + 70] for column in whole)))
    for window in windows:
        held = tuple(
            sum(
                ts <= tick <= ts + window and (not drops or tick < end)
                for ts, end in zip(whole.ts.tolist(), until.tolist(), strict=True)
            )
            for tick in ticks
        )
        assert look.profile(window).held == held


def test_a_side_without_tuples_has_an_empty_profile() -> None:
    nothing = StreamBatch(*(np.empty(0, dtype) for dtype in ("i8", "i8", "i8", "f8")))
    assert profile_side([], 5) == profile_side([nothing], 5) == SideProfile(0, 0, 0, 0, 0.0)
    assert not math.isnan(SideProfiler([3]).profile(3).mean_importance)
    assert SideProfiler([3], None, [1, 5]).profile(3).held == (0, 0)
