"""The oracle of the harvesting operator (GrubJoin), tuple by tuple in virtual time.

It imports nothing of ours but `naive_multijoin` and nothing beyond the standard library. Streams
and hops count from 0 where the paper's count from 1. How rankings and counts are chosen is not
here: that is the `configure` it is given. Sources: semantics.md 6; P4 2, 3, 4.1, 5.2 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from naive_multijoin import (
    Meets,
    Member,
    Output,
    Tuple,
    Window,
    arrival,
    arrivals_of,
    output_of,
    pair_meets,
)

SHED, SHRED = "shed", "shred"  # purposes of draws
LEAST_Z = 0.001

Orders = Sequence[Sequence[int]]
Scores = list[list[list[float]]]


class Histogram(NamedTuple):
    """L_i: how often an output had a difference T(t^(i)) - T(t^(0)), in ticks (P4 5.2.2).

    Attributes
    ----------
    low, width : float
        Bucket k is from low + k * width to low + (k + 1) * width, with low = -W_i and
        width = (W_i + W_0) / the number of buckets.
    counts : list of int
        Empty where W_i or W_0 is not in ticks: then nothing is learnt.
    """

    low: float
    width: float
    counts: list[int]


class Setting(NamedTuple):
    """How much of which window is read.

    Attributes
    ----------
    counts : list of lists of int
        c[i][j]: logical basic windows read by direction i at hop j.
    rankings : list of lists of lists of int
        s[i][j]: all logical basic windows of that window, from 0 (the youngest), best first.
    """

    counts: list[list[int]]
    rankings: list[list[list[int]]]


class State(NamedTuple):
    """What `configure` is given at an adaptation, z already adapted.

    Attributes
    ----------
    time, z, beta : float
        In ticks since t0; the new throttle fraction; pops / pushes of the interval.
    interval : float
        Delta, in ticks.
    pushes, pops : list of int
        Of every stream, of the interval.
    histograms : list of Histogram
        Of every stream, since the beginning; stream 0's never counts anything.
    comparisons, passes : list of lists of int
        Hop statistics of the interval, by direction and hop, of the sampled tuples alone: tuples
        compared, and those of them that held.
    ages : list of lists of lists of int
        Since the beginning: outputs of sampled tuples of each direction, by hop and logical basic
        window (from 0, the youngest) in which the member there lay.
    """

    time: float
    z: float
    beta: float
    interval: float
    pushes: list[int]
    pops: list[int]
    histograms: list[Histogram]
    comparisons: list[list[int]]
    passes: list[list[int]]
    ages: list[list[list[int]]]


class Adaptation(NamedTuple):
    """One adaptation: when, and what is in force from it on."""

    time: float
    z: float
    beta: float
    counts: list[list[int]]
    rankings: list[list[list[int]]]


class Harvest(NamedTuple):
    """What `Operator.run` returns.

    Attributes
    ----------
    outputs : list of (rows, ts, importance)
        Sorted by (ts, rows).
    comparisons : int
    pushes, pops, dropped, shed : list of int
        Of every stream. A dropped tuple found its buffer full and counts as a push; a tuple that
        was shed does not.
    adaptations : list of Adaptation
    peak : int
        Most tuples in all windows after an insertion.
    histograms : list of Histogram
        As they are at the end.
    """

    outputs: list[Output]
    comparisons: int
    pushes: list[int]
    pops: list[int]
    dropped: list[int]
    shed: list[int]
    adaptations: list[Adaptation]
    peak: int
    histograms: list[Histogram]


def basic_windows(window: Window, basic: int) -> int:
    """n: the number of logical basic windows, of `basic` ticks (count windows: tuples) each."""
    return max(1, math.ceil(window[1] / basic))


def empty_histogram(windows: Sequence[Window], i: int, buckets: int) -> Histogram:
    """L_i over [-W_i, W_0] with nothing in it."""
    (kind_i, w_i), (kind_0, w_0) = windows[i], windows[0]
    if "rows" in {kind_i, kind_0}:
        return Histogram(0.0, 0.0, [])
    return Histogram(float(-w_i), (w_i + w_0) / buckets, [0] * buckets)


def histogram_add(histogram: Histogram, difference: int) -> None:
    """Count a difference of `difference` ticks in its bucket; the last is closed."""
    low, width, counts = histogram
    if counts:
        # the span is a whole number of ticks: buckets are found without rounding
        span = round(width * len(counts))
        place = (difference - int(low)) * len(counts) // span if span else 0
        counts[min(len(counts) - 1, place)] += 1


def mass(histogram: Histogram, low: float, high: float) -> float:
    """L(I): the frequency between `low` and `high`, that of a bucket being spread evenly over it.

    Where all buckets are of width 0, all mass is at that one point.
    """
    if histogram.width == 0:
        return float(sum(histogram.counts)) if low <= histogram.low <= high else 0.0
    total = 0.0
    for k, count in enumerate(histogram.counts):
        left = histogram.low + k * histogram.width
        right = histogram.low + (k + 1) * histogram.width
        shared = min(right, high) - max(left, low)
        if shared > 0:
            total = total + count * shared / histogram.width
    return total


def _score(histograms: Sequence[Histogram], i: int, other: int, low: int, high: int) -> float:
    """p: how often an output's tuple of `other` is `low` to `high` ticks older than that of i."""
    if i == 0:  # equation 1
        return mass(histograms[other], -high, -low)
    if other == 0:  # equation 2, where A of stream 0 is always 0
        return mass(histograms[i], low, high)
    total = 0.0
    for v, count in enumerate(histograms[other].counts):  # equation 2
        left = histograms[other].low + v * histograms[other].width
        right = histograms[other].low + (v + 1) * histograms[other].width
        middle = (right + left) / 2
        total = total + count * mass(histograms[i], low + middle, high + middle)
    return total


