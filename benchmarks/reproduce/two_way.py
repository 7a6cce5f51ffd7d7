"""Two-way joins that P1's, P2's and P5's experiments replay: streams, policies, optimum."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.facts.index import FactIndex, fact_index
from engine.facts.links import Links
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.generate import ImportanceModel, ZipfSpec, in_memory, zipf_sources
from engine.lanes.profile import LaneProfile, profile_side
from engine.optimum.bound import BoundSettings, bound_lane
from engine.optimum.build import pairs_of
from engine.optimum.facts import fact_pairs
from engine.optimum.intervals import Matches, matches_of_pairs
from engine.optimum.settings import Effort, Objective
from engine.optimum.states import optimal_states
from engine.replay.lane import LaneReplay
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import LEFT, RIGHT, StreamBatch

AFTER = "after_admission"
POLICIES = ("DGL", "DIMPPROB", "SIMPPROB", "PROB", "SIMP", "RAND")
NO_CURVES = None, None


class Point(NamedTuple):
    """One setting of a figure: lifetime w, memory M, keys and rows of both streams."""

    lifetime: int
    memory: int
    domain: int
    skews: tuple[float, float]
    rows: int = 5600
    correlation: str = "none"


class Pair(NamedTuple):
    """Two streams, their windows, the tick from which outputs count, and what joins them."""

    left: StreamBatch
    right: StreamBatch
    windows: tuple[int, int]
    start_ts: int | None = None
    facts: Facts | None = None
    """None: equal keys."""

    @property
    def profile(self) -> LaneProfile:
        """What a pass over both sides says."""
        if self.facts is None:
            sides = zip((self.left, self.right), self.windows, strict=True)
            return LaneProfile(*(profile_side([side], window) for side, window in sides))
        index = fact_index(self.facts).sides
        return LaneProfile(
            *(
                profile_side([batch], window, lambda b, s=side: s.until(b.ts, b.key))  # type: ignore[misc]
                for batch, window, side in zip(
                    (self.left, self.right), self.windows, index, strict=True
                )
            )
        )

    @property
    def pairs(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """The pairs of the exact join."""
        if self.facts is None:
            return list(pairs_of(self.left, self.right, self.windows, self.start_ts))
        return fact_pairs(self.left, self.right, self.facts, *self.windows, start_ts=self.start_ts)


class Kept(NamedTuple):
    """Outputs and their importance."""

    outputs: int
    importance: float


@lru_cache(maxsize=64)
def zipf(point: Point, model: ImportanceModel, seed: int) -> tuple[StreamBatch, StreamBatch]:
    """Return P1's and P2's streams, one tuple a tick."""
    spec = ZipfSpec(
        rows=point.rows, domain=point.domain, skew_left=point.skews[0],
        skew_right=point.skews[1], correlation=point.correlation, importance=model, seed=seed,
    )  # fmt: skip
    left, right = (batch(table) for table in in_memory(zipf_sources(spec)))
    return left, right


def batch(table: Any) -> StreamBatch:  # noqa: ANN401 - pyarrow's
    """Return a generated table as a stream."""
    ts, key, importance = (table.column(name).to_numpy() for name in ("ts", "key", "importance"))
    return StreamBatch(ts, np.arange(ts.size), key.astype(np.int64), importance)


def linked(pair: Pair, index: FactIndex | None = None) -> Links:
    """Return the ids and partners of streams that a fact relation joins."""
    arrivals = [(pair.left.ts, pair.left.key)], [(pair.right.ts, pair.right.key)]
    return Links(index or fact_index(pair.facts), arrivals, pair.windows)


def interned(pair: Pair) -> tuple[list[NDArray[np.int32]], int]:
    """Return dense ids of both streams' keys, and how many there are."""
    table = KeyTable()
    ids = [table.intern(own.key) for own in (pair.left, pair.right)]
    return ids, int(max(own.max(initial=-1) for own in ids)) + 1


