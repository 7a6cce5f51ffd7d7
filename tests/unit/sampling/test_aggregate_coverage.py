"""How often intervals cover, measured on clusters drawn directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from engine.sampling.aggregates import LaneAggregates, parse_aggregate
from engine.sampling.aggregates.estimate import combine
from engine.sampling.layout import SampledOutputs

SEEDS = 400
WINDOW = 100
CLUSTERS = 400
P = 0.1
SCHEMAS = pa.schema([("v", pa.float64())]), pa.schema([("u", pa.float64())])
TEXTS = "count(*)", "sum(left.v)", "sum(right.u)", "avg(right.u)"
SPECS = tuple(parse_aggregate(f"{text} every {WINDOW}").resolve("tick", *SCHEMAS) for text in TEXTS)


class Join(NamedTuple):
    """A join of one stored stream: a window of outputs for every seed."""

    fan_out: NDArray[np.int64]
    cluster: NDArray[np.int64]
    ts: NDArray[np.int64]
    left: pa.Table
    right: pa.Table


def joined(rng: np.random.Generator, clusters: int = CLUSTERS) -> Join:
    """Draw clusters of 1 to some 20 outputs, with exponential values on either side."""
    fan_out = rng.geometric(0.3, SEEDS * clusters)
    cluster = np.repeat(np.arange(fan_out.size), fan_out)
    ts = cluster // clusters * WINDOW + rng.integers(0, WINDOW, cluster.size)
    order = np.argsort(ts, kind="stable")
    v = rng.exponential(1, fan_out.size)[cluster[order]]
    u = rng.exponential(1, cluster.size)
    return Join(fan_out, cluster[order], ts[order], pa.table({"v": v}), pa.table({"u": u}))


def equal(rng: np.random.Generator, size: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(rng.random(size.size) < P, P, 0.0)


def by_size(rng: np.random.Generator, size: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.minimum(1.0, P * size / size.mean())
    return np.where(rng.random(size.size) < p, p, 0.0)


def greatest(rng: np.random.Generator, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return priority sampling's inclusion probabilities: those above the next greatest stay."""
    priority = (size / (1 - rng.random(size.size))).reshape(SEEDS, CLUSTERS)
    threshold = np.sort(priority, axis=1)[:, [-1 - int(P * CLUSTERS)]]
    p = np.minimum(1.0, size.reshape(SEEDS, CLUSTERS) / threshold)
    return np.where(priority > threshold, p, 0.0).ravel()


Draw = Callable[[np.random.Generator, NDArray[np.float64]], NDArray[np.float64]]
METHODS: dict[str, Draw] = {
    "eq-cluster": equal,
    "pps-cluster": by_size,
    "bottom-k": greatest,
    "uniform": equal,
}


def tables(join: Join, p: NDArray[np.float64], *, independent: bool) -> list[pa.Table]:
    """Aggregate the outputs whose p is not 0."""
    at = np.flatnonzero(p)
    cluster = join.cluster[at]
    none = np.zeros(at.size, np.int64)
    out = SampledOutputs(
        cluster, none, cluster, none, join.ts[at], np.ones(at.size), 1 / p[at],
        np.zeros(at.size, np.int8),
    )  # fmt: skip
    lane = LaneAggregates(SPECS, SCHEMAS, independent=independent)
    lane.add(out, join.left.take(at), join.right.take(at))
    return lane.close()


@pytest.mark.parametrize("method", METHODS)
def test_95_of_100_intervals_cover(method: str) -> None:
    rng = np.random.default_rng(20040831)
    join = joined(rng)
    size = join.fan_out * rng.lognormal(0, 0.3, join.fan_out.size)
    independent = method == "uniform"
    units = np.ones(join.cluster.size) if independent else size
    p = METHODS[method](rng, units)
    sampled = tables(join, p if independent else p[join.cluster], independent=independent)
    exact = tables(join, np.ones(join.cluster.size), independent=True)
    for spec, mine, truth in zip(SPECS, sampled, exact, strict=True):
        found = combine(spec, [mine], exact=[truth])
        covered = found["covered"].to_numpy(zero_copy_only=False)
        assert covered.size == SEEDS
        least, most = (0.92, 0.98) if spec.function == "avg" else (0.93, 0.97)
        assert least <= covered.mean() <= most, spec.text
        standard = (found["estimate"].to_numpy() - found["exact"].to_numpy()) / found[
            "standard_error"
        ].to_numpy()
        assert abs(np.median(standard)) < 0.3


@pytest.mark.parametrize("method", ["eq-cluster", "pps-cluster", "uniform"])
@pytest.mark.parametrize("clusters", [4, 12, 40])
def test_windows_of_few_clusters_are_covered_sampled_or_not(method: str, clusters: int) -> None:
    rng = np.random.default_rng(1927)
    join = joined(rng, clusters)
    size = join.fan_out * rng.lognormal(0, 0.3, join.fan_out.size)
    independent = method == "uniform"
    p = METHODS[method](rng, np.ones(join.cluster.size) if independent else size)
    sampled = tables(join, p if independent else p[join.cluster], independent=independent)
    exact = tables(join, np.ones(join.cluster.size), independent=True)
    for spec, mine, truth in zip(SPECS, sampled, exact, strict=True):
        if spec.function == "avg":
            continue
        found = combine(spec, [mine], exact=[truth], span=(0, SEEDS * WINDOW - 1))
        none = found["rows"].to_numpy() == 0
        assert none.any() or clusters > 12
        assert found["covered"].null_count == 0
        covered = found["covered"].to_numpy(zero_copy_only=False)
        assert covered.mean() >= 0.93, spec.text
        if none.sum() > 20:
            assert covered[none].mean() >= 0.9, spec.text
