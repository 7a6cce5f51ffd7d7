"""The layout of a harvested join: the arrays that its kernels share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.multiway.streams import MultiStreams, Windows
from engine.runtime.jit import Floats, Ints

Flags: TypeAlias = NDArray[np.bool_]
WHOLE = 2.0
"""In place of a throttle fraction: the tuple is not shredded."""
NONE: Ints = np.zeros((0, 0), np.int64)

# Counters of the clock, in `Clock.n`
ARRIVED, PUSHED, POPPED, SPECULATED, PEAK = range(5)
CLOCK_COUNTERS = 5
FREE, NEXT = range(2)
"""Times of the clock, in `Clock.at`: when the operator is free, and the next adaptation."""
# Rows of `Clock.interval` and `Clock.total`
PUSHES, POPS, DROPS = range(3)

MORE, ADAPT, DROPPED, DONE, FULL, NOTED, POP, PUSH = range(8)
"""Why the clock has stopped, or what happens next."""


class ReadPlan(NamedTuple):
    """What each direction of the join reads of the windows."""

    order: Ints
    """(m, m - 1) int64. r_ij: streams in the join order of each direction."""
    runs: Ints
    """(m, m) int64. Where each hop's runs begin, counted from the direction's first; the last is
    their number."""
    first: Ints
    """(m + 1,) int64. Where each direction's runs begin."""
    youngest: Ints
    oldest: Ints
    """`youngest`, `oldest`: (runs,) int64. Ages ``youngest <= age < oldest`` of each run, in
    ticks."""


class Plans(NamedTuple):
    """Several plans, one behind the other."""

    order: Ints
    """(m, m - 1) int64. Of all plans."""
    runs: Ints
    """(plans, m, m) int64."""
    first: Ints
    """(plans, m + 1) int64. Where each direction's runs begin among those of all plans."""
    youngest: Ints
    oldest: Ints
    """`youngest`, `oldest`: (runs,) int64."""


class Admitted(NamedTuple):
    """The tuples admitted to the join windows, in arrival order, expired ones included."""

    first: Ints
    """(m + 1,) int64. Where each stream's begin."""
    number: Ints
    gone: Ints
    """`number`, `gone`: (m,) int64. How many there are, and how many of them are removed for good
    (P4 7), the oldest."""
    place: Ints
    ts: Ints
    """`place`, `ts`: (n,) int64. Place among all tuples, and arrival time."""


class HarvestRules(NamedTuple):
    """The settings that do not change during a join."""

    clique: bool
    """Whether members must agree with each other and not with the latest alone."""
    combine: int
    window: Ints
    """(m,) int64."""


class Probed(NamedTuple):
    """The results of the walks of a batch of tuples."""

    comparisons: Ints
    passes: Ints
    """`comparisons`, `passes`: (n, m - 1) int64. By hop."""
    outputs: Ints
    """(n,) int64."""
    importance: Floats
    """(n,) float64. Of the outputs, added in the order in which they are found."""
    read: Ints = NONE
    candidates: Ints = NONE
    """`read`, `candidates`: (n, m - 1) int64. By hop, where an index is used: tuples of the
    selected basic windows, and those of them that the index gave. Empty for a scan, which compares
    with all of them."""


class ProbeBatch(NamedTuple):
    """Tuples to be probed."""

    place: Ints
    """(n,) int64."""
    stream: Ints
    """(n,) int64."""
    shred: Floats
    """(n,) float64. The throttle fraction of those that are shredded; `WHOLE` for the others."""


class Tuples(NamedTuple):
    """Tuples to be probed, each by a plan of its own."""

    place: Ints
    stream: Ints
    plan: Ints
    """`place`, `stream`, `plan`: (n,) int64."""
    shred: Floats
    """(n,) float64. As `ProbeBatch` has it."""


