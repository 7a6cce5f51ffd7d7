"""The replay of a star join: its join memories, its kernel, and time that goes on.

The kernel goes instant by instant, as the contract's section 2 counts the steps. It runs until it
has come to a tick or the output arrays are full; called again, it resumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.lanes.profile import SideProfile
from engine.policies import Structure
from engine.replay.heap import ENTRY
from engine.replay.settings import arrival_callback, now_callback
from engine.runtime.errors import SpecError
from engine.runtime.jit import FOREVER, NONE, Floats, Integer, Ints, Records, inlined, kernel
from engine.runtime.randomness import uniforms
from engine.star import layout
from engine.star.decide import decide
from engine.star.index import StarIndex
from engine.star.layout import StarOutputs, StarRules, StarState, StarStreams, StarTallies
from engine.star.memory import begin, clear
from engine.star.outputs import produce
from engine.star.pool import StarPool, learns
from engine.star.settings import Curves, StarSettings
from gpu_kernels.philox import PURPOSE_PRIORITY

_BEGIN, _EARLY, _DECIDE, _LATE, _END = range(5)


@inlined
def _next_instant(streams: StarStreams, state: StarState) -> Integer:
    now = FOREVER
    for side in range(streams.first.size - 1):
        if state.n[side, layout.AT] < streams.first[side + 1]:
            now = min(now, streams.ts[state.n[side, layout.AT]])
    return now


@kernel
def replay(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool | None,
    out: StarOutputs, tallies: StarTallies, progress: Ints, sums: Floats, stop: Integer,
    priority_at_arrival: Records, priority_now: Records,
) -> bool:  # fmt: skip
    """Replay all instants before the tick `stop`; False when `out` must be emptied first."""
    while True:
        phase = progress[layout.PHASE]
        if phase == _BEGIN:
            now = _next_instant(streams, state)
            if now >= stop:
                return True
            progress[layout.NOW] = now
            edges = tallies.edges
            while progress[layout.BIN] + 1 < edges.size and edges[progress[layout.BIN] + 1] <= now:
                progress[layout.BIN] += 1
            begin(rules, streams, state, progress)
        elif phase == _DECIDE:
            decide(rules, streams, state, pool, progress, priority_at_arrival, priority_now)
        elif phase == _END:
            clear(streams, state, progress)
        elif (
            (phase == _LATE) == rules.after_admission
            and (progress[layout.NOW] >= rules.start_ts or learns(pool))
            and not produce(rules, streams, state, pool, out, tallies, progress, sums)
        ):
            return False
        progress[layout.PHASE] = (phase + 1) % (_END + 1)


_MOST_OUTPUTS = 2.0**62


class StarReplay:
    """Replays a star join within its budgets.

    Parameters
    ----------
    settings : StarSettings
    index : StarIndex
    rows : sequence of (n,) int64
        The archive row of every tuple, stream by stream: RAND draws by it.
    profiles : sequence of SideProfile
        Of every stream: the peaks bound the memories, and DGL's loss is its mean importance's.
    budgets : sequence of int
        K of every stream; UNLIMITED for one that is kept whole. Pooled, their sum is the memory.
    curves : sequence of (n,) float64 or None
        Age curves of every stream, for AGE.
    emit : bool
        Write output tuples, or only count them.
    edges : (b,) int64, optional
        Left edges of the time bins of the tallies.
    age_buckets : int
        Count outputs by the ages of their older members, in so many buckets a window.
    chunk : int
        Output tuples handed out at once.

    Attributes
    ----------
    by_bin, importance_by_bin : (b,) int64 and float64
    by_fact, importance_by_fact : (facts,) int64 and float64
        By place in `StarIndex.facts`.
    ages : (m, age_buckets) int64

    Notes
    -----
    Memory: some 70 bytes a tuple and 30 bytes a fact and stream. Time: O(facts of its version) for
    every tuple that comes or goes, and see `engine.star.decide` and `engine.star.outputs`.
    """

    def __init__(
        self,
        settings: StarSettings,
        index: StarIndex,
        rows: Sequence[Ints],
        profiles: Sequence[SideProfile],
        budgets: Sequence[int],
        *,
        curves: Curves = (),
        emit: bool = True,
        edges: Ints | None = None,
        age_buckets: int = 0,
        chunk: int = 262_144,
    ) -> None:
        policy = settings.the_policy
        sides, facts = len(profiles), index.facts.size
        self._rules: StarRules = settings.rules(profiles, budgets, curves, emit=emit)
        self._streams = index.streams._replace(draw=_draws(settings, index.streams, rows))
        self._facts = index.facts
        self._pool = settings.pool(profiles, budgets, index.streams.ts.size, curves)
        if self._pool is not None:
            budgets = [self._pool.memory] * sides
        rooms = [min(k, own.peak) for k, own in zip(budgets, profiles, strict=True)]
        decays = policy.structure is Structure.DECAY
        self._state = _state(self._streams, rooms, facts, decays=decays)
        edges = np.zeros(1, np.int64) if edges is None else edges
        self.by_fact, self.importance_by_fact = np.zeros(facts, np.int64), np.zeros(facts)
        self.by_bin, self.importance_by_bin = np.zeros(edges.size, np.int64), np.zeros(edges.size)
        self.ages = np.zeros((sides, age_buckets), np.int64)
        self._tallies = StarTallies(
            self.by_fact, self.importance_by_fact, edges, self.by_bin, self.importance_by_bin,
            self.ages,
        )  # fmt: skip
        self._out = _room_for(chunk if emit else 0, sides)
        self._progress = np.zeros(layout.PROGRESS_COUNTERS, np.int64)
        self._progress[[layout.UNIT, layout.COMBINATION]] = NONE
        self._sums = np.zeros(3)
        self._callbacks = arrival_callback(policy), now_callback(policy, dict(settings.parameters))

    def run(self, stop: int = FOREVER) -> Iterator[StarOutputs]:
        """Replay all instants before a tick and yield their outputs as they fill the arrays.

        Parameters
        ----------
        stop : int
            Later than any `stop` before it.

        Yields
        ------
        StarOutputs
            Views, valid until the next is asked for; none when only counting.

        Raises
        ------
        SpecError
            There are 2^62 outputs or more.
        """
        done = False
        while not done:
            done = replay(
                self._rules, self._streams, self._state, self._pool, self._out, self._tallies,
                self._progress, self._sums, np.int64(stop), *self._callbacks,
            )  # fmt: skip
            written = int(self._progress[layout.WRITTEN])
            self._progress[layout.WRITTEN] = 0
            if written:
                out = self._out
                yield StarOutputs(
                    out.members[:written],
                    out.ts[:written],
                    out.importance[:written],
                    self._facts[out.fact[:written]].astype(np.int32),
                )
        if (outputs := self._sums[layout.OUTPUTS]) >= _MOST_OUTPUTS:
            raise SpecError(
                f"the join has about {outputs:.0g} outputs, which cannot be counted in "
                "64 bits: make the windows shorter"
            )

    @property
    def outputs(self) -> int:
        """Output tuples counted so far."""
        return int(self.by_bin.sum())

    @property
    def importance(self) -> float:
        """Their importance."""
        return float(self._sums[layout.HIGH] + self._sums[layout.REST])

    @property
    def peaks(self) -> tuple[int, ...]:
        """Most tuples held at once, by stream."""
        return tuple(self._state.n[:, layout.PEAK].tolist())

    @property
    def peak(self) -> int:
        """Most tuples of all streams held at once."""
        return int(self._progress[layout.MOST])

    def retained(self) -> list[Ints]:
        """Return the tuples in each join memory now, by their place in arrival order, ascending."""
        state, first = self._state, self._streams.first
        return [
            np.sort(state.members[begin : begin + count]) - base
            for begin, count, base in zip(state.room, state.n[:, layout.COUNT], first, strict=False)
        ]


def _draws(settings: StarSettings, streams: StarStreams, rows: Sequence[Ints]) -> Floats:
    if not settings.the_policy.draws:
        return np.zeros(streams.ts.size)
    return np.concatenate(
        [uniforms(settings.seed, PURPOSE_PRIORITY, side, own) for side, own in enumerate(rows)]
    )


def _room_for(chunk: int, sides: int) -> StarOutputs:
    return StarOutputs(
        np.empty((chunk, sides), np.int64),
        np.empty(chunk, np.int64),
        np.empty(chunk),
        np.empty(chunk, np.int32),
    )


def _most_at_once(ts: Ints) -> int:
    """Return the most tuples of one tick, of ascending ones."""
    begins = np.flatnonzero(np.append(True, ts[1:] != ts[:-1])[: ts.size])
    return int(np.diff(np.append(begins, ts.size)).max()) if ts.size else 0


def _state(streams: StarStreams, rooms: Sequence[int], facts: int, *, decays: bool) -> StarState:
    """Return empty memories, `rooms` tuples each at most."""
    sides, size = len(rooms), streams.ts.size
    entries = 2 * sum(rooms) + 64 * sides
    versions = streams.facts_of.size - 1
    bounds = zip(streams.first[:-1], streams.first[1:], strict=True)
    at_once = [_most_at_once(streams.ts[begin:end]) for begin, end in bounds]
    room = np.concatenate([[0], np.cumsum(np.array(rooms, np.int64))])
    pool_room = np.concatenate([[0], np.cumsum(np.add(rooms, at_once))]).astype(np.int64)
    n = np.zeros((sides, layout.STREAM_COUNTERS), np.int64)
    n[:, [layout.AT, layout.OLDEST, layout.LEAVING]] = streams.first[:-1, None]
    n[:, layout.ENDED] = streams.ends_of[:-1]
    return StarState(
        held=np.zeros(facts * sides, np.int64),
        arrived=np.zeros(facts * sides, np.int64),
        seen=np.zeros(facts * sides, np.int64),
        low=streams.spans[:, 0].copy(),
        touched=np.empty(facts, np.int32),
        mark=np.zeros(facts, np.int64),
        head=np.full(versions, NONE, np.int32),
        arrival=np.full(versions, NONE, np.int32),
        m=np.zeros(versions),
        hits=np.zeros(versions),
        counted=np.zeros(versions, np.int64),
        rewarded=np.zeros(versions, np.int64),
        inside=np.zeros(size, np.bool_),
        after=np.empty(size, np.int32),
        before=np.empty(size, np.int32),
        chain=np.empty(size, np.int32),
        place=np.empty(size, np.int32),
        priority=np.empty(size),
        value=np.empty(size),
        rank_m=np.empty(size),
        members=np.empty(int(room[-1]), np.int32),
        room=room,
        heap=np.zeros(entries, ENTRY),
        zero=np.zeros(entries if decays else 0, ENTRY),
        pool=np.empty(int(pool_room[-1]), np.int64),
        pool_importance=np.empty(int(pool_room[-1])),
        work=np.empty(int(pool_room[-1])),
        pool_room=pool_room,
        sizes=np.zeros((sides, 2), np.int64),
        part=np.zeros((sides, 2), np.int64),
        counter=np.zeros(sides, np.int64),
        least=np.full(sides, NONE),
        n=n,
    )
