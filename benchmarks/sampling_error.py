"""The error of windowed averages over samples: P5's figures 8 and 9 (6.2.4).

Streams follow P5 6.2 and 6.2.3: r_1 = 1, r_2 = 5, times between arrivals U[1 / 2r, 2 / r],
W_1 = 500, domain 50, Zipf parameter 2; S_1-probe outputs only, so all memory is S_1's. The value is
S_1's, normal with mean 100; its average over the last 500 time units is computed at each time unit.
Figure 8: by memory, inversely correlated streams (IC), deviation 100. Figure 9: by deviation,
uncorrelated streams (UC), memory 10 %. Memory is a share of the mean window; tuples of UNIFORM take
34 bytes instead of 32.

    python benchmarks/sampling_error.py [--runs 10] [--json benchmarks/results/sampling_error.json]
        [--plot docs/sampling_error.png]

An error is |estimate - exact| / |exact|, a mean over a run; a window without a sampled output has
none. "of all" is the sum of the errors over the sum of the exact values, so that no window with an
average near 0 dominates it. Figures are medians over runs, each with its own streams.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pyarrow as pa

from engine.api.sample import sample_tables

TICKS = 100
"""Of a time unit: few tuples of the two streams arrive in one instant."""
LENGTH, WINDOW, DOMAIN, ZIPF, MEAN = 5000, 500, 50, 2.0, 100.0
RATES = 1.0, 5.0
MEAN_WINDOW = 0.8 * WINDOW
"""Tuples: a time between arrivals is 1.25 / r on average."""
AGGREGATE = f"avg(left.value) every {TICKS} over {WINDOW * TICKS}"
METHODS = {
    "uniform, frequency": ("uniform", "frequency"),
    "uniform, bound": ("uniform", "bound"),
    "eq-cluster": ("eq-cluster", None),
    "pps-cluster": ("pps-cluster", None),
    "bottom-k": ("bottom-k", None),
}
MEMORY = 10, 20, 40, 60, 80, 100
DEVIATION = 0.0, 0.25, 0.5, 1.0, 1.5, 2.0


class Setting(NamedTuple):
    """A point of a figure: correlation of the streams, deviation over mean, memory in percent."""

    figure: int
    correlation: str
    deviation: float
    memory: int


SETTINGS = [Setting(8, "IC", 1.0, memory) for memory in MEMORY] + [
    Setting(9, "UC", deviation, 10) for deviation in DEVIATION
]


def streams(seed: int, setting: Setting) -> tuple[pa.Table, pa.Table]:
    """Draw S_1 and S_2."""
    draw = np.random.default_rng([seed, setting.figure])
    times = []
    for rate in RATES:
        gaps = draw.uniform(0.5 / rate, 2 / rate, int(1.2 * LENGTH * rate))
        arrivals = np.cumsum(gaps)
        times.append(np.floor(arrivals[arrivals < LENGTH] * TICKS).astype(np.int64))
    share = np.arange(1, DOMAIN + 1) ** -ZIPF
    share /= share.sum()
    ranks = {"IC": np.arange(DOMAIN)[::-1], "UC": draw.permutation(DOMAIN)}[setting.correlation]
    keys = [draw.choice(DOMAIN, ts.size, p=share) for ts in times]
    value = MEAN + MEAN * setting.deviation * draw.normal(size=times[0].size)
    left = pa.table({"ts": times[0], "key": keys[0], "value": value})
    return left, pa.table({"ts": times[1], "key": ranks[keys[1]]})


def measured(seed: int, setting: Setting, name: str) -> dict[str, float]:
    """Sample one pair of streams and compare every window."""
    method, count = METHODS[name]
    left, right = streams(seed, setting)
    bytes_a_tuple = 34 if method == "uniform" else 32
    memory = round(setting.memory / 100 * MEAN_WINDOW * 32 / bytes_a_tuple)
    found = sample_tables(
        left, right, on="key", time="ts", window_left=WINDOW * TICKS, window_right=0,
        memory_left=memory, memory_right=0, method=method, count=count, seed=seed,
        aggregates=AGGREGATE, exact_aggregates=True,
    )  # fmt: skip
    table = found.aggregates[AGGREGATE]
    begin = table["window_begin"].to_numpy()
    table = table.filter(pa.array((begin >= 0) & (begin <= (LENGTH - WINDOW) * TICKS)))
    estimate, exact = (table[part].to_numpy(zero_copy_only=False) for part in ("estimate", "exact"))
    some = ~np.isnan(estimate)
    off = np.abs(estimate - exact)[some]
    covered = table["covered"].drop_null().to_numpy(zero_copy_only=False)
    return {
        "error": float(np.mean(off / np.abs(exact[some]))),
        "of_all": float(off.sum() / np.abs(exact[some]).sum()),
        "without": float(1 - some.mean()),
        "covered": float(covered.mean()) if covered.size else float("nan"),
        "share_of_outputs": float(found.report["estimates"]["outputs"]["estimate"])
        / max(1, found.report["exact"]["outputs"]),
        "sampled": float(np.mean(table["rows"].to_numpy())),
        "tuples": float(memory),
        "mean_memory": float(found.report["memory"]["mean"]["left"]),
    }


def lines(runs: int) -> Iterator[dict[str, Any]]:
    """Measure every setting by every method."""
    for setting in SETTINGS:
        for name in METHODS:
            each = [measured(seed, setting, name) for seed in range(runs)]
            line: dict[str, Any] = setting._asdict() | {"method": name, "runs": runs}
            for part in each[0]:
                line[part] = statistics.median(one[part] for one in each)
            errors = [one["error"] for one in each]
            line["errors"] = errors
            line["mean_error"] = statistics.fmean(errors)
            print(
                f"figure {setting.figure} {setting.correlation} deviation {setting.deviation} "
                f"memory {setting.memory:3d} % {name:20s} error {100 * line['error']:6.1f} % "
                f"of all {100 * line['of_all']:6.1f} % covered {100 * line['covered']:5.1f} %",
                flush=True,
            )
            yield line


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Draw both figures."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2))
    for axis, number, x, label in (
        (axes[0], 8, "memory", "memory in % of the window"),
        (axes[1], 9, "deviation", "deviation / mean of the value"),
    ):
        for name in METHODS:
            mine = [one for one in found if one["figure"] == number and one["method"] == name]
            axis.plot([one[x] for one in mine], [100 * one["error"] for one in mine], "o-",
                      label=name, markersize=4)  # fmt: skip
        axis.set_xlabel(label)
        axis.set_ylabel("error of the average in %")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].set_title("figure 8: inversely correlated, deviation = mean")
    axes[1].set_title("figure 9: uncorrelated, memory 10 %")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="P5's figures 8 and 9")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    found = list(lines(given.runs))
    if given.json:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 - as the others do
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        given.json.write_text(json.dumps({"commit": commit, "lines": found}, indent=1) + "\n")
    if given.plot:
        plot(found, given.plot)


if __name__ == "__main__":
    main()