class Clock(NamedTuple):
    """The virtual clock and the input buffers."""

    n: Ints
    """(5,) int64. Tuples that have come, pushed, popped, and probed ahead; most in the windows at
    once."""
    at: Floats
    """(2,) float64. Ticks since t0: when the operator is free, and when it adapts next."""
    pushed: Ints
    """(n,) int64. Places of the tuples that were pushed, in arrival order."""
    held: Ints
    """(m,) int64. Tuples in each buffer."""
    popped: Ints
    oldest: Ints
    """`popped`, `oldest`: (m,) int64. Of each stream: tuples taken out of the buffer; the first of
    them that is unexpired."""
    interval: Ints
    total: Ints
    """`interval`, `total`: (3, m) int64. Pushes, those that a full buffer refused included; pops;
    drops."""


def admitted_all(streams: MultiStreams) -> Admitted:
    """Return windows to which all tuples were admitted."""
    none = np.zeros(streams.number, np.int64)
    places = np.arange(streams.ts.size, dtype=np.int64)
    return Admitted(streams.first, np.diff(streams.first), none, places, streams.ts)


def admitted_none(streams: MultiStreams) -> Admitted:
    """Return empty windows with room for all tuples."""
    m, n = streams.number, streams.ts.size
    counts = np.zeros(m, np.int64), np.zeros(m, np.int64)
    return Admitted(streams.first, *counts, np.zeros(n, np.int64), np.zeros(n, np.int64))


def new_clock(streams: MultiStreams, first_adaptation: float) -> Clock:
    """Return a clock at t0."""
    m, n = streams.number, streams.ts.size
    return Clock(
        np.zeros(CLOCK_COUNTERS, np.int64),
        np.array([0.0, first_adaptation]),
        np.zeros(n, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros((3, m), np.int64),
        np.zeros((3, m), np.int64),
    )


Ranges = Sequence[tuple[int, int]]


def plan_of(orders: Sequence[Sequence[int]], ranges: Sequence[Sequence[Ranges]]) -> ReadPlan:
    """Return a plan from the ages that each hop of each direction reads.

    Parameters
    ----------
    orders : m sequences of m - 1 ints
    ranges : m sequences of m - 1 sequences of (youngest, oldest)

    Examples
    --------
    >>> plan = plan_of([[1], [0]], [[[(0, 3), (5, 6)]], [[]]])
    >>> plan.runs.tolist(), plan.first.tolist(), plan.oldest.tolist()
    ([[0, 2], [0, 0]], [0, 2, 2], [3, 6])
    """
    counts = np.array([[len(hop) for hop in hops] for hops in ranges], np.int64)
    runs = np.zeros((len(orders), counts.shape[1] + 1), np.int64)
    np.cumsum(counts, axis=1, out=runs[:, 1:])
    first = np.concatenate([[0], np.cumsum(runs[:, -1])]).astype(np.int64)
    flat = [run for hops in ranges for hop in hops for run in hop]
    ages = np.array(flat, np.int64).reshape(-1, 2)
    return ReadPlan(
        np.array(orders, np.int64), runs, first,
        np.ascontiguousarray(ages[:, 0]), np.ascontiguousarray(ages[:, 1]),
    )  # fmt: skip


def whole_plan(orders: Sequence[Sequence[int]], windows: Windows) -> ReadPlan:
    """Return the plan that reads every window whole."""
    sizes = windows.size.tolist()
    return plan_of(orders, [[[(0, sizes[other] + 1)] for other in order] for order in orders])


def alone(plan: ReadPlan) -> Plans:
    """Return a plan as the only one of a layout."""
    return Plans(plan.order, plan.runs[None], plan.first[None], plan.youngest, plan.oldest)


def together(parts: Sequence[Plans]) -> Plans:
    """Return plans of the same join orders as one layout.

    Examples
    --------
    >>> plan = plan_of([[1], [0]], [[[(0, 3), (5, 6)]], [[]]])
    >>> together([alone(plan), alone(plan)]).first.tolist()
    [[0, 2, 2], [2, 4, 4]]
    """
    before = np.cumsum([0, *(part.youngest.size for part in parts[:-1])])
    youngest, oldest = (np.concatenate([part[at] for part in parts]) for at in (3, 4))
    return Plans(
        parts[0].order, np.concatenate([part.runs for part in parts]),
        np.concatenate([part.first + at for part, at in zip(parts, before, strict=True)]),
        youngest, oldest,
    )  # fmt: skip
