"""Harvest fractions by every optimiser: P4's figures 7 to 10.

Figure 7: the share of the optimum that the greedy metrics reach, by throttle fraction z; m = 3, w
= 10 s, b = 1 s, rates U[100, 500], random selectivities and pdfs. P4 does not say how they are
drawn, so there are several ways: pdfs from random per-stream lags by equations 1 and 2, a separate
lag for every hop, scores U[0, 1], flat; selectivities U[0, 0.01] and U[0, 1]. Figures 8 to 10:
times by m, n and z.

    python benchmarks/harvest_settings.py [--runs 100] [--json results/harvest_settings.json]

Times are CPU seconds of one thread for a call with a `JoinProfile`, the best of 3.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np

from engine.multiway.fractions.exhaustive import best_settings
from engine.multiway.fractions.greedy import DELTA, METRICS, greedy
from engine.multiway.fractions.histograms import scores
from engine.multiway.fractions.optimise import best_setting
from engine.multiway.fractions.profile import JoinProfile, Scores
from gpu_kernels.harvest.space import Search

THROTTLES = [z / 10 for z in range(1, 10)]
WINDOW = 10.0
TICKS = 1000
"""Of a window."""
ALLOWED = {(3, 20): 0.010, (5, 10): 1.0}
"""Seconds that the issue allows the exact method on one core, by m and n."""
ENOUGH = 0.98
"""Of the optimum, on average, at every z: best-delta-output-per-delta-cost."""
PDFS = ("stream lags", "hop lags", "uniform", "flat")
HEADING = "stream lags", 0.01
"""The pdfs and selectivities that figures 8 to 10 are drawn with."""


def drawn_scores(draw: np.random.Generator, orders: list[list[int]], n: int, pdfs: str) -> Scores:
    """Draw the scores of all hops."""
    m = len(orders)
    if pdfs == "stream lags":
        buckets = 10 * n
        places = 2 * (np.arange(buckets) + 0.5) / buckets - 1
        lags, spreads = draw.uniform(-1, 1, (m, 1)), draw.uniform(0.05, 0.5, (m, 1))
        histograms = 1 / (1 + ((places - lags) / spreads) ** 2)
        learned = scores(histograms, [TICKS] * m, TICKS / n, orders)
        return [[hop.tolist() for hop in direction] for direction in learned]
    if pdfs == "hop lags":
        places = (np.arange(n) + 0.5) / n
        lags, spreads = draw.uniform(0, 1, (m, m - 1, 1)), draw.uniform(0.05, 0.5, (m, m - 1, 1))
        found: Scores = (1 / (1 + ((places - lags) / spreads) ** 2)).tolist()
        return found
    drawn: Scores = draw.uniform(0, 1, (m, m - 1, n)).tolist()
    return drawn if pdfs == "uniform" else np.ones((m, m - 1, n)).tolist()


def drawn_join(draw: np.random.Generator, m: int, n: int, pdfs: str, most: float) -> JoinProfile:
    """Draw a join; the join orders put the lowest selectivity first (P4 5.3)."""
    rates = draw.uniform(100, 500, m).tolist()
    sigma = np.triu(draw.uniform(0, most, (m, m)), 1)
    sigma = sigma + sigma.T
    orders = [[int(s) for s in np.argsort(sigma[i]) if s != i] for i in range(m)]
    drawn = drawn_scores(draw, orders, n, pdfs)
    return JoinProfile(rates, (WINDOW,) * m, (n,) * m, orders, sigma.tolist(), drawn)


def optimum(join: JoinProfile, throttle: float) -> float:
    """Return the greatest O, proven."""
    best = best_setting(join, join.limit(throttle))
    if best is None or not best.proven:
        raise SystemExit(f"the optimum of a join of {join.streams} at z = {throttle} is not proven")
    return best.output


def figure_7(runs: int) -> list[dict[str, Any]]:
    """Return the optimality of the metrics and ways at every z, by what joins are drawn from."""
    found = []
    tried = [("greedy", metric) for metric in METRICS]
    tried += [("reverse", DELTA), ("double-sided", DELTA)]
    for pdfs in PDFS:
        for most in (0.01, 1.0):
            draw = np.random.default_rng(2007)
            joins = [drawn_join(draw, 3, 10, pdfs, most) for _ in range(runs)]
            best = {z: [optimum(join, z) for join in joins] for z in THROTTLES}
            for way, metric in tried:
                reached = [
                    [
                        picked.output / top
                        for join, top in zip(joins, best[z], strict=True)
                        if (picked := greedy(join, z, way, metric=metric))
                    ]
                    for z in THROTTLES
                ]
                found.append(
                    {
                        "pdfs": pdfs,
                        "selectivities": most,
                        "way": way,
                        "metric": metric,
                        "mean": [statistics.fmean(line) for line in reached],
                        "least": [min(line) for line in reached],
                    }
                )
    return found


def seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of three calls: other work on the machine is not counted."""
    spent = []
    for _ in range(3):
        begun = time.thread_time()
        work()
        spent.append(time.thread_time() - begun)
    return min(spent)


