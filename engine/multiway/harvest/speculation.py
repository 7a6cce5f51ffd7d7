"""The tuples that are probed ahead of the virtual clock, where many are probed at once.

A tuple meets those pushed before it; so tuples can be probed ahead of the clock, as if all that
come were pushed, and their results hold until one is dropped or the operator adapts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.layout import Admitted, Clock, Flags, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.probing.prober import Prober, no_results
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Ints

_LEAST, _MOST = 16, 1 << 16
"""Tuples probed at once: fewer where tuples are dropped, more where none is."""


class Speculation:
    """The tuples that will be popped next if none is dropped, and their results.

    It never goes beyond the next adaptation, at which what is not popped would be discarded.

    Parameters
    ----------
    order : (n,) int64
        Places in arrival order.
    stream_of : (n,) int64
        By place.
    t0 : int
        The first tick.
    """

    def __init__(
        self, streams: MultiStreams, order: Ints, stream_of: Ints, t0: int, admitted: Admitted,
        clock: Clock, prober: Prober,
    ) -> None:  # fmt: skip
        self._streams, self._order, self._stream_of = streams, order, stream_of
        self._admitted, self._clock, self._prober = admitted, clock, prober
        self._after = streams.ts[order] - t0
        self._batches = _LEAST
        none = np.zeros(0, np.int64)
        self.batch = ProbeBatch(none, none, np.zeros(0))
        self.probed: Probed = no_results(0, streams.number - 1)
        self.comparisons: Ints = none
        self.seconds, self.done = 0.0, 0
        """Spent on probing, and the comparisons made in that time."""
        self.base = 0
        """The first of the batch was, or will be, pushed as this number."""

    def more(self, arrived: int, plan: ReadPlan, sampled: Flags, shred: float) -> None:
        """Probe the waiting tuples and the next arrivals.

        Parameters
        ----------
        arrived : int
            Tuples that have come.
        sampled : (n,) bool
            By place: drawn to be learnt from.
        shred : float
            What `ProbeBatch` has for those.
        """
        clock = self._clock
        waiting = clock.pushed[clock.n[layout.SPECULATED] : clock.n[layout.PUSHED]]
        end = int(np.searchsorted(self._after, clock.at[layout.NEXT]))
        coming = self._order[arrived : min(end, arrived + self._batches)]
        place = np.concatenate([waiting, coming])
        self._admit(place, waiting.size)
        batch = ProbeBatch(
            place, self._stream_of[place], np.where(sampled[place], shred, layout.WHOLE)
        )
        begun = time.perf_counter()
        found = self._prober.count(self._admitted, plan, batch)
        self.seconds += time.perf_counter() - begun
        self.done += int(found.comparisons.sum())
        self._forget_popped()
        self.batch = ProbeBatch._make(map(_joined, self.batch, batch))
        self.probed = Probed._make(map(_joined, self.probed, found))
        self.comparisons = self.probed.comparisons.sum(axis=1)
        clock.n[layout.SPECULATED] = self.base + self.batch.place.size
        self._batches = min(2 * self._batches, _MOST)

    def dropped(self) -> None:
        """Discard the results behind the tuple that was just dropped."""
        self._keep(int(self._clock.n[layout.PUSHED]))
        self._batches = max(self._batches // 4, _LEAST)

    def adapted(self) -> None:
        """Discard all results that are not popped: another setting is in force."""
        self._keep(int(self._clock.n[layout.POPPED]))

    def _keep(self, end: int) -> None:
        """Keep the results of the tuples pushed before number `end`."""
        clock = self._clock
        clock.n[layout.SPECULATED] = end = min(int(clock.n[layout.SPECULATED]), end)
        size = max(0, end - self.base)
        self._cut(slice(0, size))

    def _cut(self, part: slice) -> None:
        self.batch = ProbeBatch._make(own[part] for own in self.batch)
        self.probed = Probed._make(own[part] for own in self.probed)
        self.comparisons = self.comparisons[part]

    def _forget_popped(self) -> None:
        done = int(self._clock.n[layout.POPPED]) - self.base
        self.base += done
        self._cut(slice(done, None))

    def _admit(self, place: Ints, waiting: int) -> None:
        """Put tuples into the windows: the waiting ones, and the others as if they were pushed."""
        admitted, streams = self._admitted, self._stream_of[place]
        for stream in range(self._streams.number):
            own = place[streams == stream]
            held = int(np.count_nonzero(streams[:waiting] == stream))
            pushed = int(self._clock.popped[stream] + self._clock.held[stream])
            begin = int(admitted.first[stream]) + pushed - held
            admitted.place[begin : begin + own.size] = own
            admitted.ts[begin : begin + own.size] = self._streams.ts[own]
            admitted.number[stream] = pushed - held + own.size


def _joined(one: Any, other: Any) -> Any:  # noqa: ANN401 - arrays of a kind
    return np.concatenate([one, other]) if len(one) else other
