"""P5 6.2.4 and 6.2.5, samples and one memory for two joins: figures 8 to 11."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.generate import AgeCurveSpec, ZipfSpec, age_curve_sources, in_memory, zipf_sources
from reproduce.experiment import (
    Experiment,
    always,
    at_point,
    bounded,
    excess,
    falls,
    order,
    over,
    relative,
    rises,
)
from winnow import allocate, sample

TICKS = 100
"""Of a time unit: few tuples of the two streams arrive in one instant."""
LENGTH, WINDOW, VALUES, ZIPF, MEAN = 5000, 500, 50, 2.0, 100.0
RATES = 1.0, 5.0
MEAN_WINDOW = 0.8 * WINDOW
"""Tuples: a time between arrivals is 1.25 / r on average."""
AGGREGATE = f"avg(left.value) every {TICKS} over {WINDOW * TICKS}"
METHODS = {
    "UNIFORM": ("uniform", "frequency"),
    "EQ-CLUSTER": ("eq-cluster", None),
    "PPS-CLUSTER": ("pps-cluster", None),
    "uniform, bound": ("uniform", "bound"),
    "bottom-k": ("bottom-k", None),
}


class Sampled(NamedTuple):
    """Correlation of the streams, deviation over mean, memory in percent."""

    correlation: str
    deviation: float
    memory: int


def streams(setting: Sampled, seed: int) -> tuple[pa.Table, pa.Table]:
    """Draw S_1 and S_2 (6.2, 6.2.3)."""
    draw = np.random.default_rng([seed, len(setting.correlation), ord(setting.correlation[0])])
    times = []
    for rate in RATES:
        gaps = draw.uniform(0.5 / rate, 2 / rate, int(1.2 * LENGTH * rate))
        arrivals = np.cumsum(gaps)
        times.append(np.floor(arrivals[arrivals < LENGTH] * TICKS).astype(np.int64))
    share = np.arange(1, VALUES + 1) ** -ZIPF
    share /= share.sum()
    ranks = {"IC": np.arange(VALUES)[::-1], "UC": draw.permutation(VALUES)}[setting.correlation]
    keys = [draw.choice(VALUES, ts.size, p=share) for ts in times]
    value = MEAN + MEAN * setting.deviation * draw.normal(size=times[0].size)
    left = pa.table({"ts": times[0], "key": keys[0], "value": value})
    return left, pa.table({"ts": times[1], "key": ranks[keys[1]]})


def errors(setting: Sampled, seed: int) -> dict[str, float]:
    """Return the mean relative error of the windowed average by each method."""
    left, right = streams(setting, seed)
    found = {}
    for name, (method, count) in METHODS.items():
        bytes_a_tuple = 34 if method == "uniform" else 32
        memory = round(setting.memory / 100 * MEAN_WINDOW * 32 / bytes_a_tuple)
        size = {"size": "matches"} if method in ("pps-cluster", "bottom-k") else {}  # P5 4.3's
        table = sample(
            left, right, on="key", time="ts", window_left=WINDOW * TICKS, window_right=0,
            memory_left=memory, memory_right=0, method=method, count=count, seed=seed,
            aggregates=AGGREGATE, exact_aggregates=True, **size,
        ).aggregates[AGGREGATE]  # fmt: skip
        begin = table["window_begin"].to_numpy()
        table = table.filter(pa.array((begin >= 0) & (begin <= (LENGTH - WINDOW) * TICKS)))
        estimate, exact = (
            table[part].to_numpy(zero_copy_only=False) for part in ("estimate", "exact")
        )
        some = ~np.isnan(estimate)
        found[name] = float(np.mean(np.abs(estimate - exact)[some] / np.abs(exact[some])))
    return found


def written(sources: Any, folder: Path, policy: str) -> dict[str, Any]:  # noqa: ANN401
    """Write two streams and return the join of them."""
    folder.mkdir()
    files = {}
    for side, table in zip(("left", "right"), in_memory(sources), strict=True):
        files[side] = str(folder / f"{side}.parquet")
        pq.write_table(table, files[side])
    windows = {"window_left": WINDOW * TICKS - 1, "window_right": 0}
    return files | windows | {"name": folder.name, "on": "key", "time": "ts", "policy": policy}


ROWS = 15_000


def divided(joins: dict[str, tuple[Any, str]], memory: int) -> dict[str, float]:
    """Return the least recall by ALLOC and PROP, and the memory of each join, in percent."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "memory": f"{memory}%",
            "join": [
                written(own, folder / label, policy) for label, (own, policy) in joins.items()
            ],
        }
        report = allocate(job, cache=folder / "cache").report
    found = {how.upper(): 100 * report[how]["replayed"] for how in ("alloc", "prop")}
    found |= {
        f"{how.upper()}, expected": 100 * report[how]["predicted"] for how in ("alloc", "prop")
    }
    for join in report["joins"]:
        for how in ("alloc", "prop"):
            share = 100 * join[how]["memory"] / report["memory"]["exact"]
            found[f"{how.upper()}'s memory of {join['name']}"] = share
    return found


