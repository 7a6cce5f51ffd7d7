"""What a Spark task does with a partition: lane by lane, measure it or replay it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.facts.links import Links
from engine.jobs.exact.key_totals import Remapped
from engine.jobs.output import IDS, id_columns
from engine.jobs.part import PayloadWindow
from engine.jobs.pieces import bytes_a_row, in_pieces
from engine.lanes.profile import LaneProfile, SideProfile
from engine.lanes.reader import LaneBatch, united_batches
from engine.options.budget import Amounts, split_budget
from engine.policies import Across
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.replay.ranks import RetentionPlan as Decided
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.streams import SIDES, StreamBatch
from spark_plugin.facts import SharedFacts
from spark_plugin.keys import LaneKeys
from spark_plugin.lanes import LaneName, LaneStream, Layout
from spark_plugin.spool import Spool, Until

Curve = tuple[float, ...] | None
L = TypeVar("L", bound=LaneReplay)
_LARGE = 1 << 22
"""Slots that are reserved without knowing whether the lane has as many tuples."""


@dataclass(frozen=True)
class Plan:
    """A replay as the workers receive it."""

    layout: Layout
    settings: ReplaySettings
    memory: Amounts
    """Budget of each lane that is not in `budgets`."""
    budgets: dict[LaneName, tuple[int, int]] = field(default_factory=dict)
    """K of the lanes that share a memory."""
    curves: tuple[Curve, Curve] = (None, None)
    """AGE's curves."""
    payload: bool = False
    """Whether there are payload columns."""
    facts: SharedFacts | None = None
    """The facts that join the sides; None for an equi-join."""

    @property
    def windows(self) -> tuple[int, int]:
        """W of left and right."""
        return self.settings.window_left, self.settings.window_right

    @property
    def forgets(self) -> bool:
        """Whether keys without an unexpired tuple can be forgotten."""
        return self.settings.estimator != "history"

    @property
    def needs_whole_lane(self) -> bool:
        """Whether a lane must be known as a whole before its replay begins."""
        settings = self.settings
        if settings.estimator == "history" or self.facts is not None:
            return True
        if settings.pooled and settings.the_policy.across is Across.BY_VALUE:
            return True
        if settings.policy == "dgl" and settings.parameters.get("beta") is None:
            return True
        return any(a is None or a.tuples is None or a.tuples > _LARGE for a in self.memory)

    def budget(self, name: LaneName, profile: LaneProfile) -> tuple[int, int]:
        """Return K of both sides of a lane."""
        if name in self.budgets:
            return self.budgets[name]
        left, right = (
            split_budget(amount, [side.peak])[0]
            for amount, side in zip(self.memory, profile, strict=True)
        )
        return left, right


def lanes_in(
    plan: Plan, source: Iterator[pa.RecordBatch]
) -> Iterator[tuple[LaneName, Iterator[LaneBatch]]]:
    """Yield the lanes of a partition, one after the other, in batches."""
    stream = LaneStream(plan.layout)
    beside = plan.payload or not plan.layout.direct
    numbered = united_batches(stream.batches(source), payload=beside)
    for number, batches in groupby(numbered, itemgetter(0)):
        yield stream.names[number], (batch for _, batch in batches)


