"""The join memory state graph of one memory by dynamic programming: ODJA (P1 4.2), OSSJ (P2 3.1).

The two are one algorithm: what differs is which tuples match, and that is in `Matches`. Exponential
in the budget, so for small cases; the flow has no such limit.

Of P1's graph those states are left out that no best path needs:

- A tuple is dropped once no number of its remaining matches has a value above 0. In
  particular tuples without remaining matches are never held.
- A tuple leaves a memory that has room for it only where it is about to meet a match of negative
  weight: up to there, holding it costs nothing.
- Nothing changes at instants at which no tuple of this memory arrives or meets a match.

P1 keeps the states of two instants. The paths' links to the states before are needed longer: until
all paths come from one state, from which on backwards everything is decided. What no path uses any
more is dropped now and then, so memory follows the states of the last windows, not the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.optimum.intervals import Matches
from engine.optimum.retained import NOT_STORED
from engine.optimum.state_sets import Links, drop, earn, start, successors
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints, kernel

ROOM = 1 << 20
"""Links that may be there before the first tidying."""


class Paths:
    """The best path to each of the last states.

    Attributes
    ----------
    lost : list of (position, tick)
        Tuples that the decided part of all paths lost, each with the tick given to `extend`.
    stored : int
        Links that are kept.
    """

    def __init__(self) -> None:
        self.lost: list[tuple[int, int]] = []
        self._steps: list[tuple[Links, int]] = []
        self._limit = ROOM
        self.stored = 0

    def extend(self, links: Links, tick: int) -> None:
        """Add the links of new last states to those before.

        Parameters
        ----------
        links : Links
        tick : int
            What is to be known of the tuples lost by it.
        """
        self._steps.append((links, tick))
        self.stored += links.prev.size
        if self.stored > self._limit:
            self._tidy(np.arange(links.prev.size))
            self._limit = ROOM + 2 * self.stored

    def end(self, state: int) -> list[tuple[int, int]]:
        """Return `lost` of the whole best path to one of the last states; the paths end there."""
        if self._steps:
            self._tidy(np.array([state]))
        return self.lost

    def _tidy(self, used: NDArray[np.signedinteger[Any]]) -> None:
        """Keep what leads to the states `used` of the last, and settle what all paths share.

        The states become those of `used`, in that order.
        """
        kept: list[tuple[Links, int]] = []
        shared: list[tuple[int, int]] = []
        for links, tick in reversed(self._steps):
            if used.size == 1:
                lost = int(links.lost[used[0]])
                if lost != NONE:
                    shared.append((lost, tick))
                used = links.prev[used]
                continue
            before, prev = np.unique(links.prev[used], return_inverse=True)
            kept.append((Links(prev.astype(np.int32), links.lost[used]), tick))
            used = before
        self.lost.extend(reversed(shared))
        self._steps = kept[::-1]
        self.stored = sum(links.prev.size for links, _ in kept)


MOST_STATES = 1_000_000


class Optimal(NamedTuple):
    """The best path through the graph of one memory."""

    value: float
    """What its edges weigh together: P1's MI of the stop vertex."""
    until: Ints
    """(n,) int64. For each tuple the tick of the last match that it meets, up to which it is to be
    retained; NOT_STORED where it meets none. It holds its slot after the instants ``[ts, until)``
    (``before_admission``) or ``[ts, until]`` (``after_admission``)."""
    most_states: int
    """The most states that there were at an instant."""
    all_states: int
    """The states of all instants together."""


class Event(NamedTuple):
    """An instant at which something happens to this memory."""

    ts: int
    arrivals: Ints
    """(a,) int64. Positions of the tuples that arrive and have something to gain."""
    matches: Ints
    """(m,) int64. Positions, in the matches, of those met."""


@kernel
def prospects(starts: Ints, gain: Floats, best: Floats, last: Ints) -> None:
    """Write the greatest value of the matches from each on, and each tuple's last match of use."""
    for i in range(len(last)):
        rest = 0.0
        last[i] = starts[i] - 1
        for k in range(starts[i + 1] - 1, starts[i] - 1, -1):
            rest = max(0.0, gain[k] + rest)
            best[k] = rest
        while last[i] + 1 < starts[i + 1] and best[last[i] + 1] > 0.0:
            last[i] += 1


