"""The certificate of the offline optimum: its step rule against others, and a large archive.

Rules are compared by the number of evaluations of the dual on P1's set-ups (5.2.1, table 1), where
a min-cost flow gives the optimum. All start at the same prices; the evaluations that these took are
included. With plain subgradient steps, the gap falls with the square root of their number. Polyak's
steps need the optimum, which is unknown in practice; they are tried in plain form and with
deflected directions.

The archive is P1's set-up for 10M + 10M tuples: domain 100k, w = 100k, M = 10 % of both windows. It
runs in a process of its own: choices and certificate of each side, which has half of the memory,
one after the other; then those of one memory for both, and how far the best possible rises by that.

    python benchmarks/certificate.py [--rows 10000000] [--threads N] [--gap 0.02]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reproduce.record import about, write
from reproduce.two_way import Point, zipf

from engine.exact import all_pairs
from engine.exact.checks import thread_count
from engine.generate import ImportanceModel
from engine.optimum.ascent import Ascent
from engine.optimum.build import build_intervals
from engine.optimum.certificate import certify
from engine.optimum.dual import CpuDual
from engine.optimum.flow import solve_flow
from engine.optimum.intervals import BOTH, Rows, Sides, Weigh, intervals_of, matches_of_pairs
from engine.runtime.streams import LEFT, RIGHT, SIDES, StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "certificate.json"
AT = (25, 50, 100, 200, 400)
SETUPS = {
    **{f"P1 w=400 M={m}": (5600, 100, 400, m, 0.0) for m in (100, 200, 400)},
    "P1 w=400 M=200, both Zipf 1": (5600, 100, 400, 200, 1.0),
    "P1 table 1": (56_000, 2000, 2000, 800, 0.0),
}
"""Rows, domain, lifetime w, M, the right's skew; the left's is 1."""

Bounds = Iterator[tuple[int, float]]


def streams(rows: int, domain: int, skew_right: float) -> tuple[StreamBatch, StreamBatch]:
    """Return both streams of P1's set-up; 1 % of the tuples are rare and important."""
    correlation = "direct" if skew_right else "none"
    point = Point(0, 0, domain, (1.0, skew_right), rows, correlation)
    return zipf(point, ImportanceModel("rare-high"), seed=1)


def least_of(left: StreamBatch, right: StreamBatch) -> Weigh:
    """Return the importance of outputs: the smaller of both."""

    def weigh(a: Rows, b: Rows) -> NDArray[np.float64]:
        return np.minimum(left.importance[a], right.importance[b])

    return weigh


def begun(dual: CpuDual) -> Ascent:
    """Return the engine's ascent at the prices from which all rules start."""
    intervals = dual.intervals
    some = int(np.count_nonzero(np.diff(intervals.start)))
    return Ascent(dual, intervals.end.size / some)


def smoothed(dual: CpuDual, best: float) -> Bounds:
    """Yield (evaluations, bound) of the engine's own rule."""
    del best
    ascent = begun(dual)
    while True:
        yield ascent.rounds, ascent.upper
        ascent.step()


def plain(dual: CpuDual, best: float, *, scale: float) -> Bounds:
    """Yield those of subgradient steps, the first moving prices by `scale` of their mean."""
    del best
    ascent = begun(dual)
    price, upper, rounds = np.diff(ascent.prices), ascent.upper, ascent.rounds
    scale *= float(price.mean()) / dual.budget
    while True:
        yield rounds, upper
        found = dual.evaluate(np.concatenate([[0.0], np.cumsum(price)]))
        rounds, upper = rounds + 1, min(upper, found.value)
        step = scale / np.sqrt(rounds - ascent.rounds)
        price = np.maximum(0.0, price + step * (found.load - dual.budget))


def polyak(dual: CpuDual, best: float, *, deflected: float) -> Bounds:
    """Yield those of Polyak's steps towards the optimum, each with a part of those before."""
    ascent = begun(dual)
    price, upper, rounds = np.diff(ascent.prices), ascent.upper, ascent.rounds
    down = np.zeros(dual.nodes)
    while True:
        yield rounds, upper
        found = dual.evaluate(np.concatenate([[0.0], np.cumsum(price)]))
        rounds, upper = rounds + 1, min(upper, found.value)
        slope = (dual.budget - found.load).astype(np.float64)
        slope[(price <= 0.0) & (slope > 0.0)] = 0.0
        down = slope + deflected * down
        step = (1.0 - deflected) * (found.value - best) / max(float(down @ down), 1e-9)
        price = np.maximum(0.0, price - step * down)


RULES: dict[str, Callable[[CpuDual, float], Bounds]] = {
    "smoothed": smoothed,
    **{f"plain {scale}": partial(plain, scale=scale) for scale in (10.0, 3.0, 1.0)},
    "polyak": partial(polyak, deflected=0.0),
    "polyak deflected": partial(polyak, deflected=0.7),
}