def replay_partition(plan: Plan, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the output tuples of every lane of a partition.

    Memory: the windows, the budget and a batch. A lane that must be known as a whole first is
    spooled, beyond `spool.HELD_BYTES` on disk.
    """
    for name, batches in lanes_in(plan, source):
        with Spool() as spool:
            if plan.needs_whole_lane:
                for batch in batches:
                    spool.add(batch)
                profile = spool.profile(plan.windows, untils(plan))
                links = linked(plan, spool)
                batches = iter(spool)  # noqa: PLW2901 - the same batches, again
            else:
                first = next(batches)
                profile = guessed(first)
                links = None
                batches = chain([first], batches)  # noqa: PLW2901 - the same batches, again
            yield from replay_lane(plan, name, profile, batches, links)


def untils(plan: Plan) -> tuple[Until, Until] | None:
    """Return until when tuples of each side match anything; None in an equi-join."""
    if plan.facts is None:
        return None
    left, right = plan.facts.index.sides
    return (
        lambda batch: left.until(batch.ts, batch.key),
        lambda batch: right.until(batch.ts, batch.key),
    )


def linked(plan: Plan, spool: Spool) -> Links | None:
    """Return the links of a lane through facts, None in an equi-join."""
    if plan.facts is None:
        return None
    arrivals = spool.arrivals(0), spool.arrivals(1)
    return Links(plan.facts.index, arrivals, plan.windows if plan.forgets else None)


def guessed(first: LaneBatch) -> LaneProfile:
    """Return the profile of the first batch, which suffices if `needs_whole_lane` is False."""
    t0 = min(int(side.ts[0]) for side in (first.left, first.right) if side.ts.size)
    side = SideProfile(1, t0, t0, UNLIMITED, 0.0)
    return LaneProfile(side, side)


def replay_lane(
    plan: Plan,
    name: LaneName,
    profile: LaneProfile,
    batches: Iterator[LaneBatch],
    links: Links | None,
    decided: Decided | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the output tuples of a lane, by its policy or a plan."""
    budget = plan.budget(name, profile)
    replay = lane_replay(LaneReplay, plan, profile, budget, links, decided)
    joined = Joined(
        plan, replay, Keys(plan, links), tuple(PayloadWindow(window) for window in plan.windows)
    )
    for batch in batches:
        yield from joined.push(batch)


def lane_replay(
    kind: type[L],
    plan: Plan,
    profile: LaneProfile,
    budget: tuple[int, int],
    links: Links | None,
    decided: Decided | None = None,
) -> L:
    """Return the replay of a lane, a `LaneReplay` that emits its outputs."""
    curves = tuple(None if curve is None else np.array(curve) for curve in plan.curves)
    return kind(
        plan.settings,
        profile,
        budget,
        curves=(curves[0], curves[1]),
        emit=True,
        plan=decided,
        key_links=None if links is None else links.key_links,
        facts=None if plan.facts is None else plan.facts.index,
    )


class Payload(Protocol):
    """The payload of one side's rows that can still join, by arrival number."""

    def push(self, ts: NDArray[np.int64], table: pa.Table) -> None:
        """Add a batch's rows."""
        ...

    @property
    def width(self) -> float:
        """Mean bytes of a row."""
        ...

    def take(self, seq: NDArray[np.int64]) -> pa.Table:
        """Return rows by their arrival numbers, in that order."""
        ...


class Joined:
    """A lane's batches as rows of the result.

    Parameters
    ----------
    plan : Plan
    replay : LaneReplay
    keys : Keys or LaneKeys
    held : (Payload, Payload)
        Of left and right.
    """

    def __init__(
        self, plan: Plan, replay: LaneReplay, keys: Keys | LaneKeys, held: Sequence[Payload]
    ) -> None:
        self._plan, self._replay, self._keys, self._held = plan, replay, keys, held

    def push(self, batch: LaneBatch) -> Iterator[pa.RecordBatch]:
        """Yield the output tuples of a batch."""
        plan, keys = self._plan, self._keys
        ids = keys.intern(batch, [self._replay])
        left, right = keys.coded(batch, ids)
        if plan.payload:
            for side, window in enumerate(self._held):
                window.push((batch.left, batch.right)[side].ts, _handed_on(batch, side))
        width = sum((window.width for window in self._held), 0.0)
        if plan.facts is not None and plan.facts.payload is not None:
            width += bytes_a_row([plan.facts.payload])
        for out in self._replay.push(left, ids[0], right, ids[1], keys.size):
            for batches in in_pieces(out.ts.size, width, partial(self._batches, out)):
                yield from batches

    def _batches(self, out: Outputs, rows: slice) -> list[pa.RecordBatch]:
        """Return some output tuples."""
        plan, out = self._plan, Outputs._make(own[rows] for own in out)
        columns = dict(zip(IDS.names, id_columns(out).columns, strict=True))
        if plan.facts is not None:
            columns = _with_facts(columns, plan.facts, out)
        if plan.payload:
            for window, seq in zip(self._held, (out.left_seq, out.right_seq), strict=True):
                taken = window.take(seq)
                columns |= dict(zip(taken.column_names, taken.columns, strict=True))
        if plan.facts is not None and plan.facts.payload is not None:
            taken = plan.facts.payload.take(pa.array(out.fact))
            columns |= dict(zip(taken.column_names, taken.columns, strict=True))
        batches: list[pa.RecordBatch] = pa.table(columns).combine_chunks().to_batches()
        return batches


def _with_facts(
    columns: dict[str, pa.ChunkedArray], facts: SharedFacts, out: Outputs
) -> dict[str, Any]:
    """Return the id columns, with those of fact rows behind the members'."""
    names = list(columns)
    found: dict[str, Any] = {name: columns[name] for name in names[:2]}
    found["fact_row"] = pa.array(facts.rows[out.fact])
    return found | {name: columns[name] for name in names[2:]}


class Keys:
    """Dense ids of a lane's tuples: of their join attributes, or as facts join them."""

    def __init__(self, plan: Plan, links: Links | None, *, forgets: bool | None = None) -> None:
        self._links = links
        self._equal = LaneKeys(
            plan.layout, plan.windows, forgets=plan.forgets if forgets is None else forgets
        )

    @property
    def size(self) -> int:
        """Number of ids."""
        return self._equal.size if self._links is None else self._links.size

    def intern(
        self, batch: LaneBatch, holders: Sequence[Remapped]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return both sides' ids."""
        if self._links is None:
            return self._equal.intern(batch, holders)
        sides = enumerate((batch.left, batch.right))
        left, right = (self._links.ids(side, one.ts, one.key) for side, one in sides)
        return left, right

    def coded(
        self, batch: LaneBatch, ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    ) -> tuple[StreamBatch, StreamBatch]:
        """Return both sides with codes for their attributes."""
        if self._links is None:
            return self._equal.coded(batch, ids)
        return batch.left, batch.right


def _handed_on(batch: LaneBatch, side: int) -> pa.Table:
    """Return one side's payload without the join attributes that are sent with it."""
    table: pa.Table = (batch.left_payload, batch.right_payload)[side]
    own = [name for name in table.column_names if not name.startswith(f"{SIDES[side]}_\0")]
    return table.select(own)
