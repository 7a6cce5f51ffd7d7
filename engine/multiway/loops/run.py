"""Join streams by an algorithm of P3, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.exact.combine import combine_code
from engine.multiway.loops import layout
from engine.multiway.loops.kernel import advance
from engine.multiway.loops.layout import (
    LoopOutputs,
    LoopPlan,
    LoopRules,
    LoopState,
    empty_state,
    room,
)
from engine.multiway.loops.method import LoopsSettings
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import MultiStreams, Windows
from engine.runtime.jit import FOREVER, jit
from engine.runtime.work import gauged

CHUNK = 1 << 16
"""Outputs a part."""


class LoopsCounters(NamedTuple):
    """The results and the costs of a run."""

    outputs: int
    importance: float
    """Sum over the outputs."""
    comparisons: int
    """Evaluations of the predicate between two tuples."""
    visits: int
    """Tuples visited in stores during probing."""
    insertions: int
    expirations: int
    """`insertions`, `expirations`: Tuples put into stores, and removed."""
    accesses: int
    """Lists visited for expiration, empty ones included."""
    peak: int
    """Most tuples in all stores."""
    mean_delay: float
    max_delay: int
    """`mean_delay`, `max_delay`: float, int. Ticks from an output's ts to when it is found."""


def loops_together(found: Sequence[LoopsCounters]) -> LoopsCounters:
    """Return the results and the costs of several joins, added up; of delays mean and maximum.

    Examples
    --------
    >>> one = LoopsCounters(1, 2.0, 3, 4, 5, 6, 7, 8, 2.0, 2)
    >>> loops_together([one, one._replace(outputs=3, mean_delay=4.0, max_delay=9)])
    ... # doctest: +NORMALIZE_WHITESPACE
    LoopsCounters(outputs=4, importance=4.0, comparisons=6, visits=8, insertions=10,
        expirations=12, accesses=14, peak=16, mean_delay=3.5, max_delay=9)
    """
    added = LoopsCounters(*(sum(own) for own in zip(*found, strict=True)))
    delays = sum(own.mean_delay * own.outputs for own in found)
    return added._replace(
        mean_delay=delays / max(1, added.outputs), max_delay=max(own.max_delay for own in found)
    )


@jit
def _advance(
    rules: LoopRules, plan: LoopPlan, streams: MultiStreams, condition: Any,  # noqa: ANN401
    state: LoopState, out: LoopOutputs, stop: int,
) -> bool:  # fmt: skip
    return advance(rules, plan, streams, condition, state, out, stop)


class LoopsRun:
    """A run of an algorithm of P3, part by part.

    Parameters
    ----------
    combine : {"min", "sum", "product", "max", "mean"}
        Importance of an output, of its members'.
    start_ts : int, optional
        Outputs before it are neither counted nor written.
    emit : bool
        Whether outputs are written at all.

    Raises
    ------
    SpecError
        If the settings do not fit the streams or the predicate.
    """

    def __init__(
        self,
        streams: MultiStreams,
        windows: Windows,
        predicate: Predicate,
        settings: LoopsSettings,
        *,
        combine: str = "min",
        start_ts: int | None = None,
        emit: bool = True,
    ) -> None:
        lists = settings.lists(streams.number, predicate)
        self._streams, self._emit = streams, emit
        self._plan = settings.plan(streams.number, predicate)
        self._condition = condition(predicate)
        t0, span = 0, 0
        if streams.ts.size:
            t0 = int(streams.ts.min())
            span = int(streams.ts.max()) - t0
        self._rules = LoopRules(
            settings.tau or 0,
            settings.period,
            t0,
            combine_code(combine),
            int(np.iinfo(np.int64).min) if start_ts is None else start_ts,
            emit,
            # a greater window is no wider, and would overflow
            np.minimum(windows.size, np.where(windows.by_rows, streams.ts.size, span)),
            windows.by_rows,
            np.concatenate([[0], np.cumsum(lists)]).astype(np.int64),
        )
        self._state = empty_state(streams.first, self._rules.base)

    def parts(self, rows: int = CHUNK, until: int = FOREVER) -> Iterator[LoopOutputs]:
        """Continue the run and yield the outputs in the order found, at most `rows` at a time.

        A part's arrays are used again for the next one. With `until`, what arrives before that tick
        is taken; called again, the run goes on from there.
        """
        out = room(rows if self._emit else 0, self._streams.number)
        done = False
        while not done:
            with gauged(self._arrived):
                done = _advance(
                    self._rules, self._plan, self._streams, self._condition, self._state, out, until
                )
            written = int(self._state.progress[layout.WRITTEN])
            self._state.progress[layout.WRITTEN] = 0
            if written:
                yield LoopOutputs._make(column[:written] for column in out)

    def _arrived(self) -> int:
        return int(self._state.progress[layout.INSERTIONS])

    @property
    def counters(self) -> LoopsCounters:
        """The results and costs of the run so far."""
        progress, sums = self._state.progress, self._state.sums
        outputs = int(progress[layout.OUTPUTS])
        return LoopsCounters(
            outputs,
            float(sums[layout.HIGH] + sums[layout.REST]),
            comparisons=int(progress[layout.COMPARISONS]),
            visits=int(progress[layout.VISITS]),
            insertions=int(progress[layout.INSERTIONS]),
            expirations=int(progress[layout.EXPIRATIONS]),
            accesses=int(progress[layout.ACCESSES]),
            peak=int(progress[layout.PEAK]),
            mean_delay=int(progress[layout.DELAY]) / outputs if outputs else 0.0,
            max_delay=int(progress[layout.MAX_DELAY]),
        )