class Graph:
    """The graph of one memory, an instant at a time."""

    def __init__(self, matches: Matches, budget: int, most_states: int) -> None:
        self.matches = matches
        sizes = np.diff(matches.start)
        self.owner = np.repeat(np.arange(sizes.size), sizes)
        self.last = np.empty(sizes.size, np.int64)
        best = np.empty(matches.at.size)
        prospects(matches.start, matches.gain, best, self.last)
        self.used = np.arange(self.owner.size) <= self.last[self.owner]
        self.stored = self.last >= matches.start[:-1]
        self.most = most_states
        self.states = start(min(budget, self._most_live()))
        self.paths = Paths()
        self.most_states = self.all_states = 1
        self._gain, self._gone = np.zeros(sizes.size), np.zeros(sizes.size, np.bool_)

    def _most_live(self) -> int:
        """Return how many tuples an unlimited memory would hold at most."""
        ts, until = self.matches.ts[self.stored], self.matches.at[self.last[self.stored]]
        left = np.searchsorted(np.sort(until), ts, side="left")  # until[i] >= ts counts as held
        return int((np.arange(1, ts.size + 1) - left).max(initial=0))

    def events(self) -> Iterator[Event]:
        """Yield the instants at which something happens, in order."""
        newcomers = np.flatnonzero(self.stored)
        met = np.flatnonzero(self.used)
        met = met[np.argsort(self.matches.at[met], kind="stable")]
        arrived, times = self.matches.ts[newcomers], self.matches.at[met]
        instants = np.union1d(arrived, times)
        for ts in instants:
            a, b = np.searchsorted(arrived, ts, "left"), np.searchsorted(arrived, ts, "right")
            c, d = np.searchsorted(times, ts, "left"), np.searchsorted(times, ts, "right")
            yield Event(int(ts), newcomers[a:b], met[c:d])

    def _go(self, ts: int, through: int, newcomer: int = NONE, leaver: int = NONE) -> None:
        """Advance to the successors; a tuple lost by it has met its matches up to `through`."""
        self.states, links = successors(self.states, self.most, newcomer=newcomer, leaver=leaver)
        size = self.states.value.size
        if size > self.most:
            raise SpecError(
                f"more than {self.most:,} memory states at ts {ts} with room for "
                f"{self.states.held.shape[1]} tuples; use --method flow"
            )
        self.paths.extend(links, through)
        self.most_states = max(self.most_states, size)
        self.all_states += size

    def admit(self, event: Event, through: int) -> None:
        """Let the tuples that arrive compete for the slots."""
        for newcomer in event.arrivals:
            self._go(event.ts, through, newcomer=newcomer)

    def meet(self, event: Event) -> None:
        """Meet the matches of an instant, tuples having left before bad ones."""
        owners, gain = self.owner[event.matches], self.matches.gain[event.matches]
        for leaver in owners[gain < 0.0]:
            self._go(event.ts, event.ts - 1, leaver=leaver)
        self._gain[owners] = gain
        earn(*self.states, self._gain)
        ended = owners[event.matches == self.last[owners]]
        if ended.size:
            self._gone[ended] = True
            drop(self.states.held, self._gone)
            self._go(event.ts, event.ts)
        self._gain[owners] = 0.0

    def until(self) -> Ints:
        """Return `Optimal.until` of the best path, once all events are over."""
        last = self.last.copy()
        for who, through in self.paths.end(0):
            low, high = self.matches.start[who], self.matches.start[who + 1]
            last[who] = low - 1 + np.searchsorted(self.matches.at[low:high], through, "right")
        until = np.full(last.size, NOT_STORED)
        met = last >= self.matches.start[:-1]
        until[met] = self.matches.at[last[met]]
        return until


def optimal_states(
    matches: Matches, budget: int, *, after_admission: bool, most_states: int = MOST_STATES
) -> Optimal:
    """Return the best plan of one memory, by its join memory state graph.

    Parameters
    ----------
    matches : Matches
        Gains of any sign; what is asked for is in them (importance, outputs, least importance).
    budget : int
        Tuples that memory holds at most; 0 or more.
    after_admission : bool
        Opposite arrivals meet only what survives the instant's evictions.
    most_states : int
        More states than these at an instant are refused.

    Returns
    -------
    Optimal
        O(states * budget) time an arrival, with at most C(tuples in the window, budget) states; 8
        bytes for each state that the paths still use, and the states of two instants.

    Raises
    ------
    SpecError
        There are more than `most_states` states.
    """
    graph = Graph(matches, budget, most_states)
    for event in graph.events():
        if after_admission:
            graph.admit(event, event.ts - 1)
        graph.meet(event)
        if not after_admission:
            graph.admit(event, event.ts)
    value = float(graph.states.value[0])
    return Optimal(value, graph.until(), graph.most_states, graph.all_states)
