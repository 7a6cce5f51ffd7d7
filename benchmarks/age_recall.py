"""Recall of AGE, compared with equation 3, RECENT and UNTIL_EXPIRY: P5's figures 6 and 7.

    python benchmarks/age_recall.py [--rows N] [--plot docs/age.png]

Streams are P5's INC, DEC and BELL (6.2.1: r_1 = 1, r_2 = 5, W_1 = 500, n_1 = 5, 20 buckets), and a
WAN-like one (6.1: 50 tuples a second, all matches at about 63 of 120 seconds). Only the left window
has memory, as in the paper. The script prints every point and the largest difference between
predicted and measured recall, and writes them to benchmarks/results/age_recall.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine import commands as cli
from engine import replay_tables
from engine.report.envelope import versions

SHARES = [5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95]
POLICIES = ("age", "recent", "until_expiry")
TICKS = 20
"""Ticks a unit of time of the paper's."""


def of_curve(curve: str, rows: int) -> tuple[pa.Table, pa.Table, int]:
    """Return streams whose matches follow an age curve, and the window."""
    with tempfile.TemporaryDirectory() as folder:
        command = f"generate age --curve {curve} --rows {rows} --ticks-per-unit {TICKS}"
        command += f" --seed 5 --out {folder}"
        if cli.main(command.split()):
            raise SystemExit(1)
        left, right = (pq.read_table(f"{folder}/{side}.parquet") for side in ("left", "right"))
    return left, right, 500 * TICKS


def wan(rows: int) -> tuple[pa.Table, pa.Table, int]:
    """Return streams whose tuples match what was sent 63 seconds before, in ticks of 1 ms."""
    rng = np.random.default_rng(5)
    sent = np.arange(rows) * 20
    keys = np.arange(rows)
    latency = 63_000 + rng.gamma(2.0, 1_500.0, rows).astype(np.int64)
    order = np.argsort(sent + latency, kind="stable")
    left = pa.table({"ts": sent, "key": keys})
    right = pa.table({"ts": (sent + latency)[order], "key": keys[order]})
    return left, right, 120_000


def measured(streams: tuple[pa.Table, pa.Table, int], share: int) -> dict[str, float]:
    """Return the recall of each policy, and the one predicted of AGE, within a share of rW."""
    left, right, window = streams
    times = left["ts"].to_numpy()
    live = left.num_rows / (times[-1] - times[0] + 1) * window
    found: dict[str, float] = {"share": share / 100}
    for policy in POLICIES:
        report: dict[str, Any] = replay_tables(
            left, right, on="key", time="ts", window=window, memory_left=int(live * share / 100),
            memory_right=0, policy=policy, columns="ids", device="cpu",
        ).report  # fmt: skip
        found[policy] = report["recall"]
        if policy == "age":
            found["predicted"] = report["predicted"]["recall"]
            found["k_opt"] = report["predicted"]["k_opt"]["left"] / window
    return found


def plot(points: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Draw recall over memory, a panel a stream."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the plot

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - the same

    figure, axes = plt.subplots(1, len(points), figsize=(10, 2.6), sharey=True)
    styles = {"predicted": "k:", "age": "o", "recent": "-", "until_expiry": "--"}
    for axis, (name, rows) in zip(axes, points.items(), strict=True):
        for line, style in styles.items():
            x = [100 * row["share"] for row in rows]
            axis.plot(x, [row[line] for row in rows], style, label=line, markersize=3)
        axis.set_title(name)
        axis.set_xlabel("memory, % of the window")
    axes[0].set_ylabel("recall")
    axes[0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="tuples of the left stream")
    parser.add_argument("--plot", type=Path, help="PNG file of the plot")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/age_recall.json"))
    args = parser.parse_args()
    streams = {
        "INC": of_curve("increasing", args.rows),
        "DEC": of_curve("decreasing", args.rows),
        "BELL": of_curve("bell", args.rows),
        "WAN": wan(6 * args.rows),  # 40 minutes, as in the paper
    }
    points: dict[str, list[dict[str, float]]] = {}
    for name, own in streams.items():
        points[name] = [measured(own, share) for share in SHARES]
        for row in points[name]:
            print(name, "  ".join(f"{key} {value:.3f}" for key, value in row.items()), flush=True)
    worst = {
        name: max(abs(row["predicted"] - row["age"]) for row in rows)
        for name, rows in points.items()
    }
    print("largest |predicted - measured|:", {name: round(v, 4) for name, v in worst.items()})
    args.out.write_text(
        json.dumps(
            {"rows": args.rows, "points": points, "worst": worst, "versions": versions()}, indent=1
        )
        + "\n"
    )
    if args.plot is not None:
        plot(points, args.plot)


if __name__ == "__main__":
    main()
