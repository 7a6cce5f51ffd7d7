"""How often 95 % confidence intervals of aggregates cover, by method.

Windows of clusters of outputs are drawn and sampled directly: every cluster with probability 0.1
(eq-cluster), by size (pps-cluster; sizes are the numbers of outputs times e to a normal error of
deviation 0.3), or the tenth of greatest priority (bottom-k). Clusters have 1 output, a geometric
number of mean 5, one with a tail (Zipf 2.2, at most 50) or a lognormal one; values are the stored
tuple's or each output's own: normal around 100 with deviation 100, lognormal, exponential, or
normal around 0.

    python benchmarks/interval_coverage.py [--windows 2000] [--json FILE]

Methods for sums: "normal" and "student" are estimate +- t standard errors, with Satterthwaite's
degrees of freedom for student; "log" is the same for the logarithm; "winnow" is the engine's
method; "alone" is the engine's method for a window without neighbours. Methods for averages:
normal, student and winnow. Coverage is over windows with an interval; width is the median's,
relative to normal's. `--windows` is the number of windows of 150 clusters; there are a third as
many of 500, and three times as many of 50.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import stdtrit

from engine.sampling.aggregates import LaneAggregates, layout, parse_aggregate
from engine.sampling.aggregates.intervals import estimates, others_of
from engine.sampling.layout import SampledOutputs

Floats = NDArray[np.float64]
P, WINDOW = 0.1, 1000
METHODS = "eq-cluster", "pps-cluster", "bottom-k"
CLUSTERS = 50, 150, 500
FAN_OUTS = "one", "geometric", "tailed", "lognormal"
VALUES = "normal", "lognormal", "exponential", "both signs"
SCHEMAS = pa.schema([("v", pa.float64())]), pa.schema([("u", pa.float64())])
AGGREGATES = "count(*)", "sum(left.v)", "sum(right.u)", "avg(left.v)", "avg(right.u)"
SPECS = tuple(
    parse_aggregate(f"{text} every {WINDOW}").resolve("tick", *SCHEMAS) for text in AGGREGATES
)


class Drawn(NamedTuple):
    """Outputs of all windows in order of time: their clusters, and their values."""

    fan_out: NDArray[np.int64]
    cluster: NDArray[np.int64]
    ts: NDArray[np.int64]
    left: Floats
    right: Floats


def values(draw: np.random.Generator, kind: str, n: int) -> Floats:
    """Draw n values."""
    if kind == "normal":
        return draw.normal(100, 100, n)
    if kind == "lognormal":
        return draw.lognormal(0, 1, n)
    return draw.exponential(1, n) if kind == "exponential" else draw.normal(0, 1, n)


def drawn(draw: np.random.Generator, windows: int, clusters: int, fan: str, kind: str) -> Drawn:
    """Draw every window's clusters."""
    n = windows * clusters
    fan_out = {
        "one": lambda: np.ones(n),
        "geometric": lambda: draw.geometric(0.2, n),
        "tailed": lambda: np.minimum(draw.zipf(2.2, n), 50),
        "lognormal": lambda: np.ceil(3 * draw.lognormal(0, 1, n)),
    }[fan]().astype(np.int64)
    cluster = np.repeat(np.arange(n), fan_out)
    ts = cluster // clusters * WINDOW + draw.integers(0, WINDOW, cluster.size)
    order = np.argsort(ts, kind="stable")
    own = values(draw, kind, n)[cluster[order]]
    return Drawn(fan_out, cluster[order], ts[order], own, values(draw, kind, cluster.size))


def chosen(draw: np.random.Generator, method: str, fan_out: NDArray[np.int64], a: int) -> Floats:
    """Return the inclusion probabilities of the clusters that are sampled, 0 of others."""
    n = fan_out.size
    if method == "eq-cluster":
        return np.where(draw.random(n) < P, P, 0.0)
    size = fan_out * draw.lognormal(0, 0.3, n)
    if method == "pps-cluster":
        p = np.minimum(1.0, P * size / size.mean())
        return np.where(draw.random(n) < p, p, 0.0)
    priority = (size / (1 - draw.random(n))).reshape(-1, a)
    threshold = np.sort(priority, axis=1)[:, [-1 - int(P * a)]]
    p = np.minimum(1.0, size.reshape(-1, a) / threshold)
    return np.where(priority > threshold, p, 0.0).ravel()


def tables(join: Drawn, p: Floats, *, independent: bool) -> list[pa.Table]:
    """Return the sums of the outputs whose clusters are sampled."""
    at = np.flatnonzero(p[join.cluster])
    cluster, none = join.cluster[at], np.zeros(at.size, np.int64)
    out = SampledOutputs(
        cluster, none, cluster, none, join.ts[at], np.ones(at.size), 1 / p[cluster],
        np.zeros(at.size, np.int8),
    )  # fmt: skip
    lane = LaneAggregates(SPECS, SCHEMAS, independent=independent)
    lane.add(out, pa.table({"v": join.left[at]}), pa.table({"u": join.right[at]}))
    return lane.close()