def scores(
    histograms: Sequence[Histogram], windows: Sequence[Window], b: int, orders: Orders
) -> Scores:
    """p[i][j][k] of every direction, hop and logical basic window (P4 5.2.2, equations 1 and 2).

    They are frequencies, not divided by their sum. Where a hop's add up to 0, they are all 1.0.
    """
    p: Scores = []
    for i, order in enumerate(orders):
        p.append([])
        for other in order:
            n = basic_windows(windows[other], b)
            hop = [_score(histograms, i, other, b * (k - 1), b * k) for k in range(1, n + 1)]
            p[i].append(hop if sum(hop) > 0 else [1.0] * n)
    return p


class Operator:
    """A multi-way join that is throttled and harvests its windows.

    Parameters
    ----------
    streams, windows, meets, graph, combine, start_ts
        As of `naive_multijoin.exact`.
    orders : sequence of sequences of int
        R_i of every direction i, of the other streams.
    basic : int
        b, in ticks; for count windows in tuples.
    capacity : float, optional
        Comparisons a second; None: nothing takes time.
    per_second : float
        Ticks a second.
    buffer : int, optional
        Tuples that an input buffer holds; None: any number.
    delta : float
        Ticks between adaptations; math.inf: none.
    gamma : float
        Boost factor.
    throttle : float, optional
        A fixed throttle fraction; None: it is adapted, from 1 on.
    omega : float
        Share of the tuples that are sampled.
    buckets : int
        Of every histogram.
    draws : callable
        draws(purpose, stream, row): a uniform in [0, 1); purposes are `SHED` and `SHRED`.
    keep : sequence of float, optional
        RandomDrop: the share of every stream that is let in.
    conserve : bool
        Memory-conserving admission (P4 7).
    configure : callable, optional
        configure(State) -> Setting. Before the first adaptation, at adaptations that leave z at 1,
        and where it is None, everything is read.

    Notes
    -----
    - In reach, of count windows too, is what is in reach among *all* arrivals of the stream; of
      that the tuples that were let in are read. So outputs are always some of the exact ones. The
      age of u as seen from x is x.ts - u.ts or, of count windows, the number of tuples of u's
      stream that arrived between u and x, shed and dropped ones included.
    - Windows are expired as tuples are popped, for NOW = h.ts, before the probe; the peak is of
      what they hold then, the popped tuple included.
    - A window's farthest selected logical basic window counts also where another hop of that
      direction selects none. Of count windows the horizon is in tuples: at T a tuple goes that
      has at least so many later ones of its stream, all arrivals counted.
    - Where memory is conserved, no tuple goes before a sampled tuple has had an output, if any are.
    - Outputs before `start_ts` are learnt from, though not returned.
    """

    def __init__(
        self,
        streams: Sequence[Sequence[Tuple]],
        windows: Sequence[Window],
        meets: Meets,
        graph: str,
        *,
        orders: Orders,
        basic: int,
        capacity: float | None = None,
        per_second: float = 1.0,
        buffer: int | None = None,
        delta: float = math.inf,
        gamma: float = 1.2,
        throttle: float | None = None,
        omega: float = 0.0,
        buckets: int = 10,
        draws: Callable[[str, int, int], float] = lambda *_: 0.0,
        keep: Sequence[float] | None = None,
        conserve: bool = False,
        configure: Callable[[State], Setting] | None = None,
        combine: str = "min",
        start_ts: int | None = None,
    ) -> None:
        m = len(streams)
        self.arrivals = arrivals_of(streams)
        self.t0 = self.arrivals[0].ts if self.arrivals else 0
        self.windows, self.meets, self.graph, self.orders = windows, meets, graph, orders
        self.basic, self.buffer, self.delta, self.gamma = basic, buffer, delta, gamma
        self.seconds_each = None if capacity is None else per_second / capacity
        self.throttle, self.omega, self.draws, self.keep = throttle, omega, draws, keep
        self.conserve, self.configure = conserve, configure
        self.combine, self.start_ts = combine, start_ts

        self.z = 1.0 if throttle is None else throttle
        self.setting = self._everything()
        self.free = 0.0  # F
        self.next = delta  # T
        self.buffers: list[list[Member]] = [[] for _ in range(m)]
        self.held: list[list[Member]] = [[] for _ in range(m)]  # the windows, oldest first
        self.arrived = [0] * m
        self.histograms = [empty_histogram(windows, i, buckets) for i in range(m)]
        self.pushes, self.pops, self.dropped, self.shed = ([0] * m for _ in range(4))
        self.comparisons = self.peak = 0
        self.outputs: list[Output] = []
        self.adaptations: list[Adaptation] = []
        self.ages = [
            [[0] * basic_windows(windows[other], basic) for other in order] for order in orders
        ]
        self._start_interval()

    def run(self) -> Harvest:
        """Take in all arrivals and return what came of them."""
        for k in self.arrivals:
            a = float(k.ts - self.t0)
            self._process(a)
            self._adapt_until(a)
            self._push(k)
        self._process(math.inf)
        return Harvest(
            sorted(self.outputs, key=lambda out: (out[1], out[0])),
            self.comparisons,
            self.pushes,
            self.pops,
            self.dropped,
            self.shed,
            self.adaptations,
            self.peak,
            self.histograms,
        )

    def _push(self, k: Member) -> None:
        i = k.stream
        self.arrived[i] += 1
        if self.keep is not None and self.draws(SHED, i, k.row) >= self.keep[i]:
            self.shed[i] += 1
            return
        self.pushes[i] += 1
        self.pushes_now[i] += 1
        if self.buffer is not None and len(self.buffers[i]) >= self.buffer:
            self.dropped[i] += 1
        else:
            self.buffers[i].append(k)

    def _process(self, until: float) -> None:
        """Pop and join what can be started up to `until`: run(a) of the definition."""
        while any(self.buffers):
            h = min((buffer[0] for buffer in self.buffers if buffer), key=arrival)
            start = max(self.free, float(h.ts - self.t0))
            if start > until:
                return
            self._adapt_until(start)
            self.buffers[h.stream].pop(0)
            self.pops[h.stream] += 1
            self.pops_now[h.stream] += 1
            self._expire(h)
            made = self._probe(h)
            self.comparisons += made
            self.held[h.stream].append(h)
            self.peak = max(self.peak, sum(len(window) for window in self.held))
            if self.seconds_each is not None:
                self.free = start + made * self.seconds_each

    def _age(self, u: Member, x: Member) -> int:
        """Age of u, which is earlier than x, as seen from x: in ticks, or in tuples."""
        if self.windows[u.stream][0] == "rows":
            return x.seen[u.stream] - u.seen[u.stream] - 1
        return x.ts - u.ts

    def _is_in_reach(self, u: Member, x: Member) -> bool:
        kind, size = self.windows[u.stream]
        age = self._age(u, x)
        return age < size if kind == "rows" else age <= size

    def _expire(self, h: Member) -> None:
        self.held = [[u for u in window if self._is_in_reach(u, h)] for window in self.held]

    def _read(self, x: Member, j: int, shredded: bool) -> list[Member]:
        """Return the tuples that x reads at hop j, youngest first."""
        other = self.orders[x.stream][j]
        in_reach = [u for u in reversed(self.held[other]) if self._is_in_reach(u, x)]
        if shredded:
            if j > 0:
                return in_reach
            cuts = [math.floor(q * self.z) for q in range(len(in_reach) + 1)]
            return [
                u
                for u, (cut, following) in zip(in_reach, pairwise(cuts), strict=True)
                if following > cut
            ]
        n = basic_windows(self.windows[other], self.basic)
        count, ranking = self.setting.counts[x.stream][j], self.setting.rankings[x.stream][j]
        selected = ranking[:count]
        return [u for u in in_reach if min(n - 1, self._age(u, x) // self.basic) in selected]

    def _probe(self, x: Member) -> int:
        """Join x with what is in the windows and return the comparisons made."""
        i, hops = x.stream, len(self.orders[x.stream])
        sampled = self.omega > 0 and self.draws(SHRED, i, x.row) < self.omega
        shredded = sampled and self.z < 1
        if not shredded and 0 in self.setting.counts[i]:
            return 0
        partial = [[x]]
        made = 0
        for j in range(hops):
            read = self._read(x, j, shredded)
            longer = []
            for bound in partial:
                for u in read:
                    made += 1
                    against = bound if self.graph == "clique" else [x]
                    if all(pair_meets(self.meets, u, v) for v in against):
                        longer.append([*bound, u])
            if sampled:
                self.hop_comparisons[i][j] += len(partial) * len(read)
                self.hop_passes[i][j] += len(longer)
            partial = longer
        for members in partial:
            self._emit(members, sampled)
        return made

    def _emit(self, members: list[Member], sampled: bool) -> None:
        out = output_of(members, self.combine)
        if self.start_ts is None or out[1] >= self.start_ts:
            self.outputs.append(out)
        if sampled:
            ts = {u.stream: u.ts for u in members}
            for i in range(1, len(self.windows)):
                histogram_add(self.histograms[i], ts[i] - ts[0])
            x = members[0]
            for j, u in enumerate(members[1:]):
                last = basic_windows(self.windows[u.stream], self.basic) - 1
                self.ages[x.stream][j][min(last, self._age(u, x) // self.basic)] += 1

    def _everything(self) -> Setting:
        n = [
            [basic_windows(self.windows[other], self.basic) for other in order]
            for order in self.orders
        ]
        return Setting(n, [[list(range(each)) for each in hops] for hops in n])

    def _start_interval(self) -> None:
        self.pushes_now = [0] * len(self.windows)
        self.pops_now = [0] * len(self.windows)
        self.hop_comparisons = [[0] * len(order) for order in self.orders]
        self.hop_passes = [[0] * len(order) for order in self.orders]

    def _adapt_until(self, time: float) -> None:
        while self.next <= time:
            self._adapt()
            self.next = self.next + self.delta

    def _adapt(self) -> None:
        """Set z, then counts and rankings, anew at T (P4 3.1, 4.2)."""
        pushed, popped = sum(self.pushes_now), sum(self.pops_now)
        beta = popped / pushed if pushed else 1.0
        if self.throttle is None:
            z = beta * self.z if beta < 1 else min(1.0, self.gamma * self.z)
            self.z = max(LEAST_Z, z)
        self.setting = self._everything()
        if self.configure is not None:
            state = State(
                self.next,
                self.z,
                beta,
                self.delta,
                self.pushes_now,
                self.pops_now,
                self.histograms,
                self.hop_comparisons,
                self.hop_passes,
                self.ages,
            )
            # asked where nothing is shed, too: it learns by every interval
            chosen = self.configure(state)
            self.setting = chosen if self.z < 1 else self.setting
        self.adaptations.append(Adaptation(self.next, self.z, beta, *self.setting))
        if self.conserve and self.knows():
            self.held = [
                [u for u in window if not self._is_beyond_horizon(u)] for window in self.held
            ]
        self._start_interval()

    def knows(self) -> bool:
        """Tell whether a sampled tuple has had an output, if any are sampled."""
        return self.omega == 0 or any(sum(hop) for hops in self.ages for hop in hops)

    def _is_beyond_horizon(self, u: Member) -> bool:
        """Tell whether u is farther back, at T, than any window that is selected (P4 7)."""
        kind, size = self.windows[u.stream]
        farthest = 0  # k_max, from 1
        for order, counts, rankings in zip(self.orders, *self.setting, strict=True):
            for window, count, ranking in zip(order, counts, rankings, strict=True):
                if window == u.stream and count > 0:
                    farthest = max(farthest, 1 + max(ranking[:count]))
        last = basic_windows((kind, size), self.basic)
        horizon = size if farthest == last else self.basic * farthest
        if kind == "rows":
            return self.arrived[u.stream] - u.seen[u.stream] - 1 >= horizon
        return self.next - (u.ts - self.t0) > horizon