def by_skew(skew: float, seed: int) -> dict[str, float]:
    """Return figure 10's lines."""
    joins = {
        name: (
            zipf_sources(
                ZipfSpec(
                    rows=ROWS, rows_right=5 * ROWS, domain=VALUES, arrivals="uniform",
                    skew_left=skew,
                    skew_right=skew, rate=1 / TICKS, rate_right=5 / TICKS, correlation=correlation,
                    seed=2 * seed + i,
                )
            ),
            "prob",
        )
        for i, (name, correlation) in enumerate((("DC", "direct"), ("IC", "inverse")))
    }  # fmt: skip
    return divided(joins, 20)


def by_exponent(exponent: float, seed: int) -> dict[str, float]:
    """Return figure 11's lines."""
    joins = {
        name: (
            age_curve_sources(
                AgeCurveSpec(
                    rows=ROWS,
                    curve=curve,
                    exponent=exponent,
                    ticks_per_unit=TICKS,
                    seed=2 * seed + i,
                )
            ),
            "age",
        )
        for i, (name, curve) in enumerate((("INC", "increasing"), ("DEC", "decreasing")))
    }
    return divided(joins, 50)


DEVIATIONS = ("0.25", "0.5", "1", "1.5")
SHAPE = "r1 = 1, r2 = 5, W1 = 500, 50 values"
SAMPLED = (
    "the length (5000 time units) and S1's values: normal, mean 100; UNIFORM counts matches by "
    "frequency, "
    "as P5 does"
)
EXPERIMENTS = (
    Experiment(
        "P5:fig8",
        "Aggregation error of samples by memory",
        "6.2.4",
        f"{SHAPE}; inversely correlated, Z = 2; windowed average of S1's attribute, mu = sigma = "
        f"100",
        SAMPLED,
        "memory, % of the window",
        "relative error",
        {str(m): Sampled("IC", 1.0, m) for m in (10, 20, 40, 60, 80, 100)},
        errors,
        (
            order(
                "PPS-CLUSTER outperforms EQ-CLUSTER",
                "EQ-CLUSTER",
                "PPS-CLUSTER",
                at=("10", "20", "40", "60", "80"),
                logs=True,
            ),
            order(
                "UNIFORM is better than PPS-CLUSTER at 10 %",
                "PPS-CLUSTER",
                "UNIFORM",
                at=("10",),
                logs=True,
            ),
            order(
                "PPS-CLUSTER is better at higher memory",
                "UNIFORM",
                "PPS-CLUSTER",
                at=("40", "60", "80"),
                logs=True,
            ),
            bounded("UNIFORM's error is above 0 at 100 %", "UNIFORM", ("100",), 1e-9),
        ),
        logarithmic=True,
        seeds=8,
        quick=("10", "60"),
        reason=(
            "P5's UNIFORM assumes that counts are exactly as its model says; on drawn streams "
            "they vary, "
            "so its error is large at every memory. `uniform, bound` waits for a bound of the "
            "count."
        ),
    ),
    Experiment(
        "P5:fig9",
        "Aggregation error of samples by the deviation of the attribute",
        "6.2.4",
        f"{SHAPE}; uncorrelated, Z = 2; mu = 100, memory 10 %",
        SAMPLED,
        "sigma / mu",
        "relative error",
        {f"{d:g}": Sampled("UC", d, 10) for d in (0.0, 0.25, 0.5, 1.0, 1.5)},
        errors,
        (
            rises(
                "cluster sampling degrades with the deviation",
                "EQ-CLUSTER",
                "PPS-CLUSTER",
                at=DEVIATIONS,
                logs=True,
            ),
            rises(
                "as compared to UNIFORM", over("PPS-CLUSTER", "UNIFORM"), at=DEVIATIONS, logs=True
            ),
            order(
                "UNIFORM is better at high deviation",
                "PPS-CLUSTER",
                "UNIFORM",
                at=("1", "1.5"),
                logs=True,
            ),
        ),
        seeds=8,
        reason="As in figure 8; with a large deviation single windows dominate the mean error.",
    ),
    Experiment(
        "P5:fig10",
        "Least recall of two joins by skew, PROB",
        "6.2.5",
        f"{SHAPE}; a directly and an inversely correlated join, 20 % of their memory",
        f"the length: {ROWS} tuples of S1",
        "Zipf parameter Z",
        "% of the exact joins",
        {f"{z:g}": z for z in (0.0, 0.5, 1.0, 1.5, 2.0)},
        by_skew,
        (
            always("ALLOC is never below PROP", "ALLOC", ">=", "PROP"),
            order("ALLOC outperforms PROP at high skew", "ALLOC", "PROP", at=("1.5", "2")),
            rises("the more the higher the skew", excess("ALLOC", "PROP"), at=("1", "1.5", "2")),
            order(
                "PROP's least recall falls sharply",
                at_point("PROP", "1"),
                at_point("PROP", "1.5"),
                at_point("PROP", "2"),
            ),
            bounded(
                "ALLOC's stays almost constant (within a fifth of its level at Z = 1)",
                "ALLOC",
                ("0.5", "1", "1.5", "2"),
                44.0,
                66.0,
            ),
            order(
                "ALLOC takes memory from IC and gives it to DC",
                "ALLOC's memory of DC",
                "PROP's memory of DC",
                "ALLOC's memory of IC",
                at=("1.5", "2"),
            ),
        ),
        seeds=5,
        drawn=(
            "ALLOC",
            "PROP",
            "ALLOC's memory of DC",
            "ALLOC's memory of IC",
            "PROP's memory of DC",
        ),
        quick=("0", "2"),
        reason="Without skew every tuple is worth the same, and 20 % of the memory keeps 20 %.",
    ),
    Experiment(
        "P5:fig11",
        "Least recall of two joins by the exponent of their age curves, AGE",
        "6.2.5",
        "r1 = 1, r2 = 5, W1 = 500; an increasing and a decreasing curve, 50 % of their memory",
        f"the length: {ROWS} tuples of S1",
        "exponent p",
        "% of the exact joins",
        {f"{p:g}": p for p in (0.5, 1.0, 2.0, 3.0, 4.0)},
        by_exponent,
        (
            order("ALLOC outperforms PROP", "ALLOC", "PROP"),
            rises("ALLOC's least recall rises with the exponent", "ALLOC"),
            bounded(
                "PROP's stays constant (within 4 %)", relative("PROP", "0.5"), None, 0.96, 1.04
            ),
            falls("ALLOC gives less memory to DEC", "ALLOC's memory of DEC"),
        ),
        seeds=5,
        drawn=(
            "ALLOC",
            "PROP",
            "ALLOC's memory of INC",
            "ALLOC's memory of DEC",
            "PROP's memory of DEC",
        ),
    ),
)
