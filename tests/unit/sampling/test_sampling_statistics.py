"""Samples over many seeds: estimates without bias, variances and intervals that can be trusted."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sampling_cases import aggregates_of, totals_of

from engine.replay.settings import UNLIMITED
from engine.runtime.streams import StreamBatch
from engine.sampling.lane import METHODS, LaneSampler

SEEDS = 600
KEYS = 60
SIZE = 1500
STREAMS = ("direct", "inverse", "uncorrelated", "age")
"""DC, IC and UC of P5 6.1, in which keys have frequencies, and an age curve."""
WINDOW = 250


class Lane(NamedTuple):
    """Two streams, what each tuple's matches come to, and the exact join's totals."""

    streams: tuple[StreamBatch, StreamBatch]
    ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    matches: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Matches of each tuple that probe it, simultaneous ones the left's."""
    expected: tuple[NDArray[np.float64], NDArray[np.float64]]
    """What a model of frequencies says of them."""
    exact: tuple[float, float]


def frequencies(kind: str, side: int) -> NDArray[np.float64]:
    """Return how often each key comes on a side."""
    zipf: NDArray[np.float64] = 1.0 / np.arange(1, KEYS + 1)
    zipf /= zipf.sum()
    if kind == "direct" or side == 0:
        return zipf
    return zipf[::-1] if kind == "inverse" else np.random.default_rng(5).permutation(zipf)


def stream_of(kind: str, side: int) -> StreamBatch:
    """Return a stream; by age, a right tuple repeats the key of a left one from long before."""
    draw = np.random.default_rng([STREAMS.index(kind), side])
    ts = np.sort(draw.integers(0, 3 * SIZE, SIZE))
    if kind == "age":
        key = np.arange(SIZE) // 12
        if side == 1:
            key = key[np.maximum(0, np.arange(SIZE) - draw.integers(0, 80, SIZE))]
    else:
        key = draw.choice(KEYS, SIZE, p=frequencies(kind, side))
    return StreamBatch(ts, np.arange(SIZE), key, 1.0 + draw.gamma(4.0, 1.0, SIZE))


@functools.cache
def lane_of(kind: str) -> Lane:
    """Return a lane and its exact join, every pair looked at."""
    left, right = stream_of(kind, 0), stream_of(kind, 1)
    gap = right.ts[None, :] - left.ts[:, None]
    same = left.key[:, None] == right.key[None, :]
    of_left, of_right = same & (gap >= 0) & (gap <= WINDOW), same & (gap < 0) & (gap >= -WINDOW)
    importance = np.minimum(left.importance[:, None], right.importance[None, :])
    joined = of_left | of_right
    model = tuple(same.sum(axis=1 - side) * WINDOW / (3.0 * SIZE) + 0.5 for side in (0, 1))
    return Lane(
        (left, right),
        (left.key.astype(np.int32), right.key.astype(np.int32)),
        (of_left.sum(axis=1).astype(np.float64), of_right.sum(axis=0).astype(np.float64)),
        (model[0], model[1]),
        (float(joined.sum()), float(importance[joined].sum())),
    )


def measures_of(method: str, lane: Lane, side: int) -> NDArray[np.float64]:
    """Return what a method is told of each tuple of a side."""
    if method == "eq-cluster":
        return np.full(SIZE, 0.3)
    if method == "pps-cluster":
        p: NDArray[np.float64] = 0.3 * lane.expected[side] / lane.expected[side].mean()
        return np.minimum(p, 1.0)
    if method == "bottom-k":
        return lane.expected[side]
    of_key = np.zeros(SIZE)
    np.maximum.at(of_key, lane.ids[side], lane.matches[side])
    most: NDArray[np.float64] = of_key[lane.ids[side]]
    return most


@functools.cache
def runs(method: str, kind: str) -> NDArray[np.float64]:
    """Return estimate and variance of outputs and of importance, (SEEDS, 4)."""
    lane = lane_of(kind)
    measures = measures_of(method, lane, 0), measures_of(method, lane, 1)
    budget = (30, 25) if method == "bottom-k" else (UNLIMITED, UNLIMITED)
    found = np.empty((SEEDS, 4))
    for seed in range(SEEDS):
        sampler = LaneSampler(method, (WINDOW, WINDOW), seed=seed, budget=budget, p=0.2)
        aggregates = aggregates_of(method)
        for out in sampler.push(
            lane.streams[0], lane.ids[0], lane.streams[1], lane.ids[1], SIZE, measures
        ):
            aggregates.add(out, *2 * [pa.table({})])
        totals = totals_of(aggregates)
        found[seed] = *totals.outputs[:2], *totals.importance[:2]
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", STREAMS)
def test_estimates_are_unbiased(method: str, kind: str) -> None:
    found = runs(method, kind)
    for column, truth in zip((0, 2), lane_of(kind).exact, strict=True):
        estimates = found[:, column]
        assert abs(estimates.mean() - truth) < 3.0 * estimates.std(ddof=1) / SEEDS**0.5


@pytest.mark.parametrize("method", METHODS)
def test_variances_are_those_of_the_estimates(method: str) -> None:
    ratios = []
    for kind in STREAMS:
        found = runs(method, kind)
        for column in (0, 2):
            ratios.append(found[:, column + 1].mean() / found[:, column].var(ddof=1))
            assert 0.8 < ratios[-1] < 1.25  # a variance over 600 seeds: 6 % of noise
    assert 0.9 < np.mean(ratios) < 1.1


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover(method: str) -> None:
    covered = []
    for kind in STREAMS:
        found = runs(method, kind)
        for column, truth in zip((0, 2), lane_of(kind).exact, strict=True):
            error = np.abs(found[:, column] - truth)
            covered.append(np.mean(error <= 1.959963984540054 * found[:, column + 1] ** 0.5))
    assert min(covered) > 0.92
    assert 0.93 < np.mean(covered) < 0.97
