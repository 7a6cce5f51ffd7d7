"""The probe in the CUDA simulator against brute force: counts, pairs, sums by arrival."""

from __future__ import annotations

import math

import lockstep
import naive
import numpy as np
import pytest
from probe_cases import DEVICE, SHAPES, Join, brute, check, drawn, emitted

from gpu_kernels import probe
from gpu_kernels.probe import composite, search
from gpu_kernels.probe.streams import Stream

HUGE = 2**62


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_to_brute_force(shape: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "SEED", seed)
    check(drawn(seed, *SHAPES[shape]))


@pytest.mark.parametrize("start", [-3, 5, 60])
def test_outputs_before_start_ts_do_not_count(start: int) -> None:
    check(drawn(5, *SHAPES["lanes"]), start=start)


def test_equal_to_the_oracle() -> None:
    join = drawn(3, *SHAPES["few keys"])
    tables = [[(x[0], x[1], x[3]) for x in rows] for rows in (join.left, join.right)]
    expected = naive.exact_pairs(*tables, *(w[0] for w in join.windows))
    assert sorted(emitted(DEVICE, join)) == expected


@pytest.mark.parametrize("chunk", [1, 1000])
def test_one_tuple_with_more_matches_than_a_chunk(chunk: int) -> None:
    crowd = [(i // 3, 5, 0, 1.0) for i in range(14)]
    join = Join([(3, 5, 0, 2.0)], crowd, ([3], [3]))
    check(join, chunk=chunk)
    check(Join(crowd, join.left, join.windows), chunk=chunk)


@pytest.mark.parametrize("lanes", [1, 3])
def test_times_that_need_all_of_int64(lanes: int) -> None:
    """Ticks near +-2**62 leave no bits for keys: times become ranks, wide keys, too."""
    rng = np.random.default_rng(lanes)
    near = [-HUGE, -HUGE + 3, -HUGE + 4, -1, 0, 2, HUGE - 2, HUGE, 2 * HUGE - 1, -2 * HUGE]
    far = [0, 7, -(2**63), 2**63 - 1]
    sides = [
        [
            (int(rng.choice(near)), far[rng.integers(0, 4)], int(rng.integers(0, lanes)), 1.5)
            for _ in range(50)
        ]
        for _ in range(2)
    ]
    windows = [[0, 4, 2 * HUGE - 1][:lanes] if lanes > 1 else [HUGE] for _ in range(2)]
    join = Join(*sides, (windows[0], windows[1][::-1]))
    check(join)
    check(join, start=1)
    assert len(brute(join)) > 10


@pytest.mark.parametrize(("key_bits", "lanes"), [(24, 1), (23, 2), (1, 1)])
def test_codes_of_exactly_64_bits(key_bits: int, lanes: int) -> None:
    """No bit is left over: the greatest code is the greatest integer."""
    last = 2 ** (64 - key_bits - lanes + 1) - 1
    rows = [
        (t, k, lane, 1.0)
        for t in (-5, -4, last // 2, last - 6, last - 5)
        for k in (0, 2**key_bits - 1)
        for lane in range(lanes)
    ]
    check(Join(rows, rows[::-1], ([1] * lanes, [last] * lanes)))


def test_layouts() -> None:
    assert composite.Layout(2, 20, 10).dtype is np.uint32
    assert composite.Layout(2, 20, 11).dtype is np.uint64
    assert composite.Layout(0, 1, 63).fits
    assert not composite.Layout(0, 0, 64).fits
    assert not composite.Layout(1, 32, 32).fits


def test_tiles_of_more_partners_than_shared_memory_holds() -> None:
    """Blocks then search in device memory; several blocks share lanes and outputs."""
    size = search.HELD + 500
    ts = np.arange(size)
    few = Stream(np.array([0, 1, size - 1, size - 1]), np.zeros(4, np.int64))
    many = Stream(ts, np.zeros(size, np.int64))
    for left, right in ((few, many), (many, few)):
        assert probe.count_pairs(DEVICE, left, right, size, size).tolist() == [4 * size]
        chunks = list(probe.emit_pairs(DEVICE, left, right, size, size, chunk=5000))
        found = set(
            zip(*(np.concatenate(side).tolist() for side in zip(*chunks, strict=True)), strict=True)
        )
        assert len(found) == sum(len(chunk[0]) for chunk in chunks) == 4 * size


def test_many_blocks() -> None:
    rng = np.random.default_rng(8)
    sides = [
        Stream(
            np.sort(rng.integers(0, 3000, 2500)),
            rng.integers(0, 20, 2500).astype(np.int32),
            rng.integers(0, 3, 2500).astype(np.int32),
            rng.random(2500).astype(np.float32),
        )
        for _ in range(2)
    ]
    windows = (np.array([40, 0, 90]), np.array([7, 30, 90]))
    expected = [0] * 3
    gains: list[list[float]] = [[], [], []]
    left, right = sides
    for i in range(2500):
        gap = right.ts - left.ts[i]
        lane = left.lane[i]
        near = (gap <= windows[0][lane]) & (-gap <= windows[1][lane])
        near &= (right.key == left.key[i]) & (right.lane == lane)
        expected[lane] += int(near.sum())
        gains[lane] += (
            np.float64(left.importance[i]) * np.float64(1) * right.importance[near].astype(float)
        ).tolist()
    assert probe.count_pairs(DEVICE, *sides, *windows).tolist() == expected
    found = probe.match_arrivals(DEVICE, *sides, *windows, "product")
    for lane in range(3):
        here = [side.lane == lane for side in sides]
        pairs = zip(found, here, strict=True)
        assert sum(own.matches[of].sum() for own, of in pairs) == expected[lane]
        gain = math.fsum(own.gain[of].sum() for own, of in zip(found, here, strict=True))
        assert gain == pytest.approx(math.fsum(gains[lane]), rel=1e-12)
    lockstep.SEED += 1
    again = probe.match_arrivals(DEVICE, *sides, *windows, "product")
    for own, before in zip(again, found, strict=True):
        assert own.gain.tolist() == before.gain.tolist()
