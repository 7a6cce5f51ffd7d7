"""The papers' two-way workloads by name, for tests and benchmarks.

Windows are closed, as the contract has them: the papers' lifetime of w ticks is ``w - 1``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.generate import (
    AgeCurveSpec,
    ImportanceModel,
    ZipfSpec,
    age_curve,
    age_curve_sources,
    in_memory,
    zipf_sources,
)

RARE_HIGH = ImportanceModel("rare-high")
"""P1 gives no numbers: 1 to 10, and 1 % of the tuples up to 1000."""


class Workload(NamedTuple):
    """Two streams and the join they are for.

    Attributes
    ----------
    left, right : pyarrow.Table
        Columns ts, key, importance, payload.
    window_left, window_right : int
        Closed windows, ticks.
    budget_left, budget_right : int
        Tuples kept of each side.
    start_ts : int
        Tick from which outputs count.
    """

    left: pa.Table
    right: pa.Table
    window_left: int
    window_right: int
    budget_left: int
    budget_right: int
    start_ts: int


class AgeWorkload(NamedTuple):
    """A `Workload` with the age curve that its left stream follows.

    Attributes
    ----------
    streams : Workload
        The join; right tuples need no memory, as every match has the left tuple first.
    curve : (buckets,) float64
        Expected matches of a left tuple in each bucket, youngest first.
    bucket_ticks : int
        Ticks of a bucket.
    """

    streams: Workload
    curve: NDArray[np.float64]
    bucket_ticks: int


def p1_streams(
    n: int = 5600,
    domain: int = 100,
    skew_left: float = 1.0,
    skew_right: float = 0.0,
    *,
    lifetime: int = 400,
    memory: int = 200,
    correlation: str = "none",
    importance: ImportanceModel = RARE_HIGH,
    seed: int = 1,
) -> Workload:
    """Return P1's online set-up (5.2.1 to 5.2.3); counting starts at twice the lifetime.

    5.2.4 is ``correlation="direct"`` with equal skews; 5.1.1 is ``lifetime=10``.
    """
    spec = ZipfSpec(
        rows=n,
        domain=domain,
        skew_left=skew_left,
        skew_right=skew_right,
        correlation=correlation,
        importance=importance,
        seed=seed,
    )
    left, right = in_memory(zipf_sources(spec))
    window, budget = lifetime - 1, memory // 2
    return Workload(left, right, window, window, budget, budget, 2 * lifetime)


def p1_table1(*, importance: ImportanceModel = RARE_HIGH, seed: int = 1) -> Workload:
    """Return P1's large set-up (5.2.5, table 1)."""
    return p1_streams(56_000, 2000, lifetime=2000, memory=800, importance=importance, seed=seed)


def p5_increasing(rows: int = 5000, budget: int = 50, seed: int = 1) -> AgeWorkload:
    """Return P5's INC (6.2.2)."""
    return _p5_age("increasing", rows, budget, seed)


def p5_decreasing(rows: int = 5000, budget: int = 50, seed: int = 1) -> AgeWorkload:
    """Return P5's DEC (6.2.2)."""
    return _p5_age("decreasing", rows, budget, seed)


def p5_bell(rows: int = 5000, budget: int = 50, seed: int = 1) -> AgeWorkload:
    """Return P5's BELL (6.2.2)."""
    return _p5_age("bell", rows, budget, seed)


def p5_frequency(
    correlation: str, skew: float = 2.0, *, rows: int = 5000, budget: int = 50, seed: int = 1
) -> Workload:
    """Return P5's DC, IC or UC (6.2.3) for ``direct``, ``inverse`` or ``none``.

    A time unit has 1000 ticks, as in the age-based workloads. Only matches that a stored left
    tuple finds are looked at, so the right keeps no window.
    """
    spec = ZipfSpec(
        rows=rows,
        rows_right=5 * rows,
        domain=50,
        skew_left=skew,
        skew_right=skew,
        correlation=correlation,
        arrivals="uniform",
        rate=0.001,
        rate_right=0.005,
        seed=seed,
    )
    left, right = in_memory(zipf_sources(spec))
    return Workload(left, right, 500_000 - 1, 0, budget, 0, 500_000)


def _p5_age(curve: str, rows: int, budget: int, seed: int) -> AgeWorkload:
    spec = AgeCurveSpec(rows=rows, curve=curve, seed=seed)
    left, right = in_memory(age_curve_sources(spec))
    lifetime = round(spec.window * spec.ticks_per_unit)
    return AgeWorkload(
        Workload(left, right, lifetime - 1, 0, budget, 0, lifetime),
        age_curve(curve, spec.buckets, spec.matches, spec.exponent),
        lifetime // spec.buckets,
    )
