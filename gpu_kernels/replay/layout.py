"""The inputs of the replay kernels: columns of the streams, and the numbers of each lane."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from gpu_kernels.portable import Integer, portable

Array = Any
"""Device arrays, whose types are numba's."""

FOREVER = 2**63 - 1
"""Until when a tuple stays that is never evicted: its expiry ends it."""


class Ranking(IntEnum):
    """When the priority of a resident changes: it decides what a kernel keeps in its slot."""

    STATIC = 0
    """Never."""
    BY_MATCHES = 1
    """With the match count; a function of this instant alone."""
    DECAYING = 2
    """DGL's V: falls with time, rises by matches."""
    BY_AGE = 3
    """With age: a table."""
    ANY = 4
    """At every instant, from its previous value too."""
    VALUED = 5
    """With age and the first match: a value of the tuple's own times a table."""
    SAMPLED = 6
    """Never: it is drawn from the tuple's size, and may be none at all."""


class Pooling(IntEnum):
    """Whether both sides have one memory, and how their tuples compare in it."""

    NONE = 0
    BY_PRIORITY = 1
    BY_VALUE = 2
    """By what residents have yielded, see `gpu_kernels.pool`."""
    CORRECTED = 3
    """By priority, corrected by what residents have yielded, see there."""

    @property
    def learns(self) -> bool:
        """Whether what residents yield is noted."""
        return self >= Pooling.BY_VALUE


@portable
def no_arrival(
    imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float
) -> float:
    """Stand in for the priority at arrival of a policy that has none."""
    return 0.0


@portable
def no_now(
    imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
) -> float:
    """Stand in for the priority now of a policy that has none."""
    return 0.0


@portable
def no_initial(imp: float, m: float, by_importance: bool) -> float:
    """Stand in for DGL's first priority."""
    return 0.0


@portable
def no_decayed(value: float, lost: float) -> float:
    """Stand in for DGL's P."""
    return 0.0


@portable
def no_gained(
    value: float, lost: float, lost_before: float, imp: float, m: float, remaining: float,
    alpha: float,
) -> float:  # fmt: skip
    """Stand in for DGL's gain."""
    return 0.0


@portable
def no_valued(value: float, best: float) -> float:
    """Stand in for the priority of a policy that ranks by values."""
    return 0.0


@portable
def no_sampled(size: float, scale: float, draw: float) -> float:
    """Stand in for the priority of a policy that samples."""
    return 0.0


class PolicyFunctions(NamedTuple):
    """A policy as kernels get it: plain portable functions, compiled in."""

    ranking: Ranking
    by_importance: bool
    """Break ties of priority by importance and match count."""
    arrival: Callable[..., float] = no_arrival
    """``(imp, m, rel, draw, a, b, d) -> float`` for static rankings."""
    now: Callable[..., float] = no_now
    """``(imp, m, age, lifetime, previous, produced) -> float`` for BY_MATCHES and ANY."""
    initial: Callable[..., float] = no_initial
    decayed: Callable[..., float] = no_decayed
    gained: Callable[..., float] = no_gained
    """`initial`, `decayed`, `gained`: DGL's, for DECAYING."""
    valued: Callable[..., float] = no_valued
    """``(value, best) -> float``: the priority, for VALUED."""
    sampled: Callable[..., float] = no_sampled
    """``(size, scale, draw) -> float``: the priority, less than 0 for a tuple that is not admitted,
    for SAMPLED."""
    tabulated: bool = False
    """Take importance, match count and time from the columns `x`, `m_column` or `m_table`, and `y`,
    where the host has put what devices would round differently."""
    draws: bool = False
    """Whether `arrival` looks at its draw."""
    pooling: Pooling = Pooling.NONE


