"""The layout of a star join of several streams: the arrays that its kernels share.

The tuples of all streams lie one stream behind the other and are known by their place there, which
within a stream rises with (ts, row). A *version* (`engine.facts.index`) stands for all tuples of
a stream that the same facts join. Of every fact and stream, at ``fact * streams + stream``, it is
counted how many tuples it joins, so that the combinations that a tuple makes are the sum over its
facts of the product of the other streams' counters.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints, Records

Shorts: TypeAlias = NDArray[np.int32]


# Counters of one stream, in `State.n`
AT, END, OLDEST, ENDED, LEAVING, COUNT, PEAK, HEAP = range(8)
STREAM_COUNTERS = 8

# Counters of a replay, in `progress`; UNIT and COMBINATION are `NONE` where one is to begin
PHASE, NOW, INSTANT, TOUCHED, FACT, UNIT, COMBINATION, WRITTEN, BIN = range(9)
PROGRESS_COUNTERS = 9

HIGH, REST, OUTPUTS = range(3)
"""Of the sums: importance as a compensated sum, and outputs as a float, which never overflows."""


class StarStreams(NamedTuple):
    """The tuples of m streams and what joins them; the kernels do not write to it.

    Attributes
    ----------
    first : (m + 1,) int64
        Where each stream's tuples begin.
    ts : (n,) int64
    importance : (n,) float64
    version : (n,) int32
    draw : (n,) float64
        Uniforms, for a policy that draws.
    facts_of : (versions + 1,) int64
        Where each version's facts begin in `facts`.
    facts : (k,) int32
        Facts by version, in the order of F's rows.
    spans : (facts * m, 2) int64
        The versions in which a fact is active, first and behind the last.
    arrives : (versions, 2) int64
        Ticks of the first and of the last tuple of each.
    ends : (e,) int64
        Ticks from which on versions match nothing any more, stream by stream, ascending.
    ended : (e,) int32
        These versions.
    ends_of : (m + 1,) int64
        Where each stream's begin.
    """

    first: Ints
    ts: Ints
    importance: Records
    version: Shorts
    draw: Records
    facts_of: Ints
    facts: Shorts
    spans: Ints
    arrives: Ints
    ends: Ints
    ended: Shorts
    ends_of: Ints


class StarRules(NamedTuple):
    """The settings of a replay (contract, sections 2 and 3).

    Attributes
    ----------
    structure : int
        Of the policy: when its priorities change.
    window, budget, first_ts : (m,) int64
        W; K, or `FOREVER` where that many tuples are never there at once; the first arrival.
    alpha, beta : (m,) float64
    table : (m, buckets + 1) float64
        Priority by age bucket, for AGE; the streams' own numbers of buckets are `buckets`.
    buckets : (m,) int64
    """

    structure: int
    estimator: int
    after_admission: bool
    combine: int
    ties_by_importance: bool
    emit: bool
    start_ts: int
    t0: int
    window: Ints
    budget: Ints
    first_ts: Ints
    a: float
    b: float
    d: float
    alpha: Records
    beta: Records
    initial_by_importance: bool
    table: Records
    buckets: Ints


class StarState(NamedTuple):
    """The join memories and their counters.

    Attributes
    ----------
    held, arrived, seen : (facts * m,) int64
        Residents, arrivals of this instant, and tuples of the window or of all time that each fact
        joins.
    low : (facts * m,) int64
        The first version of a fact's that may have residents.
    touched : (facts,) int32
        Facts that join an arrival of this instant.
    mark : (facts,) int64
        The last instant in which each was.
    head, arrival : (versions,) int32
        Newest resident, and last arrival of this instant.
    m, hits : (versions,) float64
        Match count, and outputs with an arrival of this instant, of a version's tuples.
    counted, rewarded : (versions,) int64
        The last instant in which that was found, and in which they were rewarded for matches.
    inside : (n,) bool
        Whether a tuple is a resident.
    after, before, chain : (n,) int32
        Chain of a version's residents, both ways, and of its arrivals of this instant.
    place : (n,) int32
        Among the stream's `members`.
    priority, value, rank_m : (n,) float64
        Priority, V of DGL, and the m that the priority was last computed from.
    members : (places,) int32
        Residents, stream by stream, in no order.
    room : (m + 1,) int64
        Where each stream's begin.
    heap : (2 * places + 64 * m,) ENTRY
        Ranks of residents, least first, with those of tuples that are gone.
    pool : (p,) int64
        What one fact joins now, stream by stream: residents, then arrivals.
    pool_importance, work : (p,) float64
    pool_room : (m + 1,) int64
        Where each stream's begin in these.
    sizes : (m, 2) int64
        How many residents there are in `pool`, and how many in all.
    counter : (m,) int64
    n : (m, STREAM_COUNTERS) int64
    keys : (0,) KEY
        For the heap's functions, which can tell keys where they stand.
    """

    held: Ints
    arrived: Ints
    seen: Ints
    low: Ints
    touched: Shorts
    mark: Ints
    head: Shorts
    arrival: Shorts
    m: Records
    hits: Records
    counted: Ints
    rewarded: Ints
    inside: NDArray[np.bool_]
    after: Shorts
    before: Shorts
    chain: Shorts
    place: Shorts
    priority: Records
    value: Records
    rank_m: Records
    members: Shorts
    room: Ints
    heap: Records
    pool: Ints
    pool_importance: Records
    work: Records
    pool_room: Ints
    sizes: Ints
    counter: Ints
    n: Ints
    keys: Records


class StarOutputs(NamedTuple):
    """Output tuples.

    Attributes
    ----------
    members : (n, m) int64
        Place of each stream's member among the stream's tuples in arrival order.
    ts : (n,) int64
        The instant in which they are produced.
    importance : (n,) float64
    fact : (n,) int32
        What joins the members, a position in F.
    """

    members: Ints
    ts: Ints
    importance: Floats
    fact: Shorts


class StarTallies(NamedTuple):
    """Sums over the outputs.

    Attributes
    ----------
    by_fact, importance_by_fact : (facts,) int64 and float64
    edges : (b,) int64
        Left edges of the time bins.
    by_bin, importance_by_bin : (b,) int64 and float64
    ages : (m, buckets) int64
        Outputs by the ages of their older members, where they are wanted.
    """

    by_fact: Ints
    importance_by_fact: Floats
    edges: Ints
    by_bin: Ints
    importance_by_bin: Floats
    ages: Ints
