"""Streams of lagged, noisy, wrapping ramps: time-correlated values (P4 6.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.generate.arrivals import ArrivalSpec, Clock, ImportanceModel
from engine.generate.source import (
    Purpose,
    StreamSource,
    check_range,
    check_seed,
    chunk_lengths,
    draws,
    exact_ratio,
)
from engine.runtime.errors import SpecError

TICKS_PER_SECOND = 10**6
_MORE_ROWS = 16
"""Rows past twice the expected ones: random gaps hardly ever make more before the end."""
_DEVIATIONS = 40.0
"""A normal draw is within so many deviations."""
VALUE_SCHEMA = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("importance", pa.float64(), nullable=False),
    ]
)


class LaggedGaussianSpec(NamedTuple):
    """Streams of one numerical attribute that drifts, with a lag and noise of each stream.

    The tuple of stream i with timestamp phi (seconds) has the value ``((D/eta) * (phi + tau_i) +
    kappa_i * N(0, 1)) mod D`` in [0, D). The defaults are P4's non-aligned 3-way join; aligned
    is lags (0, 0, 0).
    """

    seconds: float = 60.0
    """Length of the streams. P4 runs 60, of which 20 are warm-up."""
    rates: tuple[float, ...] = (200.0,)
    """Tuples per second of each stream, or one for all. P4 varies it; 200 in its figure 12."""
    domain: float = 1000.0
    """D, the size of the value domain."""
    eta: float = 50.0
    """Seconds until the values wrap around."""
    lags: tuple[float, ...] = (0.0, 5.0, 15.0)
    """tau_i of each stream, seconds."""
    deviations: tuple[float, ...] = (2.0, 2.0, 50.0)
    """kappa_i of each stream, in units of the value."""
    arrivals: str = "regular"
    """``regular``, ``uniform`` or ``exponential``, see `ArrivalSpec`; P4 leaves it open."""
    importance: ImportanceModel = ImportanceModel()
    """Distribution of every stream's importance."""
    start_ts: int = 0
    """First timestamp, microseconds."""
    seed: int = 0
    """The same seed gives the same rows, whatever the chunk size."""


def lagged_gaussian_sources(spec: LaggedGaussianSpec) -> tuple[StreamSource, ...]:
    """Return the streams of `spec`, one for each lag.

    Columns are ts int64 (microseconds), value float64, importance float64.

    Raises
    ------
    SpecError
        If an option is invalid, or lags, deviations and rates differ in number.

    Examples
    --------
    >>> from engine.generate.source import in_memory
    >>> spec = LaggedGaussianSpec(seconds=1, rates=(2,), lags=(0, 5), deviations=(0, 0))
    >>> [stream["value"].to_pylist() for stream in in_memory(lagged_gaussian_sources(spec))]
    [[0.0, 10.0], [100.0, 110.0]]
    """
    streams = len(spec.lags)
    check_seed(spec.seed)
    check_range("seconds", spec.seconds, 0)
    check_range("domain", spec.domain, np.finfo(np.float64).tiny)
    check_range("eta", spec.eta, np.finfo(np.float64).tiny)
    spec.importance.check(keyed=False)
    if streams == 0:
        raise SpecError("0 lags make 0 streams: give one lag a stream")
    if len(spec.deviations) != streams:
        raise SpecError(
            f"{len(spec.deviations)} deviations do not go with {streams} lags: give one a stream"
        )
    if len(spec.rates) not in (1, streams):
        raise SpecError(
            f"{len(spec.rates)} rates do not go with {streams} lags: give one, or one a stream"
        )
    for lag, deviation in zip(spec.lags, spec.deviations, strict=True):
        check_range("lag", lag, 0)
        check_range("deviation", deviation, 0)
        _check_values(spec, lag, deviation)
    rates = spec.rates * streams if len(spec.rates) == 1 else spec.rates
    sources = []
    for index, rate in enumerate(rates):
        per_tick = exact_ratio("rate", rate) / TICKS_PER_SECOND
        arrivals = ArrivalSpec(spec.arrivals, per_tick, spec.start_ts)
        rows = int(round(spec.seconds * TICKS_PER_SECOND) * per_tick) + 1
        arrivals.check(rows)
        most = rows if spec.arrivals == "regular" else 2 * rows + _MORE_ROWS
        batches = partial(_batches, spec, index, arrivals, most)
        sources.append(StreamSource(VALUE_SCHEMA, batches, rows))
    return tuple(sources)


def _check_values(spec: LaggedGaussianSpec, lag: float, deviation: float) -> None:
    """Raise SpecError unless a stream's values are finite before they wrap."""
    last = (abs(spec.start_ts) / TICKS_PER_SECOND) + spec.seconds + lag
    if not math.isfinite(spec.domain / spec.eta * last + _DEVIATIONS * deviation):
        raise SpecError(
            f"values of domain {spec.domain:g}, eta {spec.eta:g}, lag {lag:g} and deviation "
            f"{deviation:g} pass the greatest float64: use a smaller domain, lag or deviation, "
            "or a longer eta"
        )


def _batches(
    spec: LaggedGaussianSpec, index: int, arrivals: ArrivalSpec, most: int, chunk_rows: int
) -> Iterator[pa.RecordBatch]:
    clock = Clock(arrivals, spec.seed, index)
    noise_draws = draws(spec.seed, Purpose.NOISE, index)
    importance_draws = draws(spec.seed, Purpose.IMPORTANCE, index)
    end = spec.start_ts + round(spec.seconds * TICKS_PER_SECOND)
    # No more than `most` rows: far past the end, the clock of a slow stream leaves int64.
    for _, count in chunk_lengths(most, chunk_rows):
        ts = clock.take(count)
        inside = int(np.searchsorted(ts, end))
        if inside == 0:
            return
        ts = ts[:inside]
        slope = spec.domain / spec.eta
        value = slope * (ts / TICKS_PER_SECOND + spec.lags[index])
        value += spec.deviations[index] * noise_draws.standard_normal(inside)
        value = np.mod(value, spec.domain)
        # The remainder of a tiny negative number rounds up to the domain itself.
        value[value >= spec.domain] = 0.0
        importance = spec.importance.values(importance_draws, inside)
        yield pa.record_batch([ts, value, importance], schema=VALUE_SCHEMA)
        if inside < count:
            return