def timed(joins: list[JoinProfile], throttle: float, method: str) -> dict[str, float]:
    """Return the median and the greatest time of a method over joins, and what is not proven."""
    unproven = 0
    spent = []
    for join in joins:
        limit = join.limit(throttle)
        if method == "exact":
            spent.append(seconds(partial(best_setting, join, limit)))
            best = best_setting(join, limit)
            unproven += best is None or not best.proven
        elif method == "brute-force":
            spent.append(seconds(partial(best_settings, [join], [Search(0, limit)], least=0)))
        else:
            spent.append(seconds(partial(greedy, join, throttle, method)))
    found: dict[str, float] = {"median_s": statistics.median(spent), "most_s": max(spent)}
    return found | ({"unproven": unproven} if method == "exact" else {})


def figures_8_to_10(joins: int) -> list[dict[str, Any]]:
    """Return times by n at z = 0.25 (figure 8) and by z (figures 9, 10)."""
    cases = [(m, n, 0.25) for m in (3, 4, 5) for n in (5, 10, 15, 20)]
    cases += [(m, n, z) for m, n in ((3, 10), (3, 20), (4, 10), (5, 10)) for z in THROTTLES]
    found = []
    for m, n, z in cases:
        draw = np.random.default_rng(2007)
        drawn = [drawn_join(draw, m, n, *HEADING) for _ in range(joins)]
        methods = ["exact", "greedy", "reverse", "double-sided"]
        methods += ["brute-force"] if m == 3 and n <= 10 and z == 0.25 else []
        for method in methods:
            line: dict[str, Any] = {"m": m, "n": n, "z": z, "method": method}
            found.append(line | timed(drawn, z, method))
    return found


def hardest(joins: int) -> list[dict[str, Any]]:
    """Return the exact method's times over all pdfs, selectivities and z, where bounded."""
    found = []
    for (m, n), allowed in ALLOWED.items():
        spent = []
        for pdfs in PDFS:
            for most in (0.01, 1.0):
                draw = np.random.default_rng(11)
                drawn = [drawn_join(draw, m, n, pdfs, most) for _ in range(joins)]
                for z, join in product(THROTTLES, drawn):
                    spent.append(seconds(partial(optimum, join, z)))
        found.append(
            {
                "m": m,
                "n": n,
                "settings": len(spent),
                "allowed_s": allowed,
                "median_s": statistics.median(spent),
                "most_s": max(spent),
            }
        )
    return found


def tables(results: dict[str, Any]) -> str:
    """Return the results as markdown."""
    lines = ["| pdfs, selectivities | method | " + " | ".join(f"z = {z}" for z in THROTTLES) + " |"]
    lines.append("|---" * (2 + len(THROTTLES)) + "|")
    for line in results["figure_7"]:
        name = line["metric"] if line["way"] == "greedy" else f"{line['way']}, by deltas"
        drawn = f"{line['pdfs']}, U[0, {line['selectivities']:g}]"
        numbers = " | ".join(f"{mean:.3f}" for mean in line["mean"])
        lines.append(f"| {drawn} | {name} | {numbers} |")
    lines += ["", "| m | n | z | method | median ms | most ms |", "|---|---|---|---|---|---|"]
    for line in results["figures_8_to_10"]:
        times = f"{1e3 * line['median_s']:.3f} | {1e3 * line['most_s']:.3f}"
        lines.append(f"| {line['m']} | {line['n']} | {line['z']} | {line['method']} | {times} |")
    lines += ["", "| m | n | exact: allowed ms | median ms | most ms | of |", "|---" * 6 + "|"]
    for line in results["hardest"]:
        times = f"{1e3 * line['median_s']:.2f} | {1e3 * line['most_s']:.2f}"
        allowed = f"{1e3 * line['allowed_s']:g}"
        lines.append(f"| {line['m']} | {line['n']} | {allowed} | {times} | {line['settings']} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--joins", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    small = drawn_join(np.random.default_rng(1), 2, 3, *HEADING)
    for method in ("exact", "greedy", "reverse", "brute-force"):
        timed([small], 0.5, method)  # compiles
    git = ["git", "rev-parse", "HEAD"]
    results = {
        "commit": subprocess.run(  # noqa: S603 - ours
            git, capture_output=True, text=True, check=False
        ).stdout.strip(),
        "cpu": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "numba": numba.__version__,
        "numpy": np.__version__,
        "runs": args.runs,
        "joins": args.joins,
        "throttles": THROTTLES,
        "figure_7": figure_7(args.runs),
        "figures_8_to_10": figures_8_to_10(args.joins),
        "hardest": hardest(args.joins),
    }
    print(tables(results))
    held = next(
        line for line in results["figure_7"]
        if (line["pdfs"], line["selectivities"], line["way"], line["metric"])
        == (*HEADING, "greedy", DELTA)
    )  # fmt: skip
    print(f"\nbest-delta-output-per-delta-cost, {HEADING}: {min(held['mean']):.4f} of {ENOUGH}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
