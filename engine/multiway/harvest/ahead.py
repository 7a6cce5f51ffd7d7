"""What was probed ahead of the clock, and how far ahead it is worth to probe."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from engine.multiway.harvest.layout import (
    POPPED,
    PUSHED,
    SPECULATED,
    WHOLE,
    Admitted,
    Batch,
    Clock,
    Flags,
    Plan,
    Probed,
)
from engine.multiway.harvest.prober import Prober, no_results
from engine.multiway.streams import Ints, MultiStreams

_LEAST, _MOST = 16, 1 << 16
"""Tuples probed at once: fewer where tuples are dropped, more where none is."""


class Ahead:
    """The tuples that will be popped next if none is dropped, and what they come to.

    Parameters
    ----------
    streams : MultiStreams
    order : (n,) int64
        Places in arrival order.
    stream_of : (n,) int64
        By place.
    prober : Prober
    """

    def __init__(
        self, streams: MultiStreams, order: Ints, stream_of: Ints, admitted: Admitted,
        clock: Clock, prober: Prober,
    ) -> None:  # fmt: skip
        self._streams, self._order, self._stream_of = streams, order, stream_of
        self._admitted, self._clock, self._prober = admitted, clock, prober
        self._batches = _LEAST
        none = np.zeros(0, np.int64)
        self.batch = Batch(none, none, np.zeros(0))
        self.probed: Probed = no_results(0, streams.number - 1)
        self.comparisons: Ints = none
        self.seconds, self.done = 0.0, 0
        """Spent on probing, and the comparisons made in that time."""
        self.base = 0
        """The first of the batch was, or will be, pushed as this number."""

    def more(self, arrived: int, plan: Plan, sampled: Flags, shred: float) -> None:
        """Probe the tuples that wait, and those that come next.

        Parameters
        ----------
        arrived : int
            Tuples that have come.
        plan : Plan
        sampled : (n,) bool
            By place: drawn to be learnt from.
        shred : float
            What `Batch` has for those.
        """
        clock = self._clock
        waiting = clock.pushed[clock.n[SPECULATED] : clock.n[PUSHED]]
        coming = self._order[arrived : arrived + self._batches]
        place = np.concatenate([waiting, coming])
        self._admit(place, waiting.size)
        batch = Batch(place, self._stream_of[place], np.where(sampled[place], shred, WHOLE))
        begun = time.perf_counter()
        found = self._prober.count(self._admitted, plan, batch)
        self.seconds += time.perf_counter() - begun
        self.done += int(found.comparisons.sum())
        self._forget_popped()
        self.batch = Batch._make(map(_joined, self.batch, batch))
        self.probed = Probed._make(map(_joined, self.probed, found))
        self.comparisons = self.probed.comparisons.sum(axis=1)
        clock.n[SPECULATED] = self.base + self.batch.place.size
        self._batches = min(2 * self._batches, _MOST)

    def dropped(self) -> None:
        """Take back what was probed behind the tuple that has just been dropped."""
        self._keep(int(self._clock.n[PUSHED]))
        self._batches = max(self._batches // 4, _LEAST)

    def adapted(self) -> None:
        """Take back everything that is not popped: another setting is in force."""
        self._keep(int(self._clock.n[POPPED]))

    def _keep(self, end: int) -> None:
        """Keep what was probed of the tuples pushed before number `end`."""
        clock = self._clock
        clock.n[SPECULATED] = end = min(int(clock.n[SPECULATED]), end)
        size = max(0, end - self.base)
        self._cut(slice(0, size))

    def _cut(self, part: slice) -> None:
        self.batch = Batch._make(own[part] for own in self.batch)
        self.probed = Probed._make(own[part] for own in self.probed)
        self.comparisons = self.comparisons[part]

    def _forget_popped(self) -> None:
        done = int(self._clock.n[POPPED]) - self.base
        self.base += done
        self._cut(slice(done, None))

    def _admit(self, place: Ints, waiting: int) -> None:
        """Put tuples into the windows: those that wait, and, as if they were pushed, the others."""
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
