"""The exact join of archives that do not fit in memory, batch by batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import check_order, check_windows, first_counted, sealed
from engine.exact.combine import combine_code
from engine.exact.stream_kernel import BIN, CURSOR, LOW, NEXT, OUTPUTS, first_unexpired, run_batch
from engine.exact.unexpired import empty_ring, paged, with_room
from engine.facts.key_links import KeyLinks
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import StreamBatch


class _Arrivals(NamedTuple):
    """One side of a batch: (n,) each."""

    ts: Ints
    ids: NDArray[np.int32]
    importance: Floats


class ExactStream:
    """Count the exact two-way window equi-join of two streams that arrive in batches.

    Between batches it holds the unexpired tuples (24 bytes each) and 16 bytes a key id: memory is
    O(windows + batch + ids). The result does not depend on how the streams are cut into batches.

    Parameters
    ----------
    window_left, window_right : int
        Ticks for which a tuple of each stream is matched after its arrival; closed, 0 or more.
    combine : str
        Importance of an output from its members': min, sum, product, max or mean.
    start_ts : int, optional
        Outputs before this tick are not counted. The time of an output is its later member's.
    time_bins : (bins,) int64, optional
        First tick of each time bin, increasing. Outputs before the first edge are in no bin.
    age_buckets : int, optional
        Also count matches by the age of the earlier member, see `ages_left`.
    key_links : (KeyLinks, KeyLinks), optional
        What facts join, where an id's partner is not the opposite one of the same id.

    Attributes
    ----------
    outputs_by_bin : (bins,) int64
        Outputs by the time of the output.
    ages_left, ages_right : (age_buckets,) int64
        Outputs in which the earlier member is of that stream, by its age ``a`` at the match, in
        bucket ``((a - 1) * age_buckets) // window``. Simultaneous matches are in none.

    Raises
    ------
    SpecError
        A window is negative, `combine` is unknown, or bins or buckets are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.runtime.streams import StreamBatch
    >>> ts, key, one = np.arange(4), np.array([7, 8, 7, 7]), np.ones(4)
    >>> batch, ids = StreamBatch(ts, ts, key, one), np.array([0, 1, 0, 0])
    >>> outputs, importance = np.zeros(2, np.int64), np.zeros(2)
    >>> join = ExactStream(1, 1)
    >>> join.push(batch, ids, batch, ids, outputs, importance)
    >>> join.outputs, join.importance, outputs
    (6, 6.0, array([5, 1]))
    """

    def __init__(
        self,
        window_left: int,
        window_right: int,
        combine: str = "min",
        start_ts: int | None = None,
        time_bins: Ints | None = None,
        age_buckets: int | None = None,
        key_links: tuple[KeyLinks, KeyLinks] | None = None,
    ) -> None:
        check_windows(window_left, window_right)
        edges = np.empty(0, np.int64) if time_bins is None else np.array(time_bins, np.int64)
        if np.any(edges[1:] <= edges[:-1]):
            raise SpecError("time_bins must increase; drop the repeated or misplaced edges")
        buckets = 0 if age_buckets is None else age_buckets
        if buckets < 0 or max(window_left, window_right) * buckets > np.iinfo(np.int64).max:
            raise SpecError(f"age_buckets {buckets} must be 0 or more, and times window in int64")
        self._windows = (window_left, window_right)
        self._start_ts = first_counted(start_ts)
        self._combine = combine_code(combine)
        self._edges = edges
        self._partners: tuple[Any, Any, Any, Any] = (None, None, None, None)
        if key_links is not None:
            left, right = key_links
            self._partners = left.first, left.other, right.first, right.other
        self._ring = empty_ring()
        self._heads = np.empty(0, np.int64)
        self._cursor = np.zeros(CURSOR, np.int64)
        self._cursor[BIN] = -1
        self._total = np.zeros(2)
        self._bins = np.zeros((len(edges), 2))
        self._last = first_counted(None)
        self.outputs_by_bin = np.zeros(len(edges), np.int64)
        self._ages = np.zeros((2, buckets), np.int64)
        self.ages_left, self.ages_right = self._ages

    @property
    def outputs(self) -> int:
        """Outputs so far."""
        return int(self._cursor[OUTPUTS])

    @property
    def importance(self) -> float:
        """Importance of the outputs so far, to 1e-12 of it."""
        return float(self._total[0] + self._total[1])

    @property
    def importance_by_bin(self) -> Floats:
        """Importance by the time of the output, (bins,) float64."""
        summed: Floats = self._bins[:, 0] + self._bins[:, 1]
        return summed

    def push(
        self,
        left: StreamBatch,
        left_ids: NDArray[Any],
        right: StreamBatch,
        right_ids: NDArray[Any],
        outputs_by_key: Ints,
        importance_by_key: Floats,
    ) -> None:
        """Join the next arrivals of both streams. O(arrivals + outputs).

        Parameters
        ----------
        left, right : StreamBatch
            All rows of an instant, of both streams, stand in one batch; no row is older than
            those of the batches before.
        left_ids, right_ids : (n,) int32 or int64
            Dense id of each row's key, less than the length of the next two.
        outputs_by_key, importance_by_key : (ids,) int64 and float64
            Counts to add to, by the left member's key. They may be longer at the next call.

        Raises
        ------
        SpecError
            The rows are out of order, or sizes or ids do not fit.
        """
        sides = (self._arrivals(left, left_ids, 0), self._arrivals(right, right_ids, 1))
        if len(outputs_by_key) != len(importance_by_key):
            raise SpecError("outputs_by_key and importance_by_key must be of one length")
        self._check_ids(sides, len(outputs_by_key))
        firsts = [int(side.ts[0]) for side in sides if len(side.ts)]
        if not firsts:
            return
        if min(firsts) <= self._last:
            raise SpecError(
                f"batch begins at tick {min(firsts)}, but the one before reached {self._last}; "
                "cut batches between instants and push them in order"
            )
        self._last = max(int(side.ts[-1]) for side in sides if len(side.ts))
        arrivals = max(len(side.ts) for side in sides)
        self._ring = with_room(self._ring, self._expire(min(firsts)), arrivals)
        self._grow_heads(len(outputs_by_key))
        run_batch(
            *sides[0], *sides[1], *self._partners, *self._ring, self._heads, self._cursor,
            self._total, outputs_by_key, importance_by_key, self._edges, self.outputs_by_bin,
            self._bins, self._ages, self._windows, self._start_ts, self._combine,
        )  # fmt: skip

    def live_ids(self, size: int, now: int) -> NDArray[np.bool_]:
        """Return which of the ids ``0 .. size - 1`` have an unexpired tuple at `now`.

        Parameters
        ----------
        size : int
            Number of ids.
        now : int
            A tick not before the last batch's end, such as the first of the next batch.

        Returns
        -------
        (size,) bool
            Ids where this is False may be dropped, see `remap`. O(windows + size).
        """
        self._expire(now)
        heads = np.full((size, 2), -1, np.int64)
        known = self._heads.reshape(-1, 2)[:size]
        heads[: len(known)] = known
        alive: NDArray[np.bool_] = np.any(heads >= 2 * self._cursor[LOW : LOW + 2], axis=1)
        return alive

    def remap(self, old_to_new: Ints) -> None:
        """Renumber the key ids, as `KeyTable.keep` does. O(ids).

        Parameters
        ----------
        old_to_new : (old ids,) int64
            New id of each old one; -1 for ids without an unexpired tuple, which are forgotten.
            Ids beyond its end must never have been pushed.
        """
        old_to_new = np.asarray(old_to_new, np.int64)
        size = int(old_to_new.max(initial=-1)) + 1
        known = self._heads.reshape(-1, 2)[: len(old_to_new)]
        kept = np.flatnonzero(old_to_new[: len(known)] >= 0)
        heads = np.full((size, 2), -1, np.int64)
        heads[old_to_new[kept]] = known[kept]
        self._heads = heads.reshape(-1)

    def _arrivals(self, batch: StreamBatch, ids: NDArray[Any], side: int) -> _Arrivals:
        check_order(batch, side)
        if len(ids) != len(batch.ts):
            raise SpecError(f"{len(ids)} ids for {len(batch.ts)} rows; give one a row")
        return _Arrivals(
            sealed(batch.ts, np.int64), sealed(ids, np.int32), sealed(batch.importance, np.float64)
        )

    @staticmethod
    def _check_ids(sides: tuple[_Arrivals, _Arrivals], size: int) -> None:
        """Raise `SpecError` for an id out of range, which would write to foreign memory."""
        for side in sides:
            if len(side.ids) and not 0 <= int(side.ids.min()) <= int(side.ids.max()) < size:
                raise SpecError(f"ids must be 0 or more and less than {size}, the number of keys")

    def _expire(self, now: int) -> list[tuple[int, int]]:
        """Return the first unexpired and the first free position of each side at `now`."""
        spans = []
        for side, window in enumerate(self._windows):
            low, last = int(self._cursor[LOW + side]), int(self._cursor[NEXT + side])
            low = first_unexpired(self._ring.ts, side, low, last, now, window)
            self._cursor[LOW + side] = low
            spans.append((low, last))
        return spans

    def _grow_heads(self, size: int) -> None:
        if 2 * size > len(self._heads):
            grown = paged(2 * max(size, len(self._heads)), np.int64)
            grown[: len(self._heads)] = self._heads
            grown[len(self._heads) :] = -1
            self._heads = grown
