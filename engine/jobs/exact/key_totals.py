"""The keys of a lane: dense ids, what was counted for each, and which lost most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.facts.links import Links
from engine.replay.lane import LaneReplay
from engine.runtime.key_table import IDLE, KeyTable
from engine.runtime.streams import LEFT, StreamBatch

REMEMBERED = 1 << 20
"""Keys without an unexpired tuple whose counts are kept exactly."""
TOP = 10


class KeyLoss(NamedTuple):
    """What one key's outputs came to."""

    code: int
    side: int
    row: int
    exact_outputs: int
    exact_importance: float
    outputs: int
    importance: float

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts the greatest loss first, and the same way in any partitioning."""
        return (
            -(self.exact_importance - self.importance),
            -(self.exact_outputs - self.outputs),
            self.code,
        )

    def to_report(self, key: object) -> dict[str, Any]:
        """Return it as a report has it, with the key as it is named there."""
        return {
            "key": key,
            "exact_outputs": self.exact_outputs,
            "lost_outputs": self.exact_outputs - self.outputs,
            "exact_importance": self.exact_importance,
            "lost_importance": self.exact_importance - self.importance,
        }


COUNTS = np.dtype(
    [("code", "i8"), ("side", "i8"), ("row", "i8"), ("exact", "i8"), ("exact_importance", "f8"),
     ("outputs", "i8"), ("importance", "f8")]
)  # fmt: skip
"""What `KeyLoss` holds."""


class Remapped(Protocol):
    """Anything that goes by key ids."""

    def remap(self, old_to_new: NDArray[np.int64]) -> None:
        """Renumber the ids, as `KeyTable.keep` does."""
        ...


class Live(Remapped, Protocol):
    """Knows which keys have an unexpired tuple."""

    def live_ids(self, size: int, now: int) -> NDArray[np.bool_]:
        """Return which ids have one at `now`, as `ExactStream.live_ids` does."""
        ...


class LaneKeys:
    """Interns a lane's keys and keeps their counts in step with the exact join and the replay.

    Ids without an unexpired tuple are dropped when they outnumber the others, so that memory
    follows the windows; their counts are kept for the `REMEMBERED` keys that lost most.

    Parameters
    ----------
    exact : Live
        The exact join, or who stands in for it.
    forgets : bool
        False where the estimator needs the whole history of every key.
    followers : sequence of Remapped
        What else goes by these ids, and holds none without an unexpired tuple.
    known : (n,) COUNTS, optional
        What the exact join comes to for every key that has an output, by code: it is not counted
        again.
    remembers : bool
        Whether `counts` and `top` will be asked for: an example is kept of each key, and the counts
        of dropped ones. Else they are empty.

    Attributes
    ----------
    outputs, importance : (ids,) int64 and float64
        Of the exact join, by id; to be added to.
    complete : bool
        Whether no key's counts were let go.
    """

    def __init__(
        self,
        exact: Live,
        replay: LaneReplay | None,
        *,
        forgets: bool,
        followers: Sequence[Remapped] = (),
        known: NDArray[np.void] | None = None,
        remembers: bool = False,
    ) -> None:
        self._table = KeyTable()
        self._followers = [follower for follower in (replay, *followers) if follower is not None]
        self._exact, self._replay, self._forgets = exact, replay, forgets
        self._known = known
        self._remembers = remembers
        self.outputs = np.zeros(0, np.int64)
        self.importance = np.zeros(0)
        self._example = np.zeros((0, 2), np.int64)
        self._idle = np.zeros(0, COUNTS)
        self._next_drop = IDLE
        self._last = 0
        self.complete = True

    @property
    def size(self) -> int:
        """Number of ids."""
        return self._table.size

    def intern(
        self, left: StreamBatch, right: StreamBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both sides' ids, after dropping idle ones if they have become many."""
        if self._forgets and self.size >= self._next_drop:
            self._drop(self._last)
        self._last = max(int(side.ts[-1]) for side in (left, right) if side.ts.size)
        known = self.size
        ids = self._table.intern(left.key), self._table.intern(right.key)
        size = self.size
        if size > self.outputs.size:
            room = max(size, 2 * self.outputs.size, 1024) - self.outputs.size
            self.outputs = np.concatenate([self.outputs, np.zeros(room, np.int64)])
            self.importance = np.concatenate([self.importance, np.zeros(room)])
            self._example = np.concatenate([self._example, np.zeros((room, 2), np.int64)])
        for side in (1, 0) if size > known and self._remembers else ():
            batch = (left, right)[side]
            fresh = np.flatnonzero(ids[side] >= known)[::-1]
            self._example[ids[side][fresh]] = np.column_stack(
                [np.full(fresh.size, side), batch.row[fresh]]
            )
        return ids

    def _counts(self, which: NDArray[np.int64]) -> NDArray[np.void]:
        counts = np.zeros(which.size, COUNTS)
        counts["code"] = self._table.keys[which]
        counts["side"], counts["row"] = self._example[which].T
        counts["exact"] = self.outputs[which]
        counts["exact_importance"] = self.importance[which]
        if self._replay is None:
            counts["outputs"] = counts["exact"]
            counts["importance"] = counts["exact_importance"]
        else:
            have = which[which < self._replay.by_key.size]
            counts["outputs"][: have.size] = self._replay.by_key[have]
            counts["importance"][: have.size] = self._replay.importance_by_key[have]
        return counts

    def _counted(self, which: NDArray[np.int64]) -> NDArray[np.void]:
        """Return the counts of those of the ids that have an output."""
        counts = self._counts(which)
        return counts[counts["exact" if self._known is None else "outputs"] > 0]

    def _drop(self, now: int) -> None:
        """Drop the ids without a tuple unexpired at `now`, the last instant pushed.

        Not the first of the next batch: the join memories still hold what expired in between.
        """
        size = self.size
        alive = self._exact.live_ids(size, now)
        if alive.sum() * 2 > size:
            self._next_drop = 2 * size
            return
        if self._remembers:
            self._remember(self._counted(np.flatnonzero(~alive)))
        old_to_new = self._table.keep(alive)
        self._exact.remap(old_to_new)
        remaining = np.flatnonzero(alive)
        self.outputs = self.outputs[remaining]
        self.importance = self.importance[remaining]
        self._example = self._example[remaining]
        for follower in self._followers:
            follower.remap(old_to_new)
        self._next_drop = max(IDLE, 2 * self.size)

    def _remember(self, more: NDArray[np.void]) -> None:
        self._idle = merged(np.concatenate([self._idle, more]))
        if self._idle.size > REMEMBERED:
            loss = self._idle["exact_importance"] - self._idle["importance"]
            self._idle = self._idle[np.argsort(-loss, kind="stable")[: REMEMBERED // 2]]
            self.complete = False

    def top(self) -> list[KeyLoss]:
        """Return the keys that lost most."""
        return _first(self.counts()) if self._remembers else []

    def counts(self) -> NDArray[np.void]:
        """Return the counts of the keys that have an output of the exact join: (n,) COUNTS."""
        counts = self._counted(np.arange(self.size))
        if self._idle.size:  # otherwise no code stands twice
            counts = merged(np.concatenate([self._idle, counts]))
        if self._known is None:
            return counts
        found = self._known.copy()
        at = np.searchsorted(found["code"], counts["code"])
        found["outputs"][at], found["importance"][at] = counts["outputs"], counts["importance"]
        return found


class FactKeys:
    """Gives tuples their ids and keeps what was counted for those of the left stream.

    As `LaneKeys` does in an equi-join; no id is ever dropped.
    """

    complete = True

    def __init__(self, links: Links, replay: LaneReplay | None) -> None:
        self._links, self._replay = links, replay
        self.size = links.size
        self.outputs = np.zeros(self.size, np.int64)
        self.importance = np.zeros(self.size)
        self._example = np.full(self.size, -1, np.int64)

    def intern(
        self, left: StreamBatch, right: StreamBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both sides' ids."""
        ids = [
            self._links.ids(side, batch.ts, batch.key) for side, batch in enumerate((left, right))
        ]
        fresh = np.flatnonzero(self._example[ids[LEFT]] < 0)[::-1]
        self._example[ids[LEFT][fresh]] = left.row[fresh]
        return ids[0], ids[1]

    def top(self) -> list[KeyLoss]:
        """Return the left attributes that lost most."""
        code = self._links.left_attribute
        own = slice(1, 1 + code.size)
        counts = np.zeros(code.size, COUNTS)
        counts["code"], counts["row"] = code, self._example[own]
        counts["exact"], counts["exact_importance"] = self.outputs[own], self.importance[own]
        by_key, importance = self.outputs, self.importance
        if self._replay is not None:
            by_key, importance = self._replay.by_key, self._replay.importance_by_key
        counts["outputs"], counts["importance"] = by_key[own], importance[own]
        return greatest(counts[counts["exact"] > 0])


def merged(counts: NDArray[np.void]) -> NDArray[np.void]:
    """Add up the rows of one code; the first keeps its example."""
    codes, first, inverse = np.unique(counts["code"], return_index=True, return_inverse=True)
    if codes.size == counts.size:
        return counts
    merged = counts[first].copy()
    for name in ("exact", "outputs", "exact_importance", "importance"):
        sums = np.zeros(codes.size, counts[name].dtype)
        np.add.at(sums, inverse, counts[name])
        merged[name] = sums
    return merged


def greatest(counts: NDArray[np.void]) -> list[KeyLoss]:
    """Return the codes that lost most, of counts in which a code may stand several times."""
    return _first(merged(counts))


def _first(counts: NDArray[np.void]) -> list[KeyLoss]:
    loss = counts["exact_importance"] - counts["importance"]
    if loss.size > TOP:
        least = np.partition(loss, loss.size - TOP)[loss.size - TOP]
        chosen = ~(loss < least)  # of sums beyond float64 none is left out
        counts, loss = counts[chosen], loss[chosen]
    order = np.lexsort((counts["code"], counts["outputs"] - counts["exact"], -loss))[:TOP]
    return [KeyLoss(*row) for row in counts[order].tolist()]
