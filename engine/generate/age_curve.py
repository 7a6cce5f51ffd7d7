"""Two streams that follow the age-based model (P5 definition 2.2, 6.2.1, 6.2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.generate.arrivals import ArrivalSpec, Clock, ImportanceModel
from engine.generate.source import (
    KEYED_SCHEMA,
    ROW_GROUP_ROWS,
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

CURVES = ("increasing", "decreasing", "bell")
LEFT_ROWS_AT_ONCE = 2**20


class AgeCurveSpec(NamedTuple):
    """A left stream of unique ids and a right stream that matches them by age (P5 6.2.1).

    A right tuple at time t draws bucket k with probability ``p(k) / matches``, then one of the
    left tuples whose age at t lies in bucket k, and takes its id. Bucket k holds the ages from
    ``(k - 1) * window / buckets`` up to but not including ``k * window / buckets``.
    """

    rows: int
    rows_right: int | None = None
    """`rows`, `rows_right`: Tuples of each stream. If `rows_right` is None the right has
    ``rows * rate_right / rate_left``, so that both span the same time."""
    curve: str = "increasing"
    """Shape of the age curve, see `age_curve`."""
    exponent: float = 2.0
    """Power of the curve: 2 in P5 6.2.2, varied in 6.2.5."""
    window: float = 500.0
    """W_1 of P5, in time units: the lifetime of a left tuple. The closed window of the contract is
    ``round(window * ticks_per_unit) - 1`` ticks."""
    buckets: int = 20
    """Buckets of the window (m of P5)."""
    matches: float = 5.0
    """n_1 of P5, the matches of a left tuple over its lifetime. P5's n_1 = 5 is its rate_right /
    rate_left, the most there can be; with fewer the other right tuples match nothing."""
    rate_left: float = 1.0
    rate_right: float = 5.0
    """`rate_left`, `rate_right`: Tuples per time unit (r_1 and r_2 of P5)."""
    arrivals: str = "uniform"
    """``uniform`` is P5's; it lets 0.8 * rate tuples arrive a unit, see `ArrivalSpec`."""
    ticks_per_unit: int = 1000
    """Ticks of a time unit. 1000 keep P5's shortest inter-arrival time, 0.1 units, at 100 ticks, so
    the rounding to whole ticks moves a tuple by at most 0.001 units."""
    importance: ImportanceModel = ImportanceModel()
    """Distribution of both streams' importance."""
    start_ts: int = 0
    """First tick."""
    seed: int = 0
    """The same seed gives the same rows, whatever the chunk size."""


class _Plan(NamedTuple):
    """A checked `AgeCurveSpec`: clocks in ticks, bucket edges and cumulative probabilities."""

    rows: tuple[int, int]
    arrivals: tuple[ArrivalSpec, ArrivalSpec]
    edges: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    step: int
    importance: ImportanceModel
    seed: int


def age_curve(
    curve: str, buckets: int, matches: float = 5.0, exponent: float = 2.0
) -> NDArray[np.float64]:
    """Return the expected matches p(k) of a left tuple in every bucket (P5 6.2.2, 6.2.5).

    ``increasing``: p(k) proportional to ``k**e``; ``decreasing``: to ``(m - k)**e``; ``bell``:
    to ``k**e`` for k <= m/2 and ``(m - k)**e`` after; k = 1, ... m is the bucket, e the exponent.

    Returns
    -------
    (buckets,) float64
        Youngest bucket first; the sum is `matches`.

    Raises
    ------
    SpecError
        If an option is invalid or every bucket would get 0.

    Examples
    --------
    >>> age_curve("bell", 4, matches=6).tolist()
    [1.0, 4.0, 1.0, 0.0]
    """
    check_name("curve", curve, CURVES)
    check_range("buckets", buckets, 1, 2**20)
    check_range("exponent", exponent, 0)
    k = np.arange(1, buckets + 1, dtype=np.float64)
    base = k
    if curve == "decreasing":
        base = buckets - k
    elif curve == "bell":
        base = np.where(2 * k <= buckets, k, buckets - k)
    # Dividing first keeps steep curves finite; the constant cancels.
    weights: NDArray[np.float64] = (base / buckets) ** exponent
    if not weights.sum() > 0:
        raise SpecError(
            f"curve '{curve}' over {buckets} buckets to the power {exponent:g} is 0 everywhere: "
            "use more buckets or a smaller exponent"
        )
    weights *= matches / weights.sum()
    return weights


def age_curve_sources(spec: AgeCurveSpec) -> tuple[StreamSource, StreamSource]:
    """Return the streams of `spec`, left and right (P5 6.2.1).

    Columns are ts int64 (ticks), key int64, importance float64, payload int64 (sequence number).
    P5 leaves open what a right tuple matches while its bucket is empty, as the old ones are until
    the first window has passed: here nothing. Such tuples, and those that `matches` leaves over,
    have a negative key that no other tuple has. Left keys are 0, 1, ... ``rows - 1``.

    Raises
    ------
    SpecError
        If an option is invalid.

    Examples
    --------
    >>> from engine.generate.source import in_memory
    >>> left, right = in_memory(age_curve_sources(AgeCurveSpec(rows=100, window=10, buckets=5)))
    >>> left.num_rows, right.num_rows
    (100, 500)
    """
    plan = _plan(spec)
    return (
        StreamSource(KEYED_SCHEMA, partial(_batches, plan, LEFT), plan.rows[LEFT]),
        StreamSource(KEYED_SCHEMA, partial(_batches, plan, RIGHT), plan.rows[RIGHT]),
    )


