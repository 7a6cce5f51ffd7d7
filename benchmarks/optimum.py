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
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ortools import __version__ as ortools_version
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from reproduce.record import about, write

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from paper_workloads import Workload, p1_streams, p1_table1
from reproduce.p1 import network

from engine.optimum.bound import BoundSettings, bound_lane
from engine.optimum.build import pairs_of
from engine.optimum.intervals import matches_of_pairs
from engine.optimum.settings import Effort, Objective
from engine.runtime.streams import StreamBatch

SIDES = (0, 1)


class Case(NamedTuple):
    """A set-up, and the seconds that the issue allows."""

    name: str
    workload: Workload
    allowed: float
    peer: bool


def cases(*, peer_large: bool) -> list[Case]:
    """Return P1's largest setting at every M of figure 9, skewed both ways, and table 1's."""
    found = [
        Case(
            f"N=5600 w=400 Zipf {skew:g}/{other:g} M={memory}",
            p1_streams(5600, 100, skew, other, lifetime=400, memory=memory, correlation=kind),
            5.0,
            memory in {100, 400},
        )
        for skew, other, kind in ((1.0, 0.0, "none"), (1.0, 1.0, "direct"))
        for memory in (2, 100, 200, 400, 600, 700, 800)
    ]
    return [*found, Case("table 1: N=56000 w=2000 M=800", p1_table1(), 60.0, peer_large)]


def streams(workload: Workload) -> tuple[StreamBatch, StreamBatch]:
    """Return both streams in memory."""
    found = []
    for table in (workload.left, workload.right):
        ts, key = (table[name].to_numpy().astype(np.int64) for name in ("ts", "key"))
        importance = table["importance"].to_numpy().astype(np.float64)
        found.append(StreamBatch(ts, np.arange(ts.size), key, importance))
    return found[0], found[1]


def ours(case: Case) -> float:
    """Return the optimum as `winnow bound --method flow` finds it."""
    left, right = streams(case.workload)
    settings = BoundSettings(
        case.workload.window_left,
        case.workload.window_right,
        start_ts=case.workload.start_ts,
        effort=Effort("flow"),
    )
    budget = case.workload.budget_left, case.workload.budget_right
    found = bound_lane(left, right, settings, budget)
    if found.lower != found.upper:
        raise SystemExit(f"{case.name}: {found.lower} is not {found.upper}")
    return found.lower


def peer(case: Case) -> tuple[float, float]:
    """Return OR-Tools' optimum and its seconds."""
    left, right = streams(case.workload)
    windows = case.workload.window_left, case.workload.window_right
    pairs = list(pairs_of(left, right, windows, case.workload.start_ts))
    weigh = Objective().weigher(left, right)
    budgets = case.workload.budget_left, case.workload.budget_right
    flows = [
        network(
            matches_of_pairs(left, right, pairs, weigh, side), budgets[side], after_admission=False
        )
        for side in SIDES
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