def age_curves(pair: Pair, buckets: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matches of a mean tuple of either side by age."""
    exact = ExactStream(*pair.windows, age_buckets=buckets)
    ids, size = interned(pair)
    exact.push(pair.left, ids[0], pair.right, ids[1], np.zeros(size, np.int64), np.zeros(size))
    return exact.ages_left / pair.left.ts.size, exact.ages_right / pair.right.ts.size


def pushed(lane: LaneReplay, pair: Pair, links: Links | None = None) -> Kept:
    """Push whole streams through a replay."""
    if links is None:
        ids, size = interned(pair)
    else:
        batches = pair.left, pair.right
        ids = [links.ids(i, own.ts, own.key) for i, own in enumerate(batches)]
        size = links.size
    for _ in lane.push(pair.left, ids[0], pair.right, ids[1], size):
        raise AssertionError
    return Kept(lane.outputs, lane.importance)


def replayed(
    pair: Pair, policy: str | None, budget: tuple[int, int] = (UNLIMITED, UNLIMITED), *,
    curves: Any = NO_CURVES, profile: LaneProfile | None = None, **how: Any,  # noqa: ANN401
) -> Kept:  # fmt: skip
    """Replay by a policy; None is the exact join. `how`: fields of `ReplaySettings`."""
    settings = ReplaySettings(
        *pair.windows, policy=policy, start_ts=pair.start_ts, **({"probe": AFTER} | how)
    )
    links = None if pair.facts is None else linked(pair)
    through: dict[str, Any] = {}
    if links is not None:
        through = {"key_links": links.key_links, "facts": fact_index(pair.facts)}
    lane = LaneReplay(
        settings, profile or pair.profile, budget, curves=curves, emit=False, **through
    )
    return pushed(lane, pair, links)


def optimum(
    pair: Pair, budget: tuple[int, int], objective: str = "importance", method: str = "flow"
) -> Kept:
    """Return what the best plan keeps, proven.

    `method`: "flow" is ESJA (with the objective "outputs" SJA), "states" ODJA and OSSJ.
    """
    effort = Effort(method, seconds=600.0)
    settings = BoundSettings(*pair.windows, Objective(objective), AFTER, pair.start_ts, effort, 1)
    found = bound_lane(pair.left, pair.right, settings, budget, facts=pair.facts)
    if found.lower != found.upper:
        raise AssertionError(f"the optimum lies from {found.lower} to {found.upper}: not proven")
    return Kept(found.plan.outputs, found.plan.importance)


def certificate(pair: Pair, budget: tuple[int, int]) -> float:
    """Return the bound that the certificate alone proves within half a percent or 8 seconds."""
    effort = Effort("dual", gap=0.005, seconds=8.0)
    settings = BoundSettings(*pair.windows, Objective(), AFTER, pair.start_ts, effort, 1)
    return bound_lane(pair.left, pair.right, settings, budget, facts=pair.facts).upper


def sides_of(pair: Pair) -> list[Matches]:
    """Return the matches of each side's tuples, weighed by importance."""
    pairs, weigh = pair.pairs, Objective().weigher(pair.left, pair.right)
    return [matches_of_pairs(pair.left, pair.right, pairs, weigh, side) for side in (LEFT, RIGHT)]


def most_outputs(pair: Pair, budget: int, tie: float) -> Kept:
    """Return a plan of most outputs: of the greatest importance (tie 1) or of the least (-1)."""
    small = 1e-6 * tie
    outputs, importance = 0, 0.0
    pairs, weigh = pair.pairs, Objective().weigher(pair.left, pair.right)
    for a, b in pairs:
        at_once = pair.left.ts[a] == pair.right.ts[b]
        outputs += int(at_once.sum())
        importance += float(weigh(a, b)[at_once].sum())
    for side in (LEFT, RIGHT):
        matches = matches_of_pairs(
            pair.left, pair.right, pairs, lambda a, b: 1.0 + small * weigh(a, b), side
        )
        value = optimal_states(matches, budget, after_admission=True).value
        outputs += round(value)
        importance += (value - round(value)) / small
    return Kept(outputs, round(importance, 3))


def stream(rows: Iterable[tuple[int, int, float]]) -> StreamBatch:
    """Return the tuples (ts, key, importance) of a paper's example."""
    ts, key, importance = zip(*rows, strict=True)
    return StreamBatch(
        np.array(ts), np.arange(len(ts)), np.array(key), np.array(importance, np.float64)
    )


def drawn_facts(rng: np.random.Generator, count: int, domains: tuple[int, int]) -> Facts:
    """Return distinct pairs, drawn uniformly, that do not change."""
    pairs = np.sort(rng.choice(domains[0] * domains[1], count, replace=False))
    return Facts(
        pairs // domains[1] + 1, pairs % domains[1] + 1, np.full(count, BEFORE),
        np.full(count, NEVER), np.arange(count),
    )  # fmt: skip


def example(pair: Pair, budget: int) -> dict[str, float]:
    """Return the figures of a paper's example graph."""
    exact, best = replayed(pair, None), optimum(pair, (budget, budget), method="states")
    most, least = (most_outputs(pair, budget, tie) for tie in (1.0, -1.0))
    return {
        "exact outputs": exact.outputs, "exact importance": exact.importance,
        "optimum outputs": best.outputs, "optimum importance": best.importance,
        "most outputs": most.outputs, "their greatest importance": most.importance,
        "their least importance": least.importance,
    }  # fmt: skip