LANE_INTEGERS = (
    # of each side: the left's, then the right's beside it
    "left_begin", "right_begin", "left_end", "right_end",  # rows of the streams' columns
    "left_window", "right_window",  # W in ticks
    "left_budget", "right_budget",  # K
    "left_first", "right_first",  # first ts
    "left_slots", "right_slots",  # where they begin in the lane's slots
    "left_pending", "right_pending",  # where their arrivals of an instant are kept
    "left_table", "right_table", "left_buckets", "right_buckets",  # age tables
    "left_until", "right_until",  # where the retention is recorded, -1: nowhere
    "left_partners", "right_partners",  # where those of their ids begin; 0 in an equi-join
    # of the lane
    "t0", "start_ts", "seed", "estimator", "after_admission", "combine", "initial_by_importance",
    "keys", "counters_at", "slots_at",
)  # fmt: skip
BEGIN, END, WINDOW, BUDGET, FIRST, SLOTS, PENDING, TABLE, BUCKETS, UNTIL, PARTNERS = range(0, 22, 2)
"""Of the left side; the right side's stand one behind."""
(
    T0, START_TS, SEED, ESTIMATOR, AFTER_ADMISSION, COMBINES, INITIAL_BY_IMPORTANCE,
    KEYS, COUNTERS_AT, SLOTS_AT,
) = range(22, 32)  # fmt: skip

LANE_FLOATS = (
    "left_alpha", "right_alpha", "left_beta", "right_beta", "left_scale", "right_scale",
    "a", "b", "d",
)  # fmt: skip
ALPHA, BETA, SCALE = range(0, 6, 2)
"""Of the left side; the right side's stand one behind."""
A, B, D = 6, 7, 8

OUTPUTS, LEFT_PEAK, RIGHT_PEAK, PEAK = range(4)
FOUND = 4
"""Integers that come back for a lane; the last is left at 0 where each side has its memory."""

NOBODY = 0
"""Key of tuples that no fact joins: they are never admitted (contract, section 5)."""

BY_MEMORY, BY_WINDOW, BY_HISTORY = range(3)
"""Estimators of match counts (contract, section 2, step 2)."""

SLOT_BYTES = 8 + 8 + 4 + 4


class LaneStreams(NamedTuple):
    """Columns of all streams of a launch; lanes may share their rows."""

    ts: Array
    """(rows,) int64. Ticks; ascending within a stream."""
    key: Array
    """(rows,) int32. Dense within the lanes that use the stream."""
    importance: Array
    """(rows,) float64."""
    row: Array
    """(rows,) int64. Position in the archive, for draws."""
    peers: Array
    """(rows,) int32. Pairs with opposite tuples of the same instant: through facts, one for each
    fact."""
    twins: Array
    """(rows,) int32. Tuples of the same stream, instant and key, at the first of them; 0 at the
    others."""
    x: Array
    y: Array
    m_column: Array
    m_table: Array
    """`x`, `y`, `m_column`, `m_table`: float64. For tabulated policies, else of length 1; by row,
    but `m_table` by match count. VALUED: `x` has the tuples' values; SAMPLED: their sizes."""
    partner_first: Array
    """int64. Where each key's partners begin, side by side; of length 1 in an equi-join, as the
    others."""
    partner: Array
    """int32. Opposite keys that a key joins, ascending, repeated once per fact that joins the
    two."""
    partner_end: Array
    """int64. The tick from which on a key matches nothing any more, beside `partner_first`."""


class Slots(NamedTuple):
    """Join memories of the lanes of a block: the left side's slots, then the right side's."""

    value: Array
    """float64. The priority, or DGL's V; BY_MATCHES in one memory BY_VALUE: that at admission."""
    m: Array
    """float64. The match count that the rank was last computed from; VALUED: 1 once it has
    matched."""
    arrival: Array
    """int32. Row of the streams' columns; -1 where the slot is free."""
    key: Array
    """int32."""


class Lane(NamedTuple):
    """The numbers of one lane that steps of both sides need."""

    t0: Integer
    start_ts: Integer
    seed: Integer
    estimator: Integer
    after_admission: Integer
    combine: Integer
    by_importance: Integer
    keys: Integer
    counters: Integer
    a: float
    b: float
    d: float


class LaneSide(NamedTuple):
    """The numbers of one side of a lane."""

    number: Integer
    begin: Integer
    end: Integer
    window: Integer
    budget: Integer
    first: Integer
    slots: Integer
    pending: Integer
    table: Integer
    buckets: Integer
    until: Integer
    partners: Integer
    alpha: float
    beta: float
    scale: float