def ways(function: str, sums: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Return the bounds that each way gives."""
    ours = estimates(function, sums, 0.95)
    others = others_of(sums, [np.zeros(len(sums), np.int64)])
    beside = estimates(function, sums, 0.95, others)
    middle, error = ours.estimate, ours.standard_error
    with np.errstate(all="ignore"):
        residuals = layout.moved(sums, -middle) if function == "avg" else sums
        n = np.square(residuals[:, layout.V_YY]) / residuals[:, layout.YY_YY]
        t = stdtrit(np.maximum(n, 1.0), 0.975)
        found = {
            "normal": (middle - 1.96 * error, middle + 1.96 * error),
            "student": (middle - t * error, middle + t * error),
        }
        if function != "avg":
            factor = np.exp(t * error / middle)
            found["log"] = middle / factor, middle * factor
            found["alone"] = ours.low, ours.high
    return found | {"winnow": (beside.low, beside.high)}


def lines(windows: int) -> Iterator[dict[str, Any]]:
    """Measure every aggregate of every kind of join, by every way."""
    for method, a, fan, kind in product(METHODS, CLUSTERS, FAN_OUTS, VALUES):
        draw = np.random.default_rng(20040831)
        join = drawn(draw, windows * 150 // a, a, fan, kind)
        p = chosen(draw, method, join.fan_out, a)
        sampled = tables(join, p, independent=False)
        exact = tables(join, np.ones(p.size), independent=True)
        for spec, text, mine, whole in zip(SPECS, AGGREGATES, sampled, exact, strict=True):
            sums, truths = (
                np.column_stack([part[name].to_numpy() for name in layout.SUMS])
                for part in (mine, whole)
            )
            some = np.isin(whole["window"].to_numpy(), mine["window"].to_numpy())
            truth = estimates(spec.function, truths, 0.95).estimate[some]
            if mine.num_rows:
                truth += whole[layout.SHIFT][0].as_py() - mine[layout.SHIFT][0].as_py()
            bounds = ways(spec.function, sums)
            usual = bounds["normal"][1] - bounds["normal"][0]
            for way, (low, high) in bounds.items():
                has = ~np.isnan(bounds["winnow"][0]) & (usual > 0)
                yield {
                    "method": method, "clusters": a, "fan_out": fan, "values": kind,
                    "aggregate": text, "way": way, "windows": int(has.sum()),
                    "covered": round(float(((low <= truth) & (truth <= high))[has].mean()), 4),
                    "width": round(float(np.median((high - low)[has] / usual[has])), 3),
                }  # fmt: skip


def summary(found: list[dict[str, Any]]) -> None:
    """Print means, ranges and shares within 93 to 97 %, by kind of aggregate."""
    kinds = {
        "sums, one sign": lambda e: "avg" not in e["aggregate"] and not _signed(e) and not _hard(e),
        "sums, one sign, tailed eq-cluster": lambda e: "avg" not in e["aggregate"] and _hard(e),
        "sums, both signs": lambda e: "sum" in e["aggregate"] and _signed(e),
        "averages": lambda e: "avg" in e["aggregate"],
    }
    print("| aggregate | clusters sampled | way | covered | least | most | within 93-97 | width |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for (name, kind), a in product(kinds.items(), CLUSTERS):
        for way in ("normal", "student", "log", "alone", "winnow"):
            mine = [e for e in found if kind(e) and e["way"] == way and e["clusters"] == a]
            if not mine or (way == "log" and "both" in name):
                continue
            c = np.array([100 * e["covered"] for e in mine])
            share = np.mean((c >= 93) & (c <= 97))
            width = np.median([e["width"] for e in mine])
            print(
                f"| {name} | {int(P * a)} | {way} | {c.mean():.1f} | {c.min():.1f} | {c.max():.1f} "
                f"| {100 * share:.0f} % | {width:.2f} |"
            )


def _signed(line: dict[str, Any]) -> bool:
    return line["values"] == "both signs" and line["aggregate"] != "count(*)"


def _hard(line: dict[str, Any]) -> bool:
    return line["method"] == "eq-cluster" and line["fan_out"] == "tailed" and not _signed(line)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="coverage of intervals")
    parser.add_argument("--windows", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = list(lines(given.windows))
    summary(found)
    if given.json:
        rows = ",\n".join(json.dumps(list(line.values())) for line in found)
        given.json.write_text(f'{{"columns": {json.dumps(list(found[0]))},\n"rows": [\n{rows}]}}\n')


if __name__ == "__main__":
    main()
