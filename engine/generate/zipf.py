"""Two streams with Zipf-distributed join attributes (P1 section 5, P2 4.1, P5 6.2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.generate.arrivals import ArrivalSpec, Clock, ImportanceModel
from engine.generate.source import (
    KEYED_SCHEMA,
    Purpose,
    StreamSource,
    check_name,
    check_range,
    check_seed,
    chunk_lengths,
    draws,
    exact_ratio,
)
from engine.runtime.errors import SpecError
from engine.runtime.streams import LEFT, RIGHT

CORRELATIONS = ("direct", "inverse", "none")
LARGEST_SKEWED_DOMAIN = 2**26


class ZipfSpec(NamedTuple):
    """Two streams whose join attributes are Zipf-distributed over one domain.

    The key of rank k = 1, 2, ... `domain` has probability proportional to ``k ** -skew``; keys
    are 0 to ``domain - 1``.
    """

    rows: int
    """Tuples of the left stream (N of P1)."""
    domain: int
    """Number of join attribute values."""
    rows_right: int | None = None
    """Tuples of the right stream; as many as of the left if None."""
    skew_left: float = 1.0
    skew_right: float = 0.0
    """`skew_left`, `skew_right`: Zipf parameters, 0 for uniform. P1 and P2 join 1.0 with 0.0."""
    correlation: str = "none"
    """How the keys' frequency ranks relate (P5 6.2.3). ``direct`` (DC; P1 5.2.4): the same order on
    both sides, key k has rank k + 1. ``inverse`` (IC): opposite orders, the right's most frequent
    key is ``domain - 1``. ``none`` (UC): two independent seeded permutations."""
    importance: ImportanceModel = ImportanceModel()
    """Distribution of both streams' importance."""
    arrivals: str = "regular"
    """``regular``, ``uniform`` or ``exponential``, see `ArrivalSpec`."""
    rate: float = 1.0
    rate_right: float | None = None
    """`rate`, `rate_right`: Tuples per tick of each stream; the right has the left's rate if
    None."""
    ties: float = 0.0
    """Probability that a tuple arrives at the instant of the one before it."""
    start_ts: int = 0
    """First tick."""
    seed: int = 0
    """The same seed gives the same rows, whatever the chunk size; more rows continue fewer."""


class _Side(NamedTuple):
    """One stream of a `ZipfSpec`."""

    number: int
    rows: int
    skew: float
    domain: int
    correlation: str
    arrivals: ArrivalSpec
    importance: ImportanceModel
    seed: int


def zipf_sources(spec: ZipfSpec) -> tuple[StreamSource, StreamSource]:
    """Return the streams of `spec`, left and right. O(log(domain)) a row; 16 bytes a domain value.

    Columns are ts int64 (ticks), key int64, importance float64, payload int64 (sequence number).

    Raises
    ------
    SpecError
        If an option is invalid.

    Examples
    --------
    >>> from engine.generate.source import in_memory
    >>> spec = ZipfSpec(rows=4, domain=10, correlation="direct", seed=1)
    >>> left, right = in_memory(zipf_sources(spec))
    >>> left["ts"].to_pylist()
    [0, 1, 2, 3]
    >>> left.schema.names
    ['ts', 'key', 'importance', 'payload']
    """
    check_seed(spec.seed)
    check_name("correlation", spec.correlation, CORRELATIONS)
    check_range("domain", spec.domain, 1, 2**53)
    spec.importance.check()
    rows_right = spec.rows if spec.rows_right is None else spec.rows_right
    rate_right = spec.rate if spec.rate_right is None else spec.rate_right
    left = _side(spec, LEFT, spec.rows, spec.skew_left, spec.rate)
    right = _side(spec, RIGHT, rows_right, spec.skew_right, rate_right)
    return left, right


def _side(spec: ZipfSpec, number: int, rows: int, skew: float, rate: float) -> StreamSource:
    suffix = ("", "-right")[number]
    check_range(f"rows{suffix}", rows, 0)
    check_range(("skew-left", "skew-right")[number], skew, 0)
    if skew > 0 and spec.domain > LARGEST_SKEWED_DOMAIN:
        raise SpecError(
            f"domain {spec.domain} of skew {skew:g} needs a table of that size: use at most "
            f"{LARGEST_SKEWED_DOMAIN} values, or skew 0"
        )
    arrivals = ArrivalSpec(
        spec.arrivals, exact_ratio(f"rate{suffix}", rate), spec.start_ts, spec.ties
    )
    arrivals.check(rows)
    side = _Side(
        number, rows, skew, spec.domain, spec.correlation, arrivals, spec.importance, spec.seed
    )
    return StreamSource(KEYED_SCHEMA, partial(_batches, side), rows)


def _batches(side: _Side, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    clock = Clock(side.arrivals, side.seed, side.number)
    key_draws = draws(side.seed, Purpose.KEY, side.number)
    importance_draws = draws(side.seed, Purpose.IMPORTANCE, side.number)
    cumulative = _cumulative(side.domain, side.skew)
    keys = _keys_by_rank(side)
    rare_matters = side.importance.kind == "inverse-frequency"
    for first, count in chunk_lengths(side.rows, chunk_rows):
        uniform = key_draws.random(count)
        if cumulative is None:
            rank = (uniform * side.domain).astype(np.int64)
        else:
            rank = np.searchsorted(cumulative, uniform, side="right").astype(np.int64)
        rarity = np.power(rank + 1.0, side.skew) if rare_matters else None
        columns = (
            clock.take(count),
            _to_keys(side, keys, rank),
            side.importance.values(importance_draws, count, rarity),
            np.arange(first, first + count, dtype=np.int64),
        )
        yield pa.record_batch(list(columns), schema=KEYED_SCHEMA)


def _cumulative(domain: int, skew: float) -> NDArray[np.float64] | None:
    """Return the cumulative probabilities of the ranks, or None if all are equal."""
    if skew == 0:
        return None
    table = np.arange(1, domain + 1, dtype=np.float64)
    np.power(table, -skew, out=table)
    np.cumsum(table, out=table)
    table /= table[-1]
    return table


def _keys_by_rank(side: _Side) -> NDArray[np.int64] | None:
    """Return a permutation of the domain where the side has one; equal ranks need none."""
    if side.correlation != "none" or side.skew == 0:
        return None
    rng = draws(side.seed, Purpose.PERMUTATION, side.number)
    return rng.permutation(side.domain).astype(np.int64, copy=False)


def _to_keys(
    side: _Side, keys: NDArray[np.int64] | None, rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    if keys is not None:
        return keys[rank]
    if side.correlation == "inverse" and side.number == RIGHT:
        return side.domain - 1 - rank
    return rank
