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


# Counters of one stream, in `StarState.n`
AT, END, OLDEST, ENDED, LEAVING, COUNT, PEAK, HEAP, ZERO, SHAKEN = range(10)
STREAM_COUNTERS = 10

# Counters of a replay, in `progress`; UNIT and COMBINATION are `NONE` where one is to begin
PHASE, NOW, INSTANT, TOUCHED, FACT, UNIT, COMBINATION, WRITTEN, BIN, MOST = range(10)
PROGRESS_COUNTERS = 10

HIGH, REST, OUTPUTS = range(3)
"""Of the sums: importance as a compensated sum, and outputs as a float, which never overflows."""


class StarStreams(NamedTuple):
    """The tuples of m streams and what joins them; the kernels do not write to it."""

    first: Ints
    """(m + 1,) int64. Where each stream's tuples begin."""
    ts: Ints
    """(n,) int64."""
    importance: Records
    """(n,) float64."""
    version: Shorts
    """(n,) int32."""
    draw: Records
    """(n,) float64. Uniforms, for a policy that draws."""
    facts_of: Ints
    """(versions + 1,) int64. Where each version's facts begin in `facts`."""
    facts: Shorts
    """(k,) int32. Facts by version, in the order of F's rows."""
    spans: Ints
    """(facts * m, 2) int64. The versions in which a fact is active, first and behind the last."""
    arrives: Ints
    """(versions, 2) int64. Ticks of the first and of the last tuple of each."""
    ends: Ints
    """(e,) int64. Ticks from which on versions match nothing any more, stream by stream,
    ascending."""
    ended: Shorts
    """(e,) int32. These versions."""
    ends_of: Ints
    """(m + 1,) int64. Where each stream's begin."""


class StarRules(NamedTuple):
    """The settings of a replay (contract, sections 2 and 3)."""

    structure: int
    """Of the policy: when its priorities change."""
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
    """`window`, `budget`, `first_ts`: (m,) int64. W; K, or `FOREVER` where that many tuples are
    never there at once; the first arrival."""
    a: float
    b: float
    d: float
    alpha: Records
    beta: Records
    """`alpha`, `beta`: (m,) float64."""
    initial_by_importance: bool
    table: Records
    """(m, buckets + 1) float64. Priority by age bucket, for AGE; the streams' own numbers of
    buckets are `buckets`."""
    buckets: Ints
    """(m,) int64."""


class StarState(NamedTuple):
    """The join memories and their counters."""

    held: Ints
    arrived: Ints
    seen: Ints
    """`held`, `arrived`, `seen`: (facts * m,) int64. Residents, arrivals of this instant, and
    tuples of the window or of all time that each fact joins."""
    low: Ints
    """(facts * m,) int64. The first version of a fact's that may have residents."""
    touched: Shorts
    """(facts,) int32. Facts that join an arrival of this instant."""
    mark: Ints
    """(facts,) int64. The last instant in which each was."""
    head: Shorts
    arrival: Shorts
    """`head`, `arrival`: (versions,) int32. Newest resident, and last arrival of this instant."""
    m: Records
    hits: Records
    """`m`, `hits`: (versions,) float64. Match count, and outputs with an arrival of this instant,
    of a version's tuples."""
    counted: Ints
    rewarded: Ints
    """`counted`, `rewarded`: (versions,) int64. The last instant in which that was found, and in
    which they were rewarded for matches."""
    inside: NDArray[np.bool_]
    """(n,) bool. Whether a tuple is a resident."""
    after: Shorts
    before: Shorts
    chain: Shorts
    """`after`, `before`, `chain`: (n,) int32. Chain of a version's residents, both ways, and of its
    arrivals of this instant."""
    place: Shorts
    """(n,) int32. Among the stream's `members`."""
    priority: Records
    value: Records
    rank_m: Records
    """`priority`, `value`, `rank_m`: (n,) float64. Priority, V of DGL, and the m that the priority
    was last computed from."""
    members: Shorts
    """(places,) int32. Residents, stream by stream, in no order."""
    room: Ints
    """(m + 1,) int64. Where each stream's begin."""
    heap: Records
    zero: Records
    """`heap`, `zero`: (2 * places + 64 * m,) ENTRY. Ranks of residents, least first, with those of
    tuples that are gone; DGL has those whose priority is 0 in the second, else it is (0,)."""
    pool: Ints
    """(p,) int64. What one fact joins now, stream by stream: residents, then arrivals."""
    pool_importance: Records
    work: Records
    """`pool_importance`, `work`: (p,) float64."""
    pool_room: Ints
    """(m + 1,) int64. Where each stream's begin in these."""
    sizes: Ints
    """(m, 2) int64. How many residents there are in `pool`, and how many tuples in all."""
    part: Ints
    """(m, 2) int64. The part of `pool` that a stream gives to combinations: begin and size."""
    counter: Ints
    """(m,) int64."""
    least: Ints
    """(m,) int64. Resident of least rank of each stream, `NONE` where it is to be found; of one
    memory for all."""
    n: Ints
    """(m, STREAM_COUNTERS) int64."""


class StarOutputs(NamedTuple):
    """Output tuples."""

    members: Ints
    """(n, m) int64. Place of each stream's member among the stream's tuples in arrival order."""
    ts: Ints
    """(n,) int64. The instant in which they are produced."""
    importance: Floats
    """(n,) float64."""
    fact: Shorts
    """(n,) int32. What joins the members, a position in F."""


class StarTallies(NamedTuple):
    """Sums over the outputs."""

    by_fact: Ints
    importance_by_fact: Floats
    """`by_fact`, `importance_by_fact`: (facts,) int64 and float64."""
    edges: Ints
    """(b,) int64. Left edges of the time bins."""
    by_bin: Ints
    importance_by_bin: Floats
    """`by_bin`, `importance_by_bin`: (b,) int64 and float64."""
    ages: Ints
    """(m, buckets) int64. Outputs by the ages of their older members, where they are wanted."""
