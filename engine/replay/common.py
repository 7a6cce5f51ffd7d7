"""Which kernel replays a lane: that of its policy's kind, or one for all kinds.

A kernel of a kind takes seconds to compile, and a trial would need ten of them. The one for all
decides at every step what the others know as they are compiled, and calls what they contain: it
takes as long to compile as two of them, and runs up to twice as long. All are compiled from the
same source, and their rows are equal. A process begins by interpreting it, whichever it is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from engine.replay import kernel
from engine.replay.layout import CommonRules, ReplayRules
from engine.runtime.compilation.deferred import LEFT
from gpu_kernels.pool import Pool, no_pool

TUPLES = 50_000_000
"""Of a kind that a process replays by the kernel for all before the kind's own is compiled: for so
many the kernel for all takes longer by about what compiling takes."""
FEW = 20_000
"""Of a kind that a process replays by the kernel for all where that is there: the kind's own takes
longer to load."""
KINDS = 2
"""Own kernels of so many kinds take less time to compile than the kernel for all."""
LANE_TUPLES = 5_000_000
"""Lanes of more never begin with it where all of them is replayed."""
_REPLAYED: Counter[tuple[type, bool]] = Counter()
_ASKED: dict[tuple[Any, ...], tuple[int, bool]] = {}
"""By kernel and what it takes: how many tuples of the kind had been replayed when the disk was
asked for it, and whether it was there."""


class Kernels:
    """Chooses the kernel of a lane, batch by batch: the state that they work on is the same.

    Parameters
    ----------
    rules : ReplayRules
        Of the type of its kind.
    pool : Pool or None
    rows : int
        Tuples of the lane.
    spares : bool or None
        Whether few tuples are replayed, whatever the lane has, and the kernel for all may be
        compiled for them. If not, it is used only where it is there and the kind's own is not;
        None: and where the lane has few tuples.
    """

    def __init__(
        self, rules: ReplayRules, pool: Pool | None, rows: int, *, spares: bool | None
    ) -> None:
        self._own = rules, pool
        self._common = CommonRules(*rules), no_pool() if pool is None else pool
        self._kind = type(rules), pool is None
        self._spares = bool(spares)
        self._settled = spares is None and rows > LANE_TUPLES
        self._asked = False
        self._there: bool | None = None

    def choose(self, tuples: int, arguments: tuple[Any, ...]) -> tuple[ReplayRules, Pool | None]:
        """Return the rules and the pool, whose types tell the kernel, for a batch.

        Parameters
        ----------
        tuples : int
            Of the batch.
        arguments : tuple
            What the kernel takes between the two.
        """
        if self._settled:
            return self._own
        if LEFT.is_some():  # interpreted; what that is too much for may be compiled
            return self._common if self._spares else self._own
        _REPLAYED[self._kind] += tuples
        self._settled = not self._is_spared(_REPLAYED[self._kind], arguments)
        return self._own if self._settled else self._common

    def _is_spared(self, replayed: int, arguments: tuple[Any, ...]) -> bool:
        """Return whether the kernel for all is to be taken; a lane asks the disk once at most."""
        if replayed > TUPLES:
            return False
        if self._there is None:
            self._there = _was_there(self._common, arguments, replayed)
        if self._asked or (self._there and replayed <= FEW):
            return True
        self._asked = True
        return (self._spares or self._there) and not _was_there(self._own, arguments, replayed)


def _was_there(
    ends: tuple[ReplayRules, Pool | None], arguments: tuple[Any, ...], replayed: int
) -> bool:
    """Return whether a kernel was there when the disk was last asked.

    To ask takes as long as to replay thousands of tuples, and a lane may hold ten. So the disk is
    asked again only when twice as many tuples of the kind have been replayed.
    """
    kinds = [own if callable(own) else type(own) for own in (*ends, *arguments)]
    before, there = _ASKED.get(tuple(kinds), (0, False))
    if not there and replayed >= 2 * before:
        there = _is_there(ends, arguments)
        _ASKED[tuple(kinds)] = replayed, there
    return there


def _is_there(ends: tuple[ReplayRules, Pool | None], arguments: tuple[Any, ...]) -> bool:
    """Return whether a kernel has been compiled."""
    there: bool = kernel.replay.is_there(ends[0], *arguments, ends[1])  # type: ignore[attr-defined]
    return there
