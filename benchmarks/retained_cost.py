"""What a join within a memory takes under a predicate, over what it takes on equal keys.

    python benchmarks/retained_cost.py [--tuples 1000000] [--repeats 3] [--json FILE]

Two streams, one tuple a tick each, windows of 2,000 ticks, uniform attributes: values within a band
in the one join, keys in the other, so that a tuple has as many matches in a window in both. 10 % of
the memory, warm, in memory, one core, by each policy's own kernel. Times are CPU seconds, medians
of alternating runs. First it is checked that a band of 0 around the keys gives the result of the
replay by keys, and that the band itself gives that of a replay from the pairs of its exact join,
whose time is recorded, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduce.record import about, write

from engine.lanes.profile import LaneProfile, profile_side
from engine.multiway.exact.join import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from engine.replay import common
from engine.replay.by_pairs import arrivals_of, replay_pairs
from engine.replay.by_ranks import replay_band
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "retained_cost.json"
WINDOW, SHARE = 2000, 0.1
MATCHES = (1, 10)
"""Of a tuple in the opposite window."""
POLICIES = ("prob", "simpprob", "dimpprob", "dgl")
ASKED = 3.0
"""The most time, over the replay on equal keys."""


class Joins:
    """A replay of two streams on equal keys, and one under a band."""

    def __init__(self, tuples: int, matches: int, policy: str) -> None:
        rng = np.random.default_rng(matches)
        self._keys = WINDOW // matches
        ts = np.arange(tuples)
        self._sides = [
            StreamBatch(
                ts, ts, rng.integers(0, self._keys, tuples), rng.integers(1, 9, tuples) / 1.0
            )
            for _ in range(2)
        ]
        self._values = [own.key + rng.random(tuples) for own in self._sides]
        self._settings = ReplaySettings(WINDOW, WINDOW, policy=policy)
        self._profile = LaneProfile(*(profile_side([own], WINDOW) for own in self._sides))

    def _lane(self) -> LaneReplay:
        budget = int(SHARE * self._profile.left.peak)
        return LaneReplay(self._settings, self._profile, (budget, budget), emit=False)

    def by_keys(self) -> LaneReplay:
        """Replay on equal keys."""
        lane = self._lane()
        left, right = self._sides
        ids = [own.key.astype(np.int32) for own in self._sides]
        for _ in lane.push(left, ids[0], right, ids[1], self._keys):
            pass
        return lane

    def by_band(self, *, of_keys: bool = False) -> LaneReplay:
        """Replay under a band of half a key to either side; or of the keys, of none."""
        left, right = (own.key.astype(float) for own in self._sides) if of_keys else self._values
        lane = self._lane()
        arrivals = arrivals_of(*self._sides)
        for _ in replay_band(lane, arrivals, (left, right), 0.0 if of_keys else 0.5):
            pass
        return lane

    def by_pairs(self) -> LaneReplay:
        """Replay under the band, from the pairs of the exact join."""
        lane = self._lane()
        pairs = self._pairs(np.concatenate(self._values), 0.5)
        for _ in replay_pairs(lane, arrivals_of(*self._sides), pairs):
            pass
        return lane

    def _pairs(self, values: Floats, eps: float) -> Iterator[Ints]:
        size = self._sides[0].ts.size
        columns = (np.concatenate(own) for own in zip(*self._sides, strict=True))
        ts, row, _, importance = columns
        streams = MultiStreams(
            np.array([0, size, 2 * size]), ts, row, importance,
            no_attributes(2 * size)._replace(value=values[:, None]),
        )  # fmt: skip
        join = ExactJoin(
            streams, windows_of([WINDOW, WINDOW]), Predicate("band", ("v",), eps), threads=1
        )
        return join.members()


def measured(tuples: int, matches: int, policy: str, repeats: int) -> dict[str, Any]:
    """Return the times of one policy and number of matches."""
    small = Joins(20_000, matches, policy)
    keys, band = small.by_keys(), small.by_band(of_keys=True)
    if (keys.outputs, keys.importance) != (band.outputs, band.importance):
        raise SystemExit(f"{policy}: {keys.outputs} outputs by keys, {band.outputs} by a band of 0")
    pairs, band = small.by_pairs(), small.by_band()
    if (pairs.outputs, pairs.importance) != (band.outputs, band.importance):
        raise SystemExit(f"{policy}: {pairs.outputs} outputs by pairs, {band.outputs} by the band")
    joins = Joins(tuples, matches, policy)
    ways = {"keys": joins.by_keys, "band": joins.by_band, "pairs": joins.by_pairs}
    times: dict[str, list[float]] = {name: [] for name in ways}
    outputs = {}
    for _ in range(repeats):
        for name, run in ways.items():
            begun = time.process_time()
            outputs[name] = run().outputs
            times[name].append(time.process_time() - begun)
    medians = {name: statistics.median(own) for name, own in times.items()}
    return {
        "policy": policy, "matches": matches, "outputs": outputs, "seconds": medians,
        "ratio": medians["band"] / medians["keys"], "asked": ASKED,
    }  # fmt: skip


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    common.LANE_TUPLES = 0  # no kernel for all policies
    lines = []
    for matches in MATCHES:
        for policy in POLICIES:
            line = measured(args.tuples, matches, policy, args.repeats)
            seconds = line["seconds"]
            print(
                f"{policy:9} {matches:3} matches: keys {seconds['keys']:.2f} s, band "
                f"{seconds['band']:.2f} s, ratio {line['ratio']:.2f} (asked {ASKED}), by pairs "
                f"{seconds['pairs']:.2f} s",
                flush=True,
            )
            lines.append(line)
    if args.json:
        write(args.json, {"about": about(), "tuples": args.tuples, "lines": lines})


if __name__ == "__main__":
    main()