def bounds_at(bounds: Bounds, best: float) -> list[float]:
    """Return by what part of the optimum the bound exceeds it after `AT` evaluations."""
    found, upper = [], np.inf
    for rounds, bound in bounds:
        while len(found) < len(AT) and rounds > AT[len(found)]:
            found.append(upper / best - 1.0)
        if len(found) == len(AT):
            return found
        upper = bound
    return found


def rules() -> list[dict[str, Any]]:
    """Compare the rules on P1's set-ups."""
    rows = []
    for name, (size, domain, lifetime, memory, skew) in SETUPS.items():
        left, right = streams(size, domain, skew)
        weigh = least_of(left, right)
        pairs = all_pairs(
            left, right, lifetime - 1, lifetime - 1, start_ts=2 * lifetime, dtype=np.int32
        )
        for side, word in enumerate(SIDES):
            matches = matches_of_pairs(left, right, pairs, weigh, side)
            intervals = intervals_of(matches, after_admission=True)
            warm = certify(intervals, memory // 2, gap=0.0, rounds=1000)
            best = solve_flow(intervals, memory // 2, warm.prices).lower
            row: dict[str, Any] = {"setup": name, "side": word, "optimum": best, "at": AT}
            row["over"] = {
                rule: bounds_at(run(CpuDual(intervals, memory // 2), best), best)
                for rule, run in RULES.items()
            }
            found = [certify(intervals, memory // 2, gap=0.0, rounds=n) for n in AT]
            row["gap"] = [certificate.gap for certificate in found]
            row["short"] = [1.0 - certificate.lower / best for certificate in found]
            rows.append(row)
            print(f"\n{name}, {word}: bound over the optimum, %, after {AT} evaluations")
            for rule, over in row["over"].items():
                print(f"  {rule:20}", *(f"{100 * part:8.3f}" for part in over))
            print("  plan short of it    ", *(f"{100 * part:8.3f}" for part in row["short"]))
            print("  certified gap       ", *(f"{100 * part:8.3f}" for part in row["gap"]))
    return rows


def archive(rows: int, gap: float, threads: int | None) -> dict[str, Any]:
    """Certify P1's set-up at scale, M split evenly and not; for a process of its own."""
    domain = lifetime = rows // 100
    budget = lifetime // 10
    left, right = streams(rows, domain, 0.0)
    weigh, windows = least_of(left, right), (lifetime - 1, lifetime - 1)

    def certified(sides: Sides) -> dict[str, Any]:
        begin = time.perf_counter()
        intervals = build_intervals(
            left, right, windows, weigh, sides,
            after_admission=True, start_ts=2 * lifetime, threads=threads,
        )  # fmt: skip
        built = time.perf_counter() - begin
        memory = budget * len(sides)
        found = certify(intervals, memory, gap=gap, seconds=600.0, threads=threads)
        row = {
            "side": " and ".join(SIDES[side] for side in sides), "budget": memory,
            "choices": intervals.end.size, "build_seconds": built, "seconds": found.seconds,
            "evaluations": found.rounds, "gap": found.gap, "lower": found.lower,
            "upper": found.upper,
        }  # fmt: skip
        print(f"  {row}")
        return row

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    before, clock = peak(), time.perf_counter()
    each = [certified((LEFT,)), certified((RIGHT,))]
    lower, upper = (sum(side[end] for side in each) for end in ("lower", "upper"))
    found = {
        "rows": rows, "domain": domain, "lifetime": lifetime, "threads": thread_count(threads),
        "seconds": time.perf_counter() - clock, "gap": (upper - lower) / upper, "sides": each,
        "streams_gigabytes": before, "peak_gigabytes": peak(),
    }  # fmt: skip
    clock = time.perf_counter()
    both = certified(BOTH)
    both |= {"seconds_in_all": time.perf_counter() - clock, "peak_gigabytes": peak()}
    return found | {"both": both, "gain": [both["lower"] / upper - 1, both["upper"] / lower - 1]}


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--gap", type=float, default=0.02)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    rows = rules()
    print(f"\nP1's set-up, {args.rows} + {args.rows} tuples, M = 10 %")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        large = pool.apply(archive, (args.rows, args.gap, args.threads))
    print(
        f"  {large['seconds']:.0f} s on {large['threads']} threads, gap {100 * large['gap']:.2f} %,"
        f" peak {large['peak_gigabytes']:.2f} GB ({large['streams_gigabytes']:.2f} the streams)"
    )
    both = large["both"]
    print(
        f"  one memory for both: {both['seconds_in_all']:.0f} s, gap {100 * both['gap']:.2f} %,"
        f" peak {both['peak_gigabytes']:.2f} GB; importance above the even split's by"
        f" {100 * large['gain'][0]:.2f} to {100 * large['gain'][1]:.2f} %"
    )
    write(args.out, {"about": about(), "rules": rows, "archive": large})


if __name__ == "__main__":
    main()