def _plan(spec: AgeCurveSpec) -> _Plan:
    check_seed(spec.seed)
    check_range("rows", spec.rows, 0)
    check_range("ticks-per-unit", spec.ticks_per_unit, 1, 10**9)
    spec.importance.check(keyed=False)
    curve = age_curve(spec.curve, spec.buckets, 1.0, spec.exponent)
    rates = exact_ratio("rate-left", spec.rate_left), exact_ratio("rate-right", spec.rate_right)
    ratio = rates[RIGHT] / rates[LEFT]
    matched = exact_ratio("matches", spec.matches) / ratio
    if matched > 1:
        raise SpecError(
            f"matches {spec.matches:g} of every left tuple need more right tuples than the "
            f"{float(ratio):g} that arrive per left tuple: lower matches or raise rate-right"
        )
    check_range("window", spec.window, 0, 2**62 / spec.ticks_per_unit)
    window = round(spec.window * spec.ticks_per_unit)
    if window < spec.buckets:
        raise SpecError(
            f"window {spec.window:g} of {window} ticks cannot be cut into {spec.buckets} buckets: "
            "use a longer window, more ticks-per-unit or fewer buckets"
        )
    rows_right = round(spec.rows * ratio) if spec.rows_right is None else spec.rows_right
    check_range("rows-right", rows_right, 0)
    arrivals = [_in_ticks(spec, rate) for rate in rates]
    arrivals[LEFT].check(spec.rows)
    arrivals[RIGHT].check(rows_right)
    cumulative = np.cumsum(curve) * float(matched)
    cumulative[-1] = float(matched)
    edges = np.array([k * window // spec.buckets for k in range(spec.buckets + 1)], dtype=np.int64)
    return _Plan(
        rows=(spec.rows, rows_right),
        arrivals=(arrivals[LEFT], arrivals[RIGHT]),
        edges=edges,
        cumulative=cumulative,
        step=max(1, int(LEFT_ROWS_AT_ONCE * ratio)),
        importance=spec.importance,
        seed=spec.seed,
    )


def _in_ticks(spec: AgeCurveSpec, per_unit: Fraction) -> ArrivalSpec:
    return ArrivalSpec(spec.arrivals, per_unit / spec.ticks_per_unit, spec.start_ts)


def _batches(plan: _Plan, side: int, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    clock = Clock(plan.arrivals[side], plan.seed, side)
    importance_draws = draws(plan.seed, Purpose.IMPORTANCE, side)
    matcher = _Matcher(plan) if side == RIGHT else None
    for first, count in chunk_lengths(plan.rows[side], chunk_rows):
        ts = clock.take(count)
        row = np.arange(first, first + count, dtype=np.int64)
        key = row if matcher is None else matcher.keys(ts, row)
        importance = plan.importance.values(importance_draws, count)
        yield pa.record_batch([ts, key, importance, row], schema=KEYED_SCHEMA)


class _Matcher:
    """Draws the left id of every right tuple, holding only left tuples that are still of use."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._clock = Clock(plan.arrivals[LEFT], plan.seed, LEFT)
        self._bucket_draws = draws(plan.seed, Purpose.BUCKET, RIGHT)
        self._member_draws = draws(plan.seed, Purpose.MEMBER, RIGHT)
        self._left = np.empty(0, dtype=np.int64)
        self._first_id = 0

    def keys(self, ts: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the keys of right tuples `row` that arrive at `ts`."""
        bucket = np.searchsorted(
            self._plan.cumulative, self._bucket_draws.random(len(ts)), side="right"
        )
        member = self._member_draws.random(len(ts))
        keys = -1 - row
        for start in range(0, len(ts), self._plan.step):
            part = slice(start, start + self._plan.step)
            self._hold(int(ts[part][0]), int(ts[part][-1]))
            self._match(ts[part], bucket[part], member[part], keys[part])
        return keys

    def _match(
        self,
        ts: NDArray[np.int64],
        bucket: NDArray[np.int64],
        member: NDArray[np.float64],
        keys: NDArray[np.int64],
    ) -> None:
        """Write the ids of the matched tuples into `keys`."""
        edges = self._plan.edges
        found = np.flatnonzero(bucket < len(edges) - 1)
        oldest, youngest = edges[bucket[found] + 1], edges[bucket[found]]
        low = np.searchsorted(self._left, ts[found] - oldest, side="right")
        high = np.searchsorted(self._left, ts[found] - youngest, side="right")
        pick = low + (member[found] * (high - low)).astype(np.int64)
        held = high > low
        keys[found[held]] = self._first_id + pick[held]

    def _hold(self, first_ts: int, last_ts: int) -> None:
        """Drop the left tuples past the window at `first_ts`, generate those up to `last_ts`."""
        gone = int(np.searchsorted(self._left, first_ts - self._plan.edges[-1], side="right"))
        self._first_id += gone
        pieces = [self._left[gone:]]
        last = int(self._left[-1]) if len(self._left) else None
        made = self._first_id + len(pieces[0])
        while made < self._plan.rows[LEFT] and (last is None or last <= last_ts):
            piece = self._clock.take(min(ROW_GROUP_ROWS, self._plan.rows[LEFT] - made))
            pieces.append(piece)
            made += len(piece)
            last = int(piece[-1])
        self._left = np.concatenate(pieces)
