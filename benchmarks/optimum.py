"""The exact optimum of P1's set-ups, compared with OR-Tools' min-cost flow on the same problem.

OR-Tools gets the network of the contract, section 4: a node for every instant and for every match
of every tuple, with integer costs (P1's importances are integers), both sides at once in two
threads like ours; numpy builds its arrays, which is not timed. Our time starts from the streams:
matches, certificate, flow, proof and the plan's own sum. Values are compared first.

    python benchmarks/optimum.py [--repeat 3] [--peer-large] [--json results/optimum.json]

``--peer-large`` gives table 1's set-up to OR-Tools too, which takes minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from ortools import __version__ as ortools_version
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from reproduce.p1 import BASE, network, pair_of
from reproduce.record import about, write
from reproduce.two_way import Pair, Point

from engine.optimum.bound import BoundSettings, bound_lane
from engine.optimum.intervals import matches_of_pairs
from engine.optimum.settings import Effort, Objective
from engine.runtime.streams import LEFT, RIGHT


class Case(NamedTuple):
    """A set-up, K of each side, and the seconds that it may take."""

    name: str
    pair: Pair
    budget: int
    allowed: float
    peer: bool


def cases(*, peer_large: bool) -> list[Case]:
    """Return P1's largest setting at every M of figure 9, skewed both ways, and table 1's."""

    def case(name: str, point: Point, allowed: float, *, peer: bool) -> Case:
        return Case(name, pair_of(point, BASE.model, 1), point.memory // 2, allowed, peer)

    found = [
        case(
            f"N=5600 w=400 Zipf {skew:g}/{other:g} M={memory}",
            Point(400, memory, 100, (skew, other), correlation=kind),
            5.0,
            peer=memory in {100, 400},
        )
        for skew, other, kind in ((1.0, 0.0, "none"), (1.0, 1.0, "direct"))
        for memory in (2, 100, 200, 400, 600, 700, 800)
    ]
    large = Point(2000, 800, 2000, (1.0, 0.0), 56_000)
    return [*found, case("table 1: N=56000 w=2000 M=800", large, 60.0, peer=peer_large)]


def ours(case: Case) -> float:
    """Return the optimum as `winnow bound --method flow` finds it."""
    own = case.pair
    settings = BoundSettings(*own.windows, start_ts=own.start_ts, effort=Effort("flow"))
    found = bound_lane(own.left, own.right, settings, (case.budget, case.budget))
    if found.lower != found.upper:
        raise SystemExit(f"{case.name}: {found.lower} is not {found.upper}")
    return found.lower


def peer(case: Case) -> tuple[float, float]:
    """Return OR-Tools' optimum and its seconds."""
    left, right, pairs = case.pair.left, case.pair.right, case.pair.pairs
    weigh = Objective().weigher(left, right)
    flows = [
        network(
            matches_of_pairs(left, right, pairs, weigh, side), case.budget, after_admission=False
        )
        for side in (LEFT, RIGHT)
    ]
    free = sum(float(weigh(a, b)[left.ts[a] == right.ts[b]].sum()) for a, b in pairs)
    begun = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(SimpleMinCostFlow.solve, flows))
    spent = time.perf_counter() - begun
    if any(state != SimpleMinCostFlow.OPTIMAL for state in states):
        raise SystemExit(f"{case.name}: OR-Tools says {states}")
    return free - sum(flow.optimal_cost() for flow in flows), spent


def measured(case: Case, repeat: int) -> dict[str, Any]:
    """Measure a case: medians of ours, one run of the peer."""
    ours(case)
    times, value = [], 0.0
    for _ in range(repeat):
        begun = time.perf_counter()
        value = ours(case)
        times.append(time.perf_counter() - begun)
    line = {"case": case.name, "optimum": value, "seconds": statistics.median(times)}
    line |= {"allowed": case.allowed, "peer_seconds": None, "ratio": None}
    if case.peer:
        other, spent = peer(case)
        if other != value:
            raise SystemExit(f"{case.name}: OR-Tools says {other}, ours {value}")
        line |= {"peer_seconds": spent, "ratio": spent / statistics.median(times)}
    return line


def main() -> None:
    """Print a line a case, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-large", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    lines = []
    for case in cases(peer_large=args.peer_large):
        line = measured(case, args.repeat)
        lines.append(line)
        other = "" if line["ratio"] is None else f"  OR-Tools {line['peer_seconds']:.2f} s"
        other += "" if line["ratio"] is None else f", {line['ratio']:.0f} times"
        print(
            f"{case.name:40s} {line['optimum']:>12,.0f} {line['seconds']:.3f} s{other}", flush=True
        )
    if args.json:
        results = {
            **about(),
            "ortools": ortools_version,
            "cases": lines,
        }
        write(args.json, results)


if __name__ == "__main__":
    main()
