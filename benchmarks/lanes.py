"""What hash lanes cost on real archives: recall with 4 and 16 lanes against one, same memory.

    python benchmarks/lanes.py [--rows 60000] [--only hflights]

Each natural join, or its first rows, is replayed by three policies with four percentages of what
the exact join needs at its peak, split evenly. A cost is in points of importance recall.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from real_joins import NATURAL, Join, written
from reproduce.record import about, write

from engine.jobs.replay.run import run_replay
from engine.options.replay import REPLAY, job_of
from engine.runtime.executors import SerialExecutor

RESULTS = Path(__file__).resolve().parent / "results" / "lanes.json"
POLICIES, MEMORIES, LANES = ("prob", "dgl", "yield"), ("1%", "5%", "10%", "25%"), (1, 4, 16)
MOST = 2.0
"""Points beyond which `winnow replay` warns."""


def measured(name: str, join: Join) -> Iterator[dict[str, Any]]:
    """Yield the recall of each policy and memory with each number of lanes."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        left, right = written(join, Path(folder))
        told = {
            "left": left, "right": right, "on": "key", "time": "ts", "importance": "importance",
            "window": join.window, "split": "even", "cache": Path(folder) / "cache",
        }  # fmt: skip
        for policy in POLICIES:
            for memory in MEMORIES:
                recall, held = {}, set()
                for lanes in LANES:
                    own = told | {"policy": policy, "memory": memory, "lanes": lanes}
                    report = run_replay(job_of(REPLAY.from_keywords(own)), SerialExecutor()).content
                    recall[lanes] = round(100 * report["importance_recall"], 3)
                    held.add(report["memory"]["both"])
                (tuples,) = held  # the same with any number of lanes
                yield {
                    "join": name, "policy": policy, "memory": memory, "tuples": tuples,
                    "recall": recall,
                    "cost": {n: round(recall[1] - recall[n], 3) for n in LANES[1:]},
                }  # fmt: skip


def table_of(lines: list[dict[str, Any]]) -> str:
    """Return the costs of each join in Markdown: mean, greatest, and how many are above `MOST`."""
    found = [
        "| join | 4 lanes: mean | most | above 2 points | 16 lanes: mean | most | above 2 points |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    names = list(dict.fromkeys(line["join"] for line in lines))
    for name in [*names, "all"]:
        cells = [name]
        for lanes in LANES[1:]:
            own = [line["cost"][lanes] for line in lines if name in (line["join"], "all")]
            above = sum(cost > MOST for cost in own)
            cells += [f"{np.mean(own):.1f}", f"{max(own):.1f}", f"{above} of {len(own)}"]
        found.append(f"| {' | '.join(cells)} |")
    return "\n".join(found)


def main() -> None:
    """Print and record everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    lines = []
    for name, join in NATURAL.items():
        if args.only in name:
            for line in measured(name, join._replace(rows=args.rows)):
                lines.append(line)
                print(json.dumps(line), flush=True)
    print(table_of(lines))
    if not args.only:
        write(RESULTS, {"about": about(), "rows": args.rows, "lines": lines})


if __name__ == "__main__":
    main()
